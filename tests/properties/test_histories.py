"""Whatever a controller did between two snapshots follows from the events that they betray."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from intervals import compared, interval_between
from played_intervals import KINDS, random_interval

randoms = st.randoms(use_true_random=False)
many = settings(max_examples=200, deadline=None)


def reasons(rng: Random, kinds: tuple[str, ...], length: int) -> Counter[str]:
    """Why partitions are not what was predicted, by how many of them."""
    before, after, _ = random_interval(rng, kinds=kinds, length=length)
    found = compared(interval_between(before, after)).divergences
    return Counter({(each.topic, each.partition): each.reason for each in found}.values())


@many
@given(rng=randoms, kind=st.sampled_from(KINDS))
def test_one_thing_that_happened_is_always_found(rng: Random, kind: str) -> None:
    assert not reasons(rng, (kind,), 1)


@many
@given(rng=randoms, length=st.integers(2, 6))
def test_leaders_and_preferred_elections_are_found_in_any_order(rng: Random, length: int) -> None:
    assert not reasons(rng, ("report", "preferred"), length)


@many
@given(rng=randoms, length=st.integers(1, 3))
def test_one_death_is_found_among_what_leaders_did(rng: Random, length: int) -> None:
    before, after, events = random_interval(rng, kinds=("report", "death"), length=length)
    deaths = [event for event in events if event["type"] != "isr_change"]
    found = compared(interval_between(before, after)).divergences
    if len(deaths) <= 1:
        assert not found


@pytest.mark.parametrize(("length", "share"), [(2, 0.002), (3, 0.01), (5, 0.03)])
def test_few_partitions_are_unexplained_where_much_happened(length: int, share: float) -> None:
    """Deaths of several controllers leave too little behind, or one broker that died twice."""
    rng = Random(11)
    changed = unexplained = 0
    for _ in range(150):
        before, after, _ = random_interval(rng, kinds=KINDS, length=length)
        found = compared(interval_between(before, after))
        changed += len({(c.topic, c.partition) for c in found.changes})
        odd = {(d.topic, d.partition) for d in found.divergences if d.reason == "unexplained"}
        unexplained += len(odd)
    assert unexplained <= share * changed
