"""Events as sequences of machine calls, as the interpreter (``zk.events``) has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from understudy.controller import releases
from understudy.controller.columnar.cluster import (
    NOBODY,
)
from understudy.controller.columnar.partition_machine import PartitionMachine
from understudy.controller.columnar.replica_machine import ReplicaMachine
from understudy.controller.columnar.rows import any_of
from understudy.controller.columnar.state import (
    INELIGIBLE,
    REPLICA_ONLINE,
    State,
    values_of,
)
from understudy.controller.words import (
    BROKER_NOT_AVAILABLE,
)


class Controller:
    """A controller of the ZooKeeper era over one State."""

    def __init__(self, now: State) -> None:
        self._now = now
        self._partitions = PartitionMachine(now)
        self._replicas = ReplicaMachine(now)

    def start_up(self, event: Mapping[str, Any]) -> list[int]:
        """The first half of a failover; the order in which its brokers went offline."""
        now = self._now
        dead = now.cluster.known_places(event.get("dead") or ())
        now.registered[dead] = False
        if event.get("forget"):
            now.shutting_down[:] = False
            now.knows_directories[:] = False
        now.shutting_down &= now.registered
        now.epoch += 1
        now.controller_id = self._new_controller(event)
        now.tell(np.arange(0))
        every = np.arange(len(now.rows))
        online = now.is_online(now.replicas, every)
        offline = (now.replicas != NOBODY) & ~online
        now.replica_states = np.where(online, REPLICA_ONLINE, INELIGIBLE)
        self._replicas.take_online(online)
        order = self._replicas.take_offline(offline)
        now.settle_partitions()
        self._partitions.trigger_online()
        return order

    def _new_controller(self, event: Mapping[str, Any]) -> int | None:
        now = self._now
        named: int | None = event.get("controller")
        if named is not None:
            return named
        if now.controller_id not in (event.get("dead") or ()):
            return now.controller_id
        return min(now.cluster.ids[now.registered].tolist(), default=None)

    def broker_failure(self, brokers: Sequence[int]) -> None:
        """Kafka's onBrokerFailure, of those *brokers* that are there."""
        now = self._now
        gone = now.cluster.known_places(brokers)
        gone = gone[now.registered[gone]]
        if not len(gone):
            return
        now.registered[gone] = False
        now.shutting_down[gone] = False
        now.knows_directories[gone] = False
        leader_is_online = now.is_online(now.record["leader"], np.arange(len(now.rows)))
        leaderless = np.flatnonzero(now.has_record & ~now.is_queued & ~leader_is_online)
        self._partitions.lose_leaders(leaderless)
        results = self._partitions.trigger_online()
        is_gone = np.zeros(len(now.cluster.ids), dtype=bool)
        is_gone[gone] = True
        stopped = (now.replicas != NOBODY) & values_of(is_gone, now.replicas)
        stopped &= ~now.is_queued[:, None]
        self._replicas.take_offline(stopped)
        if now.cluster.release >= releases.RELEASE_3_1:
            nobody_was_told = not stopped.any() and not results.any()
        else:
            nobody_was_told = not len(leaderless)
        if nobody_was_told:
            now.tell(np.arange(0))

    def broker_startup(self, brokers: Sequence[int], epochs: Sequence[int | None]) -> None:
        """Kafka's onBrokerStartup, of *brokers* that were away."""
        now = self._now
        known = now.registered.copy()
        new = now.cluster.places_of(brokers)
        for broker, epoch in zip(new.tolist(), epochs, strict=True):
            now.broker_epochs[broker] = now.highest_epoch + 1 if epoch is None else epoch
            now.highest_epoch = max(now.highest_epoch, now.broker_epochs[broker] or 0)
        now.registered[new] = True
        now.knows_directories[new] = False
        now.tell(np.arange(0), to=known)
        now.tell(np.flatnonzero(now.has_record), to=now.registered & ~known)
        self._replicas.take_online(
            values_of(now.registered & ~known, now.replicas) & (now.replicas != NOBODY)
        )
        self._partitions.trigger_online()

    def controlled_shutdown(self, broker: int) -> None:
        """Leadership moves away, follower replicas stop; the answer is what it still leads."""
        now = self._now
        (place, *_) = [*now.cluster.known_places([broker]), NOBODY]
        if place == NOBODY or not now.registered[place]:
            now.told.add_others("event_results", 1, error=BROKER_NOT_AVAILABLE)
            return
        now.shutting_down[place] = True
        is_its = now.replicas == place
        can_move = now.has_record & ~now.is_queued & ((now.replicas != NOBODY).sum(axis=1) > 1)
        leads = can_move & (now.record["leader"] == place)
        self._partitions.move_leaders(np.flatnonzero(leads & any_of(is_its)))
        followed = can_move & any_of(is_its) & ~leads
        now.told.begin_step()
        batch = now.batch()
        at = np.flatnonzero(followed)
        receiver = np.full((len(at), 1), place)
        batch.stops(now.rows[at], now.epochs_to_stop(at), receiver)
        batch.send()
        self._replicas.take_offline(is_its & followed[:, None])
        still = can_move & (now.record["leader"] == place)
        now.told.add("event_results", now.rows[still])
