"""What the derivation of events needs of a history, laid out interval by interval.

Whole snapshots pass through one window that puts each partition beside the same one a snapshot
earlier; what neither changed nor could have been expected to drops out there. The rest comes to
Python, sorted by interval: a row for each of the two snapshots, then the topics and partitions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import reduce
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from understudy.controller.profiles import DECISIVE_SETTINGS
from understudy.controller.words import NO_LEADER
from understudy.names import SNAPSHOT_KEY, TOPIC_KEY
from understudy.questions.history.interval import (
    Burst,
    Change,
    Interval,
    Row,
    Side,
    bursts_of,
)
from understudy.questions.history.steps import STEP_KEY, Listed, added, listed, numbered, steps
from understudy.snapshot import Snapshots
from understudy.sql import NO_IDS, null, struct, text

if TYPE_CHECKING:
    import pyarrow as pa

BROKER: Final = (
    *("broker_id", "alive", "shutting_down", "fenced", "broker_epoch", "rack"),
    *("endpoints", "log_dirs"),
)
SETTING: Final = ("scope", "name", "key", "value")
SNAPSHOT: Final = (
    *("snapshot_id", "mode", "release", "metadata_version", "elr_enabled"),
    *("controller_id", "controller_epoch"),
)
_DECISIVE: Final = f"key IN ({', '.join(map(text, DECISIVE_SETTINGS))})"
_LISTS: Final = ("brokers", "settings", "queued_topics", "followed")
_BURST_KEY: Final = ("cluster", "burst")
MAY_BE_UNKNOWN: Final = ("leader_epoch", "partition_epoch")


def feed(snapshots: Snapshots, history: Sequence[Listed] | None = None) -> DataFrame:
    """Rows for :func:`bursts`: those of one burst in one partition, one interval after the other.

    *history* is the list of the snapshots, where the caller knows it better than these tell.
    """
    spark = snapshots.snapshots.sparkSession
    numbers = numbered(spark, listed(snapshots.snapshots) if history is None else history)
    settled = with_unknown(snapshots)
    known = _known(settled, numbers)
    topics = steps(_sized(settled), ["topic"], numbers).where("NOT (before <=> after)")
    kinds = {
        "side": _sides(known),
        "topic": topics.selectExpr(*STEP_KEY, _whole("topic")),
        "part": _partitions(settled, topics, known, numbers),
    }
    nothing = {name: null(df.schema["part"].dataType.simpleString()) for name, df in kinds.items()}
    rows = (
        df.selectExpr(*STEP_KEY, *((nothing | {name: "part"})[each] for each in kinds))
        for name, df in kinds.items()
    )
    burst = F.broadcast(numbers.select(*STEP_KEY, "burst"))
    return (
        reduce(DataFrame.unionAll, rows)
        .toDF(*STEP_KEY, *kinds)
        .join(burst, list(STEP_KEY))
        .repartition(*_BURST_KEY)
        .sortWithinPartitions(*STEP_KEY)
    )


def _whole(*key: str) -> str:
    fields = {name: name for name in (*key, "before", "after")}
    return f"{struct(**fields)} AS part"


def with_unknown(snapshots: Snapshots) -> Snapshots:
    """The same with defaults for what is unknown, and its names beside each partition."""
    unknown = ", ".join(
        f"IF(has_state AND {name} IS NULL, {text(name)}, NULL)" for name in MAY_BE_UNKNOWN
    )
    noted = added(snapshots.partitions, unknown=f"array_compact(array({unknown}))")
    return replace(snapshots, partitions=noted).with_defaults()


def _sized(settled: Snapshots) -> DataFrame:
    """The topics with the number of their partitions: one that grew has changed."""
    sizes = settled.partitions.groupBy(*TOPIC_KEY).agg(F.count(F.lit(1)).alias("partitions"))
    return settled.topics.join(sizes, list(TOPIC_KEY), "left")


def _partitions(
    settled: Snapshots, topics: DataFrame, known: DataFrame, numbers: DataFrame
) -> DataFrame:
    """The partitions that changed, and those a controller might have changed.

    What no event of the interval is about, what is led by a broker that nothing happened to and in
    sync with such brokers only, stays as it is under any rules.
    """
    changed_topics = topics.select(*STEP_KEY, "topic", F.lit(True).alias("is_of_changed"))
    # The first partition of a topic bounds its min ISR, which decides about eligible replicas.
    in_question = f"{may_change('before.')} OR is_of_changed OR (elr_enabled AND partition = 0)"
    return (
        steps(settled.partitions, ["topic", "partition"], numbers)
        .join(F.broadcast(known.select(*STEP_KEY, "elr_enabled", "steady")), list(STEP_KEY))
        .join(F.broadcast(changed_topics), [*STEP_KEY, "topic"], "left")
        .where(f"NOT (before <=> after) OR {in_question}")
        .selectExpr(*STEP_KEY, _whole("topic", "partition"))
    )


def followed_brokers(partitions: DataFrame) -> DataFrame:
    """Per snapshot the brokers that are in sync with somebody else about some partition."""
    followed = partitions.where(f"size(isr) > 1 AND leader <> {NO_LEADER}")
    return followed.selectExpr(*SNAPSHOT_KEY, "explode(isr) AS broker_id").distinct()


def may_change(row: str) -> str:
    """Whether a controller might have changed a partition that was this *row*."""
    pending = " + ".join(f"coalesce(size({row}{name}), 0)" for name in ("adding", "removing"))
    return f"""({row}has_state IS NOT TRUE
        OR NOT array_contains(steady, {row}leader)
        OR size(array_except({row}isr, steady)) > 0
        OR {pending} > 0
        OR coalesce(array_contains({row}offline_dirs, {row}leader), false))"""


def _known(settled: Snapshots, numbers: DataFrame) -> DataFrame:
    """One row per snapshot: what it says of the whole cluster, in lists as long as its brokers.

    ``steady`` are the brokers that are as they were a snapshot earlier, and alive.
    """
    broker = struct(**{name: name for name in BROKER})
    setting = struct(**{name: name for name in SETTING})
    found = {
        "brokers": settled.brokers.selectExpr(*SNAPSHOT_KEY, f"{broker} AS found"),
        "settings": settled.configs.where(_DECISIVE).selectExpr(
            *SNAPSHOT_KEY, f"{setting} AS found"
        ),
        "queued_topics": settled.topics.where("queued_for_deletion").selectExpr(
            *SNAPSHOT_KEY, "topic AS found"
        ),
        "followed": followed_brokers(settled.partitions).selectExpr(
            *SNAPSHOT_KEY, "broker_id AS found"
        ),
    }
    nothing = {name: null(df.schema["found"].dataType.simpleString()) for name, df in found.items()}
    tagged = (
        df.selectExpr(*SNAPSHOT_KEY, *((nothing | {name: "found"})[each] for each in found))
        for name, df in found.items()
    )
    # One shuffle for all of the lists, which is what they are laid side by side for.
    lists = (
        reduce(DataFrame.unionAll, tagged)
        .toDF(*SNAPSHOT_KEY, *found)
        .groupBy(*SNAPSHOT_KEY)
        .agg(*(F.expr(f"array_sort(collect_list({name})) AS {name}") for name in found))
    )
    rules = settled.snapshots.select(
        *SNAPSHOT_KEY, "mode", "release", "metadata_version", "elr_enabled"
    )
    known = rules.join(F.broadcast(numbers), list(SNAPSHOT_KEY)).join(
        lists, list(SNAPSHOT_KEY), "left"
    )
    # Compared by their hashes: there may be a thousand brokers, each with lists of its own.
    seen = "transform(brokers, b -> xxhash64(b))"
    earlier = f"lag({seen}) OVER (PARTITION BY cluster ORDER BY number)"
    is_steady = "b.alive AND NOT b.shutting_down AND array_contains(earlier, xxhash64(b))"
    return added(
        added(known, earlier=earlier),
        steady=f"coalesce(filter(brokers, b -> {is_steady}).broker_id, {NO_IDS})",
    )


def _sides(known: DataFrame) -> DataFrame:
    """Each snapshot as the end of one interval and the beginning of the next."""
    snapshot = struct(**{name: name for name in SNAPSHOT})
    side = struct(
        is_new="at = number",
        snapshot=snapshot,
        **{name: f"coalesce({name}, array())" for name in _LISTS},
    )
    return (
        added(known, at="explode(array(number, number + 1))")
        .where("at BETWEEN 2 AND last")
        .selectExpr("cluster", "at AS number", f"{side} AS part")
    )


# --- On executors ------------------------------------------------------------------------------


def bursts(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, Burst]]:
    """The bursts in rows of :func:`feed`, each with the name of its cluster."""
    rows = (row for batch in batches for row in batch.to_pylist())
    for (cluster, _), found in groupby(rows, itemgetter(*_BURST_KEY)):
        steps = [_interval(each) for _, each in groupby(found, itemgetter("number"))]
        for burst in bursts_of(steps):
            yield cluster, burst


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
