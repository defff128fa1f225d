"""What part of a cluster a scenario can touch, so that only that part has to be replayed.

A partition is replayed if the scope of one of the scenario's events names it, or if it is one that
any event may touch (:func:`always_touched`). All others end as they began: replaying without them
gives the same rows in every table, apart from their own state rows. The brokers, the settings and
the queued topics are always needed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from understudy.controller.records import TopicPartition


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
