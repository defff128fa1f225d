"""Profile zk-legacy against a recording of a real Kafka 1.0.2 cluster.

Each case has the znodes before, the events its controller processed, and the znodes after: leaders,
ISRs, all epochs and assignments have to be what the replay leaves in ZooKeeper.
"""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from clusters import rows_of
from understudy.controller.zk_legacy import interpreter as legacy_interpreter
from understudy.controller.zk_legacy.context import ZooKeeper
from understudy.controller.zk_legacy.events import FAILOVER, LegacyController
from understudy.controller.zk_legacy.journal import LegacyJournal

RECORDING = Path(__file__).parents[1] / "data" / "real" / "zk-1.0" / "cases.jsonl.gz"

# In the first the replaced controller's dead replicas were still ineligible for deletion, in the
# second replicas had answered: both was only in the memory of the controller.
IN_MEMORY_ONLY = {"zk10-a-028", "zk10-a-029"}

Case = dict[str, Any]


@cache
def cases() -> dict[str, Case]:
    with gzip.open(RECORDING, "rt", encoding="utf-8") as lines:
        return {case["case"]: case for case in map(json.loads, lines)}


@pytest.mark.parametrize("name", sorted(cases().keys() - IN_MEMORY_ONLY))
def test_case(name: str) -> None:
    case = cases()[name]
    controller = start(case)
    for event in case["events"]:
        controller.process(event)
    assert durable(controller.context.zookeeper) == recorded(case)
    assert controller.context.controller_id == case["after"]["controller"]["id"]
    assert controller.context.epoch == case["after"]["controller"]["epoch"]


def test_all_clean_cases_are_among_them() -> None:
    clean = {name for name, case in cases().items() if case["clean"]}
    assert len(clean) == 21
    assert clean.isdisjoint(IN_MEMORY_ONLY)


def test_a_deletion_right_after_the_failover_before_it() -> None:
    """With the memory of that failover even the ISR member that is retained last is the same."""
    failover, deletion = cases()["zk10-a-027"], cases()["zk10-a-028"]
    controller = start(failover)
    for event in (*failover["events"], *deletion["events"]):
        controller.process(event)
    assert durable(controller.context.zookeeper) == recorded(deletion)


def start(case: Case) -> LegacyController:
    controller = LegacyController(legacy_interpreter.load(rows_of(case["before"])), LegacyJournal())
    if case["events"][0]["type"] != FAILOVER:
        controller.settle()
    return controller


def durable(zookeeper: ZooKeeper) -> dict[str, Any]:
    """Topics queued for deletion, and per partition the assignment and the record."""
    found: dict[str, Any] = {"queued": sorted(zookeeper.delete_requests)}
    for topic, partitions in zookeeper.topics.items():
        for partition, replicas in partitions.items():
            state = zookeeper.states.get((topic, partition))
            found[f"{topic}-{partition}"] = (replicas, state and state[:5])
    return found


def recorded(case: Case) -> dict[str, Any]:
    after = case["after"]
    found: dict[str, Any] = {"queued": sorted(after["topics_queued_for_deletion"])}
    for name, partition in after["partitions"].items():
        state = partition["state"]
        found[name] = (
            tuple(partition["replicas"]),
            state
            and (
                state["leader"],
                state["leader_epoch"],
                tuple(state["isr"]),
                state["partition_epoch"],
                state["controller_epoch"],
            ),
        )
    return found
