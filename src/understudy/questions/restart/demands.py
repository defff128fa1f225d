"""What partitions ask of a rolling restart, reduced on Spark to sets of brokers.

A partition with *n* in-sync replicas that are online and a min ISR of *m* has a slack of *n* - *m*:
so many of them may be down together. Who is dead, or on an offline directory, counts as gone,
although a leader that lives keeps him in the ISR for a while: the next election drops him. In KRaft
min ISR is the effective one, and eligible leader replicas do not count: they acknowledge nothing.

A partition without slack is *unsavable*: whatever the order, restarting one of its in-sync replicas
blocks ``acks=all``. It is listed apart, and all a plan can do for it is to leave it one in-sync
replica, so that it keeps a leader, if it has two. One that has more replicas than its min ISR is so
only *now*: it gets slack once those that are out of sync have caught up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from understudy.buckets import found, in_buckets
from understudy.frames import small_frame
from understudy.questions.availability import counted, is_internal, is_online
from understudy.questions.cut_sets.sets import combinations
from understudy.schemas import INT
from understudy.snapshot import Snapshots
from understudy.sql import struct

WIDEST: Final = 8
"""In-sync brokers of a partition up to which every conflict is looked at, at most 70."""
LARGER_AT_MOST: Final = 100_000
"""Conflicts of more than two brokers the driver takes."""

_ONLY_NOW: Final = "size(replicas) > min_isr"  # of an unsavable partition
_ROUNDS: Final = T.StructType([T.StructField("broker_id", INT), T.StructField("round", INT)])


def demands(snapshots: Snapshots, brokers: Iterable[int]) -> DataFrame:
    """The partitions that restarting *brokers* touches.

    ``pool`` are those of its in-sync brokers that are restarted, ``allowed`` is how many of them
    may be down together.
    """
    wanted = ", ".join(str(int(broker)) for broker in sorted(set(brokers))) or "NULL"
    in_sync = f"filter(replicas, r -> array_contains(isr, r) AND {is_online('r')})"
    return (
        counted(snapshots)
        .where("has_state")
        .selectExpr(
            "topic",
            "partition",
            "replicas",
            "leader",
            "greatest(min_isr, 1) AS min_isr",
            f"sort_array({in_sync}) AS in_sync",
        )
        .withColumn("pool", F.expr(f"filter(in_sync, r -> r IN ({wanted}))"))
        .where("size(pool) > 0")
        .withColumn("slack", F.expr("size(in_sync) - min_isr"))
        .withColumn("unsavable", F.expr("slack <= 0"))
        .withColumn("allowed", F.expr("IF(unsavable, greatest(1, size(in_sync) - 1), slack)"))
    )


class Totals(NamedTuple):
    partitions: int
    unsavable: int
    unsavable_now: int  # of these, only until replicas have caught up
    fewest_rounds: int  # that any placement with these replicas and min ISRs can do with
    reduced: int  # partitions taken to have a slack of 1 though they have more
    most_allowed: int


def totals(demands: DataFrame) -> Totals:
    row = demands.agg(
        F.expr("count(1) AS partitions"),
        F.expr("count_if(unsavable) AS unsavable"),
        F.expr(f"count_if(unsavable AND {_ONLY_NOW}) AS unsavable_now"),
        F.expr("max(CAST(ceil(size(pool) / allowed) AS INT)) AS fewest_rounds"),
        F.expr(f"count_if({_is_reduced()}) AS reduced"),
        F.expr("max(IF(size(pool) > allowed, allowed, 0)) AS most_allowed"),
    ).first()
    return Totals(*(0 if row is None else row[name] or 0 for name in Totals._fields))


def unsavable(demands: DataFrame) -> DataFrame:
    too_few = f"IF({_ONLY_NOW}, 'in_sync', 'replicas')"
    return demands.where("unsavable").selectExpr(
        "topic",
        "partition",
        "size(replicas) AS replicas",
        "size(in_sync) AS in_sync",
        "min_isr",
        f"{too_few} AS too_few",
        f"{is_internal()} AS internal",
    )


# --- Conflicts -----------------------------------------------------------------------------------


def conflicts(demands: DataFrame) -> DataFrame:
    """One row per set of ``brokers`` of which one has to stay up, with ``partitions`` that say so.

    A partition with more in-sync brokers than :data:`WIDEST` is taken to have a slack of 1: safe,
    though it may cost rounds.
    """
    groups = (
        demands.where("size(pool) > allowed")
        .groupBy("pool", "allowed")
        .agg(
            F.expr("count(1) AS partitions"),
            F.expr(f"min({struct(topic='topic', partition='partition')}) AS witness"),
        )
    )
    take = f"IF({_is_reduced()}, 2, allowed + 1)"
    return (
        groups.withColumn("take", F.expr(take))
        .selectExpr(f"explode({combinations('pool', 'take')}) AS brokers", "partitions", "witness")
        .groupBy("brokers")
        .agg(F.expr("sum(partitions) AS partitions"), F.expr("min(witness) AS witness"))
    )


def _is_reduced() -> str:
    return f"(size(pool) > {WIDEST} AND size(pool) > allowed AND allowed > 1)"


class Conflicts(NamedTuple):
    """Sets of brokers with the number of partitions that say so."""

    sets: dict[frozenset[int], int]
    are_exact: bool  # else some larger sets were cut down to two of their members


def collected(conflicts: DataFrame, *, has_larger: bool, limit: int = LARGER_AT_MOST) -> Conflicts:
    """On the driver: never more than the pairs of brokers and *limit* larger sets."""
    sets: dict[frozenset[int], int] = {}
    for row in _neighbours(conflicts.where("size(brokers) = 2")).collect():
        sets.update((frozenset((row.broker, n.broker)), n.partitions) for n in row.near)
    if not has_larger:
        return Conflicts(sets, are_exact=True)
    larger = conflicts.where("size(brokers) > 2")
    found = larger.select("brokers", "partitions").limit(limit + 1).collect()
    if len(found) <= limit:
        sets.update((frozenset(row.brokers), row.partitions) for row in found)
        return Conflicts(sets, are_exact=True)
    cut = larger.withColumn("brokers", F.expr("slice(brokers, 1, 2)"))
    for row in _neighbours(cut).collect():
        for near in row.near:
            pair = frozenset((row.broker, near.broker))
            sets[pair] = sets.get(pair, 0) + near.partitions
    return Conflicts(sets, are_exact=False)


def _neighbours(pairs: DataFrame) -> DataFrame:
    """Pairs by their smaller member: as many rows as brokers, not as pairs."""
    return (
        pairs.groupBy("brokers")
        .agg(F.expr("sum(partitions) AS partitions"))
        .groupBy(F.expr("brokers[0] AS broker"))
        .agg(
            F.expr(f"collect_list({struct(broker='brokers[1]', partitions='partitions')}) AS near")
        )
    )


# --- Rounds --------------------------------------------------------------------------------------


def with_rounds(frame: DataFrame, round_of: Mapping[int, int], brokers: str = "pool") -> DataFrame:
    """``rounds``: the round of each of the array *brokers*, in its order."""
    rows = small_frame(frame.sparkSession, sorted(round_of.items()), _ROUNDS)
    buckets = rows.agg(
        F.expr(f"collect_list({struct(id='broker_id', round='round')}) AS listed")
    ).selectExpr(f"{in_buckets('listed', 'b.id')} AS buckets")
    return (
        frame.crossJoin(F.broadcast(buckets))
        .withColumn("rounds", F.expr(f"transform({brokers}, r -> {found('buckets', 'r')}.round)"))
        .drop("buckets")
    )


def proof(demands: DataFrame, round_of: Mapping[int, int]) -> DataFrame:
    """One row per round with its tightest partition, from every partition it touches.

    ``spare`` is how many more of its replicas might go while that round is down, the fewest there
    are; below zero the round would not be safe.
    """
    down = "size(filter(rounds, x -> x = round))"
    witness = struct(
        topic="topic", partition="partition", in_sync="size(in_sync)", min_isr="min_isr", down=down
    )
    return (
        with_rounds(demands.where("NOT unsavable"), round_of)
        .select("*", F.expr("explode(array_distinct(rounds)) AS round"))
        .withColumn("spare", F.expr(f"slack - {down}"))
        .groupBy("round")
        .agg(
            F.expr("count(1) AS partitions"),
            F.expr("count_if(spare = 0) AS at_min_isr"),
            F.expr("min(spare) AS spare"),
            F.expr(f"min_by({witness}, struct(spare, topic, partition)) AS witness"),
        )
    )


def misplaced(demands: DataFrame, round_of: Mapping[int, int]) -> DataFrame:
    """The partitions that stand in the way of these rounds, with ``excess`` replicas to move."""
    each = "greatest(0, size(filter(rounds, x -> x = n)) - allowed)"
    excess = f"aggregate(array_distinct(rounds), 0, (total, n) -> total + {each})"
    return with_rounds(demands, round_of).withColumn("excess", F.expr(excess)).where("excess > 0")


def worth_of_pairs(demands: DataFrame, round_of: Mapping[int, int]) -> DataFrame:
    """What each pair of brokers is worth to the lower bound of ``moves``.

    Only of partitions with a slack of 1. A pair in one round of *k* of its brokers is worth 2/k; a
    pair in two of its *m* rounds 2/m, spread over the pairs of brokers of these rounds.
    """

    def size_of(place: str) -> str:
        return f"size(filter(rounds, x -> x = rounds[{place}]))"

    together = f"2D / {size_of('i')}"
    apart = f"2D / size(array_distinct(rounds)) / {size_of('i')} / {size_of('j')}"
    worth = f"IF(rounds[i] = rounds[j], {together}, {apart})"
    pair = struct(broker="pool[i]", other="pool[j]", worth=worth)
    pairs = (
        "flatten(transform(sequence(0, size(pool) - 2), i ->"
        f" transform(sequence(i + 1, size(pool) - 1), j -> {pair})))"
    )
    groups = demands.where("allowed = 1 AND size(pool) > 1").groupBy("pool").count()
    return (
        with_rounds(groups, round_of)
        .selectExpr(f"inline({pairs})", "count")
        .groupBy("broker", "other")
        .agg(F.expr("sum(worth * count) AS worth"))
        .groupBy("broker")
        .agg(F.expr(f"collect_list({struct(broker='other', worth='worth')}) AS near"))
    )
