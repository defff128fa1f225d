"""Documents and stores through Spark: the canonical tables, the quarantine, the digests."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from understudy import publish, scenarios, schemas, sources
from understudy.errors import BadInputError, UsageError
from understudy.scenarios import Scenario
from understudy.snapshot import Snapshots
from understudy.sources import documents, few_documents
from understudy.sources import rows as source_rows

DATA = Path(__file__).parents[1] / "data" / "documents"

Read = Callable[..., Snapshots]


@pytest.fixture
def read(spark: SparkSession) -> Iterator[Read]:
    opened: list[Snapshots] = []

    def read_paths(*paths: object) -> Snapshots:
        opened.append(sources.read(spark, [str(path) for path in paths]))
        return opened[-1]

    yield read_paths
    for snapshots in opened:
        snapshots.close()


def document(snapshot_id: str = "s1", *, leader: int = 1, cluster: str = "c1") -> dict[str, Any]:
    return {
        "cluster": cluster,
        "snapshot_id": snapshot_id,
        "taken_at": "2026-01-01T00:00:00Z",
        "brokers": [{"id": 1, "epoch": 2**40, "rack": "a"}, {"id": 2, "log_dirs": ["d2", "d1"]}],
        "configs": {"unclean.leader.election.enable": "true"},
        "topics": [
            {
                "name": "orders",
                "configs": {"min.insync.replicas": "2"},
                "partitions": [
                    {
                        "partition": 0,
                        "replicas": [3, 1, 2],
                        "state": {"leader": leader, "leader_epoch": 4, "isr": [2, 1]},
                    },
                    {"partition": 1, "replicas": [2, 1]},
                ],
            }
        ],
    }


def write(path: Path, *documents: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(
        each if isinstance(each, str) else json.dumps(each) + "\n" for each in documents
    ).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


def ids(frame: DataFrame) -> list[str]:
    return sorted(row.snapshot_id for row in frame.collect())


def test_the_tables_are_those_of_the_schemas(read: Read, tmp_path: Path) -> None:
    found = read(write(tmp_path / "a.json", document()))
    for name, schema in schemas.SNAPSHOT_TABLES.items():
        assert found.tables()[name].schema.simpleString() == schema.simpleString()
    assert found.quarantine.schema.simpleString() == schemas.QUARANTINE.simpleString()
    (snapshot,) = found.snapshots.collect()
    assert snapshot.taken_at.isoformat() == "2026-01-01T00:00:00"
    assert (snapshot.mode, snapshot.release, snapshot.controller_id) == ("zk", "3.9", 1)
    first, second = found.brokers.orderBy("broker_id").collect()
    assert (first.broker_epoch, first.rack, first.log_dirs) == (2**40, "a", None)
    assert (second.broker_epoch, second.rack, second.log_dirs) == (0, None, ["d2", "d1"])
    led, never_led = found.partitions.orderBy("partition").collect()
    assert (led.topic, led.replicas, led.isr) == ("orders", [3, 1, 2], [2, 1])
    assert (led.adding, led.elr, led.has_state) == ([], None, True)
    assert (never_led.has_state, never_led.leader, never_led.isr) == (False, None, None)
    assert sorted(map(tuple, found.configs.drop("cluster", "snapshot_id").collect())) == [
        ("cluster", None, "unclean.leader.election.enable", "true"),
        ("topic", "orders", "min.insync.replicas", "2"),
    ]
    (provenance,) = found.provenance.collect()
    assert (provenance.source, provenance.position) == (str(tmp_path / "a.json"), "line 1")
    assert found.quarantine.count() == 0


def test_a_few_rows_are_computed_at_once_and_are_the_same(
    read: Read, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "a.jsonl", document("a"), document("b"), document("b", leader=2), "{")
    few = read(path)
    # 2 brokers, 1 topic, 2 partitions and 2 settings of each document that could be read.
    assert (few.rows, few.held, few.at_most(10)) == (21, (), 210)
    monkeypatch.setattr("understudy.sources.combine.FEW_ROWS", 20)
    kept = read(path)
    assert (kept.rows, kept.at_most(10)) == (None, None)
    assert kept.held
    assert few.input_digest == kept.input_digest
    for name, table in {**few.tables(), "quarantine": few.quarantine}.items():
        other = {**kept.tables(), "quarantine": kept.quarantine}[name]
        assert table.schema == other.schema
        assert sorted(table.collect(), key=str) == sorted(other.collect(), key=str)
    assert few.quarantine.count() == 3


def test_a_few_documents_of_this_machine_are_read_as_spark_reads_them(
    spark: SparkSession, read: Read, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "in" / "a.jsonl", document("a"), document("b"), "{")
    write(tmp_path / "in" / "below" / "c d.json", document("c"))
    write(tmp_path / "in" / "e.gz", document("e"))
    here = few_documents.read(spark, [str(tmp_path / "in")])
    assert here is not None
    assert (here.rows, here.held) == (28, ())
    monkeypatch.setattr("understudy.sources.few_documents.FEW_ROWS", 27)
    assert few_documents.read(spark, [str(tmp_path / "in")]) is None
    by_spark = read(tmp_path / "in")
    assert here.input_digest == by_spark.input_digest
    for name, table in {**here.tables(), "quarantine": here.quarantine}.items():
        other = {**by_spark.tables(), "quarantine": by_spark.quarantine}[name]
        assert table.schema == other.schema
        assert sorted(table.collect(), key=str) == sorted(other.collect(), key=str)


def test_files_directories_globs_and_compression(read: Read, tmp_path: Path) -> None:
    write(tmp_path / "a.json", document("a"))
    write(tmp_path / "deep" / "date=2026-01-01" / "b.jsonl.gz", document("b"), document("b2"))
    write(tmp_path / "deep" / "no ending, gzip", document("c"))
    (tmp_path / "deep" / "_SUCCESS").touch()
    hidden = write(tmp_path / "_hidden.json", document("h"))
    assert ids(read(tmp_path).snapshots) == ["a", "b", "b2", "c"]
    assert ids(read(tmp_path / "*.json").snapshots) == ["a"]
    assert ids(read(tmp_path / "deep", tmp_path / "a.json").snapshots) == ["a", "b", "b2", "c"]
    assert ids(read(hidden).snapshots) == ["h"]
    assert ids(read(tmp_path / "_*.json", tmp_path / "a.json").snapshots) == ["a", "h"]


def test_thousands_of_documents_in_one_read(read: Read, tmp_path: Path) -> None:
    for file in range(4):
        write(
            tmp_path / f"{file}.jsonl.gz",
            *(document(f"s{file}-{n}", cluster="k") for n in range(750)),
        )
    found = read(tmp_path)
    assert found.snapshots.select("snapshot_id").distinct().count() == 3000
    assert found.partitions.count() == 6000
    assert found.provenance.distinct().count() == 3000


def test_a_long_document_loses_nothing(read: Read, tmp_path: Path) -> None:
    many = 2 * source_rows.LIST_ROWS + 7
    long = {
        **document(),
        "topics": [
            {
                "name": "t",
                "partitions": [{"partition": n, "replicas": [n % 7]} for n in range(many)],
            }
        ],
    }
    found = read(write(tmp_path / "long.json", long))
    summed = found.partitions.selectExpr("count(*)", "count(DISTINCT partition)", "max(partition)")
    assert tuple(summed.collect()[0]) == (many, many, many - 1)
    assert (found.snapshots.count(), found.topics.count(), found.brokers.count()) == (1, 1, 2)


def test_bad_documents_go_to_quarantine_beside_good_ones(read: Read, tmp_path: Path) -> None:
    broken = {**document("s2"), "mode": "?", "extra": 1}
    path = write(tmp_path / "mixed.jsonl", document("s1"), broken, "{oops\n", document("s4"))
    torn = tmp_path / "torn.json.gz"
    torn.write_bytes(gzip.compress(json.dumps(document("s5")).encode())[:-5])
    found = read(tmp_path)
    assert ids(found.snapshots) == ["s1", "s4"]
    assert ids(found.topics) == ["s1", "s4"]
    refused = found.quarantine.orderBy("source", "position").collect()
    assert [tuple(row)[:4] for row in refused] == [
        (str(path), "line 2", "c1", "s2"),
        (str(path), "line 3", None, None),
        (str(torn), "line 1", None, None),
    ]
    assert refused[0].problems == [
        'mode: expected "zk" or "kraft", found "?"',
        'unknown key "extra"',
    ]
    assert refused[2].problems == ["the gzip data is truncated"]


def test_a_file_too_large_to_hand_over_is_refused_alone(read: Read, tmp_path: Path) -> None:
    write(tmp_path / "small.json", document())
    with (tmp_path / "large.json").open("wb") as sparse:
        sparse.truncate(documents.MAX_FILE_BYTES + 1)
    found = read(tmp_path)
    assert ids(found.snapshots) == ["s1"]
    (refused,) = found.quarantine.collect()
    assert refused.source == str(tmp_path / "large.json")
    assert refused.problems == [
        "the file is larger than 1,073,741,824 bytes; compress it or split it"
    ]


def test_a_changed_file_is_read_again(read: Read, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    first, second = read(write(path, document("a"))), read(write(path, document("b")))
    assert (ids(first.snapshots), ids(second.snapshots)) == (["a"], ["b"])


def test_the_same_snapshot_twice_is_one(read: Read, tmp_path: Path) -> None:
    pretty = json.dumps(document(), indent=2)
    first = write(tmp_path / "1.jsonl", document("other"), document(), document())
    write(tmp_path / "2.json", pretty)
    found = read(tmp_path)
    assert ids(found.snapshots) == ["other", "s1"]
    assert found.partitions.count() == 4
    assert found.configs.count() == 4
    places = {row.snapshot_id: (row.source, row.position) for row in found.provenance.collect()}
    assert places["s1"] == (str(first), "line 2")
    assert found.quarantine.count() == 0


def test_a_file_given_by_two_paths_is_read_once(read: Read, tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", document(), "{oops\n")
    twice = read(path, tmp_path / "*.jsonl")
    assert (twice.snapshots.count(), twice.partitions.count()) == (1, 2)
    assert twice.quarantine.count() == 1
    assert twice.input_digest == read(path).input_digest


def test_contradicting_snapshots_are_all_refused(read: Read, tmp_path: Path) -> None:
    one = write(tmp_path / "1.jsonl", document("fine"), document(leader=1))
    two = write(tmp_path / "2.json", document(leader=2))
    found = read(tmp_path)
    for name, table in found.tables().items():
        assert set(ids(table)) == {"fine"}, name
    refused = found.quarantine.orderBy("source").collect()
    says = "snapshot s1 of cluster c1 has other content in "
    assert [tuple(row) for row in refused] == [
        (str(one), "line 2", "c1", "s1", [f"{says}{two}, line 1"]),
        (str(two), "line 1", "c1", "s1", [f"{says}{one}, line 2"]),
    ]


def test_the_input_digest_is_of_the_bytes(read: Read, tmp_path: Path) -> None:
    a = write(tmp_path / "x" / "a.json", document("a"))
    b = write(tmp_path / "x" / "b.json", document("b"))
    copied = write(tmp_path / "y" / "b2.json", document("b"))
    both = read(a, b).input_digest
    assert read(b, a).input_digest == both
    assert read(tmp_path / "x").input_digest == both
    assert read(a, copied).input_digest == both
    assert read(a).input_digest != both
    write(b, document("b", leader=2))
    assert read(tmp_path / "x").input_digest != both


@pytest.mark.parametrize("path", ["missing.json", "missing/*.json", "empty"])
def test_a_path_that_matches_nothing_is_named(read: Read, tmp_path: Path, path: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadInputError, match="nothing was found to read") as refusal:
        read(tmp_path / path)
    assert str(tmp_path / path) in refusal.value.problems[0]


def test_of_many_paths_only_the_missing_ones_are_named(read: Read, tmp_path: Path) -> None:
    there = write(tmp_path / "a.json", document())
    with pytest.raises(BadInputError) as refusal:
        read(there, tmp_path / "no.json", tmp_path / "nor.json")
    assert refusal.value.problems == (
        f"{tmp_path}/no.json: no such file",
        f"{tmp_path}/nor.json: no such file",
    )


def test_no_path_is_wrong_usage(spark: SparkSession) -> None:
    with pytest.raises(UsageError):
        sources.read(spark, [])


def test_only_some_snapshots(read: Read, tmp_path: Path) -> None:
    found = read(write(tmp_path / "a.jsonl", document("a"), document("b"), "{oops\n"))
    chosen = found.only(found.snapshots.where("snapshot_id = 'b'"))
    for name, table in chosen.tables().items():
        assert set(ids(table)) == {"b"}, name
        assert table.schema == found.tables()[name].schema
    assert chosen.quarantine.count() == 1
    assert chosen.input_digest == found.input_digest


def test_documents_of_real_clusters(read: Read) -> None:
    found = read(DATA)
    assert found.quarantine.count() == 0
    modes = {row.mode for row in found.snapshots.select("mode").distinct().collect()}
    assert modes == {"zk", "kraft"}


# --- Stores ------------------------------------------------------------------------------------


def load(spark: SparkSession, root: Path, path: Path) -> None:
    with closing(sources.read(spark, [str(path)])) as found:
        run = publish.Run.start("load", input_digest=found.input_digest, config_digest="")
        publish.publish(spark, str(root), run, found.tables(), verdict="done")


def content(found: Snapshots) -> dict[str, list[str]]:
    return {name: sorted(map(str, table.collect())) for name, table in found.tables().items()}


def test_a_store_gives_back_what_was_loaded(
    spark: SparkSession, read: Read, tmp_path: Path
) -> None:
    path = write(tmp_path / "a.jsonl", document("a"), document("b"))
    load(spark, tmp_path / "store", path)
    assert content(read(tmp_path / "store")) == content(read(path))
    assert (
        content(read(tmp_path / "store", path))["partitions"] == content(read(path))["partitions"]
    )
    assert read(f"{tmp_path}/store/").input_digest == read(tmp_path / "store").input_digest


def test_runs_of_a_store_are_one_set(spark: SparkSession, read: Read, tmp_path: Path) -> None:
    store = tmp_path / "store"
    load(spark, store, write(tmp_path / "a.jsonl", document("a"), document("b")))
    before = read(store).input_digest
    load(spark, store, write(tmp_path / "b.jsonl", document("b"), document("c")))
    found = read(store)
    assert found.input_digest != before
    assert ids(found.snapshots) == ["a", "b", "c"]
    assert found.partitions.count() == 6
    load(spark, store, write(tmp_path / "c.jsonl", document("c", leader=2)))
    found = read(store, write(tmp_path / "d.jsonl", document("a", leader=2), document("d")))
    assert ids(found.snapshots) == ["b", "d"]
    refused = found.quarantine.orderBy("snapshot_id", "source", "position").collect()
    assert [row.snapshot_id for row in refused] == ["a", "a", "c", "c"]
    assert refused[0].source == str(tmp_path / "d.jsonl")
    assert f"other content in {store}, run " in refused[0].problems[0]
    assert refused[2].source == str(store)


def test_a_store_that_lacks_columns_or_tables_is_named(
    spark: SparkSession, read: Read, tmp_path: Path
) -> None:
    path = write(tmp_path / "a.jsonl", document("a"))
    with closing(sources.read(spark, [str(path)])) as found:
        tables = found.tables()
        run = publish.Run.start("load", input_digest="0" * 64, config_digest="")
        lacking = {name: tables[name] for name in tables if name != "topics"}
        publish.publish(spark, str(tmp_path / "lacking"), run, lacking, verdict="done")
        publish.publish(spark, str(tmp_path / "narrow"), run, tables, verdict="done")
        (partitions,) = (tmp_path / "narrow" / "partitions").iterdir()
        narrow = tables["partitions"].drop("isr").withColumn("leader", tables["partitions"].topic)
        narrow.write.mode("overwrite").parquet(str(partitions))
        publish.publish(
            spark, str(tmp_path / "none"), run, {"quarantine": found.quarantine}, verdict="done"
        )
    with pytest.raises(BadInputError, match="lacking: the snapshot store is not complete") as one:
        read(tmp_path / "lacking")
    assert one.value.problems == (f"run {run.run_id}: no table topics",)
    with pytest.raises(BadInputError, match="narrow: the snapshot store does not have") as two:
        read(tmp_path / "narrow")
    assert two.value.problems == (
        "table partitions: column leader is string, not int",
        "table partitions: column isr is missing",
    )
    with pytest.raises(BadInputError, match="none: no run published there holds snapshots"):
        read(tmp_path / "none")


# --- Scenarios ---------------------------------------------------------------------------------


def test_scenarios_are_read_from_any_path(spark: SparkSession, tmp_path: Path) -> None:
    event = {"type": "broker_failure", "brokers": [1]}
    write(tmp_path / "1.json", {"scenario": "a", "events": [event]})
    write(tmp_path / "2.jsonl.gz", {"scenario": "b", "cluster": "c1", "events": []})
    text = '{"brokers": [1], "type": "broker_failure"}'
    assert scenarios.read(spark, str(tmp_path)) == [
        Scenario("a", None, None, (text,)),
        Scenario("b", "c1", None, ()),
    ]
    wrong = write(tmp_path / "3.json", {"scenario": "c"})
    with pytest.raises(BadInputError) as refusal:
        scenarios.read(spark, str(tmp_path))
    assert refusal.value.problems == (f'{wrong}, line 1: the key "events" is missing',)
    with pytest.raises(BadInputError, match="nothing was found"):
        scenarios.read(spark, str(tmp_path / "none.json"))
