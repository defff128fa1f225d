"""Parquet files of the tables that one pass makes, written from within the pass.

Each attempt of a task writes hidden files, which no reader of Parquet opens, and tells Spark of
them; those of the attempts that Spark takes are given their names at the end. So a task that is
lost, run again or run twice leaves nothing that counts.

Files are written as local ones: where the tables go to another file system, or Spark is connected
to from elsewhere, Spark writes the rows itself.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pyspark.sql import types as T

from understudy.columns import Pass, Teller, arrow_schema
from understudy.errors import UsageError
from understudy.names import PARTITION_KEY

if TYPE_CHECKING:
    import pyarrow as pa

_HIDDEN: Final = ".attempt-"
_NAMED: Final = "part-"
_SUFFIX: Final = ".zstd.parquet"
_WRITTEN: Final = T.StructType(
    [
        T.StructField("name", T.StringType()),
        T.StructField("file", T.StringType()),
        T.StructField("rows", T.LongType()),
    ]
)

ROWS_PER_FILE: Final = 250_000
"""A file is read by one task. One document or log is written by one, and read by all cores."""


def make(folders: Iterable[str]) -> None:
    """Make *folders* that are not there yet: nothing published is overwritten."""
    for folder in folders:
        Path(folder).mkdir(parents=True)


def write(made: Pass, folders: Mapping[str, str]) -> dict[str, int]:
    """Write what *made* makes of each table into its folder; the rows of each."""
    own = {name: folders[name] for name in sorted(made.names)}
    written = made.rows.mapInArrow(partial(_write, made.tell, own), _WRITTEN).toArrow()
    counts = dict.fromkeys(own, 0)
    for name, file, rows in zip(*written.to_pydict().values(), strict=True):
        hidden = Path(own[name], _HIDDEN + file)
        if not hidden.exists():
            raise UsageError(
                f"{own[name]}: what was written there cannot be seen from where the command runs;"
                " on a cluster, --out has to be a place that all machines share"
            )
        hidden.rename(Path(own[name], _NAMED + file))
        counts[name] += rows
    for lost in (lost for folder in own.values() for lost in Path(folder).glob(f"{_HIDDEN}*")):
        lost.unlink(missing_ok=True)
    return counts


def write_nothing(name: str, folder: str) -> None:
    """A file that has the columns of a table and no rows."""
    write_rows(arrow_schema(name).empty_table(), folder)


def write_rows(rows: pa.Table, folder: str) -> None:
    """A file of rows that are in this process, seen when it is whole."""
    file = f"{uuid.uuid4()}{_SUFFIX}"
    hidden = Path(folder, _HIDDEN + file)
    _write_file(rows, str(hidden))
    hidden.rename(Path(folder, _NAMED + file))


def _write(
    tell: Teller, folders: Mapping[str, str], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa  # noqa: PLC0415 - executors only

    held: dict[str, list[pa.RecordBatch]] = {name: [] for name in folders}

    def files(name: str) -> Iterator[pa.RecordBatch]:
        rows = pa.Table.from_batches(held[name]).unify_dictionaries().combine_chunks()
        held[name] = []
        for start in range(0, rows.num_rows, ROWS_PER_FILE):
            file = f"{uuid.uuid4()}{_SUFFIX}"
            Path(folders[name]).mkdir(parents=True, exist_ok=True)
            part = rows.slice(start, ROWS_PER_FILE)
            _write_file(part, f"{folders[name]}/{_HIDDEN}{file}")
            told = {"name": [name], "file": [file], "rows": [part.num_rows]}
            yield pa.RecordBatch.from_pydict(told)

    waiting = dict.fromkeys(folders, 0)
    for name, batch in tell(batches, folders.keys()):
        held[name].append(batch)
        waiting[name] += batch.num_rows
        if waiting[name] >= ROWS_PER_FILE:
            yield from files(name)
            waiting[name] = 0
    for name in (name for name, left in held.items() if left):
        yield from files(name)


def _write_file(rows: pa.Table, path: str) -> None:
    import pyarrow.parquet as pq  # noqa: PLC0415 - executors only

    pq.write_table(
        rows,
        path,
        compression="zstd",
        # As Spark writes them: by what somebody may look for (publish).
        write_statistics=list(PARTITION_KEY),
        store_schema=False,
    )
