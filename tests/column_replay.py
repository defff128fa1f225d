"""Runs a snapshot through the columnar form alone, without Spark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema

from understudy.columns import decoded
from understudy.controller.columnar import scenario
from understudy.controller.columnar.cluster import Cluster
from understudy.controller.snapshot_rows import SnapshotRows
from understudy.names import SCENARIO_KEY
from understudy.schemas import PARTITIONS, REPLAY_TABLES

_SNAPSHOT = ("c", "s")


def cluster_of(rows: SnapshotRows) -> Cluster:
    known = {
        "snapshot": rows.snapshot,
        "brokers": rows.brokers,
        "configs": rows.configs,
        "queued_topics": [t["topic"] for t in rows.topics if t["queued_for_deletion"]],
    }
    given = [{"cluster": "c", "snapshot_id": "s", **row} for row in rows.partitions]
    return Cluster(known, pa.Table.from_pylist(given, to_arrow_schema(PARTITIONS)))


def replayed(
    cluster: Cluster, events: Sequence[dict[str, Any]], *, changed_only: bool = False
) -> dict[str, list[tuple[Any, ...]]]:
    """The rows of every table without the scenario's key; writes in their order."""
    (found,) = replayed_together(cluster, [events], changed_only=changed_only)
    return found


def replayed_together(
    cluster: Cluster, scenarios: Sequence[Sequence[dict[str, Any]]], *, changed_only: bool = False
) -> list[dict[str, list[tuple[Any, ...]]]]:
    """The same of several scenarios that are handed over at once."""
    named = [(str(number), events) for number, events in enumerate(scenarios)]
    found: dict[str, dict[str, list[tuple[Any, ...]]]] = {
        each: {name: [] for name in REPLAY_TABLES} for each, _ in named
    }

    def hand_over(name: str, batch: pa.RecordBatch) -> None:
        for row in zip(*decoded(batch).to_pydict().values(), strict=True):
            found[row[len(SCENARIO_KEY) - 1]][name].append(row[len(SCENARIO_KEY) :])

    scenario.replay(cluster, _SNAPSHOT, named, hand_over, changed_only=changed_only)
    for tables in found.values():
        tables["metadata_writes"].sort(key=lambda row: row[0])
    return list(found.values())
