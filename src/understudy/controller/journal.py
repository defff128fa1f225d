"""What a replayed controller did, row by row, in the order it did it.

The rows are tuples in the column order of the output tables, without the leading keys (cluster,
snapshot, scenario), which are the same for a whole scenario.
"""

from __future__ import annotations

from typing import Any, Final

from understudy.controller.records import Assignment, LeaderAndIsr, TopicPartition
from understudy.controller.words import (
    ASSIGNMENT_WRITE,
    DELETE_TOPIC_WRITE,
    STATE_WRITE,
    UNCHANGED,
)
from understudy.names import SCENARIO_KEY
from understudy.schemas import REPLAY_TABLES

Row = tuple[Any, ...]


class Journal:
    """Collects rows; knows the number of the current event and step."""

    def __init__(self) -> None:
        self.event = 0
        self.event_type = ""
        self.step = 0
        self._at: Row = ()  # what every row begins with
        self.transitions: list[Row] = []
        self.metadata_writes: list[Row] = []
        self.requests: list[Row] = []
        self.request_partitions: list[Row] = []
        self.decisions: list[Row] = []
        self.event_results: list[Row] = []
        self.epochs_raised: set[TopicPartition] = set()
        self.last_reason: dict[TopicPartition, str] = {}
        # Of the last election that found a leader: clean or not, and why.
        self.last_elected: dict[TopicPartition, tuple[bool, str]] = {}

    def forget_until(self, step: int) -> None:
        """Drop what was written so far, as somebody else has it, and go on after *step*."""
        self.step = step
        for rows in (
            self.transitions,
            self.metadata_writes,
            self.requests,
            self.request_partitions,
            self.decisions,
            self.event_results,
        ):
            rows.clear()

    def tables(
        self, partition_states: list[Row], replica_states: list[Row]
    ) -> dict[str, list[Row]]:
        """The rows of every output table, beside those of the states it ended in."""
        tables = {
            "partition_states": partition_states,
            "replica_states": replica_states,
            "transitions": self.transitions,
            "metadata_writes": self.metadata_writes,
            "requests": self.requests,
            "request_partitions": self.request_partitions,
            "decisions": self.decisions,
            "event_results": self.event_results,
            "broker_states": [],
        }
        return {name: _with_kraft_columns(name, rows) for name, rows in tables.items()}

    def begin_event(self, event_type: str) -> None:
        self.event += 1
        self.event_type = event_type
        self._at = (self.step, self.event, self.event_type)

    def begin_step(self) -> None:
        self.step += 1
        self._at = (self.step, self.event, self.event_type)

    def transition(
        self,
        machine: str,
        tp: TopicPartition,
        replica: int | None,
        change: tuple[str, str],
        result: str,
        *,
        error: str | None = None,
        record: LeaderAndIsr | None = None,
    ) -> None:
        shown: Row = (None, None, None)
        if record is not None:
            shown = (record.leader, record.isr, record.leader_epoch)
        self.transitions.append((*self._at, machine, *tp, replica, *change, result, error, *shown))

    def state_written(self, tp: TopicPartition, record: LeaderAndIsr) -> None:
        self._written(STATE_WRITE, *tp, *record, None, None, None)

    def epoch_raised(self, tp: TopicPartition, record: LeaderAndIsr) -> None:
        """The same record was written under a new leader epoch, to be sent anew."""
        self.state_written(tp, record)
        self.epochs_raised.add(tp)

    def assignment_written(self, tp: TopicPartition, assignment: Assignment) -> None:
        self._written(ASSIGNMENT_WRITE, *tp, *(None,) * 6, *assignment)

    def topic_deleted(self, topic: str) -> None:
        self._written(DELETE_TOPIC_WRITE, topic, *(None,) * 10)

    def _written(self, *columns: Any) -> None:  # noqa: ANN401 - a row of many types
        self.metadata_writes.append((len(self.metadata_writes) + 1, *self._at, *columns))

    def event_result(self, tp: TopicPartition | None, error: str | None) -> None:
        """What the event answers for a partition; without one, for itself as a whole."""
        self.event_results.append((self.event, self.event_type, *(tp or (None, None)), error))

    def request(self, *columns: Any) -> None:  # noqa: ANN401 - a row of many types
        self.requests.append((*self._at, *columns))

    def request_partition(self, *columns: Any) -> None:  # noqa: ANN401
        self.request_partitions.append((*self._at, *columns))

    def decision(
        self,
        tp: TopicPartition,
        strategy: str,
        candidates: tuple[tuple[int, str], ...],
        *,
        chosen: int | None,
        clean: bool | None,
        unclean_allowed_by: str | None,
        reason: str,
    ) -> None:
        self.decisions.append(
            (*self._at, *tp, strategy, candidates, chosen, clean, unclean_allowed_by, reason)
        )
        self.last_reason[tp] = reason
        if clean is not None:
            self.last_elected[tp] = (clean, reason)


def _with_kraft_columns(table: str, rows: list[Row]) -> list[Row]:
    """Rows at full width: the last columns of some tables belong to the quorum controller."""
    width = len(REPLAY_TABLES[table].names) - len(SCENARIO_KEY)
    missing = (None,) * (width - len(rows[0])) if rows else ()
    return [(*row, *missing) for row in rows] if missing else rows


_OUTCOME: Final = REPLAY_TABLES["partition_states"].names.index("outcome") - len(SCENARIO_KEY)


def drop_unchanged(tables: dict[str, list[Row]]) -> None:
    """Leave the state rows of partitions out that their scenario did not touch."""
    states, replicas = tables["partition_states"], tables["replica_states"]
    changed = {row[:2] for row in states if row[_OUTCOME] != UNCHANGED}
    for rows in (states, replicas):
        rows[:] = [row for row in rows if row[:2] in changed]
