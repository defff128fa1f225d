"""A rolling restart of one cluster: the plan, its proof, and what would make it shorter.

The partitions are reduced to sets of brokers on Spark (``demands``), the rounds are found on the
driver (``plan``), and then held against every partition again, which is the proof.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Final, NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from understudy import replay as replaying
from understudy.frames import SOME_OF_EACH, kept, small_frame
from understudy.questions.restart import demands as demanding
from understudy.questions.restart import moves as moving
from understudy.questions.restart import plan as planning
from understudy.questions.restart.replay import (
    by_round,
    outcome,
    scenario,
    with_the_controller_last,
)
from understudy.questions.units import Cluster
from understudy.schemas import RESTART_MOVES, RESTART_ROUNDS
from understudy.snapshot import Snapshots

MOVES_AT_MOST: Final = 10_000
"""Moves that are worked out one by one; they are counted however many there are."""
_EXACT_UP_TO: Final = 12  # brokers
_GROUPS_AT_MOST: Final = 2_000

Told = dict[str, Any]


class Asked(NamedTuple):
    cluster: Cluster
    brokers: tuple[int, ...]  # to restart
    down: tuple[int, ...]  # named, but down already
    racks: Mapping[int, str]
    by_rack: bool = False
    max_parallel: int | None = None


class Fix(NamedTuple):
    """Moves after which fewer rounds are enough."""

    rounds: int
    slot_of: Mapping[int, int]
    needed: int  # moves in all
    at_least: int  # no fewer moves lead to so few rounds
    moves: list[Told]  # the first of them
    conflicts: list[Told]
    conflict_count: int
    homeless: int  # partitions that have nowhere to go


@dataclass(frozen=True)
class Answer:
    asked: Asked
    totals: demanding.Totals
    plan: planning.Plan
    rounds: list[tuple[int, ...]]  # in the order to take them
    tightest: list[Told]
    fix: Fix | None
    is_exact: bool  # no conflict was taken to be tighter than it is
    demands: DataFrame

    def told(self, *, limit: int, topic: str | None = None) -> Told:
        wanted = re.compile(topic or "")
        fix = self.fix
        moves = [m for m in fix.moves if wanted.search(m["topic"])] if fix else []
        return {
            "brokers": list(self.asked.brokers),
            "down": list(self.asked.down),
            "at_least": self.plan.at_least,
            "is_fewest": self.plan.is_fewest and self.is_exact,
            "is_exact": self.is_exact,
            "apart": list(self.plan.apart),
            "partitions": self.totals.partitions,
            "unsavable_count": self.totals.unsavable,
            "unsavable_now_count": self.totals.unsavable_now,
            "unsavable": self._unsavable(limit, topic) if self.totals.unsavable else [],
            "tightest": self.tightest,
            "conflict_count": fix.conflict_count if fix else 0,
            "conflicts": fix.conflicts[:limit] if fix else [],
            "fix_count": fix.needed if fix else 0,
            "fixes_at_least": fix.at_least if fix else 0,
            "fixes_rounds": fix.rounds if fix else None,
            "fixes_homeless": fix.homeless if fix else 0,
            "fixes": moves[:limit],
        }

    def tables(self) -> dict[str, DataFrame]:
        spark = self.demands.sparkSession
        key = (self.asked.cluster.cluster, self.asked.cluster.snapshot_id)
        rounds = [
            (
                *key,
                each["round"],
                each["brokers"],
                *(each[name] for name in RESTART_ROUNDS.names[4:]),
            )
            for each in self.tightest
        ]
        moves = [
            (*key, m["topic"], m["partition"], m["from"], m["to"], m["replicas"])
            for m in (self.fix.moves if self.fix else [])
        ]
        return {
            "restart_rounds": small_frame(spark, rounds, RESTART_ROUNDS),
            "restart_moves": small_frame(spark, moves, RESTART_MOVES),
        }

    def _unsavable(self, limit: int, topic: str | None) -> list[Told]:
        rows = demanding.unsavable(self.demands)
        if topic is not None:
            rows = rows.where(F.col("topic").rlike(topic))
        first = rows.orderBy(F.desc("internal"), "topic", "partition").limit(limit)
        return [row.asDict() for row in first.collect()]


@contextmanager
def answered(snapshots: Snapshots, asked: Asked) -> Iterator[Answer]:
    demands = kept(demanding.demands(snapshots, asked.brokers), rows=snapshots.rows)
    conflicts = kept(demanding.conflicts(demands), rows=snapshots.at_most(SOME_OF_EACH))
    try:
        yield _answer(demands, conflicts, asked)
    finally:
        conflicts.unpersist()
        demands.unpersist()


def _answer(demands: DataFrame, conflicts: DataFrame, asked: Asked) -> Answer:
    totals = demanding.totals(demands)
    found = demanding.collected(conflicts, has_larger=totals.most_allowed > 1)
    quorum = quorum_conflicts(asked)
    plan = planning.plan(
        asked.brokers,
        [*found.sets, *quorum],
        max_parallel=asked.max_parallel,
        racks=asked.racks if asked.by_rack else None,
    )
    rounds = with_the_controller_last(asked.cluster, plan.rounds)
    return Answer(
        asked,
        totals,
        plan,
        rounds,
        _proven(demands, rounds),
        _fix(demands, conflicts, found.sets, asked, _slots(asked, totals, len(rounds))),
        is_exact=found.are_exact and not totals.reduced,
        demands=demands,
    )


def quorum_conflicts(asked: Asked) -> list[frozenset[int]]:
    """Brokers that are voters of a metadata quorum, too: a majority of these stays up."""
    voters = asked.cluster.voters if asked.cluster.is_kraft else None
    if not voters:
        return []
    may_go = (len(voters) - 1) // 2
    together = max(2, may_go + 1)  # one alone has to restart at some time
    return [frozenset(each) for each in combinations(sorted(voters & {*asked.brokers}), together)]


def _proven(demands: DataFrame, rounds: Sequence[Sequence[int]]) -> list[Told]:
    """The tightest partition of each round, seen by holding every partition against them."""
    round_of = {broker: n for n, down in enumerate(rounds, 1) for broker in down}
    seen = {row["round"]: row for row in demanding.proof(demands, round_of).collect()}
    if any(row.spare < 0 for row in seen.values()):
        raise RuntimeError("a round of the plan takes a partition under min ISR")
    nothing = dict.fromkeys(("topic", "partition", "in_sync", "min_isr", "down"))
    told = []
    for n, down in enumerate(rounds, 1):
        row = seen.get(n)
        counts = {"partitions": 0, "at_min_isr": 0, "spare": None}
        if row is not None:
            counts = {name: row[name] for name in counts}
        witness = nothing if row is None else row.witness.asDict()
        told.append({"round": n, "brokers": list(down), **counts, **witness})
    return told


# --- What would make it shorter ------------------------------------------------------------------


def _slots(asked: Asked, totals: demanding.Totals, rounds: int) -> list[moving.Slot] | None:
    """The rounds to aim at: those of racks, if that is fewer; None if there is nothing to gain."""
    slots = moving.slots(asked.brokers, asked.racks, totals.fewest_rounds, asked.max_parallel)
    if len(slots) < totals.fewest_rounds and not asked.by_rack:
        slots = moving.slots(asked.brokers, {}, totals.fewest_rounds, asked.max_parallel)
    return slots if totals.fewest_rounds <= len(slots) < rounds else None


def _fix(
    demands: DataFrame,
    conflicts: DataFrame,
    sets: Mapping[frozenset[int], int],
    asked: Asked,
    slots: Sequence[moving.Slot] | None,
) -> Fix | None:
    if slots is None:
        return None
    slot_of = moving.aimed(asked.brokers, sets, slots, asked.racks)
    count, is_exact = None, False
    if len(asked.brokers) <= _EXACT_UP_TO and (groups := _groups(demands)):
        # Racks are a good guide where to begin, but only a rule when asked for.
        free = slots if asked.by_rack else [each._replace(rack=None) for each in slots]
        best = moving.fewest(groups, free, asked.racks, slot_of)
        slot_of, count, is_exact = best.slot_of, best.moves, best.is_exact
    if any(len({slot_of[b] for b in each}) == 1 for each in quorum_conflicts(asked)):
        return None  # no move of a replica makes the quorum larger
    misplaced = demanding.misplaced(demands, slot_of)
    if count is None:
        count = (misplaced.agg(F.expr("sum(excess) AS n")).first() or [0])[0] or 0
    at_least = count if is_exact else _at_least(demands, slot_of, len(slots))
    moves, homeless = _moves(misplaced, asked, slot_of)
    together = [each for each in sets if len({slot_of[b] for b in each}) == 1]
    return Fix(
        len(slots),
        slot_of,
        count,
        at_least,
        moves,
        _together(conflicts, slot_of),
        len(together),
        homeless,
    )


def _groups(demands: DataFrame) -> list[moving.Demand]:
    """The partitions by their brokers, where that is few groups; else nothing."""
    rows = demands.groupBy("pool", "allowed").count().limit(_GROUPS_AT_MOST + 1).collect()
    if len(rows) > _GROUPS_AT_MOST:
        return []
    return [moving.Demand(frozenset(row.pool), row.allowed, row["count"]) for row in rows]


def _at_least(demands: DataFrame, slot_of: Mapping[int, int], rounds: int) -> int:
    worth = {
        (row.broker, near.broker): near.worth
        for row in demanding.worth_of_pairs(demands, slot_of).collect()
        for near in row.near
    }
    return moving.at_least(worth, slot_of, rounds)


def _moves(
    misplaced: DataFrame, asked: Asked, slot_of: Mapping[int, int]
) -> tuple[list[Told], int]:
    places = moving.Places(asked.cluster.live, asked.racks, slot_of)
    moves: list[Told] = []
    homeless = 0
    first = misplaced.orderBy("topic", "partition").limit(MOVES_AT_MOST)
    for row in first.select(
        "topic", "partition", "replicas", "leader", "pool", "allowed"
    ).collect():
        found = places.moves(row.replicas, row.leader, row.pool, row.allowed)
        homeless += found is None
        moves += [
            {
                "topic": row.topic,
                "partition": row.partition,
                "from": move.leaves,
                "to": move.joins,
                "replicas": list(move.replicas),
            }
            for move in found or ()
        ]
    return moves, homeless


def _together(conflicts: DataFrame, slot_of: Mapping[int, int]) -> list[Told]:
    """The conflicts inside the rounds one would like to have, those of most partitions first."""
    inside = demanding.with_rounds(conflicts, slot_of, "brokers").where(
        "size(array_distinct(rounds)) = 1"
    )
    first = inside.orderBy(F.desc("partitions"), "brokers").limit(MOVES_AT_MOST)
    return [
        {"brokers": row.brokers, "partitions": row.partitions, **row.witness.asDict()}
        for row in first.collect()
    ]


# --- The plan, replayed --------------------------------------------------------------------------


def replayed(
    snapshots: Snapshots, cluster: Cluster, rounds: Sequence[Sequence[int]]
) -> replaying.Replay:
    """Every round through the controller; the caller closes it."""
    return replaying.replay(snapshots, [scenario(cluster, rounds)], changed_only=True)


def told_of_replay(replay: replaying.Replay, rounds: Sequence[Sequence[int]]) -> Told:
    per_round = by_round(replay.tables, rounds).orderBy("round").collect()
    after = outcome(replay.tables["partition_states"]).first()
    return {
        "rounds": [row.asDict() for row in per_round],
        "after": None if after is None else after.asDict(),
        "notes": replay.notes,
    }
