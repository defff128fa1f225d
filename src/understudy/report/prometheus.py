"""Metrics for Prometheus' textfile collector: what the newest snapshot of each cluster breaks.

By topic, not by partition: a large cluster has a hundred thousand of those.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Final

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from understudy import publish
from understudy.questions.history.order import NEWEST

KAFKA_NAMES: Final = {
    "offline": ("kafka_offline_partitions", "Partitions without a leader that is online"),
    "under-min-isr": ("kafka_under_min_isr_partitions", "Partitions that refuse acks=all"),
    "at-min-isr": ("kafka_at_min_isr_partitions", "Partitions with no in-sync replica to spare"),
    "under-replicated": ("kafka_under_replicated_partitions", "Partitions with replicas missing"),
}
FINDINGS: Final = "kafka_audit_findings"

Labels = dict[str, str]


def metrics(spark: SparkSession, root: str, *, clusters: Sequence[str], now: datetime) -> str:
    """The metrics as text; of Kafka's own, a cluster without any such partition says zero."""
    audited = publish.read(spark, root, "audited").where(F.col("cluster").isin(list(clusters)))
    newest = audited.groupBy("cluster").agg(
        F.max_by("snapshot_id", F.expr(NEWEST)).alias("snapshot_id"),
        F.max(F.unix_seconds("taken_at")).alias("seconds"),
        F.max_by("brokers_up", F.expr(NEWEST)).alias("brokers_up"),
    )
    found = (
        publish.read(spark, root, "findings")
        .join(F.broadcast(newest), on=["cluster", "snapshot_id"], how="left_semi")
        .where("silenced IS NULL")
        .groupBy("cluster", "topic", "rule", "severity")
        .agg(F.count(F.lit(1)).alias("count"))
        .orderBy("cluster", "rule", F.asc_nulls_first("topic"))
    )
    return render(newest.orderBy("cluster").collect(), found.collect(), now)


def render(newest: Iterable[Any], found: Iterable[Any], now: datetime) -> str:
    """Rows of newest snapshots and of counts as text."""
    newest, found = list(newest), list(found)
    blocks = [
        _block(
            "kafka_audit_run_timestamp_seconds",
            "When the audit ran",
            [({}, int(now.timestamp()))],
        ),
        _block(
            "kafka_audit_snapshot_timestamp_seconds",
            "When the newest snapshot was taken",
            [({"cluster": row.cluster}, row.seconds) for row in newest if row.seconds is not None],
        ),
        _block(
            "kafka_brokers_up",
            "Brokers that are alive",
            [
                ({"cluster": row.cluster}, row.brokers_up)
                for row in newest
                if row.brokers_up is not None
            ],
        ),
        _block(
            FINDINGS,
            "Rules that the newest snapshot breaks, by topic",
            [
                (
                    {"cluster": row.cluster, "rule": row.rule, "severity": row.severity}
                    | ({} if row.topic is None else {"topic": row.topic}),
                    row["count"],
                )
                for row in found
            ],
        ),
    ]
    for rule, (name, said) in KAFKA_NAMES.items():
        samples: list[tuple[Labels, int]] = []
        for row in newest:
            of_it = [each for each in found if (each.rule, each.cluster) == (rule, row.cluster)]
            by_topic = [({"cluster": row.cluster, "topic": e.topic}, e["count"]) for e in of_it]
            samples += by_topic or [({"cluster": row.cluster}, 0)]
        blocks.append(_block(name, said, samples))
    return "".join(blocks)


def _block(name: str, said: str, samples: Iterable[tuple[Labels, int]]) -> str:
    lines = [f"# HELP {name} {said}.", f"# TYPE {name} gauge"]
    lines += [f"{name}{_labels(labels)} {value}" for labels, value in samples]
    return "\n".join(lines) + "\n"


def _labels(labels: Labels) -> str:
    told = ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items())
    return f"{{{told}}}" if told else ""


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
