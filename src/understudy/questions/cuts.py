"""What has to fail for a partition to be lost, partition by partition, without trying failures.

A broker failure F takes a partition that has an online leader

- *offline* when its leader and everybody who could lead in its place are in F: the online members
  of the ISR, in KRaft the online eligible leader replicas (ELR) too, and every online replica where
  unclean elections are allowed;
- *under min ISR* when too few members of the ISR are left. While the leader lives, whoever is in F
  leaves the ISR. When the leader is in F, somebody else is elected, and an election of a ZooKeeper
  controller also drops the members that were dead before (offlinePartitionLeaderElection); a
  quorum controller drops only those in F (handleBrokerFenced).

So either risk is a pair of thresholds, which :func:`thresholds` gives as columns: F is a
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


def thresholds(
    snapshots: Snapshots, *, stopping: Iterable[int] = (), new_controller: bool = False
) -> DataFrame:
    """One row per partition that counts and ever had a leader, with its ``risks``, the worse first.

    ``already`` in a risk: it is so before anything fails, and nothing can cause it any more.
    *stopping* are brokers that may be in F although they are shutting down. With *new_controller*
    the failure takes a ZooKeeper-mode controller along, and the next one drops dead members from
    every ISR (until 1.0 it leaves that to the leaders, who come to the same a little later).
    """
    modes = snapshots.snapshots.selectExpr(*SNAPSHOT_KEY, f"mode = {text(KRAFT.mode)} AS is_kraft")
    return (
        counted(snapshots)
        .where("has_state")
        .join(F.broadcast(modes), on=list(SNAPSHOT_KEY), how="inner")
        .transform(_with_members, stopping)
        .transform(_with_risks, new_controller=new_controller)
        .selectExpr(*_KEY, "size(replicas) <= min_isr AS unsavable", "leader", "risks")
    )


def conditions(partitions: DataFrame) -> DataFrame:
    """One row per risk of the rows of :func:`thresholds`."""
    return partitions.selectExpr(*_KEY, "unsavable", "leader", "inline(risks)")


def is_lost(failed: str, risk: str = "") -> str:
    """Whether losing the brokers of the array *failed* makes a risk come true.

    *risk* names the struct it is in, with a dot, where it is not a row of its own.
    """

    def enough(which: str) -> str:
        return f"size(array_intersect({risk}pool_{which}, {failed})) >= {risk}take_{which}"

    return (
        f"(NOT {risk}already"
        f" AND IF(array_contains({failed}, leader), {enough('with')}, {enough('without')}))"
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


def _with_risks(partitions: DataFrame, *, new_controller: bool) -> DataFrame:
    """Either risk as two thresholds."""
    nobody_leads = {
        "pool_with": "successors",
        "take_with": "size(successors)",
        "pool_without": NO_IDS,
        "take_without": str(_NEVER),
    }
    # Who is left of the ISR when the leader fails and somebody else is elected.
    left = "IF(is_kraft, members, online_members)"
    count = "IF(is_kraft, in_sync - 1, size(online_members))"
    too_few = {
        "pool_with": left,
        # Where nobody in sync is left, nobody leads, or one alone.
        "take_with": f"greatest(0, least({count} - min_isr + 1, size({left})))",
        "pool_without": "members",
        "take_without": "in_sync - min_isr + 1",
    }
    if new_controller:
        for name, without_the_dead in (
            ("pool_without", "online_members"),
            ("take_without", "size(online_members) - min_isr + 2"),
        ):
            too_few[name] = f"IF(is_kraft, {too_few[name]}, {without_the_dead})"
    unavailable = struct(risk=text(UNAVAILABLE), already="offline", **nobody_leads)
    # Where one replica is enough, an unclean leader is as good as any.
    one_is_enough = struct(risk=text(FULL_ACKS), already="blocked", **nobody_leads)
    under_min_isr = struct(risk=text(FULL_ACKS), already="blocked", **too_few)
    full_acks = f"IF(unclean AND min_isr <= 1, {one_is_enough}, {under_min_isr})"
    return partitions.withColumn("risks", F.expr(f"array({unavailable}, {full_acks})"))
