"""What differs between releases and protocols of ZooKeeper mode: every switch, on both its sides.

Each line of the matrix is one small cluster seen by the last version without a rule and by the
first one with it. That the switch and nothing else makes the difference is shown by turning it
off: the newer version then does what the older one did.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from clusters import Document, cluster, partition
from outcomes import LAI, UM, Outcome, dies, event, reassigning, starts
from understudy.controller import releases

running = partial(cluster, epoch=5)

NEVER = releases.NEWEST_LEVEL + 1


@dataclass(frozen=True)
class Switch:
    """A rule, the versions on both sides of it, and what each of them does."""

    gate: str
    versions: tuple[str, str]
    doc: Document
    events: tuple[Document, ...]
    seen: Callable[[Outcome], Any]
    outcomes: tuple[Any, Any]

    def outcome(self, version: str) -> Any:  # noqa: ANN401 - whatever *seen* looks at
        """A release speaks its own protocol; a protocol is spoken by the newest release."""
        ruled = {"release": version} if self.gate.startswith("RELEASE") else {}
        return self.seen(Outcome({**self.doc, **ruled, "metadata_version": version}, *self.events))


def _metadata(out: Outcome) -> list[set[int]]:
    return [brokers for request, brokers in out.requests() if request == UM]


def _topics_told_to_the_new_broker(out: Outcome) -> set[str]:
    return {row["topic"] for row in out.tables["request_partitions"] if row["step"] == 2}


def _new_in_the_first_step(out: Outcome) -> set[int]:
    return {row["broker_id"] for row in out.bodies(LAI) if row["step"] == 1 and row["is_new"]}


def _elections(out: Outcome) -> dict[str, str]:
    return {row["topic"]: row["result"] for row in out.tables["transitions"]}


def _recovery_and_writes(out: Outcome) -> tuple[int, int]:
    return out.partition()["recovery"], len(out.writes())


def _recovery_and_bodies(out: Outcome) -> tuple[int, set[int | None]]:
    return out.partition()["recovery"], {row["recovery"] for row in out.bodies(LAI)}


TWO_TOPICS = {name: [partition([1], (1, 4, [1]))] for name in "ab"}
THREE_TO_FOLLOW = {"a": [partition([1, 2, 3], (1, 0, [1, 2, 3]))]}
MOVED_AWAY = {
    "a": [partition([1, 2, 3], (2, 4, [1, 2, 3]))],
    "c": [partition([1, 2, 3], (2, 4, [2]))],
}
ONE_MOVING = {
    "a": [partition([1, 2], (2, 4, [1, 2]))],
    "b": [reassigning([2, 1], (2, 4, [2]), adding=[1], removing=[])],
}
ONE_QUEUED = {"a": [partition([1], (1, 4, [1]))], "q": [partition([1, 3], (1, 4, [1]))]}
STILL_RECOVERING = {"a": [partition([1, 2], (1, 4, [1]), recovery=1)]}
ALONE = {"a": [partition([1, 2], (1, 4, [1]))]}
BOTH_IN_SYNC = event("isr_change", partition="a-0", isr=[1, 2])
ALL_LEAD_AGAIN = event("auto_rebalance")

MATRIX = {
    "topics are deleted together": Switch(
        "RELEASE_2_5",
        ("2.4", "2.5"),
        running(TWO_TOPICS, live=[1]),
        (event("delete_topics", topics=["a", "b"]),),
        _metadata,
        ([{1}, {1}], [{1}]),
    ),
    "a rebalance tries only whom it can elect": Switch(
        "RELEASE_2_6",
        ("2.5", "2.6"),
        running(MOVED_AWAY, live=[1, 2, 3]),
        (ALL_LEAD_AGAIN,),
        _elections,
        ({"a": "ok", "c": "failed"}, {"a": "ok"}),
    ),
    "a new broker is not told of topics being deleted": Switch(
        "RELEASE_2_7",
        ("2.6", "2.7"),
        running(ONE_QUEUED, live=[1], queued=["q"]),
        (starts(2),),
        _topics_told_to_the_new_broker,
        ({"a", "q"}, {"a"}),
    ),
    "adding replicas are announced as new at once": Switch(
        "RELEASE_2_7",
        ("2.6", "2.7"),
        running(THREE_TO_FOLLOW, live=range(1, 5)),
        (event("reassign", partitions={"a-0": [4]}),),
        _new_in_the_first_step,
        (set(), {4}),
    ),
    "metadata follows a failure only if nothing else did": Switch(
        "RELEASE_3_1",
        ("3.0", "3.1"),
        running(THREE_TO_FOLLOW, live=[1, 2, 3]),
        (dies(3),),
        _metadata,
        ([{1, 2}, {1, 2}], [{1, 2}]),
    ),
    "metadata follows a failure that changed nothing": Switch(
        "RELEASE_3_1",
        ("3.0", "3.1"),
        running({"a": [partition([2], (-1, 4, [2]))]}, live=[1, 3]),
        (dies(3),),
        _metadata,
        ([], [{1}]),
    ),
    "a leader's report ends a recovery": Switch(
        "RELEASE_3_2",
        ("3.1", "3.2"),
        running(STILL_RECOVERING, live=[1, 2]),
        (event("isr_change", partition="a-0", isr=[1]),),
        _recovery_and_writes,
        ((1, 0), (0, 1)),
    ),
    "only live brokers may enter an ISR": Switch(
        "RELEASE_3_3",
        ("3.2", "3.3"),
        running(ALONE, live=[1]),
        (BOTH_IN_SYNC,),
        Outcome.answers,
        ([], [("a-0", "INELIGIBLE_REPLICA")]),
    ),
    "a rebalance goes on while partitions move": Switch(
        "RELEASE_3_4",
        ("3.3", "3.4"),
        running(ONE_MOVING, live=[1, 2]),
        (ALL_LEAD_AGAIN,),
        _elections,
        ({}, {"a": "ok"}),
    ),
    "the controller writes the ISR for the leader": Switch(
        "PROTOCOL_2_7_IV2",
        ("2.7-IV1", "2.7-IV2"),
        running(ALONE, live=[1, 2]),
        (BOTH_IN_SYNC,),
        Outcome.writes,
        ([], [(1, 4, (1, 2), 11)]),
    ),
    "who is refused learns why": Switch(
        "PROTOCOL_2_8",
        ("2.7", "2.8"),
        running(ALONE, live=[1]),
        (BOTH_IN_SYNC,),
        Outcome.answers,
        ([("a-0", "OPERATION_NOT_ATTEMPTED")], [("a-0", "INELIGIBLE_REPLICA")]),
    ),
    "an unclean leader recovers": Switch(
        "PROTOCOL_3_2",
        ("3.1", "3.2"),
        running({"a": [partition([1, 2, 3], (1, 4, [1]))]}, live=[1, 2, 3], unclean=True),
        (dies(1),),
        _recovery_and_bodies,
        ((0, {None}), (1, {1})),
    ),
}


@pytest.mark.parametrize("rule", MATRIX)
def test_the_versions_on_both_sides_of_a_rule(rule: str) -> None:
    switch = MATRIX[rule]
    older, newer = map(switch.outcome, switch.versions)
    assert (older, newer) == switch.outcomes
    assert older != newer


@pytest.mark.parametrize("rule", MATRIX)
def test_without_the_switch_the_newer_version_does_as_the_older(
    rule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    switch = MATRIX[rule]
    monkeypatch.setattr(releases, switch.gate, NEVER)
    assert switch.outcome(switch.versions[1]) == switch.outcomes[0]


def test_every_switch_is_in_the_matrix() -> None:
    gates = {name for name in vars(releases) if name.startswith(("RELEASE_", "PROTOCOL_"))}
    # No event makes a batch that both stops and deletes: see test_request_batches.
    by_hand = {"PROTOCOL_2_6"}
    assert {switch.gate for switch in MATRIX.values()} | by_hand == gates
