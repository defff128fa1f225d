"""Snapshots into a snapshot store: what ``load`` and ``capture`` have in common."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from understudy.commands.verb import nothing_good, same_run

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from understudy.progress import Progress
    from understudy.publish import Published, Run
    from understudy.snapshot import Snapshots


def store(
    spark: SparkSession,
    args: argparse.Namespace,
    snapshots: Snapshots,
    progress: Progress,
    *,
    job: str,
    config_digest: str,
    force: bool,
) -> dict[str, Any]:
    """Publish *snapshots* to the store ``--into``, unless it holds them, and close them.

    Returns what there is to tell.
    """
    from understudy import publish
    from understudy.report import loaded, summary

    try:
        run = publish.Run.start(
            job, input_digest=snapshots.input_digest, config_digest=config_digest
        )
        published = None if force else same_run(spark, args.into, run)
        already = published is not None
        if published is None:
            published = _publish_snapshots(spark, args, run, snapshots, progress)
        progress.doing("summing up")
        return {
            "run_id": published.run_id,
            "root": args.into,
            "already_published": already,
            "tables": dict(published.row_counts),
            **loaded.gather(spark, args.into, published.run_id, limit=args.limit),
            "quarantine": summary.quarantine(
                spark, args.into, published.run_id, published.row_counts, limit=args.limit
            ),
        }
    finally:
        snapshots.close()


def _publish_snapshots(
    spark: SparkSession,
    args: argparse.Namespace,
    run: Run,
    snapshots: Snapshots,
    progress: Progress,
) -> Published:
    from understudy import publish

    if snapshots.snapshots.isEmpty():
        raise nothing_good(snapshots.quarantine, args.limit)
    fresh, quarantine = snapshots, snapshots.quarantine
    if publish.is_store(spark, args.into):
        fresh, quarantine = _not_yet_in(spark, args.into, snapshots)
    tables = {**fresh.tables(), "quarantine": quarantine}
    progress.doing("writing tables", tables=len(tables))
    counts = publish.publish(spark, args.into, run, tables, verdict="done", on_table=progress.table)
    return publish.Published(run.run_id, counts, "done")


def _not_yet_in(
    spark: SparkSession, store: str, snapshots: Snapshots
) -> tuple[Snapshots, DataFrame]:
    """The snapshots *store* does not hold, and as refused those it holds with other content."""
    from pyspark.sql import functions as F

    from understudy import publish
    from understudy.names import SNAPSHOT_KEY
    from understudy.schemas import QUARANTINE, conform

    held = (
        publish.read(spark, store, "snapshots")
        .groupBy(*SNAPSHOT_KEY)
        .agg(F.collect_set("content_digest").alias("held"), F.max("run_id").alias("run_id"))
    )
    known = snapshots.snapshots.join(F.broadcast(held), list(SNAPSHOT_KEY), "left")
    fresh = known.where("held IS NULL").select(*SNAPSHOT_KEY)
    other = known.where("NOT array_contains(held, content_digest)").select(*SNAPSHOT_KEY, "run_id")
    where = snapshots.provenance.groupBy(*SNAPSHOT_KEY).agg(
        F.min("source").alias("source"), F.min_by("position", "source").alias("position")
    )
    refused = other.join(where, list(SNAPSHOT_KEY), "left").withColumn(
        "problems",
        F.array(
            F.format_string(
                "the store holds snapshot %s of cluster %s with other content, from run %s",
                "snapshot_id",
                "cluster",
                "run_id",
            )
        ),
    )
    return snapshots.only(fresh), snapshots.quarantine.unionAll(conform(refused, QUARANTINE))
