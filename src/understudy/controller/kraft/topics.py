"""Creating topics and adding partitions to them, with Kafka's refusals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from understudy.controller.kraft.cluster import Cluster
from understudy.controller.kraft.errors import RefusedError
from understudy.controller.kraft.partitions import MIGRATING, Partition
from understudy.controller.kraft.words import (
    INVALID_PARTITIONS,
    TOPIC_ALREADY_EXISTS,
)
from understudy.controller.records import Ids
from understudy.controller.words import (
    INVALID_REPLICA_ASSIGNMENT,
    INVALID_TOPIC_EXCEPTION,
    UNKNOWN_TOPIC_OR_PARTITION,
)

MAX_NEW_PARTITIONS: Final = 10_000
"""More new partitions than this in one CreateTopics request are refused as a whole."""

_FIBONACCI: Final = -7046029254386353131
_MASK_64: Final = 2**64 - 1


def new_topic(cluster: Cluster, topic: str, assignments: Mapping[int, Ids]) -> list[Partition]:
    """The partitions of a topic created with these assignments."""
    if topic in cluster.topics:
        raise RefusedError(TOPIC_ALREADY_EXISTS)
    if _collides(topic, cluster.topics):
        raise RefusedError(INVALID_TOPIC_EXCEPTION)
    numbers = range(len(assignments))
    # Without an assignment Kafka places replicas at random, which no replay can repeat.
    if not assignments or set(assignments) != set(numbers):
        raise RefusedError(INVALID_REPLICA_ASSIGNMENT)
    size = len(assignments[0])
    return [_new_partition(cluster, assignments[number], size) for number in numbers]


def more_partitions(
    cluster: Cluster, topic: str, assignments: Sequence[Ids]
) -> list[tuple[int, Partition]]:
    """The partitions added to a topic; their numbers continue those there are."""
    existing = cluster.topics.get(topic)
    if existing is None:
        raise RefusedError(UNKNOWN_TOPIC_OR_PARTITION)
    if not assignments:
        raise RefusedError(INVALID_PARTITIONS)
    size = len(existing[first_in_hash_order(existing, cluster.room[topic])].replicas)
    return [
        (number, _new_partition(cluster, replicas, size))
        for number, replicas in enumerate(assignments, start=len(existing))
    ]


def check_assignment(cluster: Cluster, replicas: Ids, size: int | None = None) -> None:
    """A list of replicas somebody chose: registered brokers, each once; fenced ones are fine."""
    if (
        not replicas
        or len(set(replicas)) < len(replicas)
        or any(r not in cluster.brokers for r in replicas)
        or size not in (None, len(replicas))
    ):
        raise RefusedError(INVALID_REPLICA_ASSIGNMENT)


def _new_partition(cluster: Cluster, replicas: Ids, size: int) -> Partition:
    check_assignment(cluster, replicas, size)
    isr = tuple(r for r in replicas if cluster.is_active(r))
    if not isr:
        raise RefusedError(INVALID_REPLICA_ASSIGNMENT)
    has_directories = cluster.rules.has_directories
    directories = tuple(
        cluster.default_directory(r) if has_directories else MIGRATING for r in replicas
    )
    return Partition(replicas, directories, isr, leader=isr[0])


def _collides(topic: str, existing: Iterable[str]) -> bool:
    """Whether a topic's metrics could not be told from another's: '.' and '_' are the same."""

    def unified(name: str) -> str:
        return name.replace(".", "_")

    if "_" not in unified(topic):
        return False
    return any(unified(name) == unified(topic) for name in existing)


def first_in_hash_order(numbers: Iterable[int], room: int) -> int:
    """The partition Kafka's TimelineHashMap gives first; CreatePartitions asks it for its size.

    The table doubles once three quarters of what it makes room for outgrow its slots (changing a
    partition makes room for one more, as if it were new). A slot is the highest bits of Knuth's
    multiplicative hash; in a slot the newest stands first.
    """
    known = list(numbers)
    bits = 1
    while room * 3 // 4 >= 1 << bits:
        bits += 1

    def slot(number: int) -> int:
        return ((number * _FIBONACCI) & _MASK_64) >> (64 - bits)

    lowest = min(map(slot, known))
    return next(n for n in reversed(known) if slot(n) == lowest)
