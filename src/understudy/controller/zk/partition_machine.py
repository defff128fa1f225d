"""Kafka's partition state machine: four states, first leaders and elections.

(ZkPartitionStateMachine, Kafka 2.4 to 3.9.) Elections read the znode, not the cache.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Final

from understudy.controller import elections
from understudy.controller.elections import Elected
from understudy.controller.journal import Journal
from understudy.controller.records import Ids, LeaderAndIsr, TopicPartition
from understudy.controller.states import (
    NEW_PARTITION,
    NON_EXISTENT_PARTITION,
    ONLINE_PARTITION,
    VALID_PREVIOUS_PARTITION,
)
from understudy.controller.words import (
    CHOSEN,
    CONTROLLED_SHUTDOWN_STRATEGY,
    FAILED,
    FIRST_IN_SYNC,
    FIRST_ONLINE_NEW,
    FIRST_ONLINE_UNCLEAN,
    ILLEGAL_STATE,
    INITIALIZE_STRATEGY,
    INVALID,
    LATER_CONTROLLER,
    NO_REPLICA_ONLINE,
    NO_TARGET_IN_SYNC,
    NONE_STAYING_IN_SYNC,
    NOT_IN_ISR,
    NOT_TRIED,
    OFFLINE_STRATEGY,
    OK,
    PARTITION_MACHINE,
    PREFERRED_IN_SYNC,
    PREFERRED_STRATEGY,
    PREFERRED_UNAVAILABLE,
    REASSIGN_STRATEGY,
    RECOVERED,
    RECOVERING,
    STATE_CHANGE_FAILED,
    STAYING_IN_SYNC,
    STRANGER_IN_ISR,
    TARGET_IN_SYNC,
    UNCLEAN_OFF,
)
from understudy.controller.zk.context import ControllerContext
from understudy.controller.zk.request_batch import RequestBatch


class Strategy(Enum):
    """Which of the four elections a call asks for."""

    OFFLINE = OFFLINE_STRATEGY
    REASSIGN = REASSIGN_STRATEGY
    PREFERRED = PREFERRED_STRATEGY
    CONTROLLED_SHUTDOWN = CONTROLLED_SHUTDOWN_STRATEGY


class PartitionStateMachine:
    def __init__(self, context: ControllerContext, journal: Journal) -> None:
        self._context = context
        self._journal = journal

    def start_up(self) -> None:
        self._context.settle_partition_states()
        self.trigger_online_partition_state_change()

    def trigger_online_partition_state_change(
        self, topic: str | None = None
    ) -> dict[TopicPartition, str | None]:
        """Try every new or offline partition of the cluster, or of one topic, but queued ones."""
        tried = self._context.new_and_offline_partitions(topic)
        return self.handle_state_changes(tried, ONLINE_PARTITION, Strategy.OFFLINE)

    def handle_state_changes(
        self,
        partitions: Iterable[TopicPartition],
        target: str,
        strategy: Strategy | None = None,
        *,
        allow_unclean: bool = False,
    ) -> dict[TopicPartition, str | None]:
        """One call, one batch; the error of each partition that was elected for, None if none."""
        partitions = list(dict.fromkeys(partitions))
        if not partitions:
            return {}
        batch = RequestBatch(self._context, self._journal)
        results: dict[TopicPartition, str | None] = {}
        valid = self._only_valid(partitions, target)
        if target == ONLINE_PARTITION:
            states = self._context.partition_states
            new = [tp for tp in valid if states[tp] == NEW_PARTITION]
            led = [tp for tp in valid if states[tp] != NEW_PARTITION]
            for tp in new:
                self._initialize_leader(batch, tp)
            if led and strategy is None:
                raise ValueError("an election needs a strategy")
            for tp in led:
                assert strategy is not None  # noqa: S101 - narrowed by the check above
                results[tp] = self._elect(batch, tp, strategy, allow_unclean=allow_unclean)
        else:
            for tp in valid:
                self._set(tp, target)
        batch.send()
        return results

    def _only_valid(self, tps: list[TopicPartition], target: str) -> list[TopicPartition]:
        states = self._context.partition_states
        valid = []
        for tp in tps:
            if states.setdefault(tp, NON_EXISTENT_PARTITION) in VALID_PREVIOUS_PARTITION[target]:
                valid.append(tp)
            else:
                self._log(tp, target, INVALID, error=ILLEGAL_STATE)
        return valid

    def _initialize_leader(self, batch: RequestBatch, tp: TopicPartition) -> None:
        """Kafka's initializeLeaderAndIsr: all online replicas in sync, the first of them leads."""
        context = self._context
        replicas = context.replicas(tp)
        online = context.online_among(replicas, tp)
        chosen = online[0] if online else None
        self._journal.decision(
            tp,
            INITIALIZE_STRATEGY,
            self._verdicts(tp, replicas, replicas, chosen),
            chosen=chosen,
            clean=True if online else None,
            unclean_allowed_by=None,
            reason=FIRST_ONLINE_NEW if online else NO_REPLICA_ONLINE,
        )
        if chosen is None or tp in context.znodes:
            self._log(tp, ONLINE_PARTITION, FAILED, error=STATE_CHANGE_FAILED)
            return
        record = LeaderAndIsr(chosen, 0, online, 0, context.epoch, RECOVERED)
        self._write(tp, record)
        batch.add_leader_and_isr(online, tp, record, is_new=True)
        self._set(tp, ONLINE_PARTITION, record)

    def _elect(
        self, batch: RequestBatch, tp: TopicPartition, strategy: Strategy, *, allow_unclean: bool
    ) -> str | None:
        context = self._context
        znode = context.znodes.get(tp)
        if znode is None or znode.controller_epoch > context.epoch:
            if znode is not None:
                self._journal.decision(
                    tp,
                    strategy.value,
                    (),
                    chosen=None,
                    clean=None,
                    unclean_allowed_by=None,
                    reason=LATER_CONTROLLER,
                )
            self._log(tp, ONLINE_PARTITION, FAILED, error=STATE_CHANGE_FAILED)
            return STATE_CHANGE_FAILED
        elected, recipients = self._run_election(tp, znode, strategy, allow_unclean=allow_unclean)
        if elected is None:
            self._log(tp, ONLINE_PARTITION, FAILED, error=STATE_CHANGE_FAILED)
            return STATE_CHANGE_FAILED
        recovery = znode.recovery
        if not elected.clean and context.has_recovery_state:
            recovery = RECOVERING
        record = LeaderAndIsr(
            elected.leader,
            znode.leader_epoch + 1,
            elected.isr,
            znode.partition_epoch + 1,
            context.epoch,
            recovery,
        )
        self._write(tp, record)
        batch.add_leader_and_isr(recipients, tp, record, is_new=False)
        self._set(tp, ONLINE_PARTITION, record)
        return None

    def _run_election(
        self, tp: TopicPartition, znode: LeaderAndIsr, strategy: Strategy, *, allow_unclean: bool
    ) -> tuple[Elected | None, Ids]:
        """Who leads, and who is told; explains itself in the journal."""
        context = self._context
        assignment = context.assignment(tp)
        replicas, isr = assignment.replicas, znode.isr
        online = context.online_among((*replicas, *isr), tp)
        unclean_by: str | None = None
        tried: Ids = replicas
        recipients: Ids = replicas
        if strategy is Strategy.OFFLINE:
            if not any(r in online for r in isr):
                unclean_by = (
                    "request"
                    if allow_unclean
                    else context.unclean.allowed_by(tp[0], context.controller_id)
                )
            elected = elections.elect_offline_leader(
                replicas, isr, online, unclean=unclean_by is not None
            )
            recipients = context.online_among(replicas, tp)
        elif strategy is Strategy.REASSIGN:
            tried = recipients = assignment.target
            elected = elections.elect_reassigned_leader(tried, isr, online)
        elif strategy is Strategy.PREFERRED:
            tried = replicas[:1]
            elected = elections.elect_preferred_leader(replicas, isr, online)
        else:
            online = tuple(
                r for r in (*replicas, *isr) if context.is_online_or_shutting_down(r, tp)
            )
            elected = elections.elect_controlled_shutdown_leader(
                replicas, isr, online, context.shutting_down
            )
            recipients = tuple(r for r in replicas if r in online)
        chosen = None if elected is None else elected.leader
        self._journal.decision(
            tp,
            strategy.value,
            self._verdicts(tp, tried, isr, chosen),
            chosen=chosen,
            clean=None if elected is None else elected.clean,
            unclean_allowed_by=unclean_by,
            reason=_why(strategy, elected, tried, isr, online),
        )
        return elected, recipients

    def _verdicts(
        self, tp: TopicPartition, tried: Ids, in_sync: Ids, chosen: int | None
    ) -> tuple[tuple[int, str], ...]:
        """What became of each candidate, in the order they were tried."""
        verdicts = []
        found = False
        for replica in tried:
            if replica == chosen:
                verdict, found = CHOSEN, True
            elif found and chosen in in_sync:
                verdict = NOT_TRIED
            else:
                verdict = self._context.why_not_online(replica, tp) or NOT_IN_ISR
            verdicts.append((replica, verdict))
        return tuple(verdicts)

    def _write(self, tp: TopicPartition, record: LeaderAndIsr) -> None:
        self._context.znodes[tp] = record
        self._context.remember_leadership(tp, record)
        self._journal.state_written(tp, record)

    def _set(self, tp: TopicPartition, target: str, record: LeaderAndIsr | None = None) -> None:
        self._log(tp, target, OK, record=record)
        self._context.set_partition_state(tp, target)

    def _log(
        self,
        tp: TopicPartition,
        target: str,
        result: str,
        *,
        error: str | None = None,
        record: LeaderAndIsr | None = None,
    ) -> None:
        before = self._context.partition_states[tp]
        self._journal.transition(
            PARTITION_MACHINE, tp, None, (before, target), result, error=error, record=record
        )


# Strategy -> why somebody was elected, why nobody was.
_REASONS: Final[dict[Strategy, tuple[str, str]]] = {
    Strategy.REASSIGN: (TARGET_IN_SYNC, NO_TARGET_IN_SYNC),
    Strategy.PREFERRED: (PREFERRED_IN_SYNC, PREFERRED_UNAVAILABLE),
    Strategy.CONTROLLED_SHUTDOWN: (STAYING_IN_SYNC, NONE_STAYING_IN_SYNC),
}


def _why(strategy: Strategy, elected: Elected | None, tried: Ids, isr: Ids, online: Ids) -> str:
    if strategy is not Strategy.OFFLINE:
        return _REASONS[strategy][elected is None]
    if elected is not None:
        return FIRST_IN_SYNC if elected.clean else FIRST_ONLINE_UNCLEAN
    if not any(r in online for r in tried):
        return NO_REPLICA_ONLINE
    if any(r in online for r in isr):
        return STRANGER_IN_ISR
    return UNCLEAN_OFF
