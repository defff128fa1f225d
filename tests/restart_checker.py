"""What makes a rolling restart safe, and the fewest rounds there can be, tried out one by one."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import combinations
from random import Random
from typing import NamedTuple


class Demand(NamedTuple):
    """A partition as a restart sees it: its in-sync brokers and how many of them may be down."""

    pool: frozenset[int]
    slack: int


def conflicts(demands: Iterable[Demand]) -> set[frozenset[int]]:
    return {
        frozenset(chosen)
        for demand in demands
        for chosen in combinations(sorted(demand.pool), demand.slack + 1)
    }


def is_safe(down: Collection[int], demands: Iterable[Demand]) -> bool:
    return all(len(demand.pool.intersection(down)) <= demand.slack for demand in demands)


def fewest_rounds(
    brokers: Sequence[int],
    demands: Sequence[Demand],
    *,
    max_parallel: int | None = None,
    racks: dict[int, str] | None = None,
) -> int:
    def allowed(each: tuple[int, ...]) -> bool:
        of_one_rack = racks is None or len({racks[b] for b in each}) == 1
        room = max_parallel is None or len(each) <= max_parallel
        return of_one_rack and room and is_safe(each, demands)

    return min(len(rounds) for rounds in partitions_of(tuple(brokers)) if all(map(allowed, rounds)))


def partitions_of(items: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], ...]]:
    """Every way to split *items* into groups."""
    if not items:
        yield ()
        return
    first, rest = items[0], items[1:]
    for groups in partitions_of(rest):
        yield ((first,), *groups)
        for n, group in enumerate(groups):
            yield (*groups[:n], (first, *group), *groups[n + 1 :])


def excess(demand: Demand, rounds: Iterable[Collection[int]]) -> int:
    """How many of its replicas stand in the way of these rounds."""
    return sum(max(0, len(demand.pool.intersection(each)) - demand.slack) for each in rounds)


def fewest_moves(brokers: Sequence[int], demands: Sequence[Demand], count: int) -> int:
    """Over every way to have at most *count* rounds."""
    return min(
        sum(excess(demand, rounds) for demand in demands)
        for rounds in partitions_of(tuple(brokers))
        if len(rounds) <= count
    )


def rack_aware(
    rng: Random, *, brokers: int, racks: int, partitions: int, misplaced: float
) -> list[Demand]:
    """Three replicas in three racks, min ISR 2, but for the share that is misplaced."""
    each = brokers // racks
    found = []
    for _ in range(partitions):
        if rng.random() < misplaced:
            pool = rng.sample(range(brokers), 3)
        else:
            pool = [rack * each + rng.randrange(each) for rack in rng.sample(range(racks), 3)]
        found.append(Demand(frozenset(pool), 1))
    return found
