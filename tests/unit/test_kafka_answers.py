"""The interpreter against what Kafka's own classes did with random clusters."""

from __future__ import annotations

import pytest

from clusters import rows_of
from kafka_answers import (
    EVENT_SUITES,
    SUITES,
    Case,
    cases,
    comparable,
    knows_recovery,
    named,
    per_receiver,
)
from understudy.controller.zk import interpreter


@pytest.mark.parametrize("suite", [*SUITES, *EVENT_SUITES])
def test_every_scenario_equals_kafka(suite: str) -> None:
    with_recovery = knows_recovery(suite)
    different = [
        case.snapshot["cluster"]
        for case in cases(suite)
        if comparable(_replayed(case), with_recovery=with_recovery)
        != comparable(case.answer, with_recovery=with_recovery)
    ]
    assert different == []


def _replayed(case: Case) -> dict[str, list[dict[str, object]]]:
    tables = interpreter.replay(rows_of(case.snapshot), case.scenario["events"])
    return per_receiver({name: named(name, rows) for name, rows in tables.items()})
