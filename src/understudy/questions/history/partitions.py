"""What is different about one partition from one snapshot to the next, and who did it.

In ZooKeeper mode the two epochs of a partition's record tell who wrote it how often: whatever the
controller writes raises both, an ISR that the leader changes raises the partition epoch alone. The
quorum raises them by other rules, so there only what is seen counts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from understudy.controller.kraft.partitions import LOST, MIGRATING, UNASSIGNED
from understudy.controller.words import NO_LEADER
from understudy.questions.history.facts import BEFORE_FAILOVER
from understudy.questions.history.interval import Interval, Row
from understudy.questions.history.topics import TopicStep

Ids = tuple[int, ...]

_NO_DIRECTORIES: Final = frozenset((MIGRATING, UNASSIGNED, LOST))


def partition_steps(interval: Interval) -> Iterator[PartitionStep]:
    """The partitions that changed; of a topic made anew, the old one and the new one."""
    for change in interval.partitions:
        before, after = change
        row = before if after is None else after
        topic = TopicStep(interval.topics.get(row["topic"]))  # type: ignore[index]
        if topic.is_recreated and before is not None and after is not None:
            yield PartitionStep(interval, topic, before, None)
            yield PartitionStep(interval, topic, None, after)
        elif before != after:
            yield PartitionStep(interval, topic, before, after)


@dataclass(frozen=True)
class PartitionStep:
    """One partition in both snapshots, with all that decides which events made the difference."""

    interval: Interval
    of_topic: TopicStep
    before: Row | None
    after: Row | None

    def _of(self, row: Row | None, name: str) -> Any:  # noqa: ANN401 - a column of any type
        return None if row is None else row[name]

    def _ids(self, row: Row | None, name: str) -> Ids:
        return tuple(self._of(row, name) or ())

    @cached_property
    def topic(self) -> str:
        return str(self._of(self.after or self.before, "topic"))

    @cached_property
    def partition(self) -> int:
        return int(self._of(self.after or self.before, "partition"))

    @cached_property
    def is_new(self) -> bool:
        return self.before is None

    @cached_property
    def is_kept(self) -> bool:
        return self.before is not None and self.after is not None

    # --- The assignments, and what they say of reassignments -----------------------------------

    @cached_property
    def old_replicas(self) -> Ids:
        return self._ids(self.before, "replicas")

    @cached_property
    def replicas(self) -> Ids:
        return self._ids(self.after, "replicas")

    @cached_property
    def adding(self) -> Ids:
        return self._ids(self.after, "adding")

    @cached_property
    def was_pending(self) -> bool:
        return bool(self._ids(self.before, "adding") or self._ids(self.before, "removing"))

    @cached_property
    def is_pending(self) -> bool:
        return bool(self.adding or self._ids(self.after, "removing"))

    @cached_property
    def old_target(self) -> Ids:
        return without(self.old_replicas, self._ids(self.before, "removing"))

    @cached_property
    def target(self) -> Ids:
        return without(self.replicas, self._ids(self.after, "removing"))

    @cached_property
    def origin(self) -> Ids:
        return without(self.old_replicas, self._ids(self.before, "adding"))

    @cached_property
    def _has_other_target(self) -> bool:
        return self.is_kept and self.target != self.old_target

    @cached_property
    def _is_back(self) -> bool:
        return self.was_pending and not self.is_pending and self.target == self.origin

    @cached_property
    def is_cancelled(self) -> bool:
        return self._has_other_target and self._is_back

    @cached_property
    def is_reassigned(self) -> bool:
        return self._has_other_target and not self._is_back

    @cached_property
    def is_completed(self) -> bool:
        return (
            self.is_kept
            and not self.is_pending
            and (self.was_pending or self._has_other_target)
            and not self.is_cancelled
        )

    # --- The records, and how often who wrote them; never led has epochs zero ------------------

    @cached_property
    def was_led(self) -> bool:
        """Whether there was a record."""
        return self.is_kept and bool(self._of(self.before, "has_state"))

    @cached_property
    def old_leader(self) -> int:
        leader = self._of(self.before, "leader")
        return NO_LEADER if leader is None else int(leader)

    @cached_property
    def leader(self) -> int:
        leader = self._of(self.after, "leader")
        return NO_LEADER if leader is None else int(leader)

    @cached_property
    def old_isr(self) -> Ids:
        return self._ids(self.before, "isr")

    @cached_property
    def isr(self) -> Ids:
        return self._ids(self.after, "isr")

    def _rise(self, epoch: str) -> int:
        return int((self._of(self.after, epoch) or 0) - (self._of(self.before, epoch) or 0))

    @cached_property
    def elections(self) -> int:
        return self._rise("leader_epoch")

    @cached_property
    def writes(self) -> int:
        return self._rise("partition_epoch")

    @cached_property
    def by_leaders(self) -> int | None:
        return None if self.interval.is_kraft else self.writes - self.elections

    @cached_property
    def place_shift(self) -> int:
        """Nobody but the controller before the failover writes its epoch."""
        written, old_epoch = self._of(self.after, "controller_epoch"), self.interval.old_epoch
        is_earlier = (
            not self.interval.is_kraft
            and self.interval.failovers > 0
            and self.writes > 0
            and written is not None
            and old_epoch is not None
            and written <= old_epoch
        )
        return BEFORE_FAILOVER if is_earlier else 0

    # --- Who of the ISR is left, when those are taken away that broke off ----------------------

    @cached_property
    def _dropped(self) -> Ids:
        """Members that never went away, and that the controller alone took out of the ISR.

        Their log directory failed, or they are about to leave.
        """
        is_by_controller = (
            self.is_kept
            and self.elections > 0
            and self.by_leaders == 0
            and self.target == self.old_target
            and not self.was_pending
            and not self.of_topic.is_queued_now
        )
        if not is_by_controller:
            return ()
        return tuple(
            r
            for r in self.old_isr
            if r in self.interval.steady
            and r in self.replicas
            and (r not in self.isr or (self.leader == NO_LEADER and self.old_leader == r))
        )

    @cached_property
    def failed_dirs(self) -> Ids:
        failed = dict.fromkeys(self._ids(self.after, "offline_dirs"))
        return without(failed, self._ids(self.before, "offline_dirs"))

    def _is_departing(self, broker: int) -> bool:
        return broker in self.interval.quiet and self.leader != NO_LEADER

    @cached_property
    def departed(self) -> Ids:
        return tuple(
            r for r in self._dropped if self._is_departing(r) and r not in self.failed_dirs
        )

    @cached_property
    def dirless(self) -> Ids:
        staying = (r for r in self._dropped if not self._is_departing(r))
        return tuple(dict.fromkeys((*self.failed_dirs, *staying)))

    @cached_property
    def _is_led_by_the_first(self) -> bool:
        """Nobody in sync was there when the leader came, and it did not have to be in sync."""
        brokers = self.interval.brokers
        if not (
            self.was_led
            and self.old_leader == NO_LEADER
            and self.leader in self.interval.started
            and self.leader not in self.old_isr
            and self.interval.is_unclean(self.topic)
        ):
            return False
        came = brokers[self.leader].epoch or 0
        there = (brokers[r] for r in self.old_isr if r in self.interval.alive)
        return all(step.is_started and (step.epoch or 0) > came for step in there)

    @cached_property
    def left_in_sync(self) -> Ids:
        interval = self.interval
        if self._is_led_by_the_first:
            return (self.leader,)
        broken_off = interval.broke_off.union(self._dropped, self.failed_dirs)
        left = interval.alive - broken_off
        if self.is_new:
            return tuple(
                r
                for r in self.replicas
                if r in left and r in self.isr and r not in interval.started
            )
        return tuple(r for r in self.old_isr if r in left)

    # --- Who leads, and who would without an election that was asked for -----------------------

    @cached_property
    def _is_led_on(self) -> bool:
        return self.old_leader != NO_LEADER and self.old_leader in self.left_in_sync

    @cached_property
    def heir(self) -> int:
        """Who would lead if nobody had asked for an election."""
        if self._is_led_on:
            return self.old_leader
        assigned = self.replicas if self.before is None else self.old_replicas
        in_line = [r for r in assigned if r in self.left_in_sync]
        in_line += [r for r in self.old_isr if r in self.interval.started]
        return in_line[0] if in_line else NO_LEADER

    @cached_property
    def is_preferred(self) -> bool:
        return (
            self.elections > 0
            and self.leader == next(iter(self.replicas), None)
            and self.heir not in {NO_LEADER, self.leader}
            and not self.is_reassigned
            and not self.is_completed
            and not self.is_cancelled
        )

    @cached_property
    def is_unclean_election(self) -> bool:
        # The quorum finds those it knows to be eligible again by itself.
        eligible = (
            *self.old_isr,
            *self._ids(self.before, "elr"),
            *self._ids(self.before, "last_known_elr"),
        )
        return (
            self.was_led
            and self.elections > 0
            and self.heir == NO_LEADER
            and self.leader != NO_LEADER
            and self.leader not in eligible
            and not self.interval.is_unclean(self.topic)
        )

    @cached_property
    def _is_resumed(self) -> bool:
        """A reassignment goes on by itself with a new controller, and when a replica comes back."""
        is_back = not self.interval.started.isdisjoint(self.replicas)
        return self.was_pending and (self.interval.failovers > 0 or is_back)

    @cached_property
    def is_repeated(self) -> bool:
        """The only way for a record to be written anew with all in it as it was."""
        return (
            self.is_kept
            and not self.interval.is_kraft
            and not self._is_resumed
            and self.elections == 1
            and self.leader == self.old_leader
            and self.left_in_sync == self.old_isr
            and self.target == self.old_target
            and self.was_pending == self.is_pending
        )

    @cached_property
    def rejoined(self) -> Ids:
        """Brokers that are gone, and that leaders had let in again before."""
        is_twice = (
            self.is_kept
            and not self.of_topic.is_queued_now
            and self.interval.failovers == 0
            and self.elections == 2  # noqa: PLR2004 - taken out twice
            and self.by_leaders == 1
            and self.left_in_sync == self.isr
        )
        if not is_twice:
            return ()
        return tuple(r for r in sorted(self.interval.gone) if r in self.old_isr)

    @cached_property
    def is_plain(self) -> bool:
        """Whether its record is all that changed, by rules that do not depend on a deletion."""
        queued = self.interval.old.queued_topics | self.interval.new.queued_topics
        unknown = (row.get("unknown") for row in (self.before, self.after) if row is not None)
        return (
            not self.interval.is_kraft
            and self.after is not None
            and not (self.was_pending or self.is_pending)
            and (self.is_new or self.target == self.old_target)
            and self.topic not in queued
            and not any(unknown)
        )

    @cached_property
    def assigned(self) -> tuple[tuple[int, str], ...]:
        """Directories that brokers of the quorum reported for their replicas."""
        if not self.interval.is_kraft or self.after is None:
            return ()
        now = zip(self.replicas, self.after["directories"] or (), strict=False)
        known = [each for each in now if each[1] is not None and each[1] not in _NO_DIRECTORIES]
        if self.is_new:
            return tuple(known) if self.writes > 0 else ()
        was = dict(zip(self.old_replicas, self._of(self.before, "directories") or (), strict=False))
        return tuple(each for each in known if was.get(each[0]) != each[1])


def without(ids: Collection[int], others: Collection[int]) -> Ids:
    return tuple(r for r in ids if r not in others)
