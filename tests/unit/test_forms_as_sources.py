"""The data sources without Spark: which files a task gets, and the rows it makes of them."""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_schema

from understudy.errors import BadInputError, UsageError
from understudy.sources import forms
from understudy.sources.data_sources import DROP, NAMES, TABLES, Files, FormReader, FormSource
from understudy.sources.zookeeper import history
from zookeeper_samples import DATA as ZOOKEEPER
from zookeeper_samples import directory_of, load, only, recorded, unpacked

DATA = Path(__file__).parents[1] / "data"
NODE = DATA / "kraft-log" / "kraft-3.9" / "node103.tar.gz"
TEXTS = DATA / "texts" / "zk-2.8-two-down-new-topics.tar.gz"


def write(files: dict[str, bytes], into: Path) -> Path:
    for name, data in files.items():
        (into / name).parent.mkdir(parents=True, exist_ok=True)
        (into / name).write_bytes(data)
    return into


def read(form: str, path: Path | str, **options: str) -> list[dict[str, Any]]:
    reader = FormReader(form, {"path": str(path), **options})
    batches = [batch for files in reader.partitions() for batch in reader.read(files)]
    return [row for batch in batches for row in batch.to_pylist()]


def columns(schema: pa.Schema) -> list[tuple[str, str]]:
    """Names and types; what the elements of a list are called is nobody's business."""
    return [(field.name, re.sub(r"<\w+: ", "<", str(field.type))) for field in schema]


def test_every_form_is_a_source_with_a_name_of_its_own() -> None:
    assert list(NAMES) == list(forms.FORMS)
    assert len(set(NAMES.values())) == len(NAMES)


@pytest.mark.parametrize("table", TABLES)
def test_the_columns_are_those_of_the_schema(table: str, tmp_path: Path) -> None:
    path = write(unpacked(TEXTS), tmp_path)
    options = {"path": str(path), "table": table, "cluster": "c", "mode": DROP}
    source = type("Kcat", (FormSource,), {"form": "kcat"})(options)
    reader = source.reader(source.schema())
    batches = [batch for files in reader.partitions() for batch in reader.read(files)]
    assert sum(batch.num_rows for batch in batches) > 0
    expected = columns(to_arrow_schema(TABLES[table], timezone="UTC"))
    assert all(columns(batch.schema) == expected for batch in batches)


def test_a_data_directory_is_one_task(tmp_path: Path) -> None:
    write(directory_of("zk-3.9"), tmp_path / "a" / "version-2")
    write(directory_of("zk-2.8"), tmp_path / "b" / "version-2")
    reader = FormReader("zookeeper", {"path": str(tmp_path), "cluster": "c"})
    assert [files.source for files in reader.partitions()] == [
        str(tmp_path / "a" / "version-2"),
        str(tmp_path / "b" / "version-2"),
    ]
    truth = only(load(directory_of("zk-3.9"), history.asked(cluster="c")))
    rows = read("zookeeper", tmp_path / "a", cluster="c")
    assert [tuple(row.values())[2:] for row in rows] == truth.partitions
    assert {row["snapshot_id"] for row in rows} == {"zxid-0x893"}


def test_an_instant_and_every_change(tmp_path: Path) -> None:
    path = write(directory_of("zk-2.8"), tmp_path)
    zxid, time, _ = recorded("zk-2.8")[20]
    options = {"cluster": "c", "table": "snapshots"}
    (by_zxid,) = read("zookeeper", path, at=f"zxid:0x{zxid:x}", **options)
    assert by_zxid["snapshot_id"] == f"zxid-0x{zxid:x}"
    at = "1970-01-01T00:00:00+00:00"
    with pytest.raises(BadInputError, match="no transaction log reaches back to that time"):
        read("zookeeper", path, at=at, **options)
    (refused,) = read("zookeeper", path, at=at, **{**options, "table": "quarantine"})
    assert refused["source"] == str(path)
    each = read("zookeeper", path, everyChange="true", **options)
    assert len(each) > 50
    assert by_zxid["taken_at"].timestamp() * 1000 == pytest.approx(time, abs=10_000)


def test_a_metadata_log_is_found_below_a_path(tmp_path: Path) -> None:
    write(unpacked(NODE), tmp_path)
    reader = FormReader("kraft", {"path": str(tmp_path)})
    (files,) = reader.partitions()
    assert files.source == str(tmp_path / "node103" / "__cluster_metadata-0")
    (snapshot,) = read("kraft", tmp_path, table="snapshots")
    assert (snapshot["snapshot_id"], snapshot["release"]) == ("offset-1308", "3.9")
    (earlier,) = read("kraft", tmp_path, table="snapshots", at="offset:1000")
    assert earlier["snapshot_id"] == "offset-1000"


def test_texts_of_a_directory_meet(tmp_path: Path) -> None:
    texts = unpacked(DATA / "texts" / "kraft-4.3-reassigning.tar.gz")
    wanted = ("topics-describe.txt", "configs-topics.txt", "endpoints.txt")
    path = write({f"{name}.gz": gzip.compress(texts[name]) for name in wanted}, tmp_path)
    assert read("describe", path, table="snapshots", cluster="c")[0]["complete"] is True
    alone = write({wanted[0]: texts[wanted[0]]}, tmp_path / "alone")
    assert read("describe", alone, table="snapshots", cluster="c")[0]["complete"] is False


def test_files_that_stand_alone_are_a_task_each(tmp_path: Path) -> None:
    names = {name: data for name, data in directory_of("zk-3.9").items() if name != "snapshot.0"}
    kept = {f"_kept/{name}": data for name, data in names.items()}
    path = write({**kept, "_SUCCESS": b"", ".a/b": b"x", ".hidden": b"x", "myid": b"1"}, tmp_path)
    reader = FormReader("zk-snapshot", {"path": str(path), "cluster": "c"})
    alone = [files for files in reader.partitions() if isinstance(files, Files)]
    assert [len(files.paths) for files in alone] == [1] * len(alone)
    assert [Path(files.source).name for files in alone] == sorted(
        name for name in names if name.startswith("snapshot.")
    )
    dump = ZOOKEEPER / "zk-1.0" / "znodes.jsonl.gz"
    assert read("zk-dump", f"file:{dump}", cluster="c")
    assert read("json", ZOOKEEPER / "zk-3.9" / "snapshots.jsonl.gz")


def test_what_is_bad_fails_unless_it_is_to_be_dropped(tmp_path: Path) -> None:
    bad = write({"a.json": b'{"cluster": 1}', "b.json": b"?"}, tmp_path)
    with pytest.raises(BadInputError, match=r"a\.json, line 1"):
        read("json", bad)
    assert read("json", bad, mode="dropMalformed") == []
    assert [row["source"] for row in read("json", bad, table="quarantine")] == [
        str(tmp_path / "a.json"),
        str(tmp_path / "b.json"),
    ]


def test_a_compressed_file_may_be_so_large_inside(tmp_path: Path) -> None:
    dump = ZOOKEEPER / "zk-1.0" / "znodes.jsonl.gz"
    document = write({"a.json.gz": gzip.compress(b"[" + b" " * 5000)}, tmp_path)
    log = DATA / "texts" / "zk-2.8-state-change.log.gz"
    for form, path in (("zk-dump", dump), ("json", document), ("state-change-log", log)):
        named = {} if form == "json" else {"cluster": "c"}
        with pytest.raises(BadInputError, match="larger than 4,096 bytes when uncompressed"):
            read(form, path, maxUncompressed="4k", **named)
    assert read("zk-dump", dump, cluster="c", maxUncompressed="4m")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"maxUncompressed": "-1"}, "'-1' is no size"),
        ({"table": "frobs"}, "table 'frobs' is not one of snapshots, brokers"),
        ({"mode": "PERMISSIVE"}, "mode 'PERMISSIVE' is not one of FAILFAST, DROPMALFORMED"),
        ({"frob": "1"}, "option frob is not one of path, table, mode, cluster"),
        ({"at": "zxid:1"}, "form json is one instant"),
        ({"path": ""}, "no path to read from was given"),
    ],
)
def test_options_that_make_no_sense(options: dict[str, str], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        FormReader("json", {"path": "/x", **options}).partitions()


def test_a_path_with_nothing(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="no such file"):
        FormReader("json", {"path": str(tmp_path / "absent")}).partitions()
    with pytest.raises(BadInputError, match="there is nothing of form kraft"):
        FormReader("kraft", {"path": str(tmp_path)}).partitions()
