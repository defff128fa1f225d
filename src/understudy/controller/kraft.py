"""Profile ``kraft`` (Kafka 3.3 to 4.3): each event as the operations of the quorum controller.

An event is one short function. Adding one means writing it and naming it in ``EVENTS``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from operator import or_
from typing import Any, Final, NamedTuple

from understudy.controller.kraft_alter_partition import IsrReport, alter_partition
from understudy.controller.kraft_brokers import Registration, are_registrable, in_kafka_order
from understudy.controller.kraft_change import Asked
from understudy.controller.kraft_cluster import Cluster
from understudy.controller.kraft_errors import RefusedError
from understudy.controller.kraft_journal import KraftJournal
from understudy.controller.kraft_operation import Operation
from understudy.controller.kraft_partitions import Partition
from understudy.controller.kraft_reassignment import reverted, started, target_size
from understudy.controller.kraft_records import (
    BrokerRegistered,
    BrokerUnregistered,
    PartitionCreated,
    TopicCreated,
    TopicRemoved,
    directories_left,
    entering_controlled_shutdown,
    fencing,
)
from understudy.controller.kraft_topics import (
    MAX_NEW_PARTITIONS,
    check_assignment,
    more_partitions,
    new_topic,
)
from understudy.controller.kraft_words import (
    BROKER_ID_NOT_REGISTERED,
    BY_REQUEST,
    DUPLICATE_BROKER_REGISTRATION,
    INVALID_REGISTRATION,
    INVALID_REPLICATION_FACTOR,
    NOT_LEADER_OR_FOLLOWER,
    POLICY_VIOLATION,
    PREFERRED_ELECTION,
    STALE_BROKER_EPOCH,
    UNCLEAN_ELECTION,
    UNKNOWN_TOPIC_ID,
)
from understudy.controller.records import Ids, TopicPartition, named_partition
from understudy.controller.scope import EVERYTHING, NOTHING, Scope
from understudy.controller.words import (
    ELECTION_NOT_NEEDED,
    ELIGIBLE_LEADERS_NOT_AVAILABLE,
    INVALID_REPLICA_ASSIGNMENT,
    NO_LEADER,
    NO_REASSIGNMENT_IN_PROGRESS,
    PREFERRED_LEADER_NOT_AVAILABLE,
    RECOVERED,
    RECOVERING,
    UNKNOWN_SERVER_ERROR,
    UNKNOWN_TOPIC_OR_PARTITION,
    UNSUPPORTED_VERSION,
)

Event = Mapping[str, Any]
ALL: Final = "all"


class QuorumController:
    """The active controller of a KRaft cluster, driven by events."""

    def __init__(self, cluster: Cluster, journal: KraftJournal) -> None:
        self.cluster = cluster
        self.journal = journal

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

    def operation(self) -> Operation:
        return Operation(self.cluster, self.journal)


def unsupported(controller: QuorumController, event: Event) -> None:  # noqa: ARG001
    """An event that only a controller of the ZooKeeper era knows."""
    controller.journal.refused(UNSUPPORTED_VERSION)


def controller_failover(controller: QuorumController, event: Event) -> None:
    """A new controller replays the log: nothing is written, only its own settings count now."""
    named = event.get("controller")
    if named is not None:
        controller.cluster.controller_id = named
    controller.cluster.followed_shutdowns.clear()


# --- Brokers -----------------------------------------------------------------------------------


def fence(controller: QuorumController, event: Event) -> None:
    for broker_id in event["brokers"]:
        broker = controller.cluster.brokers.get(broker_id)
        if broker is None:
            controller.journal.refused(UNKNOWN_SERVER_ERROR, broker_id)
        else:
            _fence(controller, broker)


def broker_failure(controller: QuorumController, event: Event) -> None:
    """Sessions end, one after the other: each is fenced seeing the one before."""
    for broker_id in event["brokers"]:
        broker = controller.cluster.brokers.get(broker_id)
        if broker is not None and not broker.fenced:
            _fence(controller, broker)


def unfence(controller: QuorumController, event: Event) -> None:
    for broker_id in event["brokers"]:
        broker = controller.cluster.brokers.get(broker_id)
        if broker is None:
            controller.journal.refused(STALE_BROKER_EPOCH, broker_id)
        elif broker.fenced:
            unfence_broker(controller, broker)


def controlled_shutdown(controller: QuorumController, event: Event) -> None:
    broker = controller.cluster.brokers.get(event["broker"])
    if broker is None:
        controller.journal.refused(STALE_BROKER_EPOCH, event["broker"])
        return
    operation = controller.operation()
    _want_shutdown(controller.cluster, operation, broker)
    operation.commit()


def unregister(controller: QuorumController, event: Event) -> None:
    """The broker leaves ISRs and leadership; the replica lists keep its id."""
    cluster = controller.cluster
    for broker_id in event["brokers"]:
        broker = cluster.brokers.get(broker_id)
        if broker is None:
            controller.journal.refused(BROKER_ID_NOT_REGISTERED, broker_id)
            continue
        operation = controller.operation()
        operation.update_leaders(cluster.by_isr.of(broker_id), leaving=broker_id)
        if cluster.rules.looks_into_elr:
            operation.update_leaders(cluster.by_elr.of(broker_id), leaving=broker_id)
        operation.write(BrokerUnregistered(broker_id, broker.epoch))
        _commit_request(controller, operation, broker_id)


def broker_startup(controller: QuorumController, event: Event) -> None:
    """A new incarnation registers, and its heartbeat unfences it."""
    epochs = event.get("epochs") or [None] * len(event["brokers"])
    log_dirs = event.get("log_dirs") or {}
    for broker_id, epoch in zip(event["brokers"], epochs, strict=True):
        error = register(
            controller,
            broker_id,
            epoch,
            log_dirs.get(str(broker_id)),
            is_clean=bool(event.get("clean")),
        )
        if error is None:
            unfence_broker(controller, controller.cluster.brokers[broker_id])
        else:
            controller.journal.refused(error, broker_id)


def log_dir_failure(controller: QuorumController, event: Event) -> None:
    """A heartbeat with offline directories; what it says of the broker itself comes first."""
    cluster = controller.cluster
    if "dirs" not in event:
        unsupported(controller, event)
        return
    broker = cluster.brokers.get(event["broker"])
    if broker is None:
        controller.journal.refused(STALE_BROKER_EPOCH, event["broker"])
        return
    operation = controller.operation()
    if broker.shutting_down and not broker.fenced:
        _want_shutdown(cluster, operation, broker)
    if cluster.rules.has_directories:
        _lose_directories(cluster, operation, broker, event["dirs"])
    operation.commit()


def assign_dirs(controller: QuorumController, event: Event) -> None:
    """Replicas of a broker are in these directories; one that is offline costs the ISR place."""
    cluster, journal = controller.cluster, controller.journal
    if not cluster.rules.has_directories:
        journal.refused(UNSUPPORTED_VERSION)
        return
    broker = cluster.brokers.get(event["broker"])
    if broker is None:
        journal.refused(STALE_BROKER_EPOCH)
        return
    operation = controller.operation()
    in_offline_directory = []
    errors = {}
    for name, directory in event["partitions"].items():
        tp = named_partition(name)
        error = _assign_directory(cluster, operation, broker, tp, directory)
        if error is not None:
            errors[tp] = error
        elif not broker.has_online(directory):
            in_offline_directory.append(tp)
    operation.update_leaders(in_offline_directory, leaving=broker.broker_id)
    operation.commit()
    for tp, error in errors.items():
        journal.answer(tp, error, broker.broker_id)


def _fence(controller: QuorumController, broker: Registration) -> None:
    operation = controller.operation()
    _fence_in(controller.cluster, operation, broker)
    operation.commit()


def _fence_in(cluster: Cluster, operation: Operation, broker: Registration) -> None:
    operation.update_leaders(cluster.by_isr.of(broker.broker_id), leaving=broker.broker_id)
    operation.write(fencing(broker, cluster.rules, fenced=True))


def unfence_broker(controller: QuorumController, broker: Registration) -> None:
    cluster = controller.cluster
    operation = controller.operation()
    operation.write(fencing(broker, cluster.rules, fenced=False))
    operation.update_leaders(sorted(cluster.leaderless), returning=broker.broker_id)
    operation.commit()


def _want_shutdown(cluster: Cluster, operation: Operation, broker: Registration) -> None:
    """A heartbeat that wants to shut down (BrokerHeartbeatManager.calculateNextBrokerState).

    Every active broker has passed the shutdown's offset, so only leaderships hold it up.
    """
    broker_id = broker.broker_id
    if broker.fenced or not cluster.leads_something(broker_id):
        _fence_in(cluster, operation, broker)
    elif broker_id not in cluster.followed_shutdowns:
        cluster.followed_shutdowns.add(broker_id)
        if cluster.rules.records_controlled_shutdown and not broker.shutting_down:
            operation.write(entering_controlled_shutdown(broker))
        operation.update_leaders(cluster.by_isr.of(broker_id), leaving=broker_id)


def register(
    controller: QuorumController,
    broker_id: int,
    epoch: int | None,
    log_dirs: list[str] | None,
    *,
    is_clean: bool,
) -> str | None:
    """Register a new incarnation of a broker; Kafka's error, or None when it is accepted."""
    cluster = controller.cluster
    known = cluster.brokers.get(broker_id)
    if known is not None and not known.fenced:
        return DUPLICATE_BROKER_REGISTRATION
    directories: Iterable[str] = ()
    if cluster.rules.has_directories:
        directories = (known.directories if known else ()) if log_dirs is None else log_dirs
        if not are_registrable(tuple(directories), broker_id, cluster.brokers.values()):
            return INVALID_REGISTRATION
    operation = controller.operation()
    if cluster.rules.registration_cleans_isr:
        if cluster.rules.elr and not (is_clean and known is not None):
            for index in (cluster.by_isr, cluster.by_elr):
                operation.update_leaders(index.of(broker_id), unclean_shutdown=broker_id)
        else:
            operation.update_leaders(cluster.by_isr.of(broker_id), leaving=broker_id)
    operation.write(
        BrokerRegistered(
            Registration(
                broker_id,
                cluster.newest_broker_epoch + 1 if epoch is None else epoch,
                fenced=True,
                shutting_down=False,
                rack=known.rack if known else None,
                directories=in_kafka_order(directories),
            )
        )
    )
    operation.commit()
    return None


def _lose_directories(
    cluster: Cluster, operation: Operation, broker: Registration, offline: list[str]
) -> None:
    lost = [d for d in offline if d in broker.directories]
    if not cluster.directories_left_behind.isdisjoint(lost):
        raise RefusedError(UNKNOWN_SERVER_ERROR)  # Kafka looks for the partition that is gone
    for directory in lost:
        operation.update_leaders(cluster.by_directory.of(directory), leaving=broker.broker_id)
    if lost:
        online = tuple(d for d in broker.directories if d not in lost)
        operation.write(directories_left(broker, online))


def _assign_directory(
    cluster: Cluster, operation: Operation, broker: Registration, tp: TopicPartition, directory: str
) -> str | None:
    if tp[0] not in cluster.topics:
        return UNKNOWN_TOPIC_ID
    partition = cluster.get(tp)
    if partition is None:
        return UNKNOWN_TOPIC_OR_PARTITION
    if broker.broker_id not in partition.replicas:
        return NOT_LEADER_OR_FOLLOWER
    operation.change(
        tp,
        partition,
        Asked(directory=(broker.broker_id, directory)),
        keep_elr=cluster.rules.keeps_elr_on_directory_assignment,
    )
    return None


# --- ISR changes -------------------------------------------------------------------------------


def isr_change(controller: QuorumController, event: Event) -> None:
    """The leader, or whoever sends it in its place, reports an ISR."""
    cluster = controller.cluster
    tp = named_partition(event["partition"])
    partition = cluster.get(tp)
    leader = NO_LEADER if partition is None else partition.leader
    sender = event.get("sender", leader)
    if sender not in cluster.brokers:
        controller.journal.refused(STALE_BROKER_EPOCH)
        return
    recovery = event.get("recovery", RECOVERED)
    if recovery not in (RECOVERED, RECOVERING):
        controller.journal.refused(UNKNOWN_SERVER_ERROR)
        return
    epochs = {int(b): epoch for b, epoch in (event.get("broker_epochs") or {}).items()}
    report = IsrReport(
        tuple(event["isr"]),
        event.get("leader_epoch"),
        event.get("partition_epoch"),
        recovery,
        epochs,
    )
    _alter_partitions(controller, sender, {tp: report})


def catch_up(controller: QuorumController, event: Event) -> None:
    """Every active replica on these brokers joins the ISRs; one report for each leader."""
    cluster = controller.cluster
    reports: dict[int, dict[TopicPartition, IsrReport]] = {}
    for tp, partition in cluster.all_partitions():
        joining = tuple(b for b in event["brokers"] if _can_join(cluster, b, partition))
        leader = partition.leader
        if joining and cluster.why_may_not_lead(leader, partition) is None:
            reports.setdefault(leader, {})[tp] = IsrReport((*partition.isr, *joining))
    for leader in sorted(reports):
        _alter_partitions(controller, leader, reports[leader])


def _can_join(cluster: Cluster, broker_id: int, partition: Partition) -> bool:
    return (
        broker_id in partition.replicas
        and broker_id not in partition.isr
        and cluster.why_may_not_lead(broker_id, partition) is None
    )


def _alter_partitions(
    controller: QuorumController, sender: int, reports: Mapping[TopicPartition, IsrReport]
) -> None:
    operation = controller.operation()
    errors = {
        tp: alter_partition(controller.cluster, operation, sender, tp, report)
        for tp, report in reports.items()
    }
    operation.commit()
    for tp, error in errors.items():
        if error is not None:
            controller.journal.answer(tp, error)


# --- Elections ---------------------------------------------------------------------------------


def preferred_election(controller: QuorumController, event: Event) -> None:
    _elect_leaders(controller, event["partitions"], _elect_preferred)


def unclean_election(controller: QuorumController, event: Event) -> None:
    """The request overrules the topic's setting, in every release."""
    _elect_leaders(controller, event["partitions"], _elect_unclean)


def auto_rebalance(controller: QuorumController, event: Event) -> None:  # noqa: ARG001
    """The periodic task: every partition that its preferred replica does not lead.

    Kafka stops after 1000 records and goes on at once; the partitions do not depend on each other.
    """
    operation = controller.operation()
    for tp, partition in controller.cluster.all_partitions():
        _elect_preferred(operation, tp, partition)
    operation.commit()


def auto_unclean_election(controller: QuorumController, event: Event) -> None:  # noqa: ARG001
    """The periodic task: leaderless partitions of topics that allow unclean elections."""
    cluster = controller.cluster
    if not cluster.rules.has_unclean_task:
        return
    operation = controller.operation()
    for tp in sorted(cluster.leaderless):
        if cluster.unclean_allowed_by(tp[0]) is not None:
            asked = operation.as_topic_allows(tp[0], Asked())
            operation.change(tp, cluster.topics[tp[0]][tp[1]], asked)
    operation.commit()


_Elect = Callable[[Operation, TopicPartition, Partition], str | None]


def _elect_leaders(controller: QuorumController, wanted: str | list[str], elect: _Elect) -> None:
    """One ElectLeaders request; asked for all, it is silent where no election was needed."""
    cluster = controller.cluster
    operation = controller.operation()
    if wanted == ALL:
        asked: list[TopicPartition] = [tp for tp, _ in cluster.all_partitions()]
    else:
        asked = [named_partition(name) for name in wanted]
    answers = []
    for tp in asked:
        partition = cluster.get(tp)
        error: str | None = UNKNOWN_TOPIC_OR_PARTITION
        if partition is not None:
            error = elect(operation, tp, partition)
        if wanted != ALL or error != ELECTION_NOT_NEEDED:
            answers.append((tp, error))
    if _commit_request(controller, operation):
        for tp, error in answers:
            controller.journal.answer(tp, error)


def _elect_preferred(operation: Operation, tp: TopicPartition, partition: Partition) -> str | None:
    if partition.leader == partition.preferred:
        return ELECTION_NOT_NEEDED
    change = operation.change(tp, partition, Asked(election=PREFERRED_ELECTION))
    return None if change else PREFERRED_LEADER_NOT_AVAILABLE


def _elect_unclean(operation: Operation, tp: TopicPartition, partition: Partition) -> str | None:
    if partition.leader != NO_LEADER:
        return ELECTION_NOT_NEEDED
    asked = Asked(election=UNCLEAN_ELECTION, unclean_allowed_by=BY_REQUEST)
    return None if operation.change(tp, partition, asked) else ELIGIBLE_LEADERS_NOT_AVAILABLE


# --- Reassignments -----------------------------------------------------------------------------


def reassign(controller: QuorumController, event: Event) -> None:
    may_change_size = event.get("allow_replication_factor_change")
    operation = controller.operation()
    for name, target in event["partitions"].items():
        tp = named_partition(name)
        error = None
        try:
            _reassign(
                controller.cluster,
                operation,
                tp,
                tuple(target),
                keeps_size=may_change_size is False,
            )
        except RefusedError as refused:
            error = refused.error
        controller.journal.answer(tp, error)
    operation.commit()


def cancel_reassignment(controller: QuorumController, event: Event) -> None:
    operation = controller.operation()
    for name in event["partitions"]:
        tp = named_partition(name)
        error = None
        try:
            _cancel(controller.cluster, operation, tp)
        except RefusedError as refused:
            error = refused.error
        controller.journal.answer(tp, error)
    operation.commit()


def _reassign(
    cluster: Cluster, operation: Operation, tp: TopicPartition, target: Ids, *, keeps_size: bool
) -> None:
    partition = _existing(cluster, tp)
    check_assignment(cluster, target)
    if keeps_size and cluster.rules.checks_replication_factor:  # noqa: SIM102 - two questions
        if len(target) != target_size(partition):
            raise RefusedError(INVALID_REPLICATION_FACTOR)
    operation.change(tp, partition, Asked(lists=started(partition, target)))


def _cancel(cluster: Cluster, operation: Operation, tp: TopicPartition) -> None:
    partition = _existing(cluster, tp)
    if not partition.is_reassigning:
        raise RefusedError(NO_REASSIGNMENT_IN_PROGRESS)
    lists, is_unclean = reverted(partition)
    if is_unclean and cluster.unclean_allowed_by(tp[0]) is None:
        raise RefusedError(INVALID_REPLICA_ASSIGNMENT)
    operation.change(tp, partition, operation.as_topic_allows(tp[0], Asked(lists=lists)))


def _existing(cluster: Cluster, tp: TopicPartition) -> Partition:
    partition = cluster.get(tp)
    if partition is None:
        raise RefusedError(UNKNOWN_TOPIC_OR_PARTITION)
    return partition


# --- Topics ------------------------------------------------------------------------------------


def topic_change(controller: QuorumController, event: Event) -> None:
    """Topics vanish, then others appear with given assignments: one request for each half."""
    _delete(controller, event.get("removed") or ())
    cluster = controller.cluster
    topics = event.get("topics") or {}
    wanted = sum(map(len, topics.values()))
    if wanted > MAX_NEW_PARTITIONS and cluster.rules.limits_new_partitions:
        controller.journal.refused(POLICY_VIOLATION)
        return
    operation = controller.operation()
    errors = {}
    for topic, assignments in topics.items():
        by_number = {int(number): tuple(replicas) for number, replicas in assignments.items()}
        try:
            partitions = new_topic(cluster, topic, by_number)
        except RefusedError as refused:
            errors[topic] = refused.error
            continue
        operation.write(TopicCreated(topic))
        for number, partition in enumerate(partitions):
            operation.write(PartitionCreated((topic, number), partition))
    if _commit_request(controller, operation):
        for topic, error in errors.items():
            controller.journal.refused_topic(topic, error)


def partition_change(controller: QuorumController, event: Event) -> None:
    operation = controller.operation()
    topic = event["topic"]
    in_order = sorted(event["partitions"].items(), key=lambda item: int(item[0]))
    try:
        added = more_partitions(controller.cluster, topic, [tuple(r) for _, r in in_order])
    except RefusedError as refused:
        controller.journal.refused_topic(topic, refused.error)
        return
    for number, partition in added:
        operation.write(PartitionCreated((topic, number), partition))
    operation.commit()


def delete_topics(controller: QuorumController, event: Event) -> None:
    _delete(controller, event["topics"])


def _delete(controller: QuorumController, topics: Iterable[str]) -> None:
    """At once and whole: no queue, whatever is offline or being reassigned."""
    operation = controller.operation()
    for topic in dict.fromkeys(topics):
        if topic in controller.cluster.topics:
            operation.write(TopicRemoved(topic))
        else:
            controller.journal.refused_topic(topic, UNKNOWN_TOPIC_OR_PARTITION)
    operation.commit()


def _commit_request(
    controller: QuorumController, operation: Operation, broker_id: int | None = None
) -> bool:
    """Write what a user's request wants, unless it is too much for one batch of the log."""
    if operation.is_too_large and controller.cluster.rules.limits_requests:
        controller.journal.refused(POLICY_VIOLATION, broker_id)
        return False
    operation.commit()
    return True


# --- All of them -------------------------------------------------------------------------------


class EventType(NamedTuple):
    run: Callable[[QuorumController, Event], None]
    scope: Callable[[Event], Scope]


def _everything(_event: Event) -> Scope:
    return EVERYTHING


def _nothing_else(_event: Event) -> Scope:
    """Only what is always touched."""
    return NOTHING


def _its_broker(event: Event) -> Scope:
    return Scope(brokers=frozenset([event["broker"]]))


def _its_brokers(event: Event) -> Scope:
    return Scope(brokers=frozenset(event["brokers"]))


def _its_topic(event: Event) -> Scope:
    return Scope(topics=frozenset([event["topic"]]))


def _its_topics(event: Event) -> Scope:
    return Scope(topics=frozenset((*(event.get("topics") or ()), *(event.get("removed") or ()))))


def _its_partitions(event: Event) -> Scope:
    return Scope(partitions=frozenset(map(named_partition, event["partitions"])))


def _its_partition(event: Event) -> Scope:
    return Scope(partitions=frozenset([named_partition(event["partition"])]))


def _preferred(event: Event) -> Scope:
    return EVERYTHING if event["partitions"] == ALL else _its_partitions(event)


def _leaderless(event: Event) -> Scope:
    return NOTHING if event["partitions"] == ALL else _its_partitions(event)


# A directory belongs to one broker: its failure concerns replicas of that broker only.
EVENTS: Final[dict[str, EventType]] = {
    "controller_failover": EventType(controller_failover, _nothing_else),
    "fence": EventType(fence, _its_brokers),
    "broker_failure": EventType(broker_failure, _its_brokers),
    "unfence": EventType(unfence, _nothing_else),
    "controlled_shutdown": EventType(controlled_shutdown, _its_broker),
    "unregister": EventType(unregister, _its_brokers),
    "broker_startup": EventType(broker_startup, _its_brokers),
    "log_dir_failure": EventType(log_dir_failure, _its_broker),
    "assign_dirs": EventType(assign_dirs, _its_partitions),
    "isr_change": EventType(isr_change, _its_partition),
    "catch_up": EventType(catch_up, _its_brokers),
    "preferred_election": EventType(preferred_election, _preferred),
    "unclean_election": EventType(unclean_election, _leaderless),
    "auto_rebalance": EventType(auto_rebalance, _everything),
    "auto_unclean_election": EventType(auto_unclean_election, _nothing_else),
    "reassign": EventType(reassign, _its_partitions),
    "cancel_reassignment": EventType(cancel_reassignment, _its_partitions),
    "topic_change": EventType(topic_change, _its_topics),
    "partition_change": EventType(partition_change, _its_topic),
    "delete_topics": EventType(delete_topics, _its_topics),
}


def scope_of(events: Iterable[Event]) -> Scope:
    """What a scenario can touch beside what is always touched."""
    known = (event for event in events if event["type"] in EVENTS)
    return reduce(or_, (EVENTS[event["type"]].scope(event) for event in known), NOTHING)


def always_touched(partition: Mapping[str, Any]) -> bool:
    """Whether a row of ``partitions`` is needed whatever happens.

    A broker that returns is tried on every leaderless partition. Partition 0 says that its topic
    is there, and its replicas bound the topic's minimum ISR.
    """
    return partition["leader"] in (None, NO_LEADER) or partition["partition"] == 0
