"""Events as sequences of machine calls, as the interpreter (``zk.events``) has them.

An event of the same kind in each scenario; what it names differs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from understudy.controller import releases
from understudy.controller.columnar.arrays import (
    NOBODY,
    UNSET,
    Flags,
    Ints,
    any_of,
    chosen,
    count_of,
    values_of,
)
from understudy.controller.columnar.batches import Batch
from understudy.controller.columnar.partition_machine import PartitionMachine
from understudy.controller.columnar.replica_machine import ReplicaMachine
from understudy.controller.columnar.state import INELIGIBLE, REPLICA_ONLINE, State
from understudy.controller.scope import Event
from understudy.controller.words import BROKER_NOT_AVAILABLE

_NO_PARTITIONS: Final = np.arange(0)
_ABSENT: Final = NOBODY - 1  # equal to no place, not even to nobody's


class Controller:
    """The controllers of the ZooKeeper era over one State."""

    def __init__(self, now: State) -> None:
        self._now = now
        self._partitions = PartitionMachine(now)
        self._replicas = ReplicaMachine(now)
        self._all = np.ones(len(now.epochs), dtype=bool)

    def start_up(self, events: Sequence[Event]) -> list[list[int]]:
        """The first half of a failover; the order in which its brokers went offline."""
        now = self._now
        forgetting = np.array([bool(event.get("forget")) for event in events])
        forgetting = np.repeat(forgetting, now.brokers)
        now.registered[self._named([event.get("dead") or () for event in events])] = False
        now.shutting_down &= now.registered & ~forgetting
        now.knows_directories &= ~forgetting
        now.epochs += 1
        for scenario, event in enumerate(events):
            now.controller_ids[scenario] = self._new_controller(scenario, event)
        now.tell(_NO_PARTITIONS, self._all)
        online = now.is_online(now.replicas, np.arange(len(now.rows)))
        offline = (now.replicas != NOBODY) & ~online
        now.replica_states = chosen(online, REPLICA_ONLINE, INELIGIBLE)
        self._replicas.take_online(online)
        orders = self._replicas.take_offline(offline)
        now.settle_partitions()
        self._partitions.trigger_online(self._all)
        return orders

    def _named(self, brokers: Sequence[Sequence[int]]) -> Ints:
        """The places of those brokers that anybody mentions, each scenario's own."""
        now = self._now
        own = [now.cluster.known_places(each) for each in brokers]
        return np.concatenate([each + s * now.brokers for s, each in enumerate(own)])

    def _new_controller(self, scenario: int, event: Event) -> int:
        now = self._now
        named: int | None = event.get("controller")
        if named is not None:
            return named
        current = int(now.controller_ids[scenario])
        if current not in (event.get("dead") or ()):
            return current
        there = self._of_each(now.registered)[scenario]
        return min(now.cluster.ids[there].tolist(), default=UNSET)

    def _of_each(self, brokers: Flags) -> Flags:
        """By scenario, then by broker."""
        return brokers.reshape(len(self._all), self._now.brokers)

    def broker_failure(self, events: Sequence[Event]) -> None:
        """Kafka's onBrokerFailure, of those brokers that are there."""
        now = self._now
        gone = self._named([event["brokers"] for event in events])
        gone = gone[now.registered[gone]]
        is_gone = np.zeros(len(now.ids), dtype=bool)
        is_gone[gone] = True
        struck = any_of(self._of_each(is_gone))
        now.registered[gone] = False
        now.shutting_down[gone] = False
        now.knows_directories[gone] = False
        leader_is_online = now.is_online(now.record["leader"], np.arange(len(now.rows)))
        leaderless = now.has_record & ~now.is_queued & ~leader_is_online & struck[now.of]
        at = np.flatnonzero(leaderless)
        self._partitions.lose_leaders(at)
        led = self._partitions.trigger_online(struck)
        stopped = (now.replicas != NOBODY) & values_of(is_gone, now.replicas)
        stopped &= ~now.is_queued[:, None]
        self._replicas.take_offline(stopped)
        if now.cluster.release >= releases.RELEASE_3_1:
            told = led | now.scenarios_with(np.flatnonzero(any_of(stopped)))
        else:
            told = now.scenarios_with(at)
        self._tell_nothing(struck & ~told)

    def _tell_nothing(self, scenarios: Flags) -> None:
        if scenarios.any():
            self._now.tell(_NO_PARTITIONS, scenarios)

    def broker_startup(self, events: Sequence[Event]) -> None:
        """Kafka's onBrokerStartup, of brokers that were away."""
        now = self._now
        known = now.registered.copy()
        for scenario, event in enumerate(events):
            brokers = event["brokers"]
            for broker, epoch in zip(
                brokers, event.get("epochs") or [None] * len(brokers), strict=True
            ):
                highest = now.highest_epochs[scenario]
                given = highest + 1 if epoch is None else epoch
                now.broker_epochs[now.place(scenario, broker)] = given
                now.highest_epochs[scenario] = max(highest, given)
        new = self._named([event["brokers"] for event in events])
        now.registered[new] = True
        now.knows_directories[new] = False
        is_new = now.registered & ~known
        now.tell(_NO_PARTITIONS, self._all, to=known)
        now.tell(np.flatnonzero(now.has_record), self._all, to=is_new)
        self._replicas.take_online(values_of(is_new, now.replicas) & (now.replicas != NOBODY))
        self._partitions.trigger_online(self._all)

    def controlled_shutdown(self, events: Sequence[Event]) -> None:
        """Leadership moves away, follower replicas stop; the answer is what it still leads."""
        now = self._now
        asked = enumerate(event["broker"] for event in events)
        places = np.array([now.place(scenario, broker) for scenario, broker in asked])
        is_there = (places != NOBODY) & values_of(now.registered, places)
        absent = np.flatnonzero(~is_there)
        now.told.add_others("event_results", absent, error=BROKER_NOT_AVAILABLE)
        now.shutting_down[places[is_there]] = True
        place = np.where(is_there, places, _ABSENT)[now.of]
        is_its = now.replicas == place[:, None]
        can_move = now.has_record & ~now.is_queued & (count_of(now.replicas != NOBODY) > 1)
        leads = can_move & (now.record["leader"] == place)
        self._partitions.move_leaders(np.flatnonzero(leads & any_of(is_its)))
        followed = can_move & any_of(is_its) & ~leads
        if is_there.any():
            now.told.begin_step(is_there)
            batch = Batch(now)
            at = np.flatnonzero(followed)
            batch.stops(at, now.epochs_to_stop(at), place[at, None])
            batch.send()
        self._replicas.take_offline(is_its & followed[:, None])
        still = np.flatnonzero(can_move & (now.record["leader"] == place))
        now.told.add("event_results", now.rows[still], now.of[still])
