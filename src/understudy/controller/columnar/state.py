"""What a controller holds: who is there, the records and the states, and what is sent of them.

Scenarios over one snapshot are held side by side, as if they were one cluster: each has brokers of
its own, at places behind those of the one before, and partitions of its own, as far as it touches
them. So a call of a machine is one for all of them, and what it does to a partition depends on
nothing of another scenario. What a scenario has once (epochs, steps) is an array by scenario.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, Final

import numpy as np
import pyarrow as pa

from understudy.controller.columnar.arrays import (
    NOBODY,
    UNSET,
    Flags,
    Ints,
    chosen,
    ids_of,
    in_slices,
    lists,
    numbers,
    values_of,
)
from understudy.controller.columnar.batches import Batch
from understudy.controller.columnar.cluster import Cluster
from understudy.controller.columnar.rows import Told
from understudy.controller.states import (
    DELETION_INELIGIBLE,
    NEW_PARTITION,
    OFFLINE_PARTITION,
    OFFLINE_REPLICA,
    ONLINE_PARTITION,
    ONLINE_REPLICA,
)
from understudy.controller.words import (
    EPOCH_DURING_DELETE,
    FIRST_IN_SYNC,
    FIRST_ONLINE_NEW,
    FIRST_ONLINE_UNCLEAN,
    LATER_CONTROLLER,
    LEADER_DURING_DELETE,
    NO_EPOCH,
    NO_REPLICA_ONLINE,
    NONE_STAYING_IN_SYNC,
    QUEUED,
    SENT_AGAIN,
    SHRUNK,
    STATE_WRITE,
    STAYING_IN_SYNC,
    STRANGER_IN_ISR,
    UNCLEAN_OFF,
)

PARTITION_STATES: Final = (NEW_PARTITION, ONLINE_PARTITION, OFFLINE_PARTITION)
NEW, ONLINE, OFFLINE_NOW = range(3)
REPLICA_STATES: Final = (ONLINE_REPLICA, OFFLINE_REPLICA, DELETION_INELIGIBLE)
REPLICA_ONLINE, REPLICA_OFFLINE, INELIGIBLE = range(3)
NONE: Final = -1

REASONS: Final = (
    FIRST_IN_SYNC,
    FIRST_ONLINE_UNCLEAN,
    FIRST_ONLINE_NEW,
    UNCLEAN_OFF,
    NO_REPLICA_ONLINE,
    STRANGER_IN_ISR,
    LATER_CONTROLLER,
    QUEUED,
    SHRUNK,
    SENT_AGAIN,
    STAYING_IN_SYNC,
    NONE_STAYING_IN_SYNC,
)
WHY: Final = {reason: place for place, reason in enumerate(REASONS)}
OF_TRANSITION: Final = ("leader", "isr", "leader_epoch")
RECORD: Final = (
    *("leader", "leader_epoch", "isr"),
    *("partition_epoch", "controller_epoch", "recovery"),
)

Record = dict[str, Ints]


class State:
    """What the controllers of all scenarios hold, as arrays that events change.

    Of the partitions *rows*, each of the scenario *of* that number; one scenario after the other,
    each with its partitions in order.
    """

    def __init__(self, cluster: Cluster, rows: Ints, of: Ints, scenarios: int, told: Told) -> None:
        self.cluster = cluster
        self.rows = rows
        self.of = of
        self.told = told
        self.brokers = len(cluster.ids)  # of each scenario
        self.ids = np.tile(cluster.ids, scenarios)
        self.controller_ids = np.full(scenarios, cluster.controller_id)
        self.epochs = np.full(scenarios, cluster.epoch)
        self.registered = np.tile(cluster.is_registered, scenarios)
        self.shutting_down = np.tile(cluster.is_shutting_down, scenarios)
        self.broker_epochs = np.tile(cluster.broker_epochs, scenarios)
        self.highest_epochs = np.full(scenarios, cluster.highest_epoch)
        self.knows_directories = np.ones(len(self.ids), dtype=bool)
        self._first_broker = (of * self.brokers).astype(np.int32)
        self.replicas = self._own(cluster.replicas.take(rows, axis=0))
        self.is_queued = cluster.is_queued[rows]
        self.has_record = cluster.has_record[rows]
        self.record: Record = {name: getattr(cluster, name).take(rows, axis=0) for name in RECORD}
        self.record["leader"] = self._own(self.record["leader"])
        self.record["isr"] = self._own(self.record["isr"])
        self.start = self.taken(np.arange(len(rows)))
        self.had_record = self.has_record.copy()
        self.partition_states = np.full(len(rows), NONE, dtype=np.int8)
        self.replica_states = np.full(self.replicas.shape, NONE, dtype=np.int8)
        self.last_reason = np.full(len(rows), NONE, dtype=np.int8)
        # Of the last election that found a leader.
        self.last_clean = np.full(len(rows), UNSET, dtype=np.int8)
        self.why_elected = np.full(len(rows), NONE, dtype=np.int8)
        self.partition_states_before = self.partition_states
        self.replica_states_before = self.replica_states

    def _own(self, places: Ints) -> Ints:
        """The same brokers, as those of the scenario that each row is of."""
        first = self._first_broker if places.ndim == 1 else self._first_broker[:, None]
        return np.where(places == NOBODY, NOBODY, places + first)

    def scenarios_with(self, at: Ints) -> Flags:
        """The scenarios that any of these partitions is of."""
        found = np.zeros(len(self.epochs), dtype=bool)
        found[self.of[at]] = True
        return found

    def place(self, scenario: int, broker_id: int) -> int:
        """Where a broker of a scenario stands, if anybody mentions it."""
        own = self.cluster.known_places([broker_id])
        return int(own[0]) + scenario * self.brokers if len(own) else NOBODY

    # --- Who is there ------------------------------------------------------------------------

    def is_online(self, brokers: Ints, at: Ints) -> Flags:
        """Kafka's isReplicaOnline, of brokers beside each of the partitions *at*."""
        is_up = self.registered & ~self.shutting_down
        found: Flags = (brokers != NOBODY) & values_of(is_up, brokers)
        return found & ~self.on_offline_dir(brokers, at)

    def on_offline_dir(self, brokers: Ints, at: Ints) -> Flags:
        found = np.zeros(brokers.shape, dtype=bool)
        rows = self.rows[at]
        some = np.flatnonzero(self.cluster.has_offline_dirs[rows])
        if len(some):
            asked = brokers[some]
            first = rows[some].astype(np.int64) * self.brokers - self._first_broker[at[some]]
            key = (first if asked.ndim == 1 else first[:, None]) + asked
            is_listed = self.cluster.lists_directory(key)
            found[some] = is_listed & (asked != NOBODY) & values_of(self.knows_directories, asked)
        return found

    def settle(self) -> None:
        """The states a running controller holds when no event is in progress."""
        every = np.arange(len(self.rows))
        self.settle_partitions()
        online = self.is_online(self.replicas, every)
        self.replica_states = chosen(online, REPLICA_ONLINE, REPLICA_OFFLINE)
        self.partition_states_before, self.replica_states_before = (
            self.partition_states.copy(),
            self.replica_states.copy(),
        )

    def settle_partitions(self) -> None:
        online = self.is_online(self.record["leader"], np.arange(len(self.rows)))
        self.partition_states = chosen(online, ONLINE, OFFLINE_NOW)
        self.partition_states[~self.has_record] = NEW

    # --- Records -----------------------------------------------------------------------------

    def wide(self, places: Ints) -> Ints:
        missing = self.record["isr"].shape[1] - places.shape[1]
        return np.pad(places, ((0, 0), (0, missing)), constant_values=NOBODY)

    def taken(self, at: Ints) -> Record:
        return picked(self.record, at)

    def shown(self, at: Ints) -> Shown:
        """The records of the partitions *at* as they are now."""
        return Shown(self, at, self.taken(at))

    def set_record(self, at: Ints, **values: Any) -> None:  # noqa: ANN401 - one value or many
        for name, value in values.items():
            self.record[name][at] = value
        self.record["controller_epoch"][at] = self.epochs[self.of[at]]

    def is_of_later_controller(self, at: Ints) -> Flags:
        return np.asarray(self.record["controller_epoch"][at] > self.epochs[self.of[at]])

    def write(self, shown: Shown) -> None:
        if self.told.wants("metadata_writes"):
            self.told.add(
                "metadata_writes",
                self.rows[shown.at],
                self.of[shown.at],
                seq=self.told.number_writes(self.of[shown.at]),
                kind=STATE_WRITE,
                **shown.columns,
            )

    def write_in_order(self, writes: list[tuple[Ints, Ints, Record]]) -> None:
        """In each scenario those of one broker group after the other, and in each by partition."""
        if not self.told.wants("metadata_writes"):
            return
        ranks, at = (np.concatenate(each) for each in list(zip(*writes, strict=True))[:2])
        order = np.lexsort((at, ranks, self.of[at]))
        record = {
            name: np.concatenate([each[name] for *_, each in writes]).take(order, axis=0)
            for name in RECORD
        }
        self.write(Shown(self, at[order], record))

    def epochs_to_stop(self, at: Ints) -> Ints:
        """Kafka's leaderEpoch(tp)."""
        epochs = np.where(self.has_record[at], self.record["leader_epoch"][at], NO_EPOCH)
        return np.where(self.is_queued[at], EPOCH_DURING_DELETE, epochs)

    # --- Requests ----------------------------------------------------------------------------

    def tell(self, at: Ints, scenarios: Flags, *, to: Flags | None = None) -> None:
        """UpdateMetadata about some partitions, possibly none, to everybody or *to* some."""
        self.told.begin_step(scenarios)
        batch = Batch(self)
        self.add_metadata(batch, self.shown(at[:0]), scenarios, to=to)
        for some in in_slices(at):
            self.add_metadata(batch, self.shown(some), scenarios, to=to)
        batch.send()

    def add_metadata(
        self, batch: Batch, shown: Shown, scenarios: Flags | None = None, *, to: Flags | None = None
    ) -> None:
        """What everybody is told: hardly anything while the topic is being deleted."""
        at = shown.at
        replicas = self.replicas.take(at, axis=0)
        offline = (replicas != NOBODY) & ~self.is_online(replicas, at)
        batch.metadata(
            shown.during_delete(self.is_queued[at]),
            offline,
            to=self.registered if to is None else to,
            scenarios=self.scenarios_with(at) if scenarios is None else scenarios,
        )


class Shown:
    """Records of some partitions as they are told, to however many: columns are made once."""

    def __init__(self, now: State, at: Ints, record: Record) -> None:
        self._now = now
        self.at = at
        self.record = record

    def only(self, wanted: Flags) -> Shown:
        if wanted.all():
            return self
        return Shown(self._now, self.at[wanted], picked(self.record, np.flatnonzero(wanted)))

    def during_delete(self, is_queued: Flags) -> Shown:
        if not is_queued.any():
            return self
        hidden = Shown(self._now, self.at, dict(self.record))
        hidden.leader = np.where(is_queued, LEADER_DURING_DELETE, self.leader)
        for name in ("leader_epoch", "partition_epoch"):
            hidden.record[name] = np.where(is_queued, 0, self.record[name])
        return hidden

    @cached_property
    def leader(self) -> Ints:
        """By id."""
        return ids_of(self.record["leader"], self._now.ids)

    @cached_property
    def columns(self) -> dict[str, pa.Array]:
        return self._columns(None)

    def known(self, known: Flags) -> dict[str, pa.Array]:
        """The columns, null where the records are not *known*."""
        return self.columns if known.all() else self._columns(known)

    def _columns(self, known: Flags | None) -> dict[str, pa.Array]:
        told = {**self.record, "leader": self.leader}
        return {
            **{name: numbers(told[name], known=known) for name in RECORD if name != "isr"},
            "isr": lists(told["isr"], self._now.ids, known=known),
        }

    @cached_property
    def assignment(self) -> dict[str, pa.Array]:
        return self._now.cluster.assignment(self._now.rows[self.at])


def picked(record: Record, at: Ints) -> Record:
    return {name: values.take(at, axis=0) for name, values in record.items()}
