"""What of one more snapshot has to be looked at, where hardly anything happened.

Of a cluster whose brokers and settings are as they were, a partition that is as it was, in sync
with brokers that are all there, is found in the condition it was found in a snapshot earlier. So
what was found then is carried on, and only the partitions *in question* are judged: those that are
not as they were, and those that a rule could find something new about all the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from understudy import schemas
from understudy.controller.profiles import KRAFT
from understudy.frames import FEW_ROWS, Tables, collected, small_frame
from understudy.names import SNAPSHOT_KEY
from understudy.questions.audit import audit, facts
from understudy.questions.audit.audit import Rest
from understudy.questions.audit.findings import looks_at_load
from understudy.questions.audit.ledger import History, Seen
from understudy.questions.audit.rule import LOOKBACK
from understudy.questions.audit.rule_set import RuleSet
from understudy.questions.history.feed import followed_brokers, may_change
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
_KEY: Final = ("cluster", "topic", "partition")
_NEVER_THE_SAME: Final = ("snapshot_id", "taken_at", "content_digest")
# What rules that look back can find of a partition that is as it was: a broker that stays away, and
# a replica that stays behind. And in KRaft the first partition bounds the min ISR of its topic.
_IN_QUESTION: Final = (
    f"coalesce({may_change('')} OR size(isr) < size(replicas)"
    " OR (is_kraft AND partition = 0), true)"
)

Topic = tuple[str, str]


@dataclass(frozen=True)
class Carried:
    """What is left to be judged of *todo*, and what stands for all else."""

    todo: Sequence[History]
    snapshots: Snapshots
    """The partitions in question and what belongs to them; all the snapshots and brokers."""
    followed: DataFrame
    load: DataFrame | None = None
    """What brokers follow, lead and hold of all partitions."""

    def rest(self, rules: RuleSet, found: DataFrame) -> Rest:
        """What is known of all other partitions, of which that was *found* a snapshot earlier."""
        return Rest(self.followed, self.load, [self._standing(rules, found)])

    def _standing(self, rules: RuleSet, found: DataFrame) -> DataFrame:
        """What was *found* and holds on, in the columns of what is broken.

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


def carried(
    spark: SparkSession, there: Snapshots, todo: Sequence[History], rules: RuleSet
) -> Carried | None:
    """Of the histories whose newest snapshot differs little from the one before; *there* has both.

    None where there are none, or where more is in question than this process should hold.
    """
    going_on = [each for each in todo if _goes_on(each)]
    if not going_on:
        return None
    places = _placed(spark, going_on)
    near = there if len(going_on) == len(todo) else there.only(places)
    near = replace(near, **_settled(spark, snapshots=near.snapshots, brokers=near.brokers))
    steady = _steady(near, places)
    asked = sorted({each.asked[0].snapshot_id for each in going_on})
    newest = replace(near, partitions=near.partitions.where(F.col("snapshot_id").isin(asked)))
    queries = Tables(
        {
            "records": lambda: _records(near.partitions, places, steady),
            "changed": lambda: _changed(near, places),
            "followed": lambda: followed_brokers(newest.partitions),
            "load": lambda: facts.load(newest, audit.places(spark, going_on)),
        }
    )
    if not looks_at_load(rules):
        queries = queries.only(("records", "changed", "followed"))
    found = collected(spark, queries)
    records = found["records"]
    changed = {(row["cluster"], row["topic"]) for row in found["changed"].to_pylist()}
    restless = {cluster for cluster, topic in changed if topic is None}
    calm = [each for each in going_on if each.cluster not in restless]
    if not calm or max(len(changed), records.num_rows) > FEW_ROWS:
        return None
    topics = {each for each in {*changed, *_grown(records)} if each[0] not in restless}
    if topics:
        records = _records(near.partitions, places, steady, topics).toArrow()
    if records.num_rows > FEW_ROWS:
        return None
    partitions = _of_each(records, calm)
    named = {*topics, *zip(*(partitions[name].to_pylist() for name in _TOPICS.names), strict=True)}
    in_question = replace(
        near,
        **_settled(spark, **_about(near, small_frame(spark, sorted(named), _TOPICS))),
        partitions=_local(near.partitions, partitions),
        rows=partitions.num_rows,
    )
    of_brokers = [name for name in ("followed", "load") if name in queries]
    known = {name: _local(queries[name], found[name]) for name in of_brokers}
    return Carried(calm, in_question, **known)


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


def _changed(near: Snapshots, places: DataFrame) -> DataFrame:
    """The clusters (without a topic) and topics of which anything but a partition has changed."""
    topic_of = {"topics": "topic", "configs": "IF(scope = 'topic', name, NULL)"}

    def rows(name: str) -> DataFrame:
        table: DataFrame = getattr(near, name)
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

    return (
        reduce(DataFrame.unionAll, map(rows, ("snapshots", "brokers", "topics", "configs")))
        .groupBy("cluster", "topic", "row")
        .agg(F.sum("more").alias("more"))
        .where("more != 0")
        .select("cluster", "topic")
        .distinct()
        .limit(FEW_ROWS + 1)
    )


def _steady(near: Snapshots, places: DataFrame) -> DataFrame:
    """The brokers that are there all the time, if all are as they were."""
    kraft = near.snapshots.select(*SNAPSHOT_KEY, F.expr(f"mode = {text(KRAFT.mode)} AS is_kraft"))
    return (
        near.brokers.where("alive AND NOT coalesce(shutting_down, false)")
        .join(F.broadcast(places.where("side = 'now'")), list(SNAPSHOT_KEY))
        .groupBy(*SNAPSHOT_KEY)
        .agg(F.collect_list("broker_id").alias("steady"))
        .join(F.broadcast(kraft), list(SNAPSHOT_KEY))
        .drop("snapshot_id")
    )


def _records(
    partitions: DataFrame,
    places: DataFrame,
    steady: DataFrame,
    changed: Iterable[Topic] = (),
) -> DataFrame:
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
        .join(F.broadcast(steady), "cluster", "left")
        .join(F.broadcast(of_changed), list(_TOPICS.names), "left")
        .where(f"now != before OR before != earlier OR is_of_changed OR {_IN_QUESTION}")
        .select(*record, *_SIDES, "is_kraft")
        .limit(FEW_ROWS + 1)
    )


def _grown(records: pa.Table) -> set[Topic]:
    """Topics whose partitions decide about each other: it has others now, or another first one."""
    import pyarrow.compute as pc  # noqa: PLC0415 - importing the package must not load it

    now, before = (pc.greater(records[side], 0) for side in ("now", "before"))
    seen: dict[tuple[str, str, int], list[int]] = {}
    for row in records.filter(pc.xor(now, before)).to_pylist():
        bounds = row["is_kraft"] and row["partition"] == 0
        size = len(row["replicas"]) if bounds else 0
        seen.setdefault(tuple(row[name] for name in _KEY), []).append(size)
    is_as_large = {key: len(sizes) > 1 and len(set(sizes)) == 1 for key, sizes in seen.items()}
    return {key[:2] for key, is_same in is_as_large.items() if not is_same}


def _about(near: Snapshots, topics: DataFrame) -> dict[str, DataFrame]:
    """What is said of these *topics*, and settings of more than a topic."""
    is_named = F.broadcast(topics.withColumnRenamed("topic", "name"))
    of_topics = near.configs.where("scope = 'topic'").join(is_named, ["cluster", "name"], "semi")
    of_all = near.configs.where("scope != 'topic'")
    return {
        "topics": near.topics.join(F.broadcast(topics), _TOPICS.names, "semi"),
        "configs": of_all.unionByName(of_topics),
    }


def _settled(spark: SparkSession, **frames: DataFrame) -> dict[str, Any]:
    """The same few rows, computed."""
    return {name: _local(frames[name], rows) for name, rows in collected(spark, frames).items()}


def _local(frame: DataFrame, rows: pa.Table) -> DataFrame:
    """In one task: what is so little is joined and grouped without a shuffle."""
    return frame.sparkSession.createDataFrame(rows, frame.schema).coalesce(1)


def _of_each(records: pa.Table, calm: Iterable[History]) -> pa.Table:
    """The rows of the calm clusters' snapshots that the *records* stand for."""
    import pyarrow as pa  # noqa: PLC0415 - as above
    import pyarrow.compute as pc  # noqa: PLC0415

    compared = {history.cluster: _compared(history) for history in calm}
    of_calm = records.filter(pc.is_in(records["cluster"], pa.array(sorted(compared))))
    parts = []
    for n, side in enumerate(_SIDES):
        rows = of_calm.filter(pc.greater(of_calm[side], 0))
        ids = [compared[cluster][n].snapshot_id for cluster in rows["cluster"].to_pylist()]
        named = rows.append_column("snapshot_id", pa.array(ids, pa.string()))
        parts.append(named.select(schemas.PARTITIONS.names))
    return pa.concat_tables(parts)
