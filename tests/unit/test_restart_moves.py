"""Moves make the rounds safe, and are never said to be fewer than the fewest."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import combinations
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

import restart_checker as checker
from understudy.questions.restart import moves as moving
from understudy.questions.restart.moves import Demand, Places, Slot

BROKERS = range(6)
NO_RACKS: dict[int, str] = {}


@st.composite
def demands(draw: st.DrawFn) -> list[checker.Demand]:
    pools = st.frozensets(st.sampled_from(BROKERS), min_size=2, max_size=3)
    found = draw(st.lists(pools, min_size=1, max_size=12))
    return [checker.Demand(pool, draw(st.integers(1, len(pool) - 1))) for pool in found]


def grouped(partitions: list[checker.Demand]) -> list[Demand]:
    return [Demand(*demand, count) for demand, count in Counter(partitions).items()]


def weighted(partitions: list[checker.Demand]) -> Counter[frozenset[int]]:
    return Counter(each for demand in partitions for each in checker.conflicts([demand]))


def worth(partitions: list[checker.Demand], slot_of: dict[int, int]) -> dict[moving.Pair, float]:
    """The credit of each pair, as ``restart.demands.worth_of_pairs`` has it."""
    found: defaultdict[moving.Pair, float] = defaultdict(float)
    for pool, slack in partitions:
        slots = [slot_of[broker] for broker in pool]
        for a, b in combinations(sorted(pool), 2):
            if slack == 1 and slot_of[a] == slot_of[b]:
                found[a, b] += 2 / slots.count(slot_of[a])
            elif slack == 1:
                sizes = slots.count(slot_of[a]) * slots.count(slot_of[b])
                found[a, b] += 2 / len(set(slots)) / sizes
    return dict(found)


@settings(max_examples=80, deadline=None)
@given(demands())
def test_small_cases_are_exact_and_bounds_hold(partitions: list[checker.Demand]) -> None:
    wanted = [Slot(None, len(BROKERS))] * 3
    first = moving.aimed(BROKERS, weighted(partitions), wanted, NO_RACKS)
    assert sorted(first) == list(BROKERS)
    found = moving.fewest(grouped(partitions), wanted, NO_RACKS, first)
    fewest = checker.fewest_moves(BROKERS, partitions, 3)
    assert found.is_exact
    assert found.moves == fewest
    assert found.moves == sum(moving.excess(d, found.slot_of) * d.partitions
                              for d in grouped(partitions))  # fmt: skip
    for spread in (first, found.slot_of):
        assert moving.at_least(worth(partitions, spread), spread, 3) <= fewest


@settings(max_examples=80, deadline=None)
@given(demands(), st.randoms(use_true_random=False))
def test_moves_take_partitions_out_of_the_way(
    partitions: list[checker.Demand], rng: Random
) -> None:
    slot_of = {broker: broker % 3 for broker in BROKERS}
    rounds = [[b for b in BROKERS if slot_of[b] == n] for n in range(3)]
    places = Places(range(8), {b: "abc"[b % 3] for b in range(8)}, slot_of)
    for demand in partitions:
        replicas = rng.sample(sorted(demand.pool), len(demand.pool))
        moves = places.moves(replicas, replicas[0], demand.pool, demand.slack)
        assert moves is not None
        assert len(moves) == checker.excess(demand, rounds)
        for move in moves:
            assert replicas[0] != move.leaves
            assert move.joins not in replicas
            replicas[replicas.index(move.leaves)] = move.joins
            assert move.replicas == tuple(replicas)
        assert checker.excess(checker.Demand(frozenset(replicas), demand.slack), rounds) == 0


def test_misplaced_partitions_of_racks_are_all_it_takes() -> None:
    """The bound is the number of moves: nobody can do with fewer."""
    partitions = checker.rack_aware(
        Random(3), brokers=30, racks=3, partitions=3_000, misplaced=0.01
    )
    racks = {broker: "abc"[broker // 10] for broker in range(30)}
    wanted = moving.slots(range(30), racks, 3, None)
    spread = moving.aimed(range(30), weighted(partitions), wanted, racks)
    moves = sum(moving.excess(d, spread) * d.partitions for d in grouped(partitions))
    assert moves > 10
    assert moving.at_least(worth(partitions, spread), spread, 3) == moves


def test_a_partition_with_nowhere_to_go() -> None:
    assert Places([1, 2], {}, {1: 0, 2: 0}).moves([1, 2], 1, [1, 2], 1) is None


def test_slots_follow_racks_and_what_may_go_at_once() -> None:
    racks = {1: "a", 2: "a", 3: "a", 4: "b"}
    assert moving.slots([1, 2, 3, 4], racks, 9, None) == [Slot("a", 4), Slot("b", 4)]
    assert moving.slots([1, 2, 3, 4], racks, 9, 2) == [Slot("a", 2)] * 2 + [Slot("b", 2)]
    assert moving.slots([1, 2, 3, 4, 5], racks, 2, None) == [Slot(None, 5)] * 2
    assert moving.slots([1, 2, 3, 4, 5], racks, 2, 2) == [Slot(None, 2)] * 3
