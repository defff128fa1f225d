"""The only writer: a run's tables side by side, then the one row that makes the run visible.

A run writes ``ROOT/<table>/run=<run_id>/`` and, when every table is there, one row below
``ROOT/runs/run=<run_id>/``. A run that dies before its row was never there: readers start from the
rows and open exactly the directories these name. Nothing published is overwritten or renamed; a
row below ``ROOT/tombstones/`` hides a run before anything of it is deleted.

Only the DataFrame reader and writer are used, so any Hadoop filesystem and Spark Connect will do.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

from pyspark import inheritable_thread_target
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from understudy import __version__, schemas, superseding
from understudy.errors import BadInputError
from understudy.frames import small_frame
from understudy.session import cancel_jobs, tag_jobs, untag_jobs

TABLES: Final[dict[str, T.StructType]] = {
    **schemas.SNAPSHOT_TABLES,
    **schemas.REPLAY_TABLES,
    **schemas.QUESTION_TABLES,
    "quarantine": schemas.QUARANTINE,
}

TOMBSTONES: Final = T.StructType(
    [
        T.StructField("run_id", schemas.STRING),
        T.StructField("deleted_at", schemas.TIMESTAMP),
        T.StructField("reason", schemas.STRING),
    ]
)

_LINE: Final = T.StructType([T.StructField("value", schemas.STRING)])

WRITERS: Final = 4
"""Tables written at the same time: a small job is mostly planning and committing, not work."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Run:
    """One run of one job: what identifies it, known before anything is written."""

    run_id: str
    job: str
    code_version: str
    input_digest: str
    config_digest: str
    started: datetime

    @classmethod
    def start(
        cls, job: str, *, input_digest: str, config_digest: str, now: datetime | None = None
    ) -> Run:
        started = (now or datetime.now(UTC)).astimezone(UTC)
        instant = f"{started:%Y%m%dT%H%M%S}{started.microsecond // 1000:03d}Z"
        return cls(
            run_id=f"{instant}-{input_digest[:8]}",
            job=job,
            code_version=code_version(),
            input_digest=input_digest,
            config_digest=config_digest,
            started=started,
        )


@dataclass(frozen=True)
class Published:
    """A run that readers can see."""

    run_id: str
    row_counts: Mapping[str, int]
    verdict: str


def digest(settings: Mapping[str, object]) -> str:
    """The sha256 of *settings* as canonical JSON."""
    text = json.dumps(settings, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


@cache
def code_version() -> str:
    """The release, and a digest of the code: code that changed may answer differently."""
    seen = hashlib.sha256()
    for name, source in sorted(_sources(files("understudy"), "")):
        seen.update(f"{name}\0{len(source)}\0".encode() + source)
    return f"{__version__}+{seen.hexdigest()[:8]}"


def _sources(folder: Traversable, prefix: str) -> list[tuple[str, bytes]]:
    found: list[tuple[str, bytes]] = []
    for entry in folder.iterdir():
        if entry.is_dir():
            found += _sources(entry, f"{prefix}{entry.name}/")
        elif entry.name.endswith(".py"):
            found.append((prefix + entry.name, entry.read_bytes()))
    return found


# --- Writing -----------------------------------------------------------------------------------


def publish(
    spark: SparkSession,
    root: str,
    run: Run,
    tables: Mapping[str, DataFrame],
    *,
    verdict: str,
    notes: Sequence[str] = (),
    threads: int = WRITERS,
    on_table: Callable[[str, int], None] | None = None,
) -> dict[str, int]:
    """Write *tables*, then the row that makes the run visible; return the rows of each table.

    *on_table* is told each table and its rows as it is finished. *notes* go into the JSON line
    for people and shells beside the run's row.
    """
    counts = write(spark, root, run, tables, threads=threads, on_table=on_table)
    commit(spark, root, run, counts, verdict=verdict, notes=notes)
    return counts


def write(
    spark: SparkSession,
    root: str,
    run: Run,
    tables: Mapping[str, DataFrame],
    *,
    threads: int = WRITERS,
    on_table: Callable[[str, int], None] | None = None,
) -> dict[str, int]:
    """Write *tables* where nobody looks before the run is committed; return the rows of each."""
    return _write_all(spark, _plain(root), run, tables, threads=threads, on_table=on_table)


def commit(
    spark: SparkSession,
    root: str,
    run: Run,
    counts: Mapping[str, int],
    *,
    verdict: str,
    notes: Sequence[str] = (),
) -> None:
    """Write the row that makes the run, with the tables that *counts* names, visible."""
    root = _plain(root)
    row = (
        run.run_id,
        run.job,
        run.code_version,
        schemas.SCHEMA_VERSION,
        run.input_digest,
        run.config_digest,
        spark.version,
        run.started,
        datetime.now(UTC),
        dict(counts),
        verdict,
    )
    _parquet(small_frame(spark, [row], schemas.RUNS).coalesce(1), root, "runs", run.run_id)
    _write_verdict(spark, root, row, notes)


def _write_all(
    spark: SparkSession,
    root: str,
    run: Run,
    tables: Mapping[str, DataFrame],
    *,
    threads: int,
    on_table: Callable[[str, int], None] | None,
) -> dict[str, int]:
    tag = f"publish {run.run_id}"

    def write(name: str) -> int:
        schema = TABLES.get(name)
        table = tables[name] if schema is None else schemas.conform(tables[name], schema)
        tag_jobs(spark, tag)
        try:
            path = _parquet(table, root, name, run.run_id)
            # The footers know; to count rows as they pass by costs more than this.
            rows = spark.read.schema(table.schema).parquet(path).count()
        finally:
            untag_jobs(spark, tag)
        if on_table is not None:
            on_table(name, rows)
        return rows

    with ThreadPoolExecutor(threads, thread_name_prefix="publish") as pool:
        writing = {
            name: pool.submit(inheritable_thread_target(spark)(write), name) for name in tables
        }
        try:
            wait(writing.values(), return_when=FIRST_EXCEPTION)
            _raise_first(writing.values())
        except BaseException:
            # One table lost is a run lost: waiting for the rest would only be slow.
            pool.shutdown(wait=False, cancel_futures=True)
            _interrupt(spark, tag, writing.values())
            raise
        return {name: done.result() for name, done in writing.items()}


def _interrupt(spark: SparkSession, tag: str, writing: Iterable[Future[int]]) -> None:
    """Cancel until all have ended: a job that is still being planned has nothing to cancel yet."""
    # Those that never began are no concern of wait(): it would not see them end.
    left = {each for each in writing if not each.cancelled()}
    while left:
        cancel_jobs(spark, tag)
        left = wait(left, timeout=0.2).not_done


def _raise_first(futures: Iterable[Future[int]]) -> None:
    for future in futures:
        if future.done() and (error := future.exception()) is not None:
            raise error


def _parquet(table: DataFrame, root: str, name: str, run_id: str) -> str:
    path = f"{root}/{name}/run={run_id}"
    table.write.mode("error").option("compression", "zstd").parquet(path)
    return path


def _write_verdict(
    spark: SparkSession, root: str, row: Sequence[object], notes: Sequence[str]
) -> None:
    """One JSON line for people and shells; the row alone counts, so losing it loses no run."""
    told = {
        name: value.isoformat() if isinstance(value, datetime) else value
        for name, value in zip(schemas.RUNS.names, row, strict=True)
    }
    line = json.dumps({**told, "notes": list(notes)}, ensure_ascii=False)
    try:
        lines = small_frame(spark, [(line,)], _LINE).coalesce(1)
        lines.write.mode("error").text(f"{root}/verdicts/run={told['run_id']}")
    except PySparkException as error:
        _log.warning("run %s is published, but its verdict line is not: %s", told["run_id"], error)


def hide(
    spark: SparkSession, root: str, run_ids: Sequence[str], *, reason: str, now: datetime
) -> None:
    """Hide runs from readers, all at once; their files stay."""
    at = now.astimezone(UTC)
    rows = [(run_id, at, reason) for run_id in run_ids]
    name = f"{at:%Y%m%dT%H%M%S%f}Z-{digest({'runs': list(run_ids)})[:8]}"
    _parquet(small_frame(spark, rows, TOMBSTONES).coalesce(1), _plain(root), "tombstones", name)


# --- Reading -----------------------------------------------------------------------------------


def is_store(spark: SparkSession, path: str) -> bool:
    """Whether *path* is a directory that runs were published to."""
    return not _is_pattern(path) and _exists(spark, f"{path.rstrip('/')}/runs")


def visible_runs(spark: SparkSession, root: str) -> DataFrame:
    """The rows of the runs published to *root* that no tombstone hides."""
    root = _plain(root)
    if not _exists(spark, f"{root}/runs"):
        raise BadInputError(f"{root}: no run was ever published there (it has no runs/)")
    runs = spark.read.schema(schemas.RUNS).parquet(f"{root}/runs").select(*schemas.RUNS.names)
    if not _exists(spark, f"{root}/tombstones"):
        return runs
    hidden = spark.read.schema(TOMBSTONES).parquet(f"{root}/tombstones").select("run_id")
    return runs.join(F.broadcast(hidden), "run_id", "left_anti")


def hidden_runs(spark: SparkSession, root: str) -> dict[str, datetime]:
    """The runs that tombstones hide, with when they were first hidden."""
    root = _plain(root)
    if not _exists(spark, f"{root}/tombstones"):
        return {}
    hidden = spark.read.schema(TOMBSTONES).parquet(f"{root}/tombstones")
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
        return superseding.current(
            table, ledgers, lambda runs: read_runs(spark, root, table, runs, schema)
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
    root, schema = _plain(root), schema or _schema_of(table)
    # Left to itself Spark guesses the type of a directory's value.
    stored = T.StructType([*schema.fields, T.StructField("run", schemas.STRING)])
    if not run_ids:
        return small_frame(spark, [], stored).withColumnRenamed("run", "run_id")
    return (
        spark.read.schema(stored)
        .option("basePath", f"{root}/{table}")
        .parquet(*(f"{root}/{table}/run={run_id}" for run_id in run_ids))
        .select(*schema.names, F.col("run").alias("run_id"))
    )


def register_views(spark: SparkSession, root: str) -> list[str]:
    """Make ``runs`` and every table of the visible runs a temporary view; return their names."""
    runs = visible_runs(spark, root)
    runs.createOrReplaceTempView("runs")
    wrote: dict[str, list[str]] = {}
    for row in runs.select("run_id", F.map_keys("row_counts").alias("tables")).collect():
        for table in row.tables:
            wrote.setdefault(table, []).append(row.run_id)
    known = sorted(set(wrote) & set(TABLES))
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
        line = spark.read.text(f"{_plain(root)}/verdicts/run={run_id}").first()
    except AnalysisException as error:
        if error.getCondition() != "PATH_NOT_FOUND":
            raise
        line = None
    return [] if line is None else list(json.loads(line.value).get("notes", []))


def _schema_of(table: str) -> T.StructType:
    if table not in TABLES:
        raise BadInputError(f"no table is called {table!r}; there are {', '.join(sorted(TABLES))}")
    return TABLES[table]


def _exists(spark: SparkSession, path: str) -> bool:
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


def _plain(root: str) -> str:
    if _is_pattern(root):
        raise BadInputError(f"{root}: a place for runs may not contain any of * ? [ ] {{ }} \\")
    return root.rstrip("/") or "/"
