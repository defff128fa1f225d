"""Requests of one call of a machine: bodies as rows, and how many bytes each receiver is sent.

(AbstractControllerBrokerRequestBatch.) Bodies are those a call ends with: who adds them has already
overwritten what a later one of the same call overwrites.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from understudy.controller import releases, request_sizes
from understudy.controller.columnar.cluster import NOBODY, Cluster, Flags, Ints
from understudy.controller.columnar.rows import Told, any_of, ascending, lists, numbers
from understudy.controller.words import LEADER_AND_ISR, STOP_REPLICA, UPDATE_METADATA

_KINDS: Final = (LEADER_AND_ISR, UPDATE_METADATA, STOP_REPLICA)
_MANY_CELLS: Final = 20_000_000  # of brokers and topics; beyond that, pairs are sorted


class Batch:
    """What one call sends."""

    def __init__(self, cluster: Cluster, told: Told, registered: Flags, sender: Sender) -> None:
        self._cluster = cluster
        self._told = told
        self._registered = registered
        self._sender = sender
        self._to_replicas = _Totals(cluster, LEADER_AND_ISR)
        self._to_all = _Totals(cluster, UPDATE_METADATA)
        self._stops = _Totals(cluster, STOP_REPLICA)
        self._told_metadata: Flags | None = None

    def leader_and_isr(
        self, rows: Ints, record: dict[str, Ints], receivers: Ints, *, is_new: bool | Flags
    ) -> None:
        """A body about each of these partitions, where it has any of its *receivers*."""
        receivers = np.where(self._registered[receivers], receivers, NOBODY)
        has_any = any_of(receivers != NOBODY)
        if not has_any.all():
            rows, receivers = rows[has_any], receivers[has_any]
            record = {name: values[has_any] for name, values in record.items()}
            is_new = is_new if isinstance(is_new, bool) else is_new[has_any]
        recovery = numbers(record["recovery"]) if self._sender.has_recovery else None
        self._told.add(
            "request_partitions",
            rows,
            request=LEADER_AND_ISR,
            recipients=lists(ascending(receivers), self._cluster.ids),
            **self._assignment(rows, "replicas", "adding", "removing"),
            **_shown(self._cluster, record),
            is_new=is_new if isinstance(is_new, bool) else pa.array(is_new),
            recovery=recovery,
        )
        elements = _size(record["isr"]) + _size(self._cluster.replicas[rows])
        if self._sender.layout(LEADER_AND_ISR).reassignment_lists:
            elements += self._cluster.reassigned[rows]
        self._to_replicas.add(rows, receivers, elements)

    def metadata(
        self, rows: Ints, record: dict[str, Ints], offline: Flags, *, to: Flags | None = None
    ) -> None:
        """A body about each of these partitions, for everybody; none is enough to be sent."""
        self._told_metadata = self._registered if to is None else to
        if not self._told_metadata.any():
            return
        replicas = self._cluster.replicas[rows]
        self._told.add(
            "request_partitions",
            rows,
            request=UPDATE_METADATA,
            **self._assignment(rows, "replicas"),
            **_shown(self._cluster, record),
            offline_replicas=lists(np.where(offline, replicas, NOBODY), self._cluster.ids),
        )
        elements = _size(record["isr"]) + _size(replicas)
        if self._sender.layout(UPDATE_METADATA).offline_replicas:
            elements += offline.sum(axis=1)
        self._to_all.add(rows, np.zeros((len(rows), 1), dtype=np.int64), elements)

    def stops(self, rows: Ints, epochs: Ints, receivers: Ints) -> None:
        """A StopReplica body about each of these partitions, where anybody receives it."""
        receivers = np.where(self._registered[receivers], receivers, NOBODY)
        has_any = any_of(receivers != NOBODY)
        rows, epochs, receivers = rows[has_any], epochs[has_any], receivers[has_any]
        self._told.add(
            "request_partitions",
            rows,
            request=STOP_REPLICA,
            recipients=lists(ascending(receivers), self._cluster.ids),
            leader_epoch=numbers(epochs),
            delete_partition=False,
        )
        self._stops.add(rows, receivers, np.zeros(len(rows), dtype=np.int64))

    def send(self) -> None:
        live = np.flatnonzero(self._registered)
        self._requests(self._to_replicas, live)
        if self._told_metadata is not None:
            self._requests(self._to_all, live, all_of=np.flatnonzero(self._told_metadata))
        self._requests(self._stops, live)

    def _requests(self, totals: _Totals, live: Ints, *, all_of: Ints | None = None) -> None:
        partitions, sizes = totals.of(self._sender.layout(totals.kind))
        if all_of is not None:
            brokers = all_of
            partitions, sizes = (np.repeat(each[:1], len(brokers)) for each in (partitions, sizes))
        else:
            brokers = np.flatnonzero(partitions)
            partitions, sizes = partitions[brokers], sizes[brokers]
        cluster, sender = self._cluster, self._sender
        layout = sender.layout(totals.kind)
        others: int | Ints = 0
        if totals.kind == LEADER_AND_ISR:
            others = layout.per_live_broker * np.minimum(partitions, len(live))
        elif totals.kind == UPDATE_METADATA:
            described = int(cluster.described[live].sum())
            others = layout.per_live_broker * len(live) + described
        self._told.add_others(
            "requests",
            len(brokers),
            request=totals.kind,
            broker_id=pa.array(cluster.ids[brokers], pa.int32()),
            broker_epoch=pa.array([sender.broker_epochs[b] for b in brokers], pa.int64()),
            controller_id=sender.controller_id,
            controller_epoch=sender.epoch,
            version=sender.version(totals.kind),
            partition_count=pa.array(partitions, pa.int64()),
            bytes=pa.array(layout.base + sizes + others, pa.int64()),
        )

    def _assignment(self, rows: Ints, *names: str) -> dict[str, pa.Array]:
        taken = pa.array(rows)
        return {name: self._cluster.assignment[name].take(taken) for name in names}


class Sender:
    """Who sends, and in which versions."""

    def __init__(
        self,
        cluster: Cluster,
        controller_id: int | None,
        epoch: int,
        broker_epochs: Sequence[int | None],
    ) -> None:
        self.controller_id = controller_id
        self.broker_epochs = broker_epochs
        self.epoch = epoch
        self.has_recovery = cluster.protocol >= releases.PROTOCOL_3_2
        self._versions = dict(zip(_KINDS, releases.request_versions(cluster.protocol), strict=True))

    def version(self, kind: str) -> int:
        return self._versions[kind]

    def layout(self, kind: str) -> request_sizes.Coefficients:
        return request_sizes.FORMATS[kind](self._versions[kind])


class _Totals:
    """Bodies of one kind, by receiver."""

    def __init__(self, cluster: Cluster, kind: str) -> None:
        self.kind = kind
        self._cluster = cluster
        self._added: list[tuple[Ints, Ints, Ints]] = []  # receiver, topic, elements

    def add(self, rows: Ints, receivers: Ints, elements: Ints) -> None:
        at, column = np.nonzero(receivers != NOBODY)
        self._added.append(
            (receivers[at, column], self._cluster.topic[rows][at], np.asarray(elements)[at])
        )

    def of(self, layout: request_sizes.Coefficients) -> tuple[Ints, Ints]:
        """By broker, how many partitions it is sent, and their bytes."""
        brokers, topics = max(len(self._cluster.ids), 1), len(self._cluster.topics)
        if not self._added:
            return np.zeros(brokers, dtype=np.int64), np.zeros(brokers, dtype=np.int64)
        receiver, topic, elements = (
            np.concatenate(each) for each in zip(*self._added, strict=True)
        )
        partitions = np.bincount(receiver, minlength=brokers)
        listed = np.bincount(receiver, elements, minlength=brokers).astype(np.int64)
        sizes = partitions * layout.per_partition + listed * request_sizes.ELEMENT
        names = self._cluster.name_lengths
        if layout.names_per_partition:
            named = np.bincount(receiver, names[topic], minlength=brokers).astype(np.int64)
            return partitions, sizes + named
        # Each topic is named once to each receiver.
        pairs = receiver.astype(np.int64) * topics + topic
        if brokers * topics <= _MANY_CELLS:
            is_there = np.zeros(brokers * topics, dtype=bool)
            is_there[pairs] = True
            pairs = np.flatnonzero(is_there)
        else:
            pairs = np.unique(pairs)
        receiver, topic = np.divmod(pairs, topics)
        per_topic = (names[topic] + layout.per_topic).astype(np.float64)
        return partitions, sizes + np.bincount(receiver, per_topic, brokers).astype(np.int64)


def _shown(cluster: Cluster, record: dict[str, Ints]) -> dict[str, Any]:
    return {
        "leader": numbers(record["leader"]),
        "leader_epoch": numbers(record["leader_epoch"]),
        "isr": lists(record["isr"], cluster.ids),
        "partition_epoch": numbers(record["partition_epoch"]),
        "controller_epoch": numbers(record["controller_epoch"]),
    }


def _size(places: Ints) -> Ints:
    return np.asarray((places != NOBODY).sum(axis=1))
