"""The small problems over sets of brokers, against trying everything."""

from __future__ import annotations

from itertools import chain, combinations
from math import isclose, prod
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from understudy.questions.broker_sets import (
    EFFORT,
    grown,
    hitting_set,
    minimal,
    probability_of_any,
)

BROKERS = range(1, 8)
SETS = st.lists(st.frozensets(st.sampled_from(BROKERS), min_size=1, max_size=4), max_size=9)
EFFORTS = st.sampled_from([0, 3, 20, EFFORT])


def every_set() -> list[frozenset[int]]:
    sizes = range(len(BROKERS) + 1)
    return [frozenset(s) for s in chain.from_iterable(combinations(BROKERS, n) for n in sizes)]


@given(SETS)
def test_minimal_sets_contain_no_other(sets: list[frozenset[int]]) -> None:
    expected = {s for s in sets if not any(o < s for o in sets)}
    found = minimal(sets)
    assert set(found) == expected
    assert len(found) == len(expected)


@given(SETS, EFFORTS)
def test_a_hitting_set_hits_and_its_bound_holds(sets: list[frozenset[int]], effort: int) -> None:
    smallest = min(len(h) for h in every_set() if all(h & s for s in sets))
    found = hitting_set(sets, effort)
    assert all(set(found.brokers) & s for s in sets)
    assert found.at_least <= smallest <= len(found.brokers)
    if effort == EFFORT:
        assert found.is_smallest


@given(SETS, EFFORTS, st.integers(1, 8))
def test_growth_is_safe_and_cannot_go_on(
    sets: list[frozenset[int]], effort: int, size: int
) -> None:
    def is_safe(brokers: frozenset[int]) -> bool:
        return not any(s <= brokers for s in sets)

    largest = min(size, max(len(b) for b in every_set() if is_safe(b)))
    found = grown(BROKERS, sets, size, effort)
    chosen = frozenset(found.brokers)
    assert is_safe(chosen)
    assert len(chosen) <= largest
    if len(chosen) < size:
        assert not any(is_safe(chosen | {b}) for b in BROKERS if b not in chosen)
    if found.is_largest:
        assert len(chosen) == largest
    assert found.is_largest or effort < EFFORT


@given(SETS, EFFORTS, st.lists(st.floats(0, 1), min_size=len(BROKERS), max_size=len(BROKERS)))
def test_the_odds_are_those_of_every_failure(
    sets: list[frozenset[int]], effort: int, given_rates: list[float]
) -> None:
    rates = dict(zip(BROKERS, given_rates, strict=True))
    exact = sum(
        prod(rates[b] if b in failed else 1 - rates[b] for b in BROKERS)
        for failed in every_set()
        if any(s <= failed for s in sets)
    )
    found = probability_of_any(sets, rates, effort)
    slack = 1e-9
    assert found.low - slack <= exact <= found.high + slack
    if effort == EFFORT:
        assert isclose(found.low, exact, abs_tol=slack)
        assert isclose(found.high, exact, abs_tol=slack)


def test_large_cases_end_with_bounds() -> None:
    rng = Random(1)
    sets = [frozenset(rng.sample(range(60), 3)) for _ in range(2_000)]
    found = probability_of_any(sets, dict.fromkeys(range(60), 0.01), 20_000)
    assert 0 < found.low < found.high < 1
    assert not hitting_set(sets, 20_000).is_smallest
    assert len(grown(range(60), sets, 60, 20_000).brokers) >= 2


def test_the_odds_agree_with_a_simulation() -> None:
    rng = Random(2)
    sets = [frozenset(rng.sample(range(12), rng.choice([2, 3]))) for _ in range(14)]
    rates = {broker: rng.choice([0.05, 0.1, 0.2]) for broker in range(12)}
    found = probability_of_any(sets, rates)
    assert found.is_exact
    trials = 40_000
    hits = 0
    for _ in range(trials):
        failed = {b for b, rate in rates.items() if rng.random() < rate}
        hits += any(s <= failed for s in sets)
    deviation = (found.low * (1 - found.low) / trials) ** 0.5
    assert abs(hits / trials - found.low) < 5 * deviation
