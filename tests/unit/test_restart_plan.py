"""Rounds are safe, as few as can be on small clusters, and never said to be fewer than can be."""

from __future__ import annotations

from collections.abc import Collection
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import restart_checker as checker
from restart_checker import Demand
from understudy.questions.restart import plan as planning
from understudy.questions.restart.plan import Plan, plan

BROKERS = range(7)
RACKS = {b: "abc"[b % 3] for b in BROKERS}


@st.composite
def demands(draw: st.DrawFn) -> list[Demand]:
    pools = draw(st.lists(st.frozensets(st.sampled_from(BROKERS), min_size=2, max_size=5)))
    return [Demand(pool, draw(st.integers(1, len(pool)))) for pool in pools]


def check(found: Plan, brokers: range, partitions: Collection[Demand]) -> None:
    assert sorted(b for each in found.rounds for b in each) == list(brokers)
    assert all(checker.is_safe(each, partitions) for each in found.rounds)
    assert found.at_least <= len(found.rounds)


@settings(max_examples=80, deadline=None)
@given(demands(), st.one_of(st.none(), st.integers(1, 4)), st.sampled_from([None, RACKS]))
def test_small_plans_are_safe_and_the_fewest(
    partitions: list[Demand], max_parallel: int | None, racks: dict[int, str] | None
) -> None:
    found = plan(BROKERS, checker.conflicts(partitions), max_parallel=max_parallel, racks=racks)
    check(found, BROKERS, partitions)
    assert max_parallel is None or max(map(len, found.rounds)) <= max_parallel
    assert racks is None or all(len({racks[b] for b in each}) == 1 for each in found.rounds)
    fewest = checker.fewest_rounds(BROKERS, partitions, max_parallel=max_parallel, racks=racks)
    assert len(found.rounds) == found.at_least == fewest


@settings(max_examples=50, deadline=None)
@given(demands())
def test_without_search_plans_are_still_safe_and_bounds_still_hold(
    partitions: list[Demand],
) -> None:
    found = plan(BROKERS, checker.conflicts(partitions), effort=0)
    check(found, BROKERS, partitions)
    fewest = checker.fewest_rounds(BROKERS, partitions)
    assert found.at_least <= fewest <= len(found.rounds)


@pytest.mark.parametrize(("misplaced", "gap"), [(0.0, 0), (0.001, 0), (0.01, 2), (1.0, 0)])
def test_misplaced_partitions_cost_rounds(misplaced: float, gap: int) -> None:
    partitions = checker.rack_aware(
        Random(1), brokers=90, racks=3, partitions=10_000, misplaced=misplaced
    )
    sets = checker.conflicts(partitions)
    found = plan(range(90), sets)
    check(found, range(90), set(partitions))
    assert 3 <= found.at_least <= len(found.rounds) <= found.at_least + gap
    apart = found.apart
    assert all(frozenset((a, b)) in sets for a in apart for b in apart if a < b)
    assert len(apart) <= found.at_least


def test_the_same_input_gets_the_same_plan() -> None:
    partitions = checker.rack_aware(
        Random(2), brokers=30, racks=3, partitions=3_000, misplaced=0.01
    )
    sets = checker.conflicts(partitions)
    assert plan(range(30), sets) == plan(reversed(range(30)), sorted(sets, key=sorted))


def test_a_broker_without_a_rack_goes_alone() -> None:
    found = plan([1, 2, 3, 4], [], racks={1: "a", 2: "a"})
    assert found == Plan(((1, 2), (3,), (4,)), 3, (1,))


def test_nothing_to_restart() -> None:
    assert plan([], []) == Plan((), 0, ())


def test_conflicts_of_others_do_not_matter() -> None:
    assert plan([1, 2], [{1, 3}, {1, 2, 3}]).rounds == ((1, 2),)


def test_one_that_stands_in_the_way_makes_room() -> None:
    """Broker 0 fits nowhere until 1 leaves its round for another."""
    pairs = [frozenset(pair) for pair in ((0, 1), (0, 2), (0, 3))]
    problem = planning._Problem(range(5), pairs, 5)  # noqa: SLF001
    rounds = [0b00001, 0b10010, 0b01100]
    assert planning._emptied(problem, rounds) == [0b10001, 0b01110]  # noqa: SLF001
