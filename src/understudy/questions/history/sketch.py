"""What events make of the record of one partition in ZooKeeper mode: a sketch of the controller.

It knows as much of the rules as it takes to try many orders of events quickly. Whatever order it
finds is replayed by the controller core itself, so a sketch that is wrong explains nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple

from understudy.controller import elections, releases
from understudy.controller.elections import Elected
from understudy.controller.group_order import group_order
from understudy.controller.words import NO_LEADER, RECOVERING
from understudy.questions.history.interval import Interval
from understudy.questions.history.partitions import Ids, PartitionStep, without
from understudy.questions.history.step_facts import name_of

ScenarioEvent = Mapping[str, Any]

_OF_EVERY: Final = frozenset(("controller_failover", "unclean_enabled"))
_OF_BROKERS: Final = frozenset(("broker_failure", "broker_startup", "controlled_shutdown"))


class Record(NamedTuple):
    """The record of a partition, and how it came to be so; nobody leads one that is not there."""

    leader: int
    isr: Ids
    is_there: bool = True
    elections: int = 0
    """How often the controller wrote it, and leaders did."""
    reports: int = 0
    is_recovering: bool = False
    written_after: int = 0
    """How many failovers there had been when it was last written."""


class Beat(NamedTuple):
    """An event that touches a partition, its number, and the brokers once it has happened."""

    number: int
    event: ScenarioEvent
    live: frozenset[int]
    shutting_down: frozenset[int]
    failovers: int


class Timeline:
    """The events of an interval, by what they are about."""

    def __init__(self, interval: Interval, events: Sequence[ScenarioEvent]) -> None:
        self.length = len(events)
        self._events = events
        self._of_every: list[int] = []
        self._of_brokers: list[int] = []
        self._of_one: defaultdict[str, list[int]] = defaultdict(list)
        self._worlds = [_World.of(interval)]
        for number, event in enumerate(events):
            if event["type"] in _OF_EVERY:
                self._of_every.append(number)
            elif event["type"] in _OF_BROKERS:
                self._of_brokers.append(number)
            for name in _named_by(event):
                self._of_one[name].append(number)
            self._worlds.append(self._worlds[-1].after(event))

    def beats_of(self, step: PartitionStep) -> list[Beat]:
        """The events that may change its record: those about its brokers, and about itself."""
        brokers = {*step.old_replicas, *step.replicas, *step.old_isr}
        about = (
            n for n in self._of_brokers if not _brokers_of(self._events[n]).isdisjoint(brokers)
        )
        numbers = sorted({*self._of_every, *about, *self._of_one.get(name_of(step), ())})
        return [Beat(n, self._events[n], *self._worlds[n + 1]) for n in numbers]

    @property
    def start(self) -> _World:
        return self._worlds[0]


class _World(NamedTuple):
    live: frozenset[int]
    shutting_down: frozenset[int]
    failovers: int = 0

    @classmethod
    def of(cls, interval: Interval) -> _World:
        live = [b for b, row in interval.old.brokers.items() if row["alive"]]
        leaving = [b for b in live if interval.old.brokers[b]["shutting_down"]]
        return cls(frozenset(live), frozenset(leaving))

    def after(self, event: ScenarioEvent) -> _World:
        kind = event["type"]
        if kind == "controller_failover":
            live = self.live.difference(event.get("dead") or ())
            return _World(live, frozenset(), self.failovers + 1)
        if kind == "broker_failure":
            lost = event["brokers"]
            return self._replace(
                live=self.live.difference(lost), shutting_down=self.shutting_down.difference(lost)
            )
        if kind == "broker_startup":
            return self._replace(live=self.live.union(event["brokers"]))
        if kind == "controlled_shutdown" and event["broker"] in self.live:
            return self._replace(shutting_down=self.shutting_down | {event["broker"]})
        return self


def _brokers_of(event: ScenarioEvent) -> set[int]:
    return {event["broker"]} if "broker" in event else set(event["brokers"])


def _named_by(event: ScenarioEvent) -> Iterable[str]:
    """The partitions that an event names, each for itself."""
    kind = event["type"]
    if kind == "topic_change":
        topics: Mapping[str, Iterable[str]] = event["topics"]
        return [f"{topic}-{number}" for topic, numbers in topics.items() for number in numbers]
    if kind == "partition_change":
        return [f"{event['topic']}-{number}" for number in event["partitions"]]
    if "partition" in event:
        return [event["partition"]]
    return event.get("partitions") or ()


@dataclass(frozen=True)
class Sketch:
    """One partition, and what the events of a timeline make of it."""

    step: PartitionStep
    timeline: Timeline

    @cached_property
    def beats(self) -> list[Beat]:
        return self.timeline.beats_of(self.step)

    @cached_property
    def start(self) -> Record:
        row = self.step.before
        if row is None or not self.step.was_led:
            return Record(NO_LEADER, (), is_there=False)
        return Record(
            self.step.old_leader, self.step.old_isr, is_recovering=row["recovery"] == RECOVERING
        )

    def is_recorded(self, record: Record) -> bool:
        """Whether this is what the later snapshot holds."""
        step, row = self.step, self.step.after
        if row is None or record.is_there != bool(row["has_state"]):
            return False
        return (
            (record.leader, record.isr) == (step.leader, step.isr)
            and (record.elections, record.reports) == (step.elections, step.by_leaders)
            and (record.is_recovering or row["recovery"] != RECOVERING)
            and (record.written_after == 0 or step.place_shift == 0)
        )

    @cached_property
    def outcome(self) -> Record | None:
        """What all events make of it, with those about it alone; None where one makes no sense."""
        record: Record | None = self.start
        for n, beat in enumerate(self.beats):
            record = None if record is None else self.after(record, n, beat.event)
        return record

    # --- One event -----------------------------------------------------------------------------

    @cached_property
    def replicas(self) -> Ids:
        return self.step.replicas if self.step.is_new else self.step.old_replicas

    def world(self, at: int) -> Beat | _World:
        """The brokers before the beat of this number."""
        return self.beats[at - 1] if at > 0 else self.timeline.start

    @cached_property
    def _offline_dirs(self) -> list[frozenset[int]]:
        """The brokers whose log directory of the partition is offline, before each beat."""
        found = [frozenset((self.step.before or {}).get("offline_dirs") or ())]
        for _, event, *_ in self.beats:
            now = found[-1]
            if event["type"] == "log_dir_failure":
                now |= {event["broker"]}
            elif event["type"] == "controller_failover":
                now = frozenset()
            elif event["type"] in {"broker_failure", "broker_startup"}:
                now = now.difference(event["brokers"])
            found.append(now)
        return found

    def online(self, at: int) -> Ids:
        """The replicas whose broker and log directory are there before the beat of this number."""
        world = self.world(at)
        away = world.shutting_down | self._offline_dirs[at]
        return tuple(r for r in self.replicas if r in world.live and r not in away)

    def after(self, record: Record, at: int, event: ScenarioEvent) -> Record | None:
        """What the event makes of a record; it is the beat of this number, or comes before it."""
        kind = event["type"]
        if kind == "isr_change":
            return self.reported(record, at, tuple(event["isr"]))
        if kind == "preferred_election":
            return self.preferred(record, at)
        if kind == "unclean_election":
            return self.forced(record, at)
        if kind == "reassign":
            return _written(record, self.world(at).failovers)
        return self._by_controller(record, at + 1, event)

    def _by_controller(self, record: Record, then: int, event: ScenarioEvent) -> Record:
        kind = event["type"]
        if kind == "controlled_shutdown":
            return self._moved(record, then, event["broker"])
        if kind == "controller_failover":
            online = self.online(then)
            return self._brought_online(
                self._without(record, then, without(self.replicas, online)), then
            )
        record = self._brought_online(record, then)
        if kind == "broker_failure":
            return self._without(record, then, event["brokers"])
        if kind == "log_dir_failure":
            return self._without(record, then, (event["broker"],))
        return record

    def _without(self, record: Record, then: int, lost: Collection[int]) -> Record:
        """The last member of an ISR is retained, and the record is written all the same."""
        written = self.world(then).failovers
        for r in group_order(lost):
            if record.is_there and r in record.isr:
                leader = NO_LEADER if record.leader == r else record.leader
                rest = without(record.isr, (r,)) or record.isr
                record = _written(record._replace(leader=leader, isr=rest), written)
        return record

    def _brought_online(self, record: Record, then: int, *, is_forced: bool = False) -> Record:
        online = self.online(then)
        written = self.world(then).failovers
        if not record.is_there:
            if not online:
                return record
            return Record(online[0], online, written_after=written)
        if record.leader in online:
            return record
        elected = elections.elect_offline_leader(
            self.replicas,
            record.isr,
            online,
            unclean=is_forced or self.step.interval.is_unclean(self.step.topic),
        )
        return _elected(record, elected, written)

    def _moved(self, record: Record, then: int, broker: int) -> Record:
        """What a controlled shutdown does."""
        world = self.world(then)
        if not record.is_there or len(self.replicas) == 1 or broker not in world.shutting_down:
            return record
        if record.leader != broker:
            return self._without(record, then, (broker,))
        there = without(world.live, self._offline_dirs[then])
        elected = elections.elect_controlled_shutdown_leader(
            self.replicas, record.isr, there, world.shutting_down
        )
        return _elected(record, elected, world.failovers)

    # --- What is about this partition alone ----------------------------------------------------

    def reported(self, record: Record, at: int, isr: Ids) -> Record | None:
        """What a leader says of its ISR; it is there itself, and always a member."""
        world = self.world(at)
        if (
            record.leader not in world.live
            or record.leader in self._offline_dirs[at]
            or record.leader not in isr
            or isr == record.isr
            or not self._eligible(world).issuperset(isr)
        ):
            return None
        return record._replace(
            isr=isr,
            reports=record.reports + 1,
            is_recovering=False,
            written_after=world.failovers,
        )

    def _eligible(self, world: Beat | _World) -> frozenset[int]:
        """From 3.3 on nobody joins an ISR who is about to leave (KIP-841)."""
        release = self.step.interval.old.snapshot["release"]
        is_checked = release is not None and releases.level(release) >= releases.RELEASE_3_3
        return world.live - world.shutting_down if is_checked else world.live

    def preferred(self, record: Record, at: int) -> Record | None:
        if not record.is_there or record.leader == self.replicas[0]:
            return None
        elected = elections.elect_preferred_leader(self.replicas, record.isr, self.online(at))
        return None if elected is None else _elected(record, elected, self.world(at).failovers)

    def forced(self, record: Record, at: int) -> Record | None:
        """An unclean election that was asked for."""
        if not record.is_there or record.leader in self.world(at).live:
            return None
        found = self._brought_online(record, at, is_forced=True)
        return None if found.leader in {NO_LEADER, *record.isr} else found


def _written(record: Record, failovers: int) -> Record:
    return record._replace(elections=record.elections + 1, written_after=failovers)


def _elected(record: Record, elected: Elected | None, failovers: int) -> Record:
    if elected is None:
        return record
    return _written(
        record._replace(
            leader=elected.leader,
            isr=elected.isr,
            is_recovering=record.is_recovering or not elected.clean,
        ),
        failovers,
    )
