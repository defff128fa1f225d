"""Cut sets against every failure there is, tried one by one in plain Python."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from clusters import Document
from failing_clusters import FULL_ACKS, UNAVAILABLE, Judge, failing_cluster, minimal, subsets
from understudy import sources
from understudy.questions import cut_sets, cuts
from understudy.snapshot import Snapshots

CLUSTERS = 150

Found = dict[tuple[str, str, tuple[object, ...]], tuple[int, int]]


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
    partitions: Counter[tuple[str, str, tuple[object, ...]]] = Counter()
    topics: dict[tuple[str, str, tuple[object, ...]], set[str]] = {}
    for doc in documents:
        judge = Judge(doc)
        members: dict[object, set[int]] = {b: {b} for b in judge.live}
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
    conditions = cut_sets.weighed(cuts.conditions(cuts.thresholds(snapshots)))
    sets = cut_sets.cut_sets(cut_sets.cut_sets_by_topic(conditions))
    rows = cut_sets.table(sets, None, largest=6).collect()
    found = {(r.cluster, r.risk, tuple(r.brokers)): (r.partitions, r.topics) for r in rows}
    expected = tried(documents)
    assert found == expected
    assert all(row.k == len(row.brokers) and row.weight == row.partitions for row in rows)
    # The clusters are worth the trouble.
    sizes = Counter((risk, len(each)) for _, risk, each in expected)
    assert all(sizes[risk, k] > 20 for risk in (UNAVAILABLE, FULL_ACKS) for k in (1, 2, 3))


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
    conditions = cut_sets.weighed(cuts.conditions(cuts.thresholds(snapshots)))
    sets = cut_sets.cut_sets(cut_sets.cut_sets_by_topic(conditions, table))
    rows = cut_sets.table(sets, table, largest=6).collect()
    found = {(r.cluster, r.risk, tuple(r.units)): (r.partitions, r.topics) for r in rows}
    assert found == tried(documents, units)
    for row in rows:
        of_cluster = units[row.cluster]
        taken = {b for b, names in of_cluster.items() if set(names) & set(row.units)}
        taken |= {int(u[7:]) for u in row.units if u.startswith("broker:")}
        assert (row.k, row.brokers) == (len(row.units), sorted(taken))


def test_what_is_lost_is_a_question_of_two_thresholds(
    spark: SparkSession, documents: list[Document], snapshots: Snapshots
) -> None:
    rng = Random(3)
    failures = {}
    for doc in documents:
        live = sorted(Judge(doc).live)
        failures[doc["cluster"]] = sorted(rng.sample(live, rng.randint(1, len(live))))
    failed = spark.createDataFrame(list(failures.items()), "cluster string, failed array<int>")
    rows = (
        cuts.conditions(cuts.thresholds(snapshots))
        .join(F.broadcast(failed), "cluster")
        .selectExpr("cluster", "topic", "partition", "risk", f"{cuts.is_lost('failed')} AS lost")
        .collect()
    )
    found = {(r.cluster, r.topic, r.partition, r.risk): r.lost for r in rows}
    expected = {}
    for doc in documents:
        judge = Judge(doc)
        for tp in judge.partitions:
            before, after = judge.before(tp), judge.after(tp, failures[doc["cluster"]])
            for risk, was, is_now in zip((UNAVAILABLE, FULL_ACKS), before, after, strict=True):
                expected[doc["cluster"], *tp, risk] = is_now and not was
    assert found == expected
