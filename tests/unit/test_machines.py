"""The two machines beyond start-up: every target state, every valid and invalid step."""

from __future__ import annotations

import pytest

from understudy.controller import states
from understudy.controller.elections import (
    elect_controlled_shutdown_leader,
    elect_preferred_leader,
    elect_reassigned_leader,
)
from understudy.controller.journal import Journal
from understudy.controller.records import Assignment, LeaderAndIsr, minus
from understudy.controller.zk.context import Broker, ControllerContext
from understudy.controller.zk.events import ZkController
from understudy.controller.zk.partition_machine import Strategy

TP = ("a", 0)
RECORD = LeaderAndIsr(1, 4, (1, 2, 3), 10, 1, 0)


def controller(
    record: LeaderAndIsr | None = RECORD, live: tuple[int, ...] = (1, 2, 3)
) -> ZkController:
    context = ControllerContext(
        release=3_09_00_99,
        protocol=3_09_00_99,
        controller_id=1,
        epoch=5,
        live={b: Broker(b, 100 + b) for b in live},
        assignments={TP: Assignment((1, 2, 3))},
    )
    if record is not None:
        context.leadership[TP] = record
        context.znodes[TP] = record
    return ZkController(context, Journal())


@pytest.mark.parametrize("target", states.VALID_PREVIOUS_REPLICA)
@pytest.mark.parametrize("before", states.VALID_PREVIOUS_REPLICA)
def test_a_replica_moves_exactly_from_the_valid_previous_states(before: str, target: str) -> None:
    one = controller()
    one.context.replica_states[(TP, 2)] = before
    one.replicas.handle_state_changes([(TP, 2)], target)
    (transition,) = one.journal.transitions
    result = transition[9]
    after = one.context.replica_states.get((TP, 2), states.NON_EXISTENT_REPLICA)
    if before in states.VALID_PREVIOUS_REPLICA[target]:
        assert (result, after) == ("ok", target)
    else:
        assert (result, after) == ("invalid", before)


@pytest.mark.parametrize("target", states.VALID_PREVIOUS_PARTITION)
@pytest.mark.parametrize("before", states.VALID_PREVIOUS_PARTITION)
def test_a_partition_moves_exactly_from_the_valid_previous_states(before: str, target: str) -> None:
    one = controller(None if before == states.NEW_PARTITION else RECORD)
    one.context.partition_states[TP] = before
    one.partitions.handle_state_changes([TP], target, Strategy.PREFERRED)
    (transition,) = one.journal.transitions
    if before in states.VALID_PREVIOUS_PARTITION[target]:
        assert (transition[9], one.context.partition_states[TP]) == ("ok", target)
    else:
        assert (transition[9], one.context.partition_states[TP]) == ("invalid", before)


def test_e34_a_leader_cannot_become_a_new_replica() -> None:
    one = controller()
    one.replicas.handle_state_changes([(TP, 1)], states.NEW_REPLICA)
    assert one.journal.transitions[0][9] == "failed"
    assert one.context.replica_states[(TP, 1)] == states.NON_EXISTENT_REPLICA
    one.replicas.handle_state_changes([(TP, 2)], states.NEW_REPLICA)
    (body,) = [b for b in one.journal.request_partitions if b[3] == "LEADER_AND_ISR"]
    assert (body[6], body[16]) == ((2,), True)


def test_e34b_a_new_replica_outside_the_assignment_is_appended_to_it() -> None:
    one = controller()
    one.context.replica_states[(TP, 7)] = states.NEW_REPLICA
    one.replicas.handle_state_changes([(TP, 7)], states.ONLINE_REPLICA)
    assert one.context.assignments[TP].replicas == (1, 2, 3, 7)
    assert one.journal.requests == []


def test_e30_offline_without_a_znode_fails_after_the_stop_was_sent() -> None:
    one = controller()
    del one.context.znodes[TP]
    one.context.replica_states[(TP, 2)] = states.ONLINE_REPLICA
    one.replicas.handle_state_changes([(TP, 2)], states.OFFLINE_REPLICA)
    assert one.journal.transitions[0][9] == "failed"
    assert one.context.replica_states[(TP, 2)] == states.ONLINE_REPLICA
    assert [r[3] for r in one.journal.requests] == ["STOP_REPLICA"]


def test_e32_preferred_election_of_an_unknown_partition_leaves_an_entry() -> None:
    one = controller(RECORD._replace(leader=2))
    one.context.partition_states[TP] = states.ONLINE_PARTITION
    unknown = ("zz", 0)
    results = one.partitions.handle_state_changes(
        [TP, unknown], states.ONLINE_PARTITION, Strategy.PREFERRED
    )
    assert results == {TP: None}
    assert one.context.leadership[TP][:2] == (1, 5)
    assert one.context.partition_states[unknown] == states.NON_EXISTENT_PARTITION


def test_e32b_preferred_election_of_the_leader_itself_still_bumps() -> None:
    one = controller()
    one.context.partition_states[TP] = states.ONLINE_PARTITION
    one.partitions.handle_state_changes([TP], states.ONLINE_PARTITION, Strategy.PREFERRED)
    assert one.context.leadership[TP][:2] == (1, 5)


def test_e32c_preferred_replica_outside_the_isr_is_not_elected() -> None:
    one = controller(RECORD._replace(leader=2, isr=(2, 3)))
    one.context.partition_states[TP] = states.ONLINE_PARTITION
    results = one.partitions.handle_state_changes([TP], states.ONLINE_PARTITION, Strategy.PREFERRED)
    assert results == {TP: "StateChangeFailed"}
    assert one.journal.requests == []


def test_e46_the_same_replica_twice_in_a_call_is_removed_once() -> None:
    one = controller()
    one.context.replica_states[(TP, 3)] = states.ONLINE_REPLICA
    one.replicas.handle_state_changes([(TP, 3), (TP, 3)], states.OFFLINE_REPLICA)
    assert one.context.leadership[TP][:4] == (1, 5, (1, 2), 11)
    assert len(one.journal.metadata_writes) == 1


def test_e51_elections_read_the_znode_not_the_cache() -> None:
    one = controller(live=(2, 3))
    one.context.znodes[TP] = LeaderAndIsr(2, 9, (2, 3), 10, 1, 0)
    one.context.partition_states[TP] = states.OFFLINE_PARTITION
    one.partitions.trigger_online_partition_state_change()
    assert one.context.leadership[TP][:4] == (2, 10, (2, 3), 11)


def test_stop_and_delete_of_one_replica_stay_delete() -> None:
    one = controller()
    one.context.replica_states[(TP, 2)] = states.OFFLINE_REPLICA
    one.replicas.handle_state_changes([(TP, 2)], states.DELETION_STARTED)
    (body,) = one.journal.request_partitions
    assert (body[3], body[17]) == ("STOP_REPLICA", True)


def test_e18_controlled_shutdown_moves_leadership_to_one_that_stays() -> None:
    elected = elect_controlled_shutdown_leader((1, 2, 3), (1, 2, 3), {1, 2, 3}, {1})
    assert elected is not None
    assert (elected.leader, elected.isr) == (2, (2, 3))


def test_e18b_controlled_shutdown_of_the_only_isr_member_fails() -> None:
    assert elect_controlled_shutdown_leader((1, 2, 3), (1,), {1, 2, 3}, {1}) is None


def test_e52_every_shutting_down_broker_leaves_the_isr() -> None:
    elected = elect_controlled_shutdown_leader((1, 2, 3), (1, 2, 3), {1, 2, 3}, {1, 2})
    assert elected is not None
    assert (elected.leader, elected.isr) == (3, (3,))


def test_e53_an_offline_dir_does_not_leave_the_isr_in_a_controlled_shutdown() -> None:
    elected = elect_controlled_shutdown_leader((1, 2, 3), (3, 2, 1), {1, 3}, {3})
    assert elected is not None
    assert (elected.leader, elected.isr) == (1, (2, 1))


def test_reassigned_leader_is_the_first_online_target_in_sync() -> None:
    elected = elect_reassigned_leader((4, 5, 6), (1, 6, 5), {1, 5, 6})
    assert elected is not None
    assert (elected.leader, elected.isr) == (5, (1, 6, 5))
    assert elect_preferred_leader((4, 5), (5,), {4, 5}) is None


def test_difference_of_lists_is_ordered_and_counts() -> None:
    assert minus((1, 2, 1, 3), (1, 3)) == (2, 1)


def test_e30b_offline_without_a_znode_is_dropped_silently_while_the_topic_is_queued() -> None:
    one = controller()
    one.context.queued_topics.add("a")
    del one.context.znodes[TP]
    one.context.replica_states[(TP, 2)] = states.ONLINE_REPLICA
    one.replicas.handle_state_changes([(TP, 2)], states.OFFLINE_REPLICA)
    assert one.context.replica_states[(TP, 2)] == states.ONLINE_REPLICA
    (body,) = one.journal.request_partitions
    assert (body[3], body[8]) == ("STOP_REPLICA", -2)


def test_e32d_an_election_needs_a_strategy() -> None:
    one = controller()
    one.context.partition_states[TP] = states.ONLINE_PARTITION
    with pytest.raises(ValueError, match="strategy"):
        one.partitions.handle_state_changes([TP], states.ONLINE_PARTITION)


def test_until_2_4_a_forgotten_replica_stays_in_the_lists_of_a_reassignment() -> None:
    for release, removing in ((2_04_00_99, (3,)), (2_05_00_99, ())):
        one = controller()
        one.context.release = release
        one.context.assign(TP, Assignment((1, 2, 3), (), (3,)))
        one.context.replica_states[(TP, 3)] = states.DELETION_SUCCESSFUL
        one.replicas.handle_state_changes([(TP, 3)], states.NON_EXISTENT_REPLICA)
        assert one.context.assignments[TP] == Assignment((1, 2), (), removing)


def test_a_reassignment_puts_the_target_first_and_forgets_what_was_being_added() -> None:
    assert Assignment((1, 2, 3)).reassign_to((4, 2)) == Assignment((4, 2, 1, 3), (4,), (1, 3))
    in_flight = Assignment((4, 1, 2), (4,), (2,))
    assert in_flight.reassign_to((5, 1)) == Assignment((5, 1, 2), (5,), (2,))
    assert Assignment((1, 2)).reassign_to((2, 1)) == Assignment((2, 1))


def test_the_topic_znode_is_written_whole() -> None:
    """An assignment that so far stood in memory alone goes to ZooKeeper with its neighbour's."""
    context = controller().context
    neighbour = ("a", 1)
    context.add_partition(neighbour, Assignment((1,)))
    context.assign(TP, Assignment((1, 2)))
    assert context.znode_assignments == {TP: Assignment((1, 2, 3))}
    context.write_assignment(neighbour, Assignment((2,)))
    assert context.znode_assignments == {neighbour: Assignment((2,))}
    context.load_from_zookeeper()
    assert context.assignments == {TP: Assignment((1, 2)), neighbour: Assignment((2,))}


def test_look_ups_follow_every_change() -> None:
    context = controller().context
    assert context.partitions_on(3) == context.partitions_of("a") == context.led_by(1) == [TP]
    context.assign(TP, Assignment((1, 2)))
    context.remember_leadership(TP, RECORD._replace(leader=-1))
    context.set_partition_state(TP, states.OFFLINE_PARTITION)
    assert (context.partitions_on(3), context.partitions_on(2)) == ([], [TP])
    assert (context.led_by(1), context.with_offline_leader()) == ([], [TP])
    assert context.new_and_offline_partitions() == [TP]
    context.set_partition_state(TP, states.ONLINE_PARTITION)
    assert context.new_and_offline_partitions() == []
    context.remove_topic("a")
    assert context.partitions_on(2) == context.partitions_of("a") == []
    assert context.with_offline_leader() == []
