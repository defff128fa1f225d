"""Reassignments: started, progressing, completed, replaced and cancelled.

(onPartitionReassignment and its helpers, KafkaController 2.4 to 3.9.) The assignment is written
with the adding replicas first; once the target is in sync the leader moves into it and the
removed replicas are stopped and deleted, without waiting for their answers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from understudy.controller import releases
from understudy.controller.records import Assignment, Ids, TopicPartition, minus
from understudy.controller.states import (
    DELETION_STARTED,
    DELETION_SUCCESSFUL,
    NEW_REPLICA,
    NON_EXISTENT_REPLICA,
    OFFLINE_REPLICA,
    ONLINE_PARTITION,
    ONLINE_REPLICA,
)
from understudy.controller.words import (
    INVALID_REPLICA_ASSIGNMENT,
    NO_REASSIGNMENT_IN_PROGRESS,
    UNKNOWN_SERVER_ERROR,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from understudy.controller.zk.context import EventAbortedError
from understudy.controller.zk.deletion import TopicDeletion
from understudy.controller.zk.machines import Machines
from understudy.controller.zk.partition_machine import Strategy
from understudy.controller.zk.request_batch import RequestBatch

_WAY_OUT: Final = (OFFLINE_REPLICA, DELETION_STARTED, DELETION_SUCCESSFUL, NON_EXISTENT_REPLICA)


class Reassignments:
    def __init__(self, machines: Machines, deletion: TopicDeletion) -> None:
        self._machines = machines
        self._deletion = deletion
        self._context = machines.context

    def request(self, tp: TopicPartition, target: Ids | None) -> str | None:
        """One request of the API; None for *target* cancels. Kafka's error, or None."""
        current = self._context.assignment(tp)
        if target is not None and not self._is_valid(current.reassign_to(target), target):
            return INVALID_REPLICA_ASSIGNMENT
        if target is None:
            if not current.is_being_reassigned:
                return NO_REASSIGNMENT_IN_PROGRESS
            target = current.origin
        if self._context.is_queued(tp) or not current.replicas:
            return UNKNOWN_TOPIC_OR_PARTITION
        try:
            self.run(tp, current.reassign_to(target))
        except EventAbortedError:
            return UNKNOWN_SERVER_ERROR
        return None

    def _is_valid(self, wanted: Assignment, target: Ids) -> bool:
        return (
            bool(target)
            and len(set(target)) == len(target)
            and all(replica >= 0 for replica in target)
            and all(self._context.is_live(replica) for replica in wanted.adding)
        )

    def resume(self, wanted: Callable[[Assignment], bool]) -> None:
        """Take up the reassignments in flight whose assignment is *wanted*."""
        for tp in sorted(self._context.reassigning):
            assignment = self._context.assignment(tp)
            if wanted(assignment):
                self.run(tp, assignment)

    def complete_if_in_sync(self, tp: TopicPartition) -> None:
        """The ISR of *tp* changed: complete its reassignment if that was all it waited for."""
        if tp in self._context.reassigning:
            assignment = self._context.assignment(tp)
            if self._is_complete(tp, assignment):
                self.run(tp, assignment)

    def run(self, tp: TopicPartition, assignment: Assignment) -> None:
        """Kafka's onPartitionReassignment."""
        self._deletion.halt([tp[0]])
        self._update(tp, assignment)
        if self._is_complete(tp, assignment):
            self._complete(tp, assignment)
        else:
            self._raise_epoch(tp, assignment)
            for replica in assignment.adding:
                self._machines.replicas.handle_state_changes([(tp, replica)], NEW_REPLICA)

    def _update(self, tp: TopicPartition, assignment: Assignment) -> None:
        """Write the assignment down; replicas an earlier reassignment was adding may go at once."""
        current = self._context.assignment(tp)
        if current != assignment:
            self._write(tp, assignment)
            self._context.assign(tp, assignment)
            self._stop_and_remove(tp, minus(current.replicas, assignment.replicas))
        self._context.reassigning.add(tp)

    def _is_complete(self, tp: TopicPartition, assignment: Assignment) -> bool:
        if not assignment.is_being_reassigned:
            return True
        znode = self._context.znodes.get(tp)
        return znode is not None and set(assignment.target) <= set(znode.isr)

    def _complete(self, tp: TopicPartition, assignment: Assignment) -> None:
        context, machines = self._context, self._machines
        completed = Assignment(assignment.target)
        adding = [(tp, replica) for replica in assignment.adding]
        machines.replicas.handle_state_changes(adding, ONLINE_REPLICA)
        context.assign(tp, completed)
        self._move_leader(tp, completed)
        self._stop_and_remove(tp, assignment.removing)
        self._write(tp, completed)
        context.reassigning.discard(tp)
        machines.send_metadata([tp])
        self._deletion.resume_for([tp[0]])

    def _move_leader(self, tp: TopicPartition, completed: Assignment) -> None:
        """Whether an election succeeds does not matter to what follows."""
        record = self._context.leadership.get(tp)
        if record is None:
            raise EventAbortedError(tp)
        stays = record.leader in completed.replicas and self._context.is_online(record.leader, tp)
        if stays:
            self._raise_epoch(tp, completed)
        else:
            self._machines.partitions.handle_state_changes(
                [tp], ONLINE_PARTITION, Strategy.REASSIGN
            )

    def _raise_epoch(self, tp: TopicPartition, assignment: Assignment) -> None:
        """Kafka's updateLeaderEpochAndSendRequest: the same record under a new leader epoch."""
        context = self._context
        znode = context.znodes.get(tp)
        if znode is None or znode.controller_epoch > context.epoch:
            raise EventAbortedError(tp)
        batch = RequestBatch(context, self._machines.journal)
        record = znode._replace(
            leader_epoch=znode.leader_epoch + 1,
            partition_epoch=znode.partition_epoch + 1,
            controller_epoch=context.epoch,
        )
        context.znodes[tp] = record
        context.remember_leadership(tp, record)
        self._machines.journal.epoch_raised(tp, record)
        if context.release >= releases.RELEASE_2_7:
            batch.add_leader_and_isr(assignment.origin, tp, record, is_new=False)
            batch.add_leader_and_isr(assignment.adding, tp, record, is_new=True)
        else:
            batch.add_leader_and_isr(assignment.replicas, tp, record, is_new=False)
        batch.send()

    def _stop_and_remove(self, tp: TopicPartition, brokers: Ids) -> None:
        replicas = [(tp, broker) for broker in brokers]
        for target in (
            OFFLINE_REPLICA,
            DELETION_STARTED,
            DELETION_SUCCESSFUL,
            NON_EXISTENT_REPLICA,
        ):
            self._machines.replicas.handle_state_changes(replicas, target)

    def _write(self, tp: TopicPartition, assignment: Assignment) -> None:
        self._context.write_assignment(tp, assignment)
        self._machines.journal.assignment_written(tp, assignment)
