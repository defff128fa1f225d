"""The interpreter against Kafka's answers to our own cases (``make vectors`` records them)."""

from __future__ import annotations

import pytest

from conformance.comparing import Difference, differences, interpreted
from kafka_answers import Case, cases

SUITES = ("oracle-zk-3.9", "oracle-zk-2.8")


@pytest.mark.parametrize("suite", SUITES)
def test_every_fifth_case_equals_kafka(suite: str) -> None:
    assert _different(cases(suite)[::5]) == {}


@pytest.mark.slow
@pytest.mark.parametrize("suite", SUITES)
def test_every_case_equals_kafka(suite: str) -> None:
    assert _different(cases(suite)) == {}


def test_a_changed_answer_is_a_difference() -> None:
    case = next(each for each in cases(SUITES[0]) if each.answer["requests"])
    case.answer["requests"][0]["broker_epoch"] += 1
    assert [d.table for d in _different([case])[case.snapshot["cluster"]]] == ["requests"]


def _different(asked: list[Case]) -> dict[str, list[Difference]]:
    found = {
        case.snapshot["cluster"]: differences(
            case.answer, interpreted({"snapshot": case.snapshot, "scenario": case.scenario})
        )
        for case in asked
    }
    return {cluster: each for cluster, each in found.items() if each}
