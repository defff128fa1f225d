"""``understudy cutsets``: the smallest losses of brokers, or of racks and the like, that cost data.

It gives information and no verdict: which sets are too many is for people to say. The exit code is
0, or 3 where a snapshot is not complete, since sets may be missing then.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any, Final

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
from understudy.errors import EXIT_CANNOT_DECIDE, EXIT_DONE, UsageError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from understudy.questions.cut_sets.odds import Rates
    from understudy.snapshot import Snapshots

BY: Final = ("broker", "rack", "unit")
DONE: Final = "done"
CANNOT_DECIDE: Final = "cannot-decide"


def _arguments(parser: argparse.ArgumentParser) -> None:
    paths_argument(parser)
    parser.add_argument("--out", required=True, metavar="DIR", help="where the tables go")
    parser.add_argument("--k", type=_size, default=3, metavar="K", help="sets of up to K (3)")
    parser.add_argument("--by", choices=BY, default="broker", help="what fails (default: broker)")
    parser.add_argument(
        "--dependencies", metavar="FILE", help="CSV with unit,broker_id: what --by unit is about"
    )
    parser.add_argument(
        "--weights",
        metavar="FILE",
        help="CSV with topic,weight or topic,partition,weight, or what kafka-log-dirs prints",
    )
    parser.add_argument(
        "--failure-rate", type=_rate, metavar="P", help="how likely any broker is down, 0 to 1"
    )
    parser.add_argument(
        "--rates", metavar="FILE", help="CSV with broker_id,rate; others take --failure-rate or 0"
    )
    parser.add_argument("--per-topic", action="store_true", help="write topic_cut_sets, too")
    parser.add_argument("--topic", type=regex, metavar="REGEX", help="only these topics count")
    parser.add_argument("--force", action="store_true", help="a new run though there is the same")


def _size(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and int(text)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of brokers")
    return int(text)


def _rate(text: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = -1.0
    if not 0 <= rate <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a probability between 0 and 1")
    return rate


def _run(args: argparse.Namespace) -> int:
    from understudy import publish, sources
    from understudy.report import cut_sets_text, summary

    _check(args)
    reads = [*args.paths, args.dependencies, args.weights, args.rates]
    with running("understudy cutsets", args, reads=reads) as (spark, progress):
        progress.doing("reading")
        given = _Given(spark, args)
        snapshots = sources.read(spark, args.paths)
        try:
            run = publish.Run.start(
                "cutsets",
                input_digest=snapshots.input_digest,
                config_digest=publish.digest(given.settings()),
            )
            held: list[DataFrame] = []
            try:
                outcome = publish_once(
                    spark,
                    args.out,
                    run,
                    progress,
                    lambda: _found(snapshots, given, args, held),
                    force=args.force,
                )
            finally:
                for frame in held:
                    frame.unpersist()
        finally:
            snapshots.close()
        progress.doing("summing up")
        published = outcome.published
        found = (spark, args.out, published.run_id, published.row_counts)
        told = {
            **outcome.told(args.out),
            **cut_sets_text.gather(*found[:3], k=args.k, limit=args.limit),
            "quarantine": summary.quarantine(*found, limit=args.limit),
        }
    code = EXIT_CANNOT_DECIDE if outcome.verdict == CANNOT_DECIDE else EXIT_DONE
    return answer(args, told, cut_sets_text.as_text, code=code)


def _check(args: argparse.Namespace) -> None:
    if (args.by == "unit") != (args.dependencies is not None):
        raise UsageError("--by unit and --dependencies go together")
    if args.by != "broker" and (args.failure_rate is not None or args.rates is not None):
        raise UsageError("--failure-rate and --rates are those of brokers: leave --by out")


class _Given:
    """What the files say that come with the question."""

    def __init__(self, spark: SparkSession, args: argparse.Namespace) -> None:
        from understudy.questions import units
        from understudy.sources import side_tables

        self._args = args
        self.dependencies: dict[str, frozenset[int]] = {}
        if args.dependencies is not None:
            lines = side_tables.lines(spark, args.dependencies)
            self.dependencies = units.dependencies(lines, args.dependencies)
        self.rates = _rates(spark, args)
        self.weights = None
        self.weights_digest = None
        if args.weights is not None:
            self.weights, self.weights_digest = side_tables.weights(spark, args.weights)

    def settings(self) -> dict[str, Any]:
        args, rates = self._args, self.rates
        return {
            "k": args.k,
            "by": args.by,
            "dependencies": {unit: sorted(ids) for unit, ids in self.dependencies.items()},
            "weights": self.weights_digest,
            "rates": None
            if rates is None
            else [rates.default, {str(b): r for b, r in rates.by_broker.items()}],
            "per_topic": args.per_topic,
            "topic": args.topic,
        }


def _rates(spark: SparkSession, args: argparse.Namespace) -> Rates | None:
    from understudy.questions.cut_sets.odds import Rates
    from understudy.sources import side_tables

    if args.rates is None:
        return None if args.failure_rate is None else Rates(args.failure_rate)
    lines = side_tables.lines(spark, args.rates)
    return Rates(args.failure_rate or 0.0, side_tables.rates(lines, args.rates))


def _found(
    snapshots: Snapshots, given: _Given, args: argparse.Namespace, held: list[DataFrame]
) -> Findings:
    from pyspark.sql import functions as F

    from understudy.frames import SOME_OF_EACH, kept
    from understudy.questions.cut_sets import cuts, odds, sets
    from understudy.questions.recovery import recovery

    completeness = snapshots.snapshots.agg(
        F.expr("count(1) AS all"), F.expr("count_if(NOT coalesce(complete, false)) AS partial")
    ).first()
    if completeness is None or not completeness["all"]:
        raise nothing_good(snapshots.quarantine, args.limit)
    partitions = cuts.thresholds(snapshots)
    returning = recovery(snapshots)
    if args.topic is not None:
        partitions = partitions.where(F.col("topic").rlike(args.topic))
        returning = returning.where(F.col("topic").rlike(args.topic))
    units = None
    if args.by == "rack":
        units = sets.racks(snapshots.brokers)
    elif args.by == "unit":
        units = sets.dependencies(snapshots.snapshots, given.dependencies)
    partitions = sets.weighed(partitions, given.weights)
    tables = {}
    many = snapshots.at_most(SOME_OF_EACH)
    if args.per_topic:
        by_topic = kept(sets.cut_sets_by_topic(partitions, units), rows=many)
        held.append(by_topic)
        found = kept(sets.cut_sets(by_topic), rows=many)
        tables["topic_cut_sets"] = sets.table(sets.named(by_topic), units, largest=args.k)
    else:
        found = kept(sets.cut_sets_of_all(partitions, units), rows=many)
    held.append(found)
    tables |= {
        "cut_sets": sets.table(found, units, largest=args.k),
        "cut_totals": odds.totals(partitions, found, snapshots.brokers, given.rates),
        "recovery": returning,
        "quarantine": snapshots.quarantine,
    }
    if not completeness.partial:
        return Findings(tables, DONE)
    note = f"{completeness.partial} of {completeness['all']} snapshots are not complete"
    return Findings(tables, CANNOT_DECIDE, [f"{note}: sets may be missing"])


VERB: Final = Verb(
    "cutsets",
    "Find the minimal sets of brokers whose loss takes partitions offline or blocks acks=all.",
    "understudy cutsets store --k 3 --out out",
    _arguments,
    _run,
    more="""  understudy cutsets store --by rack --out out
  understudy cutsets store --weights bytes.csv --failure-rate 0.01 --out out

exit codes: 0 done, 3 a snapshot is not complete. It informs and gives no verdict.""",
)
