"""What Kafka's own quorum controller did, and how a replay is compared with it.

Records compare in log order without their number, unbroken runs of PartitionChangeRecords of one
event by topic and partition; log directories of brokers are sets; event results are a multiset.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any

from clusters import rows_of
from kafka_answers import Row, named
from understudy.controller.kraft import interpreter as kraft_interpreter

# Every release at its newest patch, and those where a rule changed with a patch.
SUITES = ("kraft", "kraft-older")
TABLES = ("metadata_writes", "partition_states", "broker_states", "event_results")

# What is ours alone: Kafka does not say it.
_OURS = {"event_type", "outcome", "reason", "seq"}
_SETS = {"log_dirs", "changed"}


def replayed(snapshot: dict[str, Any], events: Iterable[Mapping[str, Any]]) -> dict[str, list[Row]]:
    """Every table of a replay, its rows as dictionaries."""
    tables = kraft_interpreter.replay(rows_of(snapshot), events)
    return {name: named(name, rows) for name, rows in tables.items()}


def answered(answer: Mapping[str, Any]) -> dict[str, list[Row]]:
    """Kafka's answer in the product's columns: what a record carries is names beside values."""
    writes = [
        {**write, "changed": list(write["changed"])}
        | (write["changed"] if write["broker_id"] is not None else {})
        for write in answer["metadata_writes"]
    ]
    return {name: answer[name] for name in TABLES} | {"metadata_writes": writes}


def comparable(tables: Mapping[str, list[Row]]) -> dict[str, Any]:
    """The tables in a form in which equal means equal by the rules above."""
    plain = {name: [_plain(row) for row in tables[name]] for name in TABLES}
    return {
        "metadata_writes": _in_order(plain["metadata_writes"]),
        "partition_states": sorted(
            plain["partition_states"], key=lambda r: (r["topic"], r["partition"])
        ),
        "broker_states": sorted(plain["broker_states"], key=lambda r: r["broker_id"]),
        "event_results": Counter(tuple(sorted(r.items())) for r in plain["event_results"]),
    }


def _plain(row: Row) -> Row:
    return {
        name: frozenset(value) if name in _SETS else _frozen(value)
        for name, value in row.items()
        if value is not None and name not in _OURS
    }


def _frozen(value: Any) -> Any:  # noqa: ANN401 - a cell of any type
    return tuple(value) if isinstance(value, list | tuple) else value


def _in_order(writes: list[Row]) -> list[Row]:
    ordered = []
    for (_, is_change), run in groupby(
        writes, key=lambda w: (w["event"], w["record"] == "PartitionChangeRecord")
    ):
        rows = list(run)
        ordered += sorted(rows, key=lambda w: (w["topic"], w["partition"])) if is_change else rows
    return ordered
