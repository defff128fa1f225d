"""A controller failover decided for whole snapshots at once, as Spark column expressions.

Most partitions of a cluster are healthy: every replica online, a leader that is online, no offline
directory, neither queued for deletion nor being reassigned. The failover re-sends their record and
changes nothing. Only the others, the *touched* ones, go through ISR removal and election; they are
decided once and kept, and every output table reads them from there (``tables``,
``requests``).

The steps follow Kafka's onControllerFailover: the empty UpdateMetadata, the replica machine's
online call, its offline call, the partition machine's call.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from pyspark.sql import DataFrame

from understudy.controller.native.facts import TopicExceptions
from understudy.controller.native.sql import NO_IDS, struct, text
from understudy.controller.records import LeaderAndIsr
from understudy.controller.states import NEW_PARTITION, OFFLINE_PARTITION, ONLINE_PARTITION
from understudy.controller.words import NO_LEADER, RECOVERED, RECOVERING
from understudy.names import PARTITION_KEY, SNAPSHOT_KEY, TOPIC_KEY
from understudy.schemas import PARTITIONS

# Cheap to test, since it runs over every partition: a few comparisons with short lists.
_HEALTHY: Final = """
    has_state AND NOT queued AND size(offline_dirs) + size(adding) + size(removing) = 0
    AND NOT array_contains(not_live, leader)
    AND NOT exists(replicas, r -> array_contains(not_live, r))
"""

# Ends a stage of generated code. What decides the touched partitions is too long for one, and Spark
# would then interpret the whole stage, the filter over every partition included.
_AS_MANY_AS_THERE_ARE: Final = 1_000_000

RECORD: Final = LeaderAndIsr._fields


class Failover(NamedTuple):
    """The two kinds of partitions; each is one row per scenario and partition."""

    healthy: DataFrame
    touched: DataFrame


def decide(partitions: DataFrame, facts: DataFrame, exceptions: TopicExceptions) -> Failover:
    """Split the partitions of every scenario and decide the touched ones.

    *facts* is small enough to broadcast.
    """
    if exceptions.few_queued:
        marked, queued = partitions, "array_contains(queued_topics, topic)"
    else:
        marked, queued = exceptions.mark_queued(partitions), "queued IS NOT NULL"
    known = marked.join(facts.hint("broadcast"), on=list(SNAPSHOT_KEY), how="inner").selectExpr(
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
    overrides = exceptions.topics.selectExpr(*TOPIC_KEY, "unclean_topic")
    touched = (
        known.where(f"NOT ({_HEALTHY})")
        .coalesce(_AS_MANY_AS_THERE_ARE)
        .join(overrides, on=list(TOPIC_KEY), how="left")
        .transform(_with_liveness)
        .transform(_with_removed)
        .transform(_with_removals)
        .transform(_with_record_after_removals)
        .transform(_with_first_state)
        .transform(_with_election)
        .transform(_with_new_record)
    )
    return Failover(healthy=known.where(_HEALTHY), touched=touched)


def _is_online(broker: str) -> str:
    return f"NOT array_contains(not_live, {broker}) AND NOT array_contains(offline_dirs, {broker})"


_CARRIED: Final = (
    *PARTITION_KEY,
    "replicas",
    "adding",
    "removing",
    "offline_dirs",
    "queued",
    "unclean_topic",
    "f",
)


def _with_liveness(known: DataFrame) -> DataFrame:
    """Who is online; ``old`` is the snapshot's record, null if there never was a leader.

    Kafka refuses to touch a *superseded* record, one that a later controller has written.
    """
    record = struct(**{name: name for name in RECORD})
    return known.selectExpr(
        *_CARRIED,
        "not_live",
        "offline_order",
        f"IF(has_state, {record}, NULL) AS old",
        "has_state AND controller_epoch > f.epoch AS superseded",
        f"filter(replicas, r -> {_is_online('r')}) AS online",
        "filter(replicas, r -> NOT array_contains(unreachable, r)) AS reachable",
    )


def _with_removed(known: DataFrame) -> DataFrame:
    """The replicas of the offline call, in the order of their broker groups."""
    offline = "filter(replicas, r -> NOT array_contains(online, r))"
    return known.selectExpr("*", f"array_intersect(offline_order, {offline}) AS removed")


def _with_removals(known: DataFrame) -> DataFrame:
    """Fold the removed replicas into one record after the other (removeReplicasFromIsr).

    Each entry is a removal and the record it left behind. The last ISR member is retained, but the
    epochs rise all the same; a replica outside the ISR changes nothing and is not written.
    """
    in_isr = "array_contains(record.isr, replica)"
    bump = f"CAST({in_isr} AS INT)"
    after = {
        "leader": f"IF({in_isr} AND record.leader = replica, {NO_LEADER}, record.leader)",
        "leader_epoch": f"record.leader_epoch + {bump}",
        "isr": "IF(size(record.isr) = 1, record.isr, filter(record.isr, r -> r != replica))",
        "partition_epoch": f"record.partition_epoch + {bump}",
    }
    removal = struct(
        replica="replica",
        position="CAST(array_position(offline_order, replica) AS INT)",
        stop_epoch="record.leader_epoch",
        wrote=in_isr,
        **after,
    )
    none = (
        "CAST(array() AS ARRAY<STRUCT<replica: INT, position: INT, stop_epoch: INT, wrote: BOOLEAN,"
        " leader: INT, leader_epoch: INT, isr: ARRAY<INT>, partition_epoch: INT>>)"
    )
    start = struct(**{name: f"old.{name}" for name in after}, done=none)
    step = struct(**after, done=f"concat(record.done, array({removal}))")
    fold = f"aggregate(removed, {start}, (record, replica) -> {step}, record -> record.done)"
    return known.selectExpr(
        "*", f"IF(old IS NULL OR superseded OR size(removed) = 0, {none}, {fold}) AS removals"
    ).drop("offline_order")


def _with_record_after_removals(known: DataFrame) -> DataFrame:
    """``shrunk``: the record the partition machine finds."""
    last = "get(removals, size(removals) - 1)"
    shrunk = struct(
        leader=f"{last}.leader",
        leader_epoch=f"{last}.leader_epoch",
        isr=f"{last}.isr",
        partition_epoch=f"{last}.partition_epoch",
        controller_epoch="f.epoch",
        recovery="old.recovery",
    )
    return known.selectExpr("*", f"IF(size(removals) = 0, old, {shrunk}) AS shrunk")


def _with_first_state(known: DataFrame) -> DataFrame:
    """The partition machine's first states, and whether it will try for a leader."""
    state = f"""CASE
        WHEN old IS NULL THEN {text(NEW_PARTITION)}
        WHEN shrunk.leader != {NO_LEADER} AND {_is_online("shrunk.leader")}
          THEN {text(ONLINE_PARTITION)}
        ELSE {text(OFFLINE_PARTITION)} END"""
    isr = f"coalesce(shrunk.isr, {NO_IDS})"
    return (
        known.selectExpr(
            "*",
            f"{state} AS state_at_start",
            f"filter(array_union(replicas, {isr}), r -> {_is_online('r')}) AS online_known",
            f"{isr} AS shrunk_isr",
            "coalesce(unclean_topic, f.unclean) AS unclean_allowed",
        )
        .drop("not_live")
        .selectExpr("*", f"NOT queued AND state_at_start != {text(ONLINE_PARTITION)} AS tried")
    )


def _with_election(known: DataFrame) -> DataFrame:
    elected = "elect_offline_leader(replicas, shrunk_isr, online_known, unclean_allowed)"
    return known.selectExpr(
        "*",
        f"IF(tried AND old IS NOT NULL AND NOT superseded, {elected}, NULL) AS elected",
        "tried AND old IS NULL AND size(online) > 0 AS initialized",
    )


def _with_new_record(known: DataFrame) -> DataFrame:
    """``new``: the cached record at the end; null where the partition never had a leader."""
    first = struct(
        leader="get(online, 0)",
        leader_epoch="0",
        isr="online",
        partition_epoch="0",
        controller_epoch="f.epoch",
        recovery=str(RECOVERED),
    )
    after_election = struct(
        leader="elected.leader",
        leader_epoch="shrunk.leader_epoch + 1",
        isr="elected.isr",
        partition_epoch="shrunk.partition_epoch + 1",
        controller_epoch="f.epoch",
        recovery=f"IF(NOT elected.clean AND f.has_recovery, {RECOVERING}, shrunk.recovery)",
    )
    return known.selectExpr(
        "*",
        f"CASE WHEN initialized THEN {first}"
        f" WHEN elected IS NOT NULL THEN {after_election} ELSE shrunk END AS new",
        "initialized OR elected IS NOT NULL AS led",
    )
