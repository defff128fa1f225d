"""``understudy runs``: what was published to a place."""

from __future__ import annotations

import argparse
from typing import Final

from understudy.commands.verb import Verb, answer, running


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("root", metavar="DIR", help="a snapshot store or an output directory")


def _run(args: argparse.Namespace) -> int:
    from pyspark.sql import functions as F

    from understudy import publish
    from understudy.report import summary

    with running("understudy runs", args) as (spark, progress):
        progress.doing("reading")
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
    return answer(args, {"root": args.root, "count": count, "runs": first}, summary.runs_text)


VERB: Final = Verb(
    "runs", "List the runs published to a place.", "understudy runs out", _arguments, _run
)
