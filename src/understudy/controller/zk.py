"""Profile ``zk`` (Kafka 2.4 to 3.9): each event as its sequence of machine calls.

An event is one short function. Adding one means writing it and naming it in ``EVENTS``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from understudy.controller.context import ControllerContext
from understudy.controller.journal import Journal
from understudy.controller.partition_machine import PartitionStateMachine
from understudy.controller.replica_machine import ReplicaStateMachine
from understudy.controller.request_batch import RequestBatch

Event = Mapping[str, Any]


class ZkController:
    """A controller of the ZooKeeper era, driven by events."""

    def __init__(self, context: ControllerContext, journal: Journal) -> None:
        self.context = context
        self.journal = journal
        self.replicas = ReplicaStateMachine(context, journal)
        self.partitions = PartitionStateMachine(context, journal)

    def process(self, event: Event) -> None:
        self.journal.begin_event(event["type"])
        EVENTS[event["type"]](self, event)

    def send_metadata(self) -> None:
        """A batch of the controller's own: UpdateMetadata without partitions, to everybody."""
        batch = RequestBatch(self.context, self.journal)
        batch.add_metadata()
        batch.send()


def controller_failover(controller: ZkController, event: Event) -> None:
    """A new controller loads its context and starts both machines (onControllerFailover).

    The replica machine shrinks ISRs and takes leadership from replicas that are not online before
    the partition machine elects, so a partition that lost its leader rises by two epochs.
    """
    _load_context(controller.context, event)
    controller.send_metadata()
    controller.replicas.start_up()
    controller.partitions.start_up()


def _load_context(context: ControllerContext, event: Event) -> None:
    dead = frozenset(event.get("dead") or ())
    for broker in dead:
        context.live.pop(broker, None)
    if event.get("forget"):
        context.shutting_down.clear()
        context.offline_dirs.clear()
    context.shutting_down &= context.live.keys()
    context.controller_id = _new_controller(context, event.get("controller"), dead)
    context.epoch += 1
    context.leadership = dict(context.znodes)
    context.partition_states.clear()
    context.replica_states.clear()


def _new_controller(
    context: ControllerContext, named: int | None, dead: frozenset[int]
) -> int | None:
    """The broker that takes over: the named one, else the same again, else the smallest alive."""
    if named is not None:
        return named
    if context.controller_id not in dead:
        return context.controller_id
    return min(context.live, default=None)


EVENTS: Final[dict[str, Callable[[ZkController, Event], None]]] = {
    "controller_failover": controller_failover,
}
