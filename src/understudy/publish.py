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
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, partial, reduce
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import TYPE_CHECKING, Final

from pyspark import inheritable_thread_target
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from understudy import __version__, column_files, local_tables, schemas
from understudy.columns import Pass
from understudy.frames import Tables, arrow_rows, small_frame
from understudy.names import PARTITION_KEY
from understudy.published import (
    TOMBSTONES,
    Published,
    check_versions,
    find_same,
    hidden_runs,
    is_store,
    notes_of,
    plain,
    read,
    read_runs,
    register_views,
    row_counts,
    rows_at_hand,
    run_folder,
    runs_with,
    visible_runs,
)
from understudy.session import cancel_jobs, tag_jobs, untag_jobs, writes_to
from understudy.sources import local_paths

if TYPE_CHECKING:
    import pyarrow as pa

# Writing and reading go together for those who use them.
__all__ = [
    "TOMBSTONES",
    "WRITERS",
    "Published",
    "Run",
    "check_versions",
    "code_version",
    "commit",
    "digest",
    "find_same",
    "hidden_runs",
    "hide",
    "is_store",
    "notes_of",
    "plain",
    "publish",
    "read",
    "read_runs",
    "register_views",
    "row_counts",
    "rows_at_hand",
    "run_folder",
    "runs_with",
    "visible_runs",
    "write",
]

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


def _nobody_told(_: str) -> None:
    pass


def publish(
    spark: SparkSession,
    root: str,
    run: Run,
    tables: Mapping[str, DataFrame],
    *,
    verdict: str,
    notes: Sequence[str] = (),
    threads: int = WRITERS,
    on_table: Callable[[str], None] | None = None,
) -> dict[str, int]:
    """Write *tables*, then the row that makes the run visible; return the rows of each table.

    *on_table* is told each table as it is finished. *notes* go into the JSON line
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
    on_table: Callable[[str], None] | None = None,
) -> dict[str, int]:
    """Write *tables* where nobody looks before the run is committed; return the rows of each."""
    return _write_all(spark, plain(root), run, tables, threads=threads, on_table=on_table)


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
    root = plain(root)
    row: tuple[object, ...] = (
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
    _write_rows(spark, run_folder(root, "runs", run.run_id), [row], schemas.RUNS)
    _write_verdict(spark, root, row, notes)


def _write_rows(
    spark: SparkSession, folder: str, rows: Sequence[Sequence[object]], schema: T.StructType
) -> None:
    """Write a few rows of the bookkeeping, all of them at once."""
    if writes_to(spark, folder):
        local_tables.write(arrow_rows(rows, schema), schema, folder)
    else:
        _parquet(small_frame(spark, rows, schema).coalesce(1), folder)


def _write_all(
    spark: SparkSession,
    root: str,
    run: Run,
    tables: Mapping[str, DataFrame],
    *,
    threads: int,
    on_table: Callable[[str], None] | None,
) -> dict[str, int]:
    tag = f"publish {run.run_id}"
    finished = on_table or _nobody_told
    given = _for_writers(tables, are_here=writes_to(spark, root))
    passes, at_hand = given.passes, given.at_hand
    come_back = {name for each in passes for name in each.finished}
    passed = sorted({name for each in passes for name in each.names} - come_back)
    folders = {name: run_folder(local_paths.plain(root), name, run.run_id) for name in passed}
    column_files.make(folders.values())

    @inheritable_thread_target(spark)
    def planned(name: str) -> DataFrame | None:
        table = None if name in at_hand else given.beside_passes(name)
        return None if table is None else _conformed(name, table)

    @inheritable_thread_target(spark)
    def tagged(write: Callable[[], dict[str, int]]) -> dict[str, int]:
        tag_jobs(spark, tag)
        try:
            return write()
        finally:
            untag_jobs(spark, tag)

    def written(name: str, table: DataFrame) -> dict[str, int]:
        folder = run_folder(root, name, run.run_id)
        _parquet(table, folder, mode="append" if name in folders else "error")
        finished(name)
        return {}

    def written_here(name: str, rows: pa.Table) -> dict[str, int]:
        local_tables.write(rows, schemas.TABLES[name], run_folder(root, name, run.run_id))
        finished(name)
        return {name: rows.num_rows}

    def written_in_pass(each: Pass) -> dict[str, int]:
        done = column_files.write(each, folders)
        some = {name: _conformed(name, table) for name, table in done.finished.items()}
        for name in some.keys() & frames.keys():
            written(name, some.pop(name).unionAll(frames[name]))
        for name, table in some.items():
            done.counts.update(written_here(name, table.toArrow()))
        return done.counts

    with ThreadPoolExecutor(threads, thread_name_prefix="publish") as pool:
        # All of them before the first is written: a frame made from SQL text makes views and drops
        # them again, which nothing that runs has to see.
        made = zip(tables, pool.map(planned, tables), strict=True)
        frames = {name: table for name, table in made if table is not None}
        works = [partial(written_here, name, rows) for name, rows in at_hand.items()]
        works += [partial(written_in_pass, each) for each in passes]
        works += [
            partial(written, name, table) for name, table in frames.items() if name not in come_back
        ]
        writing = [pool.submit(tagged, work) for work in works]
        try:
            wait(writing, return_when=FIRST_EXCEPTION)
            _raise_first(writing)
        except BaseException:
            # One table lost is a run lost: waiting for the rest would only be slow.
            pool.shutdown(wait=False, cancel_futures=True)
            _interrupt(spark, tag, writing)
            raise
    counted = sum((Counter(done.result()) for done in writing), Counter())
    for name in folders.keys() - frames.keys() - counted.keys():
        column_files.write_nothing(name, folders[name])
    # Of tables that Spark wrote, whatever else wrote to them.
    return {**dict.fromkeys(tables, 0), **counted, **_counted(spark, root, run, frames)}


def _for_writers(tables: Mapping[str, DataFrame], *, are_here: bool) -> Tables:
    """The tables; where Spark has to write all of them, every row as one of Spark's."""
    given = tables if isinstance(tables, Tables) else Tables({}).beside(tables)
    return given if are_here else given.each(lambda _, table: table)


def _counted(
    spark: SparkSession, root: str, run: Run, frames: Mapping[str, DataFrame]
) -> dict[str, int]:
    """The rows of each table as its files have them, in one job.

    The footers know; to count rows as they pass by costs more than this.
    """
    if writes_to(spark, root):
        return {name: local_tables.count(run_folder(root, name, run.run_id)) for name in frames}
    if not frames:
        return {}
    counted = [
        spark.read.schema(frame.schema).parquet(folder).select(F.lit(number))
        for number, (name, frame) in enumerate(frames.items())
        for folder in [run_folder(root, name, run.run_id)]
    ]
    groups = reduce(DataFrame.unionAll, counted).toDF("number").groupBy("number").count().collect()
    rows = {row["number"]: row["count"] for row in groups}
    return {name: rows.get(number, 0) for number, name in enumerate(frames)}


def _conformed(name: str, table: DataFrame) -> DataFrame:
    schema = schemas.TABLES.get(name)
    return table if schema is None else schemas.conform(table, schema)


def _interrupt(spark: SparkSession, tag: str, writing: Iterable[Future[dict[str, int]]]) -> None:
    """Cancel until all have ended: a job that is still being planned has nothing to cancel yet."""
    # Those that never began are no concern of wait(): it would not see them end.
    left = {each for each in writing if not each.cancelled()}
    while left:
        cancel_jobs(spark, tag)
        left = wait(left, timeout=0.2).not_done


def _raise_first(futures: Iterable[Future[dict[str, int]]]) -> None:
    for future in futures:
        if future.done() and (error := future.exception()) is not None:
            raise error


def _parquet(table: DataFrame, folder: str, *, mode: str = "error") -> None:
    writer = table.write.mode(mode).option("compression", "zstd")
    writer = writer.options(**_statistics(table.schema))
    writer.option("maxRecordsPerFile", column_files.ROWS_PER_FILE).parquet(folder)


def _statistics(schema: T.StructType) -> dict[str, str]:
    """Parquet's options that leave out the statistics nobody can skip files by.

    They take a tenth of the writing. Of lists there is nothing to tell; other words than those of
    a key are few, and a file lists them all in its dictionary.
    """
    left_out = {"parquet.size.statistics.enabled": "false"}
    for field in schema:
        path = None
        if isinstance(field.dataType, T.ArrayType):
            path = f"{field.name}.list.element"
        elif isinstance(field.dataType, T.StringType) and field.name not in PARTITION_KEY:
            path = field.name
        if path is not None:
            left_out[f"parquet.column.statistics.enabled#{path}"] = "false"
    return left_out


def _write_verdict(
    spark: SparkSession, root: str, row: Sequence[object], notes: Sequence[str]
) -> None:
    """One JSON line for people and shells; the row alone counts, so losing it loses no run."""
    told = {
        name: value.isoformat() if isinstance(value, datetime) else value
        for name, value in zip(schemas.RUNS.names, row, strict=True)
    }
    line = json.dumps({**told, "notes": list(notes)}, ensure_ascii=False)
    folder = run_folder(root, "verdicts", str(told["run_id"]))
    try:
        if writes_to(spark, root):
            local_tables.write_line(line, folder)
        else:
            small_frame(spark, [(line,)], _LINE).coalesce(1).write.mode("error").text(folder)
    except (PySparkException, OSError) as error:
        _log.warning("run %s is published, but its verdict line is not: %s", told["run_id"], error)


def hide(
    spark: SparkSession, root: str, run_ids: Sequence[str], *, reason: str, now: datetime
) -> None:
    """Hide runs from readers, all at once; their files stay."""
    at = now.astimezone(UTC)
    rows = [(run_id, at, reason) for run_id in run_ids]
    name = f"{at:%Y%m%dT%H%M%S%f}Z-{digest({'runs': list(run_ids)})[:8]}"
    _write_rows(spark, run_folder(plain(root), "tombstones", name), rows, TOMBSTONES)
