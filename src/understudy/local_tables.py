"""Small tables in Parquet files of this machine, read and written without Spark.

A job takes Spark longer than the few rows of such a table are worth, and each question about them
would be another job. Rows that are at hand are a leaf of every plan: Spark has answered what is
asked of them alone before it would have looked for the files.

Nothing here says what is wrong with a file: what cannot be read like this is left to Spark.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pyspark.sql import types as T

from understudy.sources import local_paths

if TYPE_CHECKING:
    import pyarrow as pa

FEW_ROWS: Final = 5_000
"""More of them would make every plan slow."""
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


def few_rows(folders: Mapping[str, str], schema: T.StructType, named: str) -> pa.Table | None:
    """The rows in some *folders*, which the column *named* tells apart; None if they are many.

    Columns that the files lack are null, as Spark reads them.
    """
    import pyarrow as pa  # noqa: PLC0415 - importing the package must not load it
    import pyarrow.parquet as pq  # noqa: PLC0415
    from pyspark.sql.pandas.types import to_arrow_schema  # noqa: PLC0415

    wanted = to_arrow_schema(schema, timezone="UTC")
    found = [wanted.empty_table().append_column(named, pa.array([], pa.string()))]
    left = FEW_ROWS
    try:
        for name, file in _files(folders):
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
            whose = pa.repeat(name, rows.num_rows)
            found.append(pa.Table.from_arrays([*columns, whose], names=[*wanted.names, named]))
    except (_ManyError, OSError, pa.ArrowException):
        return None
    return pa.concat_tables(found).combine_chunks()


def counts(
    folders: Mapping[str, str], keys: Sequence[str]
) -> dict[tuple[str | None, ...], int] | None:
    """How many rows there are of each key; None if that takes Spark."""
    import pyarrow as pa  # noqa: PLC0415 - importing the package must not load it
    import pyarrow.parquet as pq  # noqa: PLC0415

    found: list[pa.Table] = []
    left = _MANY_ROWS
    try:
        for _, file in _files(folders):
            with pq.ParquetFile(file, read_dictionary=list(keys)) as stored:
                left -= stored.metadata.num_rows
                if left < 0:
                    return None
                found.append(
                    stored.read(columns=list(keys)).group_by(keys).aggregate([([], "count_all")])
                )
    except (_ManyError, OSError, pa.ArrowException):
        return None
    totals: dict[tuple[str | None, ...], int] = {}
    for table in found:
        for *key, rows in zip(
            *table.select([*keys, "count_all"]).to_pydict().values(), strict=True
        ):
            totals[tuple(key)] = totals.get(tuple(key), 0) + rows
    return totals


def schema_of(folder: str) -> T.StructType | None:
    """The columns in the files of a folder, as Spark would call them; None if that takes Spark."""
    import pyarrow as pa  # noqa: PLC0415 - importing the package must not load it
    import pyarrow.parquet as pq  # noqa: PLC0415
    from pyspark.errors import PySparkException  # noqa: PLC0415
    from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415

    try:
        _, file = _files({"": folder})[0]
        return from_arrow_schema(pq.read_schema(file))
    except (_ManyError, IndexError, OSError, pa.ArrowException, PySparkException):
        return None


def write(rows: pa.Table, folder: str) -> None:
    """Write a file of these rows that is seen as a whole or not at all."""
    import pyarrow.parquet as pq  # noqa: PLC0415 - importing the package must not load it

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


class _ManyError(Exception):
    """There are more files than it pays to open one by one."""


def _files(folders: Mapping[str, str]) -> list[tuple[str, Path]]:
    found: list[tuple[str, Path]] = []
    for name, folder in folders.items():
        there = Path(local_paths.plain(folder)).iterdir()
        files = sorted(file for file in there if not file.name.startswith((".", "_")))
        found += ((name, file) for file in files)
        if len(found) > _FEW_FILES:
            raise _ManyError
    return found
