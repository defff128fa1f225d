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

from understudy.columns import Pass, Teller
from understudy.errors import UsageError
from understudy.names import PARTITION_KEY

if TYPE_CHECKING:
    import pyarrow as pa

_HIDDEN: Final = ".attempt-"
_NAMED: Final = "part-"
_WRITTEN: Final = T.StructType(
    [T.StructField("folder", T.StringType()), T.StructField("file", T.StringType())]
)


def make(folders: Iterable[str]) -> None:
    """Make *folders* that are not there yet: nothing published is overwritten."""
    for folder in folders:
        Path(folder).mkdir(parents=True)


def write(made: Pass, folders: Mapping[str, str]) -> None:
    """Write what *made* makes of each table into its folder."""
    own = {name: folders[name] for name in sorted(made.names)}
    written = made.rows.mapInArrow(partial(_write, made.tell, own), _WRITTEN).toArrow()
    for folder, file in zip(*written.to_pydict().values(), strict=True):
        hidden = Path(folder, _HIDDEN + file)
        if not hidden.exists():
            raise UsageError(
                f"{folder}: what was written there cannot be seen from where the command runs;"
                " on a cluster, --out has to be a place that all machines share"
            )
        hidden.rename(Path(folder, _NAMED + file))
    for lost in (lost for folder in own.values() for lost in Path(folder).glob(f"{_HIDDEN}*")):
        lost.unlink(missing_ok=True)


def _write(
    tell: Teller, folders: Mapping[str, str], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa  # noqa: PLC0415 - executors only

    for name, rows in tell(batches, folders.keys()):
        file = f"{uuid.uuid4()}.zstd.parquet"
        Path(folders[name]).mkdir(parents=True, exist_ok=True)
        _write_file(rows, f"{folders[name]}/{_HIDDEN}{file}")
        yield pa.RecordBatch.from_pydict({"folder": [folders[name]], "file": [file]})


def _write_file(rows: pa.RecordBatch, path: str) -> None:
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.parquet as pq  # noqa: PLC0415

    words = [field.name for field in rows.schema if pa.types.is_dictionary(field.type)]
    pq.write_table(
        pa.Table.from_batches([rows]),
        path,
        compression="zstd",
        # Numbers differ more than dictionaries are made for.
        use_dictionary=words,
        # As Spark writes them: by what somebody may look for (publish).
        write_statistics=list(PARTITION_KEY),
        store_schema=False,
    )
