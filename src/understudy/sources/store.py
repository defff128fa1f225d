"""A snapshot store, read back into the canonical tables."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial, reduce
from typing import TYPE_CHECKING, Final

from pyspark import inheritable_thread_target
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from understudy import local_tables, publish, published, schemas
from understudy.errors import BadInputError, UsageError
from understudy.frames import small_frame
from understudy.names import SNAPSHOT_KEY
from understudy.session import writes_to
from understudy.snapshot import Key
from understudy.sources.combine import FILE_DIGEST, POSITION, ROWS, SOURCE, Part

if TYPE_CHECKING:
    import pyarrow as pa

_DOCUMENT_ENDINGS: Final = (".json", ".jsonl", ".ndjson", ".gz")
_FEW: Final = 64
_KEYS: Final = T.StructType([T.StructField(name, schemas.STRING) for name in SNAPSHOT_KEY])


def is_store(spark: SparkSession, path: str) -> bool:
    """Whether runs were published to *path*; nobody calls a directory of runs ``x.json``."""
    return not path.lower().endswith(_DOCUMENT_ENDINGS) and publish.is_store(spark, path)


def divide(spark: SparkSession, paths: Sequence[str]) -> tuple[list[str], list[str]]:
    """The stores among *paths*, and the others; each path once."""
    if not paths:
        raise UsageError("no path to read snapshots from was given")
    given = list(dict.fromkeys(paths))
    stores = [path for path in given if is_store(spark, path)]
    return stores, [path for path in given if path not in stores]


def read(spark: SparkSession, path: str, only: Collection[Key] | None = None) -> Part:
    """The snapshots of every visible run of the store at *path*, or *only* these of them."""
    root = path.rstrip("/")
    wrote = F.map_keys("row_counts").alias("tables")
    rows = publish.visible_runs(spark, root).select("run_id", "schema_version", wrote).collect()
    publish.check_versions(root, rows)
    runs = {row.run_id: set(row.tables) for row in rows if "snapshots" in row.tables}
    _check_tables(root, runs)
    names = list(schemas.SNAPSHOT_TABLES)

    @inheritable_thread_target(spark)
    def wrong(name: str) -> Sequence[str]:
        return _wrong_columns(spark, f"{root}/{name}/run={max(runs)}", name)

    @inheritable_thread_target(spark)
    def table(name: str) -> DataFrame:
        schema = schemas.SNAPSHOT_TABLES[name]
        few = published.few_rows(spark, root, name, read_of, schema)
        if few is not None:
            return _chosen(_of_rows(spark, root, few, schema), only)
        rows = publish.read_runs(spark, root, name, read_of, schema)
        return _with_origin(_chosen(rows, only), root)

    # Each asks Spark for little, but many times over.
    with ThreadPoolExecutor(len(names)) as threads:
        _check_columns(root, threads.map(wrong, names))
        held = [] if only is None else _holding(spark, root, sorted(runs), only)
        read_of = sorted(runs if only is None else {run for _, run in held})
        tables = dict(zip(names, threads.map(table, names), strict=True))
    # A snapshot without a digest can only equal itself.
    digest = F.coalesce("content_digest", POSITION).alias("content_digest")
    index = tables["snapshots"].select(
        "cluster",
        "snapshot_id",
        digest,
        SOURCE,
        POSITION,
        F.lit(None).cast("string").alias(FILE_DIGEST),
        F.lit(None).cast("int").alias(ROWS),
    )
    shown = hashlib.sha256("\n".join(sorted(runs)).encode()).hexdigest()
    return Part(
        paths=(root,),
        index=index,
        tables={**tables, "quarantine": _no_quarantine(spark)},
        once=lambda: {**tables, "quarantine": _no_quarantine(spark)},
        digest=shown,
        sizes=partial(_sizes, spark, root, read_of),
        nothing_refused=True,
        at_hand=partial(_at_hand, spark, root, read_of),
        is_distinct=only is not None and len(held) == len({key for key, _ in held}),
    )


def _sizes(spark: SparkSession, root: str, runs: Sequence[str]) -> Mapping[Key, int] | None:
    """How many partitions these runs hold of each snapshot, where the files tell without Spark."""
    if not writes_to(spark, root):
        return None
    return local_tables.counts([publish.run_folder(root, "partitions", run) for run in runs])


def _at_hand(
    spark: SparkSession, root: str, runs: Sequence[str], table: str, key: Key
) -> pa.Table | None:
    """What these runs hold in a small table of a snapshot, where that takes no Spark."""
    if not writes_to(spark, root):
        return None
    folders = [publish.run_folder(root, table, run) for run in runs]
    named = dict(zip(SNAPSHOT_KEY, key, strict=True))
    return local_tables.rows_about(folders, schemas.SNAPSHOT_TABLES[table], named)


def _holding(
    spark: SparkSession, root: str, runs: Sequence[str], only: Collection[Key]
) -> list[tuple[Key, str]]:
    """Each of these snapshots with its run: the files of all others need not be opened."""
    held = publish.read_runs(spark, root, "snapshots", runs).select(*SNAPSHOT_KEY, "run_id")
    wanted = set(only)
    found = [((row.cluster, row.snapshot_id), row.run_id) for row in held.collect()]
    return [(key, run) for key, run in found if key in wanted]


def _chosen(table: DataFrame, only: Collection[Key] | None) -> DataFrame:
    if only is None:
        return table
    if 0 < len(only) <= _FEW:
        # Said in so many words it reaches the files, whose statistics tell what to skip.
        of_clusters = defaultdict[str, list[str]](list)
        for cluster, snapshot_id in sorted(only):
            of_clusters[cluster].append(snapshot_id)
        chosen = (
            (F.col("cluster") == cluster) & F.col("snapshot_id").isin(snapshot_ids)
            for cluster, snapshot_ids in of_clusters.items()
        )
        return table.where(reduce(Column.__or__, chosen))
    keys = small_frame(table.sparkSession, sorted(only), _KEYS)
    return table.join(F.broadcast(keys), list(SNAPSHOT_KEY), "left_semi")


def _no_quarantine(spark: SparkSession) -> DataFrame:
    """What was refused when the store was loaded was reported then."""
    origin = [T.StructField(name, schemas.STRING) for name in (SOURCE, POSITION)]
    return small_frame(spark, [], T.StructType([*origin, *schemas.QUARANTINE.fields]))


def _with_origin(table: DataFrame, root: str) -> DataFrame:
    position = F.concat(F.lit("run "), "run_id")
    return table.withColumns({SOURCE: F.lit(root), POSITION: position}).drop("run_id")


def _of_rows(spark: SparkSession, root: str, rows: pa.Table, schema: T.StructType) -> DataFrame:
    """The same of rows that are at hand."""
    import pyarrow as pa  # noqa: PLC0415 - importing the package must not load it
    import pyarrow.compute as pc  # noqa: PLC0415

    position = pc.binary_join_element_wise(pa.scalar("run "), rows[published.RUN], "")
    origin = {SOURCE: pa.repeat(root, rows.num_rows), POSITION: position}
    table = rows.select(schema.names)
    for name, values in origin.items():
        table = table.append_column(name, values)
    fields = [*schema.fields, *(T.StructField(name, schemas.STRING) for name in origin)]
    return spark.createDataFrame(table, T.StructType(fields))


def _check_tables(root: str, runs: Mapping[str, set[str]]) -> None:
    if not runs:
        raise BadInputError(f"{root}: no run published there holds snapshots")
    lacking = [
        f"run {run_id}: no table {name}"
        for run_id in sorted(runs)
        for name in schemas.SNAPSHOT_TABLES
        if name not in runs[run_id]
    ]
    if lacking:
        raise BadInputError(f"{root}: the snapshot store is not complete", lacking)


def _check_columns(root: str, found: Iterable[Sequence[str]]) -> None:
    """Refuse a store whose newest run has other columns: one that is missing would read as null."""
    problems = [problem for of_table in found for problem in of_table]
    if problems:
        raise BadInputError(
            f"{root}: the snapshot store does not have the columns it should", problems
        )


def _wrong_columns(spark: SparkSession, path: str, name: str) -> list[str]:
    """What the files at *path* lack of the table's schema."""
    found = local_tables.schema_of(path) if writes_to(spark, path) else None
    try:
        stored = {field.name: field.dataType for field in found or spark.read.parquet(path).schema}
    except AnalysisException as error:
        return [f"table {name}: {path} cannot be read ({error.getCondition()})"]
    return [
        f"table {name}: column {field.name} "
        + (
            f"is {stored[field.name].simpleString()}, not {field.dataType.simpleString()}"
            if field.name in stored
            else "is missing"
        )
        for field in schemas.SNAPSHOT_TABLES[name]
        if field.name not in stored
        or stored[field.name].simpleString() != field.dataType.simpleString()
    ]
