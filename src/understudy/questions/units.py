"""What may fail together: brokers, racks, log directories, voters, rows of a dependency table.

A *unit* is written ``broker:7``, ``rack:b``, ``pair:3,7``, ``unit:switch-1`` (of a dependency
table), ``dir:3:ID`` (a log directory of KRaft) or ``controller:3000`` (a voter of the quorum).
Everything here is plain Python over what is known of each cluster, which is as small as its list of
brokers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from understudy.controller.profiles import KRAFT
from understudy.errors import BadInputError, UsageError

BROKER: Final = "broker"
RACK: Final = "rack"
PAIR: Final = "pair"
UNIT: Final = "unit"
DIRECTORY: Final = "dir"
CONTROLLER: Final = "controller"
KINDS: Final = (BROKER, RACK, PAIR, UNIT, DIRECTORY, CONTROLLER)
_NUMBERED: Final = (BROKER, PAIR, CONTROLLER)
_NAMED_AT_MOST: Final = 30

Dependencies = Mapping[str, frozenset[int]]


class Unit(NamedTuple):
    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


Group = tuple[Unit, ...]


class Broker(NamedTuple):
    alive: bool
    rack: str | None = None
    log_dirs: tuple[str, ...] = ()


class Cluster(NamedTuple):
    """What a snapshot knows that decides who fails together."""

    cluster: str
    snapshot_id: str
    mode: str
    controller_id: int | None
    brokers: Mapping[int, Broker]
    assigned: frozenset[int] = frozenset()  # ids that partitions name, listed as brokers or not
    voters: frozenset[int] | None = None  # None: the snapshot does not say

    @property
    def is_kraft(self) -> bool:
        return self.mode == KRAFT.mode

    @property
    def live(self) -> list[int]:
        return sorted(b for b, broker in self.brokers.items() if broker.alive)

    @property
    def live_racks(self) -> list[str]:
        return sorted({rack for b in self.live if (rack := self.brokers[b].rack) is not None})


# --- Reading -------------------------------------------------------------------------------------


def parse(text: str) -> Group:
    """``broker:7,rack:b``; a number alone is one more broker, as in ``pair:3,7``."""
    found = []
    problems = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        kind, colon, name = part.partition(":")
        unit = Unit(kind, name) if colon else Unit(BROKER, part)
        problem = _problem(unit)
        if problem:
            problems.append(f"{part!r}: {problem}")
        found.append(unit)
    if not found:
        problems.append(f"{text!r} names nothing; try broker:7 or rack:b")
    if problems:
        raise UsageError("; ".join(problems))
    return tuple(found)


def _problem(unit: Unit) -> str | None:
    if unit.kind not in KINDS:
        return f"there are {', '.join(f'{kind}:…' for kind in KINDS)}"
    if unit.kind in _NUMBERED and not _is_id(unit.name):
        return "expected the number of a broker"
    if unit.kind == DIRECTORY:
        broker, _, directory = unit.name.partition(":")
        if not (_is_id(broker) and directory):
            return "expected a broker and a directory such as dir:3:ID"
    return None if unit.name else "the name is missing"


def _is_id(text: str) -> bool:
    return re.fullmatch(r"\d{1,10}", text, re.ASCII) is not None


def dependencies(lines: Iterable[str], source: str) -> dict[str, frozenset[int]]:
    """A table of ``unit,broker_id`` with that heading: which brokers depend on what."""
    found: dict[str, set[int]] = {}
    problems = []
    rows = [(number, line.strip()) for number, line in enumerate(lines, start=1) if line.strip()]
    if not rows or [part.strip() for part in rows[0][1].split(",")] != ["unit", "broker_id"]:
        problems.append("line 1: expected the heading unit,broker_id")
    for number, row in rows[1:]:
        name, _, broker = (part.strip().strip('"') for part in row.rpartition(","))
        if name and _is_id(broker):
            found.setdefault(name, set()).add(int(broker))
        else:
            problems.append(f"line {number}: expected a unit and the number of a broker")
    if problems:
        raise BadInputError(f"{source}: the dependencies are refused", problems)
    return {name: frozenset(brokers) for name, brokers in found.items()}


def group_name(group: Group) -> str:
    """The list as it would be asked for; a pair keeps its short form."""
    if group[0].kind == PAIR:
        return f"{PAIR}:{','.join(unit.name for unit in group)}"
    return ",".join(map(str, group))


# --- Looking up ----------------------------------------------------------------------------------


def members(group: Group, cluster: Cluster, dependencies: Dependencies) -> set[int]:
    """The brokers of these units that the snapshot knows."""
    known = {*cluster.brokers, *cluster.assigned}
    found: set[int] = set()
    for unit in group:
        if unit.kind in (BROKER, PAIR):
            found |= {int(unit.name)} & known
        elif unit.kind == RACK:
            found |= {b for b, broker in cluster.brokers.items() if broker.rack == unit.name}
        elif unit.kind == UNIT:
            found |= dependencies.get(unit.name, frozenset()) & known
    return found


def directories(group: Group, cluster: Cluster) -> Iterator[tuple[int, str]]:
    """The directories among these units that the snapshot knows, with their brokers."""
    for unit in group:
        if unit.kind == DIRECTORY:
            broker, _, directory = unit.name.partition(":")
            if directory in cluster.brokers.get(int(broker), Broker(alive=False)).log_dirs:
                yield int(broker), directory


def why_unknown(unit: Unit, clusters: Sequence[Cluster], table: Dependencies) -> str | None:
    """Why no snapshot has this unit, and what there is instead; None where one has it."""
    if unit.kind == CONTROLLER:
        told = f"only KRaft has a quorum; here broker:{unit.name} may be the controller"
        is_known = any(cluster.is_kraft for cluster in clusters)
    elif unit.kind == DIRECTORY:
        is_known = any(True for cluster in clusters for _ in directories((unit,), cluster))
        told = _other_directories(int(unit.name.partition(":")[0]), clusters)
    else:
        is_known = any(members((unit,), cluster, table) for cluster in clusters)
        told = _others(unit, clusters, table)
    return None if is_known else f"{unit}: {told}"


def _others(unit: Unit, clusters: Sequence[Cluster], table: Dependencies) -> str:
    if unit.kind == RACK:
        racks = {b.rack for c in clusters for b in c.brokers.values() if b.rack is not None}
        return _there_are(racks, "racks")
    if unit.kind == UNIT:
        return _there_are(set(table), "units")
    return _there_are({b for c in clusters for b in (*c.brokers, *c.assigned)}, "brokers")


def _other_directories(broker: int, clusters: Sequence[Cluster]) -> str:
    known = {d for c in clusters if broker in c.brokers for d in c.brokers[broker].log_dirs}
    if not known:
        return f"the snapshots do not know the log directories of broker {broker}"
    return _there_are(known, f"log directories of broker {broker}")


def _there_are(known: set[Any], what: str) -> str:
    if not known:
        return f"there are no {what}"
    shown = [str(each) for each in sorted(known)[:_NAMED_AT_MOST]]
    more = len(known) - len(shown)
    return f"the {what} are {', '.join(shown)}" + (f" and {more:,} more" if more else "")
