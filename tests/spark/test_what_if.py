"""What failures do, against a second opinion in plain Python and against the replay itself."""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import failure_model as model
from clusters import Document, cluster, partition, random_cluster
from commands import told
from native_replay import plain
from random_events import random_event
from understudy import column_files, publish, replay, sources
from understudy.controller.columnar import feed as columnar
from understudy.controller.zk.events import BROKER_STARTUP, CONTROLLED_SHUTDOWN, FAILOVER
from understudy.questions.units import parse
from understudy.questions.what_if.answer import WhatIf, what_if
from understudy.questions.what_if.failures import Asked
from understudy.scenarios import Scenario
from understudy.schemas import RISKS

FEW, MANY = 12, 60  # clusters in one run
IN_ONE_BATCH = settings(
    max_examples=1,
    deadline=None,
    phases=[Phase.generate],  # a batch is its own best example; the failing cluster is named
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
SEQUENT = columnar.KINDS[1:]  # what may come behind another event
PARTLY_KNOWN = "c000"
COUNTS = (
    *(
        f"{name}{suffix}"
        for name in (
            *("partitions", "offline", "under_min_isr", "at_min_isr", "acks_all_blocked"),
            "never_led",
        )
        for suffix in ("", "_before")
    ),
    *("unclean", "leaders_moved", "newly_at_min_isr", *RISKS),
)


def written(folder: Path, docs: list[Document], name: str = "snapshots.jsonl") -> str:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text("\n".join(map(json.dumps, docs)), encoding="utf-8")
    return str(path)


def rows(found: WhatIf, table: str) -> list[dict[str, Any]]:
    return [row.asDict(recursive=True) for row in found.tables()[table].collect()]


@pytest.mark.parametrize("clusters", [FEW, pytest.param(MANY, marks=pytest.mark.slow)])
@IN_ONE_BATCH
@given(seed=st.integers(0, 2**32))
def test_failures_of_random_clusters(
    spark: SparkSession, tmp_path: Path, seed: int, clusters: int
) -> None:
    """Each broker, each rack and each pair; pairs both in closed form and replayed."""
    rng = Random(seed)
    docs = {f"c{n:03}": model.random_cluster(rng, f"c{n:03}") for n in range(clusters)}
    replayed_pairs = tuple(parse(f"broker:{a},broker:{b}") for a, b in combinations(range(1, 7), 2))
    read = sources.read(spark, [written(tmp_path, list(docs.values()))])
    # One of them does not say everything, so that nothing about it can be decided.
    partly = F.expr(f"complete AND cluster != '{PARTLY_KNOWN}'")
    read = replace(read, snapshots=read.snapshots.withColumn("complete", partly))
    found = what_if(read, Asked(together=replayed_pairs, every=("broker", "rack", "pair")))
    try:
        impacts = rows(found, "impact")
        loads = rows(found, "impact_brokers")
    finally:
        found.close()
        read.close()
    for row in impacts:
        doc = docs[row["cluster"]]
        expected = model.impact(doc, row["brokers"])
        ours = {name: row[name] for name in COUNTS}
        assert ours == {name: expected.get(name, 0) for name in COUNTS}, (doc, row["scenario"])
        assert row["internal_topics"] == expected["internal_topics"], (doc, row["scenario"])
        is_partly_known = row["cluster"] == PARTLY_KNOWN
        assert (row["verdict"] == "cannot-decide") == is_partly_known, (doc, row["scenario"])
    expected_scenarios = {
        (name, scenario) for name, doc in docs.items() for scenario in _scenarios(doc)
    }
    assert {(row["cluster"], row["scenario"]) for row in impacts} >= expected_scenarios
    brokers = {(row["cluster"], row["scenario"]): row["brokers"] for row in impacts}
    for row in loads:
        doc, key = docs[row["cluster"]], (row["cluster"], row["scenario"])
        expected_load = model.loads(doc, brokers[key]).get(row["broker_id"], (0, 0, 0, 0))
        ours_load = (
            *(row["leaders_before"], row["leaders"]),
            *(row["followers_before"], row["followers"]),
        )
        assert ours_load == expected_load, (doc, row)


def _scenarios(doc: Document) -> list[str]:
    live = sorted(model.live_brokers(doc))
    racks = {b["rack"] for b in doc["brokers"] if b["id"] in live}
    return [
        *(f"broker:{b}" for b in live),
        *(f"rack:{rack}" for rack in racks),
        *(f"pair:{a},{b}" for a, b in combinations(live, 2)),
    ]


MIN_ISR = "min.insync.replicas"
TAKEN = 30  # clusters in one run


@IN_ONE_BATCH
@given(seed=st.integers(0, 2**32))
def test_judged_in_the_pass_that_replays_is_judged_the_same(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Every event that runs over columns, over clusters in any state, written and read again."""
    rng = Random(seed)
    docs = [_configured(rng, random_cluster(rng, f"c{n:03}")) for n in range(TAKEN)]
    docs += [model.random_cluster(rng, f"d{n:03}") for n in range(TAKEN)]
    docs = [doc for doc in docs if doc["mode"] == "zk" and any(_partitions(doc))]
    path = written(tmp_path, docs)
    asked = Asked(
        every=("broker", "rack", "pair"),
        scenarios=tuple(scenario for doc in docs for scenario in _sequences(rng, doc)),
    )

    def answered(name: str) -> tuple[bool, dict[str, Counter[Any]]]:
        read = sources.read(spark, [path])
        found = what_if(read, asked)
        run = publish.Run.start("whatif", input_digest=name * 32, config_digest=name)
        tables = found.tables()
        counts = publish.publish(spark, str(tmp_path / name), run, tables, verdict="done")
        frames = {each: publish.read(spark, str(tmp_path / name), each) for each in tables}
        told = {each: rows_in(frame.drop("run_id")) for each, frame in frames.items()}
        found.close()
        read.close()
        assert counts == {each: rows.total() for each, rows in told.items()}
        return bool(tables.passes), told

    monkeypatch.setattr(replay, "SMALL", sys.maxsize)
    is_passed, expected = answered("aa")
    assert not is_passed
    monkeypatch.setattr(replay, "SMALL", 0)
    monkeypatch.setattr(columnar, "SNAPSHOTS_AT_ONCE", 2**31)
    monkeypatch.setattr(columnar, "_SCENARIOS_TO_A_TASK", 3)
    for folder, is_here in (("bb", True), ("cc", False)):  # in the pass, or each table by Spark
        if not is_here:
            monkeypatch.setattr(publish, "writes_to", lambda *_: False)
            monkeypatch.setattr(column_files, "write", pytest.fail)
        is_passed, ours = answered(folder)
        assert is_passed
        for name, every in expected.items():
            difference = (every - ours[name], ours[name] - every)
            assert not any(difference), (name, difference)
    assert expected["impact_partitions"].total() > 10 * TAKEN


def rows_in(frame: DataFrame) -> Counter[Any]:
    return Counter(map(plain, zip(*frame.toArrow().to_pydict().values(), strict=True)))


def _partitions(doc: Document) -> Iterator[Document]:
    return (partition for topic in doc["topics"] for partition in topic["partitions"])


def _configured(rng: Random, doc: Document) -> Document:
    """Says at any level how many replicas have to be in sync."""
    levels = [doc["configs"], doc["static_configs"]]
    levels += [each.setdefault("configs", {}) for each in (*doc["topics"], *doc["brokers"])]
    for level in levels:
        if rng.random() < 0.3:
            level[MIN_ISR] = rng.choice(["1", "2", " 3 "])
    return doc


def _sequences(rng: Random, doc: Document) -> Iterator[Scenario]:
    for kinds in ([FAILOVER], [BROKER_STARTUP], [CONTROLLED_SHUTDOWN], rng.choices(SEQUENT, k=3)):
        events = tuple(json.dumps(random_event(rng, doc, kind)) for kind in kinds)
        yield Scenario(" then ".join(kinds), doc["cluster"], doc["snapshot_id"], events)


# --- One small cluster, by hand ----------------------------------------------------------------


def small_cluster() -> Document:
    """Broker 1 is the controller; orders needs two in sync."""
    doc = cluster(
        {
            "orders": [
                partition([1, 2, 3], (1, 4, [1, 2, 3]), number=0),
                partition([2, 3, 4], (2, 4, [2, 3]), number=1),
                partition([4], (4, 4, [4]), number=2),
            ],
            "__consumer_offsets": [partition([3, 4], (3, 1, [3]))],
            "going": [partition([2], (2, 1, [2]))],
        },
        live=[1, 2, 3, 4],
        queued=["going"],
    )
    doc["topics"][0]["configs"] = {"min.insync.replicas": "2"}
    for broker, rack in zip(doc["brokers"], "aabb", strict=True):
        broker["rack"] = rack
    return doc


def test_the_command_from_documents_to_a_verdict(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = written(tmp_path, [small_cluster()]), str(tmp_path / "out")
    answer = told(capsys, 2, "whatif", path, "--every", "broker", "--fail", "rack:b", "--out", out)
    assert answer["verdict"] == "unsafe"
    assert answer["verdicts"] == {"unsafe": 4, "cannot-decide": 0, "warnings": 1, "safe": 0}
    assert answer["internal_topics"] == ["__consumer_offsets"]
    assert (answer["snapshots"], answer["several"]) == (1, [])
    worst = answer["scenarios"]["first"][0]
    assert worst["scenario"] == "rack:b"
    # orders-2 refused acks=all before: that the failure takes its leader, too, is no news to those.
    assert (worst["unavailable"], worst["full_acks_produce_unavailable"]) == (2, 2)
    assert worst["reason"].startswith(
        "2 partitions lose their leader; 2 partitions refuse acks=all; "
    )
    partitions = {
        (row.scenario, row.topic, row.partition): row
        for row in publish.read_runs(spark, out, "impact_partitions", [answer["run_id"]]).collect()
    }
    moved = partitions["broker:1", "orders", 0]
    assert (moved.leader_before, moved.leader, moved.isr, moved.min_isr) == (1, 2, [2, 3], 2)
    assert (moved.state_before, moved.state_after) == ("OnlinePartition", "OnlinePartition")
    assert moved.risks == ["acks1_data_loss"]
    lost = partitions["broker:4", "orders", 2]
    assert lost.risks == ["rf1_offline", "unavailable", "acks1_data_loss"]
    assert (lost.leader, lost.state_after) == (-1, "OfflinePartition")
    assert not [key for key in partitions if key[1] == "going"]
    again = told(capsys, 2, "whatif", path, "--every", "broker", "--fail", "rack:b", "--out", out)
    assert again["already_published"]


@pytest.mark.usefixtures("spark")
def test_several_snapshots_are_told_apart_though_one_row_is_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    later = small_cluster() | {"snapshot_id": "later"}
    path = written(tmp_path, [small_cluster(), later])
    command = ["whatif", path, "--fail", "broker:1", "--out", str(tmp_path / "out"), "--limit", "1"]
    answer = told(capsys, 4, *command)
    assert (answer["scenarios"]["count"], len(answer["scenarios"]["first"])) == (2, 1)
    assert (answer["snapshots"], answer["several"]) == (2, ["snapshot_id"])


@pytest.mark.usefixtures("spark")
def test_what_the_command_refuses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = written(tmp_path, [small_cluster()]), str(tmp_path / "out")
    nothing = told(capsys, 64, "whatif", path, "--out", out)
    assert "nothing is asked" in nothing["error"]
    unknown = told(
        capsys, 65, "whatif", path, "--fail", "broker:9,rack:z", "--every", "unit", "--out", out
    )
    assert unknown["problems"] == [
        "broker:9: the brokers are 1, 2, 3, 4",
        "rack:z: the racks are a, b",
        "every unit: there is no table of dependencies",
    ]


def kraft_cluster() -> Document:
    """Broker 3 is fenced; broker 1 has two log directories; the voters are known."""

    def led(number: int, replicas: list[int], leader: int, isr: list[int]) -> Document:
        state = {"leader": leader, "leader_epoch": 1, "isr": isr, "partition_epoch": 1}
        directories = [_directory(r, number % 2 if r == 1 else 0) for r in replicas]
        return {
            "partition": number,
            "replicas": replicas,
            "directories": directories,
            "state": state,
        }

    return {
        "cluster": "k",
        "snapshot_id": "s1",
        "mode": "kraft",
        "release": "4.0",
        "controller": {"id": 3000, "epoch": 2},
        "brokers": [
            {"id": 1, "epoch": 11, "log_dirs": [_directory(1, 0), _directory(1, 1)]},
            {"id": 2, "epoch": 12, "log_dirs": [_directory(2, 0)]},
            {"id": 3, "epoch": 13, "fenced": True, "log_dirs": [_directory(3, 0)]},
        ],
        "static_configs": {"controller.quorum.voters": "3000@a:1,3001@b:1,3002@c:1"},
        "topics": [
            {
                "name": "orders",
                "partitions": [
                    led(0, [1, 2], 1, [1, 2]),
                    led(1, [1, 2], 1, [1]),
                    led(2, [3], -1, [3]),
                ],
            }
        ],
    }


def _directory(broker: int, number: int) -> str:
    return f"dir{broker}{number}AAAAAAAAAAAAAAAAA"


def test_directories_voters_returns_and_plans(spark: SparkSession, tmp_path: Path) -> None:
    lost = _directory(1, 1)
    asked = Asked(
        together=(
            parse(f"dir:1:{lost}"),
            parse("controller:3000"),
            parse("controller:3000,controller:3001"),
            parse("broker:2"),
        ),
        restored=(parse("broker:3"),),
        plan={"orders-1": [2, 1]},
    )
    read = sources.read(spark, [written(tmp_path, [kraft_cluster()])])
    found = what_if(read, asked)
    try:
        impacts = {row["scenario"]: row for row in rows(found, "impact")}
        partitions = {
            (row["scenario"], row["partition"]): row for row in rows(found, "impact_partitions")
        }
    finally:
        found.close()
        read.close()
    # The directory holds the replicas of odd partitions: only orders-1 loses its leader.
    directory = impacts[f"dir:1:{lost}"]
    assert (directory["unavailable"], directory["brokers"]) == (1, [1])
    assert partitions[f"dir:1:{lost}", 1]["leader"] == -1
    assert (f"dir:1:{lost}", 0) not in partitions
    assert impacts["controller:3000"]["verdict"] == "safe"
    assert "2 of 3 voters left" in impacts["controller:3000"]["reason"]
    assert impacts["controller:3000,controller:3001"]["verdict"] == "unsafe"
    back = impacts["restore broker:3"]
    assert (back["offline_before"], back["offline"], back["verdict"]) == (1, 0, "safe")
    # A quorum controller has no requests to count.
    assert back["requests"] is None
    assert {name for name in impacts if "reassignment" in name} == {
        f"{failure}{when}"
        for failure in ("", *(f"{name} " for name in impacts if "reassignment" not in name))
        for when in ("during reassignment", "after reassignment")
    }


@pytest.mark.slow
def test_the_example_of_the_documentation(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root = Path(__file__).parents[2]
    page = (root / "docs" / "what-if.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    monkeypatch.chdir(root)
    exec(compile(example, "docs/what-if.md", "exec"), {"spark": spark})  # noqa: S102
    assert "reference_verdict" in capsys.readouterr().out
