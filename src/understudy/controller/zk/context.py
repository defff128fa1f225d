"""What the controller holds in memory, and what stands in ZooKeeper beside it.

The cache (``leadership``) and the znodes (``znodes``) are kept apart, because Kafka decides some
things from one and some from the other, and they may differ. The same goes for the assignments in
memory and in the topic znodes, and for the brokers known and registered.

Assignments, leadership and partition states change through the methods here, which keep three
look-ups (by broker, by leader, not online) in step; the look-ups are built when first asked for.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from understudy.controller import releases
from understudy.controller.records import Assignment, Ids, LeaderAndIsr, Replica, TopicPartition
from understudy.controller.states import (
    NEW_PARTITION,
    OFFLINE_PARTITION,
    OFFLINE_REPLICA,
    ONLINE_PARTITION,
    ONLINE_REPLICA,
)
from understudy.controller.words import (
    BROKER_DOWN,
    EPOCH_DURING_DELETE,
    LOG_DIR_OFFLINE,
    NO_EPOCH,
    SHUTTING_DOWN,
)

_Key = TypeVar("_Key", int, str)
_Index = dict[_Key, dict[TopicPartition, None]]  # the inner ones are sets that keep their order

_NOT_ONLINE = frozenset({NEW_PARTITION, OFFLINE_PARTITION})


class EventAbortedError(Exception):
    """Kafka raises here: what was done stays, the rest of the event does not happen."""


@dataclass(frozen=True)
class Broker:
    broker_id: int
    epoch: int | None  # unknown in some forms of snapshot
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
    topics: set[str] = field(default_factory=set)
    assignments: dict[TopicPartition, Assignment] = field(default_factory=dict)
    leadership: dict[TopicPartition, LeaderAndIsr] = field(default_factory=dict)
    partition_states: dict[TopicPartition, str] = field(default_factory=dict)
    replica_states: dict[Replica, str] = field(default_factory=dict)
    reassigning: set[TopicPartition] = field(default_factory=set)
    queued_topics: set[str] = field(default_factory=set)
    deletion_started: set[str] = field(default_factory=set)
    deletion_ineligible: set[str] = field(default_factory=set)
    asked_to_delete: set[Replica] = field(default_factory=set)
    deletion_enabled: bool = True
    unclean: UncleanElection = field(default_factory=UncleanElection)

    # What stands in ZooKeeper.
    znodes: dict[TopicPartition, LeaderAndIsr] = field(default_factory=dict)
    registered: dict[int, Broker] = field(default_factory=dict)
    deletion_requests: set[str] = field(default_factory=set)
    # The topic znodes where they differ from memory; None: the partition is not in there.
    znode_assignments: dict[TopicPartition, Assignment | None] = field(default_factory=dict)

    # Every broker that was ever registered, as far as anybody knows.
    brokers_seen: dict[int, Broker] = field(default_factory=dict)
    highest_broker_epoch: int = 0

    _by_broker: _Index[int] | None = field(default=None, repr=False)
    _by_topic: _Index[str] | None = field(default=None, repr=False)
    _by_leader: _Index[int] | None = field(default=None, repr=False)
    _not_online: dict[TopicPartition, None] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        """ZooKeeper says what memory says, as far as nothing else was said."""
        self.topics |= {topic for topic, _ in self.assignments}
        self.registered = self.registered or dict(self.live)
        self.deletion_requests = self.deletion_requests or set(self.queued_topics)

    @property
    def versions(self) -> releases.RequestVersions:
        return releases.request_versions(self.protocol)

    @property
    def has_recovery_state(self) -> bool:
        return self.protocol >= releases.PROTOCOL_3_2

    # --- Brokers and replicas ----------------------------------------------------------------

    def is_live(self, broker: int) -> bool:
        """Registered and not shutting down."""
        return broker in self.live and broker not in self.shutting_down

    def is_online(self, broker: int, tp: TopicPartition) -> bool:
        """Kafka's isReplicaOnline: does not look at the assignment."""
        return (
            broker in self.live
            and broker not in self.shutting_down
            and tp not in self.offline_dirs.get(broker, ())
        )

    def is_online_or_shutting_down(self, broker: int, tp: TopicPartition) -> bool:
        return broker in self.live and tp not in self.offline_dirs.get(broker, ())

    def online_among(self, brokers: Iterable[int], tp: TopicPartition) -> Ids:
        return tuple([b for b in brokers if self.is_online(b, tp)])

    def offline_among(self, brokers: Iterable[int], tp: TopicPartition) -> Ids:
        return tuple([b for b in brokers if not self.is_online(b, tp)])

    def why_not_online(self, broker: int, tp: TopicPartition) -> str | None:
        """Why a replica is not online, or None when it is."""
        if broker not in self.live:
            return BROKER_DOWN
        if tp in self.offline_dirs.get(broker, ()):
            return LOG_DIR_OFFLINE
        return SHUTTING_DOWN if broker in self.shutting_down else None

    # --- Assignments -------------------------------------------------------------------------

    def assignment(self, tp: TopicPartition) -> Assignment:
        return self.assignments.get(tp) or Assignment(())

    def replicas(self, tp: TopicPartition) -> Ids:
        assignment = self.assignments.get(tp)
        return () if assignment is None else assignment.replicas

    def partitions_of(self, topic: str) -> list[TopicPartition]:
        if self._by_topic is None:
            self._by_topic = {}
            for tp in self.assignments:
                _put(self._by_topic, tp[0], tp)
        return list(self._by_topic.get(topic, ()))

    def partitions_on(self, broker: int) -> list[TopicPartition]:
        """The partitions with a replica on *broker*, whatever its state."""
        if self._by_broker is None:
            self._by_broker = {}
            for tp, assignment in self.assignments.items():
                for replica in assignment.replicas:
                    _put(self._by_broker, replica, tp)
        return list(self._by_broker.get(broker, ()))

    def replicas_on(self, brokers: Iterable[int]) -> list[Replica]:
        return [(tp, broker) for broker in brokers for tp in self.partitions_on(broker)]

    def replicas_of(self, partitions: Iterable[TopicPartition]) -> list[Replica]:
        """Every replica of *partitions*, each once."""
        return [(tp, r) for tp in partitions for r in dict.fromkeys(self.replicas(tp))]

    def assign(self, tp: TopicPartition, assignment: Assignment) -> None:
        """Change an assignment in memory alone."""
        before = self.assignments.get(tp)
        self.assignments[tp] = assignment
        if self._by_topic is not None:
            _put(self._by_topic, tp[0], tp)
        if self._by_broker is not None:
            for replica in () if before is None else before.replicas:
                self._by_broker[replica].pop(tp, None)
            for replica in assignment.replicas:
                _put(self._by_broker, replica, tp)
        if self.znode_assignments.setdefault(tp, before) == assignment:
            del self.znode_assignments[tp]

    def add_partition(self, tp: TopicPartition, assignment: Assignment) -> None:
        """A partition that appears in its topic's znode, and so in memory."""
        self.assign(tp, assignment)
        self.znode_assignments.pop(tp, None)

    def write_assignment(self, tp: TopicPartition, assignment: Assignment) -> None:
        """The topic znode says of *tp* this, and of the topic's other partitions what memory says.

        (updateReplicaAssignmentForPartition writes the whole topic.)
        """
        for each in [each for each in self.znode_assignments if each[0] == tp[0]]:
            del self.znode_assignments[each]
        if self.assignments.get(tp) != assignment:
            self.znode_assignments[tp] = assignment

    def restore_topic_znode(self, topic: str) -> list[TopicPartition]:
        """The topic znode says what memory says, but only of partitions with a state znode."""
        restored = []
        for tp in self.partitions_of(topic):
            if tp in self.znodes:
                restored.append(tp)
                self.znode_assignments.pop(tp, None)
            else:
                self.znode_assignments[tp] = None
        return restored

    def remove_topic(self, topic: str) -> None:
        """Kafka's removeTopic: states, halted deletions and reassignments stay behind."""
        for tp in self.partitions_of(topic):
            for replica in self.assignments.pop(tp).replicas:
                if self._by_broker is not None:
                    self._by_broker[replica].pop(tp, None)
            self._forget_leader(tp)
            self.leadership.pop(tp, None)
        if self._by_topic is not None:
            self._by_topic.pop(topic, None)
        for tp in [each for each in self.znode_assignments if each[0] == topic]:
            del self.znode_assignments[tp]
        self.topics.discard(topic)
        if self.release >= releases.RELEASE_2_7:
            self.queued_topics.discard(topic)
            self.deletion_started.discard(topic)

    # --- Leadership --------------------------------------------------------------------------

    def remember_leadership(self, tp: TopicPartition, record: LeaderAndIsr) -> None:
        """Put a record into the cache."""
        self._forget_leader(tp)
        self.leadership[tp] = record
        if self._by_leader is not None:
            _put(self._by_leader, record.leader, tp)

    def led_by(self, broker: int) -> list[TopicPartition]:
        return list(self._leaders().get(broker, ()))

    def with_offline_leader(self) -> list[TopicPartition]:
        """Kafka's partitionsWithOfflineLeader: also those whose leader is "none"."""
        found = [
            tp for broker, led in self._leaders().items() if not self.is_live(broker) for tp in led
        ]
        for broker, offline in self.offline_dirs.items():
            if self.is_live(broker):
                led = self._leaders().get(broker, {})
                found += [tp for tp in offline if tp in led]
        return sorted(tp for tp in found if not self.is_queued(tp))

    def _leaders(self) -> _Index[int]:
        if self._by_leader is None:
            self._by_leader = {}
            for tp, record in self.leadership.items():
                _put(self._by_leader, record.leader, tp)
        return self._by_leader

    def _forget_leader(self, tp: TopicPartition) -> None:
        record = self.leadership.get(tp)
        if self._by_leader is not None and record is not None:
            self._by_leader[record.leader].pop(tp, None)

    def leader_epoch_to_stop(self, tp: TopicPartition) -> int:
        """The leader epoch a StopReplica carries (Kafka's leaderEpoch(tp))."""
        if self.is_queued(tp):
            return EPOCH_DURING_DELETE
        record = self.leadership.get(tp)
        return NO_EPOCH if record is None else record.leader_epoch

    # --- States ------------------------------------------------------------------------------

    def settled_partition_state(self, tp: TopicPartition) -> str:
        record = self.leadership.get(tp)
        if record is None:
            return NEW_PARTITION
        return ONLINE_PARTITION if self.is_online(record.leader, tp) else OFFLINE_PARTITION

    def settle_partition_states(self) -> None:
        self._not_online = None
        self.partition_states = {tp: self.settled_partition_state(tp) for tp in self.assignments}

    def settle_states(self) -> None:
        """The states a running controller holds when no event is in progress."""
        self.settle_partition_states()
        self.replica_states = {
            (tp, replica): ONLINE_REPLICA if self.is_online(replica, tp) else OFFLINE_REPLICA
            for tp, replica in self.replicas_of(self.assignments)
        }

    def set_partition_state(self, tp: TopicPartition, state: str) -> None:
        self.partition_states[tp] = state
        if self._not_online is not None:
            if state in _NOT_ONLINE:
                self._not_online[tp] = None
            else:
                self._not_online.pop(tp, None)

    def new_and_offline_partitions(self, topic: str | None = None) -> list[TopicPartition]:
        """Those of one topic, or everybody's in order; those of queued topics are left out.

        States outlive the assignment of a topic that vanished, and only a topic's own partitions
        are looked up by their assignment.
        """
        if topic is not None:
            return [
                tp
                for tp in self.partitions_of(topic)
                if self.partition_states[tp] in _NOT_ONLINE and not self.is_queued(tp)
            ]
        if self._not_online is None:
            self._not_online = {
                tp: None for tp, state in self.partition_states.items() if state in _NOT_ONLINE
            }
        return sorted(tp for tp in self._not_online if not self.is_queued(tp))

    def replica_states_of(self, topic: str) -> dict[Replica, str]:
        """The state of every replica of a topic; Kafka raises where one has none."""
        replicas = self.replicas_of(self.partitions_of(topic))
        if any(replica not in self.replica_states for replica in replicas):
            raise EventAbortedError(topic)
        return {replica: self.replica_states[replica] for replica in replicas}

    # --- Topic deletion ----------------------------------------------------------------------

    def is_queued(self, tp: TopicPartition) -> bool:
        return tp[0] in self.queued_topics

    def queue_requested_deletions(self) -> None:
        """What a starting controller finds in ZooKeeper, halted where it has to wait."""
        self.deletion_started = set()
        self.deletion_ineligible = set()
        if not self.deletion_enabled:
            self.deletion_requests = set()
        self.queued_topics = set(self.deletion_requests)
        reassigned = {topic for topic, _ in self.reassigning}
        for topic in self.queued_topics:
            replicas = self.replicas_of(self.partitions_of(topic))
            if topic in reassigned or any(not self.is_online(r, tp) for tp, r in replicas):
                self.deletion_ineligible.add(topic)

    # --- Loading -----------------------------------------------------------------------------

    def load_from_zookeeper(self) -> None:
        """What a new controller reads: all but what only brokers can tell it."""
        self.live = dict(self.registered)
        for tp, assignment in self.znode_assignments.items():
            if assignment is None:
                self.assignments.pop(tp, None)
            else:
                self.assignments[tp] = assignment
        self.znode_assignments = {}
        self.asked_to_delete = set()  # answers go to the controller that asked
        self.leadership = {tp: r for tp, r in self.znodes.items() if tp in self.assignments}
        self._forget_states()
        self.find_reassignments()

    def forget_everything(self) -> None:
        """What a controller that resigns no longer holds; ZooKeeper still does."""
        for tp, assignment in self.assignments.items():
            self.znode_assignments.setdefault(tp, assignment)
        self.assignments = {}
        self.leadership = {}
        self._forget_states()

    def _forget_states(self) -> None:
        self.partition_states = {}
        self.replica_states = {}
        self._by_broker = self._by_topic = self._by_leader = self._not_online = None

    def find_reassignments(self) -> None:
        self.reassigning = {tp for tp, a in self.assignments.items() if a.is_being_reassigned}

    def register(self, broker_id: int, epoch: int) -> None:
        """A broker's znode appears, or appears anew."""
        seen = self.brokers_seen.get(broker_id, Broker(broker_id, epoch))
        broker = Broker(broker_id, epoch, seen.rack, seen.endpoints)
        self.registered[broker_id] = self.brokers_seen[broker_id] = broker
        self.highest_broker_epoch = max(self.highest_broker_epoch, epoch)


def _put(index: _Index[_Key], key: _Key, tp: TopicPartition) -> None:
    index.setdefault(key, {})[tp] = None
