"""Small tables in Parquet files of this machine, read and written without Spark.

A job takes Spark longer than the few rows of such a table are worth, and each question about them
would be another job. Rows that are at hand are a leaf of every plan: Spark has answered what is
asked of them alone before it would have looked for the files.

Nothing here says what is wrong with a file: what cannot be read like this is left to Spark.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pyspark.sql import types as T

from understudy.frames import arrow_conform, arrow_schema_of
from understudy.names import SNAPSHOT_KEY
from understudy.sources import local_paths

if TYPE_CHECKING:
    import pyarrow as pa

FEW_ROWS: Final = 5_000
"""More of them would make every plan slow."""
SOME_ROWS: Final = 200_000
_FEW_FILES: Final = 50
_MANY_ROWS: Final = 20_000_000

HIDDEN: Final = ".attempt-"
"""How the names of files begin that no reader of Parquet opens."""
NAMED: Final = "part-"
SUFFIX: Final = ".zstd.parquet"


def is_there(path: str) -> bool:
    return Path(local_paths.plain(path)).exists()


def runs_below(folder: str) -> list[str]:
    """The names of what runs wrote of a table."""
    found = Path(local_paths.plain(folder)).glob("run=*")
    return sorted(each.name.removeprefix("run=") for each in found)


def few_rows(
    folders: Mapping[str, str], schema: T.StructType, named: str, at_most: int | None = None
) -> pa.Table | None:
    """The rows in some *folders*, which the column *named* tells apart; None if they are many.

    Columns that the files lack are null, as Spark reads them.
    """
    import pyarrow as pa  # noqa: PLC0415 - importing the package must not load it

    read = _read(folders, schema, FEW_ROWS if at_most is None else at_most)
    if read is None:
        return None
    found = [arrow_schema_of(schema).empty_table().append_column(named, pa.array([], pa.string()))]
    found += [rows.append_column(named, pa.repeat(name, rows.num_rows)) for name, rows in read]
    return pa.concat_tables(found).combine_chunks()


def rows_about(
    folders: Iterable[str], schema: T.StructType, key: Mapping[str, str]
) -> pa.Table | None:
    """The rows in some *folders* about one thing; None if there are many about all."""
    import pyarrow as pa  # noqa: PLC0415 - importing the package must not load it
    import pyarrow.compute as pc  # noqa: PLC0415

    read = _read({folder: folder for folder in folders}, schema, SOME_ROWS)
    if read is None:
        return None
    rows = pa.concat_tables([arrow_schema_of(schema).empty_table(), *(rows for _, rows in read)])
    for name, value in key.items():
        rows = rows.filter(pc.equal(rows[name], value))
    return rows


def _read(
    folders: Mapping[str, str], schema: T.StructType, at_most: int
) -> list[tuple[str, pa.Table]] | None:
    """The rows of each file in these folders; None if there are more."""
    import pyarrow as pa  # noqa: PLC0415 - importing the package must not load it
    import pyarrow.parquet as pq  # noqa: PLC0415

    wanted = arrow_schema_of(schema)
    found = []
    left = at_most
    try:
        files = [(name, file) for name, folder in folders.items() for file in _files(folder)]
        if len(files) > _FEW_FILES:
            return None
        for name, file in files:
            with pq.ParquetFile(file) as stored:
                left -= stored.metadata.num_rows
                if left < 0:
                    return None
                rows = stored.read()
            columns = [
                rows[field.name].cast(field.type)
                if field.name in rows.schema.names
                else pa.nulls(rows.num_rows, field.type)
                for field in wanted
            ]
            found.append((name, pa.Table.from_arrays(columns, schema=wanted)))
    except (OSError, pa.ArrowException):
        return None
    return found


def counts(folders: Iterable[str]) -> dict[tuple[str, str], int] | None:
    """How many rows there are of each snapshot; None if they are many."""
    import pyarrow as pa  # noqa: PLC0415 - importing the package must not load it
    import pyarrow.parquet as pq  # noqa: PLC0415

    keys = list(SNAPSHOT_KEY)
    totals: Counter[tuple[str, str]] = Counter()
    left = _MANY_ROWS
    try:
        for file in (file for folder in folders for file in _files(folder)):
            with pq.ParquetFile(file, read_dictionary=keys) as stored:
                left -= stored.metadata.num_rows
                if left < 0:
                    return None
                found = stored.read(columns=keys).group_by(keys).aggregate([([], "count_all")])
            rows = zip(*found.select([*keys, "count_all"]).to_pydict().values(), strict=True)
            for cluster, snapshot_id, count in rows:
                totals[cluster, snapshot_id] += count
    except (KeyError, OSError, pa.ArrowException):
        return None
    return dict(totals)


def count(folder: str) -> int:
    """How many rows the files of a folder have, as these say."""
    import pyarrow.parquet as pq  # noqa: PLC0415 - importing the package must not load it

    return sum(pq.read_metadata(file).num_rows for file in _files(folder))


def schema_of(folder: str) -> T.StructType | None:
    """The columns in the files of a folder, as Spark would call them; None if that takes Spark."""
    import pyarrow as pa  # noqa: PLC0415 - importing the package must not load it
    import pyarrow.parquet as pq  # noqa: PLC0415
    from pyspark.errors import PySparkException  # noqa: PLC0415
    from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415

    try:
        return from_arrow_schema(pq.read_schema(_files(folder)[0]))
    except (IndexError, OSError, pa.ArrowException, PySparkException):
        return None


def write(rows: pa.Table, schema: T.StructType, folder: str) -> None:
    """Write a file of these rows that is seen as a whole or not at all."""
    import pyarrow.parquet as pq  # noqa: PLC0415 - importing the package must not load it

    rows = arrow_conform(rows, schema)
    at = Path(local_paths.plain(folder))
    at.mkdir(parents=True)
    file = f"{uuid.uuid4()}{SUFFIX}"
    pq.write_table(rows, at / f"{HIDDEN}{file}", compression="zstd", store_schema=False)
    (at / f"{HIDDEN}{file}").rename(at / f"{NAMED}{file}")


def write_line(line: str, folder: str) -> None:
    """Write a file of one line of text."""
    at = Path(local_paths.plain(folder))
    at.mkdir(parents=True)
    file = f"{uuid.uuid4()}.txt"
    (at / f"{HIDDEN}{file}").write_text(f"{line}\n", encoding="utf-8")
    (at / f"{HIDDEN}{file}").rename(at / f"{NAMED}{file}")


def _files(folder: str) -> list[Path]:
    there = Path(local_paths.plain(folder)).iterdir()
    return sorted(file for file in there if not file.name.startswith((".", "_")))
