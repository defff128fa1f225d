"""The story of a partition in words."""

from __future__ import annotations

from typing import Any

import pytest

from understudy.commands.diff import LEGEND
from understudy.errors import UsageError
from understudy.questions import explain
from understudy.report import diff_text, explain_text
from understudy.report.tables import how_to_see_more

NOW: dict[str, Any] = {
    "cluster": "c",
    "snapshot_id": "s1",
    "taken_at": None,
    "replicas": [1, 2, 3],
    "adding": [],
    "removing": [],
    "offline_dirs": [],
    "has_state": True,
    "leader": 2,
    "leader_epoch": 5,
    "isr": [2, 3],
    "partition_epoch": 11,
    "queued_for_deletion": False,
    "min_isr": 2,
    "unclean_allowed": False,
    "brokers": [{"broker_id": b, "alive": True, "shutting_down": False} for b in (2, 3)],
}
NOTHING = {"count": 0, "first": []}


def story(now: dict[str, Any] | None = None) -> str:
    told = {"partition": "t-0", "now": NOW | (now or {}), "past": NOTHING, "next": []}
    return explain_text.as_text(told)


def test_a_led_partition() -> None:
    assert story() == (
        "t-0 in snapshot s1 of c\n"
        "\n"
        "Now\n"
        "  Broker 2 leads it (leader epoch 5, partition epoch 11); in sync: 2, 3; the assigned"
        " replicas are\n"
        "    1, 2, 3. Its preferred leader would be 1.\n"
        "  Not alive, or shutting down: 1.\n"
        "  min.insync.replicas is 2 and 2 in sync, so acks=all may go on.\n"
        "\n"
        "What happened\n"
        "  No earlier snapshot shows it any different.\n"
    )


def test_a_story_that_is_not_told_whole_says_so() -> None:
    past = {"count": 3, "first": []}
    told = explain_text.as_text({"partition": "t-0", "now": NOW, "past": past, "next": []})
    assert "What happened: 3 snapshots with something new (the last 0 follow)\n" in told
    assert "--limit N" in how_to_see_more(told, 0)
    assert how_to_see_more(story(), 0) == ""


@pytest.mark.parametrize(
    ("now", "said"),
    [
        ({"replicas": None}, "The partition is not there."),
        ({"has_state": False, "leader": None, "isr": None}, "It never had a leader;"),
        ({"leader": -1, "isr": [3]}, "It has no leader (leader epoch 5, partition epoch 11);"),
        ({"isr": [2]}, "min.insync.replicas is 2 and 1 in sync, so acks=all is refused."),
        ({"isr": [2]}, "Alive but not in sync: 3."),
        ({"adding": [3]}, "A reassignment is in flight: 3 to be added, nobody to be removed."),
        ({"queued_for_deletion": True}, "The topic is queued for deletion."),
        ({"offline_dirs": [3]}, "Its log directory is offline on 3."),
        ({"unclean_allowed": True}, "Unclean election is allowed"),
    ],
)
def test_what_it_is(now: dict[str, Any], said: str) -> None:
    assert said in story(now)


def test_only_brokers_that_are_up_can_fail() -> None:
    brokers = [*NOW["brokers"], {"broker_id": 1, "alive": True, "shutting_down": True}]
    assert explain_text.live_replicas(NOW | {"brokers": brokers}) == [2, 3]
    assert explain_text.live_replicas(NOW | {"replicas": None}) == []


@pytest.mark.parametrize("written", ["orders", "orders-", "-1", "orders-x", "orders--", "é-1"])
def test_not_a_partition(written: str) -> None:
    with pytest.raises(UsageError):
        explain.parse(written)


def test_the_last_dash_splits() -> None:
    assert explain.parse("my-topic-12") == ("my-topic", 12)


def test_differences_in_words() -> None:
    row = {"name": "t", "number": 4, "topic": "t"}
    told = {
        "left": {"cluster": "c", "snapshot_id": "s1", "taken_at": None},
        "right": {"cluster": "c", "snapshot_id": "s2", "taken_at": "2026-01-01T00:00:00.000Z"},
        "topic": None,
        "differences": {
            "partitions": {
                "unchanged": 7,
                "changed": 2,
                "inserted": 1,
                "deleted": 0,
                "count": 3,
                "first": [
                    row | {"diff": "C", "left": {"leader": "1"}, "right": {"leader": None}},
                    row
                    | {
                        "diff": "I",
                        "left": {"leader": None},
                        "right": {"isr": "[]", "leader": "2"},
                    },
                ],
            },
        },
    }
    assert diff_text.as_text(told, legend=LEGEND) == (
        "From s1 of c\n"
        "to   s2 of c, taken at 2026-01-01T00:00:00.000Z\n"
        "\n"
        "10 partitions: 7 unchanged, 2 changed, 1 inserted (the first 2 follow)\n"
        "  diff  what  how\n"
        "  C     t-4   leader 1 → unknown\n"
        "  I     t-4   leader 2\n"
        "\n"
        "diff: I only PATH_B has it, D only PATH_A has it, C it changed.\n"
    )
    told["differences"] = {}
    assert diff_text.as_text(told, legend=LEGEND).endswith("\n\nNothing is different.\n")
