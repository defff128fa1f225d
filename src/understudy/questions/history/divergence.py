"""Whether a recorded history follows from its events, and what each change in it came from.

A *change* is a difference between one snapshot and the next; its reason is the event that made it.
A *divergence* is a difference between the next snapshot and the replay of this one with the derived
events; its reason says why the two may differ, or that nothing does: ``unexplained``.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from typing import Any, Final, NamedTuple

from understudy.controller.kraft.words import REMOVE_TOPIC_RECORD
from understudy.controller.profiles import PROFILES, Profile
from understudy.controller.records import TopicPartition
from understudy.controller.snapshot_rows import SnapshotRows
from understudy.controller.words import DELETE_TOPIC_WRITE, NO_LEADER
from understudy.names import SCENARIO_KEY
from understudy.questions.history.facts import Event
from understudy.questions.history.interval import Burst, Interval, Row
from understudy.schemas import REPLAY_TABLES

SCENARIO: Final = "history"
"""The name of the scenario that the derived events are."""

FIELDS: Final = ("replicas", "leader", "leader_epoch", "isr", "partition_epoch")
_EPOCHS: Final = ("leader_epoch", "partition_epoch")
_DECIDED: Final = ("replicas", "leader", "isr")

UNEXPLAINED: Final = "unexplained"
UNCLEAN: Final = "unclean_election"
DELETING: Final = "deletion"
PENDING: Final = "pending"
LATE: Final = "late"
UNSEEN: Final = "unseen"
NOT_REPLAYED: Final = "not_replayed"

Values = Mapping[str, Any]
_GONE: Final[Values] = dict.fromkeys(FIELDS)


class Change(NamedTuple):
    """A row of ``changes``, without the keys of the snapshot."""

    topic: str
    partition: int
    field: str
    before: str | None
    recorded: str | None
    reason: str
    events: list[int]


class Divergence(NamedTuple):
    """A row of ``divergences``, without the keys of the snapshot."""

    topic: str
    partition: int
    field: str
    predicted: str | None
    recorded: str | None
    reason: str


@dataclass(frozen=True)
class Comparison:
    """What one snapshot tells beside the one before it."""

    changes: list[Change]
    divergences: list[Divergence] = dataclass_field(default_factory=list)
    decisions: list[dict[str, Any]] = dataclass_field(default_factory=list)


def compare(burst: Burst, events: Sequence[Event]) -> list[Comparison]:
    """Replay the first snapshot with *events* and hold the later ones against it, each in turn.

    The last one is held against what became of it; those on the way against what the records were
    while it came about.
    """
    profile = _profile_of(burst.whole.old.snapshot)
    if profile is None:
        return [
            Comparison(
                [s.change(f, NOT_REPLAYED, []) for s in _recorded(step) for f in s.differing]
            )
            for step in burst.steps
        ]
    replay = _Replay(profile, burst.whole, events)
    on_the_way = [_passed(replay, step) for step in burst.steps[:-1]]
    compared = [*on_the_way, _arrived(replay, burst)]
    return _with_decisions(replay, compared)


def _arrived(replay: _Replay, burst: Burst) -> Comparison:
    interval = burst.whole
    changes, divergences = [], []
    wrong: dict[tuple[TopicPartition, str], str] = {}
    for seen in _recorded(interval):
        predicted = replay.predicted.get(seen.key, seen.was)
        for field in seen.known:
            if predicted[field] != seen.now[field]:
                reason = _why_not(interval, seen, field, predicted)
                wrong[seen.key, field] = reason
                values = _text(predicted[field]), _text(seen.now[field])
                divergences.append(Divergence(*seen.key, field, *values, reason))
    for seen in _recorded(burst.steps[-1]):
        for field in seen.differing:
            diverged = wrong.get((seen.key, field))
            numbers = [] if diverged else replay.events_of(seen, field)
            changes.append(
                seen.change(field, diverged or replay.reason(seen.key, numbers), numbers)
            )
    return Comparison(changes, divergences)


def _passed(replay: _Replay, step: Interval) -> Comparison:
    """What changed on the way has the event for a reason that writes this very record."""
    changes, divergences = [], []
    for seen in _recorded(step):
        predicted = replay.on_the_way(seen)
        for field in seen.differing:
            if predicted is not None and predicted[field] != seen.now[field]:
                reason = _why_not(step, seen, field, predicted)
                values = _text(predicted[field]), _text(seen.now[field])
                divergences.append(Divergence(*seen.key, field, *values, reason))
                changes.append(seen.change(field, reason, []))
            else:
                numbers = replay.events_of(seen, field)
                changes.append(seen.change(field, replay.reason(seen.key, numbers), numbers))
    return Comparison(changes, divergences)


def _with_decisions(replay: _Replay, compared: Sequence[Comparison]) -> list[Comparison]:
    """Each election with the snapshot that first shows what came of it, else with the last."""
    shown: dict[tuple[TopicPartition, int], int] = {}
    changed: dict[TopicPartition, int] = {}
    for at, each in enumerate(compared):
        for change in each.changes:
            key = change.topic, change.partition
            changed[key] = at
            for number in change.events:
                shown.setdefault((key, number), at)
    for row in replay.decisions:
        key = _key(row)
        if key in changed:
            compared[shown.get((key, row["event"]), changed[key])].decisions.append(row)
    return list(compared)


def _profile_of(snapshot: Row) -> Profile | None:
    mode, release = snapshot["mode"], snapshot["release"]
    fitting = (
        profile
        for profile in PROFILES.values()
        if release is not None and profile.mode == mode and profile.covers(release)
    )
    return next(fitting, None)


# --- What was recorded -------------------------------------------------------------------------


class _Seen(NamedTuple):
    """A partition before and after, and the fields of it that both snapshots know."""

    key: TopicPartition
    was: Values
    now: Values
    known: tuple[str, ...]

    @property
    def is_without_record(self) -> bool:
        """A partition that was created, and that no controller has brought to life yet."""
        return all(side["leader"] is None for side in (self.was, self.now)) and self.now != _GONE

    @property
    def differing(self) -> list[str]:
        return [field for field in self.known if self.was[field] != self.now[field]]

    def change(self, field: str, reason: str, events: list[int]) -> Change:
        return Change(
            *self.key, field, _text(self.was[field]), _text(self.now[field]), reason, events
        )


def _recorded(interval: Interval) -> Iterator[_Seen]:
    for before, after in interval.partitions:
        unknown = {*_unknown(before), *_unknown(after)}
        known = tuple(field for field in FIELDS if field not in unknown)
        yield _Seen(_key(after or before or {}), _values(before), _values(after), known)


def _unknown(row: Row | None) -> Iterable[str]:
    return () if row is None else row.get("unknown") or ()


def _values(row: Row | None) -> Values:
    if row is None:
        return _GONE
    return {name: _listed(row[name]) for name in FIELDS}


def _listed(value: Any) -> Any:  # noqa: ANN401 - a column of any type
    return tuple(value) if isinstance(value, list) else value


def _text(value: Any) -> str | None:  # noqa: ANN401
    return None if value is None else str(list(value) if isinstance(value, tuple) else value)


# --- What the replay says ----------------------------------------------------------------------


class _Replay:
    """The earlier snapshot, replayed with the derived events."""

    def __init__(self, profile: Profile, interval: Interval, events: Sequence[Event]) -> None:
        self._profile = profile
        self._events = [json.loads(event.event) for event in events]
        self._before = {
            (row["topic"], row["partition"]): row
            for row, _ in interval.partitions
            if row is not None
        }
        tables = profile.replay(_snapshot_rows(interval, self._before), self._events)
        self.predicted: dict[TopicPartition, Values] = {
            _key(row): _GONE if row["replicas"] is None else _values(row)
            for row in _named(tables, "partition_states")
        }
        self.decisions = [_plain_decision(row) for row in _named(tables, "decisions")]
        self._unclean = {
            (*_key(row), row["event"]) for row in self.decisions if row["clean"] is False
        }
        self._made_by: defaultdict[tuple[TopicPartition, str], list[int]] = defaultdict(list)
        self._records: defaultdict[TopicPartition, dict[int | None, list[tuple[int, Values]]]]
        self._records = defaultdict(dict)
        self._attributed(_named(tables, "metadata_writes"))
        self._about = self._subjects()

    def _attributed(self, writes: Iterable[dict[str, Any]]) -> None:
        """Note of each write which event made it, and what it made of the partition."""
        now = {key: dict(_values(row)) for key, row in self._before.items()}
        for write in writes:
            for key, values in _written(write, now):
                held = now.setdefault(key, dict(_GONE))
                for field, value in values.items():
                    if held[field] != value:
                        held[field] = value
                        numbers = self._made_by[key, field]
                        if write["event"] not in numbers[-1:]:
                            numbers.append(write["event"])
                self._records[key].setdefault(held["partition_epoch"], []).append(
                    (write["event"], dict(held))
                )

    def on_the_way(self, seen: _Seen) -> Values | None:
        """What the partition is after as many writes of its record, if the replay tells that."""
        same = self._records.get(seen.key, {}).get(seen.now["partition_epoch"])
        return None if same is None else same[-1][1]

    def events_of(self, seen: _Seen, field: str) -> list[int]:
        """The events that changed a field: by what was written, else by what they are about.

        (Clients write assignments, and leaders of old releases write ISRs: no controller does.)
        """
        key = seen.key
        about = {*self._about.get(key[0], ()), *self._about.get(key, ())}
        made_by = self._made_by.get((key, field), ())
        on_record = self._records.get(key, {})
        was, now = seen.was["partition_epoch"], seen.now["partition_epoch"]
        if was is not None and now is not None and field != "replicas":
            between = {e for n in range(was + 1, now + 1) for e, _ in on_record.get(n, ())}
            made_by = [number for number in made_by if number in between]
        return list(made_by) or sorted(about)

    def _subjects(self) -> Mapping[str | TopicPartition, list[int]]:
        """The numbers of the events that name a topic or a partition."""
        about: defaultdict[str | TopicPartition, list[int]] = defaultdict(list)
        for number, event in enumerate(self._events, start=1):
            scope = self._profile.scope_of([event])
            for topic in scope.topics:
                about[topic].append(number)
            for key in scope.partitions:
                about[key].append(number)
        return about

    def reason(self, key: TopicPartition, numbers: Sequence[int]) -> str:
        """The type of the last of these events; an election out of sync has its own word."""
        if not numbers:
            return UNEXPLAINED
        if (*key, numbers[-1]) in self._unclean:
            return UNCLEAN
        return str(self._events[numbers[-1] - 1]["type"])


def _snapshot_rows(interval: Interval, before: Mapping[TopicPartition, Row]) -> SnapshotRows:
    old = interval.old
    queued = old.queued_topics
    return SnapshotRows(
        snapshot={**old.snapshot, "controller_epoch": old.snapshot["controller_epoch"] or 0},
        brokers=list(old.brokers.values()),
        topics=[
            {"topic": topic, "topic_id": None, "queued_for_deletion": topic in queued}
            for topic in sorted({topic for topic, _ in before} | queued)
        ],
        partitions=list(before.values()),
        configs=old.settings,
    )


def _named(tables: Mapping[str, list[tuple[Any, ...]]], name: str) -> list[dict[str, Any]]:
    columns = REPLAY_TABLES[name].names[len(SCENARIO_KEY) :]
    return [dict(zip(columns, row, strict=True)) for row in tables[name]]


def _key(row: Row) -> TopicPartition:
    return row["topic"], row["partition"]


def _plain_decision(row: dict[str, Any]) -> dict[str, Any]:
    candidates = [{"replica": r, "verdict": verdict} for r, verdict in row["candidates"] or ()]
    return {**row, "candidates": candidates}


def _written(
    write: Row, known: Iterable[TopicPartition]
) -> list[tuple[TopicPartition, dict[str, Any]]]:
    """What a durable write says of partitions."""
    if write["topic"] is None:
        return []
    if write["partition"] is None:
        is_removal = write["kind"] == DELETE_TOPIC_WRITE or write["record"] == REMOVE_TOPIC_RECORD
        gone = [key for key in known if key[0] == write["topic"]] if is_removal else []
        return [(key, dict(_GONE)) for key in gone]
    values = {field: write[field] for field in FIELDS if write[field] is not None}
    return [(_key(write), values)]


# --- Why the two may differ --------------------------------------------------------------------


def _why_not(interval: Interval, seen: _Seen, field: str, predicted: Values) -> str:
    """Why a field is not what was predicted, in one word."""
    topic, _ = seen.key
    if topic in interval.old.queued_topics | interval.new.queued_topics:
        # How far a deletion has come is known to the memory of the controller alone.
        return DELETING
    if seen.was == seen.now or seen.is_without_record:
        # The snapshot was taken before the controller came to it.
        return PENDING
    if _was_in_trouble(interval, seen.was):
        # Something an earlier snapshot had shown already.
        return LATE
    has_more = field in _EPOCHS and (seen.now[field] or 0) > (predicted[field] or 0)
    if has_more and all(seen.now[name] == predicted[name] for name in _DECIDED):
        # More happened than two snapshots can show, and came to the same.
        return UNSEEN
    return UNEXPLAINED


def _was_in_trouble(interval: Interval, was: Values) -> bool:
    """Whether the leader or a member of the ISR was not alive in the earlier snapshot either."""
    members = {*(was["isr"] or ()), was["leader"]} - {None, NO_LEADER}
    return any(b not in interval.brokers or not interval.brokers[b].was_alive for b in members)
