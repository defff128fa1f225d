"""What became of a topic between two snapshots."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from understudy.questions.history.interval import Change, Row


@dataclass(frozen=True)
class TopicStep:
    """What became of a topic; *is_recreated* is another topic under the name of an old one."""

    change: Change | None

    def _flag(self, row: Row | None) -> bool:
        return row is not None and bool(row["queued_for_deletion"])

    @cached_property
    def is_recreated(self) -> bool:
        if self.change is None or self.change.before is None or self.change.after is None:
            return False
        ids = self.change.before["topic_id"], self.change.after["topic_id"]
        return None not in ids and ids[0] != ids[1]

    @cached_property
    def is_new(self) -> bool:
        return self.change is not None and (self.change.before is None or self.is_recreated)

    @cached_property
    def is_deleted(self) -> bool:
        """Gone, on its way, or gone before another one of its name came."""
        if self.change is None or self.change.before is None or self._flag(self.change.before):
            return False
        return self.change.after is None or self.is_recreated or self._flag(self.change.after)

    @cached_property
    def is_queued_now(self) -> bool:
        return (
            self.change is not None
            and self._flag(self.change.after)
            and not self._flag(self.change.before)
        )
