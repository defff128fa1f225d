"""The corners of a controller's start-up, each by its name in the controller's specification.

Records are written (leader, leader epoch, ISR, partition epoch), bodies are told to a set of
brokers. Unless said otherwise the new controller's epoch is 5, every record stands at partition
epoch 10, written by controller epoch 1, and unclean election is off.
"""

from __future__ import annotations

import pytest

from clusters import Document, cluster, partition
from outcomes import LAI, STOP, UM, Outcome, failover, reassigning
from understudy.controller.journal import Journal
from understudy.controller.records import Assignment, LeaderAndIsr
from understudy.controller.zk.context import Broker, ControllerContext
from understudy.controller.zk.events import ZkController

TP = ("a", 0)


def test_e11_leaderless_partition_with_a_live_isr_member_is_elected() -> None:
    out = failover(cluster({"a": [partition([1, 2, 3], (-1, 4, [2]))]}, live=[1, 2, 3]))
    assert out.state() == "OnlinePartition"
    assert out.record() == (2, 5, (2,), 11)
    assert out.told(LAI, 2) == dict.fromkeys([1, 2, 3], (-1, 4, (2,)))
    assert {r["controller_epoch"] for r in out.bodies(LAI) if r["step"] == 2} == {1}
    assert out.told(LAI, 3) == dict.fromkeys([1, 2, 3], (2, 5, (2,)))


def test_e12_last_isr_member_dead_stays_offline_with_three_generations() -> None:
    out = failover(cluster({"a": [partition([1, 2, 3], (2, 4, [2]))]}, live=[1, 3]))
    assert out.state() == "OfflinePartition"
    assert out.record() == (-1, 5, (2,), 11)
    assert out.sent()[0] == (1, UM, {1, 3})
    assert out.told(LAI, 2) == dict.fromkeys([1, 3], (2, 4, (2,)))
    assert out.told(LAI, 3) == dict.fromkeys([1, 3], (-1, 5, (2,)))
    assert out.failures() == ["partition"]
    assert out.partition()["outcome"] == "offline"


def test_e13_unclean_election_bumps_twice_and_recovers() -> None:
    out = failover(cluster({"a": [partition([1, 2, 3], (2, 4, [2]))]}, live=[1, 3], unclean=True))
    assert out.record() == (1, 6, (1,), 12)
    assert out.partition()["recovery"] == 1
    assert out.partition()["outcome"] == "elected_unclean"


def test_e13_below_protocol_3_2_there_is_no_recovery_state() -> None:
    doc = cluster(
        {"a": [partition([1, 2, 3], (2, 4, [2]))]},
        live=[1, 3],
        unclean=True,
        metadata_version="3.1",
    )
    out = failover(doc)
    assert out.partition()["recovery"] == 0
    assert {row["recovery"] for row in out.bodies(LAI)} == {None}


def test_e14_empty_isr_with_a_live_leader_stays_online_and_is_only_cached_anew() -> None:
    out = failover(cluster({"a": [partition([1, 2, 3], (1, 4, []))]}, live=[1, 3]))
    assert out.state() == "OnlinePartition"
    assert out.writes() == []
    assert out.partition()["controller_epoch"] == 5
    assert out.told(LAI, 2) == out.told(LAI, 3)
    assert set(out.told(LAI, 3)) == {1, 3}


def test_e14b_empty_isr_with_a_dead_leader_keeps_that_leader() -> None:
    out = failover(cluster({"a": [partition([1, 2, 3], (2, 4, []))]}, live=[1, 3]))
    assert out.state() == "OfflinePartition"
    assert out.record()[:3] == (2, 4, ())


def test_e15_never_led_with_no_live_replica_stays_new() -> None:
    out = failover(cluster({"a": [partition([1, 2])]}, live=[9]))
    assert out.state() == "NewPartition"
    assert out.replicas() == {1: "OfflineReplica", 2: "OfflineReplica"}
    assert out.sent() == [(1, UM, {9}), (2, UM, {9})]
    assert [row["partition_count"] for row in out.tables["requests"]] == [0, 0]
    assert out.failures() == ["partition"]


def test_e15b_never_led_with_one_live_replica_gets_its_first_leader() -> None:
    out = failover(cluster({"a": [partition([1, 2])]}, live=[2, 9]))
    assert out.record() == (2, 0, (2,), 0)
    (body,) = out.bodies(LAI)
    assert (body["broker_id"], body["is_new"]) == (2, True)
    assert {row["offline_replicas"] for row in out.bodies(UM)} == {(1,)}


def test_e15c_a_state_znode_the_cache_does_not_know_blocks_the_first_leader() -> None:
    controller = _controller(Assignment((1, 2)), live=[1, 2])
    controller.context.znodes[TP] = LeaderAndIsr(1, 3, (1,), 10, 1, 0)
    controller.partitions.start_up()
    assert controller.context.partition_states[TP] == "NewPartition"
    assert TP not in controller.context.leadership


def test_e16_offline_log_dir_takes_the_leadership_of_a_live_broker() -> None:
    doc = cluster(
        {"a": [partition([1, 2, 3], (1, 4, [1, 2, 3]), offline_dirs=[1])]}, live=[1, 2, 3]
    )
    out = failover(doc)
    _leadership_left_broker_1(out)


def test_e17_shutting_down_broker_is_treated_like_an_offline_one() -> None:
    doc = cluster({"a": [partition([1, 2, 3], (1, 4, [1, 2, 3]))]}, live=[2, 3], shutting_down=[1])
    out = failover(doc)
    _leadership_left_broker_1(out)
    assert (1, UM, {1, 2, 3}) in out.sent()


def _leadership_left_broker_1(out: Outcome) -> None:
    assert out.writes() == [(-1, 5, (2, 3), 11), (2, 6, (2, 3), 12)]
    assert out.told(LAI, 3) == dict.fromkeys([2, 3], (-1, 5, (2, 3)))
    (stop,) = out.bodies(STOP)
    assert (stop["broker_id"], stop["leader_epoch"], stop["delete_partition"]) == (1, 4, False)
    assert set(out.told(LAI, 4)) == {2, 3}


def test_e17b_a_broker_that_is_shutting_down_is_a_reason_to_have_no_leader() -> None:
    out = failover(cluster({"a": [partition([1], (1, 4, [1]))]}, live=[2], shutting_down=[1]))
    assert out.partition()["outcome"] == "offline"
    assert "each broker is down or shutting down" in out.partition()["reason"]
    (decision,) = out.tables["decisions"]
    assert decision["candidates"] == ((1, "shutting_down"),)


def test_forgetting_controller_knows_neither_offline_dirs_nor_shutting_down_brokers() -> None:
    healthy = partition([1, 2, 3], (1, 4, [1, 2, 3]), offline_dirs=[1])
    doc = cluster({"a": [healthy]}, live=[1, 3], shutting_down=[2])
    out = failover(doc, forget=True)
    assert out.writes() == []
    assert set(out.replicas().values()) == {"OnlineReplica"}


def test_e50_two_dead_replicas_are_removed_one_after_the_other_then_elected_around() -> None:
    out = failover(cluster({"a": [partition([1, 2, 3], (1, 4, [1, 2, 3]))]}, live=[3]))
    assert out.writes() == [(-1, 5, (2, 3), 11), (-1, 6, (3,), 12), (3, 7, (3,), 13)]
    assert out.told(LAI, 3) == {3: (-1, 6, (3,))}


def test_the_retained_isr_member_follows_the_order_of_broker_groups() -> None:
    """Broker groups 4 and 5 are taken as 5, 4: broker 4 is the last one left."""
    out = failover(cluster({"a": [partition([4, 5], (4, 0, [4, 5]))]}, live=[7]))
    assert out.writes() == [(4, 1, (4,), 11), (-1, 2, (4,), 12)]


def test_e28_replicas_on_offline_dirs_are_told_of_all_removals_but_their_own() -> None:
    doc = cluster(
        {"a": [partition([1, 2, 3], (1, 4, [1, 2, 3]), offline_dirs=[1, 2])]}, live=[1, 2, 3]
    )
    out = failover(doc)
    assert out.told(LAI, 3) == {
        1: (-1, 6, (3,)),
        2: (-1, 5, (2, 3)),
        3: (-1, 6, (3,)),
    }
    stops = {row["broker_id"]: row["leader_epoch"] for row in out.bodies(STOP)}
    assert stops == {1: 4, 2: 5}


def test_e31_an_isr_of_duplicates_becomes_empty() -> None:
    out = failover(cluster({"a": [partition([1, 2, 3], (1, 4, [1, 1]))]}, live=[2, 3]))
    assert out.record() == (-1, 5, (), 11)


def test_e31b_duplicate_replicas_count_once_in_states_and_stay_in_requests() -> None:
    controller = _controller(Assignment((1, 1, 2)), live=[1, 2])
    record = LeaderAndIsr(1, 4, (1, 2), 10, 1, 0)
    controller.context.znodes[TP] = record
    controller.process({"type": "controller_failover"})
    assert set(controller.context.replica_states) == {(TP, 1), (TP, 2)}
    bodies = controller.journal.request_partitions
    assert {row[12] for row in bodies} == {(1, 1, 2)}


def test_e47_empty_assignment_without_leadership_stays_new() -> None:
    controller = _controller(Assignment(()), live=[1])
    controller.process({"type": "controller_failover"})
    assert controller.context.partition_states[TP] == "NewPartition"


def test_e19_queued_topic_is_sent_truly_to_replicas_and_veiled_in_metadata_then_deleted() -> None:
    doc = cluster({"a": [partition([1, 2, 3], (1, 4, [1, 2, 3]))]}, live=[1, 2, 3], queued=["a"])
    out = failover(doc)
    assert out.told(LAI, 2) == dict.fromkeys([1, 2, 3], (1, 4, (1, 2, 3)))
    assert out.told(UM, 2) == dict.fromkeys([1, 2, 3], (-2, 0, (1, 2, 3)))
    assert out.writes() == [(-1, 5, (2, 3), 11), (-1, 6, (3,), 12), (-1, 7, (3,), 13)]
    assert out.stops() == [(b, -2, False) for b in (1, 2, 3)] + [(b, -2, True) for b in (1, 2, 3)]
    assert out.state() == "NonExistentPartition"
    assert set(out.replicas().values()) == {"ReplicaDeletionStarted"}
    assert out.partition()["outcome"] == "deleting"


def test_e20_queued_topic_loses_its_dead_isr_member_without_a_word() -> None:
    doc = cluster({"a": [partition([1, 2, 3], (1, 4, [1, 2, 3]))]}, live=[1, 2], queued=["a"])
    out = failover(doc)
    assert out.writes() == [(1, 5, (1, 2), 11)]
    assert [step for step, _, _ in out.sent()] == [1, 2, 2]


def test_e26b_a_reassignment_in_flight_is_resumed_and_completed() -> None:
    pending = reassigning([4, 2, 1, 3], (1, 3, [1, 2, 3, 4]), adding=[4], removing=[1, 3])
    out = failover(cluster({"a": [pending]}, live=[2, 3, 4]))
    assert out.record() == (4, 7, (2, 4), 14)
    assert [leader for leader, *_ in out.writes()] == [-1, 4, 4, 4]
    assert (3, 6, False) in out.stops()
    assert (3, 7, True) in out.stops()
    assert out.assignment() == ((4, 2), (), ())
    assert [row["replicas"] for row in out.written("assignment")] == [(4, 2)]
    assert out.partition()["outcome"] == "reassigned"


def test_e47b_a_leader_without_any_assigned_replica_aborts_the_start_from_2_7_on() -> None:
    for release, answers in ((3_09_00_99, ["UNKNOWN_SERVER_ERROR"]), (2_06_00_99, [])):
        controller = _controller(Assignment(()), live=[1])
        controller.context.release = release
        controller.context.znodes[TP] = LeaderAndIsr(1, 4, (1,), 10, 1, 0)
        controller.process({"type": "controller_failover"})
        assert [row[4] for row in controller.journal.event_results] == answers


def test_an_aborted_failover_leaves_nobody_to_answer_until_the_next_one() -> None:
    never_led = reassigning([1, 2], None, adding=[2], removing=[])
    doc = cluster({"a": [never_led], "b": [partition([1], (1, 0, [1]))]}, live=[3])
    events: list[Document] = [
        {"type": "controller_failover"},
        {"type": "preferred_election", "partitions": ["b-0"]},
    ]
    out = Outcome(doc, *events)
    assert out.answers() == [(None, "UNKNOWN_SERVER_ERROR"), (None, "NOT_CONTROLLER")]
    assert out.writes("b") == [(-1, 1, (1,), 11)]  # what was done stays, in ZooKeeper alone
    assert out.state("b") is None
    assert out.assignment("b") == (None, None, None)
    assert out.partition("b")["outcome"] == "resigned"
    again = Outcome(doc, *events, {"type": "controller_failover", "dead": []})
    assert again.writes("b")[1] == (-1, 2, (1,), 12)


def test_a_controller_that_may_not_delete_forgets_the_request() -> None:
    doc = cluster({"a": [partition([1], (1, 4, [1]))]}, live=[1], queued=["a"])
    doc["static_configs"] = {"delete.topic.enable": "false"}
    out = failover(doc)
    assert out.state() == "OnlinePartition"
    assert out.told(UM, 2) == {1: (1, 4, (1,))}


def test_e10_online_isr_member_outside_the_assignment_forbids_an_unclean_election() -> None:
    doc = cluster({"a": [partition([1, 2], (1, 0, [1, 3]))]}, live=[2, 3], unclean=True)
    out = failover(doc)
    assert out.state() == "OfflinePartition"
    assert out.record() == (-1, 1, (3,), 11)


def test_e7b_dead_leader_outside_the_isr_is_not_cleared() -> None:
    out = failover(cluster({"a": [partition([1, 2, 3], (1, 0, [2]))]}, live=[3]))
    assert out.state() == "OfflinePartition"
    assert out.record() == (1, 1, (2,), 11)


def test_e9_dead_replica_outside_the_isr_is_not_written_yet_sent_under_the_new_epoch() -> None:
    out = failover(cluster({"a": [partition([1, 2, 3], (1, 0, [1, 2]))]}, live=[1, 2]))
    assert out.writes() == []
    assert out.partition()["controller_epoch"] == 5
    assert out.partition()["outcome"] == "record_refreshed"
    sent_again = [r for r in out.bodies(LAI) if r["step"] == 3]
    assert {r["controller_epoch"] for r in sent_again} == {5}


def test_e30c_record_of_a_later_controller_is_left_alone() -> None:
    doc = cluster({"a": [partition([1, 2, 3], (1, 4, [1, 2, 3]), controller_epoch=9)]}, live=[2, 3])
    out = failover(doc)
    assert out.writes() == []
    assert out.failures() == ["replica", "partition"]
    assert out.replicas()[1] == "ReplicaDeletionIneligible"
    assert out.partition()["reason"].endswith("later controller epoch")


def test_e39_a_recovering_partition_stays_recovering_through_a_clean_election() -> None:
    out = failover(cluster({"a": [partition([1, 2], (-1, 4, [2]), recovery=1)]}, live=[1, 2]))
    assert out.record() == (2, 5, (2,), 11)
    assert out.partition()["recovery"] == 1


def test_a_live_leader_outside_the_assignment_is_never_moved() -> None:
    out = failover(cluster({"a": [partition([1, 2], (3, 4, [3]))]}, live=[1, 2, 3]))
    assert out.state() == "OnlinePartition"
    assert out.writes() == []


@pytest.mark.parametrize(
    ("topic", "broker", "cluster_wide", "static", "allowed_by"),
    [
        ("true", "false", "false", "false", "topic"),
        ("false", "true", "true", "true", None),
        (None, "true", "false", "false", "broker"),
        (None, "false", "true", "true", None),
        (None, None, "true", "false", "cluster"),
        (None, None, None, "true", "static"),
        (None, None, None, None, None),
    ],
)
def test_the_most_specific_unclean_setting_decides(
    topic: str | None,
    broker: str | None,
    cluster_wide: str | None,
    static: str | None,
    allowed_by: str | None,
) -> None:
    def setting(value: str | None) -> dict[str, str]:
        return {} if value is None else {"unclean.leader.election.enable": value}

    doc = cluster({"a": [partition([1, 2], (2, 4, [2]))]}, live=[1])
    doc["topics"][0]["configs"] = setting(topic)
    doc["brokers"][0]["configs"] = setting(broker)
    doc["configs"] = setting(cluster_wide)
    doc["static_configs"] = setting(static)
    (decision,) = failover(doc).tables["decisions"]
    assert decision["unclean_allowed_by"] == allowed_by
    assert decision["chosen"] == (None if allowed_by is None else 1)


def _controller(assignment: Assignment, live: list[int]) -> ZkController:
    context = ControllerContext(
        release=3_09_00_99,
        protocol=3_09_00_99,
        controller_id=1,
        epoch=4,
        live={b: Broker(b, 100 + b) for b in live},
        assignments={TP: assignment},
    )
    return ZkController(context, Journal())
