"""Cut sets against every failure there is, tried one by one in plain Python."""

from __future__ import annotations

import json
from collections import Counter
from math import prod
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from clusters import Document
from commands import told
from failing_clusters import FULL_ACKS, UNAVAILABLE, Judge, failing_cluster, minimal, subsets
from understudy import sources
from understudy.questions.cut_sets import cuts, odds, sets
from understudy.snapshot import Snapshots

CLUSTERS = 150

Found = dict[tuple[str, str, tuple[Any, ...]], tuple[int, int]]


@pytest.fixture(scope="module")
def documents() -> list[Document]:
    rng = Random(11)
    return [failing_cluster(rng, f"c{n}") for n in range(CLUSTERS)]


@pytest.fixture(scope="module")
def snapshots(
    spark: SparkSession, documents: list[Document], tmp_path_factory: pytest.TempPathFactory
) -> Snapshots:
    return read(spark, tmp_path_factory.mktemp("clusters"), documents)


def read(spark: SparkSession, folder: Path, documents: list[Document]) -> Snapshots:
    path = folder / "clusters.jsonl"
    path.write_text("\n".join(map(json.dumps, documents)), encoding="utf-8")
    return sources.read(spark, [str(path)])


def tried(documents: list[Document], units: dict[str, dict[int, list[str]]] | None = None) -> Found:
    """(cluster, risk, set) -> partitions and topics, by trying every set of brokers or units."""
    partitions: Counter[tuple[str, str, tuple[Any, ...]]] = Counter()
    topics: dict[tuple[str, str, tuple[Any, ...]], set[str]] = {}
    for doc in documents:
        judge = Judge(doc)
        members: dict[Any, set[int]] = {b: {b} for b in judge.live}
        if units is not None:
            members = {}
            for broker in judge.live:
                for unit in units[doc["cluster"]].get(broker, [f"broker:{broker}"]):
                    members.setdefault(unit, set()).add(broker)
        for tp in judge.partitions:
            for risk, index in ((UNAVAILABLE, 0), (FULL_ACKS, 1)):
                if judge.before(tp)[index]:
                    continue
                lost = (
                    each
                    for each in subsets(members)
                    if judge.after(tp, set().union(*(members[m] for m in each)))[index]
                )
                for each in minimal(lost):
                    key = (doc["cluster"], risk, each)
                    partitions[key] += 1
                    topics.setdefault(key, set()).add(tp[0])
    return {key: (partitions[key], len(topics[key])) for key in partitions}


def test_they_are_what_trying_every_failure_finds(
    documents: list[Document], snapshots: Snapshots
) -> None:
    partitions = sets.weighed(cuts.thresholds(snapshots))
    every = sets.cut_sets_of_all(partitions)
    rows = sets.table(every, None, largest=6).collect()
    found = {(r.cluster, r.risk, tuple(r.brokers)): (r.partitions, r.topics) for r in rows}
    expected = tried(documents)
    assert found == expected
    assert all(row.k == len(row.brokers) and row.weight == row.partitions for row in rows)
    # The clusters are worth the trouble.
    sizes = Counter((risk, len(each)) for _, risk, each in expected)
    assert all(sizes[risk, k] > 20 for risk in (UNAVAILABLE, FULL_ACKS) for k in (1, 2, 3))
    assert_small_ones_are_found_alone(partitions, None, found)


def assert_small_ones_are_found_alone(
    partitions: DataFrame,
    units: DataFrame | None,
    every: dict[tuple[str, str, tuple[Any, ...]], tuple[int, int]],
) -> None:
    rows = sets.cut_sets_of_all(partitions, units, largest=2).collect()
    found = {
        (row.cluster, row.risk, tuple(row.brokers or row.units)): (row.partitions, row.topics)
        for row in rows
    }
    assert found == {key: counts for key, counts in every.items() if len(key[2]) <= 2}


def test_units_are_lost_as_a_whole(
    spark: SparkSession, documents: list[Document], snapshots: Snapshots
) -> None:
    rng = Random(5)
    units: dict[str, dict[int, list[str]]] = {}
    for doc in documents:
        # A host of its own or shared, and some on a switch as well; some are on nothing known.
        units[doc["cluster"]] = {
            b["id"]: sorted({f"host-{b['id'] % 3}", *rng.sample(["switch-1", "switch-2"], 1)})
            if rng.random() < 0.5
            else [f"host-{b['id'] % 3}"]
            for b in doc["brokers"]
            if rng.random() < 0.9
        }
    named = [
        (cluster, "s", broker, unit)
        for cluster, of_brokers in units.items()
        for broker, names in of_brokers.items()
        for unit in names
    ]
    schema = "cluster string, snapshot_id string, broker_id int, unit string"
    table = spark.createDataFrame(named, schema)
    partitions = sets.weighed(cuts.thresholds(snapshots))
    every = sets.cut_sets_of_all(partitions, table)
    rows = sets.table(every, table, largest=6).collect()
    found = {(r.cluster, r.risk, tuple(r.units)): (r.partitions, r.topics) for r in rows}
    assert found == tried(documents, units)
    assert_small_ones_are_found_alone(partitions, table, found)
    for row in rows:
        of_cluster = units[row.cluster]
        taken = {b for b, names in of_cluster.items() if set(names) & set(row.units)}
        taken |= {int(u[7:]) for u in row.units if u.startswith("broker:")}
        assert (row.k, row.brokers) == (len(row.units), sorted(taken))


# --- How likely ----------------------------------------------------------------------------------


def test_the_odds_are_those_of_every_failure(
    documents: list[Document], snapshots: Snapshots
) -> None:
    rates = odds.Rates(0.2, {broker: broker / 100 for broker in range(1, 30)})
    partitions = sets.weighed(cuts.thresholds(snapshots))
    every = sets.cut_sets(sets.cut_sets_by_topic(partitions))
    rows = odds.totals(partitions, every, snapshots.brokers, rates).collect()
    found = {(row.cluster, row.risk): row for row in rows}
    for doc in documents:
        judge = Judge(doc)
        lost = dict.fromkeys((UNAVAILABLE, FULL_ACKS), 0.0)
        anything = dict.fromkeys((UNAVAILABLE, FULL_ACKS), 0.0)
        for failed in subsets(judge.live):
            chance = prod(
                rates.of(b) if b in failed else 1 - rates.of(b) for b in sorted(judge.live)
            )
            for index, risk in enumerate(lost):
                count = sum(
                    judge.after(tp, failed)[index]
                    for tp in judge.partitions
                    if not judge.before(tp)[index]
                )
                lost[risk] += chance * count
                anything[risk] += chance * bool(count)
        for index, risk in enumerate(lost):
            if not judge.partitions:
                assert (doc["cluster"], risk) not in found
                continue
            row = found[doc["cluster"], risk]
            assert row.brokers == len(judge.live)
            assert row.partitions == len(judge.partitions)
            assert row.already == sum(judge.before(tp)[index] for tp in judge.partitions)
            assert row.expected_partitions == pytest.approx(lost[risk])
            assert row.expected_weight == pytest.approx(lost[risk])
            assert row.any_low == pytest.approx(anything[risk])
            assert row.any_high == pytest.approx(anything[risk])


def test_of_too_many_sets_the_likeliest_give_bounds(spark: SparkSession) -> None:
    rng = Random(9)
    drawn = {tuple(sorted(rng.sample(range(8), 3))) for _ in range(25)}
    rows = [("c", "s", UNAVAILABLE, list(each)) for each in sorted(drawn)]
    table = spark.createDataFrame(
        rows, "cluster string, snapshot_id string, risk string, brokers array<int>"
    )
    rates = odds.Rates(0.1, {0: 0.3, 1: 0.4})
    (exact,) = odds.any_loss(table, rates).values()
    (bounds,) = odds.any_loss(table, rates, at_most=6).values()
    assert exact.is_exact
    assert 0 < bounds.low < exact.low < bounds.high < 1


# --- From end to end -----------------------------------------------------------------------------


def page() -> str:
    return (Path(__file__).parents[2] / "docs" / "cut-sets.md").read_text(encoding="utf-8")


@pytest.mark.usefixtures("spark")
def test_the_example_of_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    example = tmp_path / "example.json"
    example.write_text(page().split("```json\n")[1].split("```")[0], encoding="utf-8")
    rows = [line.split("|")[1:5] for line in page().splitlines() if line.startswith("| `")]
    expected = [
        (risk.strip(" `"), int(k), [int(b) for b in brokers.split(",")], int(partitions))
        for risk, k, brokers, partitions in rows
    ]
    answer = told(capsys, 0, "cutsets", str(example), "--out", str(tmp_path / "out"))
    found = [
        (each["risk"], row["k"], row["brokers"], row["partitions"])
        for each in answer["worst"]
        for row in each["first"]
    ]
    assert found == expected
    assert [row["sets"] for row in answer["totals"]] == [3, 7]

    racks = told(
        capsys, 0, "cutsets", str(example), "--by", "rack", "--out", str(tmp_path / "racks")
    )
    by_units = {
        (each["risk"], tuple(row["units"])): row["partitions"]
        for each in racks["worst"]
        for row in each["first"]
    }
    assert by_units[FULL_ACKS, ("a",)] == by_units[FULL_ACKS, ("b",)] == 2
    assert by_units[UNAVAILABLE, ("a", "b")] == 3


@pytest.mark.usefixtures("spark")
def test_what_people_bring_along(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    example = tmp_path / "example.json"
    example.write_text(page().split("```json\n")[1].split("```")[0], encoding="utf-8")
    weights, rates = tmp_path / "weights.csv", tmp_path / "rates.csv"
    weights.write_text("topic,partition,weight\norders,0,10\norders,2,2.5\n", encoding="utf-8")
    rates.write_text("broker_id,rate\n3,0.5\n", encoding="utf-8")
    asked = ["cutsets", str(example), "--out", str(tmp_path / "out"), "--weights", str(weights)]
    answer = told(capsys, 0, *asked, "--failure-rate", "0.1", "--rates", str(rates), "--per-topic")
    (pairs,) = [e for e in answer["worst"] if (e["risk"], e["k"]) == (FULL_ACKS, 2)]
    assert [row["weight"] for row in pairs["first"]] == [10.0, 10.0, 10.0, 0.0, 0.0]
    (offline, _) = answer["totals"]
    assert offline["expected_partitions"] == pytest.approx(0.1 * 0.5 + 2 * 0.1 * 0.1 * 0.5)
    assert offline["any_low"] == offline["any_high"]
    assert answer["tables"]["topic_cut_sets"] == answer["tables"]["cut_sets"]

    replica = {"partition": "orders-2", "size": 7, "offsetLag": 0, "isFuture": False}
    incoming = {**replica, "size": 99, "isFuture": True}
    log_dirs = [{"logDir": "/d", "error": None, "partitions": [replica, incoming]}]
    sizes = {"version": 1, "brokers": [{"broker": 3, "logDirs": log_dirs}]}
    weights.write_text(f"Querying brokers for log directories information\n{json.dumps(sizes)}")
    (single,) = [
        e for e in told(capsys, 0, *asked)["worst"] if (e["risk"], e["k"]) == (FULL_ACKS, 1)
    ]
    assert [row["weight"] for row in single["first"]] == [7.0, 7.0]

    weights.write_text("topic,weight\norders,heavy\norders,1\n", encoding="utf-8")
    refused = told(capsys, 65, *asked)
    assert len(refused["problems"]) == 2
    rates.write_text("broker,rate\n3,1.5\nx,0\n", encoding="utf-8")
    refused = told(capsys, 65, *asked[:4], "--rates", str(rates))
    assert len(refused["problems"]) == 3
    told(capsys, 64, *asked, "--by", "unit")
    told(capsys, 64, *asked, "--by", "rack", "--failure-rate", "0.1")
