"""The facts of audits that their page shows: what holds now, over all clusters and for each.

Only counts, and rows up to a limit, ever reach the driver; of a long history the newest
snapshots are drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from understudy import auditing, publish
from understudy.names import SNAPSHOT_KEY
from understudy.questions.history.divergence import UNCLEAN
from understudy.questions.history.order import NEWEST
from understudy.report import audit_text
from understudy.report.summary import first_rows

Told = dict[str, Any]

BROKEN: Final = {
    "offline": "offline",
    "under-min-isr": "under min ISR",
    "under-replicated": "under-replicated",
}
AT_RISK: Final = {
    "last-replica-standing": "one in sync",
    "one-failure-from-offline": "one from offline",
    "at-min-isr": "at min ISR",
}
BROKERS: Final = {"brokers_up": "up", "broker-down": "down"}
MOVES: Final = {"leader_moves": "leaders moved", "unclean_moves": "of them out of sync"}
EXPOSED: Final = ("offline", "under-min-isr", "under-replicated", "last-replica-standing")
_COUNTS: Final = ("errors", "warnings", "infos", "silenced")
_CHARTED: Final = 6  # clusters that get a chart, the worst first
_DRAWN: Final = 120  # snapshots in a chart
_SHOWN: Final = "yyyy-MM-dd HH:mm"


def gather(spark: SparkSession, root: str, *, topic: str | None, limit: int) -> Told:
    """What the newest ledger of *root* says, ready for JSON."""
    audited = publish.read(spark, root, "audited")
    count, clusters = first_rows(
        audited.groupBy("cluster").agg(
            F.count(F.lit(1)).alias("snapshots"),
            F.count_if(~F.col("complete")).alias("incomplete"),
            *(F.sum(name).alias(name) for name in _COUNTS),
        ),
        [*(F.desc(name) for name in _COUNTS[:3]), "cluster"],
        limit,
    )
    sums = audited.agg(
        F.count(F.lit(1)).alias("snapshots"),
        F.count_if(~F.col("complete")).alias("incomplete"),
        *(F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in _COUNTS),
    ).first()
    standing = auditing.Standing(**sums.asDict()) if sums else auditing.Standing(0, 0, 0, 0, 0, 0)
    names = [row["cluster"] for row in clusters]
    asked = auditing.Asked()
    return {
        "verdict": standing.verdict,
        "snapshots": standing.snapshots,
        **{name: getattr(standing, name) for name in _COUNTS},
        "clusters": {"count": count, "first": clusters},
        "history": _history(spark, root, audited, names[:_CHARTED]),
        "exposed": {
            key: _exposed(spark, root, names, key, topic=topic, limit=limit)
            for key in ("topic", "rack")
        },
        **audit_text.gather(spark, root, names, asked, topic=topic, limit=limit),
    }


def _history(
    spark: SparkSession, root: str, audited: DataFrame, clusters: Sequence[str]
) -> list[Told]:
    """Per cluster and snapshot, the oldest first, how many partitions each rule is about."""
    newest = Window.partitionBy("cluster").orderBy(F.expr(NEWEST).desc())
    snapshots = (
        # One that is not complete would look like a moment without any brokers.
        audited.where(F.col("cluster").isin(list(clusters)) & F.col("complete"))
        .withColumn("age", F.row_number().over(newest))
        .where(F.col("age") <= _DRAWN)
        .select(
            *(*SNAPSHOT_KEY, "age", "brokers_up"),
            F.date_format("taken_at", _SHOWN).alias("taken_at"),
        )
    )
    rules = [*BROKEN, *AT_RISK, "broker-down"]
    found = publish.read(spark, root, "findings").where("silenced IS NULL")
    counted = (
        found.where(F.col("rule").isin(rules))
        .groupBy(*SNAPSHOT_KEY)
        .agg(*(F.count_if(F.col("rule") == rule).alias(rule) for rule in rules))
    )
    moved = (
        publish.read(spark, root, "changes")
        .where("field = 'leader' AND recorded IS NOT NULL AND before IS NOT NULL")
        .groupBy(*SNAPSHOT_KEY)
        .agg(
            F.count(F.lit(1)).alias("leader_moves"),
            F.count_if(F.col("reason") == UNCLEAN).alias("unclean_moves"),
        )
    )
    rows = (
        snapshots.join(counted, on=list(SNAPSHOT_KEY), how="left")
        .join(moved, on=list(SNAPSHOT_KEY), how="left")
        .fillna(0, [*rules, *MOVES, "brokers_up"])
    )
    return [row.asDict() for row in rows.orderBy("cluster", F.desc("age")).collect()]


def _exposed(
    spark: SparkSession,
    root: str,
    clusters: Sequence[str],
    key: str,
    *,
    topic: str | None,
    limit: int,
) -> Told:
    """Per topic, or rack of the broker it is about, in how many snapshots which condition held."""
    found = publish.read(spark, root, "findings").where("silenced IS NULL")
    found = found.where(F.col("cluster").isin(list(clusters)) & F.col(key).isNotNull())
    if topic is not None:
        found = found.where(F.col("topic").rlike(topic))
    rules = (*EXPOSED, *AT_RISK, "broker-down") if key == "rack" else EXPOSED
    counted = (
        found.where(F.col("rule").isin(*rules))
        .groupBy("cluster", key, "rule")
        .agg(
            F.count_distinct("topic", "partition").alias("partitions"),
            F.count_distinct("snapshot_id").alias("snapshots"),
            F.date_format(F.min("taken_at"), _SHOWN).alias("first"),
            F.date_format(F.max("taken_at"), _SHOWN).alias("last"),
        )
    )
    rank = " ".join(f"WHEN '{rule}' THEN {n}" for n, rule in enumerate(rules))
    order = [F.expr(f"CASE rule {rank} END"), F.desc("snapshots"), F.desc("partitions")]
    count, first = first_rows(counted, [*order, "cluster", key], limit)
    return {"count": count, "first": first}
