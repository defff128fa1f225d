"""Reassignments and leaders' ISR reports, each case by its name in the specification.

Unless said otherwise the controller's epoch is 5, every record stands at partition epoch 10,
written by controller epoch 1.
"""

from __future__ import annotations

from functools import partial

import pytest

from clusters import Document, cluster, partition
from outcomes import LAI, UM, Outcome, dies, event, reassigning, starts

running = partial(cluster, epoch=5)


def reassign(*target: int, name: str = "a-0") -> Document:
    return event("reassign", partitions={name: list(target)})


def reports(*isr: int, name: str = "a-0") -> Document:
    return event("isr_change", partition=name, isr=list(isr))


CANCEL = event("cancel_reassignment", partitions=["a-0"])


# --- Reassignments -----------------------------------------------------------------------------


def test_e22_all_replicas_are_replaced() -> None:
    doc = running({"a": [partition([1, 2, 3], (1, 0, [1, 2, 3]))]}, live=range(1, 7))
    out = Outcome(doc, reassign(4, 5, 6))
    assert out.assignment() == ((4, 5, 6, 1, 2, 3), (4, 5, 6), (1, 2, 3))
    assert out.writes() == [(1, 1, (1, 2, 3), 11)]
    told = [(r["step"], r["broker_id"], r["is_new"]) for r in out.bodies(LAI)]
    assert told == [
        *[(1, broker, False) for broker in (1, 2, 3)],
        *[(1, broker, True) for broker in (4, 5, 6)],
        *[(2, 4, True), (3, 5, True), (4, 6, True)],
    ]
    assert {out.replicas()[broker] for broker in (4, 5, 6)} == {"NewReplica"}
    assert out.partition()["outcome"] == "reassigning"

    done = Outcome(doc, reassign(4, 5, 6), reports(1, 2, 3, 4, 5, 6))
    assert done.writes()[2:] == [
        (4, 2, (1, 2, 3, 4, 5, 6), 13),
        (4, 3, (2, 3, 4, 5, 6), 14),
        (4, 4, (3, 4, 5, 6), 15),
        (4, 5, (4, 5, 6), 16),
    ]
    stopped = [(1, 2, False), (2, 3, False), (3, 4, False)]
    assert done.stops() == [*stopped, (1, 5, True), (2, 5, True), (3, 5, True)]
    assert done.assignment() == ((4, 5, 6), (), ())
    assert done.replicas() == {
        **dict.fromkeys((4, 5, 6), "OnlineReplica"),
        **dict.fromkeys((1, 2, 3)),
    }
    assert done.answers() == [("a-0", None)]
    assert done.partition()["outcome"] == "reassigned"


def test_until_2_6_adding_replicas_are_not_announced_as_new() -> None:
    doc = running({"a": [partition([1, 2], (1, 0, [1, 2]))]}, live=[1, 2, 3])
    out = Outcome(doc | {"release": "2.6", "metadata_version": "2.6"}, reassign(3))
    told = [(r["step"], r["broker_id"], r["is_new"]) for r in out.bodies(LAI)]
    assert told == [(1, 1, False), (1, 2, False), (1, 3, False), (2, 3, True)]


def test_e23_a_shrinking_reassignment_is_complete_at_once() -> None:
    doc = running({"a": [partition([1, 2, 3], (1, 0, [1, 2, 3]))]}, live=[1, 2, 3])
    out = Outcome(doc, reassign(3, 1))
    assert out.writes() == [(1, 1, (1, 2, 3), 11), (1, 2, (1, 3), 12)]
    assert out.told(LAI, 1) == {1: (1, 1, (1, 2, 3)), 3: (1, 1, (1, 2, 3))}
    assert out.stops() == [(2, 1, False), (2, 2, True)]
    assert out.assignment() == ((3, 1), (), ())


def test_e24_a_new_order_alone_is_written_twice() -> None:
    doc = running({"a": [partition([1, 2, 3], (1, 0, [1, 2, 3]))]}, live=[1, 2, 3])
    out = Outcome(doc, reassign(3, 2, 1))
    assert out.writes() == [(1, 1, (1, 2, 3), 11)]
    assert {row["replicas"] for row in out.bodies(LAI)} == {(3, 2, 1)}
    assert out.requests() == [(LAI, {1, 2, 3}), (UM, {1, 2, 3}), (UM, {1, 2, 3})]
    assert [row["replicas"] for row in out.written("assignment")] == [(3, 2, 1), (3, 2, 1)]


def test_the_same_assignment_again_is_written_once() -> None:
    doc = running({"a": [partition([1, 2], (1, 0, [1, 2]))]}, live=[1, 2])
    out = Outcome(doc, reassign(1, 2))
    assert out.writes() == [(1, 1, (1, 2), 11)]
    assert len(out.written("assignment")) == 1


def test_e25_cancelling_does_not_restore_the_order() -> None:
    moving = reassigning([4, 2, 1, 3], (1, 3, [1, 2, 3]), adding=[4], removing=[1, 3])
    out = Outcome(running({"a": [moving]}, live=[1, 2, 3, 4]), CANCEL)
    assert out.assignment() == ((2, 1, 3), (), ())
    assert out.stops() == [(4, 3, False), (4, 3, True)]
    assert out.told(LAI, 1) == dict.fromkeys((1, 2, 3), (1, 3, (1, 2, 3)))
    assert out.writes() == [(1, 4, (1, 2, 3), 11)]
    assert out.answers() == [("a-0", None)]
    again = Outcome(running({"a": [moving]}, live=[1, 2, 3, 4]), CANCEL, CANCEL)
    assert again.answers()[1] == ("a-0", "NO_REASSIGNMENT_IN_PROGRESS")


def test_a_reassignment_in_flight_is_replaced() -> None:
    doc = running({"a": [partition([1, 2], (1, 0, [1, 2]))]}, live=[1, 2, 3, 4])
    out = Outcome(doc, reassign(3, 2), reassign(4, 2))
    assert out.assignment() == ((4, 2, 1), (4,), (1,))
    assert set(out.replicas()) == {1, 2, 4}
    assert out.stops() == [(3, 1, False), (3, 1, True)]


def test_e42_the_target_is_in_sync_but_dead() -> None:
    moving = reassigning([4, 1], (1, 3, [1, 4]), adding=[4], removing=[1])
    out = Outcome(running({"a": [moving]}, live=[1, 2]), reports(1, 4))
    assert out.failures() == ["partition"]  # nobody can lead, and yet it goes on
    assert out.record()[:3] == (-1, 4, (4,))
    assert out.state() == "OnlinePartition"
    assert out.assignment() == ((4,), (), ())


@pytest.mark.parametrize(
    ("target", "error"),
    [
        ([], "INVALID_REPLICA_ASSIGNMENT"),
        ([1, 1], "INVALID_REPLICA_ASSIGNMENT"),
        ([-1], "INVALID_REPLICA_ASSIGNMENT"),
        ([1, 9], "INVALID_REPLICA_ASSIGNMENT"),
        ([2, 5], "INVALID_REPLICA_ASSIGNMENT"),  # 5 is shutting down
        ([3], None),  # dead, but assigned already
    ],
)
def test_what_may_be_asked_for(target: list[int], error: str | None) -> None:
    doc = running({"a": [partition([1, 3], (1, 0, [1]))]}, live=[1, 2], shutting_down=[5])
    assert Outcome(doc, reassign(*target)).answers() == [("a-0", error)]


def test_unknown_and_queued_partitions_are_not_reassigned() -> None:
    doc = running({"a": [partition([1], (1, 0, [1]))]}, live=[1, 2], queued=["a"])
    out = Outcome(doc, reassign(2), reassign(2, name="b-0"), CANCEL)
    unknown = "UNKNOWN_TOPIC_OR_PARTITION"
    assert out.answers() == [
        ("a-0", unknown),
        ("b-0", unknown),
        ("a-0", "NO_REASSIGNMENT_IN_PROGRESS"),
    ]


@pytest.mark.parametrize(
    "stuck",
    [partition([1, 2]), partition([1, 2], (1, 4, [1, 2]), controller_epoch=9)],
    ids=["never led", "written by a later controller"],
)
def test_a_leader_epoch_that_cannot_be_raised_leaves_the_assignment_written(
    stuck: Document,
) -> None:
    doc = running({"a": [stuck], "b": [partition([1], (1, 0, [1]))]}, live=[1, 2, 3])
    out = Outcome(doc, reassign(3, 2), reassign(2, name="b-0"))
    assert out.answers() == [("a-0", "UNKNOWN_SERVER_ERROR"), ("b-0", None)]
    assert out.assignment() == ((3, 2, 1), (3,), (1,))
    assert len(out.written("assignment")) == 1
    # It counts as in flight: a start of one of its targets takes it up, and aborts the event.
    later = Outcome(doc, reassign(3, 2), dies(3), starts(3))
    resumed = later.answers()[1:]
    never_led = stuck["state"] is None
    # By then broker 1 could lead the one that never had a leader.
    assert resumed == ([] if never_led else [(None, "UNKNOWN_SERVER_ERROR")])


# --- ISR reports -------------------------------------------------------------------------------


def test_a_report_is_written_and_everybody_is_told() -> None:
    doc = running({"a": [partition([1, 2, 3], (1, 4, [1]))]}, live=[1, 2, 3])
    out = Outcome(doc, reports(1, 3))
    assert out.writes() == [(1, 4, (1, 3), 11)]
    assert out.partition()["controller_epoch"] == 5
    assert out.requests() == [(UM, {1, 2, 3})]
    assert out.partition()["outcome"] == "isr_changed"


def test_a_report_of_what_is_known_is_accepted_without_a_write() -> None:
    doc = running({"a": [partition([1, 2], (1, 4, [1, 2]))]}, live=[1])
    out = Outcome(doc, reports(1, 2))  # broker 2 is dead, but nobody asks
    assert (out.writes(), out.answers()) == ([], [])
    assert out.requests() == [(UM, {1})]


def test_a_report_ends_the_recovery() -> None:
    doc = running({"a": [partition([1, 2], (1, 4, [1]), recovery=1)]}, live=[1, 2])
    out = Outcome(doc, reports(1))
    assert out.writes() == [(1, 4, (1,), 11)]
    assert out.partition()["recovery"] == 0


@pytest.mark.parametrize(
    ("release", "protocol", "error"),
    [
        ("3.9", "3.9", "INELIGIBLE_REPLICA"),
        ("3.9", "2.7", "OPERATION_NOT_ATTEMPTED"),
        ("3.2", "3.2", None),
    ],
)
def test_a_report_with_a_broker_that_is_not_live(
    release: str, protocol: str, error: str | None
) -> None:
    doc = running({"a": [partition([1, 2], (1, 4, [1]))]}, live=[1, 3])
    out = Outcome(doc | {"release": release, "metadata_version": protocol}, reports(1, 2))
    assert out.answers() == ([] if error is None else [("a-0", error)])
    assert out.record()[2] == ((1, 2) if error is None else (1,))
    assert out.requests() == [(UM, {1, 3})]


def test_a_leader_that_shuts_down_is_refused_with_itself_in_the_isr() -> None:
    doc = running({"a": [partition([1, 2], (1, 4, [1]))]}, live=[2], shutting_down=[1])
    assert Outcome(doc, reports(1, 2)).answers() == [("a-0", "INELIGIBLE_REPLICA")]


@pytest.mark.parametrize(
    "silent",
    [
        partition([1, 2]),
        partition([1, 2], (1, 4, [1])),
        partition([2, 3], (2, 4, [2]), offline_dirs=[2]),
    ],
    ids=["never led", "leader dead", "directory offline"],
)
def test_nobody_reports(silent: Document) -> None:
    out = Outcome(running({"a": [silent]}, live=[2, 3]), reports(2))
    assert (out.answers(), out.tables["requests"]) == ([], [])


def test_below_protocol_2_7_iv2_the_leader_writes_itself() -> None:
    doc = running({"a": [partition([1, 2], (1, 4, [1]))]}, live=[1, 2], metadata_version="2.7-IV1")
    out = Outcome(doc, reports(1, 2), reports(1, 2), event("preferred_election", partitions="all"))
    assert out.record() == (1, 4, (1, 2), 12)  # written even when nothing changed
    assert out.writes() == []
    assert out.partition()["controller_epoch"] == 1
    assert out.requests() == [(UM, {1, 2}), (UM, {1, 2})]


@pytest.mark.parametrize("protocol", ["3.9", "2.6"])
def test_those_who_caught_up_are_appended_leader_by_leader(protocol: str) -> None:
    topics = {
        "a": [partition([1, 2, 3], (2, 4, [2]))],
        "b": [partition([3, 2, 1], (1, 4, [1]))],
        "c": [partition([4, 3], (4, 4, [4]))],
        "q": [partition([1, 3], (1, 4, [1]))],
    }
    doc = running(topics, live=[1, 2, 3], queued=["q"], metadata_version=protocol)
    out = Outcome(doc, event("catch_up", brokers=[3, 2, 1]))
    assert out.record("a")[2] == (2, 3, 1)
    assert out.record("b")[2] == (1, 3, 2)
    assert out.record("c")[2] == (4,)  # its leader is dead
    assert out.record("q")[2] == (1,)
    assert [(r["step"], r["topic"]) for r in out.tables["request_partitions"][::3]] == [
        (1, "b"),
        (2, "a"),
    ]


@pytest.mark.parametrize("protocol", ["3.9", "2.6"])
def test_a_report_completes_a_reassignment(protocol: str) -> None:
    doc = running({"a": [partition([1], (1, 0, [1]))]}, live=[1, 2], metadata_version=protocol)
    out = Outcome(doc, reassign(2), event("catch_up", brokers=[2]))
    assert out.assignment() == ((2,), (), ())
    assert out.record()[0] == 2


@pytest.mark.parametrize(("protocol", "aborted"), [("3.9", 0), ("2.6", 2)])
def test_a_completion_that_is_aborted_does_not_stop_the_other_events(
    protocol: str, aborted: int
) -> None:
    """The leader keeps the epoch of a later controller, which nobody may overwrite afterwards."""
    moving = reassigning([2, 1], (1, 4, [1]), adding=[2], removing=[])
    moving["state"]["controller_epoch"] = 9
    topics = {"a": [moving], "b": [partition([3, 2], (3, 4, [3]))]}
    doc = running(topics, live=[1, 2, 3], metadata_version=protocol)
    out = Outcome(doc, event("catch_up", brokers=[2]))
    assert out.answers() == [(None, "UNKNOWN_SERVER_ERROR")] * aborted
    assert out.record("b")[2] == (3, 2)
    assert out.bodies(UM, "a") != []
