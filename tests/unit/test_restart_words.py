"""What a restart plan makes of the controller and the quorum, and how it is said."""

from __future__ import annotations

import json
from typing import Any

import pytest

from understudy.commands.plan_restart import judged
from understudy.questions.restart import replay
from understudy.questions.restart.answer import Asked, quorum_conflicts
from understudy.questions.units import Broker, Cluster
from understudy.report.restart_plan_text import as_text

BROKERS = {n: Broker(n != 9, None, ()) for n in range(1, 10)}


def a_cluster(mode: str, voters: set[int] | None = None) -> Cluster:
    known = None if voters is None else frozenset(voters)
    return Cluster("c1", "s1", mode, 1, BROKERS, voters=known)


def types(mode: str, rounds: list[tuple[int, ...]]) -> list[str]:
    events = replay.scenario(a_cluster(mode), rounds).events
    return [json.loads(event)["type"] for event in events]


def test_a_round_shuts_down_fails_starts_and_catches_up() -> None:
    events = replay.scenario(a_cluster("zk"), [(2, 3)]).events
    assert [json.loads(event) for event in events] == [
        {"type": "controlled_shutdown", "broker": 2},
        {"type": "controlled_shutdown", "broker": 3},
        {"type": "broker_failure", "brokers": [2, 3]},
        {"type": "broker_startup", "brokers": [2, 3]},
        {"type": "catch_up", "brokers": [2, 3]},
    ]


def test_a_controller_that_goes_is_followed_by_the_smallest_that_lives() -> None:
    downs = [t for t in types("zk", [(1, 2), (4,), (3,)]) if t.endswith(("failover", "failure"))]
    assert downs == ["controller_failover", "broker_failure", "controller_failover"]
    downs = [t for t in types("kraft", [(1, 2), (3,)]) if t.endswith(("failover", "failure"))]
    assert downs == ["broker_failure", "broker_failure"]


def test_the_controllers_round_is_the_last() -> None:
    rounds = [(1, 2), (3, 4), (5,)]
    ordered = replay.with_the_controller_last(a_cluster("zk"), rounds)
    assert ordered == [(3, 4), (5,), (1, 2)]


def test_a_majority_of_the_voters_stays_up() -> None:
    def sets(mode: str, voters: set[int] | None) -> list[list[int]]:
        asked = Asked(a_cluster(mode, voters), (1, 2, 3, 4), (), {})
        return [sorted(each) for each in quorum_conflicts(asked)]

    assert sets("kraft", {1, 2, 3}) == [[1, 2], [1, 3], [2, 3]]
    assert sets("kraft", {1, 2, 3, 7, 8}) == [[1, 2, 3]]
    assert sets("kraft", {1, 2}) == [[1, 2]]
    assert sets("kraft", {7, 8, 9}) == sets("kraft", None) == sets("zk", {1, 2, 3}) == []


def told(**changes: Any) -> dict[str, Any]:  # noqa: ANN401
    return {
        "verdict": "yes",
        "reason": None,
        "brokers": [1, 2, 3],
        "down": [],
        "proposed_rounds": [[2, 3], [1]],
        "at_least": 2,
        "is_fewest": True,
        "is_exact": True,
        "apart": [1, 2],
        "unsavable_count": 0,
        "unsavable_now_count": 0,
        "unsavable": [],
        "tightest": [
            {"round": 1, "brokers": [2, 3], "partitions": 7, "at_min_isr": 2, "spare": 0,
             "topic": "orders", "partition": 4, "in_sync": 3, "min_isr": 2, "down": 1},
            {"round": 2, "brokers": [1], "partitions": 0, "at_min_isr": 0, "spare": None,
             "topic": None, "partition": None, "in_sync": None, "min_isr": None, "down": None},
        ],
        "conflict_count": 0,
        "conflicts": [],
        "fix_count": 0,
        "fixes_at_least": 0,
        "fixes_rounds": None,
        "fixes_homeless": 0,
        "fixes": [],
        "cluster": "c1",
        "snapshot_id": "s1",
        "taken_at": None,
        **changes,
    }  # fmt: skip


def test_rounds_are_rows() -> None:
    assert as_text(told()) == (
        "Rolling restart of 3 brokers: yes.\n"
        "2 rounds, and no plan has fewer. No two of these may go together: 1, 2.\n"
        "Judged by snapshot s1 of c1.\n"
        "\n"
        "  round  down  partitions  at min ISR  tightest partition              brokers\n"
        "      1     2           7           2  orders-4: 2 in sync, min ISR 2  2, 3\n"
        "      2     1           0           0  -                               1\n"
    )


def test_no_says_why_and_what_it_would_be() -> None:
    alone = {"topic": "logs", "partition": 0, "in_sync": 1, "min_isr": 1, "too_few": "replicas"}
    text = as_text(told(verdict="no", reason="so", unsavable_count=3, unsavable=[alone], down=[9]))
    assert "Rolling restart of 3 brokers: no.\nSo.\n" in text
    assert "The rounds below hold for all other partitions." in text
    assert "Down already, and not restarted: 9." in text
    assert "No order saves 3 partitions (the first 1 follow)\n" in text
    assert "logs-0           1        1  no more replicas than min ISR\n" in text


def test_those_that_are_only_behind_are_told_from_those_no_order_ever_saves() -> None:
    behind = {"topic": "a", "partition": 7, "in_sync": 2, "min_isr": 2, "too_few": "in_sync"}
    text = as_text(told(unsavable_count=3, unsavable_now_count=1, unsavable=[behind] * 3))
    assert "\nNo order saves 3 partitions, 1 of them until replicas have caught up\n" in text
    assert "no more in sync than min ISR now: wait for the others\n" in text


@pytest.mark.parametrize(
    ("unsavable", "only_now", "ignoring", "verdict", "reasons"),
    [
        (0, 0, False, "yes", None),
        (3, 0, False, "no", "any restart of theirs blocks acks=all on 3 partitions"),
        (3, 0, True, "yes", "ignored: 3 partitions with no more replicas than min ISR asks for"),
        (3, 1, False, "no", "1 of them only because replicas are out of sync now: wait until"),
        (3, 1, True, "no", "any restart of theirs blocks acks=all on 1 partition, whatever"),
        (3, 1, True, "no", "; ignored: 2 partitions with no more replicas than min ISR asks for"),
    ],
)
def test_only_what_never_can_be_saved_is_ignored(
    unsavable: int, only_now: int, *, ignoring: bool, verdict: str, reasons: str | None
) -> None:
    found, why = judged(unsavable, only_now, ignoring=ignoring)
    assert found == verdict
    assert (why is None) if reasons is None else (reasons in str(why))


def test_moves_and_what_is_in_the_way() -> None:
    move = {"topic": "t", "partition": 1, "from": 2, "to": 5, "replicas": [1, 5]}
    conflict = {"brokers": [1, 2], "partitions": 4, "topic": "t", "partition": 1}
    text = as_text(
        told(
            is_fewest=False,
            proposed_rounds=[[1], [2], [3]],
            conflict_count=1,
            conflicts=[conflict],
            fix_count=4,
            fixes_at_least=3,
            fixes_rounds=2,
            fixes=[move],
        )
    )
    assert "3 rounds found, at least 2 needed." in text
    assert "In the way of 2 rounds: 1 set of brokers that may not go together\n" in text
    assert "  1, 2              4  t-1\n" in text
    assert "2 rounds after 4 replica moves, at least 3 are needed (the first 1 follow)\n" in text
    assert "  t-1           2   5  [1, 5]\n" in text
