"""Rows of the output tables of scenarios side by side, as Arrow columns."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from understudy.columns import HandOver, arrow_schema, rows_of
from understudy.controller.columnar.arrays import Flags, Ints
from understudy.controller.columnar.cluster import Cluster
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
        topic = cluster.topic[rows]
        # A file names every topic that its rows may be about: no more than there are between them.
        first, last = int(topic.min(initial=len(cluster.topics))), int(topic.max(initial=0))
        between = cluster.topics.slice(first, max(last + 1 - first, 0))
        about = {
            "topic": pa.DictionaryArray.from_arrays(pa.array(topic - first, pa.int32()), between),
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
