"""KRaft directories and the texts of Kafka's tools through Spark, into the canonical tables."""

from __future__ import annotations

import gzip
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from kraft_log_writer import control, log, record
from understudy import schemas, sources
from understudy.errors import BadInputError
from understudy.snapshot import Snapshots
from understudy.sources import (
    data_sources,
    documents,
    kraft_directory,
    kraft_files,
    text_files,
    text_forms,
)
from understudy.sources.combine import Part, combine
from understudy.sources.kraft_directory import asked

DATA = Path(__file__).parents[1] / "data"
METADATA = "__cluster_metadata-0"

Opened = Callable[[Part], Snapshots]


@pytest.fixture
def opened() -> Iterator[Opened]:
    held: list[Snapshots] = []

    def combined(part: Part) -> Snapshots:
        held.append(combine([part]))
        return held[-1]

    yield combined
    for snapshots in held:
        snapshots.close()


def extract(archive: Path, into: Path) -> Path:
    with tarfile.open(archive) as found:
        found.extractall(into, filter="data")
    return into


def rows(frame: DataFrame, *order: str) -> list[Any]:
    return frame.orderBy(*order).collect()


def test_directories_below_a_path_are_found_though_hidden(
    spark: SparkSession, opened: Opened, tmp_path: Path
) -> None:
    odd = tmp_path / "copies [1] {x}"
    extract(DATA / "kraft-log" / "kraft-3.9" / "node103.tar.gz", odd)
    extract(DATA / "kraft-log" / "kraft-4.3" / "node1.tar.gz", odd)
    found = opened(kraft_files.read(spark, [str(tmp_path)], asked()))
    for name, schema in schemas.SNAPSHOT_TABLES.items():
        assert found.tables()[name].schema.simpleString() == schema.simpleString()
    first, second = rows(found.snapshots, "release")
    assert (first.release, first.snapshot_id, first.controller_id) == ("3.9", "offset-1308", 101)
    assert (second.release, second.snapshot_id, second.controller_id) == ("4.3", "offset-2741", 103)
    assert second.cluster == "corpusClusterIdAAAAAAA"
    assert (second.metadata_version, second.elr_enabled, second.complete) == ("4.3-IV0", True, True)
    assert [row.source for row in rows(found.provenance, "source")] == [
        str(odd / "node1" / METADATA),
        str(odd / "node103" / METADATA),
    ]
    assert found.partitions.count() == 41 + 43
    assert found.quarantine.count() == 0


def test_an_instant_and_every_change(spark: SparkSession, opened: Opened, tmp_path: Path) -> None:
    extract(DATA / "kraft-log" / "kraft-3.9" / "node103.tar.gz", tmp_path)
    path = str(tmp_path / "node103" / METADATA)
    one = opened(kraft_files.read(spark, [path], asked(cluster="c", at="offset:1000")))
    (snapshot,) = one.snapshots.collect()
    assert (snapshot.cluster, snapshot.snapshot_id) == ("c", "offset-1000")
    each = opened(kraft_files.read(spark, [path], asked(cluster="c", every_change=True)))
    assert each.snapshots.count() == 40
    assert each.partitions.count() == 40 * 41
    assert one.input_digest != each.input_digest


def test_what_names_the_cluster_lies_above_the_directory(
    spark: SparkSession, tmp_path: Path
) -> None:
    extract(DATA / "kraft-log" / "kraft-4.3" / "node1.tar.gz", tmp_path)
    path = str(tmp_path / "node1" / METADATA)
    found = sources.load(spark, [path])
    try:
        assert found.keys() == [("corpusClusterIdAAAAAAA", "offset-2741")]
    finally:
        found.close()
    data_sources.register(spark)
    read = spark.read.format("kafka-metadata-log").option("table", "snapshots").load(path)
    assert [row.cluster for row in read.collect()] == ["corpusClusterIdAAAAAAA"]


def test_a_damaged_directory_beside_a_good_one(
    spark: SparkSession, opened: Opened, tmp_path: Path
) -> None:
    leader = [control("LEADER_CHANGE", leaderId=1)]
    good = log(leader, [record("NO_OP_RECORD")])
    for name, data in (("good", good), ("bad", good[:70] + b"x" + good[71:]), ("zeros", bytes(99))):
        directory = tmp_path / name / METADATA
        directory.mkdir(parents=True)
        (directory / f"{'0' * 20}.log").write_bytes(data)
    found = opened(kraft_files.read(spark, [str(tmp_path)], asked(cluster="c")))
    assert [row.snapshot_id for row in found.snapshots.collect()] == ["offset-1"]
    bad, zeros = rows(found.quarantine, "source")
    assert "CRC-32C of the batch does not match" in bad.problems[0]
    assert zeros.problems == ["there is no record in these files"]


def test_a_path_without_metadata(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x")
    with pytest.raises(BadInputError, match="there is no log segment and no checkpoint"):
        kraft_files.read(spark, [str(tmp_path)], asked())


def test_a_file_that_is_too_large_is_refused(
    spark: SparkSession, opened: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = tmp_path / METADATA
    directory.mkdir()
    (directory / f"{'0' * 20}.log").write_bytes(log([record("NO_OP_RECORD")]))
    monkeypatch.setattr(documents, "MAX_FILE_BYTES", 10)
    found = opened(kraft_files.read(spark, [str(tmp_path)], asked(cluster="c")))
    (refused,) = found.quarantine.collect()
    assert "the file is larger than" in refused.problems[0]


def test_forms_are_recognised_by_content() -> None:
    segment = log([record("NO_OP_RECORD")])
    assert kraft_directory.recognise(segment, f"{'0' * 20}.log") == "kraft"
    assert kraft_directory.recognise(b"[2024] INFO", "server.log") is None
    assert kraft_directory.recognise(b"text " * 40, f"{'0' * 20}.log") is None
    assert text_forms.recognise(b"Dumping x\nLog starting offset: 0\n") == "dump-log"
    assert text_forms.recognise(segment) is None


def test_the_texts_of_one_directory_make_one_snapshot_each(
    spark: SparkSession, opened: Opened, tmp_path: Path
) -> None:
    first = extract(DATA / "texts" / "kraft-4.3-reassigning.tar.gz", tmp_path / "one")
    second = extract(DATA / "texts" / "zk-2.8-two-down-new-topics.tar.gz", tmp_path / "two")
    for each in (*first.iterdir(), *second.iterdir()):
        if each.name.startswith(("truth", "reassign-verify", "topics-with")):
            each.unlink()
    compressed = first / "topics-describe.txt"
    (first / "topics-describe.txt.gz").write_bytes(gzip.compress(compressed.read_bytes()))
    compressed.unlink()
    found = opened(text_files.read(spark, [str(tmp_path)], asked(cluster="c"), "describe"))
    assert found.quarantine.count() == 0
    of_file = {row.source: row.snapshot_id for row in found.provenance.collect()}
    whole = of_file[str(first / "topics-describe.txt.gz")]
    assert all(Path(source).name.startswith("topics-describe") for source in of_file)
    (snapshot,) = found.snapshots.where(f"snapshot_id = '{whole}'").collect()
    assert (snapshot.complete, snapshot.mode, snapshot.controller_id) == (True, "kraft", 101)
    assert found.brokers.where(f"snapshot_id = '{whole}' AND alive").count() == 4
    moving = found.partitions.where(f"snapshot_id = '{whole}' AND size(adding) > 0").collect()
    assert [(row.topic, row.adding, row.removing) for row in moving] == [("bulk-data", [1], [4])]


def test_recorded_decisions(spark: SparkSession, tmp_path: Path) -> None:
    for run in ("zk-1.0", "zk-3.9"):
        name = f"{run}-state-change.log.gz"
        (tmp_path / name).write_bytes((DATA / "texts" / name).read_bytes())
    (tmp_path / "broken.gz").write_bytes(b"\x1f\x8b broken")
    found = text_files.recorded(spark, [str(tmp_path)])
    assert found.schema.simpleString() == text_files.RECORDED.simpleString()
    kinds = {row.kind: row["count"] for row in found.groupBy("kind").count().collect()}
    assert kinds["refused"] == 1
    assert min(kinds["partition"], kinds["replica"], kinds["leader_and_isr"]) > 50
    first = found.where("leader_epoch IS NOT NULL").orderBy("source", "line").first()
    assert first is not None
    assert first.time.year == 2026
