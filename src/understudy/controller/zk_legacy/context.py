"""What the legacy controller holds in memory, and ZooKeeper beside it.

Both matter: some things are decided from the cache and some from the znodes, they may differ for
long, and a failover starts from the znodes alone. There are no adding or removing replicas in this
age: a reassignment is a target in a znode of its own (KafkaController, Kafka 0.9 to 1.0).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from understudy.controller import releases
from understudy.controller.records import Ids, LeaderAndIsr, Replica, TopicPartition
from understudy.controller.words import (
    BROKER_DOWN,
    DELETION_SETTING,
    LOG_DIR_OFFLINE,
    SHUTTING_DOWN,
    UNCLEAN_SETTING,
)
from understudy.controller.zk_legacy.order import SMALL_SET, broker_set, replica_set
from understudy.controller.zk_legacy.releases import LegacyRules


class KafkaError(Exception):
    """What Kafka would throw. A machine ends one element with it; elsewhere the event ends."""


@dataclass(frozen=True)
class Endpoints:
    """What an UpdateMetadata says of a live broker."""

    rack: str | None = None
    endpoints: str | None = None


class Settings:
    """Booleans by level: the topic's own, the controller's broker's, the cluster's, the file's."""

    def __init__(self, configs: Iterable[Mapping[str, Any]]) -> None:
        self._values = {
            (row["scope"], row["name"], row["key"]): row["value"].strip().lower() == "true"
            for row in configs
            if row["key"] in (UNCLEAN_SETTING, DELETION_SETTING)
        }

    def level_that_sets(
        self, key: str, controller_id: int | None, topic: str | None = None
    ) -> tuple[str, bool] | None:
        """The most specific level that says something, and what it says."""
        scopes = (
            ("topic", topic),
            ("broker", str(controller_id)),
            ("cluster", None),
            ("static", None),
        )
        for scope, name in scopes:
            value = self._values.get((scope, name, key))
            if value is not None:
                return scope, value
        return None

    def set_for_topic(self, key: str, topic: str, *, value: bool) -> None:
        self._values[("topic", topic, key)] = value

    def forget_topic(self, topic: str) -> None:
        self._values = {k: v for k, v in self._values.items() if k[:2] != ("topic", topic)}


@dataclass
class ZooKeeper:
    """The znodes a legacy controller reads and writes."""

    topics: dict[str, dict[int, Ids]] = field(default_factory=dict)
    states: dict[TopicPartition, LeaderAndIsr] = field(default_factory=dict)
    delete_requests: set[str] = field(default_factory=set)
    reassignments: dict[TopicPartition, Ids] = field(default_factory=dict)

    def remove_topic(self, topic: str) -> None:
        self.topics.pop(topic, None)
        self.states = {tp: state for tp, state in self.states.items() if tp[0] != topic}


@dataclass
class LegacyContext:
    rules: LegacyRules
    protocol: int
    controller_id: int | None
    epoch: int
    settings: Settings
    zookeeper: ZooKeeper
    known_brokers: dict[int, Endpoints] = field(default_factory=dict)  # registered or not
    live: dict[int, Endpoints] = field(default_factory=dict)  # registered, shutting down or not
    shutting_down: set[int] = field(default_factory=set)
    offline_dirs: dict[int, set[TopicPartition]] = field(default_factory=dict)
    topics: set[str] = field(default_factory=set)
    watched_topics: set[str] = field(default_factory=set)
    assignments: dict[TopicPartition, Ids] = field(default_factory=dict)
    leadership: dict[TopicPartition, LeaderAndIsr] = field(default_factory=dict)
    reassigning: dict[TopicPartition, Ids] = field(default_factory=dict)
    partition_states: dict[TopicPartition, str] = field(default_factory=dict)
    replica_states: dict[Replica, str] = field(default_factory=dict)
    queued_topics: set[str] = field(default_factory=set)
    queued_partitions: set[TopicPartition] = field(default_factory=set)
    """Fixed when a topic is queued: partitions that come later are not among them."""
    ineligible_topics: set[str] = field(default_factory=set)

    @property
    def versions(self) -> releases.RequestVersions:
        return releases.request_versions(self.protocol)

    @property
    def deletes_topics(self) -> bool:
        found = self.settings.level_that_sets(DELETION_SETTING, self.controller_id)
        return self.rules.delete_by_default if found is None else found[1]

    def unclean_allowed_by(self, topic: str) -> str | None:
        """The level that allows an unclean election of *topic*, or None when it is not allowed."""
        found = self.settings.level_that_sets(UNCLEAN_SETTING, self.controller_id, topic)
        level, allowed = found or ("default", self.rules.unclean_by_default)
        return level if allowed else None

    def is_queued(self, tp: TopicPartition) -> bool:
        return tp[0] in self.queued_topics

    def is_live(self, broker: int) -> bool:
        """Registered and not shutting down."""
        return broker in self.live and broker not in self.shutting_down

    def is_online(self, broker: int, tp: TopicPartition) -> bool:
        """Kafka's isReplicaOnline: does not look at the assignment."""
        return self.is_live(broker) and self.is_online_or_shutting_down(broker, tp)

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

    def assigned(self, tp: TopicPartition) -> Ids:
        """The replicas of a partition; the controller stumbles over a partition without them."""
        if tp not in self.assignments:
            raise KafkaError(f"no assignment of {tp[0]}-{tp[1]}")
        return self.assignments[tp]

    def partitions_of(self, topic: str) -> list[TopicPartition]:
        return sorted(tp for tp in self.assignments if tp[0] == topic)

    def replicas_of(self, topic: str) -> list[Replica]:
        return [
            (tp, broker)
            for tp in self.partitions_of(topic)
            for broker in dict.fromkeys(self.assignments[tp])
        ]

    def replicas_on(self, brokers: Iterable[int]) -> list[Replica]:
        """The replicas assigned to *brokers*, in the order Kafka's set of them is walked."""
        walked = broker_set(brokers)
        return self._replicas_on(walked, hashed=len(walked) > SMALL_SET)

    def live_replicas(self) -> list[Replica]:
        """All replicas that are online (Kafka's allLiveReplicas)."""
        registered = broker_set(sorted(self.live, key=str))  # znode names are sorted as text
        walked = tuple(b for b in registered if b not in self.shutting_down)
        found = self._replicas_on(walked, hashed=len(registered) > SMALL_SET)
        return [(tp, broker) for tp, broker in found if self.is_online(broker, tp)]

    def _replicas_on(self, walked: Ids, *, hashed: bool) -> list[Replica]:
        by_partition = sorted(self.assignments.items())
        found = (
            (tp, broker) for broker in walked for tp, replicas in by_partition if broker in replicas
        )
        return replica_set(found, hashed=hashed)
