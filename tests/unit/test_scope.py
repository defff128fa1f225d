"""Replaying only what a scenario can touch gives what replaying everything gives."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clusters import random_cluster, rows_of
from kafka_answers import EVENT_SUITES, cases
from random_events import KINDS, random_events
from understudy.controller.scope import Event, Scope, always_touched
from understudy.controller.snapshot_rows import CanonicalRow, SnapshotRows
from understudy.controller.zk import interpreter
from understudy.controller.zk.events import EVENTS, scope_of

STATE_TABLES = ("partition_states", "replica_states")
WITHIN_REACH = tuple(
    kind
    for kind in KINDS
    if kind not in {"controller_failover", "broker_startup", "broker_change", "auto_rebalance"}
)


def split(
    rows: SnapshotRows, events: Sequence[Event]
) -> tuple[list[CanonicalRow], list[CanonicalRow]]:
    """The partitions a scenario can touch, and the others."""
    live = {b["broker_id"] for b in rows.brokers if b["alive"] and not b["shutting_down"]}
    queued = {t["topic"] for t in rows.topics if t["queued_for_deletion"]}
    scope = scope_of(events)
    touched: list[CanonicalRow] = []
    others: list[CanonicalRow] = []
    for each in rows.partitions:
        is_touched = scope.touches(each) or always_touched(each, live, queued)
        (touched if is_touched else others).append(each)
    return touched, others


def check(rows: SnapshotRows, events: Sequence[Event]) -> int:
    """Compare both ways of replaying; how many partitions did not have to be replayed."""
    touched, others = split(rows, events)
    whole = interpreter.replay(rows, events)
    queued = [topic for topic in rows.topics if topic["queued_for_deletion"]]
    part = interpreter.replay(rows._replace(partitions=touched, topics=queued), events)
    untouched = {(p["topic"], p["partition"]) for p in others}
    settled = interpreter.replay(rows._replace(partitions=others), [])

    for table, found in whole.items():
        if table in STATE_TABLES:
            assert [row for row in found if row[:2] not in untouched] == part[table], table
            assert [row for row in found if row[:2] in untouched] == settled[table], table
        else:
            assert found == part[table], table
    return len(untouched)


@settings(max_examples=400, deadline=None)
@given(rng=st.randoms(use_true_random=False), kinds=st.sampled_from([KINDS, WITHIN_REACH]))
def test_what_is_out_of_scope_does_not_matter(rng: Random, kinds: tuple[str, ...]) -> None:
    doc = random_cluster(rng)
    check(rows_of(doc), random_events(rng, doc, kinds))


@pytest.mark.parametrize("suite", EVENT_SUITES)
def test_scopes_hold_for_kafkas_own_cases_and_leave_something_out(suite: str) -> None:
    spared = sum(check(rows_of(case.snapshot), case.scenario["events"]) for case in cases(suite))
    assert spared > len(cases(suite)) / 4


@pytest.mark.parametrize(
    ("event", "scope"),
    [
        ({"type": "controller_failover"}, Scope(everything=True)),
        ({"type": "broker_failure", "brokers": [1, 2]}, Scope(brokers=frozenset({1, 2}))),
        ({"type": "broker_startup", "brokers": [1]}, Scope(everything=True)),
        ({"type": "controlled_shutdown", "broker": 3}, Scope(brokers=frozenset({3}))),
        (
            {"type": "topic_change", "topics": {"a": {}}, "removed": ["b"]},
            Scope(topics=frozenset({"a", "b"})),
        ),
        ({"type": "partition_change", "topic": "a"}, Scope(topics=frozenset({"a"}))),
        ({"type": "isr_change", "partition": "x-y-3"}, Scope(partitions=frozenset({("x-y", 3)}))),
        ({"type": "preferred_election", "partitions": "all"}, Scope(everything=True)),
        ({"type": "unclean_election", "partitions": "all"}, Scope()),
        ({"type": "unclean_enabled"}, Scope()),
        ({"type": "fence", "brokers": [1]}, Scope()),
    ],
    ids=lambda value: value["type"] if isinstance(value, dict) else "",
)
def test_what_an_event_can_touch(event: Event, scope: Scope) -> None:
    assert scope_of([event]) == scope


def test_the_scope_of_a_scenario_is_that_of_its_events_together() -> None:
    events: list[Event] = [
        {"type": "broker_failure", "brokers": [1]},
        {"type": "delete_topics", "topics": ["a"]},
        {"type": "reassign", "partitions": {"b-0": [1]}},
    ]
    assert scope_of(events) == Scope(
        frozenset({1}), frozenset({"a"}), frozenset({("b", 0)}), everything=False
    )
    assert scope_of([]) == Scope()


def test_every_event_can_be_made_at_random() -> None:
    assert set(EVENTS) == set(KINDS) - {"fence"}
