"""One batch of control requests of the legacy controller, collected and then sent at once.

Bodies are taken from the context when they are added. Every UpdateMetadata also tells of all
partitions queued for deletion, and one about no partition in particular tells of all. Stops are
lists, not maps, and every delete is a request of its own (ControllerBrokerRequestBatch, Kafka 0.9
to 1.0).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

from understudy.controller import request_sizes
from understudy.controller.records import Ids, LeaderAndIsr, TopicPartition
from understudy.controller.words import (
    LEADER_AND_ISR,
    LEADER_DURING_DELETE,
    STOP_REPLICA,
    UPDATE_METADATA,
)
from understudy.controller.zk_legacy.context import LegacyContext
from understudy.controller.zk_legacy.journal import LegacyJournal
from understudy.controller.zk_legacy.order import broker_set


class _LeaderAndIsrBody(NamedTuple):
    record: LeaderAndIsr
    replicas: Ids
    is_new: bool


class _MetadataBody(NamedTuple):
    record: LeaderAndIsr
    replicas: Ids
    offline_replicas: Ids


class _Stop(NamedTuple):
    tp: TopicPartition
    delete: bool


class LegacyRequestBatch:
    def __init__(self, context: LegacyContext, journal: LegacyJournal) -> None:
        self._context = context
        self._journal = journal
        self._leader_and_isr: dict[TopicPartition, dict[int, _LeaderAndIsrBody]] = {}
        self._stops: dict[int, list[_Stop]] = {}
        self._metadata: dict[TopicPartition, _MetadataBody] = {}
        self._tells_metadata = False
        journal.begin_step()

    def add_leader_and_isr(
        self,
        brokers: Iterable[int],
        tp: TopicPartition,
        record: LeaderAndIsr,
        replicas: Ids,
        *,
        is_new: bool = False,
    ) -> None:
        bodies = self._leader_and_isr.setdefault(tp, {})
        for broker in brokers:
            if broker >= 0:
                already_new = broker in bodies and bodies[broker].is_new
                bodies[broker] = _LeaderAndIsrBody(
                    record, self._as_sent(replicas), is_new or already_new
                )
        self.add_metadata([tp])

    def add_stop_replica(self, broker: int, tp: TopicPartition, *, delete: bool) -> None:
        if broker >= 0:
            self._stops.setdefault(broker, []).append(_Stop(tp, delete))

    def add_metadata(self, partitions: Collection[TopicPartition] = ()) -> None:
        """Tell all registered brokers about *partitions*; none means all that have a leader."""
        context = self._context
        given = sorted(set(partitions or context.leadership) - context.queued_partitions)
        self._tells_metadata = True
        for tp in given:
            if tp in context.leadership:
                self._tell(tp, context.leadership[tp])
        for tp in sorted(context.queued_partitions):
            if tp in context.leadership:
                being_deleted = context.leadership[tp]._replace(
                    leader=LEADER_DURING_DELETE, leader_epoch=0, partition_epoch=0
                )
                self._tell(tp, being_deleted)

    def _tell(self, tp: TopicPartition, record: LeaderAndIsr) -> None:
        context = self._context
        replicas = context.assigned(tp)
        offline = tuple(r for r in replicas if not context.is_online(r, tp))
        self._metadata[tp] = _MetadataBody(record, self._as_sent(replicas), offline)

    def _as_sent(self, replicas: Ids) -> Ids:
        return broker_set(replicas) if self._context.rules.replicas_as_set else replicas

    def asked(self, broker: int) -> set[TopicPartition]:
        """The partitions *broker* answers for: those of the leader-and-isr request it gets."""
        if broker not in self._context.live:
            return set()
        return {tp for tp, bodies in self._leader_and_isr.items() if broker in bodies}

    def send(self) -> None:
        """Write the requests down: leader-and-isr, then metadata, then stops."""
        self._send_leader_and_isr()
        self._send_metadata()
        self._send_stops()

    def _send_leader_and_isr(self) -> None:
        knows_new = self._context.rules.log_dirs
        sent: dict[int, list[_Sent]] = {}
        for tp, by_broker in self._leader_and_isr.items():
            receivers: dict[_LeaderAndIsrBody, list[int]] = {}
            for broker in sorted(by_broker.keys() & self._context.live):
                receivers.setdefault(by_broker[broker], []).append(broker)
            for (record, replicas, is_new), brokers in receivers.items():
                self._journal.request_partition(
                    LEADER_AND_ISR, *tp, tuple(brokers), *record[:5], replicas, None, None, None,
                    is_new if knows_new else None, None, None,
                )  # fmt: skip
                for broker in brokers:
                    sent.setdefault(broker, []).append(_Sent(tp[0], len(record.isr + replicas)))
        for broker, partitions in sorted(sent.items()):
            self._request(LEADER_AND_ISR, broker, partitions)

    def _send_metadata(self) -> None:
        if not self._tells_metadata or not self._context.live:
            return
        knows_dirs = self._context.rules.log_dirs
        sent = []
        for tp, (record, replicas, offline) in self._metadata.items():
            self._journal.request_partition(
                UPDATE_METADATA, *tp, None, *record[:5], replicas, None, None,
                offline if knows_dirs else None, None, None, None,
            )  # fmt: skip
            sent.append(_Sent(tp[0], len(record.isr + replicas), len(offline)))
        for broker in sorted(self._context.live):
            self._request(UPDATE_METADATA, broker, sent)

    def _send_stops(self) -> None:
        bodies: dict[_Stop, list[int]] = {}
        for broker in sorted(self._stops.keys() & self._context.live):
            stops = dict.fromkeys(self._stops[broker])
            for stop in stops:
                bodies.setdefault(stop, []).append(broker)
            grouped = (
                [s for s in stops if not s.delete] if self._context.rules.grouped_stops else []
            )
            if self._context.rules.grouped_stops:
                self._request(STOP_REPLICA, broker, [_Sent(s.tp[0]) for s in grouped])
            for stop in stops:
                if stop not in grouped:
                    self._request(STOP_REPLICA, broker, [_Sent(stop.tp[0])])
        for stop, brokers in bodies.items():
            self._journal.request_partition(
                STOP_REPLICA, *stop.tp, tuple(brokers), *(None,) * 10, stop.delete, None
            )

    def _request(self, request: str, broker: int, partitions: list[_Sent]) -> None:
        context = self._context
        version = {
            LEADER_AND_ISR: context.versions.leader_and_isr,
            UPDATE_METADATA: context.versions.update_metadata,
            STOP_REPLICA: context.versions.stop_replica,
        }[request]
        self._journal.request(
            request, broker, None, context.controller_id, context.epoch, version,
            len(partitions), _bytes(context, request, version, partitions),
        )  # fmt: skip


class _Sent(NamedTuple):
    """What counts for the size of one partition in a request."""

    topic: str
    elements: int = 0
    offline: int = 0


def _bytes(context: LegacyContext, request: str, version: int, partitions: list[_Sent]) -> int:
    """The size on the wire; versions of this age repeat the topic's name for every partition."""
    size = request_sizes.FORMATS[request](version)
    total = size.base
    for topic, elements, offline in partitions:
        listed = elements + (offline if size.offline_replicas else 0)
        total += size.per_partition + len(topic) + request_sizes.ELEMENT * listed
    if request == UPDATE_METADATA:
        total += size.per_live_broker * len(context.live) + sum(
            request_sizes.described(b.endpoints, b.rack) for b in context.live.values()
        )
    elif request == LEADER_AND_ISR:
        total += size.per_live_broker * min(len(partitions), len(context.live))
    return total
