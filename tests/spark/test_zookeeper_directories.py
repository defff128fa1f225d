"""ZooKeeper's files through Spark: the same tables as without it, and what it refuses."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from understudy.errors import BadInputError, UsageError
from understudy.snapshot import Snapshots
from understudy.sources import zookeeper_files
from understudy.sources.combine import combine
from understudy.sources.content import Content
from understudy.sources.zookeeper import forms, history
from zookeeper_samples import DATA, directory_of, load, only, recorded, unpacked

Read = Callable[..., Snapshots]
NAMES: dict[str, Any] = {"cluster": "it", "release": "3.9"}


@pytest.fixture
def read(spark: SparkSession) -> Iterator[Read]:
    opened: list[Snapshots] = []

    def read_paths(*paths: Path, form: str = "zookeeper", **asked: Any) -> Snapshots:  # noqa: ANN401
        wanted = history.asked(**{**NAMES, **asked})
        part = zookeeper_files.read(spark, [str(path) for path in paths], form, wanted)
        opened.append(combine([part]))
        return opened[-1]

    yield read_paths
    for snapshots in opened:
        snapshots.close()


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return write(tmp_path / "data" / "version-2", directory_of("zk-3.9"))


def write(directory: Path, files: dict[str, bytes]) -> Path:
    directory.mkdir(parents=True)
    for name, data in files.items():
        (directory / name).write_bytes(data)
    return directory


def rows(content: Content) -> dict[str, list[tuple[Any, ...]]]:
    key = (content.cluster, content.snapshot_id)
    return {
        name: [(*key, *row) for row in getattr(content, name)]
        for name in ("brokers", "topics", "partitions", "configs")
    }


def collected(snapshots: Snapshots) -> dict[str, list[tuple[Any, ...]]]:
    keys = {
        "brokers": ["broker_id"],
        "topics": ["topic"],
        "partitions": ["topic", "partition"],
        "configs": ["scope", "name", "key"],
    }
    return {
        name: [tuple(row) for row in snapshots.tables()[name].orderBy(*key).collect()]
        for name, key in keys.items()
    }


def ids(snapshots: Snapshots) -> list[str]:
    return sorted(row.snapshot_id for row in snapshots.snapshots.collect())


def test_a_data_directory_gives_the_tables(read: Read, directory: Path) -> None:
    (directory / "acceptedEpoch").write_text("0")
    found = read(directory.parent)
    truth = only(load(directory_of("zk-3.9"), history.asked(**NAMES)))
    assert collected(found) == rows(truth)
    (snapshot,) = found.snapshots.collect()
    assert snapshot.snapshot_id == "zxid-0x893"
    assert snapshot.content_digest == truth.snapshot[-1]
    assert (snapshot.source_form, snapshot.release, snapshot.complete) == ("zookeeper", "3.9", True)
    (provenance,) = found.provenance.collect()
    assert provenance.source == str(directory)
    assert provenance.position == "zxid 0x893 (snapshot.7e5, log.7e6)"
    assert found.quarantine.isEmpty()


def test_an_instant_by_zxid_and_by_time(read: Read, directory: Path) -> None:
    zxid, time, _ = recorded("zk-3.9")[40]
    by_zxid = read(directory, at=f"zxid:0x{zxid:x}")
    by_time = read(directory, at=datetime.fromtimestamp(time / 1000, UTC).isoformat())
    truth = only(load(directory_of("zk-3.9"), history.asked(**NAMES, at=f"zxid:0x{zxid:x}")))
    assert collected(by_zxid) == rows(truth)
    assert [row[2:] for row in collected(by_time)["partitions"]] == truth.partitions


def test_every_change_is_a_snapshot(read: Read, tmp_path: Path) -> None:
    files = directory_of("zk-1.0")
    path = write(tmp_path / "z", files)
    found = read(path, every_change=True)
    truth = load(files, history.asked(**NAMES, every_change=True))
    assert ids(found) == sorted(parsed.snapshot_id or "" for parsed in truth)
    digests = {row.content_digest for row in found.snapshots.collect()}
    assert digests == {parsed.content.snapshot[-1] for parsed in truth if parsed.content}
    assert found.provenance.count() == len(truth)


def test_directories_side_by_side_and_with_odd_names(read: Read, tmp_path: Path) -> None:
    write(tmp_path / "_backup" / "a{b}[c]*" / "version-2", directory_of("zk-2.8"))
    write(tmp_path / "other" / "version-2", directory_of("zk-1.0"))
    found = read(tmp_path, cluster=None)
    assert ids(found) == ["zxid-0x346", "zxid-0x4fa"]
    assert len({row.cluster for row in found.snapshots.collect()}) == 2


def test_logs_kept_elsewhere(read: Read, tmp_path: Path) -> None:
    files = directory_of("zk-2.8")
    kept = {name: data for name, data in files.items() if name.startswith("snapshot.")}
    data = write(tmp_path / "data" / "version-2", {k: kept[k] for k in ("snapshot.4f2",)})
    logs = write(
        tmp_path / "log" / "version-2",
        {name: content for name, content in files.items() if name.startswith("log.")},
    )
    found = read(data, logs)
    assert ids(found) == ["zxid-0x4fa"]


def test_the_same_directory_twice_is_one(read: Read, directory: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(directory, copy)
    found = read(directory, copy, directory)
    assert ids(found) == ["zxid-0x893"]
    assert found.quarantine.isEmpty()


def test_a_damaged_directory_does_not_spoil_the_others(read: Read, tmp_path: Path) -> None:
    files = directory_of("zk-1.0")
    damaged = bytearray(files["log.242"])
    damaged[5000] ^= 1
    write(tmp_path / "good", directory_of("zk-2.8"))
    bad = write(tmp_path / "bad", {**files, "log.242": bytes(damaged)})
    gone = write(tmp_path / "gone", {"log.242": files["log.242"]})
    found = read(tmp_path)
    assert ids(found) == ["zxid-0x4fa"]
    refused = {row.source: row.problems for row in found.quarantine.collect()}
    assert set(refused) == {str(bad), str(gone)}
    assert "good records follow" in refused[str(bad)][0]
    assert "no good snapshot" in refused[str(gone)][0]


def test_an_instant_before_the_files_is_refused(read: Read, directory: Path) -> None:
    found = read(directory, at="1999-01-01T00:00:00Z")
    (refused,) = found.quarantine.collect()
    assert refused.problems == ["no transaction log reaches back to that time"]


def test_snapshot_files_each_by_itself(read: Read, tmp_path: Path) -> None:
    for name, data in unpacked(DATA / "formats.tar.gz").items():
        write((tmp_path / name).parent, {Path(name).name: data})
    write(tmp_path / "more", {"log.893": b"ZKLG", "acceptedEpoch": b"0", "snapshot.9": b"torn"})
    found = read(tmp_path, form=forms.SNAPSHOT)
    assert ids(found) == ["snapshot-0x893"]
    (refused,) = found.quarantine.collect()
    assert refused.source == str(tmp_path / "more" / "snapshot.9")
    assert "this is no ZooKeeper snapshot" in refused.problems[0]


def test_dumps(read: Read) -> None:
    paths = [DATA / run / "znodes.jsonl.gz" for run in ("zk-1.0", "zk-2.8", "zk-3.9")]
    found = read(*paths, form=forms.DUMP)
    assert len(ids(found)) == 3
    assert {row.source_form for row in found.snapshots.collect()} == {"zk-dump"}


def test_what_makes_no_sense_is_refused(read: Read, directory: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="are for data directories"):
        read(directory, form=forms.SNAPSHOT, at="zxid:1")
    empty = write(tmp_path / "empty", {"readme.txt": b"nothing"})
    with pytest.raises(BadInputError, match=r"there is no snapshot\.<zxid> and no log\.<zxid>"):
        read(empty)
    with pytest.raises(BadInputError, match="no such file"):
        read(tmp_path / "absent")


def test_a_file_that_is_too_large_is_said(
    read: Read, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("understudy.sources.documents.MAX_FILE_BYTES", 30_000)
    found = read(directory)
    (refused,) = found.quarantine.collect()
    assert "the file is larger than" in refused.problems[0]
