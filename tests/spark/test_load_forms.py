"""Every form through ``understudy load``, by name and by recognition, and what a replay says."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import understudy
from commands import told
from understudy import cli, publish, sources
from understudy.errors import BadInputError, UsageError
from understudy.snapshot import Snapshots
from understudy.sources.forms import FORMS, Wanted
from understudy.sources.zookeeper import history
from zookeeper_samples import DATA as ZOOKEEPER
from zookeeper_samples import directory_of, load, only, recorded, unpacked

pytestmark = pytest.mark.usefixtures("spark")

DATA = Path(__file__).parents[1] / "data"
TEXTS = DATA / "texts" / "kraft-4.3-reassigning.tar.gz"
NODE = DATA / "kraft-log" / "kraft-4.3"
STATES = ("topic", "partition", "leader", "leader_epoch_change", "isr", "outcome")

Loaded = Callable[..., Snapshots]


def write(into: Path, files: dict[str, bytes]) -> Path:
    for name, data in files.items():
        (into / name).parent.mkdir(parents=True, exist_ok=True)
        (into / name).write_bytes(data)
    return into


def texts(*names: str) -> dict[str, bytes]:
    found = unpacked(TEXTS)
    return {name: found[name] for name in names}


def samples(root: Path) -> dict[str, Path]:
    """A directory for every form, each with what an operator would keep there."""
    document = recorded("zk-2.8")[3][2]
    log = (DATA / "texts" / "zk-2.8-state-change.log.gz").read_bytes()
    dump = (ZOOKEEPER / "zk-2.8" / "znodes.jsonl.gz").read_bytes()
    snapshot = directory_of("zk-1.0")
    files: dict[str, dict[str, bytes]] = {
        "json": {"one.json.gz": gzip.compress(json.dumps(document).encode())},
        "zookeeper": directory_of("zk-3.9") | {"acceptedEpoch": b"0"},
        "zk-snapshot": {max(name for name in snapshot if "snap" in name): b""},
        "zk-dump": {"znodes": dump},
        "kraft": unpacked(NODE / "node1.tar.gz"),
        "dump-log": texts("dump-log-checkpoint.txt"),
        "describe": texts("topics-describe.txt", "configs-topics.txt", "endpoints.txt"),
        "kcat": texts("kcat.json"),
        "reassignment": texts("reassign-generate.txt"),
        "state-change-log": {"state-change.log": gzip.decompress(log)},
    }
    files["zk-snapshot"] = {name: snapshot[name] for name in files["zk-snapshot"]}
    for form in FORMS:
        write(root / form / "a [copy] {of} it", files[form])
    return {form: root / form for form in FORMS}


@pytest.fixture
def loaded(spark: SparkSession) -> Iterator[Loaded]:
    opened: list[Snapshots] = []

    def load_paths(*paths: Path | str, **wanted: Any) -> Snapshots:  # noqa: ANN401
        opened.append(sources.load(spark, [str(path) for path in paths], Wanted(**wanted)))
        return opened[-1]

    yield load_paths
    for snapshots in opened:
        snapshots.close()


def digests(snapshots: Snapshots) -> dict[str, list[str]]:
    """The content of every snapshot, by form."""
    found: dict[str, list[str]] = {}
    for row in snapshots.snapshots.collect():
        found.setdefault(row.source_form, []).append(row.content_digest)
    return found


def test_a_directory_of_every_form_is_recognised_and_read_as_by_name(
    loaded: Loaded, tmp_path: Path
) -> None:
    places = samples(tmp_path / "in")
    write(tmp_path / "in", {"notes.md": b"# Notes", "_committed": b"?"})
    mixed = loaded(tmp_path / "in", cluster="here")
    recognised = digests(mixed)
    assert {form: len(found) for form, found in recognised.items()} == dict.fromkeys(FORMS, 1)
    refused = {Path(row.source).name: row.problems for row in mixed.quarantine.collect()}
    assert "none of the forms known" in refused["notes.md"][0]
    assert set(refused) == {"notes.md"}
    truth = only(load(directory_of("zk-3.9"), history.asked(cluster="here")))
    assert recognised["zookeeper"] == [truth.snapshot[-1]]
    by_name = [
        loaded(place, form=form, cluster="here" if FORMS[form].takes_cluster else None)
        for form, place in places.items()
    ]
    for form, snapshots in zip(places, by_name, strict=True):
        assert digests(snapshots) == {form: recognised[form]}, form
    assert reduce(DataFrame.unionAll, (each.quarantine for each in by_name)).isEmpty()


ODD = ("a b", "50%20 off", "c#d=e&f", "_kept/_away", "größe+1", "what? [this] {one}")


def test_paths_may_look_like_anything(loaded: Loaded, tmp_path: Path) -> None:
    root = tmp_path / "2026-11-17T02:16:00Z"
    documents = [each for _, _, each in recorded("zk-2.8")[: len(ODD)]]
    snapshot = directory_of("zk-1.0")
    newest = max(name for name in snapshot if "snap" in name)
    here = root / "all of them"
    for name, document in zip(ODD, documents, strict=True):
        write(tmp_path / name, {"one.json": json.dumps(document).encode()})
        write(tmp_path / name / "_zk 1", {newest: snapshot[newest]})
    everything = loaded(tmp_path, cluster="here")
    expected = {document["snapshot_id"] for document in documents} | {
        f"snapshot-0x{int(newest.partition('.')[2], 16):x}"
    }
    assert {row.snapshot_id for row in everything.snapshots.collect()} == expected
    assert everything.quarantine.isEmpty()
    read_from = {row.source for row in everything.provenance.collect()}
    assert read_from >= {str(tmp_path / name / "one.json") for name in ODD}
    plain = [name for name in ODD if "?" not in name]  # which is a pattern
    above = (f"file:{tmp_path}", f"file://{tmp_path}", str(tmp_path))
    named = (f"{above[place % 3]}/{name}/one.json" for place, name in enumerate(plain))
    assert loaded(*named).snapshots.count() == len(plain)
    (tmp_path / "_SUCCESS").touch()
    assert loaded(tmp_path, form="json").snapshots.count() == len(ODD)
    globbed = loaded(f"{tmp_path}/*/one.json", f"{tmp_path}/_kept/*/one.json")
    assert globbed.snapshots.count() == len(ODD)
    # Hadoop's patterns stumble over names with a colon, and nothing else does.
    write(here, {"one.json": json.dumps(documents[0]).encode()})
    assert loaded(root).snapshots.count() == 1
    assert loaded(here / "one.json").snapshots.count() == 1
    with pytest.raises(BadInputError, match="where a name has a colon"):
        loaded(f"{root}/*/one.json")


def test_options_are_checked_against_what_is_found(loaded: Loaded, tmp_path: Path) -> None:
    document = write(tmp_path, {"one.json": json.dumps(recorded("zk-2.8")[3][2]).encode()})
    with pytest.raises(UsageError, match="form json names its cluster itself"):
        loaded(document, cluster="c")
    with pytest.raises(UsageError, match="form json is one instant"):
        loaded(document, at="2026-01-01")


def test_a_load_is_published_once_and_says_what_it_is(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = write(tmp_path / "in", texts("topics-describe.txt") | {"x": b"?"})
    store = str(tmp_path / "store")
    command = ("load", str(source), "--into", store, "--cluster", "here")
    first = told(capsys, 65, *command)
    assert not first["already_published"]
    (form,) = first["forms"]
    assert (form["form"], form["snapshots"], form["complete"]) == ("describe", 1, 0)
    assert {"partitions.leader_epoch", "snapshots.release"} < set(form["unknown"])
    assert "partitions.isr" not in form["unknown"]
    assert form["cannot_answer"] == ["what-if", "audit of epochs"]
    (incomplete,) = first["incomplete"]["first"]
    assert "brokers are inferred" in incomplete["position"]
    (refused,) = first["quarantine"]["first"]
    assert refused["source"] == str(source / "x")

    again = told(capsys, 65, *command)
    assert again["already_published"]
    assert {**again, "already_published": False} == first
    # The same bytes with another release are other content, which the store refuses to hold.
    other = told(capsys, 65, *command, "--release", "4.3")
    assert not other["already_published"]
    assert other["tables"]["snapshots"] == 0
    assert publish.read(spark, store, "snapshots").count() == 1

    (source / "x").unlink()
    assert cli.main(["load", str(source), "--into", f"{store}2", "--cluster", "here"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("Loaded 1 snapshot: ")
    assert "describe does not know: brokers.broker_epoch" in text
    assert "  describe cannot answer: what-if, audit of epochs\n" in text
    assert "Not complete: 1 snapshot\n  here/describe-" in text


def test_nothing_good_and_nothing_at_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    into = str(tmp_path / "store")
    source = write(tmp_path / "in", {"x": b"?", "myid": b"1"})
    answer = told(capsys, 65, "load", str(source), "--into", into)
    assert "not one good snapshot" in answer["error"]
    assert any("none of the forms known" in problem for problem in answer["problems"])
    answer = told(capsys, 65, "load", str(source / "myid"), "--into", into)
    assert answer["error"] == "nothing was found to read"
    missing = str(tmp_path / "nowhere")
    assert missing in str(told(capsys, 65, "load", missing, "--into", into))
    assert not (tmp_path / "store").exists()


def test_what_was_loaded_is_replayed_like_the_documents_of_the_same_instants(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A ZooKeeper directory, a metadata log and a described cluster, each with its document."""
    store, out = str(tmp_path / "store"), str(tmp_path / "out")
    zookeeper = write(tmp_path / "zk" / "version-2", directory_of("zk-3.9"))
    zxid, _, at_zxid = recorded("zk-3.9")[10]
    node = write(tmp_path / "kraft", unpacked(NODE / "node1.tar.gz"))
    with gzip.open(NODE / "documents.jsonl.gz") as lines:
        at_offset = json.loads(list(lines)[-1])
    found = unpacked(TEXTS)
    described = write(
        tmp_path / "texts",
        {
            name: data
            for name, data in found.items()
            if not name.startswith(("topics-", "kcat", "dump-log", "truth", "reassign-generate"))
            or name == "topics-describe.txt"
        },
    )
    documents = {
        "zookeeper": at_zxid,
        "kraft": at_offset["document"],
        "describe": json.loads(found["truth.json"]),
    }
    for form, document in documents.items():
        renamed = {**document, "cluster": f"{form} truth"}
        write(described, {f"{form}.json": json.dumps(renamed).encode()})
    for path, *options in (
        (zookeeper, "--cluster", "zookeeper", "--release", "3.9", "--at", f"zxid:0x{zxid:x}"),
        (node, "--cluster", "kraft", "--at", f"offset:{at_offset['offset']}"),
        (described, "--cluster", "describe", "--release", "4.3"),
    ):
        told(capsys, 0, "load", str(path), "--into", store, *map(str, options))
    scenario = {"scenario": "lose-2", "events": [{"type": "broker_failure", "brokers": [2]}]}
    asked = write(tmp_path, {"lose-2.json": json.dumps(scenario).encode()}) / "lose-2.json"
    command = ("replay", store, "--scenarios", str(asked), "--tables", "partition_states")
    assert told(capsys, 0, *command, "--out", out)["replays"]["count"] == 6
    states = publish.read(spark, out, "partition_states").withColumn(
        "leader_epoch_change", F.col("leader_epoch") - F.col("leader_epoch_before")
    )
    answers: dict[str, list[Any]] = {}
    for row in states.orderBy("cluster", "topic", "partition").collect():
        answers.setdefault(row.cluster, []).append(tuple(row[name] for name in STATES))
    for form in documents:
        assert answers[form] == answers[f"{form} truth"], form
        assert any(state[-1] == "elected" for state in answers[form]), form


def test_forms_are_data_sources(spark: SparkSession, tmp_path: Path) -> None:
    understudy.register(spark)
    path = write(tmp_path / "zk" / "version-2", directory_of("zk-2.8"))
    reader = spark.read.format("kafka-zookeeper").option("cluster", "here")
    truth = only(load(directory_of("zk-2.8"), history.asked(cluster="here")))
    partitions = reader.load(str(path)).orderBy("topic", "partition").collect()
    assert [tuple(row)[2:] for row in partitions] == truth.partitions
    (snapshot,) = reader.option("table", "snapshots").load(str(path)).collect()
    assert snapshot.content_digest == truth.snapshot[-1]
    assert snapshot.taken_at.timestamp() * 1_000_000 == truth.snapshot[0]
