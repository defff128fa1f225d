"""Replica moves that would make a rolling restart shorter, and how few there can be at best.

Given the rounds one would like to have (racks, say), a partition has as many replicas in the way as
it has in-sync brokers in one round beyond those that may be down together, its *excess*. So many
moves make the rounds safe, and no fewer: a move takes at most one away. The fewest moves to reach a
number of rounds are the least total excess over all ways to spread the brokers over the rounds.

:func:`aimed` looks for a good spread, :func:`fewest` for the best where the case is small, and
:func:`at_least` bounds them all. With one more broker than rounds that are pairwise in conflict,
two have to share a round, and some partition is in the way. Let each partition spread credit over
the pairs of its brokers so that however they share rounds, the credit of the pairs that do is at
most its excess (which is so for a mean of spanning trees over its brokers). Then groups of pairwise
conflicting brokers that draw on disjoint credit need moves that add up.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Final, NamedTuple

EFFORT: Final = 200_000
"""How many times a broker is held against a round before a search settles for bounds."""
_ROUNDING: Final = 1e-6
_PASSES: Final = 20

Pair = tuple[int, int]  # ascending


class Slot(NamedTuple):
    """A round one would like to have."""

    rack: str | None  # of its brokers; None: any
    room: int


class Demand(NamedTuple):
    """Partitions alike: their in-sync brokers, and how many of these may be down together."""

    pool: frozenset[int]
    allowed: int
    partitions: int


def slots(
    brokers: Collection[int], racks: Mapping[int, str], rounds: int, max_parallel: int | None
) -> list[Slot]:
    """A round for each rack, or for as much of it as may go at once; without racks *rounds* alike.

    (Where not every broker has a rack, racks are no guide.)
    """
    room = max_parallel or len(brokers)
    if not all(broker in racks for broker in brokers):
        return [Slot(None, room)] * max(rounds, -(-len(brokers) // max(room, 1)))
    found = []
    for rack in sorted({racks[broker] for broker in brokers}):
        size = sum(racks[broker] == rack for broker in brokers)
        found += [Slot(rack, room)] * -(-size // room)
    return found


# --- A good spread -------------------------------------------------------------------------------


def aimed(
    brokers: Iterable[int],
    conflicts: Mapping[frozenset[int], int],
    wanted: Sequence[Slot],
    racks: Mapping[int, str],
) -> dict[int, int]:
    """The slot of each broker, few partitions in the way: greedy, then one change after another."""
    spread = _Spread(brokers, conflicts, wanted, racks)
    order = sorted(spread.about, key=lambda b: (-sum(p for _, p in spread.about[b]), b))
    for _ in range(_PASSES):
        if not sum(map(spread.put, order)):
            break
    return spread.slot_of


class _Spread:
    def __init__(
        self,
        brokers: Iterable[int],
        conflicts: Mapping[frozenset[int], int],
        wanted: Sequence[Slot],
        racks: Mapping[int, str],
    ) -> None:
        self.about: dict[int, list[tuple[frozenset[int], int]]] = {b: [] for b in brokers}
        for each, partitions in conflicts.items():
            for broker in each:
                self.about[broker].append((each, partitions))
        self.slot_of: dict[int, int] = {}
        self._wanted = wanted
        self._racks = racks
        self._mates = [0] * len(wanted)

    def put(self, broker: int) -> bool:
        """Put *broker* where it does the least harm; whether that is somewhere else."""
        slot, now = self._best_for(broker), self.slot_of.get(broker)
        if slot == now:
            return False
        if now is not None:
            self._mates[now] -= 1
        self.slot_of[broker] = slot
        self._mates[slot] += 1
        return True

    def _best_for(self, broker: int) -> int:
        costs, now = self._costs(broker), self.slot_of.get(broker)
        rack = self._racks.get(broker)
        open_to = (
            n
            for n, slot in enumerate(self._wanted)
            if slot.rack in (None, rack) and (self._mates[n] < slot.room or n == now)
        )
        return min(open_to, key=lambda n: (costs[n], n != now, self._mates[n], n))

    def _costs(self, broker: int) -> list[int]:
        """The partitions in the way, slot by slot."""
        costs = [0] * len(self._wanted)
        for each, partitions in self.about[broker]:
            taken = {self.slot_of.get(other) for other in each if other != broker}
            if len(taken) == 1 and (slot := taken.pop()) is not None:
                costs[slot] += partitions
        return costs


# --- The best spread -----------------------------------------------------------------------------


class Fewest(NamedTuple):
    slot_of: dict[int, int]
    moves: int
    is_exact: bool


def fewest(
    demands: Sequence[Demand],
    wanted: Sequence[Slot],
    racks: Mapping[int, str],
    first: Mapping[int, int],
    effort: int = EFFORT,
) -> Fewest:
    """The spread with the least total excess, starting from the spread *first*."""
    search = _Search(demands, wanted, racks, dict(first), effort)
    search.grow({}, 0, sorted(first, key=lambda b: (-search.weight(b), b)))
    return Fewest(search.best, search.moves, search.effort >= 0)


def excess(demand: Demand, slot_of: Mapping[int, int]) -> int:
    """Replicas in the way, of one partition; brokers without a slot are in nobody's."""
    taken = [slot_of[broker] for broker in demand.pool if broker in slot_of]
    return sum(max(0, taken.count(slot) - demand.allowed) for slot in set(taken))


class _Search:
    """Broker after broker into each slot; excess only grows: what is as bad as the best ends."""

    def __init__(
        self,
        demands: Sequence[Demand],
        wanted: Sequence[Slot],
        racks: Mapping[int, str],
        best: dict[int, int],
        effort: int,
    ) -> None:
        self.about: dict[int, list[Demand]] = {broker: [] for broker in best}
        for demand in demands:
            for broker in demand.pool & best.keys():
                self.about[broker].append(demand)
        self.wanted = wanted
        self.racks = racks
        self.best = best
        self.moves = sum(d.partitions * excess(d, best) for d in demands)
        self.effort = effort

    def weight(self, broker: int) -> int:
        return sum(demand.partitions for demand in self.about[broker])

    def grow(self, chosen: dict[int, int], moves: int, left: Sequence[int]) -> None:
        if not left:
            self.best, self.moves = dict(chosen), moves
            return
        broker, rest = left[0], left[1:]
        tried: set[tuple[Slot, tuple[int, ...]]] = set()
        taken = list(chosen.values())
        for n, slot in enumerate(self.wanted):
            alike = (slot, () if n not in taken else (n,))  # empty slots of a kind are one
            if slot.rack not in (None, self.racks.get(broker)) or taken.count(n) >= slot.room:
                continue
            if alike in tried or self.effort < 0:
                continue
            tried.add(alike)
            self.effort -= 1 + len(self.about[broker])
            chosen[broker] = n
            worse = sum(d.partitions * self._added(d, broker, chosen) for d in self.about[broker])
            if moves + worse < self.moves:
                self.grow(chosen, moves + worse, rest)
            del chosen[broker]

    @staticmethod
    def _added(demand: Demand, broker: int, chosen: Mapping[int, int]) -> int:
        slot = chosen[broker]
        return int(sum(chosen.get(other) == slot for other in demand.pool) > demand.allowed)


# --- The bound -----------------------------------------------------------------------------------


def at_least(
    worth: Mapping[Pair, float], slot_of: Mapping[int, int], rounds: int, effort: int = EFFORT
) -> int:
    """How many moves any spread over *rounds* takes, by what each pair of brokers is worth.

    *slot_of* is a good spread: the pairs it puts together are the ones to build groups around.
    """
    left = dict(worth)
    brokers: dict[int, list[int]] = {}
    for broker, slot in sorted(slot_of.items()):
        brokers.setdefault(slot, []).append(broker)
    total = 0.0
    for pair in sorted(pair for pair in worth if _share(pair, slot_of)):
        others = [each for slot, each in sorted(brokers.items()) if slot != slot_of[pair[0]]]
        while left[pair] > _ROUNDING and effort > 0:
            group = _group(pair, others, left, rounds + 1)
            effort -= sum(map(len, others)) * rounds
            if group is None:
                break
            pairs = [(a, b) for a in group for b in group if a < b]
            amount = min(left[each] for each in pairs)
            for each in pairs:
                left[each] -= amount
            total += amount
    return ceil(total - _ROUNDING)


def _share(pair: Pair, slot_of: Mapping[int, int]) -> bool:
    first, second = (slot_of.get(broker) for broker in pair)
    return first is not None and first == second


def _group(
    pair: Pair, others: Iterable[Sequence[int]], left: Mapping[Pair, float], size: int
) -> list[int] | None:
    """*pair* and one broker of each other slot, pairwise worth something still; or None."""
    group = list(pair)
    for candidates in others:
        worth, broker = max(
            (min(left.get((min(b, m), max(b, m)), 0.0) for m in group), -b) for b in candidates
        )
        if worth <= _ROUNDING:
            return None
        group.append(-broker)
    return group if len(group) == size else None


# --- The moves -----------------------------------------------------------------------------------


class Move(NamedTuple):
    """One replica of a partition to another broker; ``replicas`` is the assignment after it."""

    leaves: int
    joins: int
    replicas: tuple[int, ...]


@dataclass
class Places:
    """Where replicas can go: the live brokers, evenly."""

    live: Collection[int]
    racks: Mapping[int, str]
    slot_of: Mapping[int, int]
    _joined: dict[int, int] = field(default_factory=dict)

    def moves(
        self, replicas: Sequence[int], leader: int, pool: Collection[int], allowed: int
    ) -> list[Move] | None:
        """What takes a partition out of the way of the rounds; None where it has nowhere to go.

        A follower moves rather than the leader, and to a rack of its own if there is one.
        """
        now, found = list(replicas), []
        in_pool = set(pool)
        while (overfull := self._overfull(in_pool, allowed)) is not None:
            in_slot = [b for b in now if b in in_pool and self.slot_of[b] == overfull]
            leaves = max(in_slot, key=lambda b: (b != leader, now.index(b)))
            joins = self._place(now, leaves, in_pool, allowed)
            if joins is None:
                return None
            now[now.index(leaves)] = joins
            in_pool = in_pool - {leaves} | ({joins} & self.slot_of.keys())
            self._joined[joins] = self._joined.get(joins, 0) + 1
            found.append(Move(leaves, joins, tuple(now)))
        return found

    def _overfull(self, pool: Iterable[int], allowed: int) -> int | None:
        taken = [self.slot_of[broker] for broker in pool]
        return min((slot for slot in taken if taken.count(slot) > allowed), default=None)

    def _place(
        self, replicas: Sequence[int], leaves: int, pool: Iterable[int], allowed: int
    ) -> int | None:
        taken = [self.slot_of[broker] for broker in pool if broker != leaves]
        racks = [self.racks.get(broker) for broker in replicas if broker != leaves]
        open_to = (
            b
            for b in self.live
            if b not in replicas
            and (b not in self.slot_of or taken.count(self.slot_of[b]) < allowed)
        )
        return min(
            open_to,
            key=lambda b: (self.racks.get(b) in racks, self._joined.get(b, 0), b),
            default=None,
        )
