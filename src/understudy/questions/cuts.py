"""What has to fail for a partition to be lost, partition by partition, without trying failures.

A broker failure F takes a partition that has an online leader

- *offline* when its leader and everybody who could lead in its place are in F: the online members
  of the ISR, in KRaft the online eligible leader replicas (ELR) too, and every online replica where
  unclean elections are allowed;
- *under min ISR* when too few members of the ISR are left. While the leader lives, whoever is in F
  leaves the ISR. When the leader is in F, somebody else is elected, and an election of a ZooKeeper
  controller also drops the members that were dead before (offlinePartitionLeaderElection); a
  quorum controller drops only those in F (handleBrokerFenced).

So either risk is the same pair of thresholds, and :func:`conditions` gives them as columns: F is a
loss when it holds ``leader`` and at least ``take_with`` of ``pool_with``, or, without the leader,
at least ``take_without`` of ``pool_without``. Both pools leave the leader out.

This is the ``broker_failure`` of a settled controller in closed form. A leader outside its own ISR
and members outside the assignment, which no controller writes, are not told apart from it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from understudy.controller.native.sql import NO_IDS, struct, text
from understudy.controller.profiles import KRAFT
from understudy.names import SNAPSHOT_KEY
from understudy.questions.availability import (
    blocks_full_acks,
    counted,
    is_live,
    is_offline,
    is_online,
)
from understudy.snapshot import Snapshots

UNAVAILABLE: Final = "unavailable"
FULL_ACKS: Final = "full_acks_produce_unavailable"
RISKS: Final = (UNAVAILABLE, FULL_ACKS)

_NEVER: Final = 2**31 - 1  # more than there are to take
_KEY: Final = (*SNAPSHOT_KEY, "topic", "partition")


def conditions(
    snapshots: Snapshots, *, stopping: Iterable[int] = (), new_controller: bool = False
) -> DataFrame:
    """One row per risk and partition that counts and ever had a leader.

    ``already``: it is so before anything fails, and nothing can cause it any more. *stopping* are
    brokers that may be in F although they are shutting down. With *new_controller* the failure
    takes a ZooKeeper-mode controller along: the next one drops dead members from every ISR.
    """
    modes = snapshots.snapshots.selectExpr(*SNAPSHOT_KEY, f"mode = {text(KRAFT.mode)} AS is_kraft")
    return (
        counted(snapshots)
        .where("has_state")
        .join(F.broadcast(modes), on=list(SNAPSHOT_KEY), how="inner")
        .transform(_with_members, stopping)
        .transform(_with_thresholds, new_controller=new_controller)
        .selectExpr(*_KEY, "size(replicas) AS replicas", "min_isr", "leader", "inline(risks)")
    )


def is_lost(failed: str) -> str:
    """Whether losing the brokers of the array *failed* makes the risk of a row come true."""

    def enough(pool: str, take: str) -> str:
        return f"size(array_intersect({pool}, {failed})) >= {take}"

    return (
        f"(NOT already AND IF(array_contains({failed}, leader),"
        f" {enough('pool_with', 'take_with')}, {enough('pool_without', 'take_without')}))"
    )


def _with_members(partitions: DataFrame, stopping: Iterable[int]) -> DataFrame:
    """Who else is in sync, who of them can be lost, and who could lead in the leader's place."""
    named = ", ".join(str(int(broker)) for broker in sorted(set(stopping)))
    is_stopping = f"array_contains(array({named}), r)" if named else "false"
    in_sync, live, online = "array_contains(isr, r)", is_live("r"), is_online("r")
    unclean = "coalesce(unclean_allowed, false)"
    # An ELR member leads only once the ISR is empty, and a member that was dead before stays in it.
    eligible = f"is_kraft AND array_contains(elr, r) AND forall(isr, m -> {is_live('m')})"
    may_lead = f"({in_sync} OR {unclean} OR coalesce({eligible}, false))"

    def others(condition: str) -> str:
        return f"array_sort(filter(replicas, r -> r != leader AND {condition}))"

    return partitions.selectExpr(
        *_KEY,
        "replicas",
        "leader",
        "min_isr",
        "is_kraft",
        "size(isr) AS in_sync",
        f"{unclean} AS unclean",
        f"{is_offline()} AS offline",
        f"{blocks_full_acks()} AS blocked",
        f"{others(f'{in_sync} AND {online}')} AS online_members",
        f"{others(f'{in_sync} AND ({live} OR {is_stopping})')} AS members",
        f"{others(f'{online} AND {may_lead}')} AS successors",
    )


def _with_thresholds(partitions: DataFrame, *, new_controller: bool) -> DataFrame:
    """Either risk as two thresholds."""
    successors = {
        "pool_with": "successors",
        "take_with": "size(successors)",
        "pool_without": NO_IDS,
        "take_without": str(_NEVER),
    }
    unavailable = struct(risk=text(UNAVAILABLE), already="offline", **successors)
    # With one replica enough, an unclean leader is as good as any.
    as_unavailable = struct(risk=text(FULL_ACKS), already="blocked", **successors)
    left = "IF(is_kraft, in_sync - 1, size(online_members))"
    without = ("members", "in_sync - min_isr + 1")
    if new_controller:
        alone = "IF(is_kraft, {}, {})"
        without = (
            alone.format("members", "online_members"),
            alone.format(without[1], "size(online_members) + 2 - min_isr"),
        )
    under_min_isr = struct(
        risk=text(FULL_ACKS),
        already="blocked",
        pool_with="online_members",
        # Where nobody in sync is left, nobody leads, or one alone.
        take_with=f"greatest(0, least({left} - min_isr + 1, size(online_members)))",
        pool_without=without[0],
        take_without=without[1],
    )
    full_acks = f"IF(unclean AND min_isr <= 1, {as_unavailable}, {under_min_isr})"
    return partitions.withColumn("risks", F.expr(f"array({unavailable}, {full_acks})"))
