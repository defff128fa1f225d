"""Kafka's replica state machine: seven states, and what each target state does.

(ZkReplicaStateMachine, Kafka 2.4 to 3.9.) Nothing here touches partition states: a partition may
well stay OnlinePartition with no leader.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from understudy.controller import releases
from understudy.controller.group_order import group_order
from understudy.controller.journal import Journal
from understudy.controller.records import LeaderAndIsr, Replica, TopicPartition
from understudy.controller.states import (
    DELETION_INELIGIBLE,
    DELETION_STARTED,
    DELETION_SUCCESSFUL,
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
from understudy.controller.zk.context import ControllerContext
from understudy.controller.zk.request_batch import RequestBatch


class ReplicaStateMachine:
    def __init__(self, context: ControllerContext, journal: Journal) -> None:
        self._context = context
        self._journal = journal
        self._effects: dict[str, Callable[[RequestBatch, int, list[TopicPartition]], None]] = {
            NEW_REPLICA: self._become_new,
            ONLINE_REPLICA: self._become_online,
            OFFLINE_REPLICA: self._become_offline,
            DELETION_STARTED: self._start_deletion,
            DELETION_SUCCESSFUL: self._only_set(DELETION_SUCCESSFUL),
            DELETION_INELIGIBLE: self._only_set(DELETION_INELIGIBLE),
            NON_EXISTENT_REPLICA: self._forget,
        }

    def start_up(self, offline_order: Sequence[int] | None = None) -> None:
        """First states by assignment, then the online replicas, then the others as offline."""
        online, offline = self._initialize_states()
        self.handle_state_changes(online, ONLINE_REPLICA)
        self.handle_state_changes(offline, OFFLINE_REPLICA, offline_order)

    def _initialize_states(self) -> tuple[list[Replica], list[Replica]]:
        online: list[Replica] = []
        offline: list[Replica] = []
        for replica in self._context.replicas_of(self._context.assignments):
            tp, broker = replica
            (online if self._context.is_online(broker, tp) else offline).append(replica)
        self._context.replica_states.update(dict.fromkeys(online, ONLINE_REPLICA))
        self._context.replica_states.update(dict.fromkeys(offline, DELETION_INELIGIBLE))
        return online, offline

    def handle_state_changes(
        self, replicas: Sequence[Replica], target: str, order: Sequence[int] | None = None
    ) -> RequestBatch | None:
        """One call, one batch (None without replicas): broker groups in Kafka's own order.

        That order depends on all brokers in the call; *order* names it where only some are here.
        """
        if not replicas:
            return None
        batch = RequestBatch(self._context, self._journal)
        by_broker: dict[int, list[TopicPartition]] = {}
        for tp, replica in replicas:
            by_broker.setdefault(replica, []).append(tp)
        groups = group_order(by_broker) if order is None else filter(by_broker.__contains__, order)
        for broker in groups:
            valid = self._only_valid(broker, by_broker[broker], target)
            self._effects[target](batch, broker, valid)
        batch.send()
        return batch

    def _only_valid(
        self, broker: int, tps: Iterable[TopicPartition], target: str
    ) -> list[TopicPartition]:
        states = self._context.replica_states
        valid = []
        for tp in dict.fromkeys(tps):
            before = states.setdefault((tp, broker), NON_EXISTENT_REPLICA)
            if before in VALID_PREVIOUS_REPLICA[target]:
                valid.append(tp)
            else:
                self._log(tp, broker, target, INVALID, error=ILLEGAL_STATE)
        return valid

    def _become_new(self, batch: RequestBatch, broker: int, tps: list[TopicPartition]) -> None:
        for tp in tps:
            record = self._context.leadership.get(tp)
            if record is not None and record.leader == broker:
                self._log(tp, broker, NEW_REPLICA, FAILED, error=STATE_CHANGE_FAILED)
                continue
            if record is not None:
                batch.add_leader_and_isr([broker], tp, record, is_new=True)
            self._set(tp, broker, NEW_REPLICA)

    def _become_online(self, batch: RequestBatch, broker: int, tps: list[TopicPartition]) -> None:
        context = self._context
        for tp in tps:
            if context.replica_states[(tp, broker)] == NEW_REPLICA:
                assignment = context.assignment(tp)
                if broker not in assignment.replicas:
                    appended = (*assignment.replicas, broker)
                    context.assign(tp, assignment._replace(replicas=appended))
            elif (record := context.leadership.get(tp)) is not None:
                batch.add_leader_and_isr([broker], tp, record, is_new=False)
            self._set(tp, broker, ONLINE_REPLICA)

    def _become_offline(self, batch: RequestBatch, broker: int, tps: list[TopicPartition]) -> None:
        context = self._context
        for tp in tps:
            batch.add_stop_replica([broker], tp, delete=False)
        led = [tp for tp in tps if tp in context.leadership]
        for tp, record in [(tp, self._remove_from_isr(broker, tp)) for tp in led]:
            if record is None:
                self._log(tp, broker, OFFLINE_REPLICA, FAILED, error=STATE_CHANGE_FAILED)
                continue
            if not context.is_queued(tp):
                others = [r for r in context.replicas(tp) if r != broker]
                batch.add_leader_and_isr(others, tp, record, is_new=False)
            self._set(tp, broker, OFFLINE_REPLICA, record)
        for tp in tps:
            if tp not in context.leadership:
                self._set(tp, broker, OFFLINE_REPLICA)
                batch.add_metadata(tp)

    def _remove_from_isr(self, replica: int, tp: TopicPartition) -> LeaderAndIsr | None:
        """Kafka's removeReplicasFromIsr for one partition: decided from the znode, not the cache.

        The last ISR member is always retained, yet the epochs rise each time its removal is asked.
        """
        znode = self._context.znodes.get(tp)
        if znode is None or znode.controller_epoch > self._context.epoch:
            return None
        if replica not in znode.isr:
            record = znode._replace(controller_epoch=self._context.epoch)
        else:
            record = LeaderAndIsr(
                leader=NO_LEADER if znode.leader == replica else znode.leader,
                leader_epoch=znode.leader_epoch + 1,
                isr=znode.isr
                if len(znode.isr) == 1
                else tuple(r for r in znode.isr if r != replica),
                partition_epoch=znode.partition_epoch + 1,
                controller_epoch=self._context.epoch,
                recovery=znode.recovery,
            )
            self._context.znodes[tp] = record
            self._journal.state_written(tp, record)
        self._context.remember_leadership(tp, record)
        return record

    def _start_deletion(self, batch: RequestBatch, broker: int, tps: list[TopicPartition]) -> None:
        for tp in tps:
            self._set(tp, broker, DELETION_STARTED)
            batch.add_stop_replica([broker], tp, delete=True)
            if broker in self._context.live:
                self._context.asked_to_delete.add((tp, broker))

    def _only_set(self, target: str) -> Callable[[RequestBatch, int, list[TopicPartition]], None]:
        def effect(_batch: RequestBatch, broker: int, tps: list[TopicPartition]) -> None:
            for tp in tps:
                self._set(tp, broker, target)

        return effect

    def _forget(self, _batch: RequestBatch, broker: int, tps: list[TopicPartition]) -> None:
        context = self._context
        for tp in tps:
            self._log(tp, broker, NON_EXISTENT_REPLICA, OK)
            assignment = context.assignment(tp)
            left = assignment.without(broker)
            if context.release < releases.RELEASE_2_5:  # 2.4 forgets to clean the other two lists
                left = assignment._replace(replicas=left.replicas)
            context.assign(tp, left)
            del context.replica_states[(tp, broker)]

    def _set(
        self, tp: TopicPartition, broker: int, target: str, record: LeaderAndIsr | None = None
    ) -> None:
        self._log(tp, broker, target, OK, record=record)
        self._context.replica_states[(tp, broker)] = target

    def _log(
        self,
        tp: TopicPartition,
        broker: int,
        target: str,
        result: str,
        *,
        error: str | None = None,
        record: LeaderAndIsr | None = None,
    ) -> None:
        before = self._context.replica_states[(tp, broker)]
        self._journal.transition(
            REPLICA_MACHINE, tp, broker, (before, target), result, error=error, record=record
        )
