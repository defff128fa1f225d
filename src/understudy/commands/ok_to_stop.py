"""``understudy ok-to-stop``: may these brokers be stopped at once, and who could go with them."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from understudy.commands.verb import (
    Verb,
    answer,
    count,
    one_snapshot,
    regex,
    running,
    snapshot_arguments,
)
from understudy.commands.verdicts import (
    CANNOT_DECIDE,
    EXIT_CODES,
    NO,
    YES,
    Cluster,
    broker_id,
    cluster_of,
    ignore_unsavable_argument,
)
from understudy.errors import BadInputError, UsageError
from understudy.moments import duration

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from understudy.snapshot import Snapshots


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("brokers", nargs="+", type=broker_id, metavar="BROKER", help="broker ids")
    snapshot_arguments(parser)
    parser.add_argument(
        "--max", type=count, metavar="N", help="name up to N brokers, these included, that may go"
    )
    ignore_unsavable_argument(parser)
    parser.add_argument("--max-age", metavar="T", help="an older snapshot decides nothing: 2h, 30m")
    parser.add_argument(
        "--topic", type=regex, metavar="REGEX", help="list these topics only; all count"
    )


def _run(args: argparse.Namespace) -> int:
    from understudy.report import ok_to_stop_text

    named = sorted(set(args.brokers))
    max_age = None if args.max_age is None else duration(args.max_age)
    if args.max is not None and args.max < len(named):
        raise UsageError(f"--max {args.max} is less than the {len(named)} brokers named")
    with running("understudy ok-to-stop", args, reads=[args.snapshot]) as (spark, progress):
        progress.doing("reading")
        snapshots = one_snapshot(spark, args)
        try:
            cluster = cluster_of(snapshots)
            if unknown := [broker for broker in named if broker not in cluster.known]:
                raise BadInputError(
                    f"no such brokers in the snapshot: {_list(unknown)}",
                    [f"there are {_list(sorted(cluster.known))}"],
                )
            progress.doing("judging")
            told = _judged(snapshots, cluster, named, args)
        finally:
            snapshots.close()
    undecided = cluster.why_undecided(max_age, datetime.now(UTC))
    if undecided is not None:
        told |= {"verdict": CANNOT_DECIDE, "reason": undecided, "max": None}
    return answer(args, told, ok_to_stop_text.as_text, code=EXIT_CODES[told["verdict"]])


def _judged(
    snapshots: Snapshots, cluster: Cluster, named: Sequence[int], args: argparse.Namespace
) -> dict[str, Any]:
    from understudy.questions.cut_sets import cuts

    stopping = cluster.registered.intersection(named)  # who is down cannot be stopped
    new_controller = cluster.controller in stopping
    found = _in_the_way(_blocking(snapshots, stopping, new_controller=new_controller), args)
    told: dict[str, Any] = {
        "verdict": NO if found["blocking_count"] else YES,
        "brokers": list(named),
        **found,
        "max": None,
        "max_is_largest": None,
        "reason": None,
        "cluster": cluster.cluster,
        "snapshot_id": cluster.snapshot_id,
        "taken_at": None if cluster.taken_at is None else cluster.taken_at.isoformat(),
    }
    told["reason"] = _reason(told, sorted(set(named) - stopping))
    if told["verdict"] == YES and args.max is not None:
        every = cuts.thresholds(snapshots, stopping=stopping, new_controller=new_controller)
        told |= _grown(every, cluster, named, args)
    return told


def _blocking(snapshots: Snapshots, stopping: frozenset[int], *, new_controller: bool) -> DataFrame:
    from understudy.questions import ok_to_stop, stop_in_columns
    from understudy.questions.cut_sets import cuts

    # A new controller looks at every partition, not only at those on the brokers.
    asked = None
    if stopping and not new_controller:
        asked = stop_in_columns.stop(snapshots, stopping)
    if asked is not None:
        return stop_in_columns.blocking(snapshots, asked)
    touched = cuts.thresholds(
        snapshots, stopping=stopping, new_controller=new_controller, only_touched=True
    )
    return ok_to_stop.blocking(touched, stopping)


def _in_the_way(blocking: DataFrame, args: argparse.Namespace) -> dict[str, Any]:
    """The partitions in the way, counted and the first listed in one pass."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as F

    counts = "NOT unsavable" if args.ignore_unsavable else "true"
    seen = Observation()
    counted = blocking.observe(
        seen,
        F.expr(f"count_if({counts}) AS blocking"),
        F.expr("count_if(unsavable) AS unsavable"),
        F.expr(f"count_if({counts} AND internal) AS internal"),
    )
    listed = counted.where(counts)
    if args.topic is not None:
        listed = listed.where(F.col("topic").rlike(args.topic))
    # A limit of zero would be optimised away, and the counts with it.
    first = listed.orderBy(F.desc("internal"), "topic", "partition").limit(max(args.limit, 1))
    rows = first.collect()[: args.limit]
    return {
        "blocking_count": seen.get["blocking"],
        "blocking": [
            {"topic": row.topic, "partition": row.partition, "risk": row.risk} for row in rows
        ],
        "unsavable_count": seen.get["unsavable"],
        "unsavable_ignored": args.ignore_unsavable,
        "internal_count": seen.get["internal"],
    }


def _grown(
    partitions: DataFrame, cluster: Cluster, named: Sequence[int], args: argparse.Namespace
) -> dict[str, Any]:
    from understudy.questions import broker_sets, ok_to_stop

    more = args.max - len(named)
    if not more:
        return {"max": list(named), "max_is_largest": True}
    counting = partitions.where("NOT unsavable") if args.ignore_unsavable else partitions
    sets, are_exact = ok_to_stop.conflicts(counting, named, at_most=more)
    # A ZooKeeper-mode controller's broker goes last: the next controller looks at every ISR anew.
    candidates = cluster.live - set(named) - {cluster.controller}
    grown = broker_sets.grown(candidates, sets, more)
    return {
        "max": sorted({*named, *grown.brokers}),
        "max_is_largest": grown.is_largest and (are_exact or len(grown.brokers) >= more),
    }


def _reason(told: dict[str, Any], down: Sequence[int]) -> str | None:
    from understudy.report.tables import amount

    parts = []
    if told["blocking_count"]:
        parts.append(
            f"{amount(told['blocking_count'], 'partition')} would lose the leader or block acks=all"
        )
    if told["internal_count"]:
        parts.append(f"{told['internal_count']:,} of them in internal topics")
    if told["unsavable_count"]:
        fate = "ignored" if told["unsavable_ignored"] else "any stop of theirs blocks"
        parts.append(f"no more replicas than min ISR asks for: {told['unsavable_count']} ({fate})")
    if down:
        parts.append(f"already down: {_list(down)}")
    return "; ".join(parts) or None


def _list(brokers: Sequence[int]) -> str:
    return ", ".join(map(str, brokers))


VERB: Final = Verb(
    "ok-to-stop",
    "Say whether brokers may be stopped at once: no leader lost, acks=all not blocked.",
    "understudy ok-to-stop 3 4 5 --snapshot store --max 10",
    _arguments,
    _run,
    more="""
exit codes: 0 yes, 2 no, 3 cannot decide (incomplete snapshot, or older than --max-age).""",
)
