"""From history to events, and from events to what the recorded history should have been.

One pass over a history: between each two successive snapshots of a cluster the events that its
controller must have met are derived, the earlier snapshot is replayed with them, and the later one
is held against the outcome.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from understudy import schemas
from understudy.frames import FEW_ROWS, arrow_schema_of, collected, kept
from understudy.names import SNAPSHOT_KEY
from understudy.questions.history import few
from understudy.questions.history.derivation import derived
from understudy.questions.history.divergence import SCENARIO, Comparison, compare
from understudy.questions.history.facts import Event
from understudy.questions.history.feed import bursts, feed
from understudy.questions.history.interval import Burst
from understudy.questions.history.steps import Listed, listed
from understudy.snapshot import Snapshots
from understudy.sql import text

if TYPE_CHECKING:
    import pyarrow as pa

Key = tuple[str, str]

_TABLES: Final = {
    "events": schemas.EVENTS,
    "changes": schemas.CHANGES,
    "divergences": schemas.DIVERGENCES,
    "decisions": schemas.DECISIONS,
}
_TABLE: Final = "table_name"
_BATCH_ROWS: Final = 5_000


@dataclass(frozen=True)
class History:
    """What a history tells; every table names the later of its two snapshots."""

    events: DataFrame
    changes: DataFrame
    divergences: DataFrame
    decisions: DataFrame
    held: DataFrame
    """The rows of all of them in one stream: each has a value in the column of its table."""

    def close(self) -> None:
        self.held.unpersist()


def told(
    snapshots: Snapshots,
    history: Sequence[Listed] | None = None,
    asked: Collection[Key] | None = None,
) -> History:
    """All there is to tell, computed once; the caller closes it.

    *history* is the list of the snapshots, where the caller knows it better than these tell.
    Only what the *asked* snapshots show is told, if they are given.
    """
    if snapshots.rows is None or snapshots.rows > FEW_ROWS:
        done = kept(_passed(snapshots, history, asked))
    else:
        done = _told_here(snapshots, history, asked)
    return History(**{name: _table(done, name) for name in _TABLES}, held=done)


def told_of(
    found: Iterable[tuple[str, Burst]], asked: Collection[Key] | None = None
) -> dict[str, pa.Table]:
    """The rows of each table, of a few bursts that are at hand."""
    import pyarrow as pa  # noqa: PLC0415 - importing the package must not load it

    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in _TABLES}
    for row in _rows(found, asked):
        name = row.pop(_TABLE)
        values = row.pop(name)
        rows[name].append(row | values)
    return {
        name: pa.Table.from_pylist(rows[name], schema=arrow_schema_of(schema))
        for name, schema in _TABLES.items()
    }


def events(snapshots: Snapshots) -> DataFrame:
    """The table ``events``: one row per event between two successive snapshots of a cluster."""
    return _table(_passed(snapshots), "events")


def divergences(snapshots: Snapshots) -> DataFrame:
    """The table ``divergences``: where a replay of the events says something else."""
    return _table(_passed(snapshots), "divergences")


def changes(snapshots: Snapshots) -> DataFrame:
    """The table ``changes``: what differs from one snapshot to the next, and why."""
    return _table(_passed(snapshots), "changes")


# --- The pass ----------------------------------------------------------------------------------


def _values(schema: T.StructType) -> T.StructType:
    return T.StructType([field for field in schema if field.name not in SNAPSHOT_KEY])


# One stream carries the rows of all tables: each row has a value in the column of its table.
_OUTPUT: Final = T.StructType(
    [
        *(T.StructField(name, schemas.STRING) for name in (*SNAPSHOT_KEY, _TABLE)),
        *(T.StructField(name, _values(schema)) for name, schema in _TABLES.items()),
    ]
)


def _passed(
    snapshots: Snapshots,
    history: Sequence[Listed] | None = None,
    asked: Collection[Key] | None = None,
) -> DataFrame:
    return feed(snapshots, history).mapInArrow(partial(_tell, asked), _OUTPUT)


def _told_here(
    snapshots: Snapshots, history: Sequence[Listed] | None, asked: Collection[Key] | None
) -> DataFrame:
    import pyarrow as pa  # noqa: PLC0415 - importing the package must not load it

    spark = snapshots.snapshots.sparkSession
    there = few.moments(collected(spark, {name: getattr(snapshots, name) for name in few.TABLES}))
    known = listed(snapshots.snapshots) if history is None else history
    rows = pa.Table.from_batches(_batches(_rows(few.bursts(there, known), asked)))
    return spark.createDataFrame(rows, _OUTPUT)


def _table(done: DataFrame, name: str) -> DataFrame:
    found = done.where(f"{_TABLE} = {text(name)}").select(*SNAPSHOT_KEY, f"{name}.*")
    return schemas.conform(found, _TABLES[name])


def _tell(
    asked: Collection[Key] | None, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    return _batches(_rows(bursts(batches), asked))


def _batches(told: Iterable[dict[str, Any]]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa  # noqa: PLC0415 - executors only

    schema = arrow_schema_of(_OUTPUT)
    rows: list[dict[str, Any]] = []
    for row in told:
        rows.append(row)
        if len(rows) == _BATCH_ROWS:
            yield pa.RecordBatch.from_pylist(rows, schema=schema)
            rows = []
    yield pa.RecordBatch.from_pylist(rows, schema=schema)


def _rows(
    found: Iterable[tuple[str, Burst]], asked: Collection[Key] | None
) -> Iterator[dict[str, Any]]:
    for cluster, burst in found:
        events = derived(burst.whole)
        compared = compare(burst, events)
        for step, each in zip(burst.steps, compared, strict=True):
            key = {"cluster": cluster, "snapshot_id": step.new.snapshot["snapshot_id"]}
            if asked is not None and tuple(key.values()) not in asked:
                continue
            shown = shown_by(each, events, compared)
            of_tables = {
                "events": [_event(seq, events[seq - 1]) for seq in shown],
                "changes": [change._asdict() for change in each.changes],
                "divergences": [divergence._asdict() for divergence in each.divergences],
                "decisions": [{"scenario": SCENARIO, **row} for row in each.decisions],
            }
            for name, rows in of_tables.items():
                for row in rows:
                    yield {**key, _TABLE: name, name: row}


def shown_by(
    found: Comparison, events: Sequence[Event], compared: Sequence[Comparison]
) -> list[int]:
    """The numbers of the events that a snapshot shows something of; the last has the rest, too."""
    cited = {number for change in found.changes for number in change.events}
    if found is compared[-1]:
        before = {n for each in compared[:-1] for change in each.changes for n in change.events}
        cited |= set(range(1, len(events) + 1)) - before
    return sorted(cited)


def _event(seq: int, event: Event) -> dict[str, Any]:
    return {"seq": seq, **event._asdict()}
