"""Rules of the ZooKeeper controller, broken one by one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from conformance.mutations import Mutation
from understudy.controller import elections, records, releases, states
from understudy.controller.zk import (
    broker_changes,
    context,
    deletion,
    isr_reports,
    partition_machine,
    reassignment,
    rebalance,
    replica_machine,
    request_batch,
)
from understudy.controller.zk import events as zk

_NEVER: Final = releases.NEWEST_LEVEL + 1


def _first_of_isr(
    _replicas: records.Ids, isr: records.Ids, online: records.Ids, *, unclean: bool
) -> elections.Elected | None:
    del unclean
    return elections.elect_reassigned_leader(isr, tuple(r for r in isr if r in online), online)


def _stranger_does_not_matter(
    replicas: records.Ids, isr: records.Ids, online: records.Ids, *, unclean: bool
) -> elections.Elected | None:
    own = tuple(r for r in isr if r in replicas)
    return _elect_offline(replicas, own, online, unclean=unclean)


def _whole_isr_kept(
    replicas: records.Ids, isr: records.Ids, online: records.Ids, *, unclean: bool
) -> elections.Elected | None:
    elected = _elect_offline(replicas, isr, online, unclean=unclean)
    return elected._replace(isr=isr) if elected is not None and elected.clean else elected


def _any_in_sync_is_preferred(
    replicas: records.Ids, isr: records.Ids, online: records.Ids
) -> elections.Elected | None:
    return elections.elect_reassigned_leader(replicas, isr, online)


def _isr_keeps_those_who_leave(
    replicas: records.Ids, isr: records.Ids, online: records.Ids, shutting_down: set[int]
) -> elections.Elected | None:
    elected = _elect_shutdown(replicas, isr, online, shutting_down)
    return None if elected is None else elected._replace(isr=isr)


def _always_unclean(*_: object) -> str:
    return "topic"


def _topic_does_not_win(
    unclean: context.UncleanElection, _topic: str, controller: int | None
) -> str | None:
    return _allowed_by(unclean, "", controller)


def _broker_does_not_win(
    unclean: context.UncleanElection, topic: str, _controller: int | None
) -> str | None:
    return _allowed_by(unclean, topic, None)


def _last_member_leaves(
    machine: replica_machine.ReplicaStateMachine, replica: int, tp: records.TopicPartition
) -> records.LeaderAndIsr | None:
    record = _remove_from_isr(machine, replica, tp)
    if record is not None and record.isr == (replica,):
        machine._context.remember_leadership(tp, record._replace(isr=()))  # noqa: SLF001
    return record


def _online_whatever_the_directory(
    known: context.ControllerContext, broker: int, _tp: records.TopicPartition
) -> bool:
    return known.is_live(broker)


def _live_while_shutting_down(known: context.ControllerContext, broker: int) -> bool:
    return broker in known.live


def _true_epoch_while_queued(known: context.ControllerContext, tp: records.TopicPartition) -> int:
    record = known.leadership.get(tp)
    return -1 if record is None else record.leader_epoch


def _start_up_online_only(machine: replica_machine.ReplicaStateMachine) -> None:
    online, _ = machine._initialize_states()  # noqa: SLF001
    machine.handle_state_changes(online, states.ONLINE_REPLICA)


def _never_new(
    batch: request_batch.RequestBatch,
    brokers: Sequence[int],
    tp: records.TopicPartition,
    record: records.LeaderAndIsr,
    *,
    is_new: bool,
) -> None:
    del is_new
    _add_leader_and_isr(batch, brokers, tp, record, is_new=False)


def _origin_first(assignment: records.Assignment, target: records.Ids) -> records.Assignment:
    wanted = _reassign_to(assignment, target)
    return wanted._replace(replicas=tuple(sorted(wanted.replicas)))


def _ratio_reached(known: context.ControllerContext, percentage: float) -> Iterator[Any]:
    return _unbalanced(known, percentage - 0.001)  # type: ignore[arg-type]


def _put_in_front(known: context.ControllerContext, brokers: records.Ids) -> list[Any]:
    def turned(tp: records.TopicPartition, isr: records.Ids) -> records.Ids:
        old = len(known.leadership[tp].isr)
        return (*isr[old:], *isr[:old])

    return [
        {tp: turned(tp, isr) for tp, isr in each.items()} for each in _caught_up(known, brokers)
    ]


def _dead_leave_first(changes: broker_changes.BrokerChanges) -> None:
    known = changes._context  # noqa: SLF001
    dead = sorted(known.live.keys() - known.registered.keys())
    if dead:
        changes._fail(dead)  # noqa: SLF001
    _process_brokers(changes)


def _nothing(*_: object, **__: object) -> None:
    return None


def _whoever_wrote_last(
    machine: partition_machine.PartitionStateMachine,
    batch: request_batch.RequestBatch,
    tp: records.TopicPartition,
    strategy: partition_machine.Strategy,
    *,
    allow_unclean: bool,
) -> str | None:
    known = machine._context  # noqa: SLF001
    if tp in known.znodes:
        known.znodes[tp] = known.znodes[tp]._replace(controller_epoch=0)
    return _elect(machine, batch, tp, strategy, allow_unclean=allow_unclean)


class _TargetIsEverybody(records.Assignment):
    @property
    def target(self) -> records.Ids:
        return self.replicas


_elect_offline: Final = elections.elect_offline_leader
_elect_shutdown: Final = elections.elect_controlled_shutdown_leader
_allowed_by: Final = context.UncleanElection.allowed_by
_remove_from_isr: Final = replica_machine.ReplicaStateMachine._remove_from_isr  # noqa: SLF001
_add_leader_and_isr: Final = request_batch.RequestBatch.add_leader_and_isr
_reassign_to: Final = records.Assignment.reassign_to
_unbalanced: Final = rebalance.unbalanced
_caught_up: Final = isr_reports.caught_up
_process_brokers: Final = broker_changes.BrokerChanges.process
_elect: Final = partition_machine.PartitionStateMachine._elect  # noqa: SLF001

_Context: Final = context.ControllerContext
_Replicas: Final = replica_machine.ReplicaStateMachine
_Partitions: Final = partition_machine.PartitionStateMachine
_Reassignments: Final = reassignment.Reassignments

MUTATIONS: Final = (
    Mutation(
        "leaders are found in assignment order, not ISR order",
        [(elections, "elect_offline_leader", _first_of_isr)],
    ),
    Mutation(
        "a live stranger in the ISR forbids an unclean election",
        [(elections, "elect_offline_leader", _stranger_does_not_matter)],
    ),
    Mutation(
        "an offline election leaves only online members in the ISR",
        [(elections, "elect_offline_leader", _whole_isr_kept)],
    ),
    Mutation(
        "a preferred election takes the first replica or nobody",
        [(elections, "elect_preferred_leader", _any_in_sync_is_preferred)],
    ),
    Mutation(
        "controlled shutdown takes those who leave out of the ISR",
        [(elections, "elect_controlled_shutdown_leader", _isr_keeps_those_who_leave)],
    ),
    Mutation(
        "unclean elections happen only where a setting allows them",
        [(context.UncleanElection, "allowed_by", _always_unclean)],
    ),
    Mutation(
        "a topic's unclean setting wins over the broker's",
        [(context.UncleanElection, "allowed_by", _topic_does_not_win)],
    ),
    Mutation(
        "the controller's own unclean setting wins over the cluster's",
        [(context.UncleanElection, "allowed_by", _broker_does_not_win)],
    ),
    Mutation(
        "an unclean leader is recovering from protocol 3.2 on",
        [(releases, "PROTOCOL_3_2", _NEVER)],
    ),
    Mutation(
        "a record written by a later controller stops an election",
        [(_Partitions, "_elect", _whoever_wrote_last)],
    ),
    Mutation(
        "the last ISR member is retained",
        [(_Replicas, "_remove_from_isr", _last_member_leaves)],
    ),
    Mutation(
        "brokers are handled in hash order",
        [(replica_machine, "group_order", sorted)],
    ),
    Mutation(
        "offline replicas are told so at start-up",
        [(_Replicas, "start_up", _start_up_online_only)],
    ),
    Mutation(
        "a replica on an offline directory is not online",
        [(_Context, "is_online", _online_whatever_the_directory)],
    ),
    Mutation(
        "a broker that is shutting down is not live",
        [(_Context, "is_live", _live_while_shutting_down)],
    ),
    Mutation(
        "an ineligible replica may come from offline",
        [
            (
                states.VALID_PREVIOUS_REPLICA,
                states.DELETION_INELIGIBLE,
                frozenset({states.DELETION_STARTED}),
            )
        ],
    ),
    Mutation(
        "a replica is new only once",
        [
            (
                states.VALID_PREVIOUS_REPLICA,
                states.NEW_REPLICA,
                frozenset({states.NON_EXISTENT_REPLICA, states.ONLINE_REPLICA}),
            )
        ],
    ),
    Mutation(
        "a stop of a queued topic carries epoch -2",
        [(_Context, "leader_epoch_to_stop", _true_epoch_while_queued)],
    ),
    Mutation(
        "metadata of a queued topic shows leader -2",
        [(request_batch, "LEADER_DURING_DELETE", -1)],
    ),
    Mutation(
        "a partition's first leader-and-isr says that it is new",
        [(request_batch.RequestBatch, "add_leader_and_isr", _never_new)],
    ),
    Mutation(
        "the protocol decides the versions of requests",
        [(releases, "_VERSIONS_SINCE", releases._VERSIONS_SINCE[1:])],  # noqa: SLF001
    ),
    Mutation(
        "from 3.1 on metadata goes out only if nothing else did",
        [(releases, "RELEASE_3_1", _NEVER)],
    ),
    Mutation(
        "while brokers start, the dead still count as live",
        [(broker_changes.BrokerChanges, "process", _dead_leave_first)],
    ),
    Mutation(
        "from 3.3 on only live brokers may enter the ISR",
        [(releases, "RELEASE_3_3", _NEVER)],
    ),
    Mutation(
        "below protocol 2.7-IV2 leaders write the ISR themselves",
        [(releases, "PROTOCOL_2_7_IV2", 0)],
    ),
    Mutation("who catches up is appended to the ISR", [(zk, "caught_up", _put_in_front)]),
    Mutation(
        "the target of a reassignment comes first",
        [(records.Assignment, "reassign_to", _origin_first)],
    ),
    Mutation(
        "the leader epoch rises when a reassignment starts",
        [(_Reassignments, "_raise_epoch", _nothing)],
    ),
    Mutation(
        "removed replicas are stopped and deleted",
        [(_Reassignments, "_stop_and_remove", _nothing)],
    ),
    Mutation(
        "the target of a reassignment leaves the removed replicas out",
        [(records.Assignment, "target", _TargetIsEverybody.target)],
    ),
    Mutation(
        "until 3.3 a reassignment anywhere stops the rebalance",
        [(releases, "RELEASE_3_4", 0)],
    ),
    Mutation("a rebalance needs more than the percentage", [(zk, "unbalanced", _ratio_reached)]),
    Mutation(
        "a dead replica halts the deletion of its topic",
        [(deletion.TopicDeletion, "halt", _nothing)],
    ),
    Mutation(
        "a failed deletion is taken up again when a broker returns",
        [(deletion.TopicDeletion, "resume_for", _nothing)],
    ),
)
