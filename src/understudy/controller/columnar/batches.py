"""Requests of one call of a machine: bodies as rows, and how many bytes each receiver is sent.

(AbstractControllerBrokerRequestBatch.) Bodies are those a call ends with: who adds them has already
overwritten what a later one of the same call overwrites.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from understudy.controller import releases, request_sizes
from understudy.controller.columnar.arrays import (
    NOBODY,
    UNSET,
    Flags,
    Ints,
    any_of,
    ascending,
    count_of,
    distinct,
    lists,
    numbers,
)
from understudy.controller.columnar.cluster import UNKNOWN_EPOCH, Cluster
from understudy.controller.words import LEADER_AND_ISR, STOP_REPLICA, UPDATE_METADATA

if TYPE_CHECKING:
    from understudy.controller.columnar.state import Shown, State

_KINDS: Final = (LEADER_AND_ISR, UPDATE_METADATA, STOP_REPLICA)
_MANY_CELLS: Final = 20_000_000  # of brokers and topics; of more, pairs are sorted


class Batch:
    """What one call sends, in each of the scenarios it is made in."""

    def __init__(self, now: State) -> None:
        self._now = now
        self._sender = Sender(now.cluster)
        self._to_replicas, self._to_all, self._stops = (
            _Totals(now, kind, self._sender.layout(kind)) for kind in _KINDS
        )
        self._told_metadata = np.zeros(len(now.ids), dtype=bool)

    def leader_and_isr(self, shown: Shown, receivers: Ints, *, is_new: bool) -> None:
        """A body about each of these partitions, where it has any of its *receivers*."""
        now = self._now
        receivers = self._registered(receivers)
        has_any = any_of(receivers != NOBODY)
        shown, receivers = shown.only(has_any), receivers.compress(has_any, axis=0)
        rows = now.rows[shown.at]
        if now.told.wants("request_partitions"):
            now.told.add(
                "request_partitions",
                rows,
                now.of[shown.at],
                request=LEADER_AND_ISR,
                recipients=lists(ascending(receivers), now.ids),
                **shown.assignment,
                **_body(shown),
                is_new=is_new,
                recovery=shown.columns["recovery"] if self._sender.has_recovery else None,
            )
        elements = _size(shown.record["isr"]) + _size(now.replicas.take(shown.at, axis=0))
        if self._sender.layout(LEADER_AND_ISR).reassignment_lists:
            elements += now.cluster.reassigned[rows]
        self._to_replicas.add(rows, receivers, elements)

    def metadata(self, shown: Shown, offline: Flags, *, to: Flags, scenarios: Flags) -> None:
        """A body about each of these partitions for the brokers *to* whom it goes.

        In each of these *scenarios* it is sent with or without any body.
        """
        now = self._now
        receivers = to & np.repeat(scenarios, now.brokers)
        self._told_metadata |= receivers
        is_told = any_of(receivers.reshape(len(scenarios), now.brokers))[now.of[shown.at]]
        shown, offline = shown.only(is_told), offline.compress(is_told, axis=0)
        rows, replicas = now.rows[shown.at], now.replicas.take(shown.at, axis=0)
        if now.told.wants("request_partitions"):
            now.told.add(
                "request_partitions",
                rows,
                now.of[shown.at],
                request=UPDATE_METADATA,
                replicas=shown.assignment["replicas"],
                **_body(shown),
                offline_replicas=lists(np.where(offline, replicas, NOBODY), now.ids),
            )
        elements = _size(shown.record["isr"]) + _size(replicas)
        if self._sender.layout(UPDATE_METADATA).offline_replicas:
            elements += count_of(offline)
        self._to_all.add(rows, now.of[shown.at, None], elements)

    def stops(self, at: Ints, epochs: Ints, receivers: Ints) -> None:
        """A StopReplica body about each of these partitions, where anybody receives it."""
        now = self._now
        receivers = self._registered(receivers)
        has_any = any_of(receivers != NOBODY)
        at, epochs, receivers = at[has_any], epochs[has_any], receivers.compress(has_any, axis=0)
        if now.told.wants("request_partitions"):
            now.told.add(
                "request_partitions",
                now.rows[at],
                now.of[at],
                request=STOP_REPLICA,
                recipients=lists(ascending(receivers), now.ids),
                leader_epoch=numbers(epochs),
                delete_partition=False,
            )
        self._stops.add(now.rows[at], receivers, np.zeros(len(at), dtype=np.int64))

    def send(self) -> None:
        for totals in (self._to_replicas, self._to_all, self._stops):
            self._requests(totals)

    def _registered(self, receivers: Ints) -> Ints:
        return np.where(self._now.registered[receivers], receivers, NOBODY)

    def _requests(self, totals: _Totals) -> None:
        now, sender = self._now, self._sender
        layout = sender.layout(totals.kind)
        partitions, sizes = totals.all()
        if totals.kind == UPDATE_METADATA:
            brokers = np.flatnonzero(self._told_metadata)
            body = of = brokers // max(now.brokers, 1)  # the same one for all of a scenario
        else:
            body = brokers = np.flatnonzero(partitions)
            of = brokers // max(now.brokers, 1)
        if not len(brokers):
            return
        partitions, sizes = partitions[body], sizes[body]
        cluster = now.cluster
        live = now.registered.reshape(len(now.epochs), now.brokers)
        others: int | Ints = 0
        if totals.kind == LEADER_AND_ISR:
            others = layout.per_live_broker * np.minimum(partitions, live.sum(axis=1)[of])
        elif totals.kind == UPDATE_METADATA:
            each = layout.per_live_broker * live.sum(axis=1) + live @ cluster.described
            others = each[of]
        epochs = now.broker_epochs[brokers]
        now.told.add_others(
            "requests",
            of,
            request=totals.kind,
            broker_id=pa.array(now.ids[brokers], pa.int32()),
            broker_epoch=pa.array(epochs, pa.int64(), mask=epochs == UNKNOWN_EPOCH),
            controller_id=numbers(now.controller_ids[of], known=now.controller_ids[of] != UNSET),
            controller_epoch=numbers(now.epochs[of]),
            version=sender.version(totals.kind),
            partition_count=pa.array(partitions, pa.int64()),
            bytes=pa.array(layout.base + sizes + others, pa.int64()),
        )


class Sender:
    """In which versions a controller sends."""

    def __init__(self, cluster: Cluster) -> None:
        self.has_recovery = cluster.protocol >= releases.PROTOCOL_3_2
        self._versions = dict(zip(_KINDS, releases.request_versions(cluster.protocol), strict=True))

    def version(self, kind: str) -> int:
        return self._versions[kind]

    def layout(self, kind: str) -> request_sizes.Coefficients:
        return request_sizes.FORMATS[kind](self._versions[kind])


class _Totals:
    """Bodies of one kind, by receiver: a broker of a scenario, or a whole scenario."""

    def __init__(self, now: State, kind: str, layout: request_sizes.Coefficients) -> None:
        self.kind = kind
        self._layout = layout
        self._cluster = now.cluster
        # The first is nobody, who is sent whatever goes to no receiver.
        self._receivers = max(len(now.ids), len(now.epochs)) + 1
        self._partitions = np.zeros(self._receivers, dtype=np.int64)
        self._bytes = np.zeros(self._receivers, dtype=np.int64)
        # The topics each receiver is sent any partition of.
        self._topics = _Pairs(self._receivers, len(now.cluster.topics))

    def add(self, rows: Ints, receivers: Ints, elements: Ints) -> None:
        topics = self._cluster.topic[rows]
        each = self._layout.per_partition + elements * request_sizes.ELEMENT
        if self._layout.names_per_partition:
            each = each + self._cluster.name_lengths[topics]
        for column in receivers.T.astype(np.intp) - NOBODY:
            self._partitions += np.bincount(column, minlength=self._receivers)
            self._bytes += self._sums(column, each)
            if not self._layout.names_per_partition:
                self._topics.add(column, topics)

    def _sums(self, receiver: Ints, numbers: Ints) -> Ints:
        return np.bincount(receiver, numbers, self._receivers).astype(np.int64)

    def all(self) -> tuple[Ints, Ints]:
        """By receiver, how many partitions it is sent, and their bytes."""
        receiver, topic = self._topics.all()
        each = self._cluster.name_lengths[topic] + self._layout.per_topic
        return self._partitions[1:], (self._bytes + self._sums(receiver, each))[1:]


class _Pairs:
    """Which pairs of two numbers there were."""

    def __init__(self, first: int, second: int) -> None:
        self._shape = first, second
        self._seen: Flags | None = None
        self._codes: list[Ints] = []

    def add(self, first: Ints, second: Ints) -> None:
        count, width = self._shape
        codes = first * width + second
        if count * width > _MANY_CELLS:
            self._codes = [distinct(np.concatenate([*self._codes, codes]))]
            return
        if self._seen is None:
            self._seen = np.zeros(count * width, dtype=bool)
        self._seen[codes] = True

    def all(self) -> tuple[Ints, Ints]:
        codes = np.arange(0) if self._seen is None else np.flatnonzero(self._seen)
        return np.divmod(np.concatenate([codes, *self._codes]), max(self._shape[1], 1))


def _body(shown: Shown) -> dict[str, Any]:
    return {name: column for name, column in shown.columns.items() if name != "recovery"}


def _size(places: Ints) -> Ints:
    return count_of(places != NOBODY)
