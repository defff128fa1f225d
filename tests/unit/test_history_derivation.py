"""Events derived from histories: small ones are told by name, recorded ones are what happened."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest

from intervals import compared, interval_of
from told_histories import (
    IN_MEMORY_ONLY,
    PAIRS,
    RECORDED,
    Event,
    in_time,
    led,
    read_lines,
    with_epochs,
    zk,
)
from understudy.questions.history.derivation import derived
from understudy.questions.history.divergence import DELETING, UNCLEAN
from understudy.questions.history.facts import Event as Derived
from understudy.questions.history.stories import Patience


def told(name: str) -> list[Derived]:
    return derived(interval_of(*in_time(name, PAIRS[name])))


@pytest.mark.parametrize("name", PAIRS)
def test_told(name: str) -> None:
    events: list[Event] = [json.loads(event.event) for event in told(name)]
    assert events == PAIRS[name][2]


def test_evidence_has_what_was_and_what_is() -> None:
    (first, *_) = told("several failovers")
    assert "the controller epoch was 4 and is 6, so there were 2 failovers" in first.evidence
    (first, *_) = told("an ISR that only its epoch betrays")
    assert first.evidence == "t-0 had ISR [1, 2] and has [1, 2], after 2 changes by leaders"


def test_evidence_of_many_is_counted() -> None:
    """A broker that was the leader of seven partitions: five sentences, and how many more."""
    before, after, _ = PAIRS["a reassignment begun"]
    many = [
        doc | {"topics": [topic | {"partitions": _copies(topic["partitions"][0], 7)}]}
        for doc in (before, after)
        for topic in doc["topics"]
    ]
    (event,) = derived(interval_of(*many))
    assert list(json.loads(event.event)["partitions"]) == [f"t-{n}" for n in range(7)]
    assert event.evidence.count("had replicas") == 5
    assert event.evidence.endswith("; and 2 more")


def _copies(partition: Event, count: int) -> list[Event]:
    return [partition | {"partition": number} for number in range(count)]


def test_orders_are_tried_as_long_as_there_is_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forty records that nothing tells, and brokers that came and went in many possible orders."""
    was, now = led(1, 4, [1, 5, 6]), led(6, 7, [1, 6], partition_epoch=21)
    before = zk(*_copies(was | {"replicas": [1, 5, 6]}, 40), live=(1, 2, 3, 5, 6))
    after = zk(*_copies(now | {"replicas": [1, 5, 6]}, 40), live=(1, 5, 6))
    restarted = with_epochs(after, b1=1001) | {"controller": {"id": 5, "epoch": 5}}
    patience = Patience(500)
    monkeypatch.setattr(Patience, "with_partitions", lambda _: patience)
    events = derived(interval_of(*in_time("much", (before, restarted, []))))
    assert patience.left == 0
    assert {"controller_failover", "broker_failure"} <= {event.event_type for event in events}


@pytest.mark.parametrize("run", RECORDED)
def test_recorded_histories_follow_from_the_events(run: str) -> None:
    for before, after in pairwise(RECORDED[run]):
        interval = interval_of(before, after)
        found = compared(interval)
        reasons = {each.reason for each in found.divergences}
        assert reasons <= ({DELETING} if after["snapshot_id"] in IN_MEMORY_ONLY else set())


# An automatic rebalance is a preferred election that nobody asked for; and an election out of sync
# has a word of its own, whatever event led to it.
ALIKE = {"auto_rebalance": "preferred_election"}


@pytest.mark.parametrize("run", ["zk-3.9", "zk-2.8", "zk-1.0"])
def test_every_change_has_the_reason_that_the_controller_logged(run: str) -> None:
    docs = RECORDED[run]
    place = {doc["taken_at"]: at for at, doc in enumerate(docs[:-1])}
    checked = 0
    for case in read_lines(f"{run}/cases.jsonl.gz"):
        at = place.get(case["before"]["taken_at"])
        is_split = case["case"].endswith(("a", "b"))  # more than one case in the interval
        if at is None or is_split or not case["clean"]:
            continue
        logged = {ALIKE.get(event["type"], event["type"]) for event in case["events"]}
        interval = interval_of(docs[at], docs[at + 1])
        changes = compared(interval).changes
        assert {change.reason for change in changes} <= logged | {UNCLEAN}, case["case"]
        checked += bool(changes)
    assert checked >= 15
