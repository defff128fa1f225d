"""The scenarios that play what is asked: failures, returns, and both around a reassignment.

Units are looked up in every snapshot by itself: racks, live brokers and the controller differ
between them. Brokers that fail together are one ``broker_failure`` from a settled start; where the
ZooKeeper-mode controller's broker is among them, they are gone when the next controller loads: one
``controller_failover`` with these ``dead``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

from understudy.errors import BadInputError
from understudy.questions import units
from understudy.questions.units import BROKER, CONTROLLER, PAIR, RACK, UNIT, Cluster, Group, Unit
from understudy.scenarios import Scenario

EVERY: Final = (BROKER, RACK, PAIR, UNIT)
DURING: Final = "during reassignment"
AFTER: Final = "after reassignment"
_TAKE_DOWN: Final = ("broker_failure", "fence", "unregister", "controlled_shutdown")
_BRING_BACK: Final = ("broker_startup", "unfence")

Event = dict[str, Any]
Plan = Mapping[str, Sequence[int]]
"""A reassignment: ``orders-0`` to its new replicas."""


@dataclass(frozen=True)
class Asked:
    """What is to fail or to come back; every group, and every scenario, is one by itself."""

    together: tuple[Group, ...] = ()
    restored: tuple[Group, ...] = ()
    every: tuple[str, ...] = ()
    scenarios: tuple[Scenario, ...] = ()
    dependencies: units.Dependencies = field(default_factory=dict)
    plan: Plan | None = None


class Case(NamedTuple):
    """A scenario over one snapshot, and what the answer says of it."""

    scenario: Scenario
    brokers: tuple[int, ...]  # those the scenario is about, ascending
    gone: tuple[int, ...] = ()  # no longer live at its end
    back: tuple[int, ...] = ()  # live again at its end
    quorum: tuple[bool | None, str] | None = None  # whether it survives (None: unknown), and why


def cases(asked: Asked, clusters: Sequence[Cluster]) -> list[Case]:
    """Every scenario over every snapshot that has what it is about.

    Pairs are not among them where every pair is asked for: those are too many to replay.
    """
    problems = _unknown(asked, clusters)
    if problems:
        raise BadInputError("what is to fail is not in the snapshots", problems)
    found = [case for cluster in clusters for case in _cases_of(asked, cluster)]
    found += [_given(scenario) for scenario in asked.scenarios]
    if asked.plan is not None:
        found += list(_around_plan(asked.plan, found, clusters))
    # Who asks for one broker and for every broker asks for that one once.
    return list(dict.fromkeys(found))


def how_many(asked: Asked, cases: Sequence[Case], clusters: Sequence[Cluster]) -> int:
    """Scenarios to be judged, each over each snapshot it is about, every pair included."""
    pairs = sum(len(cluster.live) * (len(cluster.live) - 1) // 2 for cluster in clusters)
    return sum(_times(case.scenario, clusters) for case in cases) + (
        pairs if PAIR in asked.every else 0
    )


def _times(scenario: Scenario, clusters: Sequence[Cluster]) -> int:
    if scenario.cluster is not None and scenario.snapshot_id is not None:
        return 1
    return sum(
        scenario.cluster in (None, cluster.cluster)
        and scenario.snapshot_id in (None, cluster.snapshot_id)
        for cluster in clusters
    )


def _unknown(asked: Asked, clusters: Sequence[Cluster]) -> list[str]:
    named = dict.fromkeys(unit for group in (*asked.together, *asked.restored) for unit in group)
    problems = [units.why_unknown(unit, clusters, asked.dependencies) for unit in named]
    if UNIT in asked.every and not asked.dependencies:
        problems.append("every unit: there is no table of dependencies")
    if RACK in asked.every and not any(cluster.live_racks for cluster in clusters):
        problems.append("every rack: no live broker says its rack")
    return [problem for problem in problems if problem]


def _cases_of(asked: Asked, cluster: Cluster) -> Iterator[Case]:
    every = (group for kind in asked.every for group in _every(kind, cluster, asked.dependencies))
    for group in (*asked.together, *every):
        case = _failure(group, cluster, asked.dependencies)
        if case is not None:
            yield case
    for group in asked.restored:
        dead = units.members(group, cluster, asked.dependencies) - set(cluster.live)
        if dead:
            brokers = tuple(sorted(dead))
            event = {"type": "broker_startup", "brokers": brokers}
            name = f"restore {units.group_name(group)}"
            yield Case(_scenario(name, cluster, [event]), brokers, back=brokers)


def _every(kind: str, cluster: Cluster, dependencies: units.Dependencies) -> list[Group]:
    names: Mapping[str, Iterable[object]] = {
        BROKER: cluster.live,
        RACK: cluster.live_racks,
        UNIT: sorted(dependencies),
    }
    return [(Unit(kind, str(name)),) for name in names.get(kind, ())]


def _failure(group: Group, cluster: Cluster, dependencies: units.Dependencies) -> Case | None:
    brokers = sorted(units.members(group, cluster, dependencies))
    directories = list(units.directories(group, cluster))
    voters = {int(unit.name) for unit in group if unit.kind == CONTROLLER}
    if not (brokers or directories or (voters and cluster.is_kraft)):
        return None
    events: list[Event] = []
    if brokers and not cluster.is_kraft and cluster.controller_id in brokers:
        events.append({"type": "controller_failover", "dead": brokers})
    elif brokers:
        events.append({"type": "broker_failure", "brokers": brokers})
    events += [
        {"type": "log_dir_failure", "broker": broker, "dirs": [directory]}
        for broker, directory in directories
    ]
    return Case(
        _scenario(units.group_name(group), cluster, events),
        tuple(sorted({*brokers, *(broker for broker, _ in directories)})),
        gone=tuple(brokers),
        quorum=_quorum(voters, cluster) if voters else None,
    )


def _quorum(lost: set[int], cluster: Cluster) -> tuple[bool | None, str]:
    """Whether the metadata quorum keeps a majority, if all other voters are up."""
    if cluster.voters is None:
        return None, "the snapshot does not say who the voters of the quorum are"
    left = cluster.voters - lost
    survives = 2 * len(left) > len(cluster.voters)
    of = f"{len(left)} of {len(cluster.voters)} voters left, if all others are up"
    return survives, f"the quorum {'keeps' if survives else 'loses'} its majority: {of}"


def _scenario(name: str, cluster: Cluster, events: Iterable[Event]) -> Scenario:
    texts = tuple(json.dumps(event, sort_keys=True) for event in events)
    return Scenario(name, cluster.cluster, cluster.snapshot_id, texts)


def _given(scenario: Scenario) -> Case:
    """A scenario from a file; the brokers it is about are those it takes down."""
    down: set[int] = set()
    for event in map(json.loads, scenario.events):
        named = {*event.get("brokers", ()), *([event["broker"]] if "broker" in event else [])}
        if event["type"] in _TAKE_DOWN:
            down |= named
        elif event["type"] in _BRING_BACK:
            down -= named
        elif event["type"] == "controller_failover":
            down |= set(event.get("dead") or ())
    gone = tuple(sorted(down))
    return Case(scenario, gone, gone)


def _around_plan(
    plan: Plan, failures: Sequence[Case], clusters: Sequence[Cluster]
) -> Iterator[Case]:
    """The plan itself, and each failure while it runs and once it is done.

    While it runs the added replicas are not in sync; it is done when they have caught up.
    """
    start: Event = {
        "type": "reassign",
        "partitions": {name: list(ids) for name, ids in plan.items()},
    }
    targets = sorted({broker for ids in plan.values() for broker in ids})
    done: Event = {"type": "catch_up", "brokers": targets}
    for name, events in ((DURING, [start]), (AFTER, [start, done])):
        for cluster in clusters:
            yield Case(_scenario(name, cluster, events), ())
        before = tuple(json.dumps(event, sort_keys=True) for event in events)
        for case in failures:
            scenario = replace(
                case.scenario,
                scenario=f"{case.scenario.scenario} {name}",
                events=(*before, *case.scenario.events),
            )
            yield case._replace(scenario=scenario)
