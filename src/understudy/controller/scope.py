"""What part of a cluster a scenario can touch, so that only that part has to be replayed.

A partition is replayed if the scope of one of the scenario's events names it, or if it is one that
any event may touch (:func:`always_touched`). All others end as they began: replaying without them
gives the same rows in every table, apart from their own state rows. The brokers, the settings and
the queued topics are always needed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any, Final, Generic, NamedTuple, TypeVar

from understudy.controller.records import TopicPartition, named_partition

Event = Mapping[str, Any]
C = TypeVar("C")

ALL: Final = "all"  # in place of a list of partitions


@dataclass(frozen=True)
class Scope:
    brokers: frozenset[int] = frozenset()  # their replicas, what they lead, and where in sync
    topics: frozenset[str] = frozenset()
    partitions: frozenset[TopicPartition] = frozenset()
    everything: bool = False
    first_partitions: bool = False  # of all topics: they show which topics there are

    def __or__(self, other: Scope) -> Scope:
        return Scope(
            self.brokers | other.brokers,
            self.topics | other.topics,
            self.partitions | other.partitions,
            self.everything or other.everything,
            self.first_partitions or other.first_partitions,
        )

    def touches(self, partition: Mapping[str, Any]) -> bool:
        """Whether a row of ``partitions`` is in this scope."""
        return (
            self.everything
            or (self.first_partitions and partition["partition"] == 0)
            or partition["topic"] in self.topics
            or (partition["topic"], partition["partition"]) in self.partitions
            or partition["leader"] in self.brokers
            or not self.brokers.isdisjoint(partition["replicas"])
            or not self.brokers.isdisjoint(partition["isr"] or ())
            or not self.brokers.isdisjoint(partition["elr"] or ())
        )


NOTHING = Scope()
EVERYTHING = Scope(everything=True)


def always_touched(
    partition: Mapping[str, Any], live: Collection[int], queued: Collection[str]
) -> bool:
    """Whether any event may touch a row of ``partitions``.

    Kafka retries new and offline partitions whenever a broker comes or goes, resumes reassignments
    and asks whether there are any, and takes every queued topic up whenever it looks at one.
    *live* are the brokers that are alive and not shutting down.
    """
    leader = partition["leader"]
    return (
        not partition["has_state"]
        or leader not in live
        or leader in partition["offline_dirs"]
        or bool(partition["adding"] or partition["removing"])
        or partition["topic"] in queued
    )


# --- What events can touch ---------------------------------------------------------------------


class EventType(NamedTuple, Generic[C]):
    """What an event makes a controller do, and what part of the cluster that can touch."""

    run: Callable[[C, Event], None]
    scope: Callable[[Event], Scope]


def of_events(known: Mapping[str, EventType[C]], events: Iterable[Event]) -> Scope:
    """What a scenario can touch beside what is always touched."""
    scopes = (known[event["type"]].scope(event) for event in events if event["type"] in known)
    return reduce(or_, scopes, NOTHING)


def everything(_event: Event) -> Scope:
    return EVERYTHING


def nothing_else(_event: Event) -> Scope:
    """Only what is always touched."""
    return NOTHING


def its_broker(event: Event) -> Scope:
    return Scope(brokers=frozenset([event["broker"]]))


def its_brokers(event: Event) -> Scope:
    return Scope(brokers=frozenset(event["brokers"]))


def its_topic(event: Event) -> Scope:
    return Scope(topics=frozenset([event["topic"]]))


def its_topics(event: Event) -> Scope:
    return Scope(topics=frozenset((*(event.get("topics") or ()), *(event.get("removed") or ()))))


def its_partition(event: Event) -> Scope:
    return Scope(partitions=frozenset([named_partition(event["partition"])]))


def its_partitions(event: Event) -> Scope:
    return Scope(partitions=frozenset(map(named_partition, event["partitions"])))


def all_or(every: Scope, named: Callable[[Event], Scope]) -> Callable[[Event], Scope]:
    """*every* where an event asks for all partitions, else those that are *named*."""
    return lambda event: every if event["partitions"] == ALL else named(event)
