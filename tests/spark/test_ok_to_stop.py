"""Whether brokers may be stopped, against the controller itself, and from end to end."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from itertools import combinations
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from clusters import Document, cluster, partition
from commands import told
from failing_clusters import FULL_ACKS, UNAVAILABLE, Judge, failing_cluster, failure, replayed
from understudy import sources
from understudy.frames import arrow_schema_of
from understudy.questions import ok_to_stop, stop_in_columns
from understudy.questions.availability import INTERNAL_TOPICS
from understudy.questions.cut_sets import cuts
from understudy.snapshot import Snapshots

CLUSTERS = 200
ANSWER = arrow_schema_of(stop_in_columns.BLOCKING)


def read_all(spark: SparkSession, path: Path, documents: list[Document]) -> Snapshots:
    path.write_text("\n".join(map(json.dumps, documents)), encoding="utf-8")
    return sources.read(spark, [str(path)])


def expected(doc: Document, stopping: list[int]) -> dict[tuple[str, int], str | None]:
    """What the controller's own replay leaves of each partition, as a risk that came true."""
    judge = Judge(doc)
    event = failure(stopping)
    if doc["mode"] == "zk" and doc["controller"]["id"] in stopping:
        event = {"type": "controller_failover", "dead": stopping}
    after = replayed(doc, event)
    found: dict[tuple[str, int], str | None] = {}
    for tp, (topic, part) in judge.partitions.items():
        before = judge.before(tp)
        offline = after[tp].leader not in judge.online(part) - set(stopping)
        blocked = offline or len(after[tp].isr) < judge.min_isr(topic)
        if offline and not before.offline:
            found[tp] = UNAVAILABLE
        else:
            found[tp] = FULL_ACKS if blocked and not before.blocked else None
    return found


def test_the_judgement_is_the_controllers(spark: SparkSession, tmp_path: Path) -> None:
    rng = Random(21)
    documents = [failing_cluster(rng, f"c{n}") for n in range(CLUSTERS)]
    stops: dict[bool, dict[str, list[int]]] = {True: {}, False: {}}
    for doc in documents:
        ids = sorted(Judge(doc).registered)
        stopping = sorted(rng.sample(ids, rng.randint(1, min(3, len(ids)))))
        takes_controller = doc["mode"] == "zk" and doc["controller"]["id"] in stopping
        stops[takes_controller][doc["cluster"]] = stopping
    assert all(len(each) > 20 for each in stops.values())
    snapshots = read_all(spark, tmp_path / "c.jsonl", documents)

    def judged(*, new_controller: bool) -> DataFrame:
        rows = list(stops[new_controller].items())
        named = spark.createDataFrame(rows, "cluster string, stopping array<int>")
        every = {broker for _, stopping in rows for broker in stopping}
        return (
            cuts.thresholds(
                snapshots, stopping=every, new_controller=new_controller, only_touched=True
            )
            .join(F.broadcast(named), "cluster")
            .selectExpr(
                "cluster", "topic", "partition", ok_to_stop.worst_risk("stopping") + " AS r"
            )
        )

    rows = judged(new_controller=True).unionAll(judged(new_controller=False)).collect()
    found = {(row.cluster, row.topic, row.partition): row.r for row in rows}
    all_stops = {**stops[True], **stops[False]}
    for doc in documents:
        for tp, risk in expected(doc, all_stops[doc["cluster"]]).items():
            answer = found.get((doc["cluster"], *tp))
            # A new controller of 1.0 leaves it to the leaders to drop members that are gone.
            is_told_early = doc["release"] == "1.0" and doc["cluster"] in stops[True]
            assert answer == risk or (is_told_early and (answer, risk) == (FULL_ACKS, None)), doc
    assert {UNAVAILABLE, FULL_ACKS, None} == set(found.values())


def _given(rows: Mapping[str, pa.Table], table: str, key: tuple[str, str]) -> pa.Table:  # noqa: ARG001
    return rows[table]


def test_a_stop_replayed_over_columns_is_the_controllers(
    spark: SparkSession, tmp_path: Path
) -> None:
    rng = Random(22)
    documents = [failing_cluster(rng, f"c{n}") for n in range(3 * CLUSTERS)]
    snapshots = read_all(spark, tmp_path / "c.jsonl", documents)
    names = ("snapshots", "brokers", "topics", "configs", "partitions")
    tables = {name: getattr(snapshots.with_defaults(), name).toArrow() for name in names}
    found: dict[str | None, int] = {}
    for doc in documents:
        ids = sorted(Judge(doc).registered)
        stopping = sorted(rng.sample(ids, rng.randint(1, min(3, len(ids)))))
        rows = {
            n: each.filter(pc.equal(each["cluster"], doc["cluster"])) for n, each in tables.items()
        }
        one = replace(snapshots, key=(doc["cluster"], "any"), at_hand=partial(_given, rows))
        asked = stop_in_columns.stop(one, stopping)
        assert (asked is None) == (doc["mode"] == "kraft" or doc["release"] == "1.0")
        if asked is None or doc["controller"]["id"] in stopping:
            continue
        on_brokers = [
            row["has_state"] and (row["leader"] in stopping or {*row["replicas"]} & {*stopping})
            for row in rows["partitions"].to_pylist()
        ]
        batches = (
            rows["partitions"].filter(pa.array(map(bool, on_brokers), pa.bool_())).to_batches()
        )
        told = pa.Table.from_batches(stop_in_columns.judge(asked, iter(batches)), ANSWER)
        answers = {(row["topic"], row["partition"]): row for row in told.to_pylist()}
        judge = Judge(doc)
        for tp, risk in expected(doc, stopping).items():
            topic, part = judge.partitions[tp]
            answer = answers.pop(tp, None)
            assert (answer and answer["risk"]) == risk, doc
            if answer is not None:
                few = len(part["replicas"]) <= judge.min_isr(topic)
                is_internal = topic["name"] in INTERNAL_TOPICS
                assert (answer["unsavable"], answer["internal"]) == (few, is_internal)
            found[risk] = found.get(risk, 0) + 1
        assert not answers
    assert all(found[risk] > 20 for risk in (UNAVAILABLE, FULL_ACKS, None))


# --- From end to end -----------------------------------------------------------------------------

TAKEN_AT = "2026-01-01T00:00:00Z"


def rack_aware(**changes: Any) -> Document:  # noqa: ANN401
    """Nine brokers in three racks (1-3, 4-6, 7-9); no rack may go together with another."""
    parts = [
        partition([a, b, c], (a, 1, [a, b, c]), number=n)
        for n, (a, b, c) in enumerate(
            (a, b, c) for a in (1, 2, 3) for b in (4, 5, 6) for c in (7, 8, 9)
        )
    ]
    doc = cluster({"orders": parts}, live=range(1, 10))
    doc["taken_at"] = TAKEN_AT
    doc["controller"]["id"] = 9
    doc["topics"][0]["configs"] = {"min.insync.replicas": "2"}
    return {**doc, **changes}


def write(path: Path, doc: Document) -> str:
    path.write_text(json.dumps(doc), encoding="utf-8")
    return str(path)


@pytest.mark.usefixtures("spark")
def test_a_rack_may_go_and_no_more(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "s.json", rack_aware())
    answer = told(capsys, 0, "ok-to-stop", "2", "--snapshot", path, "--max", "5")
    assert (answer["schema"], answer["verdict"], answer["brokers"]) == (1, "yes", [2])
    assert (answer["blocking_count"], answer["blocking"], answer["unsavable_count"]) == (0, [], 0)
    assert answer["max"] == [1, 2, 3]
    assert answer["max_is_largest"]

    answer = told(capsys, 2, "ok-to-stop", "2", "4", "--snapshot", path, "--limit", "2")
    assert answer["verdict"] == "no"
    assert answer["blocking_count"] == 3
    first = {"topic": "orders", "partition": 9, "risk": FULL_ACKS}
    assert answer["blocking"][0] == first
    assert len(answer["blocking"]) == 2
    assert answer["max"] is None
    assert "3 partitions" in answer["reason"]

    answer = told(capsys, 3, "ok-to-stop", "2", "--snapshot", path, "--max-age", "2h")
    assert answer["verdict"] == "cannot-decide"
    assert TAKEN_AT[:10] in answer["reason"]

    answer = told(capsys, 65, "ok-to-stop", "2", "77", "--snapshot", path)
    assert "77" in answer["error"]
    assert answer["problems"] == ["there are 1, 2, 3, 4, 5, 6, 7, 8, 9"]


@pytest.mark.usefixtures("spark")
def test_what_nobody_can_save_blocks_unless_ignored(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    doc = rack_aware()
    alone = partition([2], (2, 1, [2]))
    doc["topics"].append({"name": "__transaction_state", "partitions": [alone]})
    path = write(tmp_path / "s.json", doc)
    answer = told(capsys, 2, "ok-to-stop", "2", "--snapshot", path)
    assert answer["blocking"] == [
        {"topic": "__transaction_state", "partition": 0, "risk": UNAVAILABLE}
    ]
    assert (answer["unsavable_count"], answer["internal_count"]) == (1, 1)
    answer = told(
        capsys, 0, "ok-to-stop", "2", "--snapshot", path, "--ignore-unsavable", "--max", "9"
    )
    assert (answer["blocking_count"], answer["unsavable_count"]) == (0, 1)
    assert answer["max"] == [1, 2, 3]


def test_conflicts_are_what_cannot_go_as_well(spark: SparkSession, tmp_path: Path) -> None:
    snapshots = read_all(spark, tmp_path / "s.jsonl", [rack_aware()])
    partitions = cuts.thresholds(snapshots, stopping=[2])
    sets, are_exact = ok_to_stop.conflicts(partitions, [2], at_most=2)
    # Broker 2 shares partitions with 4 to 9; other racks are in each other's way.
    racks = [{1, 2, 3}, {4, 5, 6}, {7, 8, 9}]
    pairs = {
        pair
        for pair in combinations(range(1, 10), 2)
        if not any(set(pair) <= rack for rack in racks) and 2 not in pair
    }
    assert {tuple(s) for s in sets} == {(b,) for b in range(4, 10)} | pairs
    assert are_exact
    few, are_exact = ok_to_stop.conflicts(partitions, [2], at_most=2, limit=3)
    assert not are_exact
    assert {tuple(s) for s in few} == {tuple(s) for s in sets}
