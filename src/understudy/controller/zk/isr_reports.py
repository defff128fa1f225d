"""ISR changes that leaders report, and what the controller makes of them.

From protocol 2.7-IV2 on a leader asks the controller (AlterPartition, first called AlterIsr); below
it the leader writes the state znode itself and leaves a notification. Which of the two it is
depends on the protocol, not on the release.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from understudy.controller import releases
from understudy.controller.records import Ids, LeaderAndIsr, TopicPartition
from understudy.controller.words import (
    INELIGIBLE_REPLICA,
    INVALID_UPDATE_VERSION,
    OPERATION_NOT_ATTEMPTED,
    RECOVERED,
)
from understudy.controller.zk.context import ControllerContext
from understudy.controller.zk.machines import Machines
from understudy.controller.zk.reassignment import Reassignments

Report = Mapping[TopicPartition, Ids]


class IsrReports:
    def __init__(self, machines: Machines, reassignments: Reassignments) -> None:
        self._machines = machines
        self._reassignments = reassignments
        self._context = machines.context

    def receive(self, report: Report) -> None:
        """One report of one leader: the ISR it wants for each of its partitions."""
        if self._context.protocol >= releases.PROTOCOL_2_7_IV2:
            self._machines.handle(partial(self._alter, report))
        else:
            self._write(report)
            for tp in report:  # the watch of each znode is an event of its own
                self._machines.handle(partial(self._reassignments.complete_if_in_sync, tp))
            self._machines.handle(partial(self._notify, report))

    def _alter(self, report: Report) -> None:
        """Only accepted partitions can complete a reassignment, but all are told of.

        A report of what the cache holds already is accepted without a write.
        """
        accepted = []
        for tp, isr in report.items():
            current = self._context.leadership[tp]
            wanted = self._reported(current, isr)
            error = None if wanted == current else self._refusal(tp, wanted)
            if error is not None:
                self._machines.journal.event_result(tp, error)
                continue
            accepted.append(tp)
            if wanted != current:
                record = _written(wanted, self._context.epoch)
                self._context.znodes[tp] = record
                self._context.remember_leadership(tp, record)
                self._machines.journal.state_written(tp, record)
        self._machines.send_metadata(report)
        for tp in accepted:
            self._reassignments.complete_if_in_sync(tp)

    def _reported(self, current: LeaderAndIsr, isr: Ids) -> LeaderAndIsr:
        """What the leader says; before 3.2 it knows of no recovery."""
        knows_recovery = self._context.release >= releases.RELEASE_3_2
        recovery = RECOVERED if knows_recovery else current.recovery
        return current._replace(isr=isr, recovery=recovery)

    def _refusal(self, tp: TopicPartition, wanted: LeaderAndIsr) -> str | None:
        context = self._context
        # From 3.3 on every member has to be a live broker (KIP-841).
        strangers = [b for b in wanted.isr if not context.is_live(b)]
        if strangers and context.release >= releases.RELEASE_3_3:
            has_topic_ids = context.protocol >= releases.PROTOCOL_2_8
            return INELIGIBLE_REPLICA if has_topic_ids else OPERATION_NOT_ATTEMPTED
        znode = context.znodes.get(tp)
        if znode is None or znode.partition_epoch != wanted.partition_epoch:
            return INVALID_UPDATE_VERSION
        return None

    def _write(self, report: Report) -> None:
        """The leader's own writes are not the controller's, so they are not written down."""
        context = self._context
        for tp, isr in report.items():
            current = context.leadership[tp]
            context.znodes[tp] = _written(self._reported(current, isr), current.controller_epoch)

    def _notify(self, report: Report) -> None:
        context = self._context
        for tp in report:
            context.remember_leadership(tp, context.znodes[tp])
        self._machines.send_metadata(report)
        if context.release >= releases.RELEASE_2_7:
            for tp in report:
                self._reassignments.complete_if_in_sync(tp)


def caught_up(context: ControllerContext, brokers: Ids) -> list[Report]:
    """The reports of all leaders, ascending, once *brokers* are in sync wherever they can be."""
    reports: dict[int, dict[TopicPartition, Ids]] = {}
    for tp in sorted({tp for broker in brokers for tp in context.partitions_on(broker)}):
        record = context.leadership.get(tp)
        if record is None or context.is_queued(tp) or not context.is_online(record.leader, tp):
            continue
        replicas = context.replicas(tp)
        missing = tuple(
            b for b in brokers if b in replicas and b not in record.isr and context.is_online(b, tp)
        )
        if missing:
            reports.setdefault(record.leader, {})[tp] = (*record.isr, *missing)
    return [reports[leader] for leader in sorted(reports)]


def _written(record: LeaderAndIsr, controller_epoch: int) -> LeaderAndIsr:
    return record._replace(
        partition_epoch=record.partition_epoch + 1, controller_epoch=controller_epoch
    )
