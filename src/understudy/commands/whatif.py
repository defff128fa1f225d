"""``understudy whatif``: brokers, racks and the like fail or come back, and what that does."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from understudy.commands import report
from understudy.commands.verb import (
    Findings,
    Verb,
    answer,
    nothing_good,
    paths_argument,
    publish_once,
    regex,
    running,
)
from understudy.errors import (
    EXIT_CANNOT_DECIDE,
    EXIT_DONE,
    EXIT_FAILS,
    EXIT_WARNINGS,
    BadInputError,
    UsageError,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from understudy.progress import Progress
    from understudy.questions.what_if.answer import WhatIf
    from understudy.questions.what_if.failures import Asked
    from understudy.snapshot import Snapshots

_EVERY: Final = ("broker", "rack", "pair", "unit")
_MANY: Final = 1_000  # scenarios: so many of one cluster may well be wanted, of its history hardly
_EXIT_CODES: Final = {
    "safe": EXIT_DONE,
    "warnings": EXIT_WARNINGS,
    "cannot-decide": EXIT_CANNOT_DECIDE,
    "unsafe": EXIT_FAILS,
}
_MORE: Final = """
what can fail:
  broker:7        a broker
  rack:b          all brokers of a rack
  pair:3,7        two brokers
  unit:switch-1   the brokers of a unit in --dependencies
  dir:3:ID        a log directory of a broker (KRaft)
  controller:3    a voter of the quorum (KRaft)
Several joined by commas fail together. Exit codes: 0 every scenario is safe, 4 some leave no
replica to spare, 2 some are unsafe, 3 a snapshot cannot tell."""


def _arguments(parser: argparse.ArgumentParser) -> None:
    paths_argument(parser)
    parser.add_argument("--out", required=True, metavar="DIR", help="where the tables go")
    parser.add_argument(
        "--fail", action="append", default=[], metavar="A,B", help="these fail together"
    )
    parser.add_argument(
        "--restore", action="append", default=[], metavar="A,B", help="these come back together"
    )
    parser.add_argument(
        "--every",
        action="append",
        default=[],
        choices=_EVERY,
        help="each of these fails, one after the other from the same start; of every pair only "
        "the counts are written",
    )
    parser.add_argument("--scenarios", metavar="FILE", help="scenarios of any events")
    parser.add_argument(
        "--dependencies", metavar="FILE", help="CSV with unit,broker_id: what units are"
    )
    parser.add_argument(
        "--reassignment",
        metavar="FILE",
        help="a plan of kafka-reassign-partitions: the same failures also during and after it",
    )
    parser.add_argument("--profile", metavar="P", help="whose rules (default: the snapshot's)")
    parser.add_argument("--release", metavar="R", help="Kafka's release (default: the snapshot's)")
    parser.add_argument("--force", action="store_true", help="a new run though there is the same")
    parser.add_argument(
        "--topic", type=regex, metavar="REGEX", help="list these topics only; all are written"
    )
    report.html_argument(parser)


def _run(args: argparse.Namespace) -> int:
    from understudy import publish, sources
    from understudy.report import summary, what_if_text

    if not (args.fail or args.restore or args.every or args.scenarios or args.reassignment):
        raise UsageError("nothing is asked: --fail broker:7, --every broker, … say what happens")
    reads = [*args.paths, args.scenarios, args.dependencies, args.reassignment]
    with running("understudy whatif", args, reads=reads) as (spark, progress):
        progress.doing("reading")
        asked = _asked(spark, args)
        snapshots = sources.read(spark, args.paths)
        held: list[DataFrame] = []
        try:
            run = publish.Run.start(
                "whatif",
                input_digest=snapshots.input_digest,
                config_digest=publish.digest(_settings(asked, args)),
            )

            def find() -> Findings:
                progress.doing("replaying")
                return _found(snapshots, asked, args, held, progress)

            outcome = publish_once(spark, args.out, run, progress, find, force=args.force)
        finally:
            for frame in held:
                frame.unpersist()
            snapshots.close()
        progress.doing("summing up")
        published = outcome.published
        found = (spark, args.out, published.run_id)
        told = {
            **outcome.told(args.out),
            **what_if_text.gather(*found, topic=args.topic, limit=args.limit),
            "quarantine": summary.quarantine(*found, published.row_counts, limit=args.limit),
        }
        if args.html is not None:
            report.write(spark, args, args.out, run_id=published.run_id)
    return answer(args, told, what_if_text.as_text, code=_EXIT_CODES[outcome.verdict])


# --- What is asked -------------------------------------------------------------------------------


def _asked(spark: SparkSession, args: argparse.Namespace) -> Asked:
    from understudy import scenarios
    from understudy.questions import units
    from understudy.questions.what_if.failures import Asked
    from understudy.sources import side_tables

    return Asked(
        together=tuple(map(units.parse, args.fail)),
        restored=tuple(map(units.parse, args.restore)),
        every=tuple(dict.fromkeys(args.every)),
        scenarios=tuple(scenarios.read(spark, args.scenarios)) if args.scenarios else (),
        dependencies=units.dependencies(
            side_tables.lines(spark, args.dependencies), args.dependencies
        )
        if args.dependencies
        else {},
        plan=_plan(spark, args.reassignment) if args.reassignment else None,
    )


def _plan(spark: SparkSession, path: str) -> dict[str, list[int]]:
    from understudy.sources import reassignment_json, side_tables

    try:
        said = reassignment_json.read("\n".join(side_tables.lines(spark, path)))
    except BadInputError as error:
        raise BadInputError(f"{path}: {error.args[0]}", error.problems) from None
    return {
        f"{topic}-{number}": list(partition.replicas)
        for topic, found in said.topics.items()
        for number, partition in found.partitions.items()
    }


def _settings(asked: Asked, args: argparse.Namespace) -> dict[str, Any]:
    return {
        "together": asked.together,
        "restored": asked.restored,
        "every": asked.every,
        "scenarios": [asdict(scenario) for scenario in asked.scenarios],
        "dependencies": {name: sorted(ids) for name, ids in asked.dependencies.items()},
        "plan": asked.plan,
        "profile": args.profile,
        "release": args.release,
    }


# --- What is found -------------------------------------------------------------------------------


_NO_SCENARIO: Final = (
    "no scenario comes of this in any snapshot: nothing that was named is there to fail, or away"
    " to be restored"
)


def _found(
    snapshots: Snapshots,
    asked: Asked,
    args: argparse.Namespace,
    held: list[DataFrame],
    progress: Progress,
) -> Findings:
    from understudy.questions.recovery import recovery
    from understudy.questions.what_if.answer import what_if

    if snapshots.snapshots.isEmpty():
        raise nothing_good(snapshots.quarantine, args.limit)

    def begin(judged_snapshots: int, judged_scenarios: int) -> None:
        if announced := announcement(judged_snapshots, judged_scenarios):
            progress.note(announced)

    answered: WhatIf = what_if(
        snapshots, asked, profile=args.profile, release=args.release, on_begin=begin
    )
    held += answered.held
    if not answered.replayed and answered.impact.isEmpty():
        if answered.quarantine.isEmpty():
            raise BadInputError(_NO_SCENARIO)
        raise nothing_good(answered.quarantine, args.limit)
    others = {"recovery": recovery(snapshots), "quarantine": answered.quarantine}
    return Findings(answered.tables().beside(others), verdict=_worst, notes=answered.notes)


def _worst(written: Callable[[str], DataFrame]) -> str:
    from understudy.questions.what_if.impact import WORST_FIRST

    verdicts = {row.verdict for row in written("impact").select("verdict").distinct().collect()}
    worst: str = min(verdicts, key=WORST_FIRST.index)
    return worst


def announcement(snapshots: int, scenarios: int) -> str | None:
    """What is said before many scenarios are judged, if they are many."""
    if snapshots == 1 or scenarios < _MANY:
        return None
    return (
        f"{scenarios:,} scenarios over {snapshots:,} snapshots are judged, which may take long; to"
        " ask about one snapshot give its document, or load it into a store of its own (load --at)"
    )


VERB: Final = Verb(
    "whatif",
    "Let brokers, racks or directories fail or come back, and judge what that does to clients.",
    "understudy whatif store --fail broker:7,rack:b --every broker --out out",
    _arguments,
    _run,
    _MORE,
)
