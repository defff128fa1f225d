"""The reassignment of a partition by the legacy controller: a target in a znode, two phases.

First the assignment is the target united with the old replicas, until all of the target is in the
ISR; then the target alone. The leader epoch is bumped in ZooKeeper only: until something reads the
record again, the cache shows the one from before (KafkaController, Kafka 0.9 to 1.0).
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from understudy.controller.records import Ids, TopicPartition
from understudy.controller.states import (
    DELETION_STARTED,
    DELETION_SUCCESSFUL,
    NEW_REPLICA,
    NON_EXISTENT_REPLICA,
    OFFLINE_REPLICA,
    ONLINE_PARTITION,
    ONLINE_REPLICA,
)
from understudy.controller.zk_legacy.context import KafkaError, LegacyContext
from understudy.controller.zk_legacy.deletion import LegacyTopicDeletion
from understudy.controller.zk_legacy.journal import LegacyJournal
from understudy.controller.zk_legacy.order import SMALL_SET, broker_set, replica_set
from understudy.controller.zk_legacy.partition_machine import LegacyPartitionStateMachine
from understudy.controller.zk_legacy.replica_machine import LegacyReplicaStateMachine
from understudy.controller.zk_legacy.request_batch import LegacyRequestBatch
from understudy.controller.zk_legacy.selectors import select_reassigned_leader


class LegacyReassignment:
    def __init__(
        self,
        context: LegacyContext,
        journal: LegacyJournal,
        *,
        replicas: LegacyReplicaStateMachine,
        partitions: LegacyPartitionStateMachine,
        deletion: LegacyTopicDeletion,
        send_metadata: Callable[[Collection[TopicPartition]], None],
    ) -> None:
        self._context = context
        self._journal = journal
        self._replicas = replicas
        self._partitions = partitions
        self._deletion = deletion
        self._send_metadata = send_metadata

    def load(self) -> None:
        """What a new controller takes over: a target that the assignment equals counts as done."""
        context = self._context
        context.zookeeper.reassignments = {
            tp: target
            for tp, target in context.zookeeper.reassignments.items()
            if tp in context.assignments and context.assignments[tp] != target
        }
        context.reassigning = dict(context.zookeeper.reassignments)

    def request(self, tp: TopicPartition, target: Ids) -> None:
        """A target appears in the znode; one that is in progress already is left as it is."""
        if tp in self._context.reassigning:
            return
        self._context.zookeeper.reassignments[tp] = target
        if self._context.is_queued(tp):
            self._drop(tp)
        else:
            self.initiate(tp, target)

    def initiate(self, tp: TopicPartition, target: Ids) -> None:
        """Whatever goes wrong drops the reassignment and leaves what was done."""
        if self._context.assignments.get(tp) in (None, target):
            self._drop(tp)
            return
        self._context.reassigning[tp] = target
        self._deletion.mark_ineligible([tp[0]])
        try:
            self.advance(tp)
        except KafkaError:
            self._drop(tp)

    def isr_changed(self, tp: TopicPartition) -> None:
        """The watch on the state znode of a partition that is being reassigned."""
        if tp in self._context.reassigning and self._has_caught_up(tp):
            self.advance(tp)

    def advance(self, tp: TopicPartition) -> None:
        """Kafka's onPartitionReassignment: the first phase (again), or the last."""
        if self._has_caught_up(tp):
            self._complete(tp)
        else:
            self._unite(tp)

    def _has_caught_up(self, tp: TopicPartition) -> bool:
        znode = self._context.zookeeper.states.get(tp)
        return znode is not None and set(self._context.reassigning[tp]) <= set(znode.isr)

    def _unite(self, tp: TopicPartition) -> None:
        target = self._context.reassigning[tp]
        old = self._context.assigned(tp)
        united = broker_set((*target, *old))
        self._write_assignment(tp, united)
        self._bump_leader_epoch(tp, united, united)
        for broker in broker_set(target):
            if broker not in old:
                self._replicas.handle_state_changes([(tp, broker)], NEW_REPLICA)

    def _complete(self, tp: TopicPartition) -> None:
        context = self._context
        target = context.reassigning[tp]
        old = context.assigned(tp)
        for broker in target:
            self._replicas.handle_state_changes([(tp, broker)], ONLINE_REPLICA)
        self._move_leader(tp, target)
        walked = broker_set(old)
        leaving = replica_set(
            ((tp, broker) for broker in walked if broker not in target),
            hashed=len(walked) > SMALL_SET,
        )
        for state in (OFFLINE_REPLICA, DELETION_STARTED, DELETION_SUCCESSFUL, NON_EXISTENT_REPLICA):
            self._replicas.handle_state_changes(leaving, state)
        self._write_assignment(tp, target)
        self._drop(tp)
        self._send_metadata([tp])
        self._deletion.resume_topics([tp[0]])

    def _move_leader(self, tp: TopicPartition, target: Ids) -> None:
        context = self._context
        if tp not in context.leadership:
            raise KafkaError("the partition never had a leader")
        leader = context.leadership[tp].leader
        old_and_new = context.assigned(tp)
        context.assignments[tp] = target
        if leader in target and context.is_online(leader, tp):
            self._bump_leader_epoch(tp, old_and_new, target)
        else:
            self._partitions.handle_state_changes([tp], ONLINE_PARTITION, select_reassigned_leader)

    def _bump_leader_epoch(self, tp: TopicPartition, receivers: Ids, replicas: Ids) -> None:
        """A new epoch makes the leader take over the new assignment; the cache is not touched."""
        context = self._context
        znode = context.zookeeper.states.get(tp)
        if znode is None or znode.controller_epoch > context.epoch:
            raise KafkaError("there is no state znode, or a later controller wrote it")
        record = znode._replace(
            leader_epoch=znode.leader_epoch + 1,
            partition_epoch=znode.partition_epoch + 1,
            controller_epoch=context.epoch,
        )
        context.zookeeper.states[tp] = record
        self._journal.state_written(tp, record)
        batch = LegacyRequestBatch(context, self._journal)
        batch.add_leader_and_isr(receivers, tp, record, replicas)
        batch.send()

    def _write_assignment(self, tp: TopicPartition, replicas: Ids) -> None:
        """The topic's znode is written as a whole, as the controller remembers the topic."""
        context = self._context
        context.assignments[tp] = replicas
        context.zookeeper.topics[tp[0]] = {
            other[1]: context.assignments[other] for other in context.partitions_of(tp[0])
        }
        self._journal.replicas_written(tp, replicas)

    def _drop(self, tp: TopicPartition) -> None:
        self._context.zookeeper.reassignments.pop(tp, None)
        self._context.reassigning.pop(tp, None)
