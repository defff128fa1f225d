"""The small values the controller passes around."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

TopicPartition: TypeAlias = tuple[str, int]
Replica: TypeAlias = tuple[TopicPartition, int]
Ids: TypeAlias = tuple[int, ...]


class LeaderAndIsr(NamedTuple):
    """A leadership record: the state znode's content, its version and its writer's epoch."""

    leader: int
    leader_epoch: int
    isr: Ids
    partition_epoch: int  # the znode's version; Kafka called it zkVersion until 3.2
    controller_epoch: int
    recovery: int


class Assignment(NamedTuple):
    """Ordered replicas of a partition; *replicas* includes the adding and the removing ones."""

    replicas: Ids
    adding: Ids = ()
    removing: Ids = ()

    @property
    def target(self) -> Ids:
        return minus(self.replicas, self.removing)

    @property
    def origin(self) -> Ids:
        return minus(self.replicas, self.adding)

    @property
    def is_being_reassigned(self) -> bool:
        return bool(self.adding or self.removing)

    def reassign_to(self, target: Ids) -> Assignment:
        """Kafka's reassignTo: the target first, then what is left of the original replicas."""
        origin = self.origin
        replicas = tuple(dict.fromkeys((*target, *origin)))
        return Assignment(replicas, minus(replicas, origin), minus(replicas, target))

    def without(self, replica: int) -> Assignment:
        return Assignment(
            tuple(r for r in self.replicas if r != replica),
            tuple(r for r in self.adding if r != replica),
            tuple(r for r in self.removing if r != replica),
        )


def named_partition(name: str) -> TopicPartition:
    """The partition written ``topic-0``; the last dash splits."""
    topic, _, partition = name.rpartition("-")
    return topic, int(partition)


def minus(left: Ids, right: Ids) -> Ids:
    """Order-preserving multiset difference, as Scala's ``diff``."""
    left_over = list(right)
    kept = []
    for item in left:
        if item in left_over:
            left_over.remove(item)
        else:
            kept.append(item)
    return tuple(kept)
