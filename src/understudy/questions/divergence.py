"""Whether a recorded history follows from its events, and what each change in it came from.

A *change* is a difference between one snapshot and the next; its reason is the event that made it.
A *divergence* is a difference between the next snapshot and the replay of this one with the derived
events; its reason says why the two may differ, or that nothing does: ``unexplained``.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from understudy.controller.kraft.words import REMOVE_TOPIC_RECORD
from understudy.controller.profiles import PROFILES, Profile
from understudy.controller.records import TopicPartition
from understudy.controller.snapshot_rows import SnapshotRows
from understudy.controller.words import DELETE_TOPIC_WRITE, NO_LEADER
from understudy.names import SCENARIO_KEY
from understudy.questions.history_facts import Event
from understudy.questions.history_interval import Interval, Row
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


class Comparison(NamedTuple):
    changes: list[Change]
    divergences: list[Divergence]
    decisions: list[dict[str, Any]]


def compare(interval: Interval, events: Sequence[Event]) -> Comparison:
    """Replay the earlier snapshot with *events* and hold the later one against it."""
    profile = _profile_of(interval.old.snapshot)
    if profile is None:
        changes = [
            seen.change(field, NOT_REPLAYED, [])
            for seen in _recorded(interval)
            for field in seen.differing
        ]
        return Comparison(changes, [], [])
    replay = _Replay(profile, interval, events)
    changes, divergences = [], []
    for seen in _recorded(interval):
        predicted = replay.predicted.get(seen.key, seen.was)
        wrong = {
            field: _why_not(interval, seen, field, predicted)
            for field in seen.known
            if predicted[field] != seen.now[field]
        }
        divergences += [
            Divergence(*seen.key, field, _text(predicted[field]), _text(seen.now[field]), reason)
            for field, reason in wrong.items()
        ]
        for field in seen.differing:
            numbers = [] if field in wrong else replay.events_of(seen.key, field)
            reason = wrong.get(field) or replay.reason(seen.key, numbers)
            changes.append(seen.change(field, reason, numbers))
    changed = {(each.topic, each.partition) for each in changes}
    decisions = [row for row in replay.decisions if _key(row) in changed]
    return Comparison(changes, divergences, decisions)


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
        self._made_by = self._attributed(_named(tables, "metadata_writes"))
        self._about = self._subjects()

    def _attributed(
        self, writes: Iterable[dict[str, Any]]
    ) -> Mapping[tuple[TopicPartition, str], list[int]]:
        """The numbers of the events whose writes changed a field of a partition."""
        now = {key: dict(_values(row)) for key, row in self._before.items()}
        made_by: defaultdict[tuple[TopicPartition, str], list[int]] = defaultdict(list)
        for write in writes:
            for key, values in _written(write, now):
                held = now.setdefault(key, dict(_GONE))
                for field, value in values.items():
                    if held[field] != value:
                        held[field] = value
                        numbers = made_by[key, field]
                        if write["event"] not in numbers[-1:]:
                            numbers.append(write["event"])
        return made_by

    def events_of(self, key: TopicPartition, field: str) -> list[int]:
        """The events that changed a field: by what was written, else by what they are about.

        (Clients write assignments, and leaders of old releases write ISRs: no controller does.)
        """
        about = {*self._about.get(key[0], ()), *self._about.get(key, ())}
        return list(self._made_by.get((key, field), ())) or sorted(about)

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
    if seen.was == seen.now:
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
