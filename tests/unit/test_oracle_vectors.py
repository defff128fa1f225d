"""The interpreters of ZooKeeper mode against Kafka's answers to our own cases, recorded before."""

from __future__ import annotations

import copy
from functools import cache

import pytest

from conformance import kraft_family
from conformance.comparing import Difference
from conformance.legacy_comparing import hangs_on_order
from conformance.vectors import SUITES, Suite
from kafka_answers import Case
from kafka_answers import cases as read_cases

ZOOKEEPER = [suite for suite in SUITES if suite.family is not kraft_family.FAMILY]
SEED = 1

cases = cache(read_cases)


@pytest.fixture(scope="module", params=ZOOKEEPER, ids=lambda suite: suite.name)
def suite(request: pytest.FixtureRequest) -> Suite:
    found: Suite = request.param
    return found


def test_every_fifth_case_equals_kafka(suite: Suite) -> None:
    assert _different(suite, cases(suite.name)[::5]) == {}


@pytest.mark.slow
def test_every_case_equals_kafka(suite: Suite) -> None:
    assert _different(suite, cases(suite.name)) == {}


def test_the_cases_are_those_the_seed_draws(suite: Suite) -> None:
    recorded = [{"snapshot": c.snapshot, "scenario": c.scenario} for c in cases(suite.name)]
    assert recorded == suite.cases(SEED)


def test_every_event_is_there(suite: Suite) -> None:
    events = (event for case in cases(suite.name) for event in case.scenario["events"])
    assert {event["type"] for event in events} == set(suite.family.events)


def test_a_changed_answer_is_a_difference(suite: Suite) -> None:
    case = copy.deepcopy(next(each for each in cases(suite.name) if each.answer["requests"]))
    case.answer["requests"][0]["version"] += 1
    (found,) = _different(suite, [case]).values()
    assert [difference.table for difference in found] == ["requests"]


def test_few_legacy_cases_hang_on_the_order_of_sets() -> None:
    """Only what no order changes is compared in those; in all others, everything."""
    legacy = next(suite for suite in ZOOKEEPER if suite.release == "1.0")
    answers = [case.answer for case in cases(legacy.name)]
    hanging = sum(map(hangs_on_order, answers))
    assert 0 < hanging < len(answers) / 4


def _different(suite: Suite, asked: list[Case]) -> dict[str, list[Difference]]:
    family = suite.family
    found = {}
    for case in asked:
        question = {"snapshot": case.snapshot, "scenario": case.scenario}
        tables = family.interpreted(question)
        if differences := family.differences(question, case.answer, tables):
            found[case.snapshot["cluster"]] = differences
    return found
