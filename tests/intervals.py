"""Snapshots as the intervals and bursts between them, without Spark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from typing import Any

from clusters import Document, rows_of, rows_of_content
from understudy.controller.snapshot_rows import SnapshotRows
from understudy.questions.history.derivation import derived
from understudy.questions.history.divergence import Comparison, compare
from understudy.questions.history.facts import Event
from understudy.questions.history.interval import (
    Burst,
    Change,
    Interval,
    Row,
    Side,
    bursts_of,
)
from understudy.questions.history.order import Moment, bursts
from understudy.sources.content import Content


def interval_of(before: Document, after: Document) -> Interval:
    return interval_between(rows_of(before), rows_of(after))


def interval_between(old: SnapshotRows, new: SnapshotRows) -> Interval:
    topics = _changes(old.topics, new.topics, "topic")
    partitions = _changes(old.partitions, new.partitions, "topic", "partition")
    return Interval(
        old=_side(old),
        new=_side(new),
        topics={name: each for (name,), each in topics.items() if each.before != each.after},
        partitions=list(partitions.values()),
    )


def compared(interval: Interval) -> Comparison:
    """An interval by itself, replayed and compared."""
    (found,) = compare(Burst.of([interval]), derived(interval))
    return found


def told(
    snapshots: Sequence[tuple[Moment, SnapshotRows]],
) -> Iterator[tuple[Burst, list[Event], list[tuple[str, Comparison]]]]:
    """A history burst by burst: its events, and by snapshot what is told of it."""
    ordered = sorted(snapshots, key=lambda each: each[0].order)
    firsts = bursts([moment for moment, _ in ordered])
    steps = [
        (first, new[0].snapshot_id, interval_between(old[1], new[1]))
        for first, (old, new) in zip(firsts[1:], pairwise(ordered), strict=True)
    ]
    for _, each in groupby(steps, key=lambda step: step[0]):
        members = [(name, interval) for _, name, interval in each]
        names = iter([name for name, _ in members])
        for burst in bursts_of([interval for _, interval in members]):
            events = derived(burst.whole)
            found = compare(burst, events)
            yield burst, events, [(next(names), each) for each in found]


def of_content(found: Content) -> tuple[Moment, SnapshotRows]:
    """What a reader made of a snapshot; what it cannot know takes the harmless default."""
    read = rows_of_content(found)
    rows = read._replace(
        brokers=[{**row, "shutting_down": bool(row["shutting_down"])} for row in read.brokers],
        partitions=[{**row, "offline_dirs": row["offline_dirs"] or []} for row in read.partitions],
    )
    of = rows.snapshot
    return Moment(of["taken_at"], of["controller_epoch"], found.snapshot_id, of["mode"]), rows


def of_document(doc: Document) -> tuple[Moment, SnapshotRows]:
    rows = rows_of(doc)
    of = rows.snapshot
    name = doc["snapshot_id"]
    return Moment(of["taken_at"], of["controller_epoch"], name, of["mode"]), rows


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
