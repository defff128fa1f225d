"""Recorded answers of the legacy controller, and how a replay is compared with them.

As for later controllers, with two exceptions: a case whose outcome hangs on the order of Kafka's
hash sets compares only what no such order changes, and a case that Kafka aborted asks only for the
event's row.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

import kafka_answers
from clusters import rows_of
from kafka_answers import VECTORS, Row, Tables, named, per_receiver
from understudy.controller.zk_legacy import interpreter as legacy_interpreter

SUITES = ("legacy-spec", "legacy-failover", "legacy-events", "legacy-wide")

# What Kafka 1.0 does not say.
_OURS = {"event_type", "outcome", "reason", "bytes"}


class Case(NamedTuple):
    snapshot: dict[str, Any]
    scenario: dict[str, Any]
    order_free: bool
    answer: dict[str, Any]

    @property
    def name(self) -> str:
        return str(self.snapshot["cluster"])


def cases(suite: str) -> list[Case]:
    folder = VECTORS / suite
    with (
        gzip.open(folder / "cases.jsonl.gz", "rt", encoding="utf-8") as asked,
        gzip.open(folder / "answers.jsonl.gz", "rt", encoding="utf-8") as answered,
    ):
        return [
            Case(case["snapshot"], case["scenario"], bool(case.get("order_free")), answer)
            for case, answer in zip(map(json.loads, asked), map(json.loads, answered), strict=True)
        ]


def replayed(case: Case) -> dict[str, list[Row]]:
    tables = legacy_interpreter.replay(rows_of(case.snapshot), case.scenario["events"])
    return per_receiver({name: named(name, rows) for name, rows in tables.items()})


def differences(case: Case) -> list[str]:
    """The tables in which a replay differs from Kafka's answer."""
    ours = replayed(case)
    if case.answer["aborted"]:
        return [] if has_row_of_aborted_event(case.answer["aborted"], ours) else ["event_results"]
    form = without_order if case.order_free else entire
    expected, found = form(case.answer), form(ours)
    return [table for table in expected if expected[table] != found[table]]


def has_row_of_aborted_event(aborted: str, tables: Tables) -> bool:
    """Whether a replay says that this event, "event NUMBER: why", was given up."""
    number = int(aborted.removeprefix("event ").partition(":")[0])
    return any(
        row["event"] == number and row["topic"] is None and row["error"]
        for row in tables["event_results"]
    )


def entire(tables: Tables) -> dict[str, Any]:
    """The tables in a form in which equal means equal in everything Kafka says."""
    has_state = [
        row
        for row in tables["replica_states"]
        if row.get("state_before") is not None or row.get("state_after") is not None
    ]
    return kafka_answers.comparable({**tables, "replica_states": has_state})


def without_order(tables: Tables) -> dict[str, Any]:
    """Only what no order of Kafka's hash sets changes."""
    states = [
        row | {"isr": None if row.get("isr") is None else len(set(row["isr"]))}
        for row in tables["partition_states"]
    ]
    events = {row["step"]: row["event"] for row in tables["requests"]}
    bodies = [row | {"event": events[row["step"]]} for row in tables["request_partitions"]]
    writes = [
        {name: row.get(name) for name in ("event", "kind", "topic", "partition")}
        for row in tables["metadata_writes"]
    ]
    return entire(tables) | {
        "partition_states": _rows(states),
        "metadata_writes": _rows(writes),
        "requests": _rows(tables["requests"], without=("step",)),
        "request_partitions": _rows(bodies, without=("step", "isr", "controller_epoch")),
    }


def _rows(rows: Iterable[Row], without: Iterable[str] = ()) -> Counter[tuple[Any, ...]]:
    dropped = _OURS | set(without)
    return Counter(
        tuple(
            (name, tuple(value) if isinstance(value, list) else value)
            for name, value in sorted(row.items())
            if value is not None and name not in dropped
        )
        for row in rows
    )
