"""A few small documents of this machine, parsed in this process.

Spark takes seconds to start Python elsewhere, hand it the bytes and cut tables from what comes
back, however little that is. What is read here is exactly what it would have read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from understudy import schemas
from understudy.frames import FEW_ROWS
from understudy.snapshot import Snapshots, not_at_hand, unknown_sizes
from understudy.sources import combine, documents
from understudy.sources.content import Parsed
from understudy.sources.document import parse


def read(spark: SparkSession, paths: Sequence[str]) -> Snapshots | None:
    """The snapshots in *paths*, or None where it takes Spark.

    That is so of other file systems and machines, of more than a few rows, of a snapshot that is
    met more than once, and of marks that programs leave beside files.
    """
    files = documents.little_of_this_machine(spark, paths)
    if not files or any(Path(name).name.startswith("_") for name in files):
        return None
    parsed = [(source, each) for source, data in files.items() for each in parse(data)]
    contents = [each.content for _, each in parsed if each.content is not None]
    keys = {(content.cluster, content.snapshot_id) for content in contents}
    rows = sum(
        len(table)
        for content in contents
        for table in (content.brokers, content.topics, content.partitions, content.configs)
    )
    if rows > FEW_ROWS or len(keys) < len(contents):
        return None
    told = {**schemas.SNAPSHOT_TABLES, "quarantine": schemas.QUARANTINE}
    tables = {name: _table(spark, name, schema, parsed) for name, schema in told.items()}
    digests = (hashlib.sha256(data).hexdigest() for data in files.values())
    digest = combine.input_digest([combine.digest_of_files(digests)])
    return Snapshots(
        **tables,
        at_hand=not_at_hand,
        key=None,
        input_digest=digest,
        held=(),
        rows=rows,
        sizes=unknown_sizes,
        nothing_refused=tables["quarantine"].isEmpty(),
    )


def _table(
    spark: SparkSession, name: str, schema: T.StructType, parsed: Sequence[tuple[str, Parsed]]
) -> DataFrame:
    import pyarrow as pa  # noqa: PLC0415 - importing the package must not load it
    from pyspark.sql.pandas.types import to_arrow_schema  # noqa: PLC0415

    from understudy.sources import rows  # noqa: PLC0415

    batches = [b for source, each in parsed for b in rows.table_of(name, source, each)]
    arrow = to_arrow_schema(schema, timezone="UTC")
    table = pa.Table.from_batches(batches).select(schema.names) if batches else arrow.empty_table()
    return spark.createDataFrame(table, schema)
