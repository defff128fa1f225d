"""The way through Spark: all cases in one run of the product's reader, engines and tables."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from conformance.families import Document, Tables
from kafka_answers import per_receiver
from understudy import replay as replaying
from understudy import scenarios, sources
from understudy.names import SCENARIO_KEY
from understudy.schemas import REPLAY_TABLES

_COMPARED: Final = tuple(table for table in REPLAY_TABLES if table != "decisions")
_AT_ONCE: Final = 1_000  # cases whose rows are Python's at a time; the rest stays with Arrow


class QuarantinedError(Exception):
    """The product refused a case that Kafka answered."""


def replayed(spark: SparkSession, folder: Path, cases: Collection[Document]) -> Iterator[Tables]:
    """The tables of every case, in order; all of them come out of one run."""
    found = _run(spark, folder, cases)
    clusters = [case["snapshot"]["cluster"] for case in cases]
    for start in range(0, len(clusters), _AT_ONCE):
        yield from _of_each(found, clusters[start : start + _AT_ONCE])


def _run(spark: SparkSession, folder: Path, cases: Iterable[Document]) -> dict[str, pa.Table]:
    snapshots, asked = folder / "snapshots.jsonl", folder / "scenarios.jsonl"
    with snapshots.open("w", encoding="utf-8") as one, asked.open("w", encoding="utf-8") as other:
        for case in cases:
            one.write(json.dumps(case["snapshot"]) + "\n")
            other.write(json.dumps(case["scenario"]) + "\n")
    # However few they are: the native form takes what it can, or it would never be compared.
    replaying.SMALL = 0
    read = sources.read(spark, [str(snapshots)])
    result = replaying.replay(read, scenarios.parse(asked.read_bytes(), asked.name))
    try:
        refused = result.quarantine.select("cluster", "problems").head()
        if refused is not None:
            raise QuarantinedError(f"{refused.cluster}: {'; '.join(refused.problems)}")
        # By way of files, as every replay: the driver holds no table.
        for table in _COMPARED:
            result.tables[table].write.mode("overwrite").parquet(str(folder / table))
    finally:
        result.close()
        read.close()
    return {table: pq.read_table(folder / table) for table in _COMPARED}


def _of_each(found: Mapping[str, pa.Table], clusters: Collection[str]) -> Iterator[Tables]:
    wanted = pa.array(clusters)
    rows: dict[str, dict[str, list[dict[str, Any]]]] = {
        cluster: {table: [] for table in _COMPARED} for cluster in clusters
    }
    for table, every in found.items():
        of_these = every.filter(pc.is_in(every["cluster"], value_set=wanted))
        owners = of_these["cluster"].to_pylist()
        for owner, row in zip(owners, of_these.drop(SCENARIO_KEY).to_pylist(), strict=True):
            rows[owner][table].append(row)
    for cluster in clusters:
        yield per_receiver(rows[cluster])
