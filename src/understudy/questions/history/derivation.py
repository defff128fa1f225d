"""The events that lead from one snapshot to the next.

They are those the controller must have met, in the words of a scenario, so that a replay of the
earlier snapshot with them can be held against the later one. Order is not recorded; it is the one
that explains most: first the likeliest of all (:class:`~understudy.questions.history.facts.Place`),
and where that does not come to what is recorded of a partition, the one that does
(:mod:`~understudy.questions.history.stories`).
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final, NamedTuple

from understudy.questions.history.brokers import (
    Course,
    broker_facts,
    courses,
    failover_facts,
    setting_facts,
)
from understudy.questions.history.facts import Event, Fact, gathered
from understudy.questions.history.interval import Interval
from understudy.questions.history.partition_facts import partition_facts, topic_facts
from understudy.questions.history.partitions import PartitionStep, partition_steps
from understudy.questions.history.sketch import Sketch, Timeline
from understudy.questions.history.step_facts import election, isr_report
from understudy.questions.history.stories import (
    FORCED,
    PREFERRED,
    REPORT,
    Move,
    Patience,
    story_of,
)

_OF_ONE: Final = frozenset((REPORT, PREFERRED, FORCED, "reassign"))
"""Events of plain partitions that are about each alone, so that each has an order of its own."""

_SOME: Final = 100
"""So many partitions tell whether another course of the brokers is worth looking at."""

Stories = Mapping[int, Sequence[Move]]
"""By the number of the partition's step."""


def derived(interval: Interval) -> list[Event]:
    steps = [_Step(step, list(partition_facts(step))) for step in partition_steps(interval)]
    patience = Patience.with_partitions(len(steps))
    likeliest, *others = courses(interval)
    best = _told(interval, likeliest, steps, patience)
    for course in others:
        # Where it tells no more of some of those partitions, the others need not be looked at.
        some = best.untold[:_SOME]
        if not some or len(_told(interval, course, some, patience).untold) >= len(some):
            continue
        telling = _told(interval, course, steps, patience)
        best = min(best, telling, key=lambda each: len(each.untold))
    return best.events


class _Step(NamedTuple):
    step: PartitionStep
    facts: list[Fact]


class _Telling(NamedTuple):
    events: list[Event]
    untold: list[_Step]
    """The partitions of which they do not come to what is recorded."""


def _told(
    interval: Interval, course: Course, steps: Sequence[_Step], patience: Patience
) -> _Telling:
    of_all = [
        *failover_facts(interval, course),
        *broker_facts(interval, course),
        *setting_facts(interval),
        *topic_facts(interval),
    ]
    events = gathered(chain(of_all, *(each.facts for each in steps)))
    if interval.is_kraft:
        return _Telling(events, [])
    happened = [json.loads(event.event) for event in events]
    timeline = Timeline(interval, happened)
    untold = [n for n, each in enumerate(steps) if not _is_told(each.step, timeline)]
    of_many = Timeline(interval, [each for each in happened if each["type"] not in _OF_ONE])
    found = {n: story_of(Sketch(steps[n].step, of_many), patience) for n in untold}
    stories = {n: moves for n, moves in found.items() if moves is not None}
    if stories:
        kept = (_without_own(each) if n in stories else each.facts for n, each in enumerate(steps))
        events = list(_interleaved(gathered(chain(of_all, *kept)), _moves(steps, stories)))
    return _Telling(events, [steps[n] for n in untold if n not in stories])


def _is_told(step: PartitionStep, timeline: Timeline) -> bool:
    if not step.is_plain:
        return True
    sketch = Sketch(step, timeline)
    return sketch.outcome is not None and sketch.is_recorded(sketch.outcome)


def _without_own(each: _Step) -> list[Fact]:
    return [fact for fact in each.facts if json.loads(fact.event)["type"] not in _OF_ONE]


def _moves(steps: Sequence[_Step], stories: Stories) -> dict[int, list[Fact]]:
    """The moves of all stories, by the number of the event that they come before."""
    found: defaultdict[int, list[Fact]] = defaultdict(list)
    for n, moves in stories.items():
        step = steps[n].step
        for rank, move in enumerate(moves):
            found[move.before].append(
                isr_report(step, 0, move.isr, rank)
                if move.event_type == REPORT
                else election(step, move.event_type, 0, rank)
            )
    return found


def _interleaved(events: Iterable[Event], moves: Mapping[int, Sequence[Fact]]) -> Iterator[Event]:
    number = 0
    for event in events:
        if event.event_type not in _OF_ONE:
            yield from gathered(moves.get(number, ()))
            number += 1
        yield event
    yield from gathered(moves.get(number, ()))
