"""Brokers that die, return, shut down or lose a disk, each case by its name in the specification.

Unless said otherwise the controller's epoch is 5, every record stands at partition epoch 10,
written by controller epoch 1, and unclean election is off.
"""

from __future__ import annotations

from functools import partial

import pytest

from clusters import Document, cluster, partition
from outcomes import LAI, STOP, UM, Outcome, dies, event, failover, reassigning, starts

running = partial(cluster, epoch=5)


# --- Brokers that die --------------------------------------------------------------------------


def test_e1_the_first_replica_in_sync_leads_and_everybody_is_told_twice() -> None:
    doc = running({"a": [partition([1, 2, 3], (1, 0, [3, 2, 1]))]}, live=[1, 2, 3])
    out = Outcome(doc, dies(1))
    assert out.partition()["state_before"] == out.state() == "OnlinePartition"
    assert out.writes() == [(2, 1, (3, 2), 11)]
    assert out.requests() == [(LAI, {2, 3}), (UM, {2, 3}), (LAI, {2, 3}), (UM, {2, 3})]
    assert {row["offline_replicas"] for row in out.bodies(UM)} == {(1,)}
    assert out.replicas() == {1: "OfflineReplica", 2: "OnlineReplica", 3: "OnlineReplica"}


def test_e2_two_of_three_die() -> None:
    doc = running({"a": [partition([1, 2, 3], (1, 0, [1, 2, 3]))]}, live=[1, 2, 3])
    out = Outcome(doc, dies(1, 2))
    assert out.writes() == [(3, 1, (3,), 11)]
    assert out.requests() == [(LAI, {3}), (UM, {3}), (LAI, {3}), (UM, {3})]


def test_e3_all_die_and_the_last_isr_member_is_retained() -> None:
    out = Outcome(running({"a": [partition([1, 2], (1, 0, [1, 2]))]}, live=[1, 2, 3]), dies(1, 2))
    assert out.state() == "OfflinePartition"
    assert out.writes() == [(-1, 1, (2,), 11), (-1, 2, (2,), 12)]
    assert out.requests() == [(UM, {3})]


def test_e3b_which_one_is_retained_follows_the_order_of_broker_groups() -> None:
    out = Outcome(running({"a": [partition([4, 5], (4, 0, [4, 5]))]}, live=[4, 5, 7]), dies(4, 5))
    assert out.writes() == [(4, 1, (4,), 11), (-1, 2, (4,), 12)]


def test_e4_the_only_isr_member_dies() -> None:
    doc = running({"a": [partition([1, 2, 3], (1, 0, [1]))]}, live=[1, 2, 3])
    out = Outcome(doc, dies(1))
    assert out.state() == "OfflinePartition"
    assert out.record() == (-1, 1, (1,), 11)
    assert out.requests() == [(LAI, {2, 3}), (UM, {2, 3})]
    assert {row["leader"] for row in out.bodies(LAI)} == {-1}


@pytest.mark.parametrize(("protocol", "recovery"), [("3.9", 1), ("3.1", 0)])
def test_e5_unclean_election_recovers_where_the_protocol_knows_of_it(
    protocol: str, recovery: int
) -> None:
    doc = running(
        {"a": [partition([1, 2, 3], (1, 0, [1]))]},
        live=[1, 2, 3],
        unclean=True,
        metadata_version=protocol,
    )
    out = Outcome(doc, dies(1))
    assert out.record() == (2, 1, (2,), 11)
    assert out.partition()["recovery"] == recovery
    assert out.requests() == [(LAI, {2, 3}), (UM, {2, 3})] * 2


def test_e6_a_single_replica_dies_and_nobody_else_needs_a_leader_and_isr() -> None:
    out = Outcome(running({"a": [partition([1], (1, 0, [1]))]}, live=[1, 2, 3]), dies(1))
    assert out.record() == (-1, 1, (1,), 11)
    assert out.requests() == [(UM, {2, 3})]


def test_e7_a_leader_outside_the_isr_dies() -> None:
    doc = running({"a": [partition([1, 2, 3], (1, 0, [2, 3]))]}, live=[1, 2, 3])
    assert Outcome(doc, dies(1)).record() == (2, 1, (2, 3), 11)


def test_e7b_a_leader_outside_the_isr_is_not_cleared() -> None:
    doc = running({"a": [partition([1, 2, 3], (1, 0, [2]))]}, live=[1, 2, 3])
    out = Outcome(doc, dies(1, 2))
    assert out.state() == "OfflinePartition"
    assert out.record() == (1, 1, (2,), 11)
    assert {(row["broker_id"], row["leader"]) for row in out.bodies(LAI)} == {(3, 1)}


@pytest.mark.parametrize(("release", "extra"), [("3.9", []), ("3.0", [(UM, {1, 2})])])
def test_e8_a_follower_dies(release: str, extra: list[tuple[str, set[int]]]) -> None:
    doc = running({"a": [partition([1, 2, 3], (1, 0, [1, 2, 3]))]}, live=[1, 2, 3])
    out = Outcome(doc | {"release": release, "metadata_version": release}, dies(3))
    assert out.writes() == [(1, 1, (1, 2), 11)]
    assert out.requests() == [(LAI, {1, 2}), (UM, {1, 2}), *extra]


@pytest.mark.parametrize(("release", "extra"), [("3.9", []), ("3.0", [(UM, {1, 2})])])
def test_e9_a_follower_outside_the_isr_dies(
    release: str, extra: list[tuple[str, set[int]]]
) -> None:
    doc = running({"a": [partition([1, 2, 3], (1, 0, [1, 2]))]}, live=[1, 2, 3])
    out = Outcome(doc | {"release": release, "metadata_version": release}, dies(3))
    assert out.writes() == []
    assert out.record() == (1, 0, (1, 2), 10)
    assert {row["controller_epoch"] for row in (*out.bodies(LAI), *out.bodies(UM))} == {5}
    assert out.requests() == [(LAI, {1, 2}), (UM, {1, 2}), *extra]


def test_e9_a_new_controller_reads_the_znode_again() -> None:
    doc = running({"a": [partition([1, 2, 3], (1, 0, [1, 2]))]}, live=[1, 2, 3])
    out = Outcome(doc, dies(3), starts(3), event("controller_failover"))
    first_half = [row for row in out.bodies(LAI) if row["event"] == 3]
    assert {row["controller_epoch"] for row in first_half} == {1}


def test_e10_an_isr_member_outside_the_assignment_forbids_an_unclean_election() -> None:
    doc = running({"a": [partition([1, 2], (1, 0, [1, 3]))]}, live=[1, 2, 3], unclean=True)
    out = Outcome(doc, dies(1))
    assert out.state() == "OfflinePartition"
    assert out.record() == (-1, 1, (3,), 11)
    assert out.requests() == [(LAI, {2}), (UM, {2, 3})]
    assert out.partition()["reason"].startswith("the online ISR members are not in the assignment")


def test_e26_an_adding_replica_wins_by_its_place_and_the_reassignment_waits() -> None:
    moving = reassigning([4, 2, 1, 3], (1, 3, [1, 2, 3, 4]), adding=[4], removing=[1, 3])
    out = Outcome(running({"a": [moving]}, live=[1, 2, 3, 4]), dies(1))
    assert out.record() == (4, 4, (2, 3, 4), 11)
    assert out.assignment() == ((4, 2, 1, 3), (4,), (1, 3))


def test_e31_an_isr_of_duplicates_becomes_empty() -> None:
    doc = running({"a": [partition([1, 2, 3], (1, 4, [1, 1]))]}, live=[1, 2, 3])
    out = Outcome(doc, dies(1))
    assert out.state() == "OfflinePartition"
    assert out.record() == (-1, 5, (), 11)


def test_e35_a_broker_without_replicas_dies() -> None:
    out = Outcome(running({"a": [partition([1], (1, 0, [1]))]}, live=[1, 9]), dies(9))
    assert out.requests() == [(UM, {1})]
    assert [row["partition_count"] for row in out.tables["requests"]] == [0]
    assert out.partition()["outcome"] == "unchanged"


def test_e38_a_replica_that_is_being_added_dies() -> None:
    doc = running({"a": [partition([1, 2, 3], (1, 2, [1, 2, 3]))]}, live=[1, 2, 3, 4])
    grow = event("reassign", partitions={"a-0": [4, 1, 2, 3]})
    out = Outcome(doc, grow, dies(4))
    assert out.record()[:3] == (1, 3, (1, 2, 3))
    assert len(out.writes()) == 1  # the reassignment's own
    assert out.replicas()[4] == "OfflineReplica"
    last = [row["broker_id"] for row in out.bodies(LAI) if row["event"] == 2]
    assert last == [1, 2, 3]


def test_e38b_a_replica_that_is_being_added_returns() -> None:
    doc = running({"a": [partition([1, 2, 3], (1, 2, [1, 2, 3]))]}, live=[1, 2, 3, 4])
    grow = event("reassign", partitions={"a-0": [4, 1, 2, 3]})
    out = Outcome(doc, grow, dies(4), starts(4))
    assert out.record()[:3] == (1, 4, (1, 2, 3))
    told = [
        (row["broker_id"], row["leader_epoch"], row["is_new"])
        for row in out.bodies(LAI)
        if row["event"] == 3
    ]
    again = [(1, 4, False), (2, 4, False), (3, 4, False), (4, 4, True)]
    assert told == [(4, 3, False), *again]
    assert ("OnlineReplica", "NewReplica") in out.invalid()


def test_e41_a_replica_of_a_halted_deletion_stays_online_when_its_broker_dies() -> None:
    doc = running({"a": [partition([1, 3, 4], (1, 4, [1, 3]))]}, live=[1, 2, 3], queued=["a"])
    out = Outcome(doc, dies(3))
    assert out.replicas()[3] == "OnlineReplica"
    assert out.invalid() == [("OnlineReplica", "ReplicaDeletionIneligible")]
    assert out.writes() == []
    assert out.requests() == [(UM, {1, 2})]


def test_e56_any_failure_also_tries_new_partitions() -> None:
    topics = {"a": [partition([1, 2, 3], (1, 4, [1, 2, 3]))], "b": [partition([1, 3])]}
    out = Outcome(running(topics, live=[1, 2, 3]), dies(2))
    assert out.record("b") == (1, 0, (1, 3), 0)
    assert {(r["broker_id"], r["is_new"]) for r in out.bodies(LAI, "b")} == {(1, True), (3, True)}
    assert out.record("a") == (1, 5, (1, 3), 11)


@pytest.mark.parametrize(("release", "sent"), [("3.9", [(UM, {1})]), ("3.0", [])])
def test_e57_somebody_else_is_leaderless(release: str, sent: list[tuple[str, set[int]]]) -> None:
    doc = running({"a": [partition([1, 2], (-1, 4, [2]))]}, live=[1, 3])
    out = Outcome(doc | {"release": release, "metadata_version": release}, dies(3))
    assert out.failures() == ["partition"]
    assert out.requests() == sent


def test_a_broker_that_is_not_there_cannot_die() -> None:
    out = Outcome(running({"a": [partition([1], (1, 0, [1]))]}, live=[1]), dies(7))
    assert out.tables["transitions"] == out.tables["requests"] == []


# --- Brokers that come back --------------------------------------------------------------------


def test_e37_a_broker_returns_to_an_offline_partition() -> None:
    topics = {
        "a": [partition([1, 2, 3], (1, 5, [1, 2]))],
        "b": [partition([3], (-1, 2, [3]))],
    }
    out = Outcome(running(topics, live=[1, 2]), starts(3))
    everybody = {1, 2, 3}
    assert out.requests() == [
        (UM, {1, 2}),
        (UM, {3}),
        *[(LAI, {3}), (UM, everybody)],
        *[(LAI, {3}), (UM, everybody)],
    ]
    assert out.told(UM, 2, "b") == {3: (-1, 2, (3,))}
    assert out.told(LAI, 3, "b") == {3: (-1, 2, (3,))}
    assert out.told(LAI, 4, "b") == {3: (3, 3, (3,))}
    assert out.told(UM, 4, "a") == {}
    assert out.record("b")[:3] == (3, 3, (3,))
    assert out.record("a") == (1, 5, (1, 2), 10)  # the leader itself extends the ISR


def test_e58_a_follower_bounces_in_one_event() -> None:
    doc = running({"a": [partition([1, 2], (1, 4, [1, 2]))]}, live=[1, 2])
    out = Outcome(doc, starts(2))
    assert out.record() == (1, 5, (1,), 11)
    assert out.replicas()[2] == "OnlineReplica"
    epochs = {r["broker_epoch"] for r in out.tables["requests"] if r["broker_id"] == 2}
    assert epochs == {103}  # one more than the highest anybody had


def test_a_lower_epoch_is_no_bounce() -> None:
    doc = running({"a": [partition([1, 2], (1, 4, [1, 2]))]}, live=[1, 2])
    out = Outcome(doc, event("broker_startup", brokers=[2], epochs=[50]))
    assert out.tables["requests"] == []


def test_a_bounced_broker_is_no_longer_shutting_down() -> None:
    doc = running({"a": [partition([1, 2], (1, 4, [1]))]}, live=[1], shutting_down=[2])
    out = Outcome(doc, starts(2), event("catch_up", brokers=[2]))
    assert out.record()[2] == (1, 2)


def test_e45_while_new_brokers_start_the_dead_ones_count_as_live() -> None:
    doc = running({"n": [partition([1, 3])]}, live=[1, 2])
    out = Outcome(doc, event("broker_change", live={"2": 102, "3": 200}))
    assert out.writes("n") == [(1, 0, (1, 3), 0), (3, 1, (3,), 1)]


@pytest.mark.parametrize(("release", "told"), [("2.8", {"a"}), ("2.6", {"a", "q"})])
def test_until_2_6_a_new_broker_is_told_of_topics_being_deleted(
    release: str, told: set[str]
) -> None:
    topics = {"a": [partition([1], (1, 4, [1]))], "q": [partition([1, 3], (1, 4, [1]))]}
    doc = running(topics, live=[1], queued=["q"])
    out = Outcome(doc | {"release": release, "metadata_version": release}, starts(2))
    full = [r for r in out.tables["request_partitions"] if r["step"] == 2]
    assert {row["topic"] for row in full} == told
    assert {row["leader"] for row in full if row["topic"] == "q"} <= {-2}


# --- Log directories ---------------------------------------------------------------------------


def test_e27_the_leaders_log_directory_fails() -> None:
    doc = running({"a": [partition([1, 2, 3], (1, 4, [1, 2, 3]))]}, live=[1, 2, 3])
    out = Outcome(doc, event("log_dir_failure", broker=1, partitions=["a-0"]))
    assert out.writes() == [(2, 5, (2, 3), 11)]
    everybody = {1, 2, 3}
    assert out.requests() == [
        *[(LAI, {1}), (UM, everybody)],
        *[(LAI, {2, 3}), (UM, everybody)],
        *[(LAI, {2, 3}), (UM, everybody), (STOP, {1})],
    ]
    assert out.stops() == [(1, 5, False)]
    assert out.replicas()[1] == "OfflineReplica"


def test_e44_a_replica_that_was_offline_before_ends_online() -> None:
    topics = {
        "a": [partition([1, 2], (2, 4, [2]), offline_dirs=[1])],
        "b": [partition([1, 2], (2, 4, [2, 1]))],
    }
    out = Outcome(
        running(topics, live=[1, 2]),
        event("log_dir_failure", broker=1, partitions=[]),
        event("log_dir_failure", broker=1, partitions=["b-0"]),
    )
    assert out.replicas("a")[1] == "OnlineReplica"
    assert out.replicas("b")[1] == "OfflineReplica"
    asked = {
        (r["broker_id"], r["topic"]) for t in "ab" for r in out.bodies(LAI, t) if r["event"] == 1
    }
    assert asked == {(1, "a"), (1, "b")}
    assert {r["offline_replicas"] for r in out.bodies(UM, "a")} == {(1,)}


def test_a_dead_broker_does_not_answer_of_its_log_directories() -> None:
    doc = running({"a": [partition([1, 2], (2, 4, [2]))]}, live=[2])
    out = Outcome(doc, event("log_dir_failure", broker=1, partitions=["a-0"]))
    assert out.replicas()[1] == "OnlineReplica"
    assert out.requests() == [(UM, {2})]


def test_log_directories_have_no_ids_here() -> None:
    doc = running({"a": [partition([1], (1, 4, [1]))]}, live=[1])
    out = Outcome(doc, event("log_dir_failure", broker=1, dirs=["x"]))
    assert out.answers() == [(None, "UNSUPPORTED_VERSION")]


# --- Controlled shutdown -----------------------------------------------------------------------


def shuts_down(broker: int) -> Document:
    return event("controlled_shutdown", broker=broker)


def test_e18_the_leader_leaves() -> None:
    doc = running({"a": [partition([1, 2, 3], (1, 4, [1, 2, 3]))]}, live=[1, 2, 3])
    out = Outcome(doc, shuts_down(1))
    assert out.writes() == [(2, 5, (2, 3), 11)]
    assert out.requests() == [(LAI, {1, 2, 3}), (UM, {1, 2, 3})]
    assert {row["offline_replicas"] for row in out.bodies(UM)} == {(1,)}
    assert out.replicas()[1] == "OnlineReplica"
    assert out.answers() == []


def test_e18b_nobody_can_take_over() -> None:
    doc = running({"a": [partition([1, 2, 3], (1, 4, [1]))]}, live=[1, 2, 3])
    out = Outcome(doc, shuts_down(1))
    assert out.requests() == []
    assert out.state() == "OnlinePartition"
    assert out.record() == (1, 4, (1,), 10)
    assert out.answers() == [("a-0", None)]
    (decision,) = out.tables["decisions"]
    assert decision["reason"] == "every replica in the ISR is shutting down or not online"


def test_e18c_a_follower_is_stopped_twice_with_the_old_epoch() -> None:
    topics = {"a": [partition([2, 1, 3], (2, 4, [2, 1, 3]))], "b": [partition([1], (1, 2, [1]))]}
    out = Outcome(running(topics, live=[1, 2, 3]), shuts_down(1), dies(1))
    assert out.stops() == [(1, 4, False), (1, 4, False)]
    first = [(r["request"], r["broker_id"]) for r in out.tables["requests"] if r["event"] == 1]
    assert first == [
        (STOP, 1),
        *[(LAI, 2), (LAI, 3)],
        *[(UM, 1), (UM, 2), (UM, 3)],
        (STOP, 1),
    ]
    assert out.writes() == [(2, 5, (2, 3), 11)]
    assert out.record("b")[:3] == (-1, 3, (1,))
    assert out.answers() == []


def test_e52_others_that_are_shutting_down_leave_the_isr_too() -> None:
    doc = running({"a": [partition([1, 2, 3], (1, 4, [1, 2, 3]))]}, live=[1, 3], shutting_down=[2])
    out = Outcome(doc, shuts_down(1))
    assert out.writes() == [(3, 5, (3,), 11)]
    assert out.requests() == [(LAI, {1, 2, 3}), (UM, {1, 2, 3})]
    assert {row["offline_replicas"] for row in out.bodies(UM)} == {(1, 2)}


def test_e53_a_replica_on_an_offline_directory_stays_in_the_isr() -> None:
    doc = running(
        {"a": [partition([1, 2, 3], (3, 4, [3, 2, 1]), offline_dirs=[2])]}, live=[1, 2, 3]
    )
    out = Outcome(doc, shuts_down(3))
    assert out.record() == (1, 5, (2, 1), 11)
    assert {row["broker_id"] for row in out.bodies(LAI)} == {1, 3}


def test_a_broker_that_is_not_registered_cannot_shut_down() -> None:
    out = Outcome(running({"a": [partition([1], (1, 4, [1]))]}, live=[1]), shuts_down(7))
    assert out.answers() == [(None, "BROKER_NOT_AVAILABLE")]


def test_a_controller_that_died_is_followed_by_the_smallest_that_lives() -> None:
    doc = running({"a": [partition([2, 3], (2, 4, [2, 3]))]}, live=[1, 2, 3])
    out = failover(doc, dead=[1])
    assert {row["controller_id"] for row in out.tables["requests"]} == {2}
