"""The quorum controller against what Kafka's own classes did with random clusters."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from clusters import rows_of
from kafka_answers import Case, cases
from kraft_answers import SUITES, answered, comparable, replayed
from understudy.controller.kraft import events as kraft
from understudy.controller.kraft import interpreter as kraft_interpreter
from understudy.controller.kraft.topics import first_in_hash_order
from understudy.schemas import REPLAY_TABLES

NOT_IN_KRAFT = ("replica_states", "transitions", "requests", "request_partitions")


@pytest.fixture(scope="module", params=SUITES)
def suite(request: pytest.FixtureRequest) -> list[Case]:
    return cases(request.param)


def test_every_scenario_equals_kafka(suite: list[Case]) -> None:
    different = [
        case.snapshot["cluster"]
        for case in suite
        if comparable(replayed(case.snapshot, case.scenario["events"]))
        != comparable(answered(case.answer))
    ]
    assert different == []


def test_the_suites_reach_every_event_and_every_release() -> None:
    every = [case for name in SUITES for case in cases(name)]
    types = Counter(event["type"] for case in every for event in case.scenario["events"])
    assert set(types) == set(kraft.EVENTS)
    releases = {".".join(case.snapshot["release"].split(".")[:2]) for case in every}
    assert releases == {*(f"3.{minor}" for minor in range(3, 10)), "4.0", "4.1", "4.2", "4.3"}


def test_a_difference_is_seen() -> None:
    case = next(case for case in cases("kraft") if case.answer["metadata_writes"])
    tables = answered(case.answer)
    for name in ("metadata_writes", "partition_states", "broker_states"):
        row = {**tables[name][0], "leader_epoch": 99, "broker_epoch": -5}
        changed = {**tables, name: [row, *tables[name][1:]]}
        assert comparable(changed) != comparable(tables)


def test_rows_have_every_column_and_the_tables_of_zookeeper_are_empty(suite: list[Case]) -> None:
    for case in suite[:40]:
        tables = kraft_interpreter.replay(rows_of(case.snapshot), case.scenario["events"])
        assert set(tables) == set(REPLAY_TABLES)
        for name, rows in tables.items():
            assert {len(row) for row in rows} <= {len(REPLAY_TABLES[name].names) - 3}
        assert not any(tables[name] for name in NOT_IN_KRAFT)


def test_only_the_partitions_in_scope_have_to_be_replayed(suite: list[Case]) -> None:
    for case in suite:
        rows, events = rows_of(case.snapshot), case.scenario["events"]
        scope = kraft.scope_of(events)
        first = {p["topic"]: len(p["replicas"]) for p in rows.partitions if p["partition"] == 0}
        touched = [
            {**p, kraft_interpreter.FIRST_REPLICAS: first.get(p["topic"])}
            for p in rows.partitions
            if scope.touches(p) or kraft.always_touched(p)
        ]
        whole = kraft_interpreter.replay(rows, events)
        part = kraft_interpreter.replay(rows._replace(partitions=touched), events)
        for name in ("metadata_writes", "decisions", "event_results", "broker_states"):
            assert part[name] == whole[name], (case.snapshot["cluster"], name)
        left_out = {_key(p) for p in rows.partitions} - {_key(p) for p in touched}
        states = {row[:2]: row for row in whole["partition_states"]}
        assert all(states[tp][16] == "unchanged" for tp in left_out)
        assert part["partition_states"] == [row for tp, row in states.items() if tp not in left_out]


def _key(row: Any) -> tuple[str, int]:  # noqa: ANN401 - a row of a canonical table
    return row["topic"], row["partition"]


def test_every_decision_names_one_chosen_candidate_at_most(suite: list[Case]) -> None:
    verdicts: Counter[str] = Counter()
    for case in suite:
        for row in replayed(case.snapshot, case.scenario["events"])["decisions"]:
            chosen = [replica for replica, verdict in row["candidates"] if verdict == "chosen"]
            assert chosen == ([] if row["chosen"] is None else [row["chosen"]])
            assert (row["clean"] is None) == (row["chosen"] is None)
            assert row["reason"]
            verdicts.update(verdict for _, verdict in row["candidates"])
    assert {"chosen", "fenced", "not_in_isr", "shutting_down", "leaving"} <= set(verdicts)


@pytest.mark.parametrize(
    ("partitions", "first"),
    [(1, 0), (2, 0), (3, 2), (5, 2), (6, 5), (10, 5), (11, 0), (14, 13), (22, 0), (35, 34)],
)
def test_kafkas_hash_order_over_partitions(partitions: int, first: int) -> None:
    assert first_in_hash_order(range(partitions), partitions) == first


def test_a_changed_partition_can_double_the_hash_table() -> None:
    assert first_in_hash_order(range(10), 11) == 0
