"""Scenario documents: every event's fields, what is refused, and what is canonical."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.errors import BadInputError
from understudy.scenarios import EVENT_TYPES, FAILOVER, Scenario, parse, resolve

Event = dict[str, Any]

VALID: list[Event] = [
    {"type": "controller_failover"},
    {"type": "controller_failover", "controller": 2, "dead": [1], "forget": True},
    {"type": "broker_change", "live": {"1": 5, "2": 9223372036854775807}},
    {"type": "broker_change", "live": {}},
    {"type": "broker_failure", "brokers": [3, 1]},
    {"type": "broker_startup", "brokers": [3, 1]},
    {"type": "broker_startup", "brokers": [3, 1], "epochs": [None, 70]},
    {"type": "broker_startup", "brokers": [3], "clean": True, "log_dirs": {"3": ["d"]}},
    {"type": "log_dir_failure", "broker": 1, "partitions": ["orders-0", "a-b-12"]},
    {"type": "log_dir_failure", "broker": 1, "dirs": ["vHdJ2W0Ebm6SL5ZI2hgMKA"]},
    {"type": "controlled_shutdown", "broker": 1},
    {"type": "topic_change", "topics": {"t": {"0": [1, 2]}}, "removed": ["u"]},
    {"type": "topic_change"},
    {"type": "partition_change", "topic": "t", "partitions": {"3": [1, 2]}},
    {"type": "reassign", "partitions": {"t-1": [4, 5], "t-0": []}},
    {"type": "reassign", "partitions": {"t-1": [-1]}, "allow_replication_factor_change": False},
    {"type": "cancel_reassignment", "partitions": ["t-1"]},
    {"type": "isr_change", "partition": "t-0", "isr": [2, 1]},
    {
        "type": "isr_change",
        "partition": "t-0",
        "isr": [2],
        "sender": 2,
        "leader_epoch": 1,
        "partition_epoch": 2,
        "recovery": 1,
        "broker_epochs": {"2": -1},
    },
    {"type": "catch_up", "brokers": [2, 1]},
    {"type": "preferred_election", "partitions": "all"},
    {"type": "unclean_election", "partitions": ["t-0"]},
    {"type": "auto_rebalance"},
    {"type": "auto_rebalance", "percentage": 0},
    {"type": "delete_topics", "topics": ["t"]},
    {"type": "stop_replica_response", "broker": 1, "partitions": ["t-0"]},
    {
        "type": "stop_replica_response",
        "broker": 1,
        "partitions": ["t-0"],
        "error": "KAFKA_STORAGE_ERROR",
    },
    {"type": "unclean_enabled"},
    {"type": "unclean_enabled", "topic": "t"},
    {"type": "fence", "brokers": [1]},
    {"type": "unfence", "brokers": [1]},
    {"type": "unregister", "brokers": [1]},
    {"type": "assign_dirs", "broker": 1, "partitions": {"t-0": "vHdJ2W0Ebm6SL5ZI2hgMKA"}},
    {"type": "auto_unclean_election"},
]

REFUSED: list[tuple[Event, str]] = [
    ({}, 'events[0].type: no key "type"; there are controller_failover, broker_change'),
    ({"type": "flood"}, 'events[0].type: unknown event type "flood"; there are controller_'),
    ({"type": []}, "events[0].type: unknown event type a list; there are"),
    ({"type": "broker_failure"}, 'events[0]: the key "brokers" of broker_failure is missing'),
    (
        {"type": "broker_failure", "brokers": [1], "epoch": 1, "at": 2},
        'events[0]: unknown keys "at", "epoch"',
    ),
    (
        {"type": "broker_failure", "brokers": 3},
        "events[0].brokers: expected a list of broker ids, found 3",
    ),
    (
        {"type": "broker_failure", "brokers": [1, True]},
        "events[0].brokers[1]: expected an integer, found true",
    ),
    (
        {"type": "broker_failure", "brokers": [1, 1]},
        "events[0].brokers[1]: broker 1 stands here twice",
    ),
    ({"type": "fence", "brokers": [-1]}, "events[0].brokers[0]: -1 is less than 0"),
    (
        {"type": "broker_failure", "brokers": None},
        "events[0].brokers: expected a list of broker ids, found null",
    ),
    (
        {"type": "broker_startup", "brokers": [1], "epochs": [1, 2]},
        "events[0].epochs: expected one for each of 1 brokers, found 2",
    ),
    (
        {"type": "broker_startup", "brokers": [1], "epochs": ["1"]},
        'events[0].epochs[0]: expected an integer, found "1"',
    ),
    (
        {"type": "broker_change", "live": {"one": 1}},
        'events[0].live.one: "one" is not a number from 0 to 2147483647',
    ),
    (
        {"type": "broker_change", "live": {"1": None}},
        "events[0].live.1: expected an integer, found null",
    ),
    (
        {"type": "log_dir_failure", "broker": 1},
        'events[0]: log_dir_failure needs the key "partitions" or "dirs"',
    ),
    (
        {"type": "log_dir_failure", "broker": 1, "partitions": ["orders"]},
        'events[0].partitions[0]: "orders" is not a partition such as orders-0',
    ),
    (
        {"type": "cancel_reassignment", "partitions": ["-0"]},
        "events[0].partitions[0]: the string is empty",
    ),
    (
        {"type": "cancel_reassignment", "partitions": ["a b-0"]},
        'events[0].partitions[0]: "a b" has characters other than',
    ),
    (
        {"type": "isr_change", "partition": "t-99999999999", "isr": []},
        'events[0].partition: "t-99999999999" is not a partition such as orders-0',
    ),
    (
        {"type": "preferred_election", "partitions": "some"},
        'events[0].partitions: expected a list of partitions or "all", found "some"',
    ),
    (
        {"type": "auto_rebalance", "percentage": 101},
        "events[0].percentage: 101 is more than 100 percent",
    ),
    (
        {"type": "delete_topics", "topics": [".."]},
        'events[0].topics[0]: a topic cannot be named "." or ".."',
    ),
    (
        {"type": "topic_change", "topics": {"t": {"x": [1]}}},
        'events[0].topics.t.x: "x" is not a number from 0 to',
    ),
    (
        {"type": "partition_change", "topic": "t", "partitions": {"0": 1}},
        "events[0].partitions.0: expected a list of broker ids, found 1",
    ),
    (
        {"type": "controller_failover", "forget": "yes"},
        'events[0].forget: expected true or false, found "yes"',
    ),
]


def scenario(*events: Event, **more: object) -> dict[str, Any]:
    return {"scenario": "x", "events": list(events), **more}


def parsed(value: object) -> list[Scenario]:
    return parse(json.dumps(value).encode(), "s.json")


def problems(data: bytes) -> tuple[str, ...]:
    with pytest.raises(BadInputError) as refusal:
        parse(data, "s.json")
    assert str(refusal.value).startswith("s.json: the scenarios are refused\n  - line ")
    return refusal.value.problems


@pytest.mark.parametrize("event", VALID, ids=lambda event: str(event["type"]))
def test_events_of_every_type_are_accepted(event: Event) -> None:
    (found,) = parsed(scenario(event))
    (text,) = found.events
    assert json.loads(text) == event
    assert list(json.loads(text)) == sorted(event)


def test_no_event_type_goes_untested() -> None:
    assert {event["type"] for event in VALID} == set(EVENT_TYPES)


@pytest.mark.parametrize(("event", "problem"), REFUSED)
def test_an_event_that_makes_no_sense_is_refused(event: Event, problem: str) -> None:
    (found,) = problems(json.dumps(scenario(event)).encode())
    assert found.startswith(f"line 1: {problem}")


def test_the_order_of_reassignments_stays() -> None:
    (found,) = parsed(scenario({"type": "reassign", "partitions": {"t-1": [4], "t-0": [5]}}))
    assert found.events == ('{"partitions": {"t-1": [4], "t-0": [5]}, "type": "reassign"}',)


def test_a_null_field_that_may_be_missing_is_left_out() -> None:
    (found,) = parsed(scenario({"type": "unclean_enabled", "topic": None}))
    assert found.events == ('{"type": "unclean_enabled"}',)


def test_the_default_scenario_is_canonical() -> None:
    (found,) = parsed({"scenario": "failover", "events": [{"type": "controller_failover"}]})
    assert found == FAILOVER


def test_forms_of_a_file() -> None:
    first = scenario(cluster="c", snapshot_id="s")
    second = {"scenario": "y", "events": [{"type": "broker_failure", "brokers": [1]}]}
    lines = f"{json.dumps(first)}\n\n{json.dumps(second)}\n".encode()
    for data in (
        lines,
        gzip.compress(lines),
        json.dumps([first, second]).encode(),
        json.dumps([first, second], indent=2).encode(),
    ):
        assert parse(data, "s.json") == [
            Scenario("x", "c", "s", ()),
            Scenario("y", None, None, ('{"brokers": [1], "type": "broker_failure"}',)),
        ]
    assert parse(json.dumps(second, indent=2).encode(), "s.json")[0].scenario == "y"


def test_everything_wrong_is_said_at_once_with_its_line() -> None:
    lines = [
        json.dumps(scenario({"type": "fence", "brokers": [1]})),
        json.dumps({"scenario": "", "events": {}, "more": 1}),
        "{broken",
        json.dumps(scenario({"type": "auto_rebalance"}, {"type": "fence", "brokers": "1"})),
        json.dumps({"cluster": "c"}),
    ]
    assert problems("\n".join(lines).encode()) == (
        'line 2: unknown key "more"',
        "line 2: scenario: the string is empty",
        "line 2: events: expected a list of events, found an object",
        "line 3: column 2: not JSON: expecting property name enclosed in double quotes",
        'line 4: events[1].brokers: expected a list of broker ids, found "1"',
        'line 5: the key "scenario" is missing',
        'line 5: the key "events" is missing',
    )


def test_in_a_list_the_place_is_named() -> None:
    (problem,) = problems(json.dumps([scenario(), scenario({"type": "?"})]).encode())
    assert problem.startswith('line 1: [1].events[0].type: unknown event type "?"')


@pytest.mark.parametrize(
    "data", [b"", b"[]", b"\n", gzip.compress(b"{}", mtime=0)[:-3], b"[1]", b"null"]
)
def test_files_without_scenarios_are_refused(data: bytes) -> None:
    assert len(problems(data)) == 1


def test_a_key_written_twice_is_refused() -> None:
    text = b'{"scenario": "x", "events": [{"type": "broker_change", "live": {"1": 1, "1": 2}}]}'
    assert problems(text) == ("line 1: events[0].live.1: this key is written more than once",)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)
FIELDS = sorted({key for event in VALID for key in event} - {"type"})


@given(st.sampled_from(EVENT_TYPES), st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=3))
@settings(max_examples=300, deadline=None)
def test_any_event_is_accepted_or_refused_in_words(kind: str, fields: dict[str, object]) -> None:
    try:
        found = parsed(scenario({"type": kind, **fields}))
    except BadInputError as refusal:
        str(refusal).encode("utf-8")
    else:
        assert json.loads(found[0].events[0])["type"] == kind


def test_scenarios_find_their_snapshots() -> None:
    snapshots = [("c2", "s1"), ("c1", "s2"), ("c1", "s1")]
    given = [
        FAILOVER,
        Scenario("in-c1", "c1", None, ("e1", "e2")),
        Scenario("in-s1", None, "s1", ()),
        Scenario("exact", "c2", "s1", ("e",)),
    ]
    assert resolve(given, snapshots) == [
        *((key, 0) for key in sorted(snapshots)),
        (("c1", "s1"), 1),
        (("c1", "s2"), 1),
        (("c1", "s1"), 2),
        (("c2", "s1"), 2),
        (("c2", "s1"), 3),
    ]


def test_scenarios_that_fit_no_snapshot_or_share_a_name_are_refused() -> None:
    snapshots = [("c1", "s1"), ("c2", "s1")]
    given = [
        Scenario("lost", "c1", "s9", ()),
        Scenario("twice", "c1", None, ()),
        Scenario("twice", None, "s1", ()),
        Scenario("apart", "c1", "s1", ()),
        Scenario("apart", "c2", "s1", ()),
    ]
    with pytest.raises(BadInputError) as refusal:
        resolve(given, snapshots)
    assert refusal.value.problems == (
        "scenario lost: no snapshot is of cluster c1, snapshot s9",
        "scenario twice: the name is used twice for snapshot s1 of cluster c1",
    )
    assert len(resolve(given[3:], snapshots)) == 2
