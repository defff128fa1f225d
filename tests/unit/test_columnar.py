"""The controller over whole columns gives, row for row, what the interpreter gives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import pytest

import kafka_answers
from clusters import Document, random_cluster, rows_of
from column_replay import cluster_of, replayed, replayed_together
from native_replay import plain
from random_events import random_event
from understudy.controller.columnar import arrays, feed, scenario
from understudy.controller.snapshot_rows import SnapshotRows
from understudy.controller.words import UNCHANGED
from understudy.controller.zk import interpreter
from understudy.controller.zk.events import (
    BROKER_FAILURE,
    BROKER_STARTUP,
    CONTROLLED_SHUTDOWN,
    FAILOVER,
)
from understudy.schemas import REPLAY_TABLES

CASES = 300
RELEASES = ("2.4", "2.8", "3.0", "3.1", "3.9")
OUTCOME = REPLAY_TABLES["partition_states"].names.index("outcome") - 3

Rows = dict[str, Counter[Any]]


def expected(rows: SnapshotRows, events: Sequence[Document], *, changed_only: bool) -> Rows:
    tables = interpreter.replay(rows, events)
    if changed_only:
        states = [row for row in tables["partition_states"] if row[OUTCOME] != UNCHANGED]
        keys = {row[:2] for row in states}
        replicas = [row for row in tables["replica_states"] if row[:2] in keys]
        tables |= {"partition_states": states, "replica_states": replicas}
    return {name: Counter(map(plain, every)) for name, every in tables.items()}


def failures(rng: Random, doc: Document, count: int) -> list[Document]:
    return [random_event(rng, doc, BROKER_FAILURE) for _ in range(count)]


EVENTS: dict[str, Callable[[Random, Document], list[Document]]] = {
    "failover": lambda rng, doc: [random_event(rng, doc, FAILOVER)],
    "failure": lambda rng, doc: failures(rng, doc, 1),
    "failures": lambda rng, doc: failures(rng, doc, rng.randint(2, 5)),
    "startup": lambda rng, doc: [random_event(rng, doc, BROKER_STARTUP)],
    "shutdown": lambda rng, doc: [random_event(rng, doc, CONTROLLED_SHUTDOWN)],
    "anything": lambda rng, doc: [
        random_event(rng, doc, rng.choice(feed.KINDS[1:])) for _ in range(rng.randint(2, 5))
    ],
    "failover and failures": lambda rng, doc: [
        random_event(rng, doc, FAILOVER),
        *failures(rng, doc, 2),
    ],
}


@pytest.mark.parametrize("changed_only", [False, True])
@pytest.mark.parametrize("kind", EVENTS)
def test_every_row_of_random_clusters(
    kind: str, monkeypatch: pytest.MonkeyPatch, *, changed_only: bool
) -> None:
    rng = Random(f"columnar {kind} {changed_only}")
    covered = 0
    for number in range(CASES):
        # All at once, as small clusters are, and in slices, as large ones.
        monkeypatch.setattr(arrays, "PARTITIONS_AT_ONCE", rng.choice((1, 3, 1_000)))
        doc = random_cluster(rng, f"c{number}")
        doc["release"] = rng.choice(RELEASES)
        # Side by side, as far as they are alike.
        scenarios = [EVENTS[kind](rng, doc) for _ in range(rng.choice((1, 2, 5)))]
        rows = rows_of(doc)
        cluster = cluster_of(rows)
        covered += any(scenario.covers(cluster, events) for events in scenarios)
        told = replayed_together(cluster, scenarios, changed_only=changed_only)
        for events, found in zip(scenarios, told, strict=True):
            theirs = expected(rows, events, changed_only=changed_only)
            for name in REPLAY_TABLES:
                assert Counter(map(plain, found[name])) == theirs[name], (name, events, doc)
    assert covered > CASES / 10


@pytest.mark.parametrize("suite", [*kafka_answers.SUITES, *kafka_answers.EVENT_SUITES])
def test_what_kafka_answered(suite: str) -> None:
    """Every recorded scenario of these events, against Kafka's own answer."""
    compared = 0
    with_recovery = kafka_answers.knows_recovery(suite)
    for case in kafka_answers.cases(suite):
        events = case.scenario["events"]
        if not {event["type"] for event in events} <= set(feed.KINDS):
            continue
        cluster = cluster_of(rows_of(case.snapshot))
        if not cluster.count:
            continue
        found = replayed(cluster, events)
        ours = {name: kafka_answers.named(name, rows) for name, rows in found.items()}
        told_each = kafka_answers.per_receiver(ours)
        assert kafka_answers.comparable(
            told_each, with_recovery=with_recovery
        ) == kafka_answers.comparable(case.answer, with_recovery=with_recovery)
        compared += 1
    assert compared > (100 if suite in kafka_answers.SUITES else 5)
