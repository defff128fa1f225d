"""Profile zk-legacy: against what Kafka 1.0.2's own classes did, and its corners by name."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Any

import pytest

from clusters import Document, cluster, partition, random_cluster, rows_of
from kafka_answers import Row, named, per_receiver
from legacy_answers import SUITES, Case, cases, differences
from understudy.controller.scope import always_touched
from understudy.controller.snapshot_rows import SnapshotRows
from understudy.controller.zk_legacy import interpreter as legacy_interpreter
from understudy.controller.zk_legacy import releases as legacy_releases
from understudy.controller.zk_legacy.events import EVENTS, scope_of
from understudy.controller.zk_legacy.order import broker_set, picked_states, replica_set
from understudy.schemas import REPLAY_TABLES

FAILOVER = {"type": "controller_failover"}
OFFLINE = "OfflinePartition"
SPEC = {case.name: case for case in cases("legacy-spec")}

# Where Kafka takes topics or partitions by hash and we take them by name: which of several topics
# is deleted first, which reassignment resumed first, which partition moved first in a shutdown.
OPEN_ORDER = {"k100054", "k100120", "k100139", "k100197", "k100212", "k200023"}


@pytest.mark.parametrize("suite", SUITES)
def test_every_case_equals_kafka(suite: str) -> None:
    different = {case.name: differences(case) for case in cases(suite)}
    assert {name: tables for name, tables in different.items() if tables} == {}


@pytest.mark.parametrize("name", SPEC)
def test_corner(name: str) -> None:
    assert differences(SPEC[name]) == []


def test_the_order_of_sets_is_kafkas_too() -> None:
    """Most cases that hang on the order of a set are equal entirely, because we walk it alike."""
    marked = [case for suite in SUITES for case in cases(suite) if case.order_free]
    different = {case.name for case in marked if differences(case._replace(order_free=False))}
    assert len(marked) > len(OPEN_ORDER)
    assert different == OPEN_ORDER


# --- The order of sets -------------------------------------------------------------------------


def test_up_to_four_brokers_keep_their_order() -> None:
    assert broker_set([9, 3, 9, 7, 1]) == (9, 3, 7, 1)


@pytest.mark.parametrize(
    ("brokers", "walked"),
    [
        (range(1, 13), (5, 10, 1, 6, 9, 2, 12, 7, 3, 11, 8, 4)),
        ([0, 9, 10, 31, 32, 33, 40, 64, 1001], (0, 10, 1001, 33, 9, 32, 64, 31, 40)),
    ],
)
def test_more_brokers_are_walked_by_hash(brokers: Iterable[int], walked: tuple[int, ...]) -> None:
    assert broker_set(brokers) == walked
    assert broker_set(reversed(list(brokers))) == walked


def test_replicas_are_walked_as_a_real_controller_logged_it() -> None:
    logged = [
        *(("bulk-data", 1), ("orders", 2), ("2024-02", 0), ("orders", 4)),
        *(("__consumer_offsets", 3), ("user-events", 4), ("orders", 5), ("payments.v1", 2)),
        *(("user-events", 3), ("orders", 1), ("payments.v1", 0), ("2024-02", 1), ("orders", 3)),
        *(("payments.v1", 3), ("__consumer_offsets", 2), ("user-events", 1), ("a.b-c_d", 2)),
        *(("__consumer_offsets", 0), ("scratch_1", 0), ("__consumer_offsets", 1)),
    ]
    assert replica_set((tp, 3) for tp in sorted(logged)) == [(tp, 3) for tp in logged]


def test_a_small_part_of_a_large_set_is_still_walked_by_hash() -> None:
    replicas = [(("new.topic-19", 1), broker) for broker in (1, 2, 3)]
    assert replica_set(replicas) == replicas
    assert [broker for _, broker in replica_set(replicas, hashed=True)] == [3, 1, 2]


def test_picked_states_come_as_a_real_controller_logged_it() -> None:
    logged = [(1, 2), (1, 1), (0, 3), (1, 3), (0, 1), (2, 1), (2, 4), (0, 4), (2, 2)]
    replicas = [(("new.topic-19", partition), broker) for partition, broker in logged]
    walked = picked_states(replicas, out_of=101)
    same_bucket = {replicas[6], replicas[7]}
    assert [r for r in walked if r not in same_bucket] == [
        r for r in replicas if r not in same_bucket
    ]
    assert set(walked[6:8]) == same_bucket


# --- Releases ----------------------------------------------------------------------------------


@pytest.mark.parametrize("release", ["0.9", "0.9.0.1", "0.10.0", "0.10.2.2", "0.11.0.3", "1.0.2"])
def test_releases_of_the_profile(release: str) -> None:
    assert legacy_releases.is_legacy(release)
    assert legacy_releases.is_verified(release) == release.startswith("1.0")
    rows_of(legacy({"a": [partition([1], (1, 4, [1]))]}, live=[1], release=release))


@pytest.mark.parametrize("release", ["0.8", "0.8.2.2", "1.1", "2.4", "3.9"])
def test_other_releases(release: str) -> None:
    assert not legacy_releases.is_legacy(release)


def legacy(
    topics: dict[str, list[Document]],
    *,
    live: Iterable[int],
    release: str = "1.0",
    queued: Iterable[str] = (),
) -> Document:
    doc = cluster(topics, live=live, queued=queued)
    return doc | {"release": release, "metadata_version": None}


def replay(doc: Document, *events: Document) -> dict[str, list[Row]]:
    tables = legacy_interpreter.replay(rows_of(doc), events)
    return per_receiver({name: named(name, rows) for name, rows in tables.items()})


def record(tables: dict[str, list[Row]], topic: str = "a") -> tuple[Any, ...]:
    row = next(row for row in tables["partition_states"] if row["topic"] == topic)
    return (row["state_after"], row["leader"], row["leader_epoch"], row["isr"])


def sent(tables: dict[str, list[Row]], *columns: str) -> list[tuple[Any, ...]]:
    return [tuple(row[column] for column in columns) for row in tables["requests"]]


@pytest.mark.parametrize(("release", "unclean"), [("0.10.2.1", True), ("0.11.0", False)])
def test_unclean_election_was_the_default_once(release: str, unclean: bool) -> None:  # noqa: FBT001
    doc = legacy({"a": [partition([1, 2], (1, 4, [1]))]}, live=[2], release=release)
    tables = replay(doc, FAILOVER)
    expected = ("OnlinePartition", 2, 5, (2,)) if unclean else ("OfflinePartition", 1, 4, (1,))
    assert record(tables) == expected
    (decision,) = tables["decisions"]
    assert decision["unclean_allowed_by"] == ("default" if unclean else None)


@pytest.mark.parametrize(("release", "deleted"), [("0.11.0", False), ("1.0", True)])
def test_topics_could_not_be_deleted_by_default(release: str, deleted: bool) -> None:  # noqa: FBT001
    doc = legacy({"a": [partition([1], (1, 4, [1]))]}, live=[1], release=release)
    answer = {"type": "stop_replica_response", "broker": 1, "partitions": ["a-0"]}
    tables = replay(doc, {"type": "delete_topics", "topics": ["a"]}, answer)
    gone = [row["topic"] for row in tables["metadata_writes"] if row["kind"] == "delete_topic"]
    assert gone == (["a"] if deleted else [])


@pytest.mark.parametrize("scope", ["static_configs", "configs"])
def test_deletion_can_be_switched_off(scope: str) -> None:
    doc = legacy({"a": [partition([1], (1, 4, [1]))]}, live=[1], queued=["a"])
    doc[scope] = {"delete.topic.enable": "false"}
    tables = replay(doc, FAILOVER, {"type": "delete_topics", "topics": ["a"]})
    assert record(tables) == ("OnlinePartition", 1, 4, (1,))
    assert tables["metadata_writes"] == []


@pytest.mark.parametrize(("release", "leader"), [("0.11.0", 1), ("1.0", 2)])
def test_log_directories_came_with_1_0(release: str, leader: int) -> None:
    offline = partition([1, 2], (1, 4, [1, 2]), offline_dirs=[1])
    tables = replay(legacy({"a": [offline]}, live=[1, 2], release=release), FAILOVER)
    assert record(tables)[1] == leader
    bodies = {row["request"]: row for row in tables["request_partitions"]}
    knows = release == "1.0"
    assert (bodies["UPDATE_METADATA"]["offline_replicas"] is not None) == knows
    assert (bodies["LEADER_AND_ISR"]["is_new"] is not None) == knows
    failed = {"type": "log_dir_failure", "broker": 2, "partitions": ["a-0"]}
    errors = [
        row["error"]
        for row in replay(
            legacy({"a": [partition([1, 2], (1, 4, [1, 2]))]}, live=[1, 2], release=release), failed
        )["event_results"]
    ]
    assert errors == ([] if knows else ["UNSUPPORTED_VERSION"])


@pytest.mark.parametrize(("release", "leader"), [("0.9.0", 3), ("0.10.0", 2)])
def test_controlled_shutdown_went_by_isr_order_in_0_9(release: str, leader: int) -> None:
    doc = legacy({"a": [partition([1, 2, 3], (1, 4, [3, 2, 1]))]}, live=[1, 2, 3], release=release)
    tables = replay(doc, {"type": "controlled_shutdown", "broker": 1})
    assert record(tables) == ("OnlinePartition", leader, 5, (3, 2))


@pytest.mark.parametrize(
    ("release", "first"), [("0.10.1", "LEADER_AND_ISR"), ("0.10.2", "UPDATE_METADATA")]
)
def test_metadata_came_last_in_a_failover_once(release: str, first: str) -> None:
    doc = legacy({"a": [partition([1], (1, 4, [1]))]}, live=[1], release=release)
    requests = sent(replay(doc, FAILOVER), "request", "partition_count")
    assert requests[0] == (first, 1)
    assert requests.count(("UPDATE_METADATA", 1)) == 2


@pytest.mark.parametrize(
    ("release", "stops"),
    [("0.10.1", [1, 1, 1, 1]), ("0.10.2", [2, 0, 1, 1]), ("1.0", [2, 0, 1, 1])],
)
def test_stops_were_single_requests_once(release: str, stops: list[int]) -> None:
    both = [partition([1], (1, 4, [1]), number=number) for number in (0, 1)]
    doc = legacy({"a": both}, live=[1], release=release)
    doc["static_configs"] = {"delete.topic.enable": "true"}
    tables = replay(doc, {"type": "delete_topics", "topics": ["a"]})
    requests = sent(tables, "request", "partition_count")
    assert [count for kind, count in requests if kind == "STOP_REPLICA"] == stops


@pytest.mark.parametrize(
    ("release", "order"),
    [("0.10.2", [(0, 2), (1, 2), (0, 1), (1, 1)]), ("1.0", [(0, 2), (0, 1), (1, 1), (1, 2)])],
)
def test_deletion_ran_after_the_event_once(release: str, order: list[tuple[int, int]]) -> None:
    """A queued topic is moved out of 2, then deleted; later releases delete after the first."""
    moving = [
        partition([1, 2], (1, 4, [1, 2]), number=number) | {"removing": [2]} for number in (0, 1)
    ]
    doc = legacy({"a": moving}, live=[1, 2], release=release, queued=["a"])
    doc["static_configs"] = {"delete.topic.enable": "true"}
    started = [
        (row["partition"], row["replica"])
        for row in replay(doc, FAILOVER)["transitions"]
        if row["to_state"] == "ReplicaDeletionStarted" and row["result"] == "ok"
    ]
    assert started == order


@pytest.mark.parametrize(("release", "marked"), [("0.11.0", ["b"]), ("1.0", ["a", "b"])])
def test_only_the_partitions_of_the_dead_were_marked_once(release: str, marked: list[str]) -> None:
    topics = {"a": [partition([3], (-1, 4, [3]))], "b": [partition([2], (2, 4, [2]))]}
    tables = replay(
        legacy(topics, live=[1, 2], release=release), {"type": "broker_failure", "brokers": [2]}
    )
    offline = [row["topic"] for row in tables["transitions"] if row["to_state"] == OFFLINE]
    assert offline == marked


def test_assignments_were_sent_as_sets_once() -> None:
    replicas = [1, 2, 3, 4, 5]
    doc = legacy({"a": [partition(replicas, (1, 4, replicas))]}, live=replicas, release="0.10.2")
    tables = replay(doc, FAILOVER)
    assert {row["replicas"] for row in tables["request_partitions"]} == {broker_set(replicas)}
    assert broker_set(replicas) != tuple(replicas)


# --- What goes wrong, and what is answered -----------------------------------------------------


def results(tables: dict[str, list[Row]]) -> list[tuple[Any, ...]]:
    return [(row["event"], row["topic"], row["error"]) for row in tables["event_results"]]


@pytest.mark.parametrize(
    "event",
    [
        {"type": "unclean_election", "partitions": "all"},
        {"type": "cancel_reassignment", "partitions": ["a-0"]},
        {"type": "fence", "brokers": [1]},
        {"type": "unclean_enabled"},
    ],
    ids=lambda event: event["type"],
)
def test_what_this_age_cannot_do(event: Document) -> None:
    doc = legacy({"a": [partition([1], (1, 4, [1]))]}, live=[1])
    tables = replay(doc, event)
    assert results(tables) == [(1, None, "UNSUPPORTED_VERSION")]
    assert tables["requests"] == tables["transitions"] == []


def test_a_topics_unclean_setting_counts_from_the_next_election_on() -> None:
    doc = legacy({"a": [partition([1, 2], (1, 4, [1]))]}, live=[2, 3])
    enabled = {"type": "unclean_enabled", "topic": "a"}
    assert record(replay(doc, enabled)) == ("OfflinePartition", 1, 4, (1,))
    tables = replay(doc, enabled, {"type": "broker_failure", "brokers": [3]})
    assert record(tables) == ("OnlinePartition", 2, 5, (2,))
    assert [row["unclean_allowed_by"] for row in tables["decisions"]] == ["topic"]


def test_a_queued_topic_that_vanished_stops_the_next_controller() -> None:
    doc = legacy(
        {"a": [partition([1], (1, 4, [1]))], "b": [partition([1], (1, 4, [1]))]},
        live=[1],
        queued=["a"],
    )
    vanishes = {"type": "topic_change", "removed": ["a"]}
    shut = {"type": "controlled_shutdown", "broker": 1}
    tables = replay(doc, vanishes, FAILOVER, shut, FAILOVER)
    assert results(tables) == [
        (2, None, "UNKNOWN_SERVER_ERROR"),
        (3, None, "NOT_CONTROLLER"),
        (4, None, "UNKNOWN_SERVER_ERROR"),
    ]


def test_a_replica_without_state_stops_the_deletion_of_its_topic() -> None:
    """A reassignment that failed half-way leaves such replicas."""
    doc = legacy({"a": [partition([9])], "b": [partition([1], (1, 4, [1]))]}, live=[1, 2])
    moved = {"type": "reassign", "partitions": {"a-0": [8]}}
    tables = replay(doc, moved, {"type": "delete_topics", "topics": ["a"]})
    assert results(tables) == [(2, None, "UNKNOWN_SERVER_ERROR")]


def test_rebalancing_stops_at_a_partition_without_replicas() -> None:
    doc = legacy({"a": [partition([1, 2], (1, 4, [1, 2]))]}, live=[1, 2])
    emptied = {"type": "reassign", "partitions": {"a-0": []}}
    tables = replay(doc, emptied, {"type": "auto_rebalance"})
    assert results(tables) == [(2, None, "UNKNOWN_SERVER_ERROR")]


@pytest.mark.parametrize(
    ("dead", "controller"), [([], 1), ([1], 2), ([2], 1)], ids=["same", "died", "other died"]
)
def test_who_takes_over(dead: list[int], controller: int) -> None:
    doc = legacy({"a": [partition([3], (3, 4, [3]))]}, live=[1, 2, 3])
    tables = replay(doc, {**FAILOVER, "dead": dead})
    assert {row["controller_id"] for row in tables["requests"]} == {controller}
    assert {row["broker_id"] for row in tables["requests"]} == {1, 2, 3} - set(dead)


# --- Why ---------------------------------------------------------------------------------------


def test_elections_explain_themselves() -> None:
    doc = legacy({"a": [partition([1, 2, 3, 4], (1, 4, [1, 3]))]}, live=[1, 2, 3, 4])
    tables = replay(
        doc,
        {"type": "broker_failure", "brokers": [1]},
        {"type": "preferred_election", "partitions": ["a-0"]},
        {"type": "reassign", "partitions": {"a-0": [3]}},
        {"type": "preferred_election", "partitions": ["a-0"]},
    )
    verdicts = [
        (row["strategy"], [tuple(each) for each in row["candidates"]], row["chosen"])
        for row in tables["decisions"]
    ]
    assert verdicts == [
        (
            "offline",
            [(1, "broker_down"), (2, "not_in_isr"), (3, "chosen"), (4, "not_tried")],
            3,
        ),
        ("preferred", [(1, "broker_down")], None),
        ("preferred", [(3, "chosen")], None),
    ]
    assert "already" in tables["decisions"][-1]["reason"]


@pytest.mark.parametrize(
    ("events", "outcome"),
    [
        ([{"type": "broker_failure", "brokers": [1]}], "elected"),
        ([{"type": "broker_failure", "brokers": [2]}], "isr_shrunk"),
        ([{"type": "broker_failure", "brokers": [4]}], "unchanged"),
        ([{"type": "broker_failure", "brokers": [1, 2, 3]}], "offline"),
        ([{"type": "isr_change", "partition": "a-0", "isr": [1, 2, 3]}], "isr_changed"),
        ([{"type": "reassign", "partitions": {"a-0": [4, 1]}}], "reassigning"),
        ([{"type": "reassign", "partitions": {"a-0": [2, 1]}}], "reassigned"),
        ([{"type": "topic_change", "removed": ["a"]}], "deleted"),
        ([{"type": "delete_topics", "topics": ["a"]}], "deleting"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_outcome(events: list[Document], outcome: str) -> None:
    doc = legacy({"a": [partition([1, 2, 3], (1, 4, [1, 2]))]}, live=[1, 2, 3, 4])
    (row,) = replay(doc, *events)["partition_states"]
    assert row["outcome"] == outcome


# --- Shapes and scopes -------------------------------------------------------------------------


def test_rows_have_every_column() -> None:
    for case in cases("legacy-events")[:40]:
        tables = legacy_interpreter.replay(rows_of(case.snapshot), case.scenario["events"])
        assert tables.keys() == REPLAY_TABLES.keys()
        for table, rows in tables.items():
            assert {len(row) for row in rows} <= {len(REPLAY_TABLES[table].names) - 3}


def in_scope(case: Case) -> SnapshotRows:
    rows = rows_of(case.snapshot)
    scope = scope_of(case.scenario["events"])
    live = {b["broker_id"] for b in rows.brokers if b["alive"] and not b["shutting_down"]}
    queued = {t["topic"] for t in rows.topics if t["queued_for_deletion"]}
    kept = [p for p in rows.partitions if scope.touches(p) or always_touched(p, live, queued)]
    return rows._replace(partitions=kept)


def test_what_is_out_of_scope_changes_nothing() -> None:
    left_out = 0
    for case in cases("legacy-events"):
        narrowed = in_scope(case)
        events = case.scenario["events"]
        left_out += len(rows_of(case.snapshot).partitions) - len(narrowed.partitions)
        entire = legacy_interpreter.replay(rows_of(case.snapshot), events)
        part = legacy_interpreter.replay(narrowed, events)
        for table, rows in part.items():
            known = set(rows)
            if table in {"partition_states", "replica_states"}:
                assert known <= set(entire[table]), case.name
                missing = set(entire[table]) - known
                assert all(_is_unchanged(table, row) for row in missing), case.name
            else:
                assert rows == entire[table], (case.name, table)
    assert left_out > 100


def _is_unchanged(table: str, row: tuple[Any, ...]) -> bool:
    (said,) = named(table, [row])
    if table == "partition_states":
        return bool(said["outcome"] == "unchanged")
    return bool(said["state_before"] == said["state_after"])


# --- Random scenarios --------------------------------------------------------------------------


def random_events(rng: Random, doc: Document) -> list[Document]:
    brokers = [b["id"] for b in doc["brokers"]] or [1]
    topics = [t["name"] for t in doc["topics"]] or ["a"]
    partitions = [f"{t['name']}-{p['partition']}" for t in doc["topics"] for p in t["partitions"]]
    partitions = partitions or ["a-0"]

    def some(items: list[Any]) -> list[Any]:
        return rng.sample(items, rng.randint(1, min(3, len(items))))

    makers: dict[str, Document] = {
        "controller_failover": {"forget": rng.random() < 0.3},
        "broker_change": {"live": {str(b): 1 for b in some(brokers)}},
        "broker_failure": {"brokers": some(brokers)},
        "broker_startup": {"brokers": some(brokers)},
        "log_dir_failure": {"broker": rng.choice(brokers), "partitions": some(partitions)},
        "controlled_shutdown": {"broker": rng.choice(brokers)},
        "topic_change": {"topics": {"n": {"0": some(brokers)}}, "removed": some(topics)[:1]},
        "partition_change": {"topic": rng.choice(topics), "partitions": {"7": some(brokers)}},
        "reassign": {"partitions": {p: some(brokers) for p in some(partitions)}},
        "isr_change": {"partition": rng.choice(partitions), "isr": some(brokers)},
        "catch_up": {"brokers": some(brokers)},
        "preferred_election": {"partitions": rng.choice(["all", some(partitions)])},
        "auto_rebalance": {"percentage": rng.choice([0, 10, 50])},
        "delete_topics": {"topics": some(topics)},
        "stop_replica_response": {"broker": rng.choice(brokers), "partitions": some(partitions)},
        "unclean_enabled": {"topic": rng.choice(topics)},
    }
    assert makers.keys() == EVENTS.keys()
    kinds = rng.choices(list(makers), k=rng.randint(1, 8))
    return [{"type": kind, **makers[kind]} for kind in kinds]


@pytest.mark.parametrize("seed", range(8))
def test_whatever_happens_records_only_go_forward(seed: int) -> None:
    rng = Random(seed)
    for _ in range(40):
        doc = random_cluster(rng) | {
            "release": rng.choice(["1.0", "1.0", "0.11.0", "0.10.2", "0.10.1", "0.9.0"]),
            "metadata_version": None,
        }
        tables = replay(doc, *random_events(rng, doc))
        _check_writes(tables["metadata_writes"])
        receivers = {(r["step"], r["request"], r["broker_id"]) for r in tables["requests"]}
        for body in tables["request_partitions"]:
            assert (body["step"], body["request"], body["broker_id"]) in receivers


def _check_writes(writes: list[Row]) -> None:
    latest: dict[tuple[str, int], tuple[int, int]] = {}
    for write in writes:
        if write["kind"] == "delete_topic":
            latest = {tp: seen for tp, seen in latest.items() if tp[0] != write["topic"]}
        elif write["kind"] == "state":
            tp = (write["topic"], write["partition"])
            epochs = (write["leader_epoch"], write["partition_epoch"])
            first = epochs == (0, 0)  # created anew after its topic vanished
            assert first or tp not in latest or min(map(int.__sub__, epochs, latest[tp])) >= 1
            latest[tp] = epochs
