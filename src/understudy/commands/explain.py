"""``understudy explain``: the story of one partition, decision by decision."""

from __future__ import annotations

import argparse
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final

from understudy.commands.verb import Verb, answer, running
from understudy.errors import BadInputError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from understudy.controller.records import TopicPartition
    from understudy.progress import Progress
    from understudy.snapshot import Snapshots

Told = dict[str, Any]


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("partition", metavar="TOPIC-PARTITION", help="such as orders-17")
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument(
        "--snapshot",
        metavar="PATH",
        help="JSON documents or a snapshot store; what came before the newest is its history",
    )
    source.add_argument(
        "--run",
        dest="root",  # the name "run" is taken by what the verb does
        metavar="DIR",
        help="where a replay or an audit was published",
    )
    parser.add_argument("--cluster", metavar="NAME", help="where there are several clusters")
    parser.add_argument("--snapshot-id", metavar="ID", help="this one instead of the newest")
    parser.add_argument(
        "--at", metavar="TIME", help="the newest snapshot taken, or run started, until then"
    )


def _run(args: argparse.Namespace) -> int:
    from understudy.questions import explain
    from understudy.report import explain_text

    subject = explain.parse(args.partition)
    reads = [args.snapshot]
    with running("understudy explain", args, reads=reads, root=args.root) as (spark, progress):
        progress.doing("reading")
        if args.root is not None:
            told = _of_run(spark, args, subject)
        else:
            told = _of_snapshot(spark, args, subject, progress)
    return answer(args, {"partition": args.partition, **told}, explain_text.as_text)


# --- Of a snapshot and what came before it -----------------------------------------------------


def _of_snapshot(
    spark: SparkSession, args: argparse.Namespace, subject: TopicPartition, progress: Progress
) -> Told:
    from understudy import sources
    from understudy.questions import explain
    from understudy.report import explain_text

    with closing(sources.read(spark, [args.snapshot])) as found:
        chosen = found.one(cluster=args.cluster, snapshot_id=args.snapshot_id, at=args.at)
        one = explain.of_topic(chosen, subject[0])
        now = explain_text.present(explain.present(one, subject))
        before = explain.until(found, chosen)
        # Whether it ever was there is a small question, and what happened to it a large one.
        was_never_there = now["replicas"] is None and (
            explain.of_partition(before.partitions, subject).isEmpty()
        )
        if was_never_there:
            raise BadInputError(
                f"{args.partition} is not in snapshot {now['snapshot_id']} of cluster"
                f" {now['cluster']}, nor in one before it"
            )
        progress.doing("following what happened")
        past = _past(before, subject, args.limit)
        progress.doing("playing failures")
        return {"now": now, "past": past, "next": _next(one, now, subject)}


def _past(snapshots: Snapshots, subject: TopicPartition, limit: int) -> Told:
    """What made the partition what it is, the newest first; nothing for a first snapshot."""
    from pyspark.sql import functions as F

    from understudy.questions import explain
    from understudy.questions.history.answer import told
    from understudy.report.summary import first_rows

    with closing(told(snapshots)) as history:
        story = explain.past(history, snapshots.snapshots, subject)
        newest = F.struct("taken_at", F.length("snapshot_id"), "snapshot_id").desc()
        count, first = first_rows(story, [newest], limit)
    return {"count": count, "first": first}


def _next(one: Snapshots, now: Told, subject: TopicPartition) -> list[Told]:
    """What becomes of the partition when one of the live brokers it is on fails."""
    from understudy.questions import explain
    from understudy.report import explain_text

    replay = explain.ahead(one, explain_text.live_replicas(now))
    if replay is None:
        return []
    with closing(replay):
        return explain_text.outcomes(
            explain.of_partition(replay.tables["partition_states"], subject),
            explain.of_partition(replay.tables["decisions"], subject),
        )


# --- Of a published run ------------------------------------------------------------------------


def _of_run(spark: SparkSession, args: argparse.Namespace, subject: TopicPartition) -> Told:
    from pyspark.sql import functions as F

    from understudy import publish
    from understudy.questions import explain
    from understudy.report import explain_text
    from understudy.report.summary import first_rows
    from understudy.snapshot import instant

    runs = publish.visible_runs(spark, args.root)
    if args.at is not None:
        runs = runs.where(F.col("started") <= F.lit(instant(args.at)))
    tables = F.map_keys("row_counts").alias("tables")
    telling = F.arrays_overlap(F.map_keys("row_counts"), F.array(*map(F.lit, explain_text.TELLING)))
    run = runs.where(telling).orderBy(F.desc("run_id")).select("run_id", "job", tables).first()
    if run is None:
        raise BadInputError(f"{args.root}: no run there has a table that tells about partitions")
    told: Told = {"run_id": run.run_id, "job": run.job, "root": args.root, "tables": {}}
    for name, order in explain_text.TELLING.items():
        if name not in run.tables:
            continue
        rows = publish.read_runs(spark, args.root, name, [run.run_id]).drop("run_id")
        rows = explain.with_times_as_text(explain.of_partition(rows, subject))
        for column, value in (("cluster", args.cluster), ("snapshot_id", args.snapshot_id)):
            if value is not None:
                rows = rows.where(F.col(column) == value)
        count, first = first_rows(rows, order, args.limit)
        told["tables"][name] = {"count": count, "first": first}
    if not any(found["count"] for found in told["tables"].values()):
        raise BadInputError(f"{args.root}: run {run.run_id} says nothing about {args.partition}")
    return told


VERB: Final = Verb(
    "explain",
    "Tell the story of one partition: what it is, why, and what one failure would make of it.",
    "understudy explain orders-17 --snapshot store",
    _arguments,
    _run,
    more="  understudy explain orders-17 --run out --at 2026-03-01T10:00:00Z\n",
)
