"""Who is not led by its preferred replica, and whether that is worth an election.

(checkAndTriggerAutoLeaderRebalance, KafkaController 2.4 to 3.9.)
"""

from __future__ import annotations

from collections.abc import Iterator

from understudy.controller import releases
from understudy.controller.elections import elect_preferred_leader
from understudy.controller.group_order import group_order
from understudy.controller.records import TopicPartition
from understudy.controller.zk.context import ControllerContext, EventAbortedError


def unbalanced(context: ControllerContext, percentage: int) -> Iterator[list[TopicPartition]]:
    """For each broker past the ratio, in Kafka's order, the partitions to elect it for.

    The ratio of each broker is taken when its turn comes, after the elections for those before.
    """
    by_preferred: dict[int, list[TopicPartition]] = {}
    for tp, assignment in context.assignments.items():
        if context.is_queued(tp):
            continue
        if not assignment.replicas:
            raise EventAbortedError(tp)
        by_preferred.setdefault(assignment.replicas[0], []).append(tp)
    for broker in group_order(by_preferred):
        partitions = by_preferred[broker]
        elsewhere = [tp for tp in partitions if _is_led_elsewhere(context, tp, broker)]
        if len(elsewhere) / len(partitions) > percentage / 100:
            yield [tp for tp in elsewhere if _is_candidate(context, tp, broker)]


def _is_led_elsewhere(context: ControllerContext, tp: TopicPartition, broker: int) -> bool:
    record = context.leadership.get(tp)
    return record is not None and record.leader != broker


def _is_candidate(context: ControllerContext, tp: TopicPartition, broker: int) -> bool:
    if tp[0] not in context.topics:
        return False
    if context.release < releases.RELEASE_3_4 and context.reassigning:
        return False
    if context.release < releases.RELEASE_2_6:
        return context.is_online(broker, tp)
    replicas = context.replicas(tp)
    online = context.online_among(replicas, tp)
    return elect_preferred_leader(replicas, context.leadership[tp].isr, online) is not None
