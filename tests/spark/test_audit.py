"""The rules over recorded and random histories, against the same rules in plain Python.

One Spark action judges all of them together.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import closing
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession

import intervals
from audit_by_hand import Finding, judged
from clusters import Document, cluster, partition
from histories import random_history, recorded
from understudy import sources
from understudy.questions.audit import audit, ledger
from understudy.questions.audit.rule_set import CATALOGUE, RuleSet
from understudy.questions.history.divergence import UNCLEAN
from understudy.snapshot import Snapshots

RANDOM_HISTORIES = 60
# What a controller would have made of it is not judged again by hand.
JUDGED_BY_HAND = RuleSet(tuple(rule for rule in CATALOGUE.values() if rule.subject != "change"))
REAL = [recorded(name) for name in ("zk-2.8", "zk-1.0", "kraft-4.3")]


def named_histories() -> dict[str, list[Document]]:
    """Small stories, each about one rule; they end with the snapshot that has to be found."""
    healthy = partition([2, 1, 0], (0, 4, [1, 0]), partition_epoch=10)
    healthy |= {"adding": [2], "removing": [0]}
    # KAFKA-19212: clean, though the leader was not in the ISR before.
    moved = partition([2, 1], (2, 5, [1, 2]), partition_epoch=12)
    alone = partition([1, 2, 3], (1, 4, [1]))
    others = partition([2, 3, 1], (2, 4, [2, 3]), number=1)
    led = partition([1, 2, 3], (1, 4, [1, 2, 3]), partition_epoch=10, controller_epoch=4)
    old = partition([1, 2, 3], (2, 5, [2, 3]), partition_epoch=11, controller_epoch=3)
    return {
        "not-really-unclean": [story([healthy], live=(0, 1, 2)), story([moved], live=(0, 1, 2))],
        "reciprocal-exclusion": [story([alone, others])],
        "zombie-controller": [story([led]), story([old])],
        "stuck-under-replicated": [story([others])] * 3,
        "failure-during-failover": [story([led], live=(2, 3)), story([led], live=(2, 3))],
    }


def story(parts: list[Document], live: tuple[int, ...] = (1, 2, 3)) -> Document:
    return cluster({"t": parts}, live=live)


def dated(name: str, docs: list[Document]) -> list[Document]:
    return [
        doc | {"cluster": name, "snapshot_id": f"s{n}", "taken_at": f"2026-01-01T00:{n:02}:00Z"}
        for n, doc in enumerate(docs)
    ]


@pytest.fixture(scope="module")
def histories() -> dict[str, list[Document]]:
    dice = Random(20)
    found = {docs[0]["cluster"]: docs for docs in REAL}
    found |= {
        f"random-{n}": random_history(dice, f"random-{n}", 5) for n in range(RANDOM_HISTORIES)
    }
    return found | {name: dated(name, docs) for name, docs in named_histories().items()}


@pytest.fixture(scope="module")
def snapshots(
    spark: SparkSession,
    histories: dict[str, list[Document]],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Snapshots]:
    path = tmp_path_factory.mktemp("audit") / "all.jsonl"
    docs = [doc for history in histories.values() for doc in history]
    path.write_text("".join(json.dumps(doc) + "\n" for doc in docs), encoding="utf-8")
    found = sources.read(spark, [str(path)])
    assert found.quarantine.count() == 0, found.quarantine.first()
    yield found
    found.close()


@pytest.fixture(scope="module")
def findings(spark: SparkSession, snapshots: Snapshots) -> dict[str, list[Any]]:
    todo = ledger.histories(audit.stored(snapshots.snapshots), [])
    found: dict[str, list[Any]] = defaultdict(list)
    with closing(audit.judged(spark, snapshots, todo, JUDGED_BY_HAND)) as judged:
        for row in judged.tables["findings"].collect():
            found[row.cluster].append(row)
    return found


def told(rows: list[Any]) -> Counter[Finding]:
    # Which of several offline directories is named is of no interest.
    return Counter(
        (
            row.snapshot_id,
            row.rule,
            row.topic,
            row.partition,
            None if row.rule == "offline-log-dir" else row.broker_id,
        )
        for row in rows
    )


def replayed(docs: list[Document]) -> Iterator[Finding]:
    """The unclean elections that only a replay knows of: the records do not show them any more."""
    queued = {
        (doc["snapshot_id"], topic["name"])
        for doc in docs
        for topic in doc["topics"]
        if topic.get("queued_for_deletion")
    }
    for _, _, snapshots in intervals.told([intervals.of_document(doc) for doc in docs]):
        for name, found in snapshots:
            for change in found.changes:
                if change.field != "leader" or change.reason != UNCLEAN:
                    continue
                leader = int(change.recorded or -1)
                if leader >= 0 and (name, change.topic) not in queued:
                    yield name, "unclean-election", change.topic, change.partition, leader


def test_every_history_is_judged_as_by_hand(
    histories: dict[str, list[Document]], findings: dict[str, list[Any]]
) -> None:
    for name, docs in histories.items():
        expected = Counter({*judged(docs), *replayed(docs)})
        actual = told(findings[name])
        assert actual == expected, (name, actual - expected, expected - actual)


def test_every_rule_is_broken_somewhere_but_not_everywhere(
    findings: dict[str, list[Any]],
) -> None:
    broken = {row.rule for rows in findings.values() for row in rows}
    assert {rule.name for rule in JUDGED_BY_HAND.rules} - broken == {"incomplete-snapshot"}


def test_stories_end_as_their_names_say(findings: dict[str, list[Any]]) -> None:
    for name in named_histories():
        rules = {row.rule for row in findings[name]}
        if name == "not-really-unclean":
            assert "unclean-election" not in rules
        else:
            assert name in rules


def test_what_is_found_is_told_in_words(findings: dict[str, list[Any]]) -> None:
    rows = [row for of_cluster in findings.values() for row in of_cluster]
    assert all(row.evidence and row.severity == CATALOGUE[row.rule].severity for row in rows)
    assert all(row.taken_at is not None and row.silenced is None for row in rows)
    racks = {row.rack for row in findings["zk28-a"] if row.broker_id == 3}
    assert racks in ({"c"}, {"c", None})  # a broker that is gone has no rack


def test_the_disasters_of_a_real_cluster_are_found(findings: dict[str, list[Any]]) -> None:
    unclean = {
        (row.snapshot_id, f"{row.topic}-{row.partition}")
        for row in findings["zk28-a"]
        if row.rule == "unclean-election"
    }
    # As ZooKeeper's transaction log has them: a leader not in the ISR of the record before.
    assert unclean == {
        ("zk28-a-dump028", "a.b-c_d-0"),
        ("zk28-a-dump036", "a.b-c_d-1"),
        ("zk28-a-dump037", "dead_start.b-24-1"),
        ("zk28-a-dump046", "a.b-c_d-0"),
        ("zk28-a-dump046", "a.b-c_d-2"),
        ("zk28-a-dump046", "payments.v1-0"),
        ("zk28-a-dump046", "payments.v1-3"),
    }
    impossible = {
        "leader-not-in-isr",
        "isr-outside-assignment",
        "duplicate-replicas",
        "fenced-in-isr",
        "leader-epoch-regression",
        "partition-epoch-regression",
        "controller-epoch-regression",
        "broker-epoch-regression",
        "zombie-controller",
        "reciprocal-exclusion",
        "failure-during-failover",
        "controller-count",
    }
    for name in ("zk28-a", "zk10-a", "kraft43-a"):
        assert not {row.rule for row in findings[name]} & impossible
