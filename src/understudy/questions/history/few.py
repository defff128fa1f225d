"""What :mod:`~understudy.questions.history.feed` gives, put together in this process.

For a few rows Spark would be busy planning for longer than all of this takes.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import groupby, pairwise
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any, TypeVar

from pyspark.sql import DataFrame

from understudy.frames import collected
from understudy.names import SNAPSHOT_KEY
from understudy.questions.history.feed import (
    BROKER,
    DECISIVE,
    SETTING,
    SNAPSHOT,
    followed_brokers,
    with_unknown,
)
from understudy.questions.history.interval import Burst, Change, Interval, Row, Side, bursts_of
from understudy.questions.history.steps import Listed
from understudy.snapshot import Snapshots

if TYPE_CHECKING:
    import pyarrow as pa

K = TypeVar("K", str, tuple[str, int])
_Key = tuple[str, str]
_Rows = Mapping[_Key, Sequence[Row]]


def bursts(
    snapshots: Snapshots, history: Sequence[Listed], followed: DataFrame | None = None
) -> Iterator[tuple[str, Burst]]:
    """The bursts of a *history*, each with the name of its cluster."""
    spark = snapshots.snapshots.sparkSession
    settled = with_unknown(snapshots)
    frames = {
        "snapshots": settled.snapshots,
        "brokers": settled.brokers,
        "settings": settled.configs.where(DECISIVE),
        "topics": settled.topics,
        "partitions": settled.partitions,
        "followed": followed_brokers(snapshots.partitions, followed),
    }
    tables = {name: _by_snapshot(table) for name, table in collected(spark, frames).items()}
    for cluster, listed in groupby(history, attrgetter("cluster")):
        sides = [_Moment(each, tables) for each in listed]
        steps = [(new.listed.burst, _interval(old, new)) for old, new in pairwise(sides)]
        for _, found in groupby(steps, itemgetter(0)):
            for burst in bursts_of([interval for _, interval in found]):
                yield cluster, burst


def _by_snapshot(table: pa.Table) -> _Rows:
    rows: defaultdict[_Key, list[Row]] = defaultdict(list)
    for row in table.to_pylist():
        cluster, snapshot_id = (row.pop(name) for name in SNAPSHOT_KEY)
        rows[cluster, snapshot_id].append(row)
    return rows


class _Moment:
    """One snapshot of a history."""

    def __init__(self, listed: Listed, tables: Mapping[str, _Rows]) -> None:
        key = listed.cluster, listed.snapshot_id
        rows = {name: table.get(key, ()) for name, table in tables.items()}
        (snapshot,) = rows["snapshots"]
        said = {**snapshot, **listed._asdict()}
        sizes = Counter(row["topic"] for row in rows["partitions"])
        self.listed = listed
        self.brokers = {row["broker_id"]: _named(row, BROKER) for row in rows["brokers"]}
        self.topics = {
            row["topic"]: {**row, "partitions": sizes.get(row["topic"])} for row in rows["topics"]
        }
        self.partitions = {(row["topic"], row["partition"]): row for row in rows["partitions"]}
        self.side = Side(
            snapshot=_named(said, SNAPSHOT),
            brokers=self.brokers,
            settings=[_named(row, SETTING) for row in rows["settings"]],
            queued_topics=frozenset(
                row["topic"] for row in rows["topics"] if row["queued_for_deletion"]
            ),
            followed=frozenset(row["broker_id"] for row in rows["followed"]),
        )
        self.is_elr_enabled = bool(snapshot["elr_enabled"])


def _named(row: Row, names: Sequence[str]) -> dict[str, Any]:
    return {name: row[name] for name in names}


def _interval(old: _Moment, new: _Moment) -> Interval:
    topics = {name: change for name, change in _pairs(old.topics, new.topics) if _differs(change)}
    steady = {
        broker
        for broker, row in new.brokers.items()
        if row["alive"] and not row["shutting_down"] and row == old.brokers.get(broker)
    }
    partitions = [
        change
        for (topic, number), change in _pairs(old.partitions, new.partitions)
        if _differs(change)
        or topic in topics
        or (new.is_elr_enabled and number == 0)
        or _may_change(change.before, steady)
    ]
    return Interval(old.side, new.side, topics, partitions)


def _pairs(old: Mapping[K, Row], new: Mapping[K, Row]) -> Iterator[tuple[K, Change]]:
    for key in sorted(old.keys() | new.keys()):
        yield key, Change(old.get(key), new.get(key))


def _differs(change: Change) -> bool:
    return change.before != change.after


def _may_change(row: Row | None, steady: AbstractSet[int]) -> bool:
    """As :func:`~understudy.questions.history.feed.may_change` says it."""
    return (
        row is None
        or not row["has_state"]
        or row["leader"] not in steady
        or not steady >= frozenset(row["isr"] or ())
        or bool(row["adding"] or row["removing"])
        or row["leader"] in row["offline_dirs"]
    )
