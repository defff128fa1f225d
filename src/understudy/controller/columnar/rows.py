"""Rows of the output tables of scenarios side by side, as Arrow columns."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from understudy.columns import HandOver, arrow_schema, rows_of
from understudy.controller.columnar.cluster import NOBODY, Cluster, Flags, Ints
from understudy.controller.journal import Row, drop_unchanged
from understudy.names import SCENARIO_KEY


class Told:
    """Makes rows of the tables; knows the event and the step that each scenario is at."""

    def __init__(
        self,
        cluster: Cluster,
        snapshot: Sequence[str],
        scenarios: Sequence[str],
        wanted: Collection[str],
        hand_over: HandOver,
    ) -> None:
        self._wanted = wanted
        self._cluster = cluster
        *of_snapshot, self._of_scenario = SCENARIO_KEY
        self._key = dict(zip(of_snapshot, snapshot, strict=True))
        self._scenarios = pa.array(scenarios, pa.string())
        self._event: dict[str, Any] = {}
        self.steps = np.zeros(len(scenarios), dtype=np.int32)
        self._written = np.zeros(len(scenarios), dtype=np.int32)
        self._hand_over = hand_over

    def begin_event(self, kind: str) -> None:
        self._event = {"event": self._event.get("event", 0) + 1, "event_type": kind}

    def begin_step(self, scenarios: Flags) -> None:
        """A step of those *scenarios* in which there is something to do."""
        self.steps += scenarios

    def wants(self, table: str) -> bool:
        """Whether anybody asks for a table: columns are made for nobody else."""
        return table in self._wanted

    def add(self, table: str, rows: Ints, of: Ints, **columns: Any) -> None:  # noqa: ANN401
        """A row about each of these partitions, *of* the scenarios beside them."""
        if not self.wants(table):
            return
        cluster = self._cluster
        about = {
            "topic": pa.DictionaryArray.from_arrays(
                pa.array(cluster.topic[rows], pa.int32()), cluster.topics
            ),
            "partition": pa.array(cluster.partition[rows], pa.int32()),
        }
        self.add_others(table, of, **about, **columns)

    def add_others(self, table: str, of: Ints, **columns: Any) -> None:  # noqa: ANN401
        """A row *of* each of these scenarios, a scenario as often as it has rows."""
        if len(of) and self.wants(table):
            given = {**self._scenario(of), **self._event, "step": self._step(of), **columns}
            self._hand_over(table, rows_of(table, len(of), given))

    def add_plain(self, tables: dict[str, list[Row]], scenario: int, *, changed_only: bool) -> None:
        """Rows of one of the scenarios as an interpreter has them, behind those there are."""
        if changed_only:
            drop_unchanged(tables)
        for table, rows in tables.items():
            if not rows or not self.wants(table):
                continue
            schema = arrow_schema(table)
            of = np.full(len(rows), scenario, dtype=np.int32)
            own = [field for field in schema if field.name not in SCENARIO_KEY]
            columns = self._scenario(of)
            for field, values in zip(own, zip(*rows, strict=True), strict=True):
                column = pa.array(values, field.type)
                is_words = pa.types.is_string(field.type)
                columns[field.name] = column.dictionary_encode() if is_words else column
            if table == "metadata_writes":
                columns["seq"] = self.number_writes(of)
            self._hand_over(table, rows_of(table, len(rows), columns))

    def number_writes(self, of: Ints) -> pa.Array:
        """The writes *of* these scenarios, one scenario after the other, go on counting."""
        counts = np.bincount(of, minlength=len(self._written)).astype(np.int32)
        before = np.cumsum(counts) - counts
        places = np.arange(1, len(of) + 1) - before[of]
        numbered = pa.array(self._written[of] + places, pa.int32())
        self._written += counts
        return numbered

    def _scenario(self, of: Ints) -> dict[str, Any]:
        if len(self._scenarios) == 1:
            return {**self._key, self._of_scenario: self._scenarios[0].as_py()}
        places = pa.array(of, pa.int32())
        named = pa.DictionaryArray.from_arrays(places, self._scenarios)
        return {**self._key, self._of_scenario: named}

    def _step(self, of: Ints) -> Any:  # noqa: ANN401 - one number, or one a row
        first = self.steps[0]
        return int(first) if (self.steps == first).all() else pa.array(self.steps[of], pa.int32())


PARTITIONS_AT_ONCE: Final = 250_000
"""Rows are made of so many partitions: what is held meanwhile is many times as large as these."""


def in_slices(at: Ints) -> Iterator[Ints]:
    for start in range(0, len(at), PARTITIONS_AT_ONCE):
        yield at[start : start + PARTITIONS_AT_ONCE]


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
    np.cumsum(count_of(is_there), out=offsets[1:])
    return pa.ListArray.from_arrays(
        pa.array(offsets),
        pa.array(ids[places[is_there]].astype(np.int32, copy=False)),
        mask=None if known is None else pa.array(~known),
    )


def any_of(flags: Flags) -> Flags:
    """Whether any of each row is set."""
    # Rows are short: numpy takes ten times as long to go along them.
    found = np.zeros(len(flags), dtype=bool)
    for column in flags.T:
        found |= column
    return found


def count_of(flags: Flags) -> Ints:
    """How many of each row are set."""
    found = np.zeros(len(flags), dtype=np.int32)
    for column in flags.T:
        found += column
    return found


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
    found = np.where(wanted, places, NOBODY)
    width = places.shape[1]
    for end in range(width - 1, 0, -1):
        for column in range(end):
            is_free = found[:, column] == NOBODY
            following = found[:, column + 1]
            found[:, column] = np.where(is_free, following, found[:, column])
            following[is_free] = NOBODY
    return found
