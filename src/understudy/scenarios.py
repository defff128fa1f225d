"""Scenario documents: what happens to a controller, event by event, validated and canonical.

A scenario names a list of events and, if it wants, one cluster or snapshot; without a name it is
about every snapshot given. Every event is checked against the table of events below, and travels
on as JSON text with its fields sorted by name. Inside a field the order written stays, because
Kafka takes reassignments one after the other in that order.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any, Final

from pyspark.sql import SparkSession

from understudy.errors import BadInputError
from understudy.sources import document as D
from understudy.sources import documents
from understudy.sources.local_paths import NO_FILE_THERE

Read = Callable[[D.Json, D.Where, D.Problems], object]

_SCENARIO_KEYS: Final = frozenset(("scenario", "cluster", "snapshot_id", "events"))
_OWN_KEYS: Final = ("scenario", "events")
_PROBLEMS_NAMED: Final = 20
_PERCENT: Final = 100
UNKNOWN_BROKER_EPOCH: Final = -1  # an AlterPartition that does not say


@dataclass(frozen=True)
class Scenario:
    """A name, the snapshots it is about (None = all) and its events as canonical JSON texts."""

    scenario: str
    cluster: str | None
    snapshot_id: str | None
    events: tuple[str, ...]


FAILOVER: Final = Scenario("failover", None, None, ('{"type": "controller_failover"}',))


# --- The fields of events ----------------------------------------------------------------------


@dataclass(frozen=True)
class _Fields:
    required: dict[str, Read]
    optional: dict[str, Read]
    one_of: tuple[str, ...] = ()
    """Of these optional fields an event needs at least one."""


def _fields(
    required: dict[str, Read] | None = None,
    one_of: tuple[str, ...] = (),
    **optional: Read,
) -> _Fields:
    return _Fields(required or {}, optional, one_of)


_integer: Final[Read] = D.integer
_epoch: Final[Read] = partial(D.integer, high=D.LONG_MAX)
_broker_ids: Final[Read] = partial(D.ids, distinct=True)
_replicas: Final[Read] = partial(D.ids, distinct=False, low=D.INT_MIN)
"""Assignments and ISRs asked for: Kafka itself answers for those that make no sense."""


def _is_number(text: str, high: int) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= len(str(high)) and int(text) <= high


def _number_key(value: D.Json, where: D.Where, to: D.Problems) -> None:
    if not _is_number(value, D.INT_MAX):
        to.add(where, f"{D.shown(value)} is not a number from 0 to {D.INT_MAX}")


def partition_name(value: D.Json, where: D.Where, to: D.Problems) -> None:
    """``topic-0``; the last dash splits."""
    written = D.text(value, where, to)
    if written is None:
        return
    topic, dash, number = written.rpartition("-")
    if not dash or not _is_number(number, D.INT_MAX):
        to.add(where, f"{D.shown(written)} is not a partition such as orders-0")
    else:
        D.topic_name(topic, where, to)


def _list_of(read: Read, value: D.Json, where: D.Where, to: D.Problems) -> None:
    if type(value) is not list:
        to.add(where, f"expected a list, found {D.shown(value)}")
        return
    for place, each in enumerate(value):
        read(each, (*where, place), to)


def _map_of(
    read_key: Read, read_value: Read, value: D.Json, where: D.Where, to: D.Problems
) -> None:
    if not D.is_object(value, where, to):
        return
    D.check_repeated(value, where, to)
    for key, each in value.items():
        read_key(key, (*where, key), to)
        read_value(each, (*where, key), to)


def _epoch_or_default(value: D.Json, where: D.Where, to: D.Problems) -> None:
    if value is not None:
        _epoch(value, where, to)


def _partitions_or_all(value: D.Json, where: D.Where, to: D.Problems) -> None:
    if type(value) is not list and value != "all":
        to.add(where, f'expected a list of partitions or "all", found {D.shown(value)}')
    elif type(value) is list:
        _partition_names(value, where, to)


def _percentage(value: D.Json, where: D.Where, to: D.Problems) -> None:
    if D.integer(value, where, to) > _PERCENT:
        to.add(where, f"{D.shown(value)} is more than {_PERCENT} percent")


_partition_names: Final[Read] = partial(_list_of, partition_name)
_topic_names: Final[Read] = partial(_list_of, D.topic_name)
_assignment: Final[Read] = partial(_map_of, _number_key, _replicas)
_epochs_by_id: Final[Read] = partial(_map_of, _number_key, _epoch)
_reported_epochs: Final[Read] = partial(
    _map_of, _number_key, partial(D.integer, low=UNKNOWN_BROKER_EPOCH, high=D.LONG_MAX)
)

_EVENTS: Final[dict[str, _Fields]] = {
    "controller_failover": _fields(controller=_integer, dead=_broker_ids, forget=D.boolean),
    "broker_change": _fields({"live": _epochs_by_id}),
    "broker_failure": _fields({"brokers": _broker_ids}),
    "broker_startup": _fields(
        {"brokers": _broker_ids},
        epochs=partial(_list_of, _epoch_or_default),
        clean=D.boolean,
        fenced=D.boolean,
        log_dirs=partial(_map_of, _number_key, D.texts),
    ),
    "log_dir_failure": _fields(
        {"broker": _integer},
        one_of=("partitions", "dirs"),
        partitions=_partition_names,
        dirs=D.texts,
    ),
    "controlled_shutdown": _fields({"broker": _integer}),
    "topic_change": _fields(
        topics=partial(_map_of, D.topic_name, _assignment),
        removed=_topic_names,
    ),
    "partition_change": _fields({"topic": D.topic_name, "partitions": _assignment}),
    "reassign": _fields(
        {"partitions": partial(_map_of, partition_name, _replicas)},
        allow_replication_factor_change=D.boolean,
    ),
    "cancel_reassignment": _fields({"partitions": _partition_names}),
    "isr_change": _fields(
        {"partition": partition_name, "isr": _replicas},
        sender=_integer,
        leader_epoch=_integer,
        partition_epoch=_integer,
        recovery=_integer,
        broker_epochs=_reported_epochs,
    ),
    "catch_up": _fields({"brokers": _broker_ids}),
    "preferred_election": _fields({"partitions": _partitions_or_all}),
    "unclean_election": _fields({"partitions": _partitions_or_all}),
    "auto_rebalance": _fields(percentage=_percentage),
    "delete_topics": _fields({"topics": _topic_names}),
    "stop_replica_response": _fields(
        {"broker": _integer, "partitions": _partition_names}, error=D.name
    ),
    "unclean_enabled": _fields(topic=D.topic_name),
    "fence": _fields({"brokers": _broker_ids}),
    "unfence": _fields({"brokers": _broker_ids}),
    "unregister": _fields({"brokers": _broker_ids}),
    "assign_dirs": _fields(
        {"broker": _integer, "partitions": partial(_map_of, partition_name, D.text)}
    ),
    "auto_unclean_election": _fields(),
}

EVENT_TYPES: Final = tuple(_EVENTS)


# --- Parsing -----------------------------------------------------------------------------------


def parse(data: bytes, source: str) -> list[Scenario]:
    """The scenarios of a file's bytes: one object, one per line, or a list; plain or gzip."""
    found, problems = _parse(data)
    if problems:
        raise BadInputError(f"{source}: the scenarios are refused", problems)
    return found


def _parse(data: bytes) -> tuple[list[Scenario], list[str]]:
    found: list[Scenario] = []
    problems: list[str] = []
    for line, (value, broken) in D.load(data, _OWN_KEYS):
        to = D.Problems()
        if broken:
            to.add((), broken)
        elif type(value) is list:
            if not value:
                to.add((), "the list of scenarios is empty")
            found += [_scenario(each, (place,), to) for place, each in enumerate(value)]
        else:
            found.append(_scenario(value, (), to))
        problems += [f"line {line}: {problem}" for problem in to.all()]
    return found, problems


def _scenario(value: D.Json, where: D.Where, to: D.Problems) -> Scenario:
    if not D.is_object(value, where, to):
        return FAILOVER
    D.check_keys(value, _SCENARIO_KEYS, where, to)
    missing = [key for key in ("scenario", "events") if key not in value]
    for key in missing:
        to.add(where, f'the key "{key}" is missing')
    label = D.name(value["scenario"], (*where, "scenario"), to) if "scenario" in value else None
    cluster, snapshot_id = (
        None if value.get(key) is None else D.name(value[key], (*where, key), to)
        for key in ("cluster", "snapshot_id")
    )
    events = value.get("events", [])
    if type(events) is not list:
        to.add((*where, "events"), f"expected a list of events, found {D.shown(events)}")
        events = []
    texts = tuple(_event(each, (*where, "events", place), to) for place, each in enumerate(events))
    return Scenario(label or "", cluster, snapshot_id, texts)


def _event(value: D.Json, where: D.Where, to: D.Problems) -> str:
    if not D.is_object(value, where, to):
        return ""
    kind = value.get("type")
    fields = _EVENTS.get(kind) if type(kind) is str else None
    if fields is None:
        problem = f"unknown event type {D.shown(kind)}" if "type" in value else 'no key "type"'
        to.add((*where, "type"), f"{problem}; there are {', '.join(EVENT_TYPES)}")
        return ""
    known = frozenset(("type", *fields.required, *fields.optional))
    D.check_keys(value, known, where, to)
    for key in fields.required:
        if key not in value:
            to.add(where, f'the key "{key}" of {kind} is missing')
    # An optional field that is null says no more than one left out.
    said = {key: each for key, each in value.items() if key in fields.required or each is not None}
    for key, read in (fields.required | fields.optional).items():
        if key in said:
            read(said[key], (*where, key), to)
    if fields.one_of and not any(key in said for key in fields.one_of):
        names = " or ".join(f'"{key}"' for key in fields.one_of)
        to.add(where, f"{kind} needs the key {names}")
    _check_epochs(said, where, to)
    return json.dumps({key: said[key] for key in sorted(said)}, default=D.shown)


def _check_epochs(event: dict[str, Any], where: D.Where, to: D.Problems) -> None:
    brokers, epochs = event.get("brokers"), event.get("epochs")
    if type(brokers) is list and type(epochs) is list and len(brokers) != len(epochs):
        to.add(
            (*where, "epochs"),
            f"expected one for each of {len(brokers)} brokers, found {len(epochs)}",
        )


# --- Reading, and finding the snapshots --------------------------------------------------------


def read(spark: SparkSession, path: str) -> list[Scenario]:
    """The scenarios in a file, directory or glob."""
    files = documents.fetched(spark, path)
    if not files:
        raise BadInputError(f"{path}: {NO_FILE_THERE}")
    found: list[Scenario] = []
    problems: list[str] = []
    for source, content in files:
        if content is None:
            problems.append(f"{source}: larger than {documents.MAX_FILE_BYTES:,} bytes")
            continue
        scenarios, wrong = _parse(content)
        found += scenarios
        problems += [f"{source}, {problem}" for problem in wrong]
    if problems:
        raise BadInputError(f"{path}: the scenarios are refused", problems)
    return found


Key = tuple[str, str]
"""Cluster and snapshot."""


def resolve(scenarios: Sequence[Scenario], snapshots: Iterable[Key]) -> list[tuple[Key, int]]:
    """Each snapshot beside the number of each scenario that is about it.

    Every scenario has a snapshot, and no snapshot has two of one name.
    """
    fitting: dict[tuple[str | None, str | None], list[Key]] = {}
    for cluster, snapshot_id in sorted(snapshots):
        for named in product((cluster, None), (snapshot_id, None)):
            fitting.setdefault(named, []).append((cluster, snapshot_id))
    found = [fitting.get((each.cluster, each.snapshot_id), []) for each in scenarios]
    _check(scenarios, found)
    return [(key, number) for number, keys in enumerate(found) for key in keys]


def _check(scenarios: Sequence[Scenario], found: Sequence[Sequence[Key]]) -> None:
    lost = [each for each, keys in zip(scenarios, found, strict=True) if not keys]
    problems = [f"scenario {each.scenario}: no snapshot is{_about(each)}" for each in lost]
    uses = Counter(
        (*key, each.scenario) for each, keys in zip(scenarios, found, strict=True) for key in keys
    )
    problems += [
        f"scenario {name}: the name is used twice for snapshot {snapshot_id} of cluster {cluster}"
        for (cluster, snapshot_id, name), count in sorted(uses.items())
        if count > 1
    ]
    shown = problems[:_PROBLEMS_NAMED]
    if len(problems) > len(shown):
        shown.append(f"and {len(problems) - len(shown):,} more")
    if shown:
        raise BadInputError("the scenarios do not fit the snapshots", shown)


def _about(scenario: Scenario) -> str:
    named = [
        f"{word} {value}"
        for word, value in (("cluster", scenario.cluster), ("snapshot", scenario.snapshot_id))
        if value is not None
    ]
    return f" of {', '.join(named)}" if named else " given"
