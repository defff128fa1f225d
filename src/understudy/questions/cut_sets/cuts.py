"""What has to fail for a partition to be lost, partition by partition, without trying failures.

A broker failure F takes a partition that has an online leader

- *offline* when its leader and everybody who could lead in its place are in F: the online members
  of the ISR, in KRaft the online eligible leader replicas (ELR) too, and every online replica where
  unclean elections are allowed;
- *under min ISR* when too few members of the ISR are left. While the leader lives, whoever is in F
  leaves the ISR. When the leader is in F, somebody else is elected, and an election of a ZooKeeper
  controller also drops the members that were dead before (offlinePartitionLeaderElection); a
  quorum controller drops only those in F (handleBrokerFenced).

So the first takes the leader and all of ``successors``; the second is a pair of thresholds: F is a
loss when it holds ``leader`` and at least ``take_with`` of ``pool_with``, or, without the leader,
at least ``take_without`` of ``pool_without``. None of the three lists has the leader in it.

This is the ``broker_failure`` of a settled controller in closed form. A leader outside its own ISR
and members outside the assignment, which no controller writes, are not told apart from it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from understudy.frames import compiled_apart
from understudy.names import SNAPSHOT_KEY
from understudy.questions.availability import (
    counted,
    is_live,
    is_offline,
    is_online,
)
from understudy.snapshot import Snapshots
from understudy.sql import NO_IDS, struct, text

UNAVAILABLE: Final = "unavailable"
FULL_ACKS: Final = "full_acks_produce_unavailable"
RISKS: Final = (UNAVAILABLE, FULL_ACKS)

NEVER: Final = 2**31 - 1  # to take: more than there are
_KEY: Final = (*SNAPSHOT_KEY, "topic", "partition")


def thresholds(
    snapshots: Snapshots,
    *,
    stopping: Iterable[int] = (),
    new_controller: bool = False,
    only_touched: bool = False,
) -> DataFrame:
    """One row per partition that counts and ever had a leader.

    ``offline`` and ``blocked``: that risk has come true before anything fails, and nothing can
    cause it any more. *stopping* are brokers that may be in F although they are shutting down. With
    *new_controller* the failure takes a ZooKeeper-mode controller along, and the next one drops
    dead members from every ISR (until 1.0 it leaves that to the leaders, who come to the same a
    little later). *only_touched* leaves out what the loss of *stopping* cannot change.

    Nearly every partition is ``whole``: led, and everybody online and in sync. Then it does not
    matter who leads: any ``take_without`` of its replicas, ascending in that column, block
    ``acks=all``, or all of them where that is more than there are. Of the others it is null.
    """
    named = ", ".join(str(int(broker)) for broker in sorted(set(stopping)))
    is_touched = f"(leader IN ({named}) OR arrays_overlap(replicas, array({named})))"
    is_touched = is_touched if named else "false"
    among = "has_state"
    if only_touched and not new_controller:
        among = f"has_state AND {is_touched}"
    partitions = counted(snapshots, among)
    if only_touched and new_controller:
        partitions = partitions.where(f"{is_touched} OR size(down) > 0 OR size(offline_dirs) > 0")
    return (
        compiled_apart(partitions)
        .transform(_with_online)
        .transform(_with_members, stopping)
        .transform(_with_thresholds, new_controller=new_controller)
        .transform(compiled_apart)
    )


def conditions(partitions: DataFrame) -> DataFrame:
    """One row per risk of the rows of :func:`thresholds`, both written as thresholds."""
    names = ("pool_with", "take_with", "pool_without", "take_without")
    unavailable = struct(
        risk=text(UNAVAILABLE),
        already="offline",
        **dict(zip(names, ("successors", "size(successors)", NO_IDS, str(NEVER)), strict=True)),
    )
    full_acks = struct(risk=text(FULL_ACKS), already="blocked", **{name: name for name in names})
    rest = [name for name in partitions.columns if name not in (*names, "successors", "whole")]
    return partitions.selectExpr(*rest, f"inline(array({unavailable}, {full_acks}))")


def is_left_without_leader(failed: str) -> str:
    """Whether losing the brokers of the array *failed* is what takes the partition offline."""
    return (
        f"(NOT offline AND array_contains({failed}, leader)"
        f" AND size(array_intersect(successors, {failed})) = size(successors))"
    )


def is_left_blocked(failed: str) -> str:
    """Whether losing the brokers of the array *failed* is what blocks ``acks=all``."""

    def enough(which: str) -> str:
        return f"size(array_intersect(pool_{which}, {failed})) >= take_{which}"

    return (
        "(NOT blocked"
        f" AND IF(array_contains({failed}, leader), {enough('with')}, {enough('without')}))"
    )


def _with_online(partitions: DataFrame) -> DataFrame:
    all_online = "size(down) = 0 AND size(offline_dirs) = 0"
    return partitions.selectExpr(
        *_KEY,
        "replicas",
        "leader",
        "isr",
        "elr",
        "min_isr",
        "is_kraft",
        "coalesce(unclean_allowed, false) AS unclean",
        f"{is_offline()} AS offline",
        f"IF({all_online}, replicas, filter(replicas, r -> {is_online('r')})) AS online",
        f"IF({all_online}, isr, filter(isr, r -> {is_live('r')})) AS living",
    )


def _with_members(partitions: DataFrame, stopping: Iterable[int]) -> DataFrame:
    """Who else is in sync, who of them can be lost, and who could lead in the leader's place."""
    named = ", ".join(str(int(broker)) for broker in sorted(set(stopping)))
    is_stopping = f"array_contains(array({named}), r)" if named else "false"
    in_sync, online = "array_contains(isr, r)", "array_contains(online, r)"
    can_be_lost = f"(array_contains(living, r) OR {is_stopping})"
    # An ELR member leads only once the ISR is empty, and a member that was dead before stays in it.
    eligible = "is_kraft AND array_contains(elr, r) AND size(living) = size(isr)"
    may_lead = f"({in_sync} OR unclean OR coalesce({eligible}, false))"
    # Nearly all partitions: everybody is online and in sync.
    is_whole = "size(online) = size(replicas) AND size(isr) = size(replicas)"

    def those(condition: str) -> str:
        return f"IF({is_whole}, others, filter(others, r -> {condition}))"

    return (
        partitions
        # sort_array is compiled; array_sort would take the whole step out of the generated code.
        .withColumn(
            "others", F.expr("sort_array(array_remove(replicas, coalesce(leader, -1)))")
        ).selectExpr(
            *_KEY,
            "size(replicas) <= min_isr AS unsavable",
            "leader",
            "min_isr",
            "is_kraft",
            "unclean",
            "offline",
            "offline OR size(isr) < min_isr AS blocked",
            "size(isr) AS in_sync",
            f"{those(f'{in_sync} AND {online}')} AS online_members",
            f"{those(f'{in_sync} AND {can_be_lost}')} AS members",
            f"{those(f'{online} AND {may_lead}')} AS successors",
            f"IF({is_whole} AND NOT offline AND size(others) < size(replicas),"
            " sort_array(replicas), NULL) AS whole",
        )
    )


def _with_thresholds(partitions: DataFrame, *, new_controller: bool) -> DataFrame:
    """When too few are left of the ISR, with the leader among the lost and without."""
    # Who is left when the leader fails and somebody else is elected.
    left = "IF(is_kraft, members, online_members)"
    count = "IF(is_kraft, in_sync - 1, size(online_members))"
    without = {"pool": "members", "take": "in_sync - min_isr + 1"}
    if new_controller:
        without = {
            "pool": f"IF(is_kraft, {without['pool']}, online_members)",
            "take": f"IF(is_kraft, {without['take']}, size(online_members) - min_isr + 2)",
        }
    # Where one replica is enough, an unclean leader is as good as any.
    one_is_enough = "unclean AND min_isr <= 1"
    # Where nobody in sync is left, nobody leads, or one alone.
    enough = f"greatest(0, least({count} - min_isr + 1, size({left})))"
    return partitions.selectExpr(
        *_KEY,
        *("unsavable", "leader", "offline", "blocked", "successors", "whole"),
        f"IF({one_is_enough}, successors, {left}) AS pool_with",
        f"IF({one_is_enough}, size(successors), {enough}) AS take_with",
        f"IF({one_is_enough}, {NO_IDS}, {without['pool']}) AS pool_without",
        f"IF({one_is_enough}, {NEVER}, {without['take']}) AS take_without",
    )
