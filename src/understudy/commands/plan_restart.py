"""``understudy plan-restart``: which brokers may restart together, round by round, and why."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from understudy.commands.verb import (
    Findings,
    Verb,
    answer,
    count,
    one_snapshot,
    publish_once,
    regex,
    running,
    snapshot_arguments,
)
from understudy.commands.verdicts import (
    CANNOT_DECIDE,
    EXIT_CODES,
    NO,
    YES,
    broker_id,
    cluster_of,
    ignore_unsavable_argument,
)
from understudy.errors import BadInputError, UsageError
from understudy.moments import duration

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from understudy.progress import Progress
    from understudy.questions.restart.answer import Answer, Asked
    from understudy.replay import Replay
    from understudy.snapshot import Snapshots


def _arguments(parser: argparse.ArgumentParser) -> None:
    snapshot_arguments(parser)
    parser.add_argument(
        "--brokers", type=_broker_ids, metavar="IDS", help="restart these, 1,2,3 (default: all)"
    )
    parser.add_argument(
        "--max-parallel", type=count, metavar="N", help="at most N brokers in one round"
    )
    parser.add_argument("--by", choices=("rack",), help="no round mixes racks")
    ignore_unsavable_argument(parser)
    parser.add_argument("--max-age", metavar="T", help="an older snapshot decides nothing: 2h, 30m")
    parser.add_argument(
        "--topic", type=regex, metavar="REGEX", help="list these topics only; all count"
    )
    parser.add_argument(
        "--replay", action="store_true", help="play the rounds through the controller, too"
    )
    parser.add_argument(
        "--out", metavar="DIR", help="where the plan, and its replay if asked for, go as tables"
    )
    parser.add_argument("--force", action="store_true", help="a new run though there is the same")


def _broker_ids(text: str) -> list[int]:
    return sorted({broker_id(part.strip()) for part in text.split(",")})


def _run(args: argparse.Namespace) -> int:
    from understudy.report import restart_plan_text

    max_age = None if args.max_age is None else duration(args.max_age)
    if args.max_parallel == 0:
        raise UsageError("--max-parallel 0 lets nobody restart")
    with running("understudy plan-restart", args, reads=[args.snapshot]) as (spark, progress):
        progress.doing("reading")
        snapshots = one_snapshot(spark, args)
        try:
            cluster = cluster_of(snapshots)
            undecided = cluster.why_undecided(max_age, datetime.now(UTC))
            told = _told(snapshots, args, progress, undecided)
        finally:
            snapshots.close()
    taken_at = None if cluster.taken_at is None else cluster.taken_at.isoformat()
    told |= {
        "cluster": cluster.cluster,
        "snapshot_id": cluster.snapshot_id,
        "taken_at": taken_at,
    }
    return answer(args, told, restart_plan_text.as_text, code=EXIT_CODES[told["verdict"]])


def _told(
    snapshots: Snapshots,
    args: argparse.Namespace,
    progress: Progress,
    undecided: str | None,
) -> dict[str, Any]:
    from understudy.questions.restart.answer import answered, replayed, told_of_replay

    progress.doing("planning")
    asked = _asked(snapshots, args)
    with answered(snapshots, asked) as found:
        told = found.told(limit=args.limit, topic=args.topic) | _verdict(found, args, undecided)
        with ExitStack() as stack:
            replay = None
            if args.replay:
                progress.doing("replaying")
                replay = replayed(snapshots, asked.cluster, found.rounds)
                stack.callback(replay.close)
                told["replay"] = told_of_replay(replay, found.rounds)
            if args.out is not None:
                told |= _published(
                    found,
                    replay,
                    args,
                    progress,
                    input_digest=snapshots.input_digest,
                    verdict=told["verdict"],
                    reason=told["reason"],
                )
    return told


def _asked(snapshots: Snapshots, args: argparse.Namespace) -> Asked:
    from understudy.questions.known_clusters import known_clusters
    from understudy.questions.restart.answer import Asked

    (cluster,) = known_clusters(snapshots, assigned=False)
    named = sorted(cluster.brokers) if args.brokers is None else args.brokers
    if unknown := [broker for broker in named if broker not in cluster.brokers]:
        raise BadInputError(
            f"no such brokers in the snapshot: {_list(unknown)}",
            [f"there are {_list(sorted(cluster.brokers))}"],
        )
    racks = {b: rack for b in cluster.live if (rack := cluster.brokers[b].rack) is not None}
    if args.by == "rack" and not racks:
        raise BadInputError("--by rack: no live broker of the snapshot has a rack")
    return Asked(
        cluster,
        tuple(broker for broker in named if cluster.brokers[broker].alive),
        tuple(broker for broker in named if not cluster.brokers[broker].alive),
        racks,
        by_rack=args.by == "rack",
        max_parallel=args.max_parallel,
    )


def _verdict(found: Answer, args: argparse.Namespace, undecided: str | None) -> dict[str, Any]:
    """Rounds are those to act upon: none where the answer is not yes."""
    verdict, reason = judged(
        found.totals.unsavable, found.totals.unsavable_now, ignoring=args.ignore_unsavable
    )
    if undecided is not None:
        verdict, reason = CANNOT_DECIDE, undecided
    proposed = [list(each) for each in found.rounds]
    return {
        "verdict": verdict,
        "reason": reason,
        "unsavable_ignored": args.ignore_unsavable,
        "rounds": proposed if verdict == YES else [],
        "proposed_rounds": proposed,
    }


def judged(unsavable: int, only_now: int, *, ignoring: bool) -> tuple[str, str | None]:
    """The verdict and why, by how many partitions no order saves and how many not before catch-up.

    Those that are *only_now* unsavable are never ignored: to wait for them helps.
    """
    from understudy.report.tables import amount

    ignored = unsavable - only_now if ignoring else 0
    counting = unsavable - ignored
    reasons = []
    if counting:
        blocked = amount(counting, "partition")
        reasons.append(f"any restart of theirs blocks acks=all on {blocked}, whatever the order")
    if only_now:
        reasons.append(
            f"{only_now:,} of them only because replicas are out of sync now: wait until these have"
            " caught up"
        )
    if ignored:
        few = amount(ignored, "partition")
        reasons.append(f"ignored: {few} with no more replicas than min ISR asks for")
    return NO if counting else YES, "; ".join(reasons) or None


def _published(
    found: Answer,
    replay: Replay | None,
    args: argparse.Namespace,
    progress: Progress,
    *,
    input_digest: str,
    verdict: str,
    reason: str | None,
) -> dict[str, Any]:
    from understudy import publish

    settings = {
        "cluster": found.asked.cluster.cluster,
        "snapshot_id": found.asked.cluster.snapshot_id,
        "brokers": list(found.asked.brokers),
        "max_parallel": args.max_parallel,
        "by": args.by,
        "replay": args.replay,
        "verdict": verdict,
    }
    tables: Mapping[str, DataFrame] = found.tables()
    notes = [] if reason is None else [reason]
    if replay is not None:
        tables, notes = replay.tables.beside(tables), [*notes, *replay.notes]
    run = publish.Run.start(
        "plan-restart",
        input_digest=input_digest,
        config_digest=publish.digest(settings),
    )
    outcome = publish_once(
        found.demands.sparkSession,
        args.out,
        run,
        progress,
        lambda: Findings(tables, verdict, notes),
        force=args.force,
    )
    return outcome.told(args.out)


def _list(brokers: Sequence[int]) -> str:
    return ", ".join(map(str, brokers))


VERB: Final = Verb(
    "plan-restart",
    "Plan a rolling restart: few rounds of brokers, every partition at min ISR or above.",
    "understudy plan-restart --snapshot store --max-parallel 10",
    _arguments,
    _run,
    more="""
exit codes: 0 a plan, 2 none (partitions that no order can save, or not before their replicas have
caught up), 3 cannot decide (incomplete snapshot, or older than --max-age).""",
)
