"""Leaders report ISRs, and leaders are elected: requests and the controller's periodic tasks."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from understudy.controller.kraft.alter_partition import IsrReport, alter_partition
from understudy.controller.kraft.change import Asked
from understudy.controller.kraft.cluster import Cluster
from understudy.controller.kraft.controller import Controller
from understudy.controller.kraft.operation import Operation
from understudy.controller.kraft.partitions import Partition
from understudy.controller.kraft.words import (
    BY_REQUEST,
    PREFERRED_ELECTION,
    STALE_BROKER_EPOCH,
    UNCLEAN_ELECTION,
)
from understudy.controller.records import TopicPartition, named_partition
from understudy.controller.scope import ALL, Event
from understudy.controller.words import (
    ELECTION_NOT_NEEDED,
    ELIGIBLE_LEADERS_NOT_AVAILABLE,
    NO_LEADER,
    PREFERRED_LEADER_NOT_AVAILABLE,
    RECOVERED,
    RECOVERING,
    UNKNOWN_SERVER_ERROR,
    UNKNOWN_TOPIC_OR_PARTITION,
)

# --- ISR changes -------------------------------------------------------------------------------


def isr_change(controller: Controller, event: Event) -> None:
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


def catch_up(controller: Controller, event: Event) -> None:
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
    controller: Controller, sender: int, reports: Mapping[TopicPartition, IsrReport]
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


def preferred_election(controller: Controller, event: Event) -> None:
    _elect_leaders(controller, event["partitions"], _elect_preferred)


def unclean_election(controller: Controller, event: Event) -> None:
    """The request overrules the topic's setting, in every release."""
    _elect_leaders(controller, event["partitions"], _elect_unclean)


def auto_rebalance(controller: Controller, event: Event) -> None:  # noqa: ARG001
    """The periodic task: every partition that its preferred replica does not lead.

    Kafka stops after 1000 records and goes on at once; the partitions do not depend on each other.
    """
    operation = controller.operation()
    for tp, partition in controller.cluster.all_partitions():
        _elect_preferred(operation, tp, partition)
    operation.commit()


def auto_unclean_election(controller: Controller, event: Event) -> None:  # noqa: ARG001
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


def _elect_leaders(controller: Controller, wanted: str | list[str], elect: _Elect) -> None:
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
    if controller.commit_request(operation):
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
