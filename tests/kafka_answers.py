"""Kafka's recorded answers, and how a replay is compared with them.

Steps are renumbered over those that sent anything; requests compare as multisets, transitions as a
multiset without their step, durable writes per partition in order, everything else by key.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from understudy.schemas import REPLAY_TABLES

VECTORS = Path(__file__).parent / "data" / "vectors"
SUITES = ("zk-3.9-failover", "zk-2.8-failover")
EVENT_SUITES = ("zk-3.9-events", "zk-2.8-events")

Row = dict[str, Any]
Tables = Mapping[str, list[Row]]

# What is ours alone: Kafka does not say it.
_OURS = {"event_type", "outcome", "reason", "bytes", "strategy"}
_SHOWN_IN_LOG = {"leader", "isr", "leader_epoch", "error"}


class Case(NamedTuple):
    snapshot: dict[str, Any]
    scenario: dict[str, Any]
    answer: dict[str, Any]


def cases(suite: str) -> list[Case]:
    folder = VECTORS / suite
    with (
        gzip.open(folder / "cases.jsonl.gz", "rt", encoding="utf-8") as asked,
        gzip.open(folder / "answers.jsonl.gz", "rt", encoding="utf-8") as answered,
    ):
        pairs = zip(map(json.loads, asked), map(json.loads, answered), strict=True)
        return [Case(case["snapshot"], case["scenario"], answer) for case, answer in pairs]


def has_pending_work(snapshot: Row) -> bool:
    """Whether a new controller finds a reassignment to resume or a topic to delete."""
    return any(
        topic.get("queued_for_deletion")
        or any(p.get("adding") or p.get("removing") for p in topic["partitions"])
        for topic in snapshot["topics"]
    )


def knows_recovery(suite: str) -> bool:
    """2.8 has no recovery state."""
    return not suite.startswith("zk-2.8")


def named(table: str, rows: Iterable[tuple[Any, ...]]) -> list[Row]:
    """Rows without the scenario's key, as dictionaries."""
    names = REPLAY_TABLES[table].names[3:]
    return [dict(zip(names, row, strict=True)) for row in rows]


def per_receiver(tables: Tables) -> dict[str, list[Row]]:
    """The tables with one request body per receiver, as Kafka's answers have them."""
    receivers: dict[tuple[int, str], list[int]] = {}
    for request in tables["requests"]:
        receivers.setdefault((request["step"], request["request"]), []).append(request["broker_id"])
    bodies = []
    for body in tables["request_partitions"]:
        own = body["recipients"]
        brokers = receivers.get((body["step"], body["request"]), []) if own is None else own
        bodies += [
            {k: v for k, v in body.items() if k != "recipients"} | {"broker_id": broker}
            for broker in brokers
        ]
    return {**tables, "request_partitions": bodies}


def comparable(tables: Tables, *, with_recovery: bool = True) -> dict[str, Any]:
    """The tables in a form in which equal means equal by the rules above."""
    dropped = _OURS if with_recovery else _OURS | {"recovery"}
    rows = {
        name: [_plain(row, dropped) for row in tables.get(name, ())]
        for name in REPLAY_TABLES
        if name != "decisions"
    }
    sent = {step: n for n, step in enumerate(sorted({r["step"] for r in rows["requests"]}), 1)}
    for name in ("requests", "request_partitions"):
        rows[name] = [{**row, "step": sent[row["step"]]} for row in rows[name]]
    writes: dict[tuple[str, int | None], list[Any]] = {}
    for row in sorted(rows["metadata_writes"], key=lambda r: r["seq"]):
        writes.setdefault((row["topic"], row.get("partition")), []).append(
            _key(row, {"seq", "step"})
        )
    return {
        "requests": Counter(_key(r, {"event"}) for r in rows["requests"]),
        "request_partitions": Counter(_key(r, {"event"}) for r in rows["request_partitions"]),
        "transitions": Counter(_key(r, {"step", *_SHOWN_IN_LOG}) for r in rows["transitions"]),
        "metadata_writes": writes,
        "partition_states": Counter(_key(r) for r in rows["partition_states"]),
        "replica_states": Counter(_key(r) for r in rows["replica_states"]),
        "event_results": Counter(_key(r) for r in rows["event_results"]),
    }


def _plain(row: Row, dropped: set[str]) -> Row:
    return {k: _tuple(v) for k, v in row.items() if v is not None and k not in dropped}


def _tuple(value: Any) -> Any:  # noqa: ANN401
    return tuple(map(_tuple, value)) if isinstance(value, list | tuple) else value


def _key(row: Row, without: Iterable[str] = ()) -> tuple[tuple[str, Any], ...]:
    return tuple(sorted((k, v) for k, v in row.items() if k not in set(without)))
