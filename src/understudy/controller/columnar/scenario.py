"""Scenarios over a snapshot, from their events to the rows of every table."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Final, NamedTuple

import numpy as np

from understudy.columns import HandOver
from understudy.controller.columnar.arrays import Flags, Ints
from understudy.controller.columnar.cluster import Cluster
from understudy.controller.columnar.controller import Controller
from understudy.controller.columnar.feed import KINDS
from understudy.controller.columnar.outcomes import tell_states
from understudy.controller.columnar.rows import Told
from understudy.controller.columnar.state import State
from understudy.controller.scope import Event
from understudy.controller.zk import interpreter
from understudy.controller.zk.events import (
    BROKER_FAILURE,
    BROKER_STARTUP,
    CONTROLLED_SHUTDOWN,
    FAILOVER,
    scope_of,
)
from understudy.schemas import REPLAY_TABLES

PARTITIONS_SIDE_BY_SIDE: Final = 200_000
"""Of all scenarios held together: more fill memory and gain nothing."""


def covers(cluster: Cluster, events: Sequence[Event]) -> bool:
    """Whether this form takes a scenario, if only the first half of its failover.

    Deletions and reassignments belong to the interpreter, so nothing may come of any; and so do
    brokers that restart unseen.
    """
    if any(event["type"] not in KINDS for event in events):
        return False
    if cluster.is_queued.any() and not cluster.deletion_enabled:
        return False
    first, *others = events
    if first["type"] == FAILOVER and not others:
        return _starts(cluster)
    kinds = {event["type"] for event in events}
    if FAILOVER in {event["type"] for event in others}:
        return False
    if kinds & {FAILOVER, BROKER_STARTUP} and is_unfinished(cluster).any():
        return False
    return not _halts_deletion(cluster, events) and _only_those_away_start(cluster, events)


def _only_those_away_start(cluster: Cluster, events: Sequence[Event]) -> bool:
    known = set(cluster.ids.tolist())
    there = set(cluster.ids[cluster.is_registered].tolist())
    for event in events:
        if event["type"] == FAILOVER:
            there -= set(event.get("dead") or ())
        elif event["type"] == BROKER_FAILURE:
            there -= set(event["brokers"])
        elif event["type"] == BROKER_STARTUP:
            brokers = set(event["brokers"])
            if brokers & there or not brokers <= known or len(brokers) < len(event["brokers"]):
                return False
            there |= brokers
    return True


def is_unfinished(cluster: Cluster) -> Flags:
    """The partitions that a new controller takes up again once both machines have started."""
    return cluster.is_queued | (cluster.reassigned > 0)


def _starts(cluster: Cluster) -> bool:
    """A record of a later controller ends the term of one who goes on with a reassignment."""
    moving = cluster.reassigned > 0
    is_ours = cluster.has_record & (cluster.controller_epoch <= cluster.epoch + 1)
    return bool((is_ours | ~moving).all())


def _halts_deletion(cluster: Cluster, events: Sequence[Event]) -> bool:
    failing = cluster.known_places(_struck(events, BROKER_FAILURE))
    return bool(np.isin(cluster.replicas[cluster.is_queued], failing).any())


def replay(
    cluster: Cluster,
    snapshot: Sequence[str],
    scenarios: Iterable[tuple[str, Sequence[Event]]],
    hand_over: HandOver,
    *,
    changed_only: bool,
    wanted: Collection[str] = REPLAY_TABLES,
) -> None:
    """Hand over the rows of the tables that are *wanted*, whoever has to make them."""

    def told(names: Sequence[str]) -> Told:
        return Told(cluster, snapshot, names, wanted, hand_over)

    side_by_side: dict[tuple[str, ...], _Alike] = {}
    for name, events in scenarios:
        if not covers(cluster, events):
            _interpret(cluster, told([name]), events, changed_only=changed_only)
            continue
        kinds = tuple(event["type"] for event in events)
        alike = side_by_side.setdefault(kinds, _Alike([], [], []))
        alike.add(name, events, _rows(cluster, events, changed_only=changed_only))
        if alike.is_enough():
            _replay(cluster, told(alike.names), alike, changed_only=changed_only)
            del side_by_side[kinds]
    for alike in side_by_side.values():
        _replay(cluster, told(alike.names), alike, changed_only=changed_only)


class _Alike(NamedTuple):
    """Scenarios of events of the same kinds, and the partitions each is held for."""

    names: list[str]
    events: list[Sequence[Event]]
    rows: list[Ints]

    def add(self, name: str, events: Sequence[Event], rows: Ints) -> None:
        self.names.append(name)
        self.events.append(events)
        self.rows.append(rows)

    def is_enough(self) -> bool:
        return sum(map(len, self.rows)) >= PARTITIONS_SIDE_BY_SIDE


def _rows(cluster: Cluster, events: Sequence[Event], *, changed_only: bool) -> Ints:
    # A broker that starts is told of every partition.
    tells_all = any(event["type"] in {FAILOVER, BROKER_STARTUP} for event in events)
    if changed_only and not tells_all:
        return _touched(cluster, events)
    return np.arange(cluster.count)


def _replay(cluster: Cluster, told: Told, alike: _Alike, *, changed_only: bool) -> None:
    """Replay scenarios that are covered, and what their failovers leave to be taken up."""
    lengths = [len(rows) for rows in alike.rows]
    of = np.repeat(np.arange(len(lengths), dtype=np.int32), lengths)
    now = State(cluster, np.concatenate(alike.rows), of, len(lengths), told)
    controller = Controller(now)
    takes = {
        BROKER_FAILURE: controller.broker_failure,
        BROKER_STARTUP: controller.broker_startup,
        CONTROLLED_SHUTDOWN: controller.controlled_shutdown,
    }
    unfinished = np.zeros(cluster.count, dtype=bool)
    orders: list[list[int]] = []
    if alike.events[0][0]["type"] != FAILOVER:
        now.settle()
    for events in zip(*alike.events, strict=True):
        kind = events[0]["type"]
        told.begin_event(kind)
        if kind == FAILOVER:
            unfinished = is_unfinished(cluster)
            orders = controller.start_up(events)
        else:
            takes[kind](events)
    tell_states(now, shown=~unfinished[now.rows], changed_only=changed_only)
    if unfinished.any():
        rows = cluster.snapshot_rows(np.flatnonzero(unfinished))
        steps = told.steps.tolist()
        for scenario, (first, *_) in enumerate(alike.events):
            rest = interpreter.resume(rows, first, orders[scenario], steps[scenario])
            told.add_plain(rest, scenario, changed_only=changed_only)


def _interpret(
    cluster: Cluster, told: Told, events: Sequence[Event], *, changed_only: bool
) -> None:
    """Interpret what the scenario can touch; the others stay as they are."""
    scope = scope_of(events)
    is_touched = np.full(cluster.count, scope.everything)
    if not scope.everything:
        brokers = cluster.known_places(sorted(scope.brokers))
        is_touched |= is_unfinished(cluster)
        is_touched |= np.isin(cluster.isr, brokers).any(axis=1)
        is_touched[_touched(cluster, events)] = True
    rows = cluster.snapshot_rows(np.flatnonzero(is_touched))
    told.add_plain(interpreter.replay(rows, events), 0, changed_only=changed_only)
    if not changed_only and not is_touched.all():
        left = np.flatnonzero(~is_touched)
        others = State(cluster, left, np.zeros(len(left), dtype=np.int32), 1, told)
        others.settle()
        tell_states(others, changed_only=False)


def _struck(events: Sequence[Event], *kinds: str) -> list[int]:
    every = [event for event in events if event["type"] in kinds]
    named = (event["brokers"] if "brokers" in event else [event["broker"]] for event in every)
    return [broker for brokers in named for broker in brokers]


def _touched(cluster: Cluster, events: Sequence[Event]) -> Ints:
    """Those on the brokers that fail, and those in trouble."""
    brokers = _struck(events, BROKER_FAILURE, CONTROLLED_SHUTDOWN)
    return cluster.struck(cluster.known_places(brokers))
