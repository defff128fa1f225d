"""Topics come, grow and go, and partitions move to other replicas."""

from __future__ import annotations

from collections.abc import Iterable

from understudy.controller.kraft.change import Asked
from understudy.controller.kraft.cluster import Cluster
from understudy.controller.kraft.controller import Controller
from understudy.controller.kraft.errors import RefusedError
from understudy.controller.kraft.operation import Operation
from understudy.controller.kraft.partitions import Partition
from understudy.controller.kraft.reassignment import reverted, started, target_size
from understudy.controller.kraft.records import PartitionCreated, TopicCreated, TopicRemoved
from understudy.controller.kraft.topics import (
    MAX_NEW_PARTITIONS,
    check_assignment,
    more_partitions,
    new_topic,
)
from understudy.controller.kraft.words import INVALID_REPLICATION_FACTOR, POLICY_VIOLATION
from understudy.controller.records import Ids, TopicPartition, named_partition
from understudy.controller.scope import Event
from understudy.controller.words import (
    INVALID_REPLICA_ASSIGNMENT,
    NO_REASSIGNMENT_IN_PROGRESS,
    UNKNOWN_TOPIC_OR_PARTITION,
)

# --- Reassignments -----------------------------------------------------------------------------


def reassign(controller: Controller, event: Event) -> None:
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


def cancel_reassignment(controller: Controller, event: Event) -> None:
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


def topic_change(controller: Controller, event: Event) -> None:
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
    if controller.commit_request(operation):
        for topic, error in errors.items():
            controller.journal.refused_topic(topic, error)


def partition_change(controller: Controller, event: Event) -> None:
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


def delete_topics(controller: Controller, event: Event) -> None:
    _delete(controller, event["topics"])


def _delete(controller: Controller, topics: Iterable[str]) -> None:
    """At once and whole: no queue, whatever is offline or being reassigned."""
    operation = controller.operation()
    for topic in dict.fromkeys(topics):
        if topic in controller.cluster.topics:
            operation.write(TopicRemoved(topic))
        else:
            controller.journal.refused_topic(topic, UNKNOWN_TOPIC_OR_PARTITION)
    operation.commit()
