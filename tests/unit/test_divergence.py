"""Changes and divergences: all that differs is there, and what nobody did is found out."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import intervals
from clusters import Document, partition
from intervals import interval_of
from told_histories import BURST, LED, PAIRS, RECORDED, at_second, in_time, led, zk
from understudy.questions.history.divergence import FIELDS, Comparison
from understudy.questions.history.interval import Change, Interval

INTERVALS = [pair for docs in RECORDED.values() for pair in pairwise(docs)]


def compared(before: Document, after: Document) -> Comparison:
    return intervals.compared(interval_of(before, after))


def values(doc: Document) -> dict[tuple[str, int, str], Any]:
    """Every field of every partition of a document, as it is written there."""
    found = {}
    for topic in doc["topics"]:
        for each in topic["partitions"]:
            row = each | (each.get("state") or {})
            for field in FIELDS:
                found[topic["name"], each["partition"], field] = row.get(field)
    return found


@given(st.sampled_from(INTERVALS))
@settings(max_examples=40, deadline=None)
def test_changes_are_all_that_differs(pair: tuple[Document, Document]) -> None:
    was, now = map(values, pair)
    wanted = {
        (*key, str(was.get(key)), str(now.get(key)))
        for key in was.keys() | now.keys()
        if was.get(key) != now.get(key)
    }
    changes = compared(*pair).changes
    found = [(c.topic, c.partition, c.field, str(c.before), str(c.recorded)) for c in changes]
    assert len(found) == len(set(found))
    assert set(found) == wanted


def is_led(row: Document) -> bool:
    """Led, with somebody else who could have been; nothing is going on."""
    state = row.get("state") or {"leader": -1}
    return state["leader"] != -1 and len(row["replicas"]) > 1 and not row.get("adding")


@given(st.sampled_from(INTERVALS), st.randoms(use_true_random=False))
@settings(max_examples=40, deadline=None)
def test_a_leader_nobody_elected_is_found_out(pair: tuple[Document, Document], rng: Random) -> None:
    """A leader that changes without its epoch is nothing a controller does."""
    before, after = pair[0], deepcopy(pair[0])
    after["snapshot_id"] = "edited"
    alive = {broker["id"] for broker in before["brokers"] if broker.get("alive", True)}
    led_now = [
        (topic["name"], row)
        for topic in after["topics"]
        for row in topic["partitions"]
        if is_led(row) and {row["state"]["leader"], *row["state"]["isr"]} <= alive
        if not topic.get("queued_for_deletion")
    ]
    if not led_now:
        return
    topic, row = rng.choice(led_now)
    row["state"]["leader"] = rng.choice([r for r in row["replicas"] if r != row["state"]["leader"]])
    found = compared(before, after)
    assert [(c.topic, c.partition, c.field, c.reason) for c in found.changes] == [
        (topic, row["partition"], "leader", "unexplained")
    ]
    reasons = {(d.topic, d.partition, d.field): d.reason for d in found.divergences}
    assert reasons[topic, row["partition"], "leader"] == "unexplained"


REASONS: dict[str, tuple[Document, Document, set[tuple[str, str]]]] = {
    "a failure that nobody reacted to": (
        zk(LED),
        zk(LED, live=(2, 3)),
        {(field, "pending") for field in ("leader", "leader_epoch", "isr", "partition_epoch")},
    ),
    "a reaction to what was there before": (
        zk(LED, live=(2, 3)),
        zk(partition([1, 2, 3], (2, 5, [2, 3]), partition_epoch=11), live=(2, 3)),
        {(field, "late") for field in ("leader", "leader_epoch", "isr", "partition_epoch")},
    ),
    "epochs that rose by themselves": (
        zk(partition([1], (1, 4, [1]))),
        zk(partition([1], (1, 4, [1]), partition_epoch=13)),
        {("partition_epoch", "unseen")},
    ),
    "epochs that fell": (
        zk(LED),
        zk(led(1, 3, [1, 2, 3], 9)),
        {("leader_epoch", "unexplained"), ("partition_epoch", "unexplained")},
    ),
    "a leader that no report had let into the ISR": (
        zk(led(1, 4, [1, 3], 10)),
        zk(led(2, 5, [3, 2], 11), live=(2, 3)),
        {("leader", "unexplained"), ("isr", "unexplained")},
    ),
    "a leader that still recovers, so that nobody had let it into the ISR": (
        zk(partition([1, 2], (1, 4, [1])), unclean=True),
        zk(
            partition([1, 2], (2, 5, [2]), partition_epoch=12, recovery=1),
            live=(2, 3),
            unclean=True,
        ),
        {("partition_epoch", "unseen")},
    ),
    "an ISR without its leader, which no leader reports": (
        zk(LED),
        zk(led(1, 4, [2, 3], 11)),
        {("isr", "unexplained"), ("partition_epoch", "unexplained")},
    ),
    "a partition that nobody has brought to life yet": (
        zk(LED),
        zk(LED, partition([2, 3], number=1)),
        {(field, "pending") for field in ("leader", "leader_epoch", "isr", "partition_epoch")},
    ),
    "a deletion nobody can follow": (
        zk(LED, queued=["t"]),
        zk(led(-1, 6, [2], 12), queued=["t"]),
        {(field, "deletion") for field in ("leader", "leader_epoch", "isr", "partition_epoch")},
    ),
}


@pytest.mark.parametrize("name", REASONS)
def test_reasons(name: str) -> None:
    before, after, wanted = REASONS[name]
    found = compared(before, after).divergences
    assert {(each.field, each.reason) for each in found} == wanted


@pytest.mark.parametrize("name", PAIRS)
def test_what_is_told_by_name_is_explained(name: str) -> None:
    found = compared(*in_time(name, PAIRS[name]))
    reasons = {each.reason for each in found.divergences} | {each.reason for each in found.changes}
    assert "unexplained" not in reasons


def test_a_controller_followed_by_very_many_is_no_trouble() -> None:
    later = zk(led(2, 4, [2, 3], 11), controller={"id": 9, "epoch": 2_000})
    assert {each.reason for each in compared(zk(LED), later).divergences} == {"unexplained"}


def test_what_is_not_known_is_not_compared() -> None:
    interval = interval_of(zk(LED), zk(led(1, 4, [1, 2, 3], 99)))
    unknown = not_knowing(interval, ["partition_epoch"])
    assert intervals.compared(unknown) == Comparison([], [], [])


def not_knowing(interval: Interval, unknown: list[str]) -> Interval:
    return replace(
        interval,
        partitions=[
            Change(*(None if row is None else {**row, "unknown": unknown} for row in change))
            for change in interval.partitions
        ],
    )


def test_rules_nobody_knows_predict_nothing() -> None:
    before, after, _ = PAIRS["a preferred leader"]
    found = compared(*(doc | {"release": "1.1"} for doc in (before, after)))
    assert found.divergences == []
    assert {each.reason for each in found.changes} == {"not_replayed"}


def test_a_burst_is_explained_by_what_it_came_to() -> None:
    """Broker 1 dies, and its two partitions are moved one after the other."""
    told = [each for _, _, each in intervals.told([intervals.of_document(doc) for doc in BURST])]
    (burst,) = told
    reasons = {
        name: {(c.partition, c.field, c.reason) for c in found.changes} for name, found in burst
    }
    fields = ("leader", "leader_epoch", "isr", "partition_epoch")
    assert reasons == {
        "s1": set(),
        "s2": {(0, field, "broker_failure") for field in fields},
        "s10": {(1, field, "broker_failure") for field in fields},
    }
    assert not [each for _, found in burst for each in found.divergences]
    elected = {name: [row["partition"] for row in found.decisions] for name, found in burst}
    assert elected == {"s1": [], "s2": [0], "s10": [1]}


def test_a_record_that_nobody_would_have_written_is_found_inside_a_burst() -> None:
    odd = partition([1, 2, 3], (3, 5, [2, 3]), partition_epoch=11)
    then = partition([1, 2, 3], (2, 6, [2, 3]), partition_epoch=12)
    docs = [
        at_second(zk(LED), 0, "s0"),
        at_second(zk(odd, live=(2, 3)), 10, "s1"),
        at_second(zk(then, live=(2, 3)), 11, "s2"),
    ]
    ((_, _, burst),) = intervals.told([intervals.of_document(doc) for doc in docs])
    found = {name: {d.reason for d in each.divergences} for name, each in burst}
    assert "unexplained" in found["s1"]


def test_a_topic_that_came_and_went_does_not_pass_unseen() -> None:
    fleeting = zk(LED)
    fleeting["topics"].append(
        {"name": "x", "partitions": [partition([2], (2, 0, [2]), partition_epoch=0)]}
    )
    docs = [
        at_second(doc, second, name)
        for doc, second, name in ((zk(LED), 0, "s0"), (fleeting, 10, "s1"), (zk(LED), 11, "s2"))
    ]
    told = list(intervals.told([intervals.of_document(doc) for doc in docs]))
    types = [[event.event_type for event in events] for _, events, _ in told]
    assert types == [["topic_change"], ["delete_topics", "stop_replica_response"]]
