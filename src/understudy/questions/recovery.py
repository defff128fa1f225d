"""What brings partitions without a leader back: who must return, and what giving up would cost.

A partition whose leader is gone waits for a replica that is known to have every acknowledged
record: a member of its ISR, or in KRaft, once the ISR is empty, an eligible leader replica (ELR).
Any one of them is enough, and the order in which they return does not matter. Whoever is elected
without being one of them (an unclean election) lacks what it had not copied yet.

Left out are partitions that a controller helps at its next look: those with such a replica online,
or with any replica online where unclean elections are allowed. Partitions of topics queued for
deletion, and those that never had a leader, do not count.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from understudy.names import SNAPSHOT_KEY
from understudy.questions.availability import counted, is_live, is_offline, is_online
from understudy.questions.broker_sets import Hitting, hitting_set
from understudy.schemas import RECOVERY, conform
from understudy.snapshot import Snapshots
from understudy.sql import NO_IDS, text

NOBODY_ONLINE: Final = "no replica is online: there is nobody to elect"
NOBODY_KNOWS: Final = "no replica is known to have every record: whoever leads may lack some"
NOT_COPIED: Final = (
    "records the chosen replica had not copied when it fell out of sync are given up"
)
LAST_LEADER: Final = (
    "the last leader may have lost records in an unclean shutdown; nobody is known to have more"
)

AFTER_CLEAN_SHUTDOWN: Final = (
    "it must not have stopped uncleanly: the controller takes who did off the eligible replicas"
)

SETS_AT_MOST: Final = 10_000


def recovery(snapshots: Snapshots) -> DataFrame:
    """The table ``recovery``: one row per partition that needs brokers back."""
    leaving = (
        snapshots.brokers.where("alive AND shutting_down")
        .groupBy(*SNAPSHOT_KEY)
        .agg(F.expr("collect_list(broker_id) AS leaving"))
    )
    return (
        counted(snapshots)
        .where(is_offline())
        .join(F.broadcast(leaving), on=list(SNAPSHOT_KEY), how="left")
        .transform(_with_candidates)
        .where("NOT electable")
        .transform(_with_reasons)
        .transform(conform, RECOVERY)
    )


def _with_candidates(partitions: DataFrame) -> DataFrame:
    eligible = f"is_kraft AND size(isr) = 0 AND array_contains(coalesce(elr, {NO_IDS}), r)"
    has_all = f"(array_contains(isr, r) OR ({eligible}))"
    unclean = "coalesce(unclean_allowed, false)"
    # Whoever is still registered has to fail before it can return, and so leaves an ISR of several.
    is_registered = f"({is_live('r')} OR coalesce(array_contains(leaving, r), false))"
    comes_back = f"(NOT {is_registered} OR size(isr) <= 1)"
    nobody = f"is_kraft AND size(isr) = 0 AND size(coalesce(elr, {NO_IDS})) = 0"
    last = f"IF({nobody} AND size(last_known_elr) = 1, get(last_known_elr, 0), NULL)"
    return partitions.selectExpr(
        *SNAPSHOT_KEY,
        "topic",
        "partition",
        "is_kraft AND size(isr) = 0 AS from_elr",
        f"exists(replicas, r -> {is_online('r')} AND ({has_all} OR {unclean})) AS electable",
        f"sort_array(filter(replicas, r -> {has_all} AND {comes_back})) AS brokers",
        f"get(filter(replicas, r -> {is_online('r')}), 0) AS first_online",
        f"get(filter(array({last}), r -> r IS NOT NULL AND {is_online('r')}), 0) AS last_leader",
    )


def _with_reasons(partitions: DataFrame) -> DataFrame:
    reason = f"""CASE
        WHEN last_leader IS NOT NULL THEN {text(LAST_LEADER)}
        WHEN first_online IS NULL THEN {text(NOBODY_ONLINE)}
        WHEN size(brokers) = 0 THEN {text(NOBODY_KNOWS)}
        ELSE {text(NOT_COPIED)} END"""
    return partitions.selectExpr(
        "*",
        "coalesce(last_leader, first_online) AS unclean_choice",
        f"{reason} AS records_at_risk_reason",
        f"IF(from_elr AND size(brokers) > 0, {text(AFTER_CLEAN_SHUTDOWN)}, NULL) AS condition",
    )


# --- All of them together ------------------------------------------------------------------------


class Return(NamedTuple):
    """Who has to return for every partition of a snapshot that anybody can bring back."""

    cluster: str
    snapshot_id: str
    partitions: int  # that wait for somebody
    hopeless: int  # of these, the ones nobody can bring back with every record
    needed: Hitting | None  # None: too many different sets to look at


def returns(rows: DataFrame, limit: int = SETS_AT_MOST) -> list[Return]:
    """For each snapshot of a ``recovery`` table, the fewest brokers that bring all partitions back.

    Only the distinct sets of brokers reach the driver, and no more than *limit* of them.
    """
    sets = rows.groupBy(*SNAPSHOT_KEY, "brokers").agg(F.expr("count(1) AS partitions"))
    found = sets.orderBy(*SNAPSHOT_KEY).limit(limit + 1).collect()
    by_snapshot: dict[tuple[str, str], list[tuple[list[int], int]]] = {}
    for row in found:
        key = (row.cluster, row.snapshot_id)
        by_snapshot.setdefault(key, []).append((row.brokers, row.partitions))
    is_whole = len(found) <= limit
    return [
        Return(
            *key,
            partitions=sum(count for _, count in each),
            hopeless=sum(count for brokers, count in each if not brokers),
            needed=hitting_set(brokers for brokers, _ in each if brokers) if is_whole else None,
        )
        for key, each in by_snapshot.items()
    ]
