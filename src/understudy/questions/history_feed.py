"""What the derivation of events needs of a history, laid out interval by interval.

Whole snapshots pass through one window that puts each partition beside the same one a snapshot
earlier; what neither changed nor could have been expected to drops out there. The rest comes to
Python, sorted by interval: a row for each of the two snapshots, then the topics and partitions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from understudy.controller.native.sql import NO_IDS, null, struct, text
from understudy.controller.profiles import DECISIVE_SETTINGS
from understudy.controller.words import NO_LEADER
from understudy.names import SNAPSHOT_KEY
from understudy.questions.history_interval import Change, Interval, Row, Side
from understudy.questions.history_steps import STEP_KEY, added, numbered, steps
from understudy.snapshot import Snapshots

if TYPE_CHECKING:
    import pyarrow as pa

_BROKER: Final = (
    *("broker_id", "alive", "shutting_down", "fenced", "broker_epoch", "rack"),
    *("endpoints", "log_dirs"),
)
_SETTING: Final = ("scope", "name", "key", "value")
_LISTS: Final = ("brokers", "settings", "queued_topics", "followed")
_MAY_BE_UNKNOWN: Final = ("leader_epoch", "partition_epoch")


def feed(snapshots: Snapshots) -> DataFrame:
    """Rows for :func:`intervals`: those of one interval in one partition, one after the other."""
    numbers = numbered(snapshots.snapshots)
    settled = _settled(snapshots)
    topics = steps(settled.topics, ["topic"], numbers).where("NOT (before <=> after)")
    partitions = _partitions(settled, topics, numbers)
    sides = _sides(settled, numbers)
    no_side, no_topic, no_partition = (
        null(frame.schema["part"].dataType.simpleString())
        for frame in (sides, topics_of(topics), partitions)
    )
    return (
        sides.selectExpr(
            *STEP_KEY, "part AS side", f"{no_topic} AS topic", f"{no_partition} AS part"
        )
        .unionAll(topics_of(topics).selectExpr(*STEP_KEY, no_side, "part", no_partition))
        .unionAll(partitions.selectExpr(*STEP_KEY, no_side, no_topic, "part"))
        .repartition(*STEP_KEY)
        .sortWithinPartitions(*STEP_KEY)
    )


def topics_of(topics: DataFrame) -> DataFrame:
    whole = struct(topic="topic", before="before", after="after")
    return topics.selectExpr(*STEP_KEY, f"{whole} AS part")


def _settled(snapshots: Snapshots) -> Snapshots:
    """The same with defaults for what is unknown, and its names beside each partition."""
    unknown = ", ".join(
        f"IF(has_state AND {name} IS NULL, {text(name)}, NULL)" for name in _MAY_BE_UNKNOWN
    )
    noted = added(snapshots.partitions, unknown=f"array_compact(array({unknown}))")
    return replace(snapshots, partitions=noted).with_defaults()


def _partitions(settled: Snapshots, topics: DataFrame, numbers: DataFrame) -> DataFrame:
    """The partitions that changed, and those a controller might have changed.

    What no event of the interval is about, what is led by a broker that nothing happened to and in
    sync with such brokers only, stays as it is under any rules.
    """
    steady = (
        steps(settled.brokers, ["broker_id"], numbers)
        .where("before <=> after AND after.alive AND NOT after.shutting_down")
        .groupBy(*STEP_KEY)
        .agg(F.collect_list("broker_id").alias("steady"))
    )
    changed_topics = topics.select(*STEP_KEY, "topic", F.lit(True).alias("is_of_changed"))
    may_change = """before.has_state IS NOT TRUE
        OR NOT array_contains(steady, before.leader)
        OR size(array_except(before.isr, steady)) > 0
        OR size(before.adding) + size(before.removing) > 0
        OR array_contains(before.offline_dirs, before.leader)
        OR is_of_changed OR (is_kraft AND partition = 0)"""
    whole = struct(topic="topic", partition="partition", before="before", after="after")
    return (
        steps(settled.partitions, ["topic", "partition"], numbers)
        .join(F.broadcast(numbers.select(*STEP_KEY, "is_kraft")), list(STEP_KEY))
        .join(F.broadcast(steady), list(STEP_KEY), "left")
        .join(F.broadcast(changed_topics), [*STEP_KEY, "topic"], "left")
        .withColumn("steady", F.expr(f"coalesce(steady, {NO_IDS})"))
        .where(f"NOT (before <=> after) OR {may_change}")
        .selectExpr(*STEP_KEY, f"{whole} AS part")
    )


def _sides(settled: Snapshots, numbers: DataFrame) -> DataFrame:
    """Each snapshot as the end of one interval and the beginning of the next."""
    broker = struct(**{name: name for name in _BROKER})
    brokers = settled.brokers.groupBy(*SNAPSHOT_KEY).agg(
        F.expr(f"array_sort(collect_list({broker})) AS brokers")
    )
    setting = struct(**{name: name for name in _SETTING})
    settings = (
        settled.configs.where(f"key IN ({', '.join(map(text, DECISIVE_SETTINGS))})")
        .groupBy(*SNAPSHOT_KEY)
        .agg(F.expr(f"array_sort(collect_list({setting})) AS settings"))
    )
    queued = (
        settled.topics.where("queued_for_deletion")
        .groupBy(*SNAPSHOT_KEY)
        .agg(F.expr("collect_list(topic) AS queued_topics"))
    )
    followed = (
        settled.partitions.where(f"size(isr) > 1 AND leader <> {NO_LEADER}")
        .selectExpr(*SNAPSHOT_KEY, "explode(isr) AS broker_id")
        .groupBy(*SNAPSHOT_KEY)
        .agg(F.expr("collect_set(broker_id) AS followed"))
    )
    rules = settled.snapshots.select(
        *SNAPSHOT_KEY, "mode", "release", "metadata_version", "elr_enabled"
    )
    known = numbers.join(rules, list(SNAPSHOT_KEY))
    for lists in (brokers, settings, queued, followed):
        known = known.join(lists, list(SNAPSHOT_KEY), "left")
    snapshot = struct(
        **{
            name: name
            for name in (
                *("snapshot_id", "mode", "release", "metadata_version", "elr_enabled"),
                *("controller_id", "controller_epoch"),
            )
        }
    )
    side = struct(
        is_new="at = number",
        snapshot=snapshot,
        **{name: f"coalesce({name}, array())" for name in _LISTS},
    )
    return (
        known.withColumn("at", F.expr("explode(array(number, number + 1))"))
        .where("at BETWEEN 2 AND last")
        .selectExpr("cluster", f"{side} AS part", "at AS number")
        .select(*STEP_KEY, "part")
    )


# --- On executors ------------------------------------------------------------------------------


def intervals(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, Interval]]:
    """The intervals in rows of :func:`feed`, each with the name of its cluster."""
    rows = (row for batch in batches for row in batch.to_pylist())
    for (cluster, _), found in groupby(rows, itemgetter(*STEP_KEY)):
        yield cluster, _interval(found)


def _interval(rows: Iterable[dict[str, Any]]) -> Interval:
    sides: dict[bool, Side] = {}
    topics: dict[str, Change] = {}
    partitions: list[Change] = []
    for row in rows:
        if row["side"] is not None:
            sides[row["side"]["is_new"]] = _side(row["side"])
        elif row["topic"] is not None:
            topics[row["topic"]["topic"]] = _change(row["topic"], "topic")
        else:
            partitions.append(_change(row["part"], "topic", "partition"))
    return Interval(sides[False], sides[True], topics, partitions)


def _side(row: Row) -> Side:
    return Side(
        snapshot=row["snapshot"],
        brokers={broker["broker_id"]: broker for broker in row["brokers"]},
        settings=row["settings"],
        queued_topics=frozenset(row["queued_topics"]),
        followed=frozenset(row["followed"]),
    )


def _change(row: Row, *key: str) -> Change:
    named = {name: row[name] for name in key}
    before, after = row["before"], row["after"]
    return Change(
        None if before is None else {**named, **before},
        None if after is None else {**named, **after},
    )
