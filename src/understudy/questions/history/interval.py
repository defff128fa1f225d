"""Two successive snapshots of a cluster, as far as they differ, in plain Python.

Rows are those of the canonical tables, by name. Only what changed between the two, and what a
controller could have been expected to change, is ever brought together here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from understudy.controller.words import UNCLEAN_SETTING

Row = Mapping[str, Any]


class Change(NamedTuple):
    """A row before and after; None where there was or is none."""

    before: Row | None
    after: Row | None


def is_new(change: Change) -> bool:
    return change.before is None


@dataclass(frozen=True)
class Side:
    """What one of the two snapshots says of the whole cluster."""

    snapshot: Row
    brokers: Mapping[int, Row]
    settings: Sequence[Row]
    """Those a controller decides by: scope, name, key and value."""
    queued_topics: frozenset[str] = frozenset()
    followed: frozenset[int] = frozenset()
    """Brokers that are in sync with somebody else about some partition."""

    @cached_property
    def unclean(self) -> dict[tuple[str, str | None], bool]:
        """The settings of unclean election, by scope and name."""
        return {
            (row["scope"], row["name"]): row["value"].strip().lower() == "true"
            for row in self.settings
            if row["key"] == UNCLEAN_SETTING
        }


@dataclass(frozen=True)
class Interval:
    """What lies between two successive snapshots."""

    old: Side
    new: Side
    topics: Mapping[str, Change] = field(default_factory=dict)
    """Those that changed, or grew."""
    partitions: Sequence[Change] = ()
    """Those that changed, and those that might have."""

    @cached_property
    def is_kraft(self) -> bool:
        return bool(self.new.snapshot["mode"] == "kraft")

    # --- The controller ------------------------------------------------------------------------

    @property
    def old_controller(self) -> int | None:
        return self.old.snapshot["controller_id"]  # type: ignore[no-any-return]

    @property
    def controller(self) -> int | None:
        return self.new.snapshot["controller_id"]  # type: ignore[no-any-return]

    @property
    def old_epoch(self) -> int | None:
        return self.old.snapshot["controller_epoch"]  # type: ignore[no-any-return]

    @property
    def epoch(self) -> int | None:
        return self.new.snapshot["controller_epoch"]  # type: ignore[no-any-return]

    @cached_property
    def failovers(self) -> int:
        if self.epoch is None or self.old_epoch is None:
            return 0
        return max(self.epoch - self.old_epoch, 0)

    @cached_property
    def is_controller_lost(self) -> bool:
        """Who is gone together with the controller is seen by the next one, when it starts."""
        return not self.is_kraft and self.failovers > 0 and self.old_controller in self.broke_off

    # --- Brokers -------------------------------------------------------------------------------

    @cached_property
    def brokers(self) -> dict[int, BrokerStep]:
        ids = sorted(self.old.brokers.keys() | self.new.brokers.keys())
        return {b: BrokerStep(b, self.old.brokers.get(b), self.new.brokers.get(b)) for b in ids}

    def _ids(self, steps: Iterable[BrokerStep]) -> frozenset[int]:
        return frozenset(step.broker_id for step in steps)

    @cached_property
    def _dead(self) -> frozenset[int]:
        return self._ids(step for step in self.brokers.values() if step.is_gone)

    @cached_property
    def unnoticed(self) -> frozenset[int]:
        """The controller that is gone, while nobody follows it: its own end is met by nobody."""
        is_alone = not self.is_kraft and self.failovers == 0
        return self._dead & {self.old_controller} if is_alone else frozenset()

    @cached_property
    def gone(self) -> frozenset[int]:
        """Those whose end a controller could have met."""
        return self._dead - self.unnoticed

    @cached_property
    def broke_off(self) -> frozenset[int]:
        """Those that are gone, and those that were for a while that nobody saw."""
        return self.gone | self._ids(step for step in self.brokers.values() if step.is_bounced)

    @cached_property
    def started(self) -> frozenset[int]:
        return self._ids(step for step in self.brokers.values() if step.is_started)

    @cached_property
    def alive(self) -> frozenset[int]:
        """Those that are there, for all that a controller has met."""
        return self.unnoticed | self._ids(s for s in self.brokers.values() if s.is_alive)

    @cached_property
    def steady(self) -> frozenset[int]:
        return self.unnoticed | self._ids(s for s in self.brokers.values() if s.is_steady)

    @cached_property
    def quiet(self) -> frozenset[int]:
        """Alive all the time, but no longer in sync with anybody."""
        return self.steady - self.new.followed

    # --- Settings ------------------------------------------------------------------------------

    def is_unclean(self, topic: str) -> bool:
        """What holds in the end: the topic's word, its controller's, the cluster's, the file's."""
        scopes = (("topic", topic), ("broker", str(self.controller)), *_DEFAULTS)
        said = self.new.unclean
        return next((said[scope] for scope in scopes if scope in said), False)


_DEFAULTS = (("cluster", None), ("static", None))


@dataclass(frozen=True)
class Burst:
    """Successive snapshots that are one interval, and the steps it was seen to be made of."""

    whole: Interval
    steps: Sequence[Interval]

    @classmethod
    def of(cls, steps: Sequence[Interval]) -> Burst:
        if len(steps) == 1:
            return cls(steps[0], steps)
        topics: dict[str, Change] = {}
        partitions: dict[tuple[str, int], Change] = {}
        for step in steps:
            for name, change in step.topics.items():
                topics[name] = Change(topics.get(name, change).before, change.after)
            for change in step.partitions:
                row = change.after or change.before or {}
                key = row["topic"], row["partition"]
                partitions[key] = Change(partitions.get(key, change).before, change.after)
        changed = {name: change for name, change in topics.items() if change.before != change.after}
        there = [change for change in partitions.values() if change != (None, None)]
        return cls(Interval(steps[0].old, steps[-1].new, changed, there), steps)


def bursts_of(steps: Sequence[Interval]) -> list[Burst]:
    """The steps as one burst, or as several where one would hide what came and went."""
    found: list[list[Interval]] = []
    moved: set[int] = set()
    passing: set[str] = set()
    for step in steps:
        topics = {name for name, each in step.topics.items() if None in each}
        moved_now = _moved(found[-1][0].old, step.new) if found else set()
        if found and not (moved - moved_now or topics & passing):
            found[-1].append(step)
            moved, passing = moved_now, passing | topics
        else:
            found.append([step])
            moved, passing = _moved(step.old, step.new), topics
    return [Burst.of(each) for each in found]


def _moved(base: Side, now: Side) -> set[int]:
    """The brokers that came, went or came back since."""
    ids = base.brokers.keys() | now.brokers.keys()
    steps = (BrokerStep(b, base.brokers.get(b), now.brokers.get(b)) for b in ids)
    return {step.broker_id for step in steps if step.was_alive != step.is_alive or step.is_other}


@dataclass(frozen=True)
class BrokerStep:
    """One broker in both snapshots, and what became of it."""

    broker_id: int
    before: Row | None
    after: Row | None

    @cached_property
    def was_alive(self) -> bool:
        return self.before is not None and bool(self.before["alive"])

    @cached_property
    def is_alive(self) -> bool:
        return self.after is not None and bool(self.after["alive"])

    @cached_property
    def old_epoch(self) -> int | None:
        return None if self.before is None else self.before["broker_epoch"]

    @cached_property
    def epoch(self) -> int | None:
        return None if self.after is None else self.after["broker_epoch"]

    @cached_property
    def _is_epoch_known(self) -> bool:
        return self.epoch is not None and self.old_epoch is not None

    @cached_property
    def is_other(self) -> bool:
        """Another registration of the same broker."""
        return self._is_epoch_known and self.epoch != self.old_epoch

    @cached_property
    def is_same(self) -> bool:
        return self._is_epoch_known and self.epoch == self.old_epoch

    @cached_property
    def is_gone(self) -> bool:
        return self.was_alive and not self.is_alive

    @cached_property
    def is_bounced(self) -> bool:
        """Registered anew, and nobody saw it go."""
        return self.was_alive and self.is_alive and self.is_other

    @cached_property
    def is_started(self) -> bool:
        return self.is_alive and (not self.was_alive or self.is_other)

    @cached_property
    def is_steady(self) -> bool:
        return self.was_alive and self.is_alive and self.is_same
