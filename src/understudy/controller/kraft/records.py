"""The records the quorum controller writes: what each does to the cluster, and what it shows.

A record is decided on the state before its operation and replayed after it, one after the other.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple, Protocol

from understudy.controller.kraft.brokers import Registration, in_kafka_order
from understudy.controller.kraft.cluster import Cluster
from understudy.controller.kraft.partitions import Directories, Fields, Partition
from understudy.controller.kraft.releases import Rules
from understudy.controller.kraft.words import (
    BROKER_REGISTRATION_CHANGE_RECORD,
    FENCE_BROKER_RECORD,
    PARTITION_CHANGE_RECORD,
    PARTITION_RECORD,
    REGISTER_BROKER_RECORD,
    REMOVE_TOPIC_RECORD,
    TOPIC_RECORD,
    UNFENCE_BROKER_RECORD,
    UNREGISTER_BROKER_RECORD,
)
from understudy.controller.records import TopicPartition

_SHUTDOWN_CHANGE_VERSION: Final = 1
_DIRECTORIES_CHANGE_VERSION: Final = 2


class Shown(NamedTuple):
    """What a row about a record shows; *broker* are the columns after broker_id."""

    record: str
    version: int
    changed: tuple[str, ...] = ()
    topic: str | None = None
    partition_number: int | None = None
    partition: Partition | None = None
    broker_id: int | None = None
    broker: tuple[int | None, bool | None, bool | None, str | None, Directories | None] = (
        None,
    ) * 5


class Record(Protocol):
    def replay(self, cluster: Cluster) -> Shown:
        """Change the cluster, and say what to show."""


# --- Partitions and topics ---------------------------------------------------------------------


@dataclass(frozen=True)
class PartitionChanged:
    tp: TopicPartition
    change: Fields

    def replay(self, cluster: Cluster) -> Shown:
        topic, number = self.tp
        changed = cluster.topics[topic][number].after(self.change)
        cluster.put(self.tp, changed)
        version = cluster.rules.partition_record_version
        return Shown(PARTITION_CHANGE_RECORD, version, tuple(self.change), topic, number, changed)


@dataclass(frozen=True)
class PartitionCreated:
    tp: TopicPartition
    partition: Partition

    def replay(self, cluster: Cluster) -> Shown:
        cluster.put(self.tp, self.partition)
        version = cluster.rules.partition_record_version
        return Shown(PARTITION_RECORD, version, (), *self.tp, self.partition)


@dataclass(frozen=True)
class TopicCreated:
    topic: str

    def replay(self, cluster: Cluster) -> Shown:
        cluster.topics[self.topic] = {}
        return Shown(TOPIC_RECORD, 0, topic=self.topic)


@dataclass(frozen=True)
class TopicRemoved:
    topic: str

    def replay(self, cluster: Cluster) -> Shown:
        cluster.remove_topic(self.topic)
        return Shown(REMOVE_TOPIC_RECORD, 0, topic=self.topic)


# --- Brokers -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class BrokerRegistered:
    broker: Registration

    def replay(self, cluster: Cluster) -> Shown:
        broker = self.broker
        cluster.register(broker)
        # The new incarnation has no shutdown behind it.
        cluster.followed_shutdowns.discard(broker.broker_id)
        return Shown(
            REGISTER_BROKER_RECORD,
            cluster.rules.register_broker_version,
            ("broker_epoch", "fenced", "shutting_down", "rack", "log_dirs"),
            broker_id=broker.broker_id,
            broker=(
                broker.epoch, broker.fenced, broker.shutting_down, broker.rack, broker.directories
            ),
        )  # fmt: skip


@dataclass(frozen=True)
class BrokerUnregistered:
    broker_id: int
    epoch: int

    def replay(self, cluster: Cluster) -> Shown:
        cluster.unregister(self.broker_id)
        return Shown(
            UNREGISTER_BROKER_RECORD,
            0,
            ("broker_epoch",),
            broker_id=self.broker_id,
            broker=(self.epoch, None, None, None, None),
        )


@dataclass(frozen=True)
class BrokerChanged:
    """A change of a registration: fencing, a controlled shutdown or the online directories."""

    record: str
    version: int
    broker: Registration  # as it is before
    fenced: bool | None = None
    shutting_down: bool | None = None
    directories: Directories | None = None

    def replay(self, cluster: Cluster) -> Shown:
        broker_id = self.broker.broker_id
        said: dict[str, Any] = {"fenced": self.fenced, "shutting_down": self.shutting_down}
        # Kafka reads an empty list of directories as no change.
        said["directories"] = self.directories or None
        known = {name: value for name, value in said.items() if value is not None}
        cluster.brokers[broker_id] = replace(cluster.brokers[broker_id], **known)
        if self.fenced:
            cluster.followed_shutdowns.discard(broker_id)
        carried = (
            ("broker_epoch", self.broker.epoch),
            ("fenced", self.fenced),
            ("shutting_down", self.shutting_down),
            ("log_dirs", self.directories),
        )
        return Shown(
            self.record,
            self.version,
            tuple(name for name, value in carried if value is not None),
            broker_id=broker_id,
            broker=(self.broker.epoch, self.fenced, self.shutting_down, None, self.directories),
        )


def fencing(broker: Registration, rules: Rules, *, fenced: bool) -> BrokerChanged:
    """The record that fences or unfences a broker."""
    own = FENCE_BROKER_RECORD if fenced else UNFENCE_BROKER_RECORD
    name = BROKER_REGISTRATION_CHANGE_RECORD if rules.has_registration_changes else own
    return BrokerChanged(name, 0, broker, fenced=fenced)


def entering_controlled_shutdown(broker: Registration) -> BrokerChanged:
    return BrokerChanged(
        BROKER_REGISTRATION_CHANGE_RECORD, _SHUTDOWN_CHANGE_VERSION, broker, shutting_down=True
    )


def directories_left(broker: Registration, online: Directories) -> BrokerChanged:
    return BrokerChanged(
        BROKER_REGISTRATION_CHANGE_RECORD,
        _DIRECTORIES_CHANGE_VERSION,
        broker,
        directories=in_kafka_order(online),
    )
