"""``understudy runs``: what was published to a place; and keeping that place small."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from understudy.commands.verb import Verb, answer, running
from understudy.errors import UsageError
from understudy.moments import duration

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("root", metavar="DIR", help="a snapshot store or an output directory")
    parser.add_argument(
        "--prune", action="store_true", help="delete what was never published, or is hidden"
    )
    parser.add_argument(
        "--older-than", metavar="AGE", help="with --prune: old runs, too; an age like 30d"
    )
    parser.add_argument("--dry-run", action="store_true", help="with --prune: only say what goes")
    parser.add_argument(
        "--compact", action="store_true", help="make one run of many, and hide those"
    )


def _run(args: argparse.Namespace) -> int:
    from understudy.report import summary

    if not args.prune and (args.older_than is not None or args.dry_run):
        raise UsageError("--older-than and --dry-run go with --prune")
    if args.dry_run and args.compact:
        raise UsageError("--dry-run goes with --prune alone")
    with running("understudy runs", args, root=args.root) as (spark, progress):
        told: dict[str, Any] = {"root": args.root}
        if args.compact:
            progress.doing("compacting")
            told |= _compact(spark, args)
        if args.prune:
            progress.doing("pruning")
            told |= _prune(spark, args)
        progress.doing("reading")
        told |= _list(spark, args)
    return answer(args, told, summary.runs_text)


def _compact(spark: SparkSession, args: argparse.Namespace) -> dict[str, Any]:
    from understudy import housekeeping

    done = housekeeping.compact(spark, args.root, now=datetime.now(UTC))
    return {"compacted": {"into": done[0] if done else None, "runs": len(done[1]) if done else 0}}


def _prune(spark: SparkSession, args: argparse.Namespace) -> dict[str, Any]:
    from understudy import housekeeping

    gone = housekeeping.prune(
        spark,
        args.root,
        now=datetime.now(UTC),
        older_than=None if args.older_than is None else duration(args.older_than),
        dry_run=args.dry_run,
    )
    first = [{"run_id": each.run_id, "reason": each.reason} for each in gone[: args.limit]]
    return {"pruned": {"count": len(gone), "first": first, "dry_run": args.dry_run}}


def _list(spark: SparkSession, args: argparse.Namespace) -> dict[str, Any]:
    from pyspark.sql import functions as F

    from understudy import publish
    from understudy.report import summary

    # As text: collected timestamps would turn into the local time of this machine.
    shown = "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'"
    runs = publish.visible_runs(spark, args.root).select(
        "run_id",
        "job",
        F.date_format("started", shown).alias("started"),
        F.date_format("ended", shown).alias("ended"),
        "code_version",
        "row_counts",
        "verdict",
    )
    count, first = summary.first_rows(runs, [F.desc("run_id")], args.limit)
    return {"count": count, "runs": first}


VERB: Final = Verb(
    "runs",
    "List the runs published to a place; prune and compact them.",
    "understudy runs out",
    _arguments,
    _run,
    more="""  understudy runs out --prune --older-than 30d --dry-run
  understudy runs store --compact

Never deleted: the newest run of a job, what the newest audit refers to, and what is younger than
a day or --older-than. A compacted run is hidden at once and deleted by a later --prune.""",
)
