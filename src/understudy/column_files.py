"""Parquet files of the tables that one pass makes, written from within the pass.

Each attempt of a task writes hidden files, which no reader of Parquet opens, and tells Spark of
them; those of the attempts that Spark takes are given their names at the end. So a task that is
lost, run again or run twice leaves nothing that counts.

Of tables of few rows the rows themselves are told, for Spark to finish and write.

Files are written as local ones: where the tables go to another file system, or Spark is connected
to from elsewhere, Spark writes the rows itself.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from understudy.columns import Pass, Teller, arrow_schema, decoded, packed, unpacked
from understudy.errors import UsageError
from understudy.local_tables import HIDDEN, NAMED, SUFFIX
from understudy.names import PARTITION_KEY
from understudy.schemas import TABLES

if TYPE_CHECKING:
    import pyarrow as pa

_WRITTEN: Final = T.StructType(
    [
        T.StructField("name", T.StringType()),
        T.StructField("file", T.StringType()),
        T.StructField("rows", T.LongType()),
        T.StructField("packed", T.BinaryType()),  # in place of a file
    ]
)

_VALUES_AT_ONCE: Final = 16_384  # a tenth less to write than by Arrow's thousand

ROWS_PER_FILE: Final = 250_000
"""A file is read by one task. One document or log is written by one, and read by all cores."""


def make(folders: Iterable[str]) -> None:
    """Make *folders* that are not there yet: nothing published is overwritten."""
    for folder in folders:
        Path(folder).mkdir(parents=True)


class Written(NamedTuple):
    """What became of the tables of a pass: the rows of files, and what Spark has to write."""

    counts: dict[str, int]
    finished: dict[str, DataFrame]


def write(made: Pass, folders: Mapping[str, str]) -> Written:
    """Write what *made* makes of each table into its folder."""
    few = made.names & made.finished.keys()
    own = {name: folders[name] for name in sorted(made.names - few)}
    written = made.rows.mapInArrow(partial(_write, made.tell, own, few), _WRITTEN).toArrow()
    counts = dict.fromkeys(own, 0)
    told = {name: [arrow_schema(name).empty_table()] for name in few}
    for name, file, rows, part in zip(*written.to_pydict().values(), strict=True):
        if part is not None:
            told[name].append(unpacked(part))
            continue
        hidden = Path(own[name], HIDDEN + file)
        if not hidden.exists():
            raise UsageError(
                f"{own[name]}: what was written there cannot be seen from where the command runs;"
                " on a cluster, --out has to be a place that all machines share"
            )
        hidden.rename(Path(own[name], NAMED + file))
        counts[name] += rows
    for lost in (lost for folder in own.values() for lost in Path(folder).glob(f"{HIDDEN}*")):
        lost.unlink(missing_ok=True)
    spark = made.rows.sparkSession
    return Written(
        counts,
        {name: made.finished[name](_frame(spark, name, parts)) for name, parts in told.items()},
    )


def _frame(spark: SparkSession, name: str, parts: Iterable[pa.Table]) -> DataFrame:
    import pyarrow as pa  # noqa: PLC0415 - importing the package must not load it

    return spark.createDataFrame(pa.concat_tables(parts), TABLES[name])


def write_nothing(name: str, folder: str) -> None:
    """A file that has the columns of a table and no rows."""
    nothing = arrow_schema(name).empty_table()
    _write_file(nothing, f"{folder}/{NAMED}{uuid.uuid4()}{SUFFIX}")


def _write(
    tell: Teller,
    folders: Mapping[str, str],
    few: Collection[str],
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa  # noqa: PLC0415 - executors only

    held: dict[str, list[pa.RecordBatch]] = {name: [] for name in folders}

    def files(name: str) -> Iterator[pa.RecordBatch]:
        rows = pa.Table.from_batches(held[name]).unify_dictionaries().combine_chunks()
        held[name] = []
        for start in range(0, rows.num_rows, ROWS_PER_FILE):
            file = f"{uuid.uuid4()}{SUFFIX}"
            Path(folders[name]).mkdir(parents=True, exist_ok=True)
            part = rows.slice(start, ROWS_PER_FILE)
            _write_file(part, f"{folders[name]}/{HIDDEN}{file}")
            yield _told(name, part.num_rows, file=file)

    waiting = dict.fromkeys(folders, 0)
    for name, batch in tell(batches, {*folders, *few}):
        if name in few:
            yield _told(name, batch.num_rows, packed=packed(decoded(batch)))
            continue
        held[name].append(batch)
        waiting[name] += batch.num_rows
        if waiting[name] >= ROWS_PER_FILE:
            yield from files(name)
            waiting[name] = 0
    for name in (name for name, left in held.items() if left):
        yield from files(name)


def _told(
    name: str, rows: int, *, file: str | None = None, packed: bytes | None = None
) -> pa.RecordBatch:
    import pyarrow as pa  # noqa: PLC0415 - executors only

    return pa.record_batch(
        {
            "name": pa.array([name], pa.string()),
            "file": pa.array([file], pa.string()),
            "rows": pa.array([rows], pa.int64()),
            "packed": pa.array([packed], pa.binary()),
        }
    )


def _write_file(rows: pa.Table, path: str) -> None:
    import pyarrow.parquet as pq  # noqa: PLC0415 - executors only

    pq.write_table(
        rows,
        path,
        compression="zstd",
        # As Spark writes them: by what somebody may look for (publish).
        write_statistics=list(PARTITION_KEY),
        write_batch_size=_VALUES_AT_ONCE,
        store_schema=False,
    )
