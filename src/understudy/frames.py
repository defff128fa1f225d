"""Small frames from plain values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T


def small_frame(
    spark: SparkSession, rows: Iterable[Sequence[Any]], schema: T.StructType
) -> DataFrame:
    """*rows* as a frame that knows it is small.

    They travel as an Arrow table, which the JVM takes as it is; a list of rows would start Python
    workers to be unpickled.
    """
    import pyarrow as pa  # noqa: PLC0415 - importing the package must not load it
    from pyspark.sql.pandas.types import to_arrow_schema  # noqa: PLC0415

    named = [dict(zip(schema.names, row, strict=True)) for row in rows]
    table = pa.Table.from_pylist(named, schema=to_arrow_schema(schema, timezone="UTC"))
    return spark.createDataFrame(table, schema)
