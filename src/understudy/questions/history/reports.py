"""The ISRs that leaders of a partition reported between two snapshots, one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from understudy.controller.words import NO_LEADER
from understudy.questions.history.partitions import Ids, PartitionStep, without

_MOST_UNSEEN: Final = 50


@dataclass(frozen=True)
class Reports:
    """How the ISR of one partition came to be what it is, as far as leaders made it so."""

    step: PartitionStep

    @cached_property
    def _start(self) -> Ids:
        """The ISR before the first report."""
        if self.step.was_led and (self.step.by_leaders or 0) > 0 and self.step.elections == 0:
            # Where the controller wrote nothing, leaders took out those who broke off.
            return self.step.old_isr
        return self.step.left_in_sync or (self.step.leader,)

    @cached_property
    def _end(self) -> Ids:
        """The ISR of the last report; one that completes a reassignment had those who leave."""
        if not self.step.is_completed:
            return self.step.isr
        if self.step.interval.is_kraft:
            return (*self.step.isr, *without(self._start, self.step.isr))
        return (*self._start, *without(self.step.isr, self._start))

    @cached_property
    def _report_count(self) -> int:
        if self.step.by_leaders is not None:
            return self.step.by_leaders
        by_controller = (
            sum(r in self.step.interval.broke_off for r in self.step.old_isr)
            + len(self.step.assigned)
            + self.step.is_preferred
            + (self.step.is_kept and self.step.old_leader == NO_LEADER)
        )
        return max(1, self.step.writes - by_controller)

    @cached_property
    def _way(self) -> list[Ids]:
        """The reports that lead from the first ISR to the last."""
        start, end = self._start, self._end
        if self.step.interval.is_kraft:
            # Leaders of the quorum report ISRs in an order of their own.
            joined = without(self.step.isr, start)
            if joined:
                return [
                    tuple(r for r in end if r in start or r in joined[: n + 1])
                    for n in range(len(joined))
                ]
            return [end] if without(start, end) else []
        stayed = stayed_in_order(start, end)
        shrunk = [end[:stayed]] if 0 < stayed < len(start) else []
        return shrunk + [end[:n] for n in range(stayed + 1, len(end) + 1)]

    @cached_property
    def _unseen(self) -> list[Ids]:
        """Changes that left no trace but their number: the last follower fell behind and returned.

        (Nobody can know which follower it was.)
        """
        start = self._start
        extra = (self.step.by_leaders or 0) - len(self._way)
        if extra < 2 or len(start) < 2 or start[-1] in {self.step.leader, self.step.old_leader}:  # noqa: PLR2004
            return []
        return [start[:-1], start] * min(extra // 2, _MOST_UNSEEN)

    @cached_property
    def all(self) -> list[Ids]:
        if (
            self.step.after is None
            or self.step.leader == NO_LEADER
            or self.step.of_topic.is_queued_now
            or self.step.rejoined
            or self._report_count <= 0
        ):
            return []
        if self._report_count < len(self._way):
            return self._by_leaders([*self._way[: self._report_count - 1], self._end])
        return self._by_leaders(self._unseen + self._way)

    def _by_leaders(self, reports: list[Ids]) -> list[Ids]:
        """No leader reports an ISR that it is not in itself."""
        leaders = {self.step.old_leader, self.step.leader}
        return [isr for isr in reports if not leaders.isdisjoint(isr)]


def stayed_in_order(start: Sequence[int], end: Sequence[int]) -> int:
    """How many at the beginning of *end* stand in the order they had in *start*.

    In ZooKeeper mode an ISR loses members where they stand and gains them at its end, so those are
    the ones that stayed.
    """
    last = -1
    for count, member in enumerate(end):
        at = start.index(member) if member in start else -1
        if at <= last:
            return count
        last = at
    return len(end)
