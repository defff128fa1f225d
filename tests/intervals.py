"""Two snapshot documents as the interval between them, without Spark."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from clusters import Document, rows_of
from understudy.controller.snapshot_rows import SnapshotRows
from understudy.questions.history_interval import Change, Interval, Row, Side


def interval_of(before: Document, after: Document) -> Interval:
    old, new = rows_of(before), rows_of(after)
    topics = _changes(old.topics, new.topics, "topic")
    partitions = _changes(old.partitions, new.partitions, "topic", "partition")
    return Interval(
        old=_side(old),
        new=_side(new),
        topics={name: each for (name,), each in topics.items() if each.before != each.after},
        partitions=list(partitions.values()),
    )


def _side(rows: SnapshotRows) -> Side:
    return Side(
        snapshot=rows.snapshot,
        brokers={row["broker_id"]: row for row in rows.brokers},
        settings=rows.configs,
        queued_topics=frozenset(r["topic"] for r in rows.topics if r["queued_for_deletion"]),
        followed=frozenset(
            broker
            for row in rows.partitions
            if row["has_state"] and row["leader"] != -1 and len(row["isr"]) > 1
            for broker in row["isr"]
        ),
    )


def _changes(old: Iterable[Row], new: Iterable[Row], *key: str) -> dict[tuple[Any, ...], Change]:
    was, now = ({tuple(row[k] for k in key): row for row in rows} for rows in (old, new))
    return {k: Change(was.get(k), now.get(k)) for k in dict.fromkeys((*was, *now))}
