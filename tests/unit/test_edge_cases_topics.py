"""Topics that appear, vanish and are deleted, each case by its name in the specification.

Unless said otherwise the controller's epoch is 5, every record stands at partition epoch 10,
written by controller epoch 1.
"""

from __future__ import annotations

from functools import partial

import pytest

from clusters import Document, cluster, partition
from outcomes import LAI, STOP, UM, Outcome, dies, event, failover, reassigning, starts

running = partial(cluster, epoch=5)


def appears(topic: str, *replicas: int) -> Document:
    return event("topic_change", topics={topic: {"0": list(replicas)}})


def vanishes(topic: str) -> Document:
    return event("topic_change", removed=[topic])


def deletes(*topics: str) -> Document:
    return event("delete_topics", topics=list(topics))


def answers(broker: int, name: str = "a-0", error: str | None = None) -> Document:
    return event("stop_replica_response", broker=broker, partitions=[name], error=error)


A = {"a": [partition([1, 2, 3], (1, 4, [1, 2, 3]))]}


# --- Topics that appear and vanish -------------------------------------------------------------


def test_e29b_replicas_on_dead_brokers_end_online() -> None:
    out = Outcome(running({}, live=[2, 3]), appears("a", 1, 2, 3))
    assert out.record() == (2, 0, (2, 3), 0)
    assert out.requests() == [(LAI, {2, 3}), (UM, {2, 3})]
    assert {row["is_new"] for row in out.bodies(LAI)} == {True}
    assert set(out.replicas().values()) == {"OnlineReplica"}
    assert out.partition()["state_before"] is None
    assert out.partition()["outcome"] == "initialized"


def test_e29c_without_a_live_replica_it_stays_new_until_one_starts() -> None:
    out = Outcome(running({}, live=[9]), appears("a", 1, 2, 3))
    assert out.state() == "NewPartition"
    assert set(out.replicas().values()) == {"OnlineReplica"}
    later = Outcome(running({}, live=[9]), appears("a", 1, 2, 3), starts(2))
    assert later.record() == (2, 0, (2,), 0)
    assert [(r["broker_id"], r["is_new"]) for r in later.bodies(LAI)] == [(2, True)]


def test_e43_a_topic_that_vanished_and_returned_cannot_be_used_until_a_failover() -> None:
    doc = running(A, live=[1, 2, 3])
    out = Outcome(doc, vanishes("a"), appears("a", 1, 2, 3))
    assert ("OnlinePartition", "NewPartition") in out.invalid()
    assert out.failures() == ["partition"]
    assert out.state() == "OnlinePartition"
    assert out.record()[0] is None
    healed = Outcome(doc, vanishes("a"), appears("a", 1, 2, 3), event("controller_failover"))
    assert healed.record() == (1, 0, (1, 2, 3), 0)


def test_a_topic_that_vanishes_leaves_its_states_behind() -> None:
    out = Outcome(running(A, live=[1, 2, 3]), vanishes("a"))
    assert out.state() == "OnlinePartition"
    assert out.assignment() == (None, None, None)
    assert set(out.replicas().values()) == {"OnlineReplica"}
    assert out.tables["requests"] == []
    assert out.partition()["outcome"] == "deleted"


def test_a_topic_that_exists_does_not_appear_again() -> None:
    out = Outcome(running(A, live=[1, 2, 3]), appears("a", 3))
    assert out.tables["transitions"] == []
    assert out.assignment() == ((1, 2, 3), (), ())


def test_partitions_are_added() -> None:
    grows = event("partition_change", topic="a", partitions={"0": [3], "1": [3, 1]})
    out = Outcome(running(A, live=[1, 2, 3]), grows)
    assert out.record() == (1, 4, (1, 2, 3), 10)
    new = next(row for row in out.tables["partition_states"] if row["partition"] == 1)
    assert (new["leader"], new["isr"]) == (3, (3, 1))


def test_partitions_of_an_unknown_topic_are_nothing() -> None:
    grows = event("partition_change", topic="b", partitions={"0": [3]})
    assert Outcome(running(A, live=[1, 2, 3]), grows).tables["transitions"] == []


def test_partitions_added_to_a_queued_topic_are_taken_out_with_those_never_led() -> None:
    topics = {"a": [partition([1, 9], (1, 4, [1])), partition([2], number=1)]}
    grows = event("partition_change", topic="a", partitions={"2": [1]})
    doc = running(topics, live=[1, 2], queued=["a"])
    out = Outcome(doc, grows)
    assert [row["partition"] for row in out.written("assignment")] == [0]
    assert out.tables["transitions"] == []
    later = Outcome(doc, grows, event("controller_failover"))
    states = {row["partition"]: row["state_after"] for row in later.tables["partition_states"]}
    assert states == {0: "OnlinePartition", 1: None}


# --- Deletion ----------------------------------------------------------------------------------


def test_a_deletion_from_the_request_to_the_last_trace() -> None:
    out = Outcome(running(A, live=[1, 2, 3]), deletes("a"), answers(1), answers(2), answers(3))
    assert [row["topic"] for row in out.written("delete_topic")] == ["a"]
    assert out.state() == "NonExistentPartition"
    assert out.partition()["outcome"] == "deleted"
    assert set(out.replicas().values()) == {None}
    veiled = {(r["leader"], r["leader_epoch"], r["partition_epoch"]) for r in out.bodies(UM)}
    assert veiled == {(-2, 0, 0)}
    assert out.bodies(LAI) == []


def test_e20_a_topic_with_a_dead_replica_waits() -> None:
    doc = cluster(A, live=[1, 2], queued=["a"])
    out = failover(doc)
    assert out.state() == "OnlinePartition"
    assert out.bodies(STOP) == []


def test_e21_a_replica_dies_during_the_deletion_and_returns() -> None:
    doc = running(A, live=[1, 2, 3])
    died = Outcome(doc, deletes("a"), dies(3))
    assert died.replicas()[3] == "ReplicaDeletionIneligible"
    assert died.requests()[-1] == (UM, {1, 2})
    waiting = Outcome(doc, deletes("a"), dies(3), answers(1), answers(2))
    assert waiting.replicas()[3] == "OfflineReplica"
    assert len(waiting.writes()) == len(died.writes()) + 1
    back = Outcome(doc, deletes("a"), dies(3), answers(1), answers(2), starts(3))
    stops = [s for s in back.bodies(STOP) if s["event"] == 5]
    told = [(s["broker_id"], s["leader_epoch"], s["delete_partition"]) for s in stops]
    assert told == [(3, -2, False), (3, -2, True)]
    end = Outcome(doc, deletes("a"), dies(3), answers(1), answers(2), starts(3), answers(3))
    assert len(end.written("delete_topic")) == 1


def test_e21b_a_replica_refuses_and_the_deletion_halts() -> None:
    refused = answers(2, error="KAFKA_STORAGE_ERROR")
    doc = running(A, live=[1, 2, 3])
    out = Outcome(doc, deletes("a"), refused)
    assert out.replicas()[2] == "ReplicaDeletionIneligible"
    assert [r for r in out.tables["requests"] if r["event"] == 2] == []
    halted = Outcome(doc, deletes("a"), refused, answers(1), answers(3))
    assert halted.replicas()[2] == "OfflineReplica"
    last = [(r["request"], r["broker_id"]) for r in halted.tables["requests"] if r["event"] == 4]
    assert last == [(STOP, 2)]
    resumed = Outcome(doc, deletes("a"), refused, answers(1), answers(3), starts(2), answers(2))
    assert len(resumed.written("delete_topic")) == 1


def test_who_was_not_asked_does_not_answer() -> None:
    out = Outcome(running(A, live=[1, 2, 3]), answers(1), deletes("a"), answers(7))
    assert {row["event"] for row in out.tables["transitions"]} == {2}


def test_e48_a_queued_topic_without_partitions_goes_at_once() -> None:
    empty = event("topic_change", topics={"a": {}})
    out = Outcome(running({}, live=[1]), empty, deletes("a"))
    assert len(out.written("delete_topic")) == 1


def test_e54_a_first_request_is_not_halted_by_a_reassignment() -> None:
    moving = reassigning([4, 1], (1, 4, [1]), adding=[4], removing=[1])
    out = Outcome(running({"a": [moving]}, live=[1, 4]), deletes("a"))
    assert set(out.replicas().values()) == {"ReplicaDeletionStarted"}
    halted = failover(cluster({"a": [moving]}, live=[1, 4], queued=["a"]))
    assert set(halted.replicas().values()) == {"OnlineReplica"}


def test_two_topics_are_deleted_together_one_with_a_dead_replica() -> None:
    topics = {"a": [partition([1], (1, 4, [1]))], "b": [partition([1, 9], (1, 4, [1]))]}
    out = Outcome(running(topics, live=[1]), deletes("a", "b"), answers(1), answers(1, "b-0"))
    assert [len(out.written("delete_topic", topic)) for topic in "ab"] == [1, 0]
    assert out.replicas("b") == {1: "ReplicaDeletionSuccessful", 9: "OfflineReplica"}
    assert out.state("b") == "NonExistentPartition"


def test_a_topic_that_is_queued_already_is_not_started_again() -> None:
    doc = running(A, live=[1, 2, 3])
    once, twice = Outcome(doc, deletes("a")), Outcome(doc, deletes("a"), deletes("a"))
    assert once.tables["transitions"] == twice.tables["transitions"]


def test_an_unknown_topic_is_not_deleted() -> None:
    out = Outcome(running(A, live=[1, 2, 3]), deletes("b"))
    assert out.tables["transitions"] == out.tables["event_results"] == []


def test_a_replica_without_a_state_aborts_the_deletion() -> None:
    """A reassignment that could not raise the leader epoch left its new replicas without one."""
    doc = running({"a": [partition([1])]}, live=[1, 2])
    moved = event("reassign", partitions={"a-0": [2]})
    out = Outcome(doc, moved, deletes("a"))
    assert out.answers() == [("a-0", "UNKNOWN_SERVER_ERROR"), (None, "UNKNOWN_SERVER_ERROR")]


@pytest.mark.parametrize(("release", "steps"), [("3.9", 1), ("2.4", 2)])
def test_until_2_4_topics_are_deleted_one_after_the_other(release: str, steps: int) -> None:
    topics = {name: [partition([1], (1, 4, [1]))] for name in "ab"}
    doc = running(topics, live=[1]) | {"release": release, "metadata_version": release}
    out = Outcome(doc, deletes("a", "b"))
    assert len([each for each in out.requests() if each[0] == UM]) == steps
