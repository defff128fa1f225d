"""How cut sets are told on a terminal."""

from __future__ import annotations

from typing import Any

from understudy.report.cut_sets_text import as_text

TOTAL = {
    "cluster": "c1",
    "snapshot_id": "s1",
    "risk": "unavailable",
    "brokers": 4,
    "partitions": 1200,
    "already": 2,
    "sets": 31,
    "smallest": 2,
    "expected_partitions": None,
    "expected_weight": None,
    "any_low": None,
    "any_high": None,
}
SET = {
    "cluster": "c1",
    "snapshot_id": "s1",
    "k": 2,
    "brokers": [1, 3],
    "partitions": 7,
    "topics": 2,
    "weight": 7.0,
    "units": None,
}
RETURN = {
    "cluster": "c1",
    "snapshot_id": "s1",
    "partitions": 2,
    "hopeless": 1,
    "brokers": [9],
    "at_least": 1,
}


def told(**changes: Any) -> dict[str, Any]:  # noqa: ANN401
    return {
        "run_id": "r1",
        "root": "out",
        "tables": {"cut_sets": 31},
        "notes": [],
        "totals": [TOTAL],
        "worst": [
            {"risk": "unavailable", "k": 1, "count": 0, "first": []},
            {"risk": "unavailable", "k": 2, "count": 31, "first": [SET]},
        ],
        "recovery": [],
        **changes,
    }


def test_the_worst_sets_with_the_true_count() -> None:
    assert as_text(told()) == (
        "Minimal sets whose loss costs partitions\n"
        "  risk              partitions  already  sets  smallest\n"
        "  without a leader       1,200        2    31         2\n"
        "\n"
        "Sets whose loss leaves partitions without a leader, k = 2: 31 sets (the worst 1 follow);"
        " on top of what a part of each costs\n"
        "  partitions  topics  set\n"
        "           7       2  1, 3\n"
        "\n"
        "Tables in out, run=r1 (rows):\n"
        "  cut_sets 31\n"
    )


def test_weights_units_and_odds_are_told_where_there_are_any() -> None:
    rated = {**TOTAL, "expected_partitions": 0.0123, "any_low": 0.25, "any_high": 0.5}
    weighed = {**SET, "weight": 2.5e9, "units": ["a", "switch-1"]}
    text = as_text(
        told(
            totals=[rated],
            worst=[{"risk": "unavailable", "k": 2, "count": 1, "first": [weighed]}],
        )
    )
    assert "expected  any loss" in text
    assert "0.0123    0.25 to 0.5" in text
    assert "2.5e+09  a, switch-1" in text
    assert "0.25\n" in as_text(told(totals=[{**rated, "any_high": 0.25}]))


def test_who_must_return() -> None:
    text = as_text(told(recovery=[RETURN]))
    assert "Waiting for a broker to return (s1): 2 partitions\n" in text
    assert "the return of 9 brings back all that can be brought back (no fewer would do)\n" in text
    assert "1 partition cannot come back with every record, whoever returns\n" in text
    several = {**RETURN, "hopeless": 0, "brokers": [7, 8, 9], "at_least": 2}
    assert "(at least 2 are needed)" in as_text(told(recovery=[several]))
