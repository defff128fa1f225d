"""Profile ``kraft`` (Kafka 3.3 to 4.3): each event as the operations of the quorum controller.

An event is one short function. Adding one means writing it and naming it in ``EVENTS``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from operator import or_
from typing import Any, Final, NamedTuple

from understudy.controller.kraft import broker_events as brokers
from understudy.controller.kraft import leader_events as leaders
from understudy.controller.kraft import topic_events as topics
from understudy.controller.kraft.controller import Controller, Event, unsupported
from understudy.controller.kraft.errors import RefusedError
from understudy.controller.records import TopicPartition, named_partition
from understudy.controller.scope import EVERYTHING, NOTHING, Scope
from understudy.controller.words import NO_LEADER

FENCE: Final = "fence"
BROKER_FAILURE: Final = "broker_failure"


class QuorumController(Controller):
    """The active controller of a KRaft cluster, driven by events."""

    def process(self, event: Event) -> None:
        self.journal.begin_event(event["type"])
        known = EVENTS.get(event["type"])
        try:
            (known.run if known else unsupported)(self, event)
        except RefusedError as refused:
            # Where Kafka itself fails, nothing of the operation is written and another controller
            # takes over: with the settings of which node, nobody can say.
            self.journal.refused(refused.error)
            controller_failover(self, {})


def controller_failover(controller: Controller, event: Event) -> None:
    """A new controller replays the log: nothing is written, only its own settings count now."""
    named = event.get("controller")
    if named is not None:
        controller.cluster.controller_id = named
    controller.cluster.followed_shutdowns.clear()


# --- All events --------------------------------------------------------------------------------


class EventType(NamedTuple):
    run: Callable[[Controller, Event], None]
    scope: Callable[[Event], Scope]


def _everything(_event: Event) -> Scope:
    return EVERYTHING


def _nothing_else(_event: Event) -> Scope:
    """Only what is always touched."""
    return NOTHING


def _its_broker(event: Event) -> Scope:
    return Scope(brokers=frozenset([event["broker"]]))


def _its_brokers(event: Event) -> Scope:
    return Scope(brokers=frozenset(event["brokers"]))


def _named(
    *, topics: frozenset[str] = frozenset(), partitions: frozenset[TopicPartition] = frozenset()
) -> Scope:
    """What somebody asks for by name may not be there, and a new name may be too like another."""
    return Scope(topics=topics, partitions=partitions, first_partitions=True)


def _its_topic(event: Event) -> Scope:
    return _named(topics=frozenset([event["topic"]]))


def _its_topics(event: Event) -> Scope:
    return _named(topics=frozenset((*(event.get("topics") or ()), *(event.get("removed") or ()))))


def _its_partitions(event: Event) -> Scope:
    return _named(partitions=frozenset(map(named_partition, event["partitions"])))


def _its_partition(event: Event) -> Scope:
    return _named(partitions=frozenset([named_partition(event["partition"])]))


def _preferred(event: Event) -> Scope:
    return EVERYTHING if event["partitions"] == leaders.ALL else _its_partitions(event)


def _leaderless(event: Event) -> Scope:
    return NOTHING if event["partitions"] == leaders.ALL else _its_partitions(event)


# A directory belongs to one broker: its failure concerns replicas of that broker only.
EVENTS: Final[dict[str, EventType]] = {
    "controller_failover": EventType(controller_failover, _nothing_else),
    FENCE: EventType(brokers.fence, _its_brokers),
    BROKER_FAILURE: EventType(brokers.broker_failure, _its_brokers),
    "unfence": EventType(brokers.unfence, _nothing_else),
    "controlled_shutdown": EventType(brokers.controlled_shutdown, _its_broker),
    "unregister": EventType(brokers.unregister, _its_brokers),
    "broker_startup": EventType(brokers.broker_startup, _its_brokers),
    "log_dir_failure": EventType(brokers.log_dir_failure, _its_broker),
    "assign_dirs": EventType(brokers.assign_dirs, _its_partitions),
    "isr_change": EventType(leaders.isr_change, _its_partition),
    "catch_up": EventType(leaders.catch_up, _its_brokers),
    "preferred_election": EventType(leaders.preferred_election, _preferred),
    "unclean_election": EventType(leaders.unclean_election, _leaderless),
    "auto_rebalance": EventType(leaders.auto_rebalance, _everything),
    "auto_unclean_election": EventType(leaders.auto_unclean_election, _nothing_else),
    "reassign": EventType(topics.reassign, _its_partitions),
    "cancel_reassignment": EventType(topics.cancel_reassignment, _its_partitions),
    "topic_change": EventType(topics.topic_change, _its_topics),
    "partition_change": EventType(topics.partition_change, _its_topic),
    "delete_topics": EventType(topics.delete_topics, _its_topics),
}


def scope_of(events: Iterable[Event]) -> Scope:
    """What a scenario can touch beside what is always touched."""
    known = (event for event in events if event["type"] in EVENTS)
    return reduce(or_, (EVENTS[event["type"]].scope(event) for event in known), NOTHING)


def always_touched(partition: Mapping[str, Any]) -> bool:
    """Whether a row of ``partitions`` is needed whatever happens.

    A broker that returns is tried on every leaderless partition.
    """
    return partition["leader"] in (None, NO_LEADER)
