"""What the controller's machines do, for all partitions of a scenario at once.

Every method is one of Kafka's calls; the interpreter (``zk``) says the same partition by partition,
and cites what it follows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar

import numpy as np
import pyarrow as pa

from understudy.controller import releases
from understudy.controller.columnar.batches import Batch, Sender
from understudy.controller.columnar.cluster import (
    NOBODY,
    UNCLEAN_LEVELS,
    UNSET,
    Cluster,
    Flags,
    Ints,
)
from understudy.controller.columnar.rows import Told, any_of, ids_of, lists, numbers, only, words
from understudy.controller.group_order import group_order
from understudy.controller.states import (
    DELETION_INELIGIBLE,
    NEW_PARTITION,
    OFFLINE_PARTITION,
    OFFLINE_REPLICA,
    ONLINE_PARTITION,
    ONLINE_REPLICA,
)
from understudy.controller.words import (
    BROKER_DOWN,
    BROKER_NOT_AVAILABLE,
    CHOSEN,
    CONTROLLED_SHUTDOWN_STRATEGY,
    ELECTED,
    ELECTED_UNCLEAN,
    EPOCH_DURING_DELETE,
    FAILED,
    FIRST_IN_SYNC,
    FIRST_ONLINE_NEW,
    FIRST_ONLINE_UNCLEAN,
    INITIALIZE_STRATEGY,
    INITIALIZED,
    ISR_SHRUNK,
    LATER_CONTROLLER,
    LEADER_DURING_DELETE,
    LOG_DIR_OFFLINE,
    NEVER_LED,
    NO_EPOCH,
    NO_REPLICA_ONLINE,
    NONE_STAYING_IN_SYNC,
    NOT_IN_ISR,
    NOT_TRIED,
    OFFLINE,
    OFFLINE_STRATEGY,
    OK,
    PARTITION_MACHINE,
    QUEUED,
    RECORD_REFRESHED,
    RECOVERED,
    RECOVERING,
    REPLICA_MACHINE,
    SENT_AGAIN,
    SHRUNK,
    SHUTTING_DOWN,
    STATE_CHANGE_FAILED,
    STATE_WRITE,
    STAYING_IN_SYNC,
    STRANGER_IN_ISR,
    UNCHANGED,
    UNCLEAN_OFF,
)

_STATES: Final = (NEW_PARTITION, ONLINE_PARTITION, OFFLINE_PARTITION)
_NEW, _ONLINE, _OFFLINE = range(3)
_REPLICA_STATES: Final = (ONLINE_REPLICA, OFFLINE_REPLICA, DELETION_INELIGIBLE)
_REPLICA_ONLINE, _REPLICA_OFFLINE, _INELIGIBLE = range(3)
_NONE: Final = -1

_VERDICTS: Final = (CHOSEN, NOT_TRIED, NOT_IN_ISR, BROKER_DOWN, LOG_DIR_OFFLINE, SHUTTING_DOWN)
_REASONS: Final = (
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
_WHY: Final = {reason: place for place, reason in enumerate(_REASONS)}
_OUTCOMES: Final = (
    NEVER_LED,
    OFFLINE,
    INITIALIZED,
    ELECTED_UNCLEAN,
    ELECTED,
    ISR_SHRUNK,
    RECORD_REFRESHED,
    UNCHANGED,
)
_CODE: Final = {outcome: place for place, outcome in enumerate(_OUTCOMES)}
_RECORD: Final = (
    *("leader", "leader_epoch", "isr"),
    *("partition_epoch", "controller_epoch", "recovery"),
)

Record = dict[str, Ints]


class Controller:
    """A controller and the partitions *rows* of its cluster, as arrays that events change."""

    def __init__(self, cluster: Cluster, rows: Ints, told: Told) -> None:
        self.cluster = cluster
        self.rows = rows
        self.told = told
        self.controller_id = cluster.controller_id
        self.epoch = cluster.epoch
        self.registered = cluster.is_registered.copy()
        self.shutting_down = cluster.is_shutting_down.copy()
        self.broker_epochs = list(cluster.broker_epochs)
        self.highest_epoch = max((epoch or 0 for epoch in self.broker_epochs), default=0)
        self.knows_directories = np.ones(len(cluster.ids), dtype=bool)
        self.replicas = cluster.replicas[rows]
        self.is_queued = cluster.is_queued[rows]
        self.has_record = cluster.has_record[rows]
        self.record: Record = {name: getattr(cluster, name)[rows] for name in _RECORD}
        self._start = self._taken(np.arange(len(rows)))
        self._had_record = self.has_record.copy()
        self.state = np.full(len(rows), _NONE)
        self.replica_state = np.full(self.replicas.shape, _NONE)
        self.last_reason = np.full(len(rows), _NONE)
        self.last_clean = np.full(len(rows), UNSET)  # of the last election that found a leader
        self._state_before = self.state
        self._replica_state_before = self.replica_state

    # --- Who is there ------------------------------------------------------------------------

    def is_online(self, brokers: Ints, at: Ints) -> Flags:
        """Kafka's isReplicaOnline, of brokers beside each of the partitions *at*."""
        is_up = self.registered & ~self.shutting_down
        found: Flags = (brokers != NOBODY) & _of(is_up, brokers)
        return found & ~self._on_offline_dir(brokers, at)

    def _on_offline_dir(self, brokers: Ints, at: Ints) -> Flags:
        found = np.zeros(brokers.shape, dtype=bool)
        rows = self.rows[at]
        some = np.flatnonzero(self.cluster.has_offline_dirs[rows])
        if len(some):
            asked = brokers[some]
            of_row = rows[some] if asked.ndim == 1 else rows[some][:, None]
            is_listed = np.isin(of_row * len(self.cluster.ids) + asked, self.cluster.offline_dirs)
            found[some] = is_listed & (asked != NOBODY) & _of(self.knows_directories, asked)
        return found

    def settle(self) -> None:
        """The states a running controller holds when no event is in progress."""
        every = np.arange(len(self.rows))
        self._settle_partitions()
        online = self.is_online(self.replicas, every)
        self.replica_state = np.where(online, _REPLICA_ONLINE, _REPLICA_OFFLINE)
        self._state_before, self._replica_state_before = (
            self.state.copy(),
            self.replica_state.copy(),
        )

    def _settle_partitions(self) -> None:
        online = self.is_online(self.record["leader"], np.arange(len(self.rows)))
        self.state = np.where(self.has_record, np.where(online, _ONLINE, _OFFLINE), _NEW)

    # --- Events ------------------------------------------------------------------------------

    def start_up(self, event: Mapping[str, Any]) -> list[int]:
        """The first half of a failover; the order in which its brokers went offline."""
        dead = self.cluster.known_places(event.get("dead") or ())
        self.registered[dead] = False
        if event.get("forget"):
            self.shutting_down[:] = False
            self.knows_directories[:] = False
        self.shutting_down &= self.registered
        self.epoch += 1
        self.controller_id = self._new_controller(event)
        self._tell(np.arange(0))
        every = np.arange(len(self.rows))
        online = self.is_online(self.replicas, every)
        offline = (self.replicas != NOBODY) & ~online
        self.replica_state = np.where(online, _REPLICA_ONLINE, _INELIGIBLE)
        self._take_online(online)
        order = self._take_offline(offline)
        self._settle_partitions()
        self._trigger_online()
        return order

    def _new_controller(self, event: Mapping[str, Any]) -> int | None:
        named: int | None = event.get("controller")
        if named is not None:
            return named
        if self.controller_id not in (event.get("dead") or ()):
            return self.controller_id
        return min(self.cluster.ids[self.registered].tolist(), default=None)

    def broker_failure(self, brokers: Sequence[int]) -> None:
        """Kafka's onBrokerFailure, of those *brokers* that are there."""
        gone = self.cluster.known_places(brokers)
        gone = gone[self.registered[gone]]
        if not len(gone):
            return
        self.registered[gone] = False
        self.shutting_down[gone] = False
        self.knows_directories[gone] = False
        leader_is_online = self.is_online(self.record["leader"], np.arange(len(self.rows)))
        leaderless = np.flatnonzero(self.has_record & ~self.is_queued & ~leader_is_online)
        self._lose_leaders(leaderless)
        results = self._trigger_online()
        is_gone = np.zeros(len(self.cluster.ids), dtype=bool)
        is_gone[gone] = True
        stopped = (self.replicas != NOBODY) & _of(is_gone, self.replicas)
        stopped &= ~self.is_queued[:, None]
        self._take_offline(stopped)
        if self.cluster.release >= releases.RELEASE_3_1:
            nobody_was_told = not stopped.any() and not results.any()
        else:
            nobody_was_told = not len(leaderless)
        if nobody_was_told:
            self._tell(np.arange(0))

    def broker_startup(self, brokers: Sequence[int], epochs: Sequence[int | None]) -> None:
        """Kafka's onBrokerStartup, of *brokers* that were away."""
        known = self.registered.copy()
        new = self.cluster.places_of(brokers)
        for broker, epoch in zip(new.tolist(), epochs, strict=True):
            self.broker_epochs[broker] = self.highest_epoch + 1 if epoch is None else epoch
            self.highest_epoch = max(self.highest_epoch, self.broker_epochs[broker] or 0)
        self.registered[new] = True
        self.knows_directories[new] = False
        self._tell(np.arange(0), to=known)
        self._tell(np.flatnonzero(self.has_record), to=self.registered & ~known)
        self._take_online(_of(self.registered & ~known, self.replicas) & (self.replicas != NOBODY))
        self._trigger_online()

    def controlled_shutdown(self, broker: int) -> None:
        """Leadership moves away, follower replicas stop; the answer is what it still leads."""
        (place, *_) = [*self.cluster.known_places([broker]), NOBODY]
        if place == NOBODY or not self.registered[place]:
            self.told.add_others("event_results", 1, error=BROKER_NOT_AVAILABLE)
            return
        self.shutting_down[place] = True
        is_its = self.replicas == place
        can_move = self.has_record & ~self.is_queued & ((self.replicas != NOBODY).sum(axis=1) > 1)
        leads = can_move & (self.record["leader"] == place)
        self._move_leaders(np.flatnonzero(leads & any_of(is_its)))
        followed = can_move & any_of(is_its) & ~leads
        self.told.begin_step()
        batch = self._batch()
        at = np.flatnonzero(followed)
        receiver = np.full((len(at), 1), place)
        batch.stops(self.rows[at], self._epochs_to_stop(at), receiver)
        batch.send()
        self._take_offline(is_its & followed[:, None])
        still = can_move & (self.record["leader"] == place)
        self.told.add("event_results", self.rows[still])

    # --- The partition machine ---------------------------------------------------------------

    def _lose_leaders(self, at: Ints) -> None:
        if not len(at):
            return
        self.told.begin_step()
        self._partition_transitions(at, OFFLINE_PARTITION)
        self.state[at] = _OFFLINE

    def _trigger_online(self) -> Flags:
        """Try every new or offline partition; whether each that had led found a leader."""
        tried = np.flatnonzero(~self.is_queued & (self.state != _ONLINE))
        if not len(tried):
            return np.zeros(0, dtype=bool)
        self.told.begin_step()
        batch = self._batch()
        is_new = self.state[tried] == _NEW
        found = np.zeros(len(tried), dtype=bool)
        if is_new.any():
            found[is_new] = self._initialize(tried[is_new])
        if not is_new.all():
            found[~is_new] = self._elect(tried[~is_new])
        led, new = tried[found], is_new[found]
        if len(led):
            online = self.is_online(self.replicas[led], led)
            record = self._shown(self._taken(led))
            receivers = np.where(online, self.replicas[led], NOBODY)
            batch.leader_and_isr(self.rows[led], record, receivers, is_new=new)
            self._add_metadata(batch, led)
        batch.send()
        return np.asarray(found[~is_new])

    def _initialize(self, at: Ints) -> Flags:
        """Kafka's initializeLeaderAndIsr: all online replicas in sync, the first of them leads."""
        replicas = self.replicas[at]
        online = self.is_online(replicas, at)
        found = any_of(online)
        chosen = _first(replicas, online)
        self._decisions(
            at,
            chosen,
            is_clean=found,
            verdicts=self._verdicts(at, online, chosen, is_tried_in_order=found),
            strategy=INITIALIZE_STRATEGY,
            clean=numbers(found, known=found, kind=pa.bool_()),
            why=np.where(found, _WHY[FIRST_ONLINE_NEW], _WHY[NO_REPLICA_ONLINE]),
        )
        led = at[found]
        self._fail_partitions(at[~found])
        self._set_record(
            led,
            leader=chosen[found],
            leader_epoch=0,
            isr=self._wide(only(replicas[found], online[found])),
            partition_epoch=0,
            recovery=RECOVERED,
        )
        self.has_record[led] = True
        self._write(led)
        self._become_online(led)
        return found

    def _elect(self, at: Ints) -> Flags:
        """Kafka's offline election, from the record of each of the partitions *at*."""
        replicas, isr = self.replicas[at], self.record["isr"][at]
        online, member_online = self.is_online(replicas, at), self.is_online(isr, at)
        is_later = self.record["controller_epoch"][at] > self.epoch
        in_sync = online & _contained(replicas, isr)
        is_clean = any_of(in_sync)
        any_member, any_online = any_of(member_online), any_of(online)
        levels = self.cluster.unclean_levels(self.rows[at], self.controller_id)
        levels = np.where(any_member | is_later, UNSET, levels)
        is_unclean = ~is_clean & (levels != UNSET) & any_online
        found: Flags = (is_clean | is_unclean) & ~is_later
        chosen = np.where(is_clean, _first(replicas, in_sync), _first(replicas, online))
        chosen = np.where(found, chosen, NOBODY)
        why = np.select(
            [is_later, is_clean, is_unclean, ~any_online, any_member],
            [
                _WHY[LATER_CONTROLLER],
                _WHY[FIRST_IN_SYNC],
                _WHY[FIRST_ONLINE_UNCLEAN],
                _WHY[NO_REPLICA_ONLINE],
                _WHY[STRANGER_IN_ISR],
            ],
            _WHY[UNCLEAN_OFF],
        )
        verdicts = self._verdicts(at, online, chosen, is_tried_in_order=is_clean)
        verdicts[is_later] = _NONE
        self._decisions(
            at,
            chosen,
            is_clean=is_clean,
            verdicts=verdicts,
            strategy=OFFLINE_STRATEGY,
            clean=numbers(is_clean, known=found, kind=pa.bool_()),
            unclean_allowed_by=words(levels, UNCLEAN_LEVELS),
            why=why,
        )
        self._fail_partitions(at[~found])
        led, unclean = at[found], is_unclean[found]
        alone = np.full(isr[found].shape, NOBODY)
        alone[:, 0] = chosen[found]
        recovery = self.record["recovery"][led]
        if self.cluster.protocol >= releases.PROTOCOL_3_2:
            recovery = np.where(unclean, RECOVERING, recovery)
        self._set_record(
            led,
            leader=chosen[found],
            leader_epoch=self.record["leader_epoch"][led] + 1,
            isr=np.where(unclean[:, None], alone, only(isr[found], member_online[found])),
            partition_epoch=self.record["partition_epoch"][led] + 1,
            recovery=recovery,
        )
        self._write(led)
        self._become_online(led)
        return found

    def _move_leaders(self, at: Ints) -> None:
        """Kafka's controlled shutdown election, of each of the partitions *at*."""
        if not len(at):
            return
        self.told.begin_step()
        batch = self._batch()
        replicas, isr = self.replicas[at], self.record["isr"][at]
        is_there = _of(self.registered, replicas) & (replicas != NOBODY)
        is_there &= ~self._on_offline_dir(replicas, at)
        is_later = self.record["controller_epoch"][at] > self.epoch
        stays = is_there & ~_of(self.shutting_down, replicas) & _contained(replicas, isr)
        found = any_of(stays) & ~is_later
        chosen = np.where(found, _first(replicas, stays), NOBODY)
        verdicts = self._verdicts(at, self.is_online(replicas, at), chosen, is_tried_in_order=found)
        verdicts[is_later] = _NONE
        why = np.where(found, _WHY[STAYING_IN_SYNC], _WHY[NONE_STAYING_IN_SYNC])
        self._decisions(
            at,
            chosen,
            is_clean=found,
            verdicts=verdicts,
            strategy=CONTROLLED_SHUTDOWN_STRATEGY,
            clean=numbers(found, known=found, kind=pa.bool_()),
            why=np.where(is_later, _WHY[LATER_CONTROLLER], why),
        )
        self._fail_partitions(at[~found])
        led, staying = at[found], isr[found]
        self._set_record(
            led,
            leader=chosen[found],
            leader_epoch=self.record["leader_epoch"][led] + 1,
            isr=only(staying, (staying != NOBODY) & ~_of(self.shutting_down, staying)),
            partition_epoch=self.record["partition_epoch"][led] + 1,
        )
        self._write(led)
        self._become_online(led)
        if len(led):
            receivers = np.where(is_there, replicas, NOBODY)[found]
            record = self._shown(self._taken(led))
            batch.leader_and_isr(self.rows[led], record, receivers, is_new=False)
            self._add_metadata(batch, led)
        batch.send()

    def _verdicts(self, at: Ints, online: Flags, chosen: Ints, *, is_tried_in_order: Flags) -> Ints:
        """What became of each candidate; behind the first in sync nobody is tried."""
        replicas = self.replicas[at]
        is_chosen = (replicas == chosen[:, None]) & (replicas != NOBODY)
        is_behind = np.cumsum(is_chosen, axis=1).astype(bool) & ~is_chosen
        why = np.full(replicas.shape, _VERDICTS.index(SHUTTING_DOWN))
        why[self._on_offline_dir(replicas, at)] = _VERDICTS.index(LOG_DIR_OFFLINE)
        why[~_of(self.registered, replicas)] = _VERDICTS.index(BROKER_DOWN)
        why[online] = _VERDICTS.index(NOT_IN_ISR)
        why[is_behind & is_tried_in_order[:, None]] = _VERDICTS.index(NOT_TRIED)
        why[is_chosen] = _VERDICTS.index(CHOSEN)
        why[replicas == NOBODY] = _NONE
        return why

    def _decisions(
        self,
        at: Ints,
        chosen: Ints,
        *,
        is_clean: Flags,
        verdicts: Ints,
        strategy: str,
        clean: pa.Array,
        why: Ints,
        unclean_allowed_by: pa.Array | None = None,
    ) -> None:
        is_there = verdicts != _NONE
        offsets = np.zeros(len(at) + 1, dtype=np.int32)
        np.cumsum(is_there.sum(axis=1), out=offsets[1:])
        each = pa.StructArray.from_arrays(
            [
                pa.array(self.cluster.ids[self.replicas[at][is_there]], pa.int32()),
                pa.array(_VERDICTS).take(pa.array(verdicts[is_there])),
            ],
            names=["replica", "verdict"],
        )
        is_found = chosen != NOBODY
        self.told.add(
            "decisions",
            self.rows[at],
            strategy=strategy,
            candidates=pa.ListArray.from_arrays(pa.array(offsets), each),
            chosen=numbers(ids_of(chosen, self.cluster.ids), known=is_found),
            clean=clean,
            unclean_allowed_by=unclean_allowed_by,
            reason=words(why, _REASONS),
        )
        self.last_reason[at] = why
        self.last_clean[at] = np.where(is_found, is_clean, UNSET)

    def _become_online(self, at: Ints) -> None:
        self.told.add(
            "transitions",
            self.rows[at],
            machine=PARTITION_MACHINE,
            from_state=words(self.state[at], _STATES),
            to_state=ONLINE_PARTITION,
            result=OK,
            **self._record_of_transition(at),
        )
        self.state[at] = _ONLINE

    def _fail_partitions(self, at: Ints) -> None:
        self._partition_transitions(at, ONLINE_PARTITION, result=FAILED, error=STATE_CHANGE_FAILED)

    def _partition_transitions(
        self, at: Ints, target: str, *, result: str = OK, error: str | None = None
    ) -> None:
        self.told.add(
            "transitions",
            self.rows[at],
            machine=PARTITION_MACHINE,
            from_state=words(self.state[at], _STATES),
            to_state=target,
            result=result,
            error=error,
        )

    # --- The replica machine -----------------------------------------------------------------

    def _take_online(self, online: Flags) -> None:
        """The online replicas are told what their partitions' records are."""
        if not online.any():
            return
        self.told.begin_step()
        batch = self._batch()
        at, column = np.nonzero(online)
        self.told.add(
            "transitions",
            self.rows[at],
            machine=REPLICA_MACHINE,
            replica=pa.array(self.cluster.ids[self.replicas[at, column]], pa.int32()),
            from_state=words(self.replica_state[at, column], _REPLICA_STATES),
            to_state=ONLINE_REPLICA,
            result=OK,
        )
        self.replica_state[online] = _REPLICA_ONLINE
        known = np.flatnonzero(self.has_record & any_of(online))
        if len(known):
            record = self._shown(self._taken(known))
            receivers = np.where(online[known], self.replicas[known], NOBODY)
            batch.leader_and_isr(self.rows[known], record, receivers, is_new=False)
            self._add_metadata(batch, known)
        batch.send()

    def _take_offline(self, stopped: Flags) -> list[int]:
        """Stop replicas, broker by broker in Kafka's own order, and take them out of their ISRs.

        Returns that order, as ids.
        """
        if not stopped.any():
            return []
        self.told.begin_step()
        batch = self._batch()
        ids = self.cluster.ids
        order = group_order(ids[np.unique(self.replicas[stopped])].tolist())
        rank = np.full(len(ids), len(ids))
        rank[self.cluster.places_of(order)] = np.arange(len(order))
        at = np.flatnonzero(any_of(stopped))
        ranks = np.where(stopped[at], _of(rank, self.replicas[at]), len(ids))
        in_order = np.argsort(ranks, axis=1, kind="stable")
        brokers = np.take_along_axis(self.replicas[at], in_order, axis=1)
        counts = stopped[at].sum(axis=1)
        is_later = self.has_record[at] & (self.record["controller_epoch"][at] > self.epoch)
        changes = self.has_record[at] & ~is_later
        stop_epochs = np.full(brokers.shape, NO_EPOCH)
        before_last = self._taken(at)
        last_wrote = np.zeros(len(at), dtype=bool)
        writes: list[tuple[Ints, Ints, Record]] = []
        for turn in range(int(counts.max())):
            now = np.flatnonzero(counts > turn)
            here, broker, is_last = at[now], brokers[now, turn], counts[now] == turn + 1
            stop_epochs[now, turn] = self._epochs_to_stop(here)
            for name, values in before_last.items():
                values[now[is_last]] = self.record[name][here[is_last]]
            wrote = np.zeros(len(now), dtype=bool)
            wrote[changes[now]] = self._remove(here[changes[now]], broker[changes[now]])
            last_wrote[now[is_last]] = wrote[is_last]
            writes.append((rank[broker[wrote]], here[wrote], self._taken(here[wrote])))
            self._stop(here, broker, is_refused=is_later[now])
        self._write_in_order(writes)
        self._stop_requests(batch, at, brokers, stop_epochs, counts)
        told = changes & ~self.is_queued[at]
        if told.any():
            last = brokers[np.arange(len(at)), counts - 1]
            # The last one stopped is told of the one before: not of its own removal.
            is_apart = told & (counts > 1) & last_wrote
            knows_end = (counts > 1) & ~last_wrote
            replicas = self.replicas[at]
            others = np.where((replicas != last[:, None]) | knows_end[:, None], replicas, NOBODY)
            rows = self.rows[at]
            batch.leader_and_isr(
                rows[told], self._shown(self._taken(at[told])), others[told], is_new=False
            )
            batch.leader_and_isr(
                rows[is_apart],
                self._shown({name: values[is_apart] for name, values in before_last.items()}),
                last[is_apart, None],
                is_new=False,
            )
            self._add_metadata(batch, at[told])
        if not self.has_record[at].all():
            self._add_metadata(batch, at[:0])
        batch.send()
        return order

    def _remove(self, at: Ints, brokers: Ints) -> Flags:
        """Kafka's removeReplicasFromIsr; whether each record was written.

        The last ISR member is always retained, yet the epochs rise.
        """
        isr, leader = self.record["isr"][at], self.record["leader"][at]
        is_it = isr == brokers[:, None]
        wrote = any_of(is_it)
        is_alone = (isr != NOBODY).sum(axis=1) == 1
        left = only(isr, (isr != NOBODY) & ~is_it)
        self._set_record(
            at,
            leader=np.where(wrote & (leader == brokers), NOBODY, leader),
            leader_epoch=self.record["leader_epoch"][at] + wrote,
            isr=np.where((wrote & ~is_alone)[:, None], left, isr),
            partition_epoch=self.record["partition_epoch"][at] + wrote,
            recovery=self.record["recovery"][at],
        )
        return wrote

    def _stop(self, at: Ints, brokers: Ints, *, is_refused: Flags) -> None:
        column = (self.replicas[at] == brokers[:, None]).argmax(axis=1)
        ids = self.cluster.ids
        self.told.add(
            "transitions",
            self.rows[at],
            machine=REPLICA_MACHINE,
            replica=pa.array(ids[brokers], pa.int32()),
            from_state=words(self.replica_state[at, column], _REPLICA_STATES),
            to_state=OFFLINE_REPLICA,
            result=words(is_refused.astype(np.int64), (OK, FAILED)),
            error=words(np.where(is_refused, 0, _NONE), (STATE_CHANGE_FAILED,)),
            **self._record_of_transition(at, known=self.has_record[at] & ~is_refused),
        )
        self.replica_state[at[~is_refused], column[~is_refused]] = _REPLICA_OFFLINE

    def _epochs_to_stop(self, at: Ints) -> Ints:
        """Kafka's leaderEpoch(tp)."""
        epochs = np.where(self.has_record[at], self.record["leader_epoch"][at], NO_EPOCH)
        return np.where(self.is_queued[at], EPOCH_DURING_DELETE, epochs)

    def _stop_requests(
        self, batch: Batch, at: Ints, brokers: Ints, epochs: Ints, counts: Ints
    ) -> None:
        """Receivers that are told the same leader epoch of a partition share a body."""
        is_stopped = np.arange(brokers.shape[1]) < counts[:, None]
        row, turn = np.nonzero(is_stopped & _of(self.registered, brokers))
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
        batch.stops(self.rows[at[row[is_first]]], epoch[is_first], receivers)

    # --- Records -----------------------------------------------------------------------------

    def _wide(self, places: Ints) -> Ints:
        missing = self.record["isr"].shape[1] - places.shape[1]
        return np.pad(places, ((0, 0), (0, missing)), constant_values=NOBODY)

    def _taken(self, at: Ints) -> Record:
        return {name: values[at] for name, values in self.record.items()}

    def _shown(self, record: Record) -> Record:
        return {**record, "leader": ids_of(record["leader"], self.cluster.ids)}

    def _set_record(self, at: Ints, **values: Any) -> None:  # noqa: ANN401 - one value or many
        for name, value in values.items():
            self.record[name][at] = value
        self.record["controller_epoch"][at] = self.epoch

    def _record_of_transition(self, at: Ints, *, known: Flags | None = None) -> dict[str, pa.Array]:
        record = self._shown(self._taken(at))
        return {
            "leader": numbers(record["leader"], known=known),
            "isr": lists(record["isr"], self.cluster.ids, known=known),
            "leader_epoch": numbers(record["leader_epoch"], known=known),
        }

    def _write(self, at: Ints) -> None:
        self._metadata_writes(at, self._taken(at))

    def _write_in_order(self, writes: list[tuple[Ints, Ints, Record]]) -> None:
        """Those of one broker group after the other, and in each by partition."""
        ranks, at = (np.concatenate(each) for each in list(zip(*writes, strict=True))[:2])
        order = np.lexsort((at, ranks))
        record = {
            name: np.concatenate([each[name] for *_, each in writes])[order] for name in _RECORD
        }
        self._metadata_writes(at[order], record)

    def _metadata_writes(self, at: Ints, record: Record) -> None:
        shown = self._shown(record)
        self.told.add(
            "metadata_writes",
            self.rows[at],
            seq=self.told.number_writes(len(at)),
            kind=STATE_WRITE,
            isr=lists(shown["isr"], self.cluster.ids),
            **{name: numbers(shown[name]) for name in _RECORD if name != "isr"},
        )

    # --- Requests ----------------------------------------------------------------------------

    def _batch(self) -> Batch:
        sender = Sender(self.cluster, self.controller_id, self.epoch, self.broker_epochs)
        return Batch(self.cluster, self.told, self.registered, sender)

    def _tell(self, at: Ints, *, to: Flags | None = None) -> None:
        """UpdateMetadata about some partitions, possibly none, to everybody or *to* some."""
        self.told.begin_step()
        batch = self._batch()
        self._add_metadata(batch, at, to=to)
        batch.send()

    def _add_metadata(self, batch: Batch, at: Ints, *, to: Flags | None = None) -> None:
        """What everybody is told: hardly anything while the topic is being deleted."""
        record = self._shown(self._taken(at))
        is_queued = self.is_queued[at]
        if is_queued.any():
            record["leader"] = np.where(is_queued, LEADER_DURING_DELETE, record["leader"])
            for name in ("leader_epoch", "partition_epoch"):
                record[name] = np.where(is_queued, 0, record[name])
        replicas = self.replicas[at]
        offline = (replicas != NOBODY) & ~self.is_online(replicas, at)
        batch.metadata(self.rows[at], record, offline, to=to)

    # --- What it ended in --------------------------------------------------------------------

    def tell_states(self, *, shown: Flags | None = None, changed_only: bool) -> None:
        """The state rows of the partitions that are *shown*."""
        outcome, reason = self._outcomes()
        wanted = np.ones(len(self.rows), dtype=bool) if shown is None else shown
        if changed_only:
            wanted = wanted & (outcome != _CODE[UNCHANGED])
        at = np.flatnonzero(wanted)
        cluster, taken = self.cluster, pa.array(self.rows[at])
        before, after = self._shown(_picked(self._start, at)), self._shown(self._taken(at))
        had, has = self._had_record[at], self.has_record[at]
        columns: dict[str, Any] = {
            name: numbers(after[name], known=has) for name in _RECORD if name != "isr"
        }
        columns |= {
            f"{name}_before": numbers(before[name], known=had)
            for name in ("leader", "leader_epoch")
        }
        self.told.add(
            "partition_states",
            self.rows[at],
            state_before=words(self._state_before[at], _STATES),
            state_after=words(self.state[at], _STATES),
            **{name: each.take(taken) for name, each in cluster.assignment.items()},
            isr_before=lists(before["isr"], cluster.ids, known=had),
            isr=lists(after["isr"], cluster.ids, known=has),
            **columns,
            outcome=words(outcome[at], _OUTCOMES),
            reason=words(reason[at], _REASONS),
        )
        row, column = np.nonzero(self.replicas[at] != NOBODY)
        of = at[row]
        self.told.add(
            "replica_states",
            self.rows[of],
            replica=pa.array(cluster.ids[self.replicas[of, column]], pa.int32()),
            state_before=words(self._replica_state_before[of, column], _REPLICA_STATES),
            state_after=words(self.replica_state[of, column], _REPLICA_STATES),
        )

    def _outcomes(self) -> tuple[Ints, Ints]:
        """What became of each partition, and why; the first that fits."""
        has, is_queued, before = self.has_record, self.is_queued, self._start
        is_offline = self.state == _OFFLINE
        same_isr = (self.record["isr"] == before["isr"]).all(axis=1)
        same = same_isr.copy()
        for name in _RECORD:
            if name != "isr":
                same &= self.record[name] == before[name]
        last, clean = self.last_reason, self.last_clean
        by_queue = np.where(is_queued, _WHY[QUEUED], _NONE)
        cases = [
            (~has, NEVER_LED, np.where(is_queued, by_queue, _WHY[NO_REPLICA_ONLINE])),
            (is_offline, OFFLINE, np.where(is_queued, by_queue, last)),
            (~self._had_record, INITIALIZED, last),
            (clean == 0, ELECTED_UNCLEAN, last),
            (clean == 1, ELECTED, last),
            (~same_isr, ISR_SHRUNK, np.full(len(has), _WHY[SHRUNK])),
            (~same, RECORD_REFRESHED, np.full(len(has), _WHY[SENT_AGAIN])),
        ]
        conditions = [condition for condition, _, _ in cases]
        codes = [_CODE[word] for _, word, _ in cases]
        reasons = [reason for _, _, reason in cases]
        return (
            np.select(conditions, codes, _CODE[UNCHANGED]),
            np.select(conditions, reasons, _NONE),
        )


V = TypeVar("V", Flags, Ints)


def _of(values: V, places: Ints) -> V:
    """The values at these places; where there is nobody, any."""
    return values[places] if len(values) else np.zeros(places.shape, dtype=values.dtype)


def _picked(record: Record, at: Ints) -> Record:
    return {name: values[at] for name, values in record.items()}


def _first(places: Ints, wanted: Flags) -> Ints:
    """The first that is *wanted* of each list, or nobody."""
    found = np.take_along_axis(places, wanted.argmax(axis=1)[:, None], axis=1)[:, 0]
    return np.where(any_of(wanted), found, NOBODY)


def _contained(places: Ints, others: Ints) -> Flags:
    """Of each of the lists, which are in the other one."""
    is_same = (places[:, :, None] == others[:, None, :]) & (places != NOBODY)[:, :, None]
    return np.asarray(is_same.any(axis=2))
