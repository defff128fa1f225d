"""Profile zk against recordings of real Kafka 3.9.1 and 2.8.2 clusters.

Each case has the znodes before, the events its controller processed, and the znodes after: leaders,
ISRs, all epochs and assignments have to be what the replay leaves in ZooKeeper. In a case that is
not clean, leaders changed ISRs meanwhile, and those changes are among the events.
"""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from clusters import rows_of
from understudy.controller.journal import Journal
from understudy.controller.zk import interpreter
from understudy.controller.zk.context import ControllerContext
from understudy.controller.zk.events import FAILOVER, ZkController

RECORDINGS = Path(__file__).parents[1] / "data" / "real"
RUNS = {"zk-3.9": 53, "zk-2.8": 37}  # run -> clean cases in it

# A broker started while a topic was half deleted: which replicas had answered was only in the
# memory of the controller.
IN_MEMORY_ONLY = {"zk39-a-055"}

Case = dict[str, Any]


@cache
def cases(run: str) -> dict[str, Case]:
    with gzip.open(RECORDINGS / run / "cases.jsonl.gz", "rt", encoding="utf-8") as lines:
        return {case["case"]: case for case in map(json.loads, lines)}


NAMES = [(run, name) for run in RUNS for name in cases(run) if name not in IN_MEMORY_ONLY]


@pytest.mark.parametrize(("run", "name"), NAMES)
def test_case(run: str, name: str) -> None:
    case = cases(run)[name]
    context = interpreter.load(rows_of(case["before"]))
    if case["events"][0]["type"] != FAILOVER:
        interpreter.settle(context)
    controller = ZkController(context, Journal())
    for event in case["events"]:
        controller.process(event)
    assert durable(context) == recorded(case)
    assert context.controller_id == case["after"]["controller"]["id"]
    assert context.epoch == case["after"]["controller"]["epoch"]


@pytest.mark.parametrize(("run", "count"), RUNS.items())
def test_all_clean_cases_are_among_them(run: str, count: int) -> None:
    clean = {name for name, case in cases(run).items() if case["clean"]}
    assert len(clean) == count
    assert clean.isdisjoint(IN_MEMORY_ONLY)


def durable(context: ControllerContext) -> dict[str, Any]:
    """Topics queued for deletion, and per partition the assignment and the record."""
    found: dict[str, Any] = {"queued": sorted(context.deletion_requests)}
    for tp, assignment in {**context.assignments, **context.znode_assignments}.items():
        if assignment is not None:
            found[f"{tp[0]}-{tp[1]}"] = (tuple(assignment), context.znodes.get(tp))
    return found


def recorded(case: Case) -> dict[str, Any]:
    after = case["after"]
    found: dict[str, Any] = {"queued": sorted(after["topics_queued_for_deletion"])}
    for name, partition in after["partitions"].items():
        assignment = tuple(tuple(partition[key]) for key in ("replicas", "adding", "removing"))
        state = partition["state"]
        record = state and (
            state["leader"],
            state["leader_epoch"],
            tuple(state["isr"]),
            state["partition_epoch"],
            state["controller_epoch"],
            state.get("recovery", 0),
        )
        found[name] = (assignment, record)
    return found
