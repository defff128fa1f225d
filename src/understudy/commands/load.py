"""``understudy load``: snapshots, in whatever form there are any, into a snapshot store."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final

from understudy.commands.verb import Verb, answer, nothing_good, running, same_run
from understudy.sources.forms import FORMS, Wanted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from understudy.progress import Progress
    from understudy.publish import Published, Run
    from understudy.snapshot import Snapshots


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "paths",
        nargs="+",
        metavar="PATH",
        help="files, directories or globs of any form below, or snapshot stores",
    )
    parser.add_argument("--into", required=True, metavar="STORE", help="the snapshot store")
    parser.add_argument(
        "--form",
        choices=FORMS,
        metavar="FORM",
        help="what the files are (default: recognised by content)",
    )
    parser.add_argument("--cluster", metavar="NAME", help="the cluster, where a form has no name")
    parser.add_argument(
        "--at", metavar="INSTANT", help="zxid:0x1f, offset:812 or a time (default: the newest)"
    )
    parser.add_argument(
        "--every-change", action="store_true", help="a snapshot after every change of a history"
    )
    parser.add_argument("--release", metavar="R", help="Kafka's release, where a form has none")
    parser.add_argument(
        "--metadata-version",
        metavar="V",
        help="metadata.version or inter.broker.protocol.version, where a form has none",
    )
    parser.add_argument("--force", action="store_true", help="load again what was loaded before")


def _run(args: argparse.Namespace) -> int:
    from understudy import publish, sources
    from understudy.report import loaded, summary

    wanted = Wanted(
        form=args.form,
        cluster=args.cluster,
        release=args.release,
        metadata_version=args.metadata_version,
        at=args.at,
        every_change=args.every_change,
    )
    wanted.check()
    with running("understudy load", args) as (spark, progress):
        progress.doing("reading")
        snapshots = sources.load(spark, args.paths, wanted)
        try:
            run = publish.Run.start(
                "load",
                input_digest=snapshots.input_digest,
                config_digest=publish.digest(wanted.settings()),
            )
            published = None if args.force else same_run(spark, args.into, run)
            already = published is not None
            if published is None:
                published = _publish_snapshots(spark, args, run, snapshots, progress)
            progress.doing("summing up")
            told = {
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
    return answer(args, told, loaded.as_text)


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


_MORE: Final = "\n".join(
    [
        "  understudy load zookeeper/data --release 2.8 --at 2026-01-01T00:00:00Z --into store",
        "  understudy load kafka-logs/__cluster_metadata-0 --every-change --into store",
        "  understudy load texts --form describe --cluster shop-eu --into store",
        "",
        "forms:",
        *(f"  {form.name:<17} {form.what}" for form in FORMS.values()),
    ]
)

VERB: Final = Verb(
    "load",
    "Load snapshots, in whatever form there are any, into a snapshot store.",
    "understudy load 'exports/*.json.gz' --into store",
    _arguments,
    _run,
    more=_MORE,
)
