"""AlterPartition: an ISR that a leader asks for, and when it is refused."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from understudy.controller.kraft.change import Asked
from understudy.controller.kraft.cluster import Cluster
from understudy.controller.kraft.operation import Operation
from understudy.controller.kraft.partitions import Partition
from understudy.controller.kraft.words import (
    FENCED_LEADER_EPOCH,
    INVALID_REQUEST,
    NEW_LEADER_ELECTED,
    UNKNOWN_TOPIC_ID,
)
from understudy.controller.records import Ids, TopicPartition
from understudy.controller.words import (
    INELIGIBLE_REPLICA,
    INVALID_UPDATE_VERSION,
    NOT_CONTROLLER,
    RECOVERED,
    RECOVERING,
    UNKNOWN_TOPIC_OR_PARTITION,
)

ANY_BROKER_EPOCH: Final = -1


@dataclass(frozen=True)
class IsrReport:
    """One partition of an AlterPartition request; None = what the controller holds itself."""

    isr: Ids
    leader_epoch: int | None = None
    partition_epoch: int | None = None
    recovery: int = RECOVERED
    broker_epochs: dict[int, int] = field(default_factory=dict)


def alter_partition(
    cluster: Cluster, operation: Operation, sender: int, tp: TopicPartition, report: IsrReport
) -> str | None:
    """Ask for what *sender* reports; Kafka's error, or None when there is none."""
    if tp[0] not in cluster.topics:
        return UNKNOWN_TOPIC_ID
    partition = cluster.get(tp)
    if partition is None:
        return UNKNOWN_TOPIC_OR_PARTITION
    error = _refusal(cluster, sender, partition, report)
    if error is not None:
        return error
    asked = operation.as_topic_allows(tp[0], Asked(isr=report.isr, recovery=report.recovery))
    change = operation.change(tp, partition, asked)
    # The change may complete a reassignment and so move the leader: an error, and yet written.
    return None if change.get("leader", sender) == sender else NEW_LEADER_ELECTED


def _refusal(  # noqa: PLR0911 - Kafka's checks, one after the other
    cluster: Cluster, sender: int, partition: Partition, report: IsrReport
) -> str | None:
    leader_epoch = _or(report.leader_epoch, partition.leader_epoch)
    partition_epoch = _or(report.partition_epoch, partition.partition_epoch)
    if leader_epoch > partition.leader_epoch or partition_epoch > partition.partition_epoch:
        return NOT_CONTROLLER
    if leader_epoch < partition.leader_epoch:
        return FENCED_LEADER_EPOCH
    if sender != partition.leader:
        return INVALID_REQUEST
    if partition_epoch < partition.partition_epoch:
        return INVALID_UPDATE_VERSION
    members = set(report.isr)
    if len(members) < len(report.isr) or not members.issubset(partition.replicas):
        return INVALID_REQUEST
    if partition.leader not in members:
        return INVALID_REQUEST
    if report.recovery == RECOVERING and (len(report.isr) > 1 or partition.recovery == RECOVERED):
        return INVALID_REQUEST
    if any(_is_ineligible(cluster, member, report) for member in report.isr):
        return INELIGIBLE_REPLICA
    return None


def _or(said: int | None, held: int) -> int:
    return held if said is None else said


def _is_ineligible(cluster: Cluster, member: int, report: IsrReport) -> bool:
    if not cluster.is_active(member):
        return True
    said = report.broker_epochs.get(member, ANY_BROKER_EPOCH)
    if said == ANY_BROKER_EPOCH or not cluster.rules.checks_broker_epochs:
        return False
    return said != cluster.brokers[member].epoch
