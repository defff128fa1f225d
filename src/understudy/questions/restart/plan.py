"""Rounds of brokers that may be down together, as few as can be found, in plain Python.

A *conflict* is a set of brokers of which one has to stay up: a partition with slack *s* (in-sync
replicas minus min ISR) makes one of any *s* + 1 of its in-sync brokers. Rounds without a whole
conflict are a colouring of that hypergraph. Finding the fewest is hard in general, so several
orders are tried, the best of them improved, and small cases searched to the end; what cannot be
beaten is said beside what was found. Work is limited by counting, never by the clock: the same
input gets the same plan.

Sets of brokers are bit masks over positions in a list, which makes a thousand brokers cheap.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from random import Random
from typing import Final, NamedTuple

from understudy.questions import broker_sets

EFFORT: Final = 1_000_000
"""How many times a broker is held against a round before a search settles for bounds."""
EXACT_UP_TO: Final = 60
"""Brokers; the search to the end takes a level of recursion for each."""

_PAIR: Final = 2
_STARTS: Final = 50
_CONFLICTS_TO_COUNT_BY: Final = 3_000

Rounds = list[int]  # a mask each


class Plan(NamedTuple):
    rounds: tuple[tuple[int, ...], ...]
    at_least: int  # no plan has fewer
    apart: tuple[int, ...]  # brokers no two of which may go together, the most that were found

    @property
    def is_fewest(self) -> bool:
        return len(self.rounds) == self.at_least


def plan(
    brokers: Iterable[int],
    conflicts: Iterable[Collection[int]],
    *,
    max_parallel: int | None = None,
    racks: Mapping[int, str] | None = None,
    effort: int = EFFORT,
) -> Plan:
    """Rounds of at most *max_parallel* of *brokers* that hold no whole set of *conflicts*.

    Each conflict has at least two members. With *racks* no round mixes them; a broker without one
    goes alone. The largest rounds come first.
    """
    wanted = sorted(set(brokers))
    sets = {each for each in map(frozenset, conflicts) if each.issubset(wanted)}
    parts = [wanted] if racks is None else _by_rack(wanted, racks)
    found = [_planned(part, sets, max_parallel, effort // len(parts)) for part in parts]
    rounds = sorted(
        (each for part in found for each in part.rounds), key=lambda each: (-len(each), each)
    )
    apart = max((part.apart for part in found), key=len, default=())
    return Plan(tuple(rounds), sum(part.at_least for part in found), apart)


def _by_rack(brokers: Sequence[int], racks: Mapping[int, str]) -> list[list[int]]:
    parts: dict[str | int, list[int]] = {}
    for broker in brokers:
        parts.setdefault(racks.get(broker, broker), []).append(broker)
    return list(parts.values())


def _planned(
    brokers: Sequence[int],
    conflicts: Collection[broker_sets.Brokers],
    max_parallel: int | None,
    effort: int,
) -> Plan:
    problem = _Problem(brokers, conflicts, len(brokers) if max_parallel is None else max_parallel)
    apart = problem.clique()
    at_least = max(len(apart), problem.by_the_largest_round())
    rounds = _most_blocked_first(problem)
    for order in problem.orders():
        if len(rounds) > at_least:
            rounds = min(rounds, _first_fit(problem, order), key=len)
    rounds = _improved(problem, rounds, at_least, effort)
    if at_least < len(rounds) and len(brokers) <= EXACT_UP_TO:
        search = _Search(problem, rounds, effort)
        search.grow([], (1 << len(brokers)) - 1, at_least)
        rounds = search.best
        at_least = at_least if search.effort < 0 else len(rounds)
    return Plan(
        tuple(tuple(brokers[n] for n in _bits(mask)) for mask in rounds),
        at_least,
        tuple(sorted(brokers[n] for n in apart)),
    )


def _bits(mask: int) -> Iterator[int]:
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


# --- The problem ---------------------------------------------------------------------------------


class _Problem:
    """Who may not go with whom, broker by broker."""

    def __init__(
        self, brokers: Sequence[int], conflicts: Collection[broker_sets.Brokers], room: int
    ) -> None:
        place = {broker: n for n, broker in enumerate(brokers)}
        own = [each for each in conflicts if all(broker in place for broker in each)]
        self.brokers = brokers
        self.conflicts = own
        self.room = room
        self.near = [0] * len(brokers)  # in conflict all by themselves
        self.wider: list[list[int]] = [[] for _ in brokers]  # the rest of each larger conflict
        for each in own:
            mask = sum(1 << place[broker] for broker in each)
            for n in (place[broker] for broker in each):
                if len(each) == _PAIR:
                    self.near[n] |= mask ^ (1 << n)
                else:
                    self.wider[n].append(mask ^ (1 << n))

    def fits(self, broker: int, mates: int) -> bool:
        return (
            not self.near[broker] & mates
            and mates.bit_count() < self.room
            and not any(rest & mates == rest for rest in self.wider[broker])
        )

    def degree(self, broker: int) -> int:
        return self.near[broker].bit_count() + len(self.wider[broker])

    def orders(self) -> Iterator[list[int]]:
        """Orders to take brokers in: as they come, the busiest first, the easiest last."""
        everybody = list(range(len(self.brokers)))
        yield everybody
        yield sorted(everybody, key=lambda n: (-self.degree(n), n))
        yield self._easiest_last()

    def _easiest_last(self) -> list[int]:
        """Again and again the one with the fewest conflicts among those left goes to the end."""
        left = (1 << len(self.brokers)) - 1
        degrees = {n: self.degree(n) for n in range(len(self.brokers))}
        order: list[int] = []
        while degrees:
            easiest = min(degrees, key=lambda n: (degrees[n], -n))
            del degrees[easiest]
            left ^= 1 << easiest
            order.append(easiest)
            for n in _bits(self.near[easiest] & left):
                degrees[n] -= 1
        return order[::-1]

    # --- What cannot be beaten -------------------------------------------------------------------

    def clique(self) -> list[int]:
        """Brokers that are pairwise in conflict, the most that a few greedy starts find."""
        starts = sorted(range(len(self.brokers)), key=lambda n: (-self.near[n].bit_count(), n))
        best: list[int] = []
        for n in starts[:_STARTS]:
            if self.near[n].bit_count() >= len(best):  # else it cannot be in a larger one
                best = max(best, self._clique_from(n), key=len)
        return best

    def _clique_from(self, broker: int) -> list[int]:
        found, open_to = [broker], self.near[broker]
        while open_to:
            # Who is near to all the others leaves them all open, and need not be compared on.
            most, best = -1, -1
            whole = open_to.bit_count() - 1
            for n in _bits(open_to):
                shared = (self.near[n] & open_to).bit_count()
                if shared > most:
                    most, best = shared, n
                if shared == whole:
                    break
            found.append(best)
            open_to &= self.near[best]
        return found

    def by_the_largest_round(self) -> int:
        """How many rounds there must be if each were as large as any can be."""
        count, largest = len(self.brokers), self.room
        if len(self.conflicts) <= _CONFLICTS_TO_COUNT_BY:
            grown = broker_sets.grown(self.brokers, self.conflicts, min(self.room, count))
            largest = len(grown.brokers) if grown.is_largest else largest
        return -(-count // max(largest, 1))


# --- Greedy --------------------------------------------------------------------------------------


def _first_fit(problem: _Problem, order: Iterable[int]) -> Rounds:
    rounds: Rounds = []
    for broker in order:
        for n, mates in enumerate(rounds):
            if problem.fits(broker, mates):
                rounds[n] = mates | 1 << broker
                break
        else:
            rounds.append(1 << broker)
    return rounds


def _most_blocked_first(problem: _Problem) -> Rounds:
    """Next comes whoever may join the fewest of the rounds there are (Brélaz' DSATUR)."""
    rounds: Rounds = []
    blocked = [0] * len(problem.brokers)  # the rounds each may not join
    degrees = [problem.degree(n) for n in range(len(problem.brokers))]
    left = set(range(len(problem.brokers)))
    while left:
        broker = max(left, key=lambda n: (blocked[n].bit_count(), degrees[n], -n))
        left.remove(broker)
        chosen = next(
            (n for n, mates in enumerate(rounds)
             if not blocked[broker] >> n & 1 and mates.bit_count() < problem.room),
            len(rounds),
        )  # fmt: skip
        if chosen == len(rounds):
            rounds.append(0)
        rounds[chosen] |= 1 << broker
        for n in _bits(problem.near[broker]):
            blocked[n] |= 1 << chosen
        for rest in problem.wider[broker]:
            missing = rest & ~rounds[chosen]
            if missing.bit_count() == 1:
                blocked[missing.bit_length() - 1] |= 1 << chosen
    return rounds


# --- Improvement ---------------------------------------------------------------------------------


def _improved(problem: _Problem, rounds: Rounds, at_least: int, effort: int) -> Rounds:
    """Take the brokers round by round in ever new orders of the rounds (Culberson).

    First fit never needs more rounds that way, and now and then one less.
    """
    rng = Random(len(rounds))  # noqa: S311  # the same plan every time is what is wanted
    best = rounds
    while len(best) > at_least and effort > 0:
        effort -= len(problem.brokers) * len(best)
        shuffled = list(rounds)
        rng.shuffle(shuffled)
        if rng.random() < 0.5:  # noqa: PLR2004
            shuffled.sort(key=int.bit_count, reverse=True)
        rounds = _emptied(
            problem, _first_fit(problem, (n for mask in shuffled for n in _bits(mask)))
        )
        best = min(best, rounds, key=len)
    return best


def _emptied(problem: _Problem, rounds: Rounds) -> Rounds:
    """The same without the smallest round, if its brokers find a place elsewhere."""
    smallest = min(range(len(rounds)), key=lambda n: rounds[n].bit_count())
    others = rounds[:smallest] + rounds[smallest + 1 :]
    for broker in _bits(rounds[smallest]):
        if not _placed(problem, others, broker):
            return rounds
    return others


def _placed(problem: _Problem, rounds: Rounds, broker: int) -> bool:
    """Put *broker* into one of *rounds*, if need be in the place of one who fits elsewhere."""
    for n, mates in enumerate(rounds):
        if problem.fits(broker, mates):
            rounds[n] |= 1 << broker
            return True
    for n, mates in enumerate(rounds):
        in_the_way = problem.near[broker] & mates
        if in_the_way.bit_count() != 1:
            continue
        rest = mates ^ in_the_way
        other = in_the_way.bit_length() - 1
        if not problem.fits(broker, rest):
            continue
        for m, elsewhere in enumerate(rounds):
            if m != n and problem.fits(other, elsewhere):
                rounds[n], rounds[m] = rest | 1 << broker, elsewhere | in_the_way
                return True
    return False


# --- Search to the end ---------------------------------------------------------------------------


class _Search:
    """Branch over the rounds for whoever has the fewest to choose from."""

    def __init__(self, problem: _Problem, best: Rounds, effort: int) -> None:
        self.problem = problem
        self.best = best
        self.effort = effort

    def grow(self, rounds: Rounds, left: int, at_least: int) -> None:
        if not left:
            self.best = list(rounds)
            return
        broker, choices = self._hardest(rounds, left)
        if len(rounds) + 1 < len(self.best):
            choices.append(len(rounds))  # a round of its own
        for n in choices:
            if n >= len(self.best) - 1 or self.effort < 0 or len(self.best) <= at_least:
                return
            grown = [*rounds, 0] if n == len(rounds) else list(rounds)
            grown[n] |= 1 << broker
            self.grow(grown, left ^ 1 << broker, at_least)

    def _hardest(self, rounds: Rounds, left: int) -> tuple[int, list[int]]:
        hardest, fewest = -1, [0] * (len(rounds) + 1)
        for broker in _bits(left):
            self.effort -= 1 + len(rounds)
            open_to = [n for n, mates in enumerate(rounds) if self.problem.fits(broker, mates)]
            easier = len(open_to) > len(fewest) or (
                len(open_to) == len(fewest)
                and self.problem.degree(broker) <= self.problem.degree(hardest)
            )
            if hardest < 0 or not easier:
                hardest, fewest = broker, open_to
        return hardest, fewest
