"""The legacy partition state machine: one partition at a time, each on its own.

Whatever goes wrong with one partition is logged, and the next one goes on
(PartitionStateMachine, Kafka 0.9 to 1.0).
"""

from __future__ import annotations

from collections.abc import Iterable

from understudy.controller.elections import Elected
from understudy.controller.records import LeaderAndIsr, TopicPartition
from understudy.controller.states import (
    NEW_PARTITION,
    NON_EXISTENT_PARTITION,
    OFFLINE_PARTITION,
    ONLINE_PARTITION,
    VALID_PREVIOUS_PARTITION,
)
from understudy.controller.words import (
    FAILED,
    FIRST_ONLINE_NEW,
    ILLEGAL_STATE,
    INITIALIZE_STRATEGY,
    INVALID,
    NO_REPLICA_ONLINE,
    OK,
    PARTITION_MACHINE,
    RECOVERED,
    STATE_CHANGE_FAILED,
)
from understudy.controller.zk_legacy.context import KafkaError, LegacyContext
from understudy.controller.zk_legacy.journal import LegacyJournal
from understudy.controller.zk_legacy.request_batch import LegacyRequestBatch
from understudy.controller.zk_legacy.selectors import Selector, select_offline_leader, verdicts


class LegacyPartitionStateMachine:
    def __init__(self, context: LegacyContext, journal: LegacyJournal) -> None:
        self._context = context
        self._journal = journal

    def start_up(self) -> None:
        self.initialize_states()
        self.trigger_online_partition_state_change()

    def initialize_states(self) -> None:
        """The first state of every partition, from what is cached of it."""
        context = self._context
        for tp in context.assignments:
            record = context.leadership.get(tp)
            if record is None:
                context.partition_states[tp] = NEW_PARTITION
            elif context.is_online(record.leader, tp):
                context.partition_states[tp] = ONLINE_PARTITION
            else:
                context.partition_states[tp] = OFFLINE_PARTITION

    def trigger_online_partition_state_change(self) -> None:
        """Try every new or offline partition of the cluster whose topic is not queued."""
        tried = [
            tp
            for tp, state in self._context.partition_states.items()
            if state in {NEW_PARTITION, OFFLINE_PARTITION} and not self._context.is_queued(tp)
        ]
        self.handle_state_changes(tried, ONLINE_PARTITION)

    def handle_state_changes(
        self,
        partitions: Iterable[TopicPartition],
        target: str,
        selector: Selector = select_offline_leader,
    ) -> None:
        """One call, one batch."""
        ordered = sorted(set(partitions))
        if not ordered:
            return
        batch = LegacyRequestBatch(self._context, self._journal)
        for tp in ordered:
            self._handle_state_change(batch, tp, target, selector)
        batch.send()

    def _handle_state_change(
        self, batch: LegacyRequestBatch, tp: TopicPartition, target: str, selector: Selector
    ) -> None:
        states = self._context.partition_states
        before = states.setdefault(tp, NON_EXISTENT_PARTITION)
        if before not in VALID_PREVIOUS_PARTITION[target]:
            self._log(tp, target, INVALID, error=ILLEGAL_STATE)
            return
        record = None
        try:
            if target == ONLINE_PARTITION and before == NEW_PARTITION:
                record = self._initialize_leader(batch, tp)
            elif target == ONLINE_PARTITION:
                record = self._elect_leader(batch, tp, selector)
        except KafkaError:
            self._log(tp, target, FAILED, error=STATE_CHANGE_FAILED)
            return
        self._log(tp, target, OK, record=record)
        states[tp] = target

    def _initialize_leader(self, batch: LegacyRequestBatch, tp: TopicPartition) -> LeaderAndIsr:
        """All online replicas are in sync, and the first of them leads."""
        context = self._context
        replicas = context.assigned(tp)
        online = context.online_among(replicas, tp)
        elected = Elected(online[0], online, clean=True) if online else None
        self._journal.decision(
            tp,
            INITIALIZE_STRATEGY,
            verdicts(context, tp, replicas, elected),
            chosen=None if elected is None else elected.leader,
            clean=None if elected is None else True,
            unclean_allowed_by=None,
            reason=FIRST_ONLINE_NEW if online else NO_REPLICA_ONLINE,
        )
        if elected is None or tp in context.zookeeper.states:
            raise KafkaError("no replica is online, or there is a state znode already")
        record = LeaderAndIsr(elected.leader, 0, elected.isr, 0, context.epoch, RECOVERED)
        self._write(tp, record)
        batch.add_leader_and_isr(online, tp, record, replicas, is_new=True)
        return record

    def _elect_leader(
        self, batch: LegacyRequestBatch, tp: TopicPartition, selector: Selector
    ) -> LeaderAndIsr | None:
        """Decided from the znode, not from the cache."""
        context = self._context
        znode = context.zookeeper.states.get(tp)
        if znode is None or znode.controller_epoch > context.epoch:
            raise KafkaError("there is no state znode, or a later controller wrote it")
        selected = selector(context, tp, znode)
        elected = selected.elected
        self._journal.decision(
            tp,
            selected.strategy,
            selected.candidates,
            chosen=None if elected is None else elected.leader,
            clean=None if elected is None else elected.clean,
            unclean_allowed_by=selected.unclean_allowed_by,
            reason=selected.reason,
        )
        if not selected.needed:
            return None
        if elected is None:
            raise KafkaError("nobody may lead")
        record = LeaderAndIsr(
            elected.leader,
            znode.leader_epoch + 1,
            elected.isr,
            znode.partition_epoch + 1,
            context.epoch,
            RECOVERED,
        )
        self._write(tp, record)
        batch.add_leader_and_isr(selected.recipients, tp, record, context.assigned(tp))
        return record

    def _write(self, tp: TopicPartition, record: LeaderAndIsr) -> None:
        self._context.zookeeper.states[tp] = record
        self._context.leadership[tp] = record
        self._journal.state_written(tp, record)

    def _log(
        self,
        tp: TopicPartition,
        target: str,
        result: str,
        *,
        error: str | None = None,
        record: LeaderAndIsr | None = None,
    ) -> None:
        change = (self._context.partition_states[tp], target)
        self._journal.transition(
            PARTITION_MACHINE, tp, None, change, result, error=error, record=record
        )
