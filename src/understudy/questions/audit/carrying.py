"""What of one more snapshot has to be looked at, where hardly anything happened.

Of a cluster whose brokers and settings are as they were, a partition that is as it was, in sync
with brokers that are all there, is found in the condition it was found in a snapshot earlier. So
what was found then is carried on, and only the partitions *in question* are judged: those that are
not as they were, and those that a rule could find something new about all the same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from understudy import schemas
from understudy.frames import FEW_ROWS, settled, small_frame
from understudy.names import SNAPSHOT_KEY
from understudy.questions.audit.ledger import History, Key, Seen
from understudy.questions.audit.rule import LOOKBACK
from understudy.questions.audit.rule_set import RuleSet
from understudy.questions.history.feed import may_change
from understudy.snapshot import Snapshots
from understudy.sql import struct, text

if TYPE_CHECKING:
    import pyarrow as pa

_SIDES: Final = ("now", "before", "earlier")
_PLACES: Final = T.StructType(
    [
        *(T.StructField(name, schemas.STRING) for name in SNAPSHOT_KEY),
        T.StructField("side", schemas.STRING),
    ]
)
_TOPICS: Final = T.StructType([T.StructField(n, schemas.STRING) for n in ("cluster", "topic")])
_STEADY: Final = T.StructType(
    [
        T.StructField("cluster", schemas.STRING),
        T.StructField("steady", schemas.IDS),
        T.StructField("is_kraft", schemas.BOOLEAN),
    ]
)
_KEY: Final = ("cluster", "topic", "partition")
_NEVER_THE_SAME: Final = ("snapshot_id", "taken_at", "content_digest")
# What the rules look for that look back at a partition that is as it was: a broker that stays away,
# and a replica that stays behind.
# Of KRaft the first partition of a topic bounds the min ISR of all.
_IN_QUESTION: Final = (
    f"coalesce({may_change('')} OR size(isr) < size(replicas) OR (is_kraft AND partition = 0), true)"
)

Topic = tuple[str, str]


@dataclass(frozen=True)
class Carried:
    """What is left to be judged of *todo*, and what stands for all else."""

    todo: Sequence[History]
    snapshots: Snapshots
    """The partitions in question and what belongs to them; all the snapshots and brokers."""

    def findings(self, rules: RuleSet, found: DataFrame) -> DataFrame:
        """What was *found* a snapshot earlier and holds on, in the columns of what is broken.

        Rules that look back are no part of it: whatever they find is in question.
        """
        pairs = [
            (*before.key, now.snapshot_id, now.taken_at)
            for now, before, _ in map(_compared, self.todo)
        ]
        names = ("cluster", "snapshot_id", "now", "micros")
        kinds = (schemas.STRING, schemas.STRING, schemas.STRING, schemas.LONG)
        of_next = T.StructType([T.StructField(*each) for each in zip(names, kinds, strict=True)])
        lasting = [rule.name for rule in rules.about("partition") if not rule.lookback]
        in_question = self.snapshots.partitions.select(*_KEY).distinct()
        return (
            found.where(F.col("rule").isin(lasting))
            .join(F.broadcast(small_frame(found.sparkSession, pairs, of_next)), [*SNAPSHOT_KEY])
            .join(F.broadcast(in_question), list(_KEY), "left_anti")
            .selectExpr(
                *("cluster", "now AS snapshot_id", "timestamp_micros(micros) AS taken_at"),
                *("CAST(NULL AS INT) AS number", "rule", "severity", "0 AS lookback"),
                *("topic", "partition", "broker_id", "evidence"),
            )
        )

    def owners(self) -> list[tuple[str, str, str]]:
        """Cluster, snapshot and run of what was found a snapshot earlier."""
        runs = {entry.seen.key: entry.run for each in self.todo for entry in each.kept}
        return [(*before.key, runs[before.key]) for _, before, _ in map(_compared, self.todo)]


def carried(spark: SparkSession, there: Snapshots, todo: Sequence[History]) -> Carried | None:
    """Of the histories whose newest snapshot differs little from the one before; *there* has both.

    None where there are none, or where they differ more than this process should hold.
    """
    asked = [each for each in todo if _goes_on(each)]
    if not asked:
        return None
    places = _placed(spark, asked)
    near = there.only(places)
    changed = _changed(near, places)
    if len(changed) > FEW_ROWS:
        return None
    restless = {cluster for cluster, topic in changed if topic is None}
    calm = [each for each in asked if each.cluster not in restless]
    if not calm:
        return None
    if len(calm) < len(asked):
        places = _placed(spark, calm)
        near = there.only(places)
    topics = {(cluster, topic) for cluster, topic in changed if topic and cluster not in restless}
    return _looked_at(spark, near, places, calm, topics)


def _goes_on(history: History) -> bool:
    """One more snapshot, right after others that are judged."""
    if not (history.is_continued and len(history.asked) == 1 and history.asked[0].complete):
        return False
    before = [seen for seen in history.complete if seen.order < history.asked[0].order]
    return (
        len(before) >= LOOKBACK
        and {seen.key for seen in history.needed} == {seen.key for seen in before[-LOOKBACK:]}
        and before[-1].key in {entry.seen.key for entry in history.kept}
    )


def _compared(history: History) -> tuple[Seen, Seen, Seen]:
    """The snapshot that is asked for, and the two before it."""
    earlier, before = sorted(history.needed, key=lambda seen: seen.order)
    return history.asked[0], before, earlier


def _placed(spark: SparkSession, todo: Iterable[History]) -> DataFrame:
    rows = [
        (*seen.key, side)
        for each in todo
        for seen, side in zip(_compared(each), _SIDES, strict=True)
    ]
    return small_frame(spark, rows, _PLACES)


# --- What is not as it was -----------------------------------------------------------------------


def _changed(near: Snapshots, places: DataFrame) -> list[tuple[str, str | None]]:
    """The clusters (without a topic) and topics of which anything but a partition has changed."""
    topic_of = {"topics": "topic", "configs": "IF(scope = 'topic', name, NULL)"}

    def rows(name: str) -> DataFrame:
        table = getattr(near, name)
        same = {column: column for column in table.columns if column not in _NEVER_THE_SAME}
        return (
            table.join(F.broadcast(places.where("side != 'earlier'")), list(SNAPSHOT_KEY))
            # A row as text: unlike rows of several tables, texts can be counted together.
            .selectExpr(
                "cluster",
                f"CAST({topic_of.get(name, 'NULL')} AS STRING) AS topic",
                f"to_json({struct(of=text(name), **same)}) AS row",
                "IF(side = 'now', 1, -1) AS more",
            )
        )

    found = (
        reduce(DataFrame.unionAll, map(rows, ("snapshots", "brokers", "topics", "configs")))
        .groupBy("cluster", "topic", "row")
        .agg(F.sum("more").alias("more"))
        .where("more != 0")
        .select("cluster", "topic")
        .distinct()
        .limit(FEW_ROWS + 1)
    )
    return [(row.cluster, row.topic) for row in found.collect()]


def _looked_at(
    spark: SparkSession,
    near: Snapshots,
    places: DataFrame,
    calm: Sequence[History],
    changed: Collection[Topic],
) -> Carried | None:
    snapshots, brokers = settled(near.snapshots), settled(near.brokers)
    steady = _steady(spark, calm, brokers)
    found = _in_question(near.partitions, places, steady, changed)
    more = _grown(found) - set(changed)
    if more and found.num_rows <= FEW_ROWS:
        changed = {*changed, *more}
        found = _in_question(near.partitions, places, steady, changed)
    if found.num_rows > FEW_ROWS:
        return None
    partitions = _of_each(found, calm)
    names = {*changed, *zip(*(found[name].to_pylist() for name in _TOPICS.names), strict=True)}
    topics = F.broadcast(small_frame(spark, sorted(names), _TOPICS))
    named = topics.withColumnRenamed("topic", "name")
    # In one task each: what is so little is joined and grouped without a shuffle.
    reduced = Snapshots(
        snapshots=snapshots.coalesce(1),
        brokers=brokers.coalesce(1),
        topics=settled(near.topics.join(topics, ["cluster", "topic"], "left_semi")).coalesce(1),
        partitions=spark.createDataFrame(partitions, schemas.PARTITIONS).coalesce(1),
        configs=settled(
            near.configs.where("scope != 'topic'").unionByName(
                near.configs.where("scope = 'topic'").join(named, ["cluster", "name"], "left_semi")
            ).select(*schemas.CONFIGS.names)
        ).coalesce(1),
        provenance=near.provenance,
        quarantine=near.quarantine,
        input_digest=near.input_digest,
        rows=partitions.num_rows,
    )
    return Carried(calm, reduced)


def _steady(spark: SparkSession, calm: Sequence[History], brokers: DataFrame) -> DataFrame:
    """The brokers that are there all the time: all are as they were."""
    there: dict[Key, list[int]] = {}
    for row in brokers.where("alive AND NOT coalesce(shutting_down, false)").collect():
        there.setdefault((row.cluster, row.snapshot_id), []).append(row.broker_id)
    asked = [history.asked[0] for history in calm]
    rows = [(seen.cluster, there.get(seen.key, []), seen.mode == "kraft") for seen in asked]
    return small_frame(spark, rows, _STEADY)


def _in_question(
    partitions: DataFrame, places: DataFrame, steady: DataFrame, changed: Collection[Topic]
) -> pa.Table:
    """Each record that a partition in question has, with how many of each snapshot show it.

    A record that all three show is counted three times; so of a partition that is not as it was
    every record is told.
    """
    record = [name for name in schemas.PARTITIONS.names if name != "snapshot_id"]
    of_changed = small_frame(partitions.sparkSession, sorted(changed), _TOPICS).withColumn(
        "is_of_changed", F.lit(True)
    )
    return (
        partitions.join(F.broadcast(places), list(SNAPSHOT_KEY))
        .groupBy(*record)
        .agg(*(F.expr(f"count_if(side = '{side}') AS {side}") for side in _SIDES))
        .join(F.broadcast(steady), "cluster")
        .join(F.broadcast(of_changed), list(_TOPICS.names), "left")
        .where(f"now != before OR before != earlier OR is_of_changed OR {_IN_QUESTION}")
        .select(*record, *_SIDES, "is_kraft")
        .limit(FEW_ROWS + 1)
        .toArrow()
    )


def _grown(found: pa.Table) -> set[Topic]:
    """Topics whose partitions decide about each other: it has others now, or another first one."""
    import pyarrow.compute as pc  # noqa: PLC0415 - importing the package must not load it

    there = [pc.greater(found[side], 0) for side in _SIDES[:2]]
    differs = found.filter(pc.xor(*there)).select([*_KEY, "now", "is_kraft", "replicas"])
    sides: dict[tuple[str, str, int], list[int]] = {}
    for row in differs.to_pylist():
        is_bounding = row["is_kraft"] and row["partition"] == 0
        size = len(row["replicas"]) if is_bounding else 0
        sides.setdefault(tuple(row[name] for name in _KEY), []).append(size)
    return {key[:2] for key, sizes in sides.items() if len(sizes) < len(_SIDES[:2]) or sizes[0] != sizes[1]}


def _of_each(found: pa.Table, calm: Iterable[History]) -> pa.Table:
    """The rows that the snapshots have of what was *found*."""
    import pyarrow as pa  # noqa: PLC0415 - as above
    import pyarrow.compute as pc  # noqa: PLC0415

    compared = {history.cluster: _compared(history) for history in calm}
    parts = []
    for n, side in enumerate(_SIDES):
        rows = found.filter(pc.greater(found[side], 0))
        ids = [compared[cluster][n].snapshot_id for cluster in rows["cluster"].to_pylist()]
        named = rows.append_column("snapshot_id", pa.array(ids, pa.string()))
        parts.append(named.select(schemas.PARTITIONS.names))
    return pa.concat_tables(parts)
