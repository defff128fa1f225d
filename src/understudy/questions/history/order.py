"""The order of the snapshots of a history, and which of them show a controller at work.

In ZooKeeper mode every record is a write of its own, so snapshots that follow each other closely
are a *burst*: they show what the controller does, not what it has come to. What happened is derived
from the last of the burst before to the last of this one. In KRaft whatever belongs together is
written together, so each snapshot is one to be held against the one before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from understudy.controller.profiles import KRAFT

NEWEST: Final = "struct(taken_at, controller_epoch, length(snapshot_id), snapshot_id)"
"""The same order for Spark: the newest of several has the greatest."""

_SETTLING: Final = 2_000_000  # microseconds without any change, after which a controller is at rest
_LONGEST: Final = 60_000_000  # a burst that goes on and on is cut
_MOST: Final = 500


class Moment(NamedTuple):
    """What the order of a snapshot depends on; times are microseconds since 1970."""

    taken_at: int | None
    controller_epoch: int | None
    snapshot_id: str
    mode: str | None = None

    @property
    def order(self) -> tuple[int, int, int, str]:
        """Ids that count up with the time, such as ``zxid-0xff`` and ``zxid-0x100``, grow."""
        return (
            self.taken_at or 0,
            self.controller_epoch or 0,
            len(self.snapshot_id),
            self.snapshot_id,
        )


def bursts(ordered: Sequence[Moment]) -> list[int]:
    """The place of the first snapshot of the burst that each belongs to."""
    firsts: list[int] = []
    for n, moment in enumerate(ordered):
        first = firsts[-1] if firsts else 0
        if not firsts or not _is_one(ordered[first], ordered[n - 1], moment, n - first):
            first = n
        firsts.append(first)
    return firsts


def _is_one(first: Moment, before: Moment, now: Moment, so_far: int) -> bool:
    if first.taken_at is None or before.taken_at is None or now.taken_at is None:
        return False
    return (
        KRAFT.mode not in {before.mode, now.mode}
        and now.taken_at - before.taken_at < _SETTLING
        and now.taken_at - first.taken_at < _LONGEST
        and so_far < _MOST
    )
