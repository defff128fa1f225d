"""Rows of the output tables of one scenario, as Arrow columns."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from understudy.columns import arrow_schema, rows_of
from understudy.controller.columnar.cluster import NOBODY, Cluster, Flags, Ints
from understudy.controller.journal import Row, drop_unchanged
from understudy.names import SCENARIO_KEY


class Told:
    """Collects rows by table; knows the scenario, the event and the step they belong to."""

    def __init__(self, cluster: Cluster, key: Sequence[str], wanted: Collection[str]) -> None:
        self._wanted = wanted
        self._cluster = cluster
        self._key = dict(zip(SCENARIO_KEY, key, strict=True))
        self._event: dict[str, Any] = {}
        self.step = 0
        self.written = 0
        self.batches: list[tuple[str, pa.RecordBatch]] = []

    def begin_event(self, kind: str) -> None:
        self._event = {"event": self._event.get("event", 0) + 1, "event_type": kind}

    def begin_step(self) -> None:
        self.step += 1

    def add(self, table: str, rows: Ints, **columns: Any) -> None:  # noqa: ANN401 - any columns
        """A row about each of these partitions."""
        if table not in self._wanted:
            return
        cluster = self._cluster
        about = {
            "topic": pa.DictionaryArray.from_arrays(
                pa.array(cluster.topic[rows], pa.int32()), cluster.topics
            ),
            "partition": pa.array(cluster.partition[rows], pa.int32()),
        }
        self.add_others(table, len(rows), **about, **columns)

    def add_others(self, table: str, count: int, **columns: Any) -> None:  # noqa: ANN401
        if count and table in self._wanted:
            given = {**self._key, **self._event, "step": self.step, **columns}
            self.batches.append((table, rows_of(table, count, given)))

    def add_plain(self, tables: dict[str, list[Row]], *, changed_only: bool) -> None:
        """Rows as an interpreter has them, behind those there are."""
        if changed_only:
            drop_unchanged(tables)
        for table, rows in tables.items():
            if not rows or table not in self._wanted:
                continue
            schema = arrow_schema(table)
            own = [field for field in schema if field.name not in SCENARIO_KEY]
            columns: dict[str, Any] = dict(self._key)
            for field, values in zip(own, zip(*rows, strict=True), strict=True):
                column = pa.array(values, field.type)
                is_words = pa.types.is_string(field.type)
                columns[field.name] = column.dictionary_encode() if is_words else column
            if table == "metadata_writes":
                columns["seq"] = self.number_writes(len(rows))
            self.batches.append((table, rows_of(table, len(rows), columns)))

    def number_writes(self, count: int) -> pa.Array:
        first = self.written + 1
        self.written += count
        return pa.array(np.arange(first, first + count), pa.int32())


def numbers(
    values: Ints | Flags, *, known: Flags | None = None, kind: pa.DataType | None = None
) -> pa.Array:
    """Numbers, null where they are not *known*."""
    values = values if kind is not None else values.astype(np.int32, copy=False)
    return pa.array(values, kind, mask=None if known is None else ~known)


def words(codes: Ints, every: Sequence[str]) -> pa.Array:
    """Words by their place among *every* one; null where it is negative."""
    places = pa.array(codes.astype(np.int32, copy=False), mask=codes < 0)
    return pa.DictionaryArray.from_arrays(places, pa.array(every, pa.string()))


def lists(places: Ints, ids: Ints, *, known: Flags | None = None) -> pa.ListArray:
    """Lists of broker ids, null where they are not *known*."""
    is_there = places != NOBODY
    offsets = np.zeros(len(places) + 1, dtype=np.int32)
    np.cumsum(is_there.sum(axis=1), out=offsets[1:])
    return pa.ListArray.from_arrays(
        pa.array(offsets),
        pa.array(ids[places[is_there]].astype(np.int32, copy=False)),
        mask=None if known is None else pa.array(~known),
    )


def any_of(flags: Flags) -> Flags:
    """Whether any of each row is set."""
    return np.asarray(flags.any(axis=1))


def ids_of(places: Ints, ids: Ints) -> Ints:
    """Broker ids, and -1 for nobody."""
    if not len(ids):
        return places
    return np.where(places == NOBODY, NOBODY, ids[places])


_LAST: Final = np.iinfo(np.int32).max


def ascending(places: Ints) -> Ints:
    """Each list in ascending order, nobody last."""
    found = np.sort(np.where(places == NOBODY, _LAST, places), axis=1)
    return np.where(found == _LAST, NOBODY, found)


def only(places: Ints, wanted: Flags) -> Ints:
    """Each list without those that are not *wanted*, in the same order."""
    order = np.argsort(~wanted, axis=1, kind="stable")
    found = np.take_along_axis(places, order, axis=1)
    return np.where(np.take_along_axis(wanted, order, axis=1), found, NOBODY)
