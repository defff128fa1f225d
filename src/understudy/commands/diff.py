"""``understudy diff``: what is different between two snapshots."""

from __future__ import annotations

import argparse
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final

from understudy.commands.verb import Verb, answer, chosen_snapshot, regex, running

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from understudy.snapshot import Snapshots


LEGEND: Final = "diff: I only PATH_B has it, D only PATH_A has it, C it changed."


def _arguments(parser: argparse.ArgumentParser) -> None:
    for side in ("a", "b"):
        parser.add_argument(
            f"path_{side}",
            metavar=f"PATH_{side.upper()}",
            help="JSON documents or a snapshot store; the newest snapshot there counts",
        )
    for side in ("a", "b"):
        which = f"of PATH_{side.upper()}"
        parser.add_argument(f"--cluster-{side}", metavar="NAME", help=f"this cluster {which}")
        parser.add_argument(
            f"--id-{side}", metavar="ID", help=f"this snapshot {which} instead of the newest"
        )
        parser.add_argument(
            f"--at-{side}", metavar="TIME", help=f"the newest {which} taken until then"
        )
    parser.add_argument("--topic", type=regex, metavar="REGEX", help="these topics only")


def _run(args: argparse.Namespace) -> int:
    from understudy.questions import diff
    from understudy.report import diff_text

    with (
        running("understudy diff", args, reads=[args.path_a, args.path_b]) as (spark, progress),
        closing(_side(spark, args, "a")) as left,
        closing(_side(spark, args, "b")) as right,
    ):
        progress.doing("comparing")
        told = {
            "left": _named(left),
            "right": _named(right),
            "topic": args.topic,
            "differences": diff_text.gather(
                diff.listing(diff.tables(left, right)), topic=args.topic, limit=args.limit
            ),
        }
    return answer(args, told, lambda facts: diff_text.as_text(facts, legend=LEGEND))


def _side(spark: SparkSession, args: argparse.Namespace, side: str) -> Snapshots:
    given = vars(args)
    return chosen_snapshot(
        spark,
        given[f"path_{side}"],
        cluster=given[f"cluster_{side}"],
        snapshot_id=given[f"id_{side}"],
        at=given[f"at_{side}"],
        cluster_option=f"--cluster-{side}",
    )


def _named(snapshots: Snapshots) -> dict[str, Any]:
    # As text: collected timestamps would turn into the local time of this machine.
    taken_at = "date_format(taken_at, \"yyyy-MM-dd'T'HH:mm:ss.SSS'Z'\") AS taken_at"
    row = snapshots.snapshots.selectExpr("cluster", "snapshot_id", taken_at).first()
    return {} if row is None else row.asDict()


VERB: Final = Verb(
    "diff",
    "Say what is different between two snapshots.",
    "understudy diff before.json after.json --topic 'orders.*'",
    _arguments,
    _run,
    more=f"  understudy diff store store --at-a 2026-03-01T09:00:00Z\n\n{LEGEND}\n",
)
