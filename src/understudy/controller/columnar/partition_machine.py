"""Kafka's partition state machine, for all partitions of a call at once."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from understudy.controller import releases
from understudy.controller.columnar.arrays import (
    NOBODY,
    UNSET,
    Flags,
    Ints,
    any_of,
    contained_in,
    count_of,
    first_of,
    ids_of,
    in_slices,
    numbers,
    only,
    values_of,
    words,
)
from understudy.controller.columnar.batches import Batch
from understudy.controller.columnar.cluster import UNCLEAN_LEVELS
from understudy.controller.columnar.state import (
    NEW,
    NONE,
    OF_TRANSITION,
    OFFLINE_NOW,
    ONLINE,
    PARTITION_STATES,
    REASONS,
    WHY,
    Shown,
    State,
)
from understudy.controller.states import OFFLINE_PARTITION, ONLINE_PARTITION
from understudy.controller.words import (
    BROKER_DOWN,
    CHOSEN,
    CONTROLLED_SHUTDOWN_STRATEGY,
    FAILED,
    FIRST_IN_SYNC,
    FIRST_ONLINE_NEW,
    FIRST_ONLINE_UNCLEAN,
    INITIALIZE_STRATEGY,
    LATER_CONTROLLER,
    LOG_DIR_OFFLINE,
    NO_REPLICA_ONLINE,
    NONE_STAYING_IN_SYNC,
    NOT_IN_ISR,
    NOT_TRIED,
    OFFLINE_STRATEGY,
    OK,
    PARTITION_MACHINE,
    RECOVERED,
    RECOVERING,
    SHUTTING_DOWN,
    STATE_CHANGE_FAILED,
    STAYING_IN_SYNC,
    STRANGER_IN_ISR,
    UNCLEAN_OFF,
)

_VERDICTS: Final = (CHOSEN, NOT_TRIED, NOT_IN_ISR, BROKER_DOWN, LOG_DIR_OFFLINE, SHUTTING_DOWN)


class PartitionMachine:
    """First leaders and elections; they read the records."""

    def __init__(self, now: State) -> None:
        self._now = now

    def lose_leaders(self, at: Ints) -> None:
        """These are offline now, whatever they were."""
        now = self._now
        if not len(at):
            return
        now.told.begin_step(now.scenarios_with(at))
        self._partition_transitions(at, OFFLINE_PARTITION)
        now.partition_states[at] = OFFLINE_NOW

    def trigger_online(self, scenarios: Flags) -> Flags:
        """Try every new or offline partition of these *scenarios*.

        Returns the scenarios in which any found a leader that had led.
        """
        now = self._now
        is_tried = ~now.is_queued & (now.partition_states != ONLINE)
        tried = np.flatnonzero(is_tried & scenarios[now.of])
        if not len(tried):
            return now.scenarios_with(tried)
        now.told.begin_step(now.scenarios_with(tried))
        batch = Batch(now)
        is_new = now.partition_states[tried] == NEW
        for at in in_slices(tried[is_new]):
            self._initialize(batch, at)
        led_again = np.zeros(len(now.epochs), dtype=bool)
        for at in in_slices(tried[~is_new]):
            led_again |= now.scenarios_with(self._elect(batch, at))
        batch.send()
        return led_again

    def _initialize(self, batch: Batch, at: Ints) -> None:
        """Kafka's initializeLeaderAndIsr: all online replicas in sync, the first of them leads."""
        now = self._now
        replicas = now.replicas.take(at, axis=0)
        online = now.is_online(replicas, at)
        found = any_of(online)
        chosen = first_of(replicas, online)
        self._decisions(
            at,
            chosen,
            is_clean=found,
            verdicts=self._verdicts(at, online, chosen, is_tried_in_order=found),
            strategy=INITIALIZE_STRATEGY,
            clean=numbers(found, known=found, kind=pa.bool_()),
            why=np.where(found, WHY[FIRST_ONLINE_NEW], WHY[NO_REPLICA_ONLINE]),
        )
        led = at[found]
        self._fail_partitions(at[~found])
        now.set_record(
            led,
            leader=chosen[found],
            leader_epoch=0,
            isr=now.wide(only(replicas.compress(found, axis=0), online.compress(found, axis=0))),
            partition_epoch=0,
            recovery=RECOVERED,
        )
        now.has_record[led] = True
        self._become_online(batch, led, is_new=True)

    def _elect(self, batch: Batch, at: Ints) -> Ints:
        """Kafka's offline election, from the record of each of the partitions *at*.

        Returns those that found a leader.
        """
        now = self._now
        replicas, isr = now.replicas.take(at, axis=0), now.record["isr"].take(at, axis=0)
        online, member_online = now.is_online(replicas, at), now.is_online(isr, at)
        is_later = now.is_of_later_controller(at)
        in_sync = online & contained_in(replicas, isr)
        is_clean = any_of(in_sync)
        any_member, any_online = any_of(member_online), any_of(online)
        levels = now.cluster.unclean_levels(now.rows[at], now.of[at], now.controller_ids)
        levels = np.where(any_member | is_later, UNSET, levels)
        is_unclean = ~is_clean & (levels != UNSET) & any_online
        found: Flags = (is_clean | is_unclean) & ~is_later
        chosen = np.where(is_clean, first_of(replicas, in_sync), first_of(replicas, online))
        chosen = np.where(found, chosen, NOBODY)
        why = np.select(
            [is_later, is_clean, is_unclean, ~any_online, any_member],
            [
                WHY[LATER_CONTROLLER],
                WHY[FIRST_IN_SYNC],
                WHY[FIRST_ONLINE_UNCLEAN],
                WHY[NO_REPLICA_ONLINE],
                WHY[STRANGER_IN_ISR],
            ],
            WHY[UNCLEAN_OFF],
        )
        verdicts = self._verdicts(at, online, chosen, is_tried_in_order=is_clean)
        verdicts[is_later] = NONE
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
        alone = np.full(isr.compress(found, axis=0).shape, NOBODY)
        alone[:, 0] = chosen[found]
        recovery = now.record["recovery"][led]
        if now.cluster.protocol >= releases.PROTOCOL_3_2:
            recovery = np.where(unclean, RECOVERING, recovery)
        now.set_record(
            led,
            leader=chosen[found],
            leader_epoch=now.record["leader_epoch"][led] + 1,
            isr=np.where(
                unclean[:, None],
                alone,
                only(isr.compress(found, axis=0), member_online.compress(found, axis=0)),
            ),
            partition_epoch=now.record["partition_epoch"][led] + 1,
            recovery=recovery,
        )
        self._become_online(batch, led, is_new=False)
        return led

    def move_leaders(self, at: Ints) -> None:
        """Kafka's controlled shutdown election, of each of the partitions *at*."""
        now = self._now
        if not len(at):
            return
        now.told.begin_step(now.scenarios_with(at))
        batch = Batch(now)
        replicas, isr = now.replicas.take(at, axis=0), now.record["isr"].take(at, axis=0)
        is_there = values_of(now.registered, replicas) & (replicas != NOBODY)
        is_there &= ~now.on_offline_dir(replicas, at)
        is_later = now.is_of_later_controller(at)
        stays = is_there & ~values_of(now.shutting_down, replicas) & contained_in(replicas, isr)
        found = any_of(stays) & ~is_later
        chosen = np.where(found, first_of(replicas, stays), NOBODY)
        verdicts = self._verdicts(at, now.is_online(replicas, at), chosen, is_tried_in_order=found)
        verdicts[is_later] = NONE
        why = np.where(found, WHY[STAYING_IN_SYNC], WHY[NONE_STAYING_IN_SYNC])
        self._decisions(
            at,
            chosen,
            is_clean=found,
            verdicts=verdicts,
            strategy=CONTROLLED_SHUTDOWN_STRATEGY,
            clean=numbers(found, known=found, kind=pa.bool_()),
            why=np.where(is_later, WHY[LATER_CONTROLLER], why),
        )
        self._fail_partitions(at[~found])
        led, staying = at[found], isr.compress(found, axis=0)
        now.set_record(
            led,
            leader=chosen[found],
            leader_epoch=now.record["leader_epoch"][led] + 1,
            isr=only(staying, (staying != NOBODY) & ~values_of(now.shutting_down, staying)),
            partition_epoch=now.record["partition_epoch"][led] + 1,
        )
        receivers = np.where(is_there, replicas, NOBODY)[found]
        self._become_online(batch, led, is_new=False, receivers=receivers)
        batch.send()

    def _verdicts(self, at: Ints, online: Flags, chosen: Ints, *, is_tried_in_order: Flags) -> Ints:
        """What became of each candidate; behind the first in sync nobody is tried."""
        now = self._now
        replicas = now.replicas.take(at, axis=0)
        is_chosen = (replicas == chosen[:, None]) & (replicas != NOBODY)
        is_behind = np.cumsum(is_chosen, axis=1).astype(bool) & ~is_chosen
        why = np.full(replicas.shape, _VERDICTS.index(SHUTTING_DOWN))
        why[now.on_offline_dir(replicas, at)] = _VERDICTS.index(LOG_DIR_OFFLINE)
        why[~values_of(now.registered, replicas)] = _VERDICTS.index(BROKER_DOWN)
        why[online] = _VERDICTS.index(NOT_IN_ISR)
        why[is_behind & is_tried_in_order[:, None]] = _VERDICTS.index(NOT_TRIED)
        why[is_chosen] = _VERDICTS.index(CHOSEN)
        why[replicas == NOBODY] = NONE
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
        now = self._now
        is_there = verdicts != NONE
        offsets = np.zeros(len(at) + 1, dtype=np.int32)
        np.cumsum(count_of(is_there), out=offsets[1:])
        each = pa.StructArray.from_arrays(
            [
                pa.array(now.ids[now.replicas.take(at, axis=0)[is_there]], pa.int32()),
                pa.array(_VERDICTS).take(pa.array(verdicts[is_there])),
            ],
            names=["replica", "verdict"],
        )
        is_found = chosen != NOBODY
        now.told.add(
            "decisions",
            now.rows[at],
            now.of[at],
            strategy=strategy,
            candidates=pa.ListArray.from_arrays(pa.array(offsets), each),
            chosen=numbers(ids_of(chosen, now.ids), known=is_found),
            clean=clean,
            unclean_allowed_by=unclean_allowed_by,
            reason=words(why, REASONS),
        )
        now.last_reason[at] = why
        elected = at[is_found]
        now.last_clean[elected] = is_clean[is_found]
        now.why_elected[elected] = why[is_found]

    def _become_online(
        self, batch: Batch, at: Ints, *, is_new: bool, receivers: Ints | None = None
    ) -> None:
        """Leaders that were found: written, told to the *receivers* (who is online) and to all."""
        now = self._now
        if not len(at):
            return
        shown = now.shown(at)
        now.write(shown)
        self._partition_transitions(at, ONLINE_PARTITION, shown=shown)
        now.partition_states[at] = ONLINE
        if receivers is None:
            receivers = np.where(
                now.is_online(now.replicas.take(at, axis=0), at),
                now.replicas.take(at, axis=0),
                NOBODY,
            )
        batch.leader_and_isr(shown, receivers, is_new=is_new)
        now.add_metadata(batch, shown)

    def _fail_partitions(self, at: Ints) -> None:
        self._partition_transitions(at, ONLINE_PARTITION, result=FAILED, error=STATE_CHANGE_FAILED)

    def _partition_transitions(
        self,
        at: Ints,
        target: str,
        *,
        result: str = OK,
        error: str | None = None,
        shown: Shown | None = None,
    ) -> None:
        now = self._now
        if now.told.wants("transitions"):
            record = {} if shown is None else {n: shown.columns[n] for n in OF_TRANSITION}
            now.told.add(
                "transitions",
                now.rows[at],
                now.of[at],
                machine=PARTITION_MACHINE,
                from_state=words(now.partition_states[at], PARTITION_STATES),
                to_state=target,
                result=result,
                error=error,
                **record,
            )
