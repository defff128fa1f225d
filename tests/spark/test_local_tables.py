"""Small tables read and written without Spark are what Spark reads and writes."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import types as T

from understudy import local_tables, publish, published, schemas
from understudy.frames import arrow_rows, small_frame
from understudy.names import SNAPSHOT_KEY

AT = datetime(2026, 3, 1, 9, 30, 0, 123456, tzinfo=UTC)
ROWS: list[tuple[Any, ...]] = [
    ("r1", "load", "1+a", 1, "i", "c", "4.3", AT, AT, {"snapshots": 2, "brokers": 0}, "done"),
    ("r2", "audit", "1+a", None, "i", "c", "4.3", AT, None, {}, None),
]


def test_spark_reads_what_is_written_here_and_the_other_way_round(
    spark: SparkSession, tmp_path: Path
) -> None:
    here, there = str(tmp_path / "here" / "run=a"), str(tmp_path / "there" / "run=a")
    local_tables.write(arrow_rows(ROWS, schemas.RUNS), schemas.RUNS, here)
    small_frame(spark, ROWS, schemas.RUNS).coalesce(1).write.parquet(there)
    expected = small_frame(spark, ROWS, schemas.RUNS).collect()
    for folder in (here, there):
        assert sorted(spark.read.schema(schemas.RUNS).parquet(folder).collect()) == sorted(expected)
        rows = local_tables.few_rows({"a": folder}, schemas.RUNS, "run")
        assert rows is not None
        assert rows["run"].to_pylist() == ["a", "a"]
        assert sorted(spark.createDataFrame(rows.drop_columns("run")).collect()) == sorted(expected)
        assert local_tables.count(folder) == 2
        found = local_tables.schema_of(folder)
        assert found is not None
        assert [f.dataType for f in found] == [f.dataType for f in schemas.RUNS]


def test_rows_of_a_replay_are_the_same_from_here(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = schemas.REPLAY_TABLES["decisions"]
    candidates = [{"replica": 1, "verdict": "chosen"}, {"replica": 2, "verdict": None}]
    values = {"cluster": "c", "partition": 3, "candidates": candidates, "clean": True}
    row = tuple(values.get(name) for name in schema.names)
    run = publish.Run.start("replay", input_digest="0" * 64, config_digest="1")
    root = str(tmp_path)
    publish.publish(spark, root, run, {"decisions": small_frame(spark, [row], schema)}, verdict="")
    here = publish.read(spark, root, "decisions").collect()
    monkeypatch.setattr(published, "writes_to", lambda *_: False)
    assert publish.read(spark, root, "decisions").collect() == here
    assert here[0].run_id == run.run_id
    assert here[0].candidates[1].replica == 2


def test_columns_that_files_lack_are_null_and_others_are_not_asked_for(tmp_path: Path) -> None:
    old = T.StructType([T.StructField("a", T.StringType()), T.StructField("gone", T.LongType())])
    new = T.StructType([T.StructField("a", T.StringType()), T.StructField("b", schemas.IDS)])
    local_tables.write(arrow_rows([("x", 1)], old), old, str(tmp_path / "run=1"))
    local_tables.write(arrow_rows([("y", [3, 1])], new), new, str(tmp_path / "run=2"))
    assert local_tables.runs_below(str(tmp_path)) == ["1", "2"]
    folders = {run: str(tmp_path / f"run={run}") for run in ("1", "2")}
    rows = local_tables.few_rows(folders, new, "run")
    assert rows is not None
    assert rows.to_pylist() == [
        {"a": "x", "b": None, "run": "1"},
        {"a": "y", "b": [3, 1], "run": "2"},
    ]


def test_what_is_much_or_broken_or_nowhere_is_left_to_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "run=1"
    local_tables.write(arrow_rows(ROWS, schemas.RUNS), schemas.RUNS, str(folder))
    other = T.StructType([T.StructField("run_id", T.LongType())])
    assert local_tables.few_rows({"1": str(folder)}, other, "run") is None
    assert local_tables.few_rows({"1": str(tmp_path / "none")}, schemas.RUNS, "run") is None
    assert local_tables.schema_of(str(tmp_path / "none")) is None
    with monkeypatch.context() as few:
        few.setattr(local_tables, "FEW_ROWS", 1)
        assert local_tables.few_rows({"1": str(folder)}, schemas.RUNS, "run") is None
    (folder / "part-broken.parquet").write_bytes(b"PAR1 and no more")
    assert local_tables.few_rows({"1": str(folder)}, schemas.RUNS, "run") is None
    assert local_tables.counts([str(folder)]) is None


def test_partitions_are_counted_by_snapshot(tmp_path: Path) -> None:
    schema = T.StructType([schemas.PARTITIONS[name] for name in (*SNAPSHOT_KEY, "partition")])
    rows = [("c", "s1", 0), ("c", "s2", 0), ("c", "s1", 1), ("d", "s1", 0)]
    folders = [str(tmp_path / name) for name in ("run=1", "run=2")]
    local_tables.write(arrow_rows(rows, schema), schema, folders[0])
    local_tables.write(arrow_rows(rows[:2], schema), schema, folders[1])
    assert local_tables.counts(folders) == {("c", "s1"): 3, ("c", "s2"): 2, ("d", "s1"): 1}
