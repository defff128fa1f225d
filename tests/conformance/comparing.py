"""Holds a replay's tables against Kafka's, and makes a case that differs as small as it gets."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from clusters import rows_of
from column_replay import cluster_of, replayed
from kafka_answers import Row, Tables, comparable, named, per_receiver
from understudy.controller.columnar import feed
from understudy.controller.zk import interpreter

Document = dict[str, Any]

_SHOWN: Final = 4


class Difference(NamedTuple):
    """What one table has on one side only."""

    table: str
    kafka: list[Any]
    ours: list[Any]

    def __str__(self) -> str:
        lines = [f"  {self.table}"]
        for side, rows in (("Kafka", self.kafka), ("replay", self.ours)):
            lines += [f"    only {side}: {_shown(row)}" for row in rows[:_SHOWN]]
            if len(rows) > _SHOWN:
                lines.append(f"    only {side}: … and {len(rows) - _SHOWN} more")
        return "\n".join(lines)


def interpreted(case: Document) -> dict[str, list[Row]]:
    """The tables of the pure interpreter, with the product's own parser in front."""
    tables = interpreter.replay(rows_of(case["snapshot"]), case["scenario"]["events"])
    return as_answer(tables)


def in_columns(case: Document) -> dict[str, list[Row]]:
    """The tables of the columnar form, which hands what it does not take to the interpreter."""
    rows, events = rows_of(case["snapshot"]), case["scenario"]["events"]
    if not rows.partitions or any(event["type"] not in feed.KINDS for event in events):
        return interpreted(case)
    return as_answer(replayed(cluster_of(rows), events))


def as_answer(tables: Mapping[str, Sequence[tuple[Any, ...]]]) -> dict[str, list[Row]]:
    return per_receiver({name: named(name, rows) for name, rows in tables.items()})


def differences(answer: Document, tables: Tables) -> list[Difference]:
    """Nothing when the replay did what Kafka did; 2.8 knows no recovery state."""
    with_recovery = not answer["jar"].endswith(":2.8.2")
    kafka = comparable(answer, with_recovery=with_recovery)
    ours = comparable(tables, with_recovery=with_recovery)
    return [
        one_sided(table, kafka[table], ours[table])
        for table in kafka
        if kafka[table] != ours[table]
    ]


def one_sided(table: str, kafka: Any, ours: Any) -> Difference:  # noqa: ANN401 - both forms
    """What of a table is on one side only: multisets, or sequences by key."""
    if isinstance(kafka, Counter):
        return Difference(table, list((kafka - ours).elements()), list((ours - kafka).elements()))
    keys = sorted(kafka.keys() | ours.keys(), key=str)
    changed = [key for key in keys if kafka.get(key) != ours.get(key)]
    return Difference(
        table,
        [write for key in changed for write in kafka.get(key, [])],
        [write for key in changed for write in ours.get(key, [])],
    )


def _shown(row: tuple[tuple[str, Any], ...]) -> str:
    return ", ".join(f"{name} {value}" for name, value in row)


# --- Shrinking ---------------------------------------------------------------------------------


def shrunk(case: Document, differ: Callable[[Sequence[Document]], list[bool]]) -> Document:
    """The smallest case found that still differs, dropping one thing at a time.

    *differ* takes all candidates of a round at once, since asking has a price of its own.
    """
    while True:
        candidates = list(_smaller(case))
        for candidate, still in zip(candidates, differ(candidates), strict=True):
            if still:
                case = candidate
                break
        else:
            return case


def _smaller(case: Document) -> Iterator[Document]:
    """Every case with one thing less, the large things first."""
    events = case["scenario"]["events"]
    if len(events) > 1:
        yield from _without_each(case, ("scenario", "events"))
    yield from _without_each(case, ("snapshot", "topics"))
    yield from _without_each(case, ("snapshot", "brokers"))
    for place, topic in enumerate(case["snapshot"]["topics"]):
        if len(topic["partitions"]) > 1:
            yield from _without_each(case, ("snapshot", "topics", place, "partitions"))
        yield from _without_keys(case, ("snapshot", "topics", place), {"name", "partitions"})
        for number in range(len(topic["partitions"])):
            where = ("snapshot", "topics", place, "partitions", number)
            yield from _without_keys(case, where, {"partition", "replicas"}, together=_MOVES)
    for place in range(len(case["snapshot"]["brokers"])):
        yield from _without_keys(case, ("snapshot", "brokers", place), {"id", "epoch"})
    yield from _without_keys(case, ("snapshot",), _NEEDED)
    for place, event in enumerate(events):
        for key, value in event.items():
            if isinstance(value, list | dict) and len(value) > 1 and "epochs" not in event:
                yield from _without_each(case, ("scenario", "events", place, key))


_NEEDED: Final = {"cluster", "snapshot_id", "mode", "release", "controller", "brokers", "topics"}
_MOVES: Final = frozenset(("adding", "removing"))


def _without_each(case: Document, where: Sequence[Any]) -> Iterator[Document]:
    found = _at(case, where)
    for key in list(found) if isinstance(found, dict) else range(len(found)):
        smaller = copy.deepcopy(case)
        del _at(smaller, where)[key]
        yield smaller


def _without_keys(
    case: Document, where: Sequence[Any], kept: set[str], together: frozenset[str] = frozenset()
) -> Iterator[Document]:
    for key in [key for key in _at(case, where) if key not in kept]:
        smaller = copy.deepcopy(case)
        for each in together if key in together else {key}:
            _at(smaller, where).pop(each, None)
        yield smaller


def _at(document: Any, where: Sequence[Any]) -> Any:  # noqa: ANN401 - anywhere in a document
    for key in where:
        document = document[key]
    return document
