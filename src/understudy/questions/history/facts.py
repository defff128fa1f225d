"""Facts: the smallest things that differ between two snapshots, each a part of one event.

A fact knows the event it belongs to (its type, its place among the others and what it says in any
case), its own item in it, and the sentence that says why. Facts of one event become one event by
:func:`gathered`.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final, NamedTuple

_SENTENCES_SHOWN: Final = 5


class Place(IntEnum):
    """Where an event stands among those of its interval.

    As a controller would have met them: who is gone before who came, a reassignment before the
    ISRs it waits for, and those before the preferred leaders that need them. The late ones are for
    where that does not explain what is recorded.
    """

    FAILOVER = 0
    LOG_DIR_LEARNT = 1
    SHUTDOWN_BEFORE_FAILURE = 5
    ISR_BEFORE_FAILURE = 6
    FAILURE = 10
    LOG_DIR = 20
    SHUTDOWN = 30
    UNCLEAN_ENABLED = 40
    CREATION = 50
    STARTUP = 60
    UNREGISTRATION = 65
    UNCLEAN_ELECTION = 70
    DELETION = 75
    DELETION_ANSWER = 76
    LATE_CREATION = 80
    CANCELLATION = 85
    REASSIGNMENT = 86
    DIR_ASSIGNMENT = 88
    ISR = 90
    PREFERRED_ELECTION = 95
    LATE_FAILURE = 97
    LATE_FAILOVER = 98


BEFORE_FAILOVER: Final = -100
"""Added to the place of what the controller before the failover had still done."""


class Item(NamedTuple):
    """A part of an event: an element of the list, or a key and its value in the map, at *path*."""

    path: tuple[str, ...]
    value: Any
    key: str | None = None


@dataclass(frozen=True)
class Fact:
    """A part of an event; items stand by the sum of their *weight*, then by *topic* and *nth*."""

    place: int
    event: str
    """The event as JSON text, without its items."""
    said: str | None
    """None: it adds its weight to a fact that is stated elsewhere, and nothing else."""
    item: Item | None = None
    rank: int = 0
    weight: int = 0
    topic: str = ""
    nth: int = 0
    is_creation: bool = False
    """Partitions are created together, where the first of them was."""


class Event(NamedTuple):
    """What a controller met, as the scenario event in JSON text, and why we think so."""

    event_type: str
    event: str
    evidence: str


def event_text(event_type: str, **fields: Any) -> str:  # noqa: ANN401 - whatever JSON can say
    """An event as the JSON text of a scenario: fields by name, and those that are None left out."""
    said = {"type": event_type, **fields}
    return json.dumps({name: said[name] for name in sorted(said) if said[name] is not None})


def gathered(facts: Iterable[Fact]) -> list[Event]:
    """The events of these facts, in order; a fact stated twice counts where it came first."""
    same: defaultdict[Any, list[Fact]] = defaultdict(list)
    for fact in facts:
        same[_identity(fact)].append(fact)
    parts: defaultdict[tuple[int, int, str], dict[_Part, Item | None]] = defaultdict(dict)
    for stated in same.values():
        place = min(fact.place for fact in stated)
        weight = sum(fact.weight for fact in stated)
        for fact in stated:
            if fact.said is not None and (fact.place == place or fact.is_creation):
                part = _Part(weight, fact.topic, fact.nth, _text(fact.item), fact.said)
                parts[place, fact.rank, fact.event].setdefault(part, fact.item)
    whole = [_Whole(*key, sorted(found), found) for key, found in parts.items()]
    return [_event(each) for each in sorted(whole, key=_order)]


class _Part(NamedTuple):
    weight: int
    topic: str
    nth: int
    item_text: str
    said: str


class _Whole(NamedTuple):
    place: int
    rank: int
    event: str
    parts: Sequence[_Part]
    items: dict[_Part, Item | None]


def _identity(fact: Fact) -> tuple[int, str, str]:
    return fact.rank, fact.event, "" if fact.is_creation else _text(fact.item)


def _text(item: Item | None) -> str:
    return "" if item is None else json.dumps([item.path, item.key, item.value])


def _order(whole: _Whole) -> tuple[int, int, str, int, str]:
    first = whole.parts[0]
    return whole.place, whole.rank, first.topic, first.nth, whole.event


def _event(whole: _Whole) -> Event:
    event = json.loads(whole.event)
    for part in whole.parts:
        item = whole.items[part]
        if item is not None:
            _put(event, item)
    fields = {name: value for name, value in event.items() if name != "type"}
    said = [part.said for part in whole.parts[:_SENTENCES_SHOWN]]
    if len(whole.parts) > len(said):
        said.append(f"and {len(whole.parts) - len(said)} more")
    return Event(event["type"], event_text(event["type"], **fields), "; ".join(said))


def _put(event: dict[str, Any], item: Item) -> None:
    *outer, last = item.path
    inside = event
    for name in outer:
        inside = inside.setdefault(name, {})
    if item.key is None:
        inside.setdefault(last, []).append(item.value)
    else:
        inside.setdefault(last, {})[item.key] = item.value
