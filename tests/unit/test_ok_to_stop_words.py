"""When ``ok-to-stop`` does not decide, and how it says what it decided."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from understudy.commands.verdicts import Cluster
from understudy.report.ok_to_stop_text import as_text

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
CLUSTER = Cluster(
    "c1",
    "s1",
    NOW - timedelta(hours=2),
    is_complete=True,
    controller=None,
    registered=frozenset([1, 2]),
    live=frozenset([1]),
    known=frozenset([1, 2, 3]),
)


def test_a_complete_snapshot_that_is_young_enough_decides() -> None:
    assert CLUSTER.why_undecided(None, NOW) is None
    assert CLUSTER.why_undecided(timedelta(hours=2), NOW) is None


def test_what_is_old_or_of_unknown_age_or_not_complete_does_not() -> None:
    old = CLUSTER.why_undecided(timedelta(minutes=119), NOW)
    assert old is not None
    assert "2026-01-01T10:00:00+00:00" in old
    unknown = replace(CLUSTER, taken_at=None)
    assert unknown.why_undecided(None, NOW) is None
    assert "when" in (unknown.why_undecided(timedelta(hours=2), NOW) or "")
    assert "complete" in (replace(CLUSTER, is_complete=False).why_undecided(None, NOW) or "")


def told(**changes: Any) -> dict[str, Any]:  # noqa: ANN401
    return {
        "verdict": "yes",
        "brokers": [3, 4],
        "blocking_count": 0,
        "blocking": [],
        "unsavable_count": 0,
        "max": None,
        "max_is_largest": None,
        "reason": None,
        "cluster": "c1",
        "snapshot_id": "s1",
        "taken_at": "2026-01-01T10:00:00+00:00",
        **changes,
    }


def test_yes_with_who_may_go_as_well() -> None:
    text = as_text(told(max=[3, 4, 7], max_is_largest=True))
    assert text == (
        "OK to stop 3, 4 at once: yes.\n"
        "Judged by snapshot s1 of c1, taken 2026-01-01T10:00:00+00:00.\n"
        "\n"
        "May go together: 3, 4, 7 (no larger set may).\n"
    )
    assert "nobody can be added" in as_text(told(max=[3, 4, 7], max_is_largest=False))
    assert "Nobody else" in as_text(told(max=[3, 4], max_is_largest=True))


def test_no_with_the_partitions_in_the_way() -> None:
    blocking = [
        {"topic": "orders", "partition": 7, "risk": "unavailable"},
        {"topic": "orders", "partition": 9, "risk": "full_acks_produce_unavailable"},
    ]
    text = as_text(told(verdict="no", blocking_count=5, blocking=blocking, reason="so it is"))
    assert text == (
        "OK to stop 3, 4 at once: no.\n"
        "So it is.\n"
        "Judged by snapshot s1 of c1, taken 2026-01-01T10:00:00+00:00.\n"
        "\n"
        "In the way: 5 partitions (the first 2 follow)\n"
        "  partition  what happens         risk\n"
        "  orders-7   no leader is left    unavailable\n"
        "  orders-9   acks=all is blocked  full_acks_produce_unavailable\n"
    )
