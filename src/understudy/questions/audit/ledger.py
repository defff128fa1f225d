"""The ledger of an audit: which snapshots were judged with which, and what is left to do.

Snapshots are judged with up to :data:`LOOKBACK` complete ones before them. One that comes late
changes what its successors have to be judged with, so those are judged again; whatever has the
same content and the same predecessors keeps what was found. Plain values: there are as many of
them as snapshots, never as partitions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from hashlib import sha256
from itertools import groupby

from understudy.questions.audit.rule import LOOKBACK
from understudy.questions.history.order import Moment, bursts

Key = tuple[str, str]


@dataclass(frozen=True)
class Seen:
    """A snapshot as a store holds it; times are microseconds since 1970."""

    cluster: str
    snapshot_id: str
    taken_at: int | None
    controller_epoch: int | None
    complete: bool
    digest: str
    mode: str | None = field(default=None, compare=False)
    source_form: str | None = field(default=None, compare=False)
    controller_id: int | None = field(default=None, compare=False)

    @property
    def key(self) -> Key:
        return (self.cluster, self.snapshot_id)

    @property
    def moment(self) -> Moment:
        return Moment(self.taken_at, self.controller_epoch, self.snapshot_id, self.mode)

    @property
    def order(self) -> tuple[int, int, int, str]:
        return self.moment.order


@dataclass(frozen=True)
class Counts:
    """How many findings there are about a snapshot, or several."""

    errors: int = 0
    warnings: int = 0
    infos: int = 0
    silenced: int = 0

    @property
    def total(self) -> int:
        return self.errors + self.warnings + self.infos + self.silenced

    def __add__(self, more: Counts) -> Counts:
        return Counts(*(a + b for a, b in zip(astuple(self), astuple(more), strict=True)))


@dataclass(frozen=True)
class Entry:
    """A snapshot that was judged: with which ones before it, and where the findings stand."""

    seen: Seen
    previous: tuple[str, ...]
    run: str
    counts: Counts = Counts()
    brokers_up: int | None = None


@dataclass(frozen=True)
class Span:
    """The time that is asked about, and whether what is judged already is judged again."""

    since: int | None
    until: int | None
    again: bool = False

    def has(self, seen: Seen) -> bool:
        """A snapshot that does not know its time is in every span."""
        taken = seen.taken_at
        if taken is None:
            return True
        after = self.since is None or taken >= self.since
        return after and (self.until is None or taken < self.until)


@dataclass(frozen=True)
class History:
    """The snapshots of one cluster, those known from before included, and what is to do."""

    cluster: str
    complete: tuple[Seen, ...]
    """In their order; a number is a place in it, counted from 1."""
    judged: tuple[Seen, ...]
    """Those of them that are asked or kept: what the intervals of conditions are made of."""
    asked: tuple[Seen, ...]
    needed: tuple[Seen, ...]
    """Those that are looked back at and not asked themselves."""
    kept: tuple[Entry, ...]
    previous: Mapping[str, tuple[str, ...]]
    """By snapshot, the digests of those before it, and one of all the others of its burst."""
    bursts: Mapping[str, int]
    """By complete snapshot, what those of one burst have in common."""
    is_continued: bool
    """Whether all that is asked comes after all that is kept."""


def histories(
    stored: Iterable[Seen],
    entries: Iterable[Entry],
    *,
    since: int | None = None,
    until: int | None = None,
    again: bool = False,
) -> list[History]:
    """What is to do for each cluster that has anything to do.

    Asked is what is stored, taken from *since* until before *until*, and not yet judged as it has
    to be (or judged already, if it is to be judged *again*); and of what was judged before, all
    that has to be judged differently now.
    """
    known = {entry.seen.key: entry for entry in entries}
    snapshots = {**{key: entry.seen for key, entry in known.items()}, **_by_key(stored)}
    here = set(_by_key(stored))
    ordered = sorted(snapshots.values(), key=lambda seen: (seen.cluster, seen.order))
    found = [
        _history(tuple(of_cluster), known, here, Span(since, until, again))
        for _, of_cluster in groupby(ordered, key=lambda seen: seen.cluster)
    ]
    return [history for history in found if history.asked]


def _by_key(stored: Iterable[Seen]) -> dict[Key, Seen]:
    return {seen.key: seen for seen in stored}


def _history(
    ordered: tuple[Seen, ...],
    known: Mapping[Key, Entry],
    here: set[Key],
    span: Span,
) -> History:
    complete = tuple(seen for seen in ordered if seen.complete)
    firsts = bursts([seen.moment for seen in complete])
    back = _companions(complete, firsts)
    previous = {
        seen.snapshot_id: _digests(seen, back.get(seen.snapshot_id, ())) for seen in ordered
    }

    def is_asked(seen: Seen) -> bool:
        if seen.key not in here:
            return False
        entry = known.get(seen.key)
        if entry is None or (span.again and span.has(seen)):
            return span.has(seen)
        return entry.seen.digest != seen.digest or entry.previous != previous[seen.snapshot_id]

    asked = tuple(seen for seen in ordered if is_asked(seen))
    asked_keys = {seen.key for seen in asked}
    kept = tuple(
        known[seen.key] for seen in ordered if seen.key in known and seen.key not in asked_keys
    )
    needed = {
        each.key: each
        for seen in asked
        for each in back.get(seen.snapshot_id, ())
        if each.key in here and each.key not in asked_keys
    }
    return History(
        cluster=ordered[0].cluster,
        complete=complete,
        judged=tuple(seen for seen in complete if seen.key in asked_keys or seen.key in known),
        asked=asked,
        needed=tuple(needed.values()),
        kept=kept,
        previous=previous,
        bursts={seen.snapshot_id: first for seen, first in zip(complete, firsts, strict=True)},
        is_continued=_is_continued(asked, kept, known),
    )


def _companions(complete: Sequence[Seen], firsts: Sequence[int]) -> dict[str, tuple[Seen, ...]]:
    """By complete snapshot, what it is judged with: those before it, the nearest first.

    All of a burst are judged together, beginning with the last snapshot before it.
    """
    last = {first: n for n, first in enumerate(firsts)}
    found = {}
    for n, (seen, first) in enumerate(zip(complete, firsts, strict=True)):
        is_alone = first == last[first]
        begin = max(0, n - LOOKBACK if is_alone else min(n - LOOKBACK, first - 1))
        found[seen.snapshot_id] = (
            *reversed(complete[begin:n]),
            *complete[n + 1 : last[first] + 1],
        )
    return found


def _digests(seen: Seen, companions: Sequence[Seen]) -> tuple[str, ...]:
    """Of those right before it the digests, and of a burst one of all of them."""
    before = [each for each in companions if each.order < seen.order][:LOOKBACK]
    rest = [each.digest for each in companions if each not in before]
    digests = [each.digest for each in before]
    return (*digests, sha256(" ".join(rest).encode()).hexdigest()) if rest else tuple(digests)


def _is_continued(asked: Sequence[Seen], kept: Sequence[Entry], known: Mapping[Key, Entry]) -> bool:
    if not kept or any(seen.key in known for seen in asked):
        return False
    newest = max(entry.seen.order for entry in kept)
    return all(seen.order > newest for seen in asked)
