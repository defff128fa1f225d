"""Runs documents through the product's own reader and the native engine, all in one go."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from understudy import scenarios, sources
from understudy.replay import replay
from understudy.schemas import REPLAY_TABLES

Document = dict[str, Any]
Rows = dict[str, list[tuple[Any, ...]]]


def replay_documents(
    spark: SparkSession,
    folder: Path,
    snapshots: Sequence[Document],
    events: Sequence[Sequence[Document]] | None = None,
) -> dict[str, Rows]:
    """Cluster -> table -> rows (without the scenario's key) of one failover each."""
    if events is None:
        found = _replay(spark, folder, snapshots, [scenarios.FAILOVER])
        name = scenarios.FAILOVER.scenario
        return {doc["cluster"]: found.get((doc["cluster"], name), _nothing()) for doc in snapshots}
    rows = replay_cases(spark, folder, list(zip(snapshots, events, strict=True)))
    return {doc["cluster"]: each for doc, each in zip(snapshots, rows, strict=True)}


def replay_cases(
    spark: SparkSession,
    folder: Path,
    cases: Sequence[tuple[Document, Sequence[Document]]],
    *,
    changed_only: bool = False,
    tables: Collection[str] = REPLAY_TABLES,
) -> list[Rows]:
    """The rows of each case, a snapshot and events; many may share a snapshot."""
    keys = [(str(doc["cluster"]), f"case {number}") for number, (doc, _) in enumerate(cases)]
    lines = [
        {"scenario": name, "cluster": cluster, "snapshot_id": doc["snapshot_id"], "events": events}
        for (cluster, name), (doc, events) in zip(keys, cases, strict=True)
    ]
    asked = scenarios.parse("\n".join(map(json.dumps, lines)).encode(), "events.jsonl")
    snapshots = {str(doc["cluster"]): doc for doc, _ in cases}
    found = _replay(
        spark, folder, list(snapshots.values()), asked, changed_only=changed_only, tables=tables
    )
    return [found.get(key, _nothing()) for key in keys]


def _replay(
    spark: SparkSession,
    folder: Path,
    snapshots: Sequence[Document],
    asked: Sequence[scenarios.Scenario],
    *,
    changed_only: bool = False,
    tables: Collection[str] = REPLAY_TABLES,
) -> dict[tuple[str, str], Rows]:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "snapshots.jsonl"
    path.write_text("\n".join(map(json.dumps, snapshots)), encoding="utf-8")
    read = sources.read(spark, [str(path)])
    result = replay(read, asked, changed_only=changed_only)
    try:
        assert result.quarantine.count() == 0
        found: dict[tuple[str, str], Rows] = {}
        for table in tables:
            # Whole columns: a row object for each of so many rows takes longer than the replay.
            columns = [column.to_pylist() for column in result.tables[table].toArrow().columns]
            for cluster, _, scenario, *row in zip(*columns, strict=True):
                rows = found.setdefault((cluster, scenario), _nothing())
                rows[table].append(plain(row))
        return found
    finally:
        result.close()
        read.close()


def _nothing() -> Rows:
    return {table: [] for table in REPLAY_TABLES}


def plain(value: Any) -> Any:  # noqa: ANN401 - lists, rows and structs of anything, as tuples
    if isinstance(value, dict):
        value = list(value.values())
    return tuple(map(plain, value)) if isinstance(value, list | tuple) else value
