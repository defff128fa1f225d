"""What a person reads of a what-if."""

from __future__ import annotations

from typing import Any

from understudy.report.what_if_text import as_text


def scenario(name: str, verdict: str, **counts: int) -> dict[str, Any]:
    none = ("unavailable", "full_acks_produce_unavailable", "unclean", "newly_at_min_isr")
    return {
        "cluster": "c",
        "snapshot_id": "s1",
        "scenario": name,
        "verdict": verdict,
        **dict.fromkeys((*none, "leaders_moved"), 0),
        **counts,
        "reason": "1 partition loses its leader" if counts else None,
    }


def facts(**changes: Any) -> dict[str, Any]:  # noqa: ANN401
    at_risk = {
        "cluster": "c",
        "snapshot_id": "s1",
        "scenario": "broker:1",
        "topic": "orders",
        "partition": 7,
        "risks": ["unavailable"],
        "leader_before": 1,
        "leader": -1,
    }
    return {
        "verdict": "unsafe",
        "snapshots": 1,
        "several": [],
        "verdicts": {"unsafe": 1, "cannot-decide": 0, "warnings": 0, "safe": 1},
        "scenarios": {
            "count": 40,
            "first": [scenario("broker:1", "unsafe", unavailable=1), scenario("broker:2", "safe")],
        },
        "risks": {
            "rf1_offline": 0,
            "unavailable": 1,
            "full_acks_produce_unavailable": 1,
            "acks1_data_loss": 1,
        },
        "internal_topics": [],
        "at_risk": {"count": 1, "first": [at_risk], "topic": None},
        "notes": [],
        "quarantine": {"count": 0},
        "root": "out",
        "run_id": "r1",
        "tables": {"impact": 40},
        **changes,
    }


def test_the_verdict_comes_first_and_counts_are_true() -> None:
    lines = as_text(facts()).splitlines()
    assert lines[0] == "Verdict: unsafe. Of 40 scenarios: 1 unsafe, 1 safe."
    assert "Scenarios, the worst first: 40 scenarios (the first 2 follow)" in lines
    assert any(line.split()[:3] == ["broker:1", "unsafe", "1"] for line in lines)
    assert any(
        line.split() == ["orders-7", "broker:1", "1", "nobody", "unavailable"] for line in lines
    )


def test_internal_topics_are_called_out() -> None:
    told = as_text(facts(internal_topics=["__consumer_offsets", "__transaction_state"]))
    assert "Internal topics at risk: __consumer_offsets, __transaction_state." in told
    assert "Internal topics" not in as_text(facts())


def test_snapshots_are_named_where_there_are_several() -> None:
    """Also where those that are listed happen to be of one."""
    lines = as_text(facts(snapshots=3, several=["snapshot_id"])).splitlines()
    assert lines[0] == "Verdict: unsafe. Of 40 scenarios over 3 snapshots: 1 unsafe, 1 safe."
    assert lines[3].split()[:3] == ["snapshot_id", "scenario", "verdict"]
    assert lines[5].split()[:3] == ["s1", "broker:1", "unsafe"]
    assert any(line.split()[:3] == ["orders-7", "s1", "broker:1"] for line in lines)
    assert "snapshot_id" not in as_text(facts())


def test_lines_keep_to_the_width_of_a_terminal() -> None:
    long = {**scenario("broker:1", "unsafe", unavailable=1), "reason": "because " * 40}
    told = as_text(facts(scenarios={"count": 1, "first": [long]}))
    assert max(map(len, told.splitlines())) <= 100
