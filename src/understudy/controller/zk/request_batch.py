"""One batch of control requests: collected during a machine call, sent once at its end.

Bodies are taken from the context when they are added, not when they are sent. Adding the same
partition again overwrites it, except that ``is_new`` and ``delete`` stay set once they were set
(AbstractControllerBrokerRequestBatch, Kafka 2.6 to 3.9).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple, TypeVar

from understudy.controller import releases, request_sizes
from understudy.controller.journal import Journal
from understudy.controller.records import Assignment, Ids, LeaderAndIsr, TopicPartition
from understudy.controller.words import (
    LEADER_AND_ISR,
    LEADER_DURING_DELETE,
    STOP_REPLICA,
    UPDATE_METADATA,
)
from understudy.controller.zk.context import ControllerContext


class _LeaderAndIsrBody(NamedTuple):
    record: LeaderAndIsr
    assignment: Assignment
    is_new: bool


class _MetadataBody(NamedTuple):
    cached: LeaderAndIsr
    replicas: Ids
    offline_replicas: Ids


class _StopBody(NamedTuple):
    leader_epoch: int
    delete: bool


_Body = TypeVar("_Body", _LeaderAndIsrBody, _StopBody)

_ANYONE: Final = -1  # stands for every receiver of a request that is the same for all


class RequestBatch:
    def __init__(self, context: ControllerContext, journal: Journal) -> None:
        self._context = context
        self._journal = journal
        self._leader_and_isr: dict[TopicPartition, dict[int, _LeaderAndIsrBody]] = {}
        self._stop_replica: dict[TopicPartition, dict[int, _StopBody]] = {}
        self._metadata: dict[TopicPartition, _MetadataBody] = {}
        self._metadata_brokers: set[int] = set()
        self._metadata_to_all = False
        journal.begin_step()

    def add_leader_and_isr(
        self, brokers: Iterable[int], tp: TopicPartition, record: LeaderAndIsr, *, is_new: bool
    ) -> None:
        bodies = self._leader_and_isr.setdefault(tp, {})
        assignment = self._context.assignment(tp)
        for broker in brokers:
            if broker >= 0:
                already_new = broker in bodies and bodies[broker].is_new
                bodies[broker] = _LeaderAndIsrBody(record, assignment, is_new or already_new)
        self.add_metadata(tp)

    def add_stop_replica(self, brokers: Iterable[int], tp: TopicPartition, *, delete: bool) -> None:
        bodies = self._stop_replica.setdefault(tp, {})
        epoch = self._context.leader_epoch_to_stop(tp)
        for broker in brokers:
            if broker >= 0:
                already_delete = broker in bodies and bodies[broker].delete
                bodies[broker] = _StopBody(epoch, delete or already_delete)

    def add_metadata(
        self, *partitions: TopicPartition, brokers: Iterable[int] | None = None
    ) -> None:
        """Tell *brokers* (default: all that are registered) about *partitions*, possibly none."""
        if brokers is None:
            self._metadata_to_all = True
        else:
            self._metadata_brokers.update(b for b in brokers if b >= 0)
        context = self._context
        for tp in partitions:
            record = context.leadership.get(tp)
            if record is None:
                continue  # nothing to tell, but its receivers still get the request
            replicas = context.replicas(tp)
            known = self._metadata.get(tp)
            # Nobody comes or goes during a batch, so an unchanged partition is told as it was.
            if known is None or known.cached is not record or known.replicas is not replicas:
                offline = context.offline_among(replicas, tp)
                self._metadata[tp] = _MetadataBody(record, replicas, offline)

    def send(self) -> None:
        """Write the requests down: leader-and-isr, then metadata, then stops."""
        self._send_leader_and_isr()
        self._send_metadata()
        self._send_stop_replica()

    def leader_and_isr_sent_to(self, broker: int) -> list[TopicPartition]:
        if broker not in self._context.live:
            return []
        return [tp for tp, bodies in self._leader_and_isr.items() if broker in bodies]

    def _send_leader_and_isr(self) -> None:
        totals = _Totals(self._context, LEADER_AND_ISR)
        for tp, by_broker in self._leader_and_isr.items():
            for body, recipients in self._distinct(by_broker):
                record, assignment, is_new = body
                self._journal.request_partition(
                    LEADER_AND_ISR, *tp, recipients, *record[:5], *assignment, None, is_new, None,
                    record.recovery if self._context.has_recovery_state else None,
                )  # fmt: skip
                totals.add(tp[0], recipients, len(record.isr), assignment)
        totals.write(self._journal)

    def _send_metadata(self) -> None:
        receivers = self._metadata_brokers & self._context.live.keys()
        if self._metadata_to_all:
            receivers = set(self._context.live)
        if not receivers:
            return
        everyone = tuple(sorted(receivers))
        totals = _Totals(self._context, UPDATE_METADATA)
        for tp, (cached, replicas, offline) in self._metadata.items():
            record = cached
            if self._context.is_queued(tp):
                record = cached._replace(
                    leader=LEADER_DURING_DELETE, leader_epoch=0, partition_epoch=0
                )
            self._journal.request_partition(
                UPDATE_METADATA, *tp, None, *record[:5], replicas, None, None, offline,
                None, None, None,
            )  # fmt: skip
            totals.add(tp[0], (_ANYONE,), len(record.isr), Assignment(replicas), len(offline))
        totals.write(self._journal, everyone)

    def _send_stop_replica(self) -> None:
        kinds: list[bool | None] = [None]
        if self._context.protocol < releases.PROTOCOL_2_6:
            kinds = [True, False]  # older requests delete all their partitions or none
        for kind in kinds:
            totals = _Totals(self._context, STOP_REPLICA)
            for tp, by_broker in self._stop_replica.items():
                chosen = {b: s for b, s in by_broker.items() if kind is None or s.delete is kind}
                for body, recipients in self._distinct(chosen):
                    self._journal.request_partition(
                        STOP_REPLICA, *tp, recipients, None, body.leader_epoch,
                        *(None,) * 8, body.delete, None,
                    )  # fmt: skip
                    totals.add(tp[0], recipients, 0, Assignment(()))
            totals.write(self._journal)

    def _distinct(self, by_broker: Mapping[int, _Body]) -> list[tuple[_Body, Ids]]:
        """Each distinct body with those of its receivers that are registered."""
        receivers: dict[_Body, list[int]] = {}
        for broker in sorted(by_broker):
            if broker in self._context.live:
                receivers.setdefault(by_broker[broker], []).append(broker)
        return [(body, tuple(brokers)) for body, brokers in receivers.items()]


class _Totals:
    """Partitions and estimated bytes of one kind of request, per receiver."""

    def __init__(self, context: ControllerContext, request: str) -> None:
        versions = dict(
            zip((LEADER_AND_ISR, UPDATE_METADATA, STOP_REPLICA), context.versions, strict=True)
        )
        self._context = context
        self._request = request
        self._version = versions[request]
        self._size = request_sizes.FORMATS[request](self._version)
        self._partitions: dict[int, int] = {}
        self._bytes: dict[int, int] = {}
        self._topics: set[tuple[int, str]] = set()

    def add(
        self, topic: str, brokers: Ids, isr: int, assignment: Assignment, offline: int = 0
    ) -> None:
        size = self._size
        elements = isr + len(assignment.replicas)
        if size.reassignment_lists:
            elements += len(assignment.adding) + len(assignment.removing)
        if size.offline_replicas:
            elements += offline
        body = size.per_partition + request_sizes.ELEMENT * elements
        if size.names_per_partition:
            body += len(topic)
        partitions, total, topics = self._partitions, self._bytes, self._topics
        for broker in brokers:
            partitions[broker] = partitions.get(broker, 0) + 1
            total[broker] = total.get(broker, 0) + body
            if (broker, topic) not in topics:
                topics.add((broker, topic))
                if not size.names_per_partition:
                    total[broker] += size.per_topic + len(topic)

    def write(self, journal: Journal, receivers: Ids | None = None) -> None:
        """One request for each receiver; those named all get what was added for anyone."""
        context = self._context
        every_broker = self._every_broker()
        for broker in sorted(self._partitions) if receivers is None else receivers:
            key = broker if receivers is None else _ANYONE
            partitions = self._partitions.get(key, 0)
            brokers = every_broker + self._leaders(partitions)
            journal.request(
                self._request, broker, context.live[broker].epoch, context.controller_id,
                context.epoch, self._version, partitions,
                self._size.base + self._bytes.get(key, 0) + brokers,
            )  # fmt: skip

    def _leaders(self, partitions: int) -> int:
        """What names the live leaders of so many partitions."""
        if self._request != LEADER_AND_ISR:
            return 0
        return self._size.per_live_broker * min(partitions, len(self._context.live))

    def _every_broker(self) -> int:
        """What tells of all live brokers, the same for every receiver."""
        if self._request != UPDATE_METADATA:
            return 0
        live = self._context.live
        described = (request_sizes.described(b.endpoints, b.rack) for b in live.values())
        return self._size.per_live_broker * len(live) + sum(described)
