"""Intervals that a controller really played: random events, one after the other, each a likely one.

The truth is known, and the two snapshots do not tell it: they hold what was before the first event
and what is after the last one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from random import Random
from typing import Any

from clusters import Document, cluster, partition, rows_of
from understudy.controller.journal import Journal
from understudy.controller.records import TopicPartition
from understudy.controller.snapshot_rows import SnapshotRows
from understudy.controller.words import NO_LEADER
from understudy.controller.zk.context import ControllerContext
from understudy.controller.zk.events import ZkController
from understudy.controller.zk.interpreter import load, settle

Event = dict[str, Any]
Played = tuple[SnapshotRows, SnapshotRows, list[Event]]

_PARTITIONS = 6


def random_interval(rng: Random, *, kinds: tuple[str, ...], length: int) -> Played:
    """The snapshots before and after so many events of these kinds, and the events."""
    rows = rows_of(_cluster(rng))
    context = load(rows)
    settle(context)
    controller = ZkController(context, Journal())
    events = []
    for _ in range(length):
        for event in _EVENTS[rng.choice(kinds)](rng, context):
            controller.process(event)
            events.append(event)
    return rows, _after(rows, context), events


def _cluster(rng: Random) -> Document:
    """All is well, except that some followers are behind and some leaders not the preferred."""
    ids = list(range(1, rng.randint(3, 5) + 1))
    topics = {}
    for name in ("a", "b"):
        topics[name] = [_partition(rng, ids, n) for n in range(_PARTITIONS // 2)]
    doc = cluster(topics, live=ids, unclean=rng.random() < 0.3)
    return doc | {"release": rng.choice(["2.8", "3.9"]), "metadata_version": "2.8"}


def _partition(rng: Random, ids: list[int], number: int) -> Document:
    replicas = rng.sample(ids, rng.randint(1, 3))
    isr = rng.sample(replicas, rng.choice([len(replicas), rng.randint(1, len(replicas))]))
    leader = replicas[0] if replicas[0] in isr and rng.random() < 0.8 else rng.choice(isr)
    return partition(replicas, (leader, 5, isr), number=number, partition_epoch=9)


# --- What may happen next ----------------------------------------------------------------------


def _death(rng: Random, context: ControllerContext) -> Iterator[Event]:
    """The last broker stays: without any there is no controller."""
    if len(context.live) == 1:
        return
    broker = rng.choice(sorted(context.live))
    if broker == context.controller_id:
        others = sorted(context.live.keys() - {broker})
        yield {
            "type": "controller_failover",
            "dead": [broker],
            "controller": rng.choice(others),
            "forget": True,
        }
    else:
        yield {"type": "broker_failure", "brokers": [broker]}


def _startup(rng: Random, context: ControllerContext) -> Iterator[Event]:
    away = sorted(context.brokers_seen.keys() - context.live.keys())
    if away:
        yield {"type": "broker_startup", "brokers": [rng.choice(away)]}


def _restart(rng: Random, context: ControllerContext) -> Iterator[Event]:
    if len(context.live) == 1:
        return
    broker = rng.choice(sorted(context.live.keys() - {context.controller_id}))
    if rng.random() < 0.5:
        yield {"type": "controlled_shutdown", "broker": broker}
    yield {"type": "broker_failure", "brokers": [broker]}
    yield {"type": "broker_startup", "brokers": [broker]}


def _led(rng: Random, context: ControllerContext) -> TopicPartition | None:
    led = [
        tp
        for tp, record in sorted(context.leadership.items())
        if record.leader != NO_LEADER and context.is_online(record.leader, tp)
    ]
    return rng.choice(led) if led else None


def _report(rng: Random, context: ControllerContext) -> Iterator[Event]:
    """A follower falls behind, or one that is alive has caught up."""
    tp = _led(rng, context)
    if tp is None:
        return
    record = context.leadership[tp]
    followers = [r for r in record.isr if r != record.leader]
    behind = [r for r in context.replicas(tp) if r not in record.isr and context.is_online(r, tp)]
    isr = record.isr
    if behind and rng.random() < 0.7:
        isr = (*isr, rng.choice(behind))
    elif followers:
        slow = rng.choice(followers)
        isr = tuple(r for r in isr if r != slow)
    if isr != record.isr:
        yield {"type": "isr_change", "partition": f"{tp[0]}-{tp[1]}", "isr": list(isr)}


def _catch_up(rng: Random, context: ControllerContext) -> Iterator[Event]:
    yield {"type": "catch_up", "brokers": [rng.choice(sorted(context.live))]}


def _preferred(_rng: Random, _context: ControllerContext) -> Iterator[Event]:
    yield {"type": "preferred_election", "partitions": "all"}


_EVENTS: dict[str, Callable[[Random, ControllerContext], Iterator[Event]]] = {
    "death": _death,
    "startup": _startup,
    "restart": _restart,
    "report": _report,
    "catch_up": _catch_up,
    "preferred": _preferred,
}
KINDS = tuple(_EVENTS)


# --- The snapshot after it ---------------------------------------------------------------------


def _after(rows: SnapshotRows, context: ControllerContext) -> SnapshotRows:
    return rows._replace(
        snapshot={
            **rows.snapshot,
            "controller_id": context.controller_id,
            "controller_epoch": context.epoch,
        },
        brokers=[_broker(row, context) for row in rows.brokers],
        partitions=[
            {**row, **_record(context, (row["topic"], row["partition"]))} for row in rows.partitions
        ],
    )


def _broker(row: Mapping[str, Any], context: ControllerContext) -> dict[str, Any]:
    broker = row["broker_id"]
    if broker not in context.live:
        return {**row, "alive": False}
    return {
        **row,
        "broker_epoch": context.live[broker].epoch,
        "shutting_down": broker in context.shutting_down,
    }


def _record(context: ControllerContext, tp: TopicPartition) -> dict[str, Any]:
    record = context.znodes[tp]
    return {**record._asdict(), "isr": list(record.isr)}
