"""The readers' side of a place of runs: what is visible there, and what its tables hold.

Readers start from the rows of runs that no tombstone hides, and open exactly the directories these
name. Of the tables of audits they see what the newest ledger says.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from understudy import local_tables, schemas, superseding
from understudy.errors import BadInputError
from understudy.frames import small_frame
from understudy.session import writes_to

if TYPE_CHECKING:
    import pyarrow as pa

RUN: Final = "run_id"
TOMBSTONES: Final = T.StructType(
    [
        T.StructField("run_id", schemas.STRING),
        T.StructField("deleted_at", schemas.TIMESTAMP),
        T.StructField("reason", schemas.STRING),
    ]
)


@dataclass(frozen=True)
class Published:
    """A run that readers can see."""

    run_id: str
    row_counts: Mapping[str, int]
    verdict: str


def is_store(spark: SparkSession, path: str) -> bool:
    """Whether *path* is a directory that runs were published to."""
    return not _is_pattern(path) and exists(spark, f"{path.rstrip('/')}/runs")


def visible_runs(spark: SparkSession, root: str) -> DataFrame:
    """The rows of the runs published to *root* that no tombstone hides."""
    root = plain(root)
    if not exists(spark, f"{root}/runs"):
        raise never_published(root)
    runs = _all_of(spark, root, "runs", schemas.RUNS)
    if not exists(spark, f"{root}/tombstones"):
        return runs
    hidden = _all_of(spark, root, "tombstones", TOMBSTONES).select("run_id")
    return runs.join(F.broadcast(hidden), "run_id", "left_anti")


def _all_of(spark: SparkSession, root: str, name: str, schema: T.StructType) -> DataFrame:
    """A table of the bookkeeping, of whatever runs there are."""
    if writes_to(spark, root):
        rows = few_rows(spark, root, name, local_tables.runs_below(f"{root}/{name}"), schema)
        if rows is not None:
            own = rows.select([*range(len(schema))])  # runs themselves say which they are
            return spark.createDataFrame(own, schema)
    return spark.read.schema(schema).parquet(f"{root}/{name}").select(*schema.names)


def few_rows(
    spark: SparkSession,
    root: str,
    table: str,
    run_ids: Sequence[str],
    schema: T.StructType,
    *,
    at_most: int | None = None,
) -> pa.Table | None:
    """The rows of *table* in these runs with their ``run_id`` last, if they are few and here."""
    if not writes_to(spark, root):
        return None
    folders = {run_id: run_folder(root, table, run_id) for run_id in run_ids}
    return local_tables.few_rows(folders, schema, RUN, at_most)


def rows_at_hand(
    spark: SparkSession, root: str, table: str, run_ids: Sequence[str]
) -> pa.Table | None:
    """The same of up to some hundred thousand rows, for those who need them in this process."""
    at_most = local_tables.SOME_ROWS
    return few_rows(spark, plain(root), table, run_ids, _schema_of(table), at_most=at_most)


def _with_run(schema: T.StructType, named: str) -> T.StructType:
    return T.StructType([*schema.fields, T.StructField(named, schemas.STRING)])


def run_folder(root: str, table: str, run_id: str) -> str:
    return f"{root}/{table}/run={run_id}"


def never_published(root: str) -> BadInputError:
    return BadInputError(f"{root}: no run was ever published there (it has no runs/)")


def hidden_runs(spark: SparkSession, root: str) -> dict[str, datetime]:
    """The runs that tombstones hide, with when they were first hidden."""
    root = plain(root)
    if not exists(spark, f"{root}/tombstones"):
        return {}
    hidden = _all_of(spark, root, "tombstones", TOMBSTONES)
    first = hidden.groupBy("run_id").agg(F.min(F.unix_micros("deleted_at")).alias("micros"))
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    return {row.run_id: epoch + timedelta(microseconds=row.micros) for row in first.collect()}


def row_counts(spark: SparkSession, root: str) -> dict[str, int]:
    """How many rows each table has in all visible runs together."""
    counted = visible_runs(spark, root).select(F.explode("row_counts").alias("table", "rows"))
    sums = counted.groupBy("table").agg(F.sum("rows").alias("rows")).collect()
    return {row.table: row.rows for row in sums}


def read(
    spark: SparkSession, root: str, table: str, schema: T.StructType | None = None
) -> DataFrame:
    """The rows of *table* in every visible run of *root*, with their ``run_id`` last.

    Of the tables of audits, what later runs did not supersede.
    """
    schema = schema or _schema_of(table)
    if table in superseding.TABLES:
        ledgers = read_runs(
            spark, root, superseding.LEDGER, runs_with(spark, root, superseding.LEDGER)
        )
        wrote = set(runs_with(spark, root, table))  # older releases wrote fewer tables
        return superseding.current(
            table,
            ledgers,
            lambda runs: read_runs(spark, root, table, [r for r in runs if r in wrote], schema),
        )
    return read_runs(spark, root, table, runs_with(spark, root, table), schema)


def runs_with(spark: SparkSession, root: str, table: str) -> list[str]:
    """The visible runs of *root* that wrote *table*, the oldest first."""
    wrote = F.map_contains_key("row_counts", F.lit(table))
    runs = visible_runs(spark, root).where(wrote).select("run_id", "schema_version").collect()
    check_versions(root, runs)
    return sorted(row.run_id for row in runs)


def check_versions(root: str, runs: Iterable[Row]) -> None:
    """Refuse what a newer release wrote; columns that older ones lacked are read as unknown."""
    newer = [
        f"run {row.run_id}: schema version {row.schema_version}"
        for row in sorted(runs)
        if (row.schema_version or 0) > schemas.SCHEMA_VERSION
    ]
    if newer:
        raise BadInputError(
            f"{root}: written by a newer release than this one, which reads schema versions"
            f" up to {schemas.SCHEMA_VERSION}",
            newer,
        )


def read_runs(
    spark: SparkSession,
    root: str,
    table: str,
    run_ids: Sequence[str],
    schema: T.StructType | None = None,
) -> DataFrame:
    """The rows of *table* in these runs, which are known to be visible and to have written it."""
    root, schema = plain(root), schema or _schema_of(table)
    few = few_rows(spark, root, table, run_ids, schema)
    if few is not None:
        return spark.createDataFrame(few, _with_run(schema, RUN))
    # Left to itself Spark guesses the type of a directory's value.
    stored = _with_run(schema, "run")
    rows = small_frame(spark, [], stored)
    if run_ids:
        reader = spark.read.schema(stored).option("basePath", f"{root}/{table}")
        rows = reader.parquet(*(run_folder(root, table, run_id) for run_id in run_ids))
    return rows.select(*schema.names, F.col("run").alias(RUN))


def register_views(spark: SparkSession, root: str) -> list[str]:
    """Make ``runs`` and every table of the visible runs a temporary view; return their names."""
    runs = visible_runs(spark, root)
    runs.createOrReplaceTempView("runs")
    wrote: dict[str, list[str]] = {}
    for row in runs.select("run_id", F.map_keys("row_counts").alias("tables")).collect():
        for table in row.tables:
            wrote.setdefault(table, []).append(row.run_id)
    known = sorted(set(wrote) & set(schemas.TABLES))
    for table in known:
        rows = (
            read(spark, root, table)
            if table in superseding.TABLES
            else read_runs(spark, root, table, sorted(wrote[table]))
        )
        rows.createOrReplaceTempView(table)
    return ["runs", *known]


def find_same(
    spark: SparkSession,
    root: str,
    *,
    job: str,
    input_digest: str,
    config_digest: str,
    code_version: str,
) -> Published | None:
    """The newest visible run of this job over the same input, settings and code, if any."""
    if not is_store(spark, root):
        return None
    same = (
        visible_runs(spark, root)
        .where(F.col("job") == job)
        .where(F.col("input_digest") == input_digest)
        .where(F.col("config_digest") == config_digest)
        .where(F.col("code_version") == code_version)
        .orderBy(F.desc("run_id"))
        .select("run_id", "row_counts", "verdict")
        .first()
    )
    return None if same is None else Published(same.run_id, dict(same.row_counts), same.verdict)


def notes_of(spark: SparkSession, root: str, run_id: str) -> list[str]:
    """The notes a run left in its JSON line; none if the line was lost."""
    try:
        line = spark.read.text(f"{plain(root)}/verdicts/run={run_id}").first()
    except AnalysisException as error:
        if error.getCondition() != "PATH_NOT_FOUND":
            raise
        line = None
    return [] if line is None else list(json.loads(line.value).get("notes", []))


def _schema_of(table: str) -> T.StructType:
    if table not in schemas.TABLES:
        raise BadInputError(
            f"no table is called {table!r}; there are {', '.join(sorted(schemas.TABLES))}"
        )
    return schemas.TABLES[table]


def exists(spark: SparkSession, path: str) -> bool:
    """Whether there is such a file or directory."""
    if writes_to(spark, path):
        return local_tables.is_there(path)
    try:
        # Named twice because Spark looks at a single path for a streaming sink's metadata first,
        # and logs a stack trace when it is missing. Nothing is read here, so nothing is doubled.
        _ = spark.read.schema("found int").parquet(path, path).schema
    except AnalysisException as error:
        if error.getCondition() != "PATH_NOT_FOUND":
            raise
        return False
    return True


def _is_pattern(path: str) -> bool:
    return any(character in path for character in "*?[]{}\\")


def plain(root: str) -> str:
    if _is_pattern(root):
        raise BadInputError(f"{root}: a place for runs may not contain any of * ? [ ] {{ }} \\")
    return root.rstrip("/") or "/"
