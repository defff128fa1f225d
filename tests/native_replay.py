"""Runs documents through the product's own reader and the native engine, all in one go."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from understudy import scenarios, sources
from understudy.controller import elections_sql
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
    elections_sql.register(spark)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "snapshots.jsonl"
    path.write_text("\n".join(map(json.dumps, snapshots)), encoding="utf-8")
    read = sources.read(spark, [str(path)])
    asked: list[scenarios.Scenario] = [scenarios.FAILOVER]
    if events is not None:
        lines = [
            {"scenario": "case", "cluster": doc["cluster"], "snapshot_id": "s1", "events": given}
            for doc, given in zip(snapshots, events, strict=True)
        ]
        asked = scenarios.parse("\n".join(map(json.dumps, lines)).encode(), "events.jsonl")
    result = replay(read, asked)
    try:
        assert result.quarantine.count() == 0
        return _collect(result.tables, [doc["cluster"] for doc in snapshots])
    finally:
        result.close()
        read.close()


def _collect(tables: dict[str, DataFrame], clusters: Iterable[str]) -> dict[str, Rows]:
    found: dict[str, Rows] = {name: {table: [] for table in REPLAY_TABLES} for name in clusters}
    for table, frame in tables.items():
        for row in frame.collect():
            found[row["cluster"]][table].append(plain(tuple(row)[3:]))
    return found


def plain(value: Any) -> Any:  # noqa: ANN401 - lists and rows of anything, as tuples
    return tuple(map(plain, value)) if isinstance(value, list | tuple) else value
