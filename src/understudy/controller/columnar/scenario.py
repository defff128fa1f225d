"""One scenario over a snapshot, from its events to the rows of every table."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import pyarrow as pa

from understudy.controller.columnar.cluster import Cluster, Flags, Ints
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

Rows = list[tuple[str, pa.RecordBatch]]
Resumed = tuple[int, list[int]]
"""Steps of a start-up, and the order of its broker groups."""


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


def told(
    cluster: Cluster,
    key: Sequence[str],
    events: Sequence[Event],
    *,
    changed_only: bool,
    wanted: Collection[str] = REPLAY_TABLES,
) -> Rows:
    """The rows of the tables that are *wanted*, whoever has to make them."""
    told = Told(cluster, key, wanted)
    if covers(cluster, events):
        resumed = _replay(cluster, told, events, changed_only=changed_only)
        if resumed is not None:
            steps, order = resumed
            rows = cluster.snapshot_rows(np.flatnonzero(is_unfinished(cluster)))
            rest = interpreter.resume(rows, events[0], order, steps)
            told.add_plain(rest, changed_only=changed_only)
    else:
        _interpret(cluster, told, events, changed_only=changed_only)
    return told.batches


def _replay(
    cluster: Cluster, told: Told, events: Sequence[Event], *, changed_only: bool
) -> Resumed | None:
    """Replay a scenario that is covered; what a failover leaves to be taken up, if anything."""
    first = events[0]
    starts = first["type"] == FAILOVER
    # A broker that starts is told of every partition.
    tells_all = any(event["type"] in {FAILOVER, BROKER_STARTUP} for event in events)
    is_partial = changed_only and not tells_all
    rows = _touched(cluster, events) if is_partial else np.arange(cluster.count)
    now = State(cluster, rows, told)
    controller = Controller(now)
    resumed: Resumed | None = None
    shown = None
    if not starts:
        now.settle()
    for event in events:
        told.begin_event(event["type"])
        kind = event["type"]
        if kind == BROKER_FAILURE:
            controller.broker_failure(event["brokers"])
        elif kind == BROKER_STARTUP:
            brokers = event["brokers"]
            controller.broker_startup(brokers, event.get("epochs") or [None] * len(brokers))
        elif kind == CONTROLLED_SHUTDOWN:
            controller.controlled_shutdown(event["broker"])
        if kind != FAILOVER:
            continue
        order = controller.start_up(event)
        unfinished = is_unfinished(cluster)
        if unfinished.any():
            resumed, shown = (told.step, order), ~unfinished
    tell_states(now, shown=shown, changed_only=changed_only)
    return resumed


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
    told.add_plain(interpreter.replay(rows, events), changed_only=changed_only)
    if not changed_only and not is_touched.all():
        others = State(cluster, np.flatnonzero(~is_touched), told)
        others.settle()
        tell_states(others, changed_only=False)


def _struck(events: Sequence[Event], *kinds: str) -> list[int]:
    every = [event for event in events if event["type"] in kinds]
    named = (event["brokers"] if "brokers" in event else [event["broker"]] for event in every)
    return [broker for brokers in named for broker in brokers]


def _touched(cluster: Cluster, events: Sequence[Event]) -> Ints:
    """Those on the brokers that fail, and those in trouble, which are tried again and again."""
    brokers = cluster.known_places(_struck(events, BROKER_FAILURE, CONTROLLED_SHUTDOWN))
    in_trouble = cluster.in_trouble()
    return np.union1d(cluster.hosted(brokers), in_trouble) if len(brokers) else in_trouble
