"""Keeping a place of runs small: old and unfinished runs are deleted, many small ones made one.

Nothing vanishes under a reader's hands. A run is hidden by a tombstone first; its files stay for a
while, for those who began to read before. What the newest ledger of an audit refers to is never
deleted, and neither is the newest run of a job.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from understudy import publish, schemas, superseding
from understudy.auditing import JOB
from understudy.errors import BadInputError
from understudy.folders import Folders
from understudy.names import SNAPSHOT_KEY
from understudy.sources import store
from understudy.sources.combine import combine

GRACE: Final = timedelta(days=1)
"""How long files without a visible run are left alone: a run may be writing or reading them."""

UNFINISHED: Final = "never published"
HIDDEN: Final = "hidden"
OLD: Final = "old"

_ROWS_PER_FILE: Final = 2_000_000
_AUDIT_TABLES: Final = {
    **dict.fromkeys((superseding.FINDINGS, *superseding.HISTORY), "snapshot_id"),
    superseding.EXPOSURE: "topic",
}
_RUN: Final = "run="
_STARTED: Final = "%Y%m%dT%H%M%S"
_LAST: Final = ("verdicts", "runs")  # a run that is visible, or was, shows by its row till the end


@dataclass(frozen=True)
class Visible:
    """A run that readers see."""

    run_id: str
    job: str


@dataclass(frozen=True)
class Doomed:
    """A run whose files go, and why."""

    run_id: str
    reason: str


# --- Pruning -------------------------------------------------------------------------------------


def doomed(
    visible: Iterable[Visible],
    hidden: Mapping[str, datetime],
    found: Iterable[str],
    referred: Collection[str],
    *,
    now: datetime,
    older_than: timedelta | None,
) -> list[Doomed]:
    """Which of the runs *found* in directories go: old ones, and what nobody sees.

    Only runs that began more than *older_than* ago; without it visible runs all stay, and what
    nobody sees is left alone for a day.
    """
    seen = {run.run_id: run for run in visible}
    newest = {run.job: run.run_id for run in sorted(seen.values(), key=lambda run: run.run_id)}
    kept = {*newest.values(), *referred}
    limit = now - (GRACE if older_than is None else older_than)

    def reason(run_id: str) -> str | None:
        if run_id in kept:
            return None
        if run_id in hidden:
            return HIDDEN if hidden[run_id] <= limit else None
        if began(run_id) > limit:
            return None
        if run_id in seen:
            return None if older_than is None else OLD
        return UNFINISHED

    return [Doomed(run, why) for run in sorted(set(found)) if (why := reason(run)) is not None]


def began(run_id: str) -> datetime:
    """When a run started, by its name; what is named otherwise is taken for brand-new."""
    try:
        return datetime.strptime(run_id[:15], _STARTED).replace(tzinfo=UTC)
    except ValueError:
        return datetime.max.replace(tzinfo=UTC)


def prune(
    spark: SparkSession,
    root: str,
    *,
    now: datetime,
    older_than: timedelta | None,
    dry_run: bool,
) -> list[Doomed]:
    """Delete what is doomed, hidden first; return it."""
    folders = Folders(root)
    rows = publish.visible_runs(spark, root).select("run_id", "job").collect()
    tables = [name for name in folders.names() if not name.startswith(("_", ".", "tombstones"))]
    held = {name: _runs(folders.names(name)) for name in tables}
    going = doomed(
        [Visible(*row) for row in rows],
        publish.hidden_runs(spark, root),
        {run for runs in held.values() for run in runs},
        _referred(spark, root, now - (older_than or GRACE)),
        now=now,
        older_than=older_than,
    )
    if dry_run or not going:
        return going
    old = [each.run_id for each in going if each.reason == OLD]
    if old:
        publish.hide(spark, root, old, reason="pruned", now=now)
    names = [name for name in tables if name not in _LAST] + [n for n in _LAST if n in tables]
    for name in names:
        for each in going:
            if each.run_id in held[name]:
                folders.delete(name, f"{_RUN}{each.run_id}")
    return going


def _runs(names: Iterable[str]) -> set[str]:
    return {name.removeprefix(_RUN) for name in names if name.startswith(_RUN)}


def _referred(spark: SparkSession, root: str, young: datetime) -> set[str]:
    """The runs that audits read: by the newest ledger of a cluster, and by every young one."""
    runs = publish.runs_with(spark, root, superseding.LEDGER)
    if not runs:
        return set()
    ledgers = publish.read_runs(spark, root, superseding.LEDGER, runs)
    rows = ledgers.select("cluster", "run_id", "findings_run").distinct().collect()
    newest = {row.cluster: max(r.run_id for r in rows if r.cluster == row.cluster) for row in rows}
    reading = [
        row for row in rows if row.run_id == newest[row.cluster] or began(row.run_id) > young
    ]
    return {run for row in reading for run in (row.run_id, row.findings_run)}


# --- Compacting ----------------------------------------------------------------------------------


def compact(spark: SparkSession, root: str, *, now: datetime) -> tuple[str, list[str]] | None:
    """Publish what is visible as one run, then hide the runs it is made of.

    In between a snapshot is there twice with the same content, which is one snapshot; and of
    audits the newest ledger holds. So it can be interrupted anywhere.
    """
    audits = publish.runs_with(spark, root, superseding.LEDGER)
    merged = audits or publish.runs_with(spark, root, "snapshots")
    if len(merged) < 2:  # noqa: PLR2004 - one is as compact as it gets
        return None
    run = publish.Run.start(
        JOB if audits else "compact",
        input_digest=publish.digest({"runs": merged}),
        config_digest=publish.digest({}),
        now=now,
    )
    tables = _audit_tables(spark, root, run.run_id) if audits else _snapshot_tables(spark, root)
    # What held of an audit holds on: readers look at the newest run.
    verdict = _verdict(spark, root, max(audits)) if audits else "done"
    publish.publish(spark, root, run, tables, verdict=verdict)
    publish.hide(spark, root, merged, reason=f"compacted into {run.run_id}", now=now)
    return run.run_id, merged


def _verdict(spark: SparkSession, root: str, run_id: str) -> str:
    (row,) = publish.visible_runs(spark, root).where(F.col("run_id") == run_id).collect()
    return str(row.verdict)


def _snapshot_tables(spark: SparkSession, root: str) -> dict[str, DataFrame]:
    found = combine([store.read(spark, root)])
    if not found.quarantine.isEmpty():
        raise BadInputError(f"{root}: holds a snapshot with different contents; not compacted")
    sizes = publish.row_counts(spark, root)
    tables = {
        # In this order the statistics of the files tell which snapshots are where.
        name: _in_few_files(table, sizes.get(name, 0), SNAPSHOT_KEY)
        for name, table in found.tables().items()
    }
    refused = publish.read(spark, root, "quarantine").select(*schemas.QUARANTINE.names)
    return {**tables, "quarantine": refused.coalesce(1)}


def _audit_tables(spark: SparkSession, root: str, run_id: str) -> dict[str, DataFrame]:
    sizes = publish.row_counts(spark, root)
    tables = {
        name: _in_few_files(
            publish.read(spark, root, name).drop("run_id"), sizes.get(name, 0), ("cluster", key)
        )
        for name, key in _AUDIT_TABLES.items()
    }
    audited = publish.read(spark, root, superseding.LEDGER).drop("run_id")
    here = audited.withColumn("findings_run", F.lit(run_id))
    return {**tables, superseding.LEDGER: here.coalesce(1)}


def _in_few_files(table: DataFrame, rows: int, order: tuple[str, ...]) -> DataFrame:
    files = -(-max(rows, 1) // _ROWS_PER_FILE)
    gathered = table.coalesce(1) if files == 1 else table.repartitionByRange(files, *order)
    return gathered.sortWithinPartitions(*order)
