"""Small problems over sets of brokers, in plain Python: who must return, who may go, how likely.

All of them are hard in general. Each function is exact where the case is small, which nearly every
real one is once it is reduced to distinct sets, and otherwise gives what it found together with a
bound that holds. Work is limited by counting, never by the clock: the same input gets the same
answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from math import prod
from typing import Final, NamedTuple

Brokers = frozenset[int]

EFFORT: Final = 100_000
"""How many sets are looked at before a search settles for bounds."""


def minimal(sets: Iterable[Collection[int]]) -> list[Brokers]:
    """The sets that contain no other one, the small ones first."""
    kept: list[Brokers] = []
    by_member: dict[int, list[Brokers]] = {}
    for each in sorted({frozenset(s) for s in sets}, key=lambda s: (len(s), sorted(s))):
        if not any(other <= each for member in each for other in by_member.get(member, ())):
            if not each:
                return [each]
            kept.append(each)
            by_member.setdefault(min(each), []).append(each)
    return kept


# --- Who must return -----------------------------------------------------------------------------


class Hitting(NamedTuple):
    """A set that has a member in common with each given one."""

    brokers: tuple[int, ...]
    at_least: int  # no such set is smaller

    @property
    def is_smallest(self) -> bool:
        return len(self.brokers) == self.at_least


def hitting_set(sets: Iterable[Collection[int]], effort: int = EFFORT) -> Hitting:
    """The smallest set with a member of every one of *sets*, none of which may be empty."""
    needed = minimal(sets)
    best = _greedy_hitting(needed)
    search = _HittingSearch(best, effort)
    search.grow((), needed)
    at_least = len(_disjoint(needed)) if search.effort < 0 else len(search.best)
    return Hitting(tuple(sorted(search.best)), at_least)


def _greedy_hitting(sets: list[Brokers]) -> tuple[int, ...]:
    chosen: list[int] = []
    while sets:
        broker = _most_common(sets)
        chosen.append(broker)
        sets = [s for s in sets if broker not in s]
    return tuple(chosen)


def _most_common(sets: Iterable[Brokers]) -> int:
    seen = Counter(broker for s in sets for broker in s)
    return min(seen, key=lambda broker: (-seen[broker], broker))


def _disjoint(sets: Iterable[Brokers]) -> list[Brokers]:
    """Sets that share no member, taken as they come."""
    taken: set[int] = set()
    found = []
    for each in sets:
        if taken.isdisjoint(each):
            taken |= each
            found.append(each)
    return found


class _HittingSearch:
    """Branch on the members of a smallest set that is not hit yet."""

    def __init__(self, best: tuple[int, ...], effort: int) -> None:
        self.best = best
        self.effort = effort

    def grow(self, chosen: tuple[int, ...], left: list[Brokers]) -> None:
        self.effort -= len(left)
        if not left:
            self.best = chosen if len(chosen) < len(self.best) else self.best
            return
        if self.effort < 0 or len(chosen) + len(_disjoint(left)) >= len(self.best):
            return
        smallest: Brokers = min(left, key=len)
        for broker in sorted(smallest):
            self.grow((*chosen, broker), [s for s in left if broker not in s])


# --- Who may go ----------------------------------------------------------------------------------


class Growth(NamedTuple):
    brokers: tuple[int, ...]
    is_largest: bool  # else only: nobody can be added to it


def grown(
    candidates: Iterable[int],
    conflicts: Iterable[Collection[int]],
    size: int,
    effort: int = EFFORT,
) -> Growth:
    """At most *size* of *candidates*, as many as can be, that contain no set of *conflicts*."""
    sets = minimal(conflicts)
    alone = {next(iter(s)) for s in sets if len(s) == 1}
    search = _GrowthSearch([s for s in sets if len(s) > 1], size, effort)
    free = sorted(set(candidates) - alone)
    # Those with the fewest conflicts first: a first guess that is hard to beat.
    order = sorted(free, key=lambda broker: (len(search.conflicts.get(broker, ())), broker))
    search.grow((), order)
    return Growth(tuple(sorted(search.best)), search.effort >= 0 or len(search.best) >= size)


class _GrowthSearch:
    """Take the next one or leave it; the first branch down takes whoever fits, and is maximal."""

    def __init__(self, sets: Iterable[Brokers], size: int, effort: int) -> None:
        self.conflicts: dict[int, list[Brokers]] = {}
        for each in sets:
            for broker in each:
                self.conflicts.setdefault(broker, []).append(each)
        self.size = size
        self.effort = effort
        self.best: tuple[int, ...] = ()

    def grow(self, chosen: tuple[int, ...], left: list[int]) -> None:
        # A loop down the branch that takes, so that only leaving somebody out is a level deeper.
        skipped: list[tuple[tuple[int, ...], list[int]]] = []
        while left and len(chosen) < self.size:
            self.effort -= 1
            broker, left = left[0], left[1:]
            if self._fits(broker, chosen):
                skipped.append((chosen, left))
                chosen = (*chosen, broker)
        if len(chosen) > len(self.best):
            self.best = chosen
        for before, rest in reversed(skipped):
            if self.effort < 0 or len(self.best) >= self.size:
                return
            if len(before) + len(rest) > len(self.best):
                self.grow(before, rest)

    def _fits(self, broker: int, chosen: tuple[int, ...]) -> bool:
        taken = {*chosen, broker}
        found = self.conflicts.get(broker, ())
        self.effort -= len(found)
        return not any(s <= taken for s in found)


# --- How likely ----------------------------------------------------------------------------------


class Bounds(NamedTuple):
    low: float
    high: float

    @property
    def is_exact(self) -> bool:
        return self.low == self.high


def probability_of_any(
    sets: Iterable[Collection[int]], rates: Mapping[int, float], effort: int = EFFORT
) -> Bounds:
    """That some set fails as a whole, when each broker fails by itself at its rate."""
    return _Odds(rates).of(frozenset(minimal(sets)), effort)


class _Odds:
    """Decide one broker after the other: it fails or not, and the sets get smaller or fewer."""

    def __init__(self, rates: Mapping[int, float]) -> None:
        self._rates = rates
        self._known: dict[frozenset[Brokers], Bounds] = {}

    def of(self, sets: frozenset[Brokers], effort: int) -> Bounds:
        if not sets:
            return Bounds(0.0, 0.0)
        if frozenset() in sets:
            return Bounds(1.0, 1.0)
        if sets in self._known:
            return self._known[sets]
        effort -= len(sets)
        found = self._decided(sets, effort) if effort > 0 else self._bounds(sets)
        if found.is_exact:
            self._known[sets] = found
        return found

    def _decided(self, sets: frozenset[Brokers], effort: int) -> Bounds:
        parts = _parts(sets)
        if len(parts) > 1:
            each = [self.of(part, effort // len(parts)) for part in parts]
            return Bounds(*(1 - prod(1 - p[side] for p in each) for side in (0, 1)))
        broker = _most_common(sorted(sets, key=sorted))
        rate = self._rates[broker]
        fails = self.of(frozenset(minimal(s - {broker} for s in sets)), effort // 2)
        stays = self.of(frozenset(s for s in sets if broker not in s), effort // 2)
        return Bounds(
            rate * fails.low + (1 - rate) * stays.low, rate * fails.high + (1 - rate) * stays.high
        )

    def _bounds(self, sets: frozenset[Brokers]) -> Bounds:
        """Sets without a common member fail independently of each other.

        Failures only ever help other sets to fail, so that all sets staying whole is at least as
        likely as if they were independent (Harris' inequality).
        """
        odds = {s: prod(self._rates[broker] for broker in s) for s in sets}
        likely = sorted(sets, key=lambda s: (-odds[s], sorted(s)))
        low = 1 - prod(1 - odds[s] for s in _disjoint(likely))
        return Bounds(low, max(low, 1 - prod(1 - p for p in odds.values())))


def _parts(sets: Iterable[Brokers]) -> list[frozenset[Brokers]]:
    """The sets by who is linked with whom: parts that have no broker in common."""
    parts: list[tuple[set[int], set[Brokers]]] = []
    for each in sets:
        linked = [part for part in parts if not part[0].isdisjoint(each)]
        parts = [part for part in parts if part[0].isdisjoint(each)]
        brokers = set(each).union(*(part[0] for part in linked))
        parts.append((brokers, {each}.union(*(part[1] for part in linked))))
    return [frozenset(part[1]) for part in parts]
