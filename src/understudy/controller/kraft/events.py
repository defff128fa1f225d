"""Profile ``kraft`` (Kafka 3.3 to 4.3): each event as the operations of the quorum controller.

An event is one short function. Adding one means writing it and naming it in ``EVENTS``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from understudy.controller import scope
from understudy.controller.kraft import broker_events as brokers
from understudy.controller.kraft import leader_events as leaders
from understudy.controller.kraft import topic_events as topics
from understudy.controller.kraft.controller import Controller, unsupported
from understudy.controller.kraft.errors import RefusedError
from understudy.controller.scope import EVERYTHING, NOTHING, Event, EventType, Scope
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


def _named(its: Callable[[Event], Scope]) -> Callable[[Event], Scope]:
    """What somebody asks for by name may not be there, and a new name may be too like another."""
    return lambda event: its(event) | Scope(first_partitions=True)


_ITS_PARTITIONS: Final = _named(scope.its_partitions)
_ITS_TOPICS: Final = _named(scope.its_topics)

# A directory belongs to one broker: its failure concerns replicas of that broker only.
EVENTS: Final[dict[str, EventType[Controller]]] = {
    "controller_failover": EventType(controller_failover, scope.nothing_else),
    FENCE: EventType(brokers.fence, scope.its_brokers),
    BROKER_FAILURE: EventType(brokers.broker_failure, scope.its_brokers),
    "unfence": EventType(brokers.unfence, scope.nothing_else),
    "controlled_shutdown": EventType(brokers.controlled_shutdown, scope.its_broker),
    "unregister": EventType(brokers.unregister, scope.its_brokers),
    "broker_startup": EventType(brokers.broker_startup, scope.its_brokers),
    "log_dir_failure": EventType(brokers.log_dir_failure, scope.its_broker),
    "assign_dirs": EventType(brokers.assign_dirs, _ITS_PARTITIONS),
    "isr_change": EventType(leaders.isr_change, _named(scope.its_partition)),
    "catch_up": EventType(leaders.catch_up, scope.its_brokers),
    "preferred_election": EventType(
        leaders.preferred_election, scope.all_or(EVERYTHING, _ITS_PARTITIONS)
    ),
    "unclean_election": EventType(leaders.unclean_election, scope.all_or(NOTHING, _ITS_PARTITIONS)),
    "auto_rebalance": EventType(leaders.auto_rebalance, scope.everything),
    "auto_unclean_election": EventType(leaders.auto_unclean_election, scope.nothing_else),
    "reassign": EventType(topics.reassign, _ITS_PARTITIONS),
    "cancel_reassignment": EventType(topics.cancel_reassignment, _ITS_PARTITIONS),
    "topic_change": EventType(topics.topic_change, _ITS_TOPICS),
    "partition_change": EventType(topics.partition_change, _named(scope.its_topic)),
    "delete_topics": EventType(topics.delete_topics, _ITS_TOPICS),
}


scope_of: Final = partial(scope.of_events, EVENTS)


def always_touched(partition: Mapping[str, Any]) -> bool:
    """Whether a row of ``partitions`` is needed whatever happens.

    A broker that returns is tried on every leaderless partition.
    """
    return partition["leader"] in (None, NO_LEADER)
