"""The order in which things happened to one partition, found by trying.

Two snapshots do not tell whether a follower caught up before a leader died or after. Its epochs
tell how often the controller and how often leaders wrote the record in between, and who leads and
is in sync in the end is what only some of the orders come to.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from typing import Final, NamedTuple

from understudy.questions.history.partitions import Ids, without
from understudy.questions.history.sketch import Record, Sketch

REPORT: Final = "isr_change"
PREFERRED: Final = "preferred_election"
FORCED: Final = "unclean_election"

_MOST_REPORTS: Final = 8
_MOST_ASKED: Final = 2  # elections that somebody asked for
_MOST_BEATS: Final = 100  # a controller may have been followed by very many
_MOST_TRIED: Final = 1_000


@dataclass
class Patience:
    """How much is still tried for one interval: much can have happened that nothing tells."""

    left: int

    @classmethod
    def with_partitions(cls, count: int) -> Patience:
        """Little for each, and enough for some that take long."""
        return cls(20_000 + 20 * count)


class Move(NamedTuple):
    """Something about one partition alone, and the number of the event that it came before."""

    before: int
    event_type: str
    isr: Ids = ()


def story_of(sketch: Sketch, patience: Patience) -> list[Move] | None:
    """The moves that lead to what is recorded, None if none do or nobody has the *patience*.

    With as few elections as possible that somebody would have had to ask for, and then with each
    move as late as possible: what brokers do comes first, and leaders follow.
    """
    if (sketch.step.by_leaders or 0) > _MOST_REPORTS or len(sketch.beats) > _MOST_BEATS:
        return None
    for asked in range(_MOST_ASKED + 1):
        found = _Search(sketch, patience).moves(sketch.start, 0, asked)
        if found is not None:
            return found
    return None


@dataclass
class _Search:
    sketch: Sketch
    patience: Patience
    _seen: set[tuple[Record, int, int]] = field(default_factory=set)

    @cached_property
    def _reports(self) -> int:
        return self.sketch.step.by_leaders or 0

    def moves(self, record: Record, at: int, asked: int) -> list[Move] | None:
        """Those from this record on, before the beat of this number; *asked* elections are left."""
        key = record, at, asked
        is_too_much = record.elections > self.sketch.step.elections
        is_enough = len(self._seen) >= _MOST_TRIED or self.patience.left <= 0
        if is_too_much or is_enough or key in self._seen:
            return None
        self._seen.add(key)
        self.patience.left -= 1
        beats = self.sketch.beats
        if at < len(beats):
            then = self.sketch.after(record, at, beats[at].event)
            found = None if then is None else self.moves(then, at + 1, asked)
            if found is not None:
                return found
        elif asked == 0 and self.sketch.is_recorded(record):
            return []
        number = beats[at].number if at < len(beats) else self.sketch.timeline.length
        for event_type, isr, moved in self._next(record, at, asked):
            is_asked = event_type != REPORT
            found = self.moves(moved, at, asked - is_asked)
            if found is not None:
                return [Move(number, event_type, isr), *found]
        return None

    def _next(self, record: Record, at: int, asked: int) -> Iterator[tuple[str, Ids, Record]]:
        for isr in self._isrs(record) if record.reports < self._reports else ():
            moved = self.sketch.reported(record, at, isr)
            if moved is not None:
                yield REPORT, isr, moved
        if asked > 0:
            elections = (PREFERRED, self.sketch.preferred), (FORCED, self.sketch.forced)
            for event_type, elect in elections:
                moved = elect(record, at)
                if moved is not None:
                    yield event_type, (), moved

    def _isrs(self, record: Record) -> Iterator[Ids]:
        """What the leader might say: one more is in sync, or some are not any more."""
        step = self.sketch.step
        for r in dict.fromkeys((*step.isr, *self.sketch.replicas)):
            if r in self.sketch.replicas and r not in record.isr:
                yield (*record.isr, r)
        followers = without(record.isr, (record.leader,))
        for count in range(1, len(followers) + 1):
            for slow in combinations(reversed(followers), count):
                yield without(record.isr, slow)
