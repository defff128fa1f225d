"""What is at hand of a snapshot judges its partitions as what Spark reads does."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import DataFrame, SparkSession

from clusters import Document
from failing_clusters import failing_cluster
from understudy import sources
from understudy.controller.kraft.words import MIN_ISR_SETTING
from understudy.controller.words import UNCLEAN_SETTING
from understudy.questions import facts_at_hand
from understudy.questions.availability import counted
from understudy.snapshot import Snapshots

CLUSTERS = 8
WANTED = {"min_isr": MIN_ISR_SETTING, "unclean": UNCLEAN_SETTING}
SMALL = ("snapshots", "brokers", "topics", "configs")
Key = tuple[str, str]
Given = dict[str, pa.Table]


@pytest.fixture(scope="module")
def snapshots(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Snapshots:
    rng = Random(31)
    documents = [
        varied(rng, failing_cluster(rng, f"c{n}", ("zk", "kraft")[n % 2])) for n in range(CLUSTERS)
    ]
    path = tmp_path_factory.mktemp("facts") / "clusters.jsonl"
    path.write_text("\n".join(map(json.dumps, documents)), encoding="utf-8")
    return sources.read(spark, [str(path)])


def varied(rng: Random, document: Document) -> Document:
    """The same with settings on every level, and topics being deleted."""

    def settings() -> dict[str, str]:
        values = {
            MIN_ISR_SETTING: ["1", " 2 ", "3"],
            UNCLEAN_SETTING: ["true", " TRUE ", "false"],
        }
        return {key: rng.choice(some) for key, some in values.items() if rng.random() < 0.4}

    document["configs"], document["static_configs"] = settings(), settings()
    for topic in document["topics"]:
        topic["configs"] = settings()
        topic["queued_for_deletion"] = rng.random() < 0.1
    for broker in document["brokers"]:
        broker["configs"] = settings()
    return document


def given(rows: Given, table: str, key: Key) -> pa.Table:
    found = rows[table]
    return found.filter(
        pc.and_(pc.equal(found["cluster"], key[0]), pc.equal(found["snapshot_id"], key[1]))
    )


def rows_of(frame: DataFrame) -> Counter[str]:
    return Counter(map(repr, frame.toArrow().to_pylist()))


def test_both_ways_are_the_same(snapshots: Snapshots, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {name: getattr(snapshots, name).toArrow() for name in SMALL}
    at_hand = partial(given, rows)
    modes: Counter[str] = Counter()
    keys = snapshots.keys()
    for cluster, snapshot_id in keys:
        one = snapshots.one(cluster=cluster, snapshot_id=snapshot_id)
        here = replace(one, at_hand=at_hand)
        found = facts_at_hand.facts(here, WANTED)
        assert found is not None
        assert found.topics is not None
        modes[found.mode] += 1
        expected = rows_of(counted(one))
        assert rows_of(counted(here)) == expected
        assert counted(here).schema == counted(one).schema
        with monkeypatch.context() as patched:
            # The topics are many, but not the brokers.
            patched.setattr(facts_at_hand, "_topics", lambda *_: None)
            assert rows_of(counted(here)) == expected
    assert all(modes[mode] > 2 for mode in ("zk", "kraft"))


def test_what_is_many_or_unclear_is_left_to_spark(
    snapshots: Snapshots, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = {name: getattr(snapshots, name).toArrow() for name in SMALL}
    said = rows["configs"].filter(pc.equal(rows["configs"]["scope"], "topic")).to_pylist()[0]
    key = (said["cluster"], said["snapshot_id"])
    one = replace(snapshots, key=key, at_hand=partial(given, rows))
    assert facts_at_hand.facts(replace(one, key=None), WANTED) is None
    assert facts_at_hand.facts(replace(one, at_hand=partial(given, without(rows))), WANTED) is None
    twice: dict[str, Any] = {"configs": pa.concat_tables([rows["configs"]] * 2)}
    found = facts_at_hand.facts(replace(one, at_hand=partial(given, {**rows, **twice})), WANTED)
    assert found is not None
    assert found.topics is None
    monkeypatch.setattr(facts_at_hand, "_FEW_BYTES", 1)
    assert facts_at_hand.facts(one, WANTED) is None


def without(rows: Given) -> Given:
    """Two rows where one snapshot is told of."""
    return {**rows, "snapshots": pa.concat_tables([rows["snapshots"]] * 2)}
