"""The quorum controller against Kafka's answers to our own cases (``make vectors``)."""

from __future__ import annotations

import pytest

from conformance import kraft_cases, kraft_comparing
from conformance.comparing import Difference
from conformance.kraft_family import FAMILY
from conformance.vectors import SUITES, Suite
from kafka_answers import Case, cases

KRAFT = [suite for suite in SUITES if suite.family is FAMILY]
SEED = 1


@pytest.fixture(scope="module", params=KRAFT, ids=lambda suite: suite.name)
def suite(request: pytest.FixtureRequest) -> Suite:
    found: Suite = request.param
    return found


def test_every_case_equals_kafka(suite: Suite) -> None:
    assert _different(cases(suite.name)) == {}


def test_the_cases_are_those_the_seed_draws(suite: Suite) -> None:
    recorded = [{"snapshot": c.snapshot, "scenario": c.scenario} for c in cases(suite.name)]
    assert recorded == suite.cases(SEED)


def test_every_release_and_every_event_is_there() -> None:
    assert tuple(suite.release for suite in KRAFT) == kraft_cases.RELEASES
    for suite in KRAFT:
        events = (event for case in cases(suite.name) for event in case.scenario["events"])
        assert {event["type"] for event in events} == set(kraft_cases.EVENTS)


def test_a_changed_answer_is_a_difference() -> None:
    case = next(each for each in cases(KRAFT[0].name) if each.answer["partition_states"])
    case.answer["partition_states"][0]["partition_epoch"] += 1
    (found,) = _different([case]).values()
    assert [difference.table for difference in found] == ["partition_states"]


def _different(asked: list[Case]) -> dict[str, list[Difference]]:
    found = {}
    for case in asked:
        question = {"snapshot": case.snapshot, "scenario": case.scenario}
        tables = kraft_comparing.interpreted(question)
        if differences := kraft_comparing.differences(question, case.answer, tables):
            found[case.snapshot["cluster"]] = differences
    return found
