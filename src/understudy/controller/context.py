"""What the controller holds in memory, and ZooKeeper's state znodes beside it.

The cache (``leadership``) and the znodes (``znodes``) are kept apart, because Kafka decides some
things from one and some from the other, and they may differ.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from understudy.controller import releases
from understudy.controller.records import Assignment, Ids, LeaderAndIsr, Replica, TopicPartition
from understudy.controller.words import (
    BROKER_DOWN,
    EPOCH_DURING_DELETE,
    LOG_DIR_OFFLINE,
    NO_EPOCH,
    SHUTTING_DOWN,
)


@dataclass(frozen=True)
class Broker:
    broker_id: int
    epoch: int
    rack: str | None = None
    endpoints: str | None = None


@dataclass
class UncleanElection:
    """``unclean.leader.election.enable`` at each level; the most specific one that is set wins."""

    by_topic: dict[str, bool] = field(default_factory=dict)
    by_broker: dict[int, bool] = field(default_factory=dict)
    cluster: bool | None = None
    static: bool | None = None

    def allowed_by(self, topic: str, controller_id: int | None) -> str | None:
        """The level that allows an unclean election of *topic*, or None when it is not allowed."""
        levels = (
            ("topic", self.by_topic.get(topic)),
            ("broker", None if controller_id is None else self.by_broker.get(controller_id)),
            ("cluster", self.cluster),
            ("static", self.static),
        )
        level, value = next(((n, v) for n, v in levels if v is not None), ("default", False))
        return level if value else None


@dataclass
class ControllerContext:
    release: int
    protocol: int
    controller_id: int | None
    epoch: int
    live: dict[int, Broker] = field(default_factory=dict)  # registered, shutting down or not
    shutting_down: set[int] = field(default_factory=set)
    offline_dirs: dict[int, set[TopicPartition]] = field(default_factory=dict)
    assignments: dict[TopicPartition, Assignment] = field(default_factory=dict)
    leadership: dict[TopicPartition, LeaderAndIsr] = field(default_factory=dict)
    znodes: dict[TopicPartition, LeaderAndIsr] = field(default_factory=dict)
    partition_states: dict[TopicPartition, str] = field(default_factory=dict)
    replica_states: dict[Replica, str] = field(default_factory=dict)
    queued_topics: set[str] = field(default_factory=set)
    unclean: UncleanElection = field(default_factory=UncleanElection)

    @property
    def versions(self) -> releases.RequestVersions:
        return releases.request_versions(self.protocol)

    @property
    def has_recovery_state(self) -> bool:
        return self.protocol >= releases.PROTOCOL_3_2

    def is_queued(self, tp: TopicPartition) -> bool:
        return tp[0] in self.queued_topics

    def is_live(self, broker: int) -> bool:
        """Registered and not shutting down."""
        return broker in self.live and broker not in self.shutting_down

    def is_online(self, broker: int, tp: TopicPartition) -> bool:
        """Kafka's isReplicaOnline: does not look at the assignment."""
        return self.is_live(broker) and tp not in self.offline_dirs.get(broker, ())

    def is_online_or_shutting_down(self, broker: int, tp: TopicPartition) -> bool:
        return broker in self.live and tp not in self.offline_dirs.get(broker, ())

    def online_among(self, brokers: Iterable[int], tp: TopicPartition) -> Ids:
        return tuple(b for b in brokers if self.is_online(b, tp))

    def why_not_online(self, broker: int, tp: TopicPartition) -> str | None:
        """Why a replica is not online, or None when it is."""
        if broker not in self.live:
            return BROKER_DOWN
        if tp in self.offline_dirs.get(broker, ()):
            return LOG_DIR_OFFLINE
        return SHUTTING_DOWN if broker in self.shutting_down else None

    def replicas(self, tp: TopicPartition) -> Ids:
        assignment = self.assignments.get(tp)
        return () if assignment is None else assignment.replicas

    def leader_epoch_to_stop(self, tp: TopicPartition) -> int:
        """The leader epoch a StopReplica carries (Kafka's leaderEpoch(tp))."""
        if self.is_queued(tp):
            return EPOCH_DURING_DELETE
        record = self.leadership.get(tp)
        return NO_EPOCH if record is None else record.leader_epoch
