"""A controller failover decided for whole snapshots at once, as Spark column expressions.

Most partitions of a cluster are healthy: every replica online, a leader that is online, no offline
directory, neither queued for deletion nor being reassigned. The failover re-sends their record and
changes nothing. Only the others, the *touched* ones, go through ISR removal and election; they are
decided once and kept.

The steps follow Kafka's onControllerFailover: the empty UpdateMetadata, the replica machine's
online call, its offline call, the partition machine's call.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from understudy.controller.native import bodies, tables
from understudy.controller.native.clusters import TopicExceptions, about_cluster
from understudy.controller.native.decided import (
    Decided,
    kept_apart,
    with_liveness,
    with_removals,
)
from understudy.controller.native.electing import OFFLINE_ELECTION, with_election
from understudy.controller.states import (
    DELETION_INELIGIBLE,
    NEW_PARTITION,
    OFFLINE_PARTITION,
    OFFLINE_REPLICA,
    ONLINE_PARTITION,
    ONLINE_REPLICA,
)
from understudy.controller.words import NO_LEADER
from understudy.controller.zk.events import FAILOVER
from understudy.names import SNAPSHOT_KEY, TOPIC_KEY
from understudy.schemas import PARTITIONS
from understudy.sql import NO_IDS, Rows, null, text

# Cheap to test, since it runs over every partition: a few comparisons with short lists.
_HEALTHY: Final = """
    has_state AND NOT queued AND size(offline_dirs) + size(adding) + size(removing) = 0
    AND NOT array_contains(not_live, leader)
    AND NOT arrays_overlap(replicas, not_live)
"""

# What the new controller takes up again after both machines have started is not decided here.
_IS_FINISHED: Final = "NOT queued AND size(adding) + size(removing) = 0"

_NOT_ONLINE: Final = f"IF(superseded, {text(DELETION_INELIGIBLE)}, {text(OFFLINE_REPLICA)})"


def decide(
    partitions: Rows, facts: Rows, exceptions: TopicExceptions, *, changed_only: bool
) -> Decided:
    """Split the partitions of every scenario and decide the touched ones, which are kept.

    *facts* is small enough to broadcast.
    """
    marked, queued = exceptions.find_queued(partitions)
    about = facts.select(f"* EXCEPT ({', '.join(SNAPSHOT_KEY)})", "f.cluster_number")
    known = about_cluster(marked, about).select(
        *SNAPSHOT_KEY,
        "scenario",
        *(name for name in PARTITIONS.names if name not in {*SNAPSHOT_KEY, "offline_dirs"}),
        f"IF(forget, {NO_IDS}, offline_dirs) AS offline_dirs",
        f"{queued} AS queued",
        "not_live",
        "unreachable",
        "offline_order",
        "f",
    )
    kept, touched = kept_apart(
        known.where(f"NOT ({_HEALTHY})")
        .compiled_apart()  # what decides them is long, and finding them has to be compiled
        .join(exceptions.overrides, TOPIC_KEY, "LEFT")
        .transform(with_liveness, "offline_order")
        .transform(_with_removed)
        .transform(with_removals, "old", "shrunk")
        .transform(_with_first_state)
        .transform(with_election, "shrunk")
        .transform(_with_end)
        .transform(bodies.of_failover),
        facts,
    )
    first = facts.select("f.number AS number", "f.step_first AS step")
    return Decided(
        event_type=FAILOVER,
        healthy=known.where(_HEALTHY),
        kept=kept,
        touched=touched,
        is_shown=_IS_FINISHED,
        changed_only=changed_only,
        facts=facts,
        told_nothing=first.union(bodies.of_never_led(touched, "old")),
        replica_before=null("STRING"),
        replica_after=f"IF(array_contains(online, replica), {text(ONLINE_REPLICA)}, {_NOT_ONLINE})",
        election=OFFLINE_ELECTION,
        transitions=(
            partial(tables.goes_online, replicas="online", from_state=text(ONLINE_REPLICA)),
            partial(tables.goes_offline, from_state=text(DELETION_INELIGIBLE)),
            tables.gets_a_leader,
        ),
        writes=(tables.shrunk_records, tables.records_with_leaders),
    )


def _with_removed(known: Rows) -> Rows:
    """The replicas of the offline call, in the order of their broker groups."""
    offline = "array_except(replicas, online)"
    return known.select("*", f"array_intersect(offline_order, {offline}) AS removed")


def _with_first_state(known: Rows) -> Rows:
    """The partition machine's first states, and whether it will try for a leader."""
    is_online = f"shrunk.leader != {NO_LEADER} AND NOT array_contains(not_online, shrunk.leader)"
    state = f"""CASE
        WHEN old IS NULL THEN {text(NEW_PARTITION)}
        WHEN {is_online} THEN {text(ONLINE_PARTITION)}
        ELSE {text(OFFLINE_PARTITION)} END"""
    return known.select("*", f"{state} AS first_state").select(
        "*", f"NOT queued AND first_state != {text(ONLINE_PARTITION)} AS tried"
    )


def _with_end(known: Rows) -> Rows:
    """A new controller had no states before."""
    return known.select(
        "*",
        "CAST(NULL AS STRING) AS state_before",
        f"IF(led, {text(ONLINE_PARTITION)}, first_state) AS state_after",
        "risen AS new",
    ).drop("first_state", "offline_order")
