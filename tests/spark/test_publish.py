"""What is published is what readers see: all of a run or nothing of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from understudy import column_files, schemas
from understudy import publish as p
from understudy.errors import BadInputError, SchemaMismatchError
from understudy.frames import Tables

NOON = datetime(2026, 11, 16, 12, 0, 0, 123456, tzinfo=UTC)


def run(number: int = 0, *, settings: str = "s") -> p.Run:
    return p.Run.start(
        "replay",
        input_digest="ab" * 32,
        config_digest=settings,
        now=NOON + timedelta(minutes=number),
    )


def topics(spark: SparkSession, *names: str) -> DataFrame:
    rows = [("c1", "s1", name, None, False) for name in names]
    return spark.createDataFrame(rows, schemas.TOPICS)


def publish(
    spark: SparkSession, root: Path, number: int, tables: Mapping[str, DataFrame]
) -> dict[str, int]:
    return p.publish(spark, str(root), run(number), tables, verdict="done")


def names_in(frame: DataFrame) -> list[str]:
    return sorted(row.topic for row in frame.collect())


def test_a_run_is_named_after_its_start_and_its_input() -> None:
    assert run().run_id == "20261116T120000123Z-abababab"
    elsewhere = datetime.fromisoformat("2026-11-16T14:00:00.123456+02:00")
    same = p.Run.start("replay", input_digest="ab" * 32, config_digest="s", now=elsewhere)
    assert same.run_id == run().run_id


def test_rows_are_counted_and_come_back_with_their_run(spark: SparkSession, tmp_path: Path) -> None:
    told: list[str] = []
    counts = p.publish(
        spark,
        str(tmp_path),
        run(),
        {"topics": topics(spark, "a", "b", "c"), "quarantine": empty(spark, "quarantine")},
        verdict="done",
        notes=["a note"],
        on_table=told.append,
    )
    assert counts == {"topics": 3, "quarantine": 0}
    assert sorted(told) == sorted(counts)
    back = p.read(spark, str(tmp_path), "topics")
    assert back.columns == [*schemas.TOPICS.names, "run_id"]
    assert names_in(back) == ["a", "b", "c"]
    assert {row.run_id for row in back.collect()} == {run().run_id}
    row = p.visible_runs(spark, str(tmp_path)).select("*", F.unix_micros("started")).collect()[0]
    assert row.row_counts == counts
    assert row["unix_micros(started)"] == int(NOON.timestamp()) * 1_000_000 + 123456
    assert (row.verdict, row.schema_version) == ("done", schemas.SCHEMA_VERSION)
    assert p.notes_of(spark, str(tmp_path), run().run_id) == ["a note"]


def test_files_can_be_skipped_by_keys_and_numbers(spark: SparkSession, tmp_path: Path) -> None:
    kinds = "array(1) AS replicas, 1 AS leader, 'x' AS outcome"
    table = spark.sql(f"SELECT 'c' AS cluster, 'orders' AS topic, {kinds}")
    p.publish(spark, str(tmp_path), run(), {"other": table}, verdict="done")
    (file,) = (tmp_path / "other").glob("run=*/*.parquet")
    group = pq.ParquetFile(file).metadata.row_group(0)
    columns = (group.column(number) for number in range(group.num_columns))
    told = {column.path_in_schema: bool(column.statistics) for column in columns}
    assert told == {
        "cluster": True,
        "topic": True,
        "leader": True,
        "replicas.list.element": False,
        "outcome": False,
    }


def test_the_json_line_says_what_the_row_says(spark: SparkSession, tmp_path: Path) -> None:
    publish(spark, tmp_path, 0, {"topics": topics(spark, "a")})
    (line,) = (tmp_path / "verdicts" / f"run={run().run_id}").glob("part-*")
    told = json.loads(line.read_text())
    assert told["run_id"] == run().run_id
    assert told["row_counts"] == {"topics": 1}
    assert told["started"] == "2026-11-16T12:00:00.123456+00:00"
    assert set(told) == {*schemas.RUNS.names, "notes"}


def test_a_lost_json_line_loses_no_run(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "verdicts" / f"run={run().run_id}").mkdir(parents=True)
    publish(spark, tmp_path, 0, {"topics": topics(spark, "a")})
    assert names_in(p.read(spark, str(tmp_path), "topics")) == ["a"]
    assert p.notes_of(spark, str(tmp_path), run(1).run_id) == []


def test_an_empty_table_keeps_its_columns(spark: SparkSession, tmp_path: Path) -> None:
    publish(spark, tmp_path, 0, {"partitions": empty(spark, "partitions")})
    directory = tmp_path / "partitions" / f"run={run().run_id}"
    assert spark.read.parquet(str(directory)).schema == schemas.PARTITIONS
    assert p.read(spark, str(tmp_path), "partitions").count() == 0


def test_a_run_without_its_row_is_invisible(spark: SparkSession, tmp_path: Path) -> None:
    publish(spark, tmp_path, 0, {"topics": topics(spark, "seen")})
    died = tmp_path / "topics" / f"run={run(1).run_id}"
    topics(spark, "unseen").write.parquet(str(died))
    # The row itself half written: Spark stages files below _temporary until it commits.
    staged = tmp_path / "runs" / f"run={run(1).run_id}" / "_temporary" / "0"
    whole = next((tmp_path / "runs" / f"run={run(0).run_id}").glob("part-*"))
    staged.mkdir(parents=True)
    (staged / "part-00000.parquet").write_bytes(whole.read_bytes()[:-7])
    assert names_in(p.read(spark, str(tmp_path), "topics")) == ["seen"]
    assert p.visible_runs(spark, str(tmp_path)).count() == 1


def test_garbage_beside_visible_runs_is_never_opened(spark: SparkSession, tmp_path: Path) -> None:
    publish(spark, tmp_path, 0, {"topics": topics(spark, "seen")})
    died = tmp_path / "topics" / f"run={run(1).run_id}"
    died.mkdir()
    (died / "part-00000.parquet").write_bytes(b"not Parquet")
    assert names_in(p.read(spark, str(tmp_path), "topics")) == ["seen"]


def test_a_failing_table_leaves_no_run_behind(spark: SparkSession, tmp_path: Path) -> None:
    broken = topics(spark, "a").withColumn("topic", F.raise_error(F.lit("boom")).cast("string"))
    with pytest.raises(PySparkException, match="boom"):
        publish(spark, tmp_path, 0, {"topics": broken, "brokers": empty(spark, "brokers")})
    assert not p.is_store(spark, str(tmp_path))
    publish(spark, tmp_path, 1, {"topics": topics(spark, "later")})
    assert names_in(p.read(spark, str(tmp_path), "topics")) == ["later"]


def test_a_failing_table_stops_the_others(spark: SparkSession, tmp_path: Path) -> None:
    # Were it not interrupted, counting to here would outlive the test run.
    endless = spark.range(10**15).where(F.hash("id") == F.hash(F.lit("x")) + F.col("id"))
    with pytest.raises(SchemaMismatchError):
        publish(spark, tmp_path, 0, {"endless": endless, "topics": topics(spark).drop("topic")})
    assert not (tmp_path / "endless" / f"run={run().run_id}" / "_SUCCESS").exists()


def test_every_table_is_planned_before_any_is_written(spark: SparkSession, tmp_path: Path) -> None:
    """What is kept in memory is missed by those who plan while others put theirs together."""
    names = ("topics", "brokers", "configs", "partitions", "quarantine", "provenance")
    written: list[set[str]] = []

    def planned(name: str) -> DataFrame:
        written.append({path.name for path in tmp_path.iterdir()})
        return empty(spark, name)

    tables = Tables({name: partial(planned, name) for name in names})
    p.publish(spark, str(tmp_path), run(), tables, verdict="done", threads=2)
    assert written == [set()] * len(names)


def test_what_one_task_writes_many_can_read(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(column_files, "ROWS_PER_FILE", 2)
    publish(spark, tmp_path, 0, {"topics": topics(spark, *"abcde").coalesce(1)})
    files = sorted((tmp_path / "topics" / f"run={run().run_id}").glob("*.parquet"))
    assert [pq.read_metadata(path).num_rows for path in files] == [2, 2, 1]


def test_a_table_of_the_wrong_shape_is_not_written(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(SchemaMismatchError, match="topic_id: expected string, found nothing"):
        publish(spark, tmp_path, 0, {"topics": topics(spark, "a").drop("topic_id")})
    assert not (tmp_path / "topics").exists()


def test_nothing_published_is_overwritten(spark: SparkSession, tmp_path: Path) -> None:
    publish(spark, tmp_path, 0, {"topics": topics(spark, "a")})
    with pytest.raises(PySparkException, match="PATH_ALREADY_EXISTS"):
        publish(spark, tmp_path, 0, {"topics": topics(spark, "b")})
    assert names_in(p.read(spark, str(tmp_path), "topics")) == ["a"]


def test_a_tombstone_hides_a_run(spark: SparkSession, tmp_path: Path) -> None:
    for number, name in enumerate(("old", "new")):
        publish(spark, tmp_path, number, {"topics": topics(spark, name)})
    grave = spark.createDataFrame([(run(0).run_id, NOON, "pruned")], p.TOMBSTONES)
    grave.write.parquet(str(tmp_path / "tombstones" / f"run={run(0).run_id}"))
    assert names_in(p.read(spark, str(tmp_path), "topics")) == ["new"]
    assert [row.run_id for row in p.visible_runs(spark, str(tmp_path)).collect()] == [run(1).run_id]


def test_a_table_only_some_runs_wrote(spark: SparkSession, tmp_path: Path) -> None:
    publish(spark, tmp_path, 0, {"topics": topics(spark, "a")})
    publish(spark, tmp_path, 1, {"quarantine": empty(spark, "quarantine")})
    assert names_in(p.read(spark, str(tmp_path), "topics")) == ["a"]
    assert p.read(spark, str(tmp_path), "brokers").columns == [*schemas.BROKERS.names, "run_id"]


def test_views_show_visible_runs(spark: SparkSession, tmp_path: Path) -> None:
    publish(spark, tmp_path, 0, {"topics": topics(spark, "a", "b")})
    topics(spark, "unseen").write.parquet(str(tmp_path / "topics" / "run=dead"))
    assert p.register_views(spark, str(tmp_path)) == ["runs", "topics"]
    assert spark.sql("SELECT count(*) AS n FROM topics JOIN runs USING (run_id)").first() == (2,)


def test_stores_are_recognised(spark: SparkSession, tmp_path: Path) -> None:
    assert not p.is_store(spark, str(tmp_path / "nowhere"))
    assert not p.is_store(spark, str(tmp_path))
    publish(spark, tmp_path, 0, {"topics": topics(spark, "a")})
    assert p.is_store(spark, str(tmp_path))
    assert p.is_store(spark, f"{tmp_path}/")
    assert not p.is_store(spark, f"{tmp_path.parent}/*")


def test_reading_where_nothing_was_published_says_so(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="no run was ever published there"):
        p.read(spark, str(tmp_path), "topics")
    with pytest.raises(BadInputError, match="no table is called 'topic'; there are audited, "):
        p.read(spark, str(tmp_path), "topic")
    with pytest.raises(BadInputError, match="may not contain"):
        p.visible_runs(spark, f"{tmp_path}/*")


def test_the_same_run_is_found_again(spark: SparkSession, tmp_path: Path) -> None:
    def found(settings: str, code: str) -> p.Published | None:
        return p.find_same(
            spark,
            str(tmp_path),
            job="replay",
            input_digest="ab" * 32,
            config_digest=settings,
            code_version=code,
        )

    assert found("s", p.code_version()) is None
    for number in (0, 1):
        publish(spark, tmp_path, number, {"topics": topics(spark, "a")})
    assert found("s", p.code_version()) == p.Published(run(1).run_id, {"topics": 1}, "done")
    assert found("other", p.code_version()) is None
    assert found("s", "0.0.1") is None


def test_the_same_rows_are_the_same_bytes(spark: SparkSession, tmp_path: Path) -> None:
    for number in (0, 1):
        publish(
            spark, tmp_path, number, {"topics": topics(spark, "a", "b").repartition(2, "topic")}
        )
    first, second = (
        sorted(file.read_bytes() for file in folder.glob("part-*"))
        for folder in sorted((tmp_path / "topics").iterdir())
    )
    assert first == second


def test_other_readers_get_microseconds_and_zstd(spark: SparkSession, tmp_path: Path) -> None:
    publish(spark, tmp_path, 0, {"topics": topics(spark, "a")})
    (file,) = (tmp_path / "runs").glob("run=*/part-*")
    metadata = pq.ParquetFile(file).metadata
    started = metadata.schema.names.index("started")
    assert metadata.schema.column(started).physical_type == "INT64"
    assert metadata.row_group(0).column(0).compression == "ZSTD"


def empty(spark: SparkSession, table: str) -> DataFrame:
    return spark.createDataFrame([], schemas.TABLES[table])
