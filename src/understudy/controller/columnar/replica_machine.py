"""Kafka's replica state machine, for all replicas of a call at once."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from understudy.controller.columnar.arrays import (
    NOBODY,
    Flags,
    Ints,
    any_of,
    count_of,
    distinct,
    in_slices,
    only,
    values_of,
    words,
)
from understudy.controller.columnar.batches import Batch
from understudy.controller.columnar.state import (
    NONE,
    OF_TRANSITION,
    REPLICA_OFFLINE,
    REPLICA_ONLINE,
    REPLICA_STATES,
    Record,
    Shown,
    State,
)
from understudy.controller.group_order import group_order
from understudy.controller.states import OFFLINE_REPLICA, ONLINE_REPLICA
from understudy.controller.words import FAILED, NO_EPOCH, OK, REPLICA_MACHINE, STATE_CHANGE_FAILED


class ReplicaMachine:
    """Replicas that come online or go offline, and what that does to ISRs."""

    def __init__(self, now: State) -> None:
        self._now = now

    def take_online(self, online: Flags) -> None:
        """The online replicas are told what their partitions' records are."""
        now = self._now
        concerned = np.flatnonzero(any_of(online))
        if not len(concerned):
            return
        now.told.begin_step(now.scenarios_with(concerned))
        batch = Batch(now)
        for some in in_slices(concerned):
            row, column = np.nonzero(online.take(some, axis=0))
            at = some[row]
            if now.told.wants("transitions"):
                now.told.add(
                    "transitions",
                    now.rows[at],
                    now.of[at],
                    machine=REPLICA_MACHINE,
                    replica=pa.array(now.ids[now.replicas[at, column]], pa.int32()),
                    from_state=words(now.replica_states[at, column], REPLICA_STATES),
                    to_state=ONLINE_REPLICA,
                    result=OK,
                )
            known = some[now.has_record[some]]
            if len(known):
                shown = now.shown(known)
                receivers = np.where(
                    online.take(known, axis=0), now.replicas.take(known, axis=0), NOBODY
                )
                batch.leader_and_isr(shown, receivers, is_new=False)
                now.add_metadata(batch, shown)
        now.replica_states[online] = REPLICA_ONLINE
        batch.send()

    def take_offline(self, stopped: Flags) -> list[list[int]]:
        """Stop replicas, broker by broker in Kafka's own order, and take them out of their ISRs.

        Returns that order by scenario, as ids.
        """
        now = self._now
        concerned = np.flatnonzero(any_of(stopped))
        if not len(concerned):
            return [[] for _ in now.epochs]
        now.told.begin_step(now.scenarios_with(concerned))
        batch = Batch(now)
        orders, rank = self._in_kafkas_order(distinct(now.replicas[stopped]))
        writes: list[tuple[Ints, Ints, Record]] = []
        for at in in_slices(concerned):
            writes += self._take_offline(batch, at, stopped.take(at, axis=0), rank)
        now.write_in_order(writes)
        without = concerned[~now.has_record[concerned]]
        now.add_metadata(batch, now.shown(concerned[:0]), now.scenarios_with(without))
        batch.send()
        return orders

    def _take_offline(
        self, batch: Batch, at: Ints, stopped: Flags, rank: Ints
    ) -> list[tuple[Ints, Ints, Record]]:
        """Returns what was written: the rank of the broker group, partitions and their records."""
        now = self._now
        replicas = now.replicas.take(at, axis=0)
        counts = count_of(stopped)
        if counts.max() > 1:
            ranks = np.where(stopped, values_of(rank, replicas), now.brokers)
            in_order = np.argsort(ranks, axis=1, kind="stable")
        else:
            in_order = stopped.argmax(axis=1)[:, None]
        brokers = np.take_along_axis(replicas, in_order, axis=1)
        is_later = now.has_record[at] & now.is_of_later_controller(at)
        changes = now.has_record[at] & ~is_later
        stop_epochs = np.full(brokers.shape, NO_EPOCH)
        before_last = now.taken(at)
        last_wrote = np.zeros(len(at), dtype=bool)
        writes: list[tuple[Ints, Ints, Record]] = []
        for turn in range(int(counts.max())):
            left = np.flatnonzero(counts > turn)
            here, broker, is_last = at[left], brokers[left, turn], counts[left] == turn + 1
            stop_epochs[left, turn] = now.epochs_to_stop(here)
            if turn:
                for name, values in before_last.items():
                    values[left[is_last]] = now.record[name][here[is_last]]
            wrote = np.zeros(len(left), dtype=bool)
            wrote[changes[left]] = self._remove(here[changes[left]], broker[changes[left]])
            last_wrote[left[is_last]] = wrote[is_last]
            writes.append((rank[broker[wrote]], here[wrote], now.taken(here[wrote])))
            self._stop(here, broker, is_refused=is_later[left])
        self._stop_requests(batch, at, brokers, stop_epochs, counts)
        told = changes & ~now.is_queued[at]
        if told.any():
            last = brokers[np.arange(len(at)), counts - 1]
            # The last one stopped is told of the one before: not of its own removal.
            is_apart = told & (counts > 1) & last_wrote
            knows_end = (counts > 1) & ~last_wrote
            others = np.where((replicas != last[:, None]) | knows_end[:, None], replicas, NOBODY)
            shown = now.shown(at[told])
            batch.leader_and_isr(shown, others.compress(told, axis=0), is_new=False)
            before = Shown(now, at, before_last).only(is_apart)
            batch.leader_and_isr(before, last[is_apart, None], is_new=False)
            now.add_metadata(batch, shown)
        return writes

    def _in_kafkas_order(self, stopped: Ints) -> tuple[list[list[int]], Ints]:
        """The order of broker groups in each scenario, as ids, and the rank of each broker."""
        now = self._now
        orders: list[list[int]] = []
        rank = np.zeros(len(now.ids), dtype=np.int32)
        edges = np.searchsorted(stopped, np.arange(len(now.epochs) + 1) * now.brokers)
        for first, start, end in zip(
            range(0, len(now.ids), now.brokers), edges[:-1], edges[1:], strict=True
        ):
            order = group_order(now.ids[stopped[start:end]].tolist())
            rank[first + now.cluster.places_of(order)] = np.arange(len(order))
            orders.append(order)
        return orders, rank

    def _remove(self, at: Ints, brokers: Ints) -> Flags:
        """Kafka's removeReplicasFromIsr; whether each record was written.

        The last ISR member is always retained, yet the epochs rise.
        """
        now = self._now
        isr, leader = now.record["isr"].take(at, axis=0), now.record["leader"][at]
        is_it = isr == brokers[:, None]
        wrote = any_of(is_it)
        is_alone = count_of(isr != NOBODY) == 1
        left = only(isr, (isr != NOBODY) & ~is_it)
        now.set_record(
            at,
            leader=np.where(wrote & (leader == brokers), NOBODY, leader),
            leader_epoch=now.record["leader_epoch"][at] + wrote,
            isr=np.where((wrote & ~is_alone)[:, None], left, isr),
            partition_epoch=now.record["partition_epoch"][at] + wrote,
            recovery=now.record["recovery"][at],
        )
        return wrote

    def _stop(self, at: Ints, brokers: Ints, *, is_refused: Flags) -> None:
        now = self._now
        column = (now.replicas.take(at, axis=0) == brokers[:, None]).argmax(axis=1)
        if now.told.wants("transitions"):
            record = now.shown(at).known(now.has_record[at] & ~is_refused)
            now.told.add(
                "transitions",
                now.rows[at],
                now.of[at],
                machine=REPLICA_MACHINE,
                replica=pa.array(now.ids[brokers], pa.int32()),
                from_state=words(now.replica_states[at, column], REPLICA_STATES),
                to_state=OFFLINE_REPLICA,
                result=words(is_refused.astype(np.int64), (OK, FAILED)),
                error=words(np.where(is_refused, 0, NONE), (STATE_CHANGE_FAILED,)),
                **{name: record[name] for name in OF_TRANSITION},
            )
        now.replica_states[at[~is_refused], column[~is_refused]] = REPLICA_OFFLINE

    def _stop_requests(
        self, batch: Batch, at: Ints, brokers: Ints, epochs: Ints, counts: Ints
    ) -> None:
        """Receivers that are told the same leader epoch of a partition share a body."""
        now = self._now
        is_stopped = np.arange(brokers.shape[1]) < counts[:, None]
        row, turn = np.nonzero(is_stopped & values_of(now.registered, brokers))
        if not len(row):
            return
        receiver, epoch = brokers[row, turn], epochs[row, turn]
        in_order = np.lexsort((receiver, epoch, row))
        row, receiver, epoch = row[in_order], receiver[in_order], epoch[in_order]
        is_first = np.ones(len(row), dtype=bool)
        is_first[1:] = (row[1:] != row[:-1]) | (epoch[1:] != epoch[:-1])
        body = np.cumsum(is_first) - 1
        place = np.arange(len(row)) - np.flatnonzero(is_first)[body]
        receivers = np.full((body[-1] + 1, brokers.shape[1]), NOBODY)
        receivers[body, place] = receiver
        batch.stops(at[row[is_first]], epoch[is_first], receivers)
