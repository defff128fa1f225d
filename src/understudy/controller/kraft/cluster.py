"""What the quorum controller holds in memory, with the indexes its events go by.

An event about one broker reads the partitions that name the broker, not the whole cluster.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from understudy.controller.kraft.brokers import Registration, default_directory
from understudy.controller.kraft.partitions import Partition
from understudy.controller.kraft.releases import Rules
from understudy.controller.kraft.words import (
    DEFAULT_MIN_ISR,
    FENCED,
    NOT_ASSIGNED,
    NOT_REGISTERED,
)
from understudy.controller.records import TopicPartition
from understudy.controller.words import LOG_DIR_OFFLINE, NO_LEADER, SHUTTING_DOWN


@dataclass
class Setting:
    """One configuration key at each level; the most specific level that sets it wins."""

    by_topic: dict[str, str] = field(default_factory=dict)
    by_broker: dict[int, str] = field(default_factory=dict)
    cluster: str | None = None
    static: str | None = None

    def effective(self, topic: str, controller_id: int | None) -> tuple[str, str | None]:
        """The level that decides for a topic, and its value; None where no level says anything.

        The broker level is that of the active controller's own node.
        """
        levels = (
            ("topic", self.by_topic.get(topic)),
            ("broker", None if controller_id is None else self.by_broker.get(controller_id)),
            ("cluster", self.cluster),
            ("static", self.static),
        )
        return next(((level, v) for level, v in levels if v is not None), ("default", None))


class Index:
    """Partitions by a key they hold several of: brokers or directories."""

    def __init__(self) -> None:
        self._partitions: dict[Any, set[TopicPartition]] = {}

    def move(self, tp: TopicPartition, before: Collection[Any], after: Collection[Any]) -> None:
        for key in before:
            if key not in after:
                self._partitions[key].discard(tp)
        for key in after:
            if key not in before:
                self._partitions.setdefault(key, set()).add(tp)

    def of(self, key: int | str) -> list[TopicPartition]:
        return sorted(self._partitions.get(key, ()))


class _Keys(NamedTuple):
    isr: Collection[int]
    elr: Collection[int]
    directories: Collection[str]


_NO_KEYS: Final = _Keys((), (), ())


@dataclass
class Cluster:
    rules: Rules
    controller_id: int | None
    unclean: Setting = field(default_factory=Setting)
    min_isr: Setting = field(default_factory=Setting)
    brokers: dict[int, Registration] = field(default_factory=dict)
    topics: dict[str, dict[int, Partition]] = field(default_factory=dict)
    newest_broker_epoch: int = 0
    # Brokers whose controlled shutdown this controller follows; the next one does not know of it.
    followed_shutdowns: set[int] = field(default_factory=set)
    # How many partitions the hash table of a topic has made room for; see kraft_topics.
    room: dict[str, int] = field(default_factory=dict)
    # How many replicas the first partitions have that are not here.
    first_replicas: dict[str, int] = field(default_factory=dict)
    leaderless: set[TopicPartition] = field(default_factory=set)
    by_isr: Index = field(default_factory=Index)
    by_elr: Index = field(default_factory=Index)
    by_directory: Index = field(default_factory=Index)
    directories_left_behind: set[str] = field(default_factory=set)

    # --- brokers ---

    def register(self, broker: Registration) -> None:
        self.brokers[broker.broker_id] = broker
        self.newest_broker_epoch = max(self.newest_broker_epoch, broker.epoch)

    def unregister(self, broker_id: int) -> None:
        del self.brokers[broker_id]
        self.followed_shutdowns.discard(broker_id)

    def is_active(self, broker_id: int) -> bool:
        broker = self.brokers.get(broker_id)
        return broker is not None and broker.is_active

    def default_directory(self, broker_id: int) -> str:
        return default_directory(self.brokers.get(broker_id))

    def why_not_active(self, broker_id: int) -> str | None:
        broker = self.brokers.get(broker_id)
        if broker is None:
            return NOT_REGISTERED
        if broker.fenced:
            return FENCED
        return SHUTTING_DOWN if broker.shutting_down else None

    def why_not_in_online_directory(self, broker_id: int, partition: Partition) -> str | None:
        if not self.rules.checks_directories:
            return None
        if broker_id not in partition.replicas:
            return NOT_ASSIGNED
        directory = partition.directories[partition.replicas.index(broker_id)]
        broker = self.brokers.get(broker_id)
        return None if broker is None or broker.has_online(directory) else LOG_DIR_OFFLINE

    def why_may_not_lead(self, broker_id: int, partition: Partition) -> str | None:
        """Why a broker is no acceptable leader of a partition; None when it is one."""
        inactive = self.why_not_active(broker_id)
        return inactive or self.why_not_in_online_directory(broker_id, partition)

    # --- partitions ---

    def get(self, tp: TopicPartition) -> Partition | None:
        return self.topics.get(tp[0], {}).get(tp[1])

    def all_partitions(self) -> Iterator[tuple[TopicPartition, Partition]]:
        for topic in sorted(self.topics):
            for number, partition in sorted(self.topics[topic].items()):
                yield (topic, number), partition

    def put(self, tp: TopicPartition, partition: Partition) -> None:
        topic = self.topics.setdefault(tp[0], {})
        self.room[tp[0]] = max(self.room.get(tp[0], 0), len(topic) + 1)
        self._reindex(tp, topic.get(tp[1]), partition)
        topic[tp[1]] = partition

    def remove_topic(self, topic: str) -> None:
        """A deleted topic takes its configuration along.

        Kafka forgets the directories of a partition together with its ISR, member by member: where
        the ISR is empty they stay behind, with a partition that is gone.
        """
        for number, partition in self.topics.pop(topic).items():
            self._reindex((topic, number), partition, None)
            if not partition.isr:
                self.directories_left_behind.update(partition.directories)
        self.room.pop(topic, None)
        self.unclean.by_topic.pop(topic, None)
        self.min_isr.by_topic.pop(topic, None)

    def _reindex(self, tp: TopicPartition, old: Partition | None, new: Partition | None) -> None:
        before, after = (
            _NO_KEYS if p is None else _Keys(p.isr, p.elr, p.directories) for p in (old, new)
        )
        for index, left, joined in zip(
            (self.by_isr, self.by_elr, self.by_directory), before, after, strict=True
        ):
            if left != joined:
                index.move(tp, left, joined)
        if new is not None and new.leader == NO_LEADER:
            self.leaderless.add(tp)
        else:
            self.leaderless.discard(tp)

    def leads_something(self, broker_id: int) -> bool:
        """Kafka's BrokersToIsrs.hasLeaderships: a leader outside its own ISR does not count."""
        return any(
            self.topics[topic][number].leader == broker_id
            for topic, number in self.by_isr.of(broker_id)
        )

    # --- settings ---

    def unclean_allowed_by(self, topic: str) -> str | None:
        """The level that allows unclean elections of a topic, or None when they are not allowed.

        The quorum controller reads the setting as Java's Boolean.parseBoolean does: as it stands.
        """
        if not self.rules.honours_unclean_setting:
            return None
        level, value = self.unclean.effective(topic, self.controller_id)
        return level if value is not None and value.lower() == "true" else None

    def effective_min_isr(self, topic: str) -> int:
        """The setting, but never more than partition 0 has replicas."""
        _, value = self.min_isr.effective(topic, self.controller_id)
        wanted = DEFAULT_MIN_ISR if value is None else int(value)
        first = self.topics[topic].get(0)
        replicas = self.first_replicas.get(topic) if first is None else len(first.replicas)
        return wanted if replicas is None else min(wanted, replicas)
