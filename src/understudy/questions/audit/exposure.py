"""The table ``exposure``: how long a partition or a broker was in which condition.

A condition holds from the first snapshot that shows it until the first that no longer does. What is
already known as an interval, and what was found in single snapshots, are both stretches of
successive snapshots; those that touch become one. So an interval can be carried on from run to run,
and comes out as if all snapshots had been seen at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from understudy import schemas
from understudy.frames import small_frame
from understudy.questions.audit.ledger import History
from understudy.questions.audit.rule_set import CATALOGUE

_SUBJECT: Final = ("cluster", "topic", "partition", "broker_id", "rule")
_STRETCH: Final = (*_SUBJECT, "first", "last", "snapshots")
CONDITIONS: Final = tuple(rule.name for rule in CATALOGUE.values() if not rule.lookback)
"""Rules that can go on for a while; the others tell of something that happened."""

_NUMBERS: Final = T.StructType(
    [
        T.StructField("cluster", schemas.STRING),
        T.StructField("snapshot_id", schemas.STRING),
        T.StructField("number", schemas.INT),
        T.StructField("micros", schemas.LONG),
        T.StructField("next_micros", schemas.LONG),
    ]
)


def numbers(spark: SparkSession, histories: Iterable[History]) -> DataFrame:
    """The judged complete snapshots of each cluster, numbered, with when the next was taken."""
    rows = []
    for history in histories:
        taken = [*(seen.taken_at for seen in history.judged), None]
        rows += [
            (history.cluster, seen.snapshot_id, n, seen.taken_at, taken[n])
            for n, seen in enumerate(history.judged, 1)
        ]
    return small_frame(spark, rows, _NUMBERS)


def found_in(findings: DataFrame, numbered: DataFrame) -> DataFrame:
    """What *findings* tell of conditions, each a stretch of one snapshot."""
    number = F.broadcast(numbered.select("cluster", "snapshot_id", "number"))
    return (
        findings.where(F.col("rule").isin(*CONDITIONS))
        .where("silenced IS NULL")
        .join(number, on=["cluster", "snapshot_id"], how="inner")
        .selectExpr(
            *("cluster", "topic", "partition"),
            # Which broker a partition's condition is about may change while it lasts.
            "IF(topic IS NULL, broker_id, NULL) AS broker_id",
            *("rule", "number AS first", "number AS last", "1L AS snapshots"),
        )
        .distinct()
    )


def known_from(exposure: DataFrame, numbered: DataFrame) -> DataFrame:
    """Intervals of an earlier run as stretches of the snapshots as they are numbered now."""
    first = numbered.selectExpr("cluster", "snapshot_id AS first_snapshot", "number AS first")
    last = numbered.selectExpr("cluster", "snapshot_id AS last_snapshot", "number AS last")
    return (
        exposure.join(F.broadcast(first), on=["cluster", "first_snapshot"], how="inner")
        .join(F.broadcast(last), on=["cluster", "last_snapshot"], how="inner")
        .select(*_STRETCH)
    )


def exposure(stretches: DataFrame, numbered: DataFrame) -> DataFrame:
    """The stretches that touch, joined into intervals; null until: still so in the newest."""
    by_subject = f"PARTITION BY {', '.join(_SUBJECT)} ORDER BY first"
    far = f"max(last) OVER ({by_subject} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
    begun = stretches.selectExpr(*_STRETCH, f"coalesce(first > {far} + 1, true) AS begins")
    intervals = (
        begun.selectExpr(*_STRETCH, f"count_if(begins) OVER ({by_subject}) AS interval")
        .groupBy(*_SUBJECT, "interval")
        .agg(F.min("first"), F.max("last"), F.sum("snapshots"))
        .toDF(*_SUBJECT, "interval", "first", "last", "snapshots")
    )
    first = numbered.selectExpr(
        "cluster", "number AS first", "snapshot_id AS first_snapshot", "micros"
    )
    last = numbered.selectExpr(
        "cluster", "number AS last", "snapshot_id AS last_snapshot", "next_micros"
    )
    return schemas.conform(
        intervals.join(F.broadcast(first), on=["cluster", "first"], how="inner")
        .join(F.broadcast(last), on=["cluster", "last"], how="inner")
        .selectExpr(
            *_SUBJECT,
            *("timestamp_micros(micros) AS since", "timestamp_micros(next_micros) AS until"),
            *("snapshots", "first_snapshot", "last_snapshot"),
        ),
        schemas.EXPOSURE,
    )
