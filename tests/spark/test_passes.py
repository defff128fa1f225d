"""What one pass makes of several tables is what Spark reads of each, without lost attempts."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from clusters import random_cluster
from native_replay import plain
from understudy import column_files, publish, replay, scenarios, sources
from understudy.columns import Pass, Teller, Told
from understudy.controller.columnar import feed as columnar
from understudy.controller.native import sent_again
from understudy.errors import UsageError
from understudy.frames import Tables
from understudy.schemas import REPLAY_TABLES

CLUSTERS = 60
PASSED = {"partition_states", "replica_states", "transitions", "request_partitions"}
RUN = publish.Run.start(
    "replay",
    input_digest="ab" * 32,
    config_digest="s",
    now=datetime(2026, 11, 16, 12, tzinfo=UTC),
)


@pytest.fixture
def failovers(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Tables]:
    """The tables of failovers in the native form, whose passes take a few partitions at once."""
    monkeypatch.setattr(replay, "SMALL", 0)
    monkeypatch.setattr(columnar, "SNAPSHOTS_AT_ONCE", 0)
    monkeypatch.setattr(sent_again, "_PARTITIONS_AT_ONCE", 7)
    rng = Random("passes")
    path = tmp_path / "snapshots.jsonl"
    documents = [random_cluster(rng, f"c{number:04}") for number in range(CLUSTERS)]
    path.write_text("\n".join(map(json.dumps, documents)), encoding="utf-8")
    snapshots = sources.read(spark, [str(path)])
    decided = replay.replay(snapshots, [scenarios.FAILOVER])
    yield decided.tables
    decided.close()
    snapshots.close()


def rows_in(frame: DataFrame) -> Counter[Any]:
    columns = frame.toArrow().to_pydict().values()
    return Counter(map(plain, zip(*columns, strict=True)))


@pytest.mark.parametrize("is_here", [True, False])
def test_published_rows_are_those_of_the_tables(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    failovers: Tables,
    *,
    is_here: bool,
) -> None:
    """Whether a pass writes them, or Spark does: to other file systems, and over Connect."""
    assert set().union(*(each.names for each in failovers.passes)) == PASSED
    if not is_here:
        monkeypatch.setattr(publish, "writes_to", lambda *_: False)
        monkeypatch.setattr(column_files, "write", pytest.fail)
    root = tmp_path / "out"
    counts = publish.publish(spark, str(root), RUN, failovers, verdict="done")
    for name in REPLAY_TABLES:
        written = rows_in(publish.read(spark, str(root), name).drop("run_id"))
        assert written == rows_in(failovers[name]), name
        assert written.total() == counts[name]
    assert counts["transitions"] > CLUSTERS


def test_files_of_a_pass_are_like_those_of_spark(
    spark: SparkSession, tmp_path: Path, failovers: Tables
) -> None:
    """Other programs read the files: the same columns of the same types, and keys to skip by."""
    tables = failovers.only(sorted(PASSED))
    publish.publish(spark, str(tmp_path), RUN, tables, verdict="done")
    for name in PASSED:
        files = list((tmp_path / name).glob("run=*/*.parquet"))
        schemas = {pq.read_schema(file).remove_metadata() for file in files}
        assert len(files) > 2
        assert len(schemas) == 1, schemas
        kept = [pq.ParquetFile(file).metadata.row_group(0) for file in files]
        assert all(group.column(0).statistics is not None for group in kept)


def test_files_of_attempts_that_do_not_count_are_not_read(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task that was lost half-way, and one that ran twice, whose other half nobody asked for."""
    monkeypatch.setattr(column_files, "ROWS_PER_FILE", 1)
    folder = tmp_path / "event_results"
    folders = {"event_results": str(folder)}
    column_files.make(folders.values())
    batches = [pa.RecordBatch.from_pydict({"n": [number]}) for number in range(3)]
    lost = column_files._write(teller(), folders, (), iter(batches))  # noqa: SLF001
    next(lost)
    list(column_files._write(teller(), folders, (), iter(batches)))  # noqa: SLF001
    assert len(list(folder.iterdir())) == 4
    made = Pass(spark.range(3).selectExpr("id AS n"), frozenset(folders), teller())
    column_files.write(made, folders)
    seen = spark.read.parquet(str(folder)).select("broker_id").collect()
    assert sorted(row.broker_id for row in seen) == [0, 1, 2]
    assert {file.name[:5] for file in folder.iterdir()} == {"part-"}


def test_a_place_that_not_all_machines_share_is_told(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Pass(spark.range(3).selectExpr("id AS n"), frozenset({"event_results"}), teller())
    monkeypatch.setattr(Path, "exists", lambda _: False)
    with pytest.raises(UsageError, match="all machines share"):
        column_files.write(made, {"event_results": str(tmp_path)})


def teller() -> Teller:
    """As Spark's workers, which know nothing of the tests, can take it."""

    def tell(batches: Iterator[pa.RecordBatch], wanted: Collection[str]) -> Told:
        from understudy.columns import rows_of  # noqa: PLC0415

        for batch in batches:
            numbers = batch.column("n").cast("int32")
            for name in wanted:
                yield name, rows_of(name, batch.num_rows, {"cluster": "c", "broker_id": numbers})

    return tell
