"""The legacy leader selectors: who leads, with which ISR, and who is told.

They elect as later controllers do, so the elections themselves are theirs. What is legacy is who is
told, that a preferred leader in office is left alone, and the controlled shutdown of Kafka 0.9
(PartitionLeaderSelector, Kafka 0.9 to 1.0).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from understudy.controller import elections
from understudy.controller.elections import Elected
from understudy.controller.records import Ids, LeaderAndIsr, TopicPartition
from understudy.controller.words import (
    CHOSEN,
    CONTROLLED_SHUTDOWN_STRATEGY,
    FIRST_IN_SYNC,
    FIRST_ONLINE_UNCLEAN,
    NO_REPLICA_ONLINE,
    NO_TARGET_IN_SYNC,
    NONE_STAYING_IN_SYNC,
    NOT_IN_ISR,
    NOT_TRIED,
    OFFLINE_STRATEGY,
    PREFERRED_IN_SYNC,
    PREFERRED_STRATEGY,
    PREFERRED_UNAVAILABLE,
    REASSIGN_STRATEGY,
    STAYING_IN_SYNC,
    STRANGER_IN_ISR,
    TARGET_IN_SYNC,
    UNCLEAN_OFF,
)
from understudy.controller.zk_legacy.context import KafkaError, LegacyContext

ALREADY_LEADS: Final = "the preferred replica leads already: nothing is written or sent"


class Selected(NamedTuple):
    """What a selector decided, and why; nobody *elected* means that nobody may lead."""

    strategy: str
    elected: Elected | None
    recipients: Ids
    candidates: tuple[tuple[int, str], ...]
    reason: str
    unclean_allowed_by: str | None = None
    needed: bool = True
    """False: the election is called off, and yet the partition counts as online."""


Selector = Callable[[LegacyContext, TopicPartition, LeaderAndIsr], Selected]


def select_offline_leader(
    context: LegacyContext, tp: TopicPartition, znode: LeaderAndIsr
) -> Selected:
    """OfflinePartitionLeaderSelector: unclean only where no ISR member is online."""
    replicas = context.assigned(tp)
    online = context.online_among((*replicas, *znode.isr), tp)
    stranded = not any(r in online for r in znode.isr)
    unclean_by = context.unclean_allowed_by(tp[0]) if stranded else None
    elected = elections.elect_offline_leader(
        replicas, znode.isr, online, unclean=unclean_by is not None
    )
    if elected is not None:
        reason = FIRST_IN_SYNC if elected.clean else FIRST_ONLINE_UNCLEAN
    elif not stranded:
        reason = STRANGER_IN_ISR
    else:
        reason = UNCLEAN_OFF if any(r in online for r in replicas) else NO_REPLICA_ONLINE
    return Selected(
        OFFLINE_STRATEGY,
        elected,
        recipients=context.online_among(replicas, tp),
        candidates=verdicts(context, tp, replicas, elected),
        reason=reason,
        unclean_allowed_by=unclean_by,
    )


def select_reassigned_leader(
    context: LegacyContext, tp: TopicPartition, znode: LeaderAndIsr
) -> Selected:
    """ReassignedPartitionLeaderSelector: among the target, which is told, online or not."""
    if tp not in context.reassigning:
        raise KafkaError(f"{tp[0]}-{tp[1]} is not being reassigned")
    target = context.reassigning[tp]
    elected = elections.elect_reassigned_leader(target, znode.isr, context.online_among(target, tp))
    return Selected(
        REASSIGN_STRATEGY,
        elected,
        recipients=target,
        candidates=verdicts(context, tp, target, elected),
        reason=NO_TARGET_IN_SYNC if elected is None else TARGET_IN_SYNC,
    )


def select_preferred_leader(
    context: LegacyContext, tp: TopicPartition, znode: LeaderAndIsr
) -> Selected:
    """PreferredReplicaPartitionLeaderSelector: the *cached* leader tells whether it is needed."""
    replicas = context.assigned(tp)
    cached = context.leadership.get(tp)
    if not replicas or cached is None:
        raise KafkaError(f"{tp[0]}-{tp[1]} has no first replica or no leader")
    preferred = replicas[:1]
    if cached.leader in preferred:
        candidates = ((cached.leader, CHOSEN),)
        return Selected(PREFERRED_STRATEGY, None, (), candidates, ALREADY_LEADS, needed=False)
    elected = elections.elect_preferred_leader(
        replicas, znode.isr, context.online_among(preferred, tp)
    )
    return Selected(
        PREFERRED_STRATEGY,
        elected,
        recipients=replicas,
        candidates=verdicts(context, tp, preferred, elected),
        reason=PREFERRED_UNAVAILABLE if elected is None else PREFERRED_IN_SYNC,
    )


def select_controlled_shutdown_leader(
    context: LegacyContext, tp: TopicPartition, znode: LeaderAndIsr
) -> Selected:
    """ControlledShutdownLeaderSelector: every shutting-down broker leaves the ISR."""
    replicas = context.assigned(tp)
    reachable = tuple(r for r in replicas if context.is_online_or_shutting_down(r, tp))
    if context.rules.shutdown_elects_by_assignment:
        tried = replicas
        elected = elections.elect_controlled_shutdown_leader(
            replicas, znode.isr, reachable, context.shutting_down
        )
    else:
        tried = tuple(r for r in znode.isr if r not in context.shutting_down)
        elected = Elected(tried[0], tried, clean=True) if tried else None
    return Selected(
        CONTROLLED_SHUTDOWN_STRATEGY,
        elected,
        recipients=reachable,
        candidates=verdicts(context, tp, tried, elected),
        reason=NONE_STAYING_IN_SYNC if elected is None else STAYING_IN_SYNC,
    )


def verdicts(
    context: LegacyContext, tp: TopicPartition, tried: Ids, elected: Elected | None
) -> tuple[tuple[int, str], ...]:
    """What became of each candidate, in the order they were tried."""
    given = []
    found = False
    for replica in tried:
        if elected is not None and replica == elected.leader:
            verdict, found = CHOSEN, True
        elif found and elected is not None and elected.clean:
            verdict = NOT_TRIED
        else:
            verdict = context.why_not_online(replica, tp) or NOT_IN_ISR
        given.append((replica, verdict))
    return tuple(given)
