"""The legacy replica state machine: one replica at a time, each on its own.

Whatever goes wrong with one replica is logged, and the next one goes on; what it had added to the
batch by then is sent all the same (ReplicaStateMachine, Kafka 0.9 to 1.0).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from understudy.controller.records import Ids, LeaderAndIsr, Replica, TopicPartition
from understudy.controller.states import (
    DELETION_INELIGIBLE,
    DELETION_STARTED,
    NEW_REPLICA,
    NON_EXISTENT_REPLICA,
    OFFLINE_REPLICA,
    ONLINE_REPLICA,
    VALID_PREVIOUS_REPLICA,
)
from understudy.controller.words import (
    FAILED,
    ILLEGAL_STATE,
    INVALID,
    NO_LEADER,
    OK,
    REPLICA_MACHINE,
    STATE_CHANGE_FAILED,
)
from understudy.controller.zk_legacy.context import KafkaError, LegacyContext
from understudy.controller.zk_legacy.journal import LegacyJournal
from understudy.controller.zk_legacy.request_batch import LegacyRequestBatch

# A replica that is merely offline cannot become ineligible yet; later controllers allow it.
VALID_PREVIOUS: Final[dict[str, frozenset[str]]] = VALID_PREVIOUS_REPLICA | {
    DELETION_INELIGIBLE: frozenset({DELETION_STARTED})
}


class LegacyReplicaStateMachine:
    def __init__(self, context: LegacyContext, journal: LegacyJournal) -> None:
        self._context = context
        self._journal = journal
        self._effects: dict[str, Callable[[LegacyRequestBatch, Replica], LeaderAndIsr | None]] = {
            NEW_REPLICA: self._become_new,
            ONLINE_REPLICA: self._become_online,
            OFFLINE_REPLICA: self._become_offline,
            DELETION_STARTED: self._start_deletion,
            NON_EXISTENT_REPLICA: self._leave_assignment,
        }

    def start_up(self) -> None:
        """First states by assignment, then the online replicas; nobody leaves an ISR here."""
        self.initialize_states(not_online=DELETION_INELIGIBLE)
        self.handle_state_changes(self._context.live_replicas(), ONLINE_REPLICA)

    def initialize_states(self, *, not_online: str) -> None:
        for tp, replicas in self._context.assignments.items():
            for broker in replicas:
                online = self._context.is_online(broker, tp)
                self._context.replica_states[(tp, broker)] = (
                    ONLINE_REPLICA if online else not_online
                )

    def handle_state_changes(
        self, replicas: Iterable[Replica], target: str
    ) -> LegacyRequestBatch | None:
        """One call, one batch, which is returned; the order of *replicas* is kept."""
        ordered = list(dict.fromkeys(replicas))
        if not ordered:
            return None
        batch = LegacyRequestBatch(self._context, self._journal)
        for replica in ordered:
            self._handle_state_change(batch, replica, target)
        batch.send()
        return batch

    def _handle_state_change(
        self, batch: LegacyRequestBatch, replica: Replica, target: str
    ) -> None:
        states = self._context.replica_states
        before = states.setdefault(replica, NON_EXISTENT_REPLICA)
        effect = self._effects.get(target)
        try:
            self._context.assigned(replica[0])  # looked up before the states are compared
            if before not in VALID_PREVIOUS[target]:
                self._log(replica, target, INVALID, error=ILLEGAL_STATE)
                return
            record = effect(batch, replica) if effect else None
        except KafkaError:
            self._log(replica, target, FAILED, error=STATE_CHANGE_FAILED)
            return
        self._log(replica, target, OK, record=record)
        if target == NON_EXISTENT_REPLICA:
            del states[replica]
        else:
            states[replica] = target

    def _become_new(self, batch: LegacyRequestBatch, replica: Replica) -> None:
        """Follows the leader that stands in the znode, not the cached one."""
        tp, broker = replica
        znode = self._context.zookeeper.states.get(tp)
        if znode is None:
            return
        if znode.leader == broker:
            raise KafkaError("the leader cannot be a new replica")
        batch.add_leader_and_isr([broker], tp, znode, self._context.assigned(tp), is_new=True)

    def _become_online(self, batch: LegacyRequestBatch, replica: Replica) -> None:
        tp, broker = replica
        replicas = self._context.assigned(tp)
        if self._context.replica_states[replica] == NEW_REPLICA:
            if broker not in replicas:
                self._context.assignments[tp] = (*replicas, broker)
        elif tp in self._context.leadership:
            batch.add_leader_and_isr([broker], tp, self._context.leadership[tp], replicas)

    def _become_offline(self, batch: LegacyRequestBatch, replica: Replica) -> LeaderAndIsr:
        tp, broker = replica
        batch.add_stop_replica(broker, tp, delete=False)
        if tp not in self._context.leadership:
            raise KafkaError("the partition never had a leader")
        record = self._remove_from_isr(tp, broker)
        if tp not in self._context.queued_partitions:
            replicas = self._context.assigned(tp)
            others = [r for r in replicas if r != broker]
            batch.add_leader_and_isr(others, tp, record, replicas)
        return record

    def _remove_from_isr(self, tp: TopicPartition, broker: int) -> LeaderAndIsr:
        """Kafka's removeReplicaFromIsr: decided from the znode, not the cache."""
        context = self._context
        znode = context.zookeeper.states.get(tp)
        if znode is None or znode.controller_epoch > context.epoch:
            raise KafkaError("there is no state znode, or a later controller wrote it")
        record = znode._replace(controller_epoch=context.epoch)
        if broker in znode.isr:
            record = record._replace(
                leader=NO_LEADER if znode.leader == broker else znode.leader,
                leader_epoch=znode.leader_epoch + 1,
                isr=self._isr_without(broker, tp, znode.isr),
                partition_epoch=znode.partition_epoch + 1,
            )
            context.zookeeper.states[tp] = record
            self._journal.state_written(tp, record)
        context.leadership[tp] = record
        return record

    def _isr_without(self, broker: int, tp: TopicPartition, isr: Ids) -> Ids:
        """The last member stays so that it can lead again, unless anybody may lead anyway."""
        left = tuple(r for r in isr if r != broker)
        if left or self._context.unclean_allowed_by(tp[0]) is not None:
            return left
        return isr

    def _start_deletion(self, batch: LegacyRequestBatch, replica: Replica) -> None:
        tp, broker = replica
        batch.add_stop_replica(broker, tp, delete=True)

    def _leave_assignment(self, _batch: LegacyRequestBatch, replica: Replica) -> None:
        tp, broker = replica
        replicas = self._context.assigned(tp)
        self._context.assignments[tp] = tuple(r for r in replicas if r != broker)

    def _log(
        self,
        replica: Replica,
        target: str,
        result: str,
        *,
        error: str | None = None,
        record: LeaderAndIsr | None = None,
    ) -> None:
        tp, broker = replica
        change = (self._context.replica_states[replica], target)
        self._journal.transition(
            REPLICA_MACHINE, tp, broker, change, result, error=error, record=record
        )
