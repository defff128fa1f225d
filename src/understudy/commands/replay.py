"""``understudy replay``: scenarios over snapshots, and what the controller decides."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Final

from understudy.commands.verb import (
    Verb,
    answer,
    nothing_good,
    paths_argument,
    regex,
    running,
    same_run,
)
from understudy.errors import BadInputError, UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from understudy.progress import Progress
    from understudy.publish import Published, Run
    from understudy.scenarios import Scenario
    from understudy.snapshot import Snapshots


def _arguments(parser: argparse.ArgumentParser) -> None:
    paths_argument(parser)
    parser.add_argument("--out", required=True, metavar="DIR", help="where the tables go")
    parser.add_argument("--scenarios", metavar="FILE", help="what happens (default: a failover)")
    parser.add_argument("--profile", metavar="P", help="whose rules (default: the snapshot's)")
    parser.add_argument("--release", metavar="R", help="Kafka's release (default: the snapshot's)")
    parser.add_argument("--tables", metavar="A,B", help="write these tables only (default: all)")
    parser.add_argument(
        "--changed-only",
        action="store_true",
        help="leave out the states of partitions a scenario did not touch",
    )
    parser.add_argument("--force", action="store_true", help="a new run though there is the same")
    parser.add_argument(
        "--topic", type=regex, metavar="REGEX", help="sum up these topics only; all are written"
    )


def _run(args: argparse.Namespace) -> int:
    from understudy import publish, scenarios, sources
    from understudy.report import summary

    tables = _chosen_tables(args.tables)
    reads = [*args.paths, args.scenarios]
    with running("understudy replay", args, reads=reads) as (spark, progress):
        progress.doing("reading")
        asked = [scenarios.FAILOVER]
        if args.scenarios is not None:
            asked = scenarios.read(spark, args.scenarios)
        snapshots = sources.read(spark, args.paths)
        try:
            settings = {
                "scenarios": [asdict(scenario) for scenario in asked],
                "profile": args.profile,
                "release": args.release,
                "tables": tables,
                "changed_only": args.changed_only,
            }
            run = publish.Run.start(
                "replay",
                input_digest=snapshots.input_digest,
                config_digest=publish.digest(settings),
            )
            published = None if args.force else same_run(spark, args.out, run)
            already = published is not None
            if published is None:
                published, notes = _publish_replay(
                    spark, args, run, snapshots=snapshots, asked=asked, progress=progress
                )
            else:
                notes = publish.notes_of(spark, args.out, published.run_id)
        finally:
            snapshots.close()
        progress.doing("summing up")
        found = (spark, args.out, published.run_id, published.row_counts)
        told = {
            "run_id": published.run_id,
            "root": args.out,
            "already_published": already,
            "tables": dict(published.row_counts),
            **summary.gather(*found, topic=args.topic, limit=args.limit),
            "quarantine": summary.quarantine(*found, limit=args.limit),
            "notes": notes,
        }
    return answer(args, told, lambda facts: summary.as_text(facts, topic=args.topic))


def _publish_replay(
    spark: SparkSession,
    args: argparse.Namespace,
    run: Run,
    *,
    snapshots: Snapshots,
    asked: Sequence[Scenario],
    progress: Progress,
) -> tuple[Published, list[str]]:
    from understudy import publish
    from understudy import replay as replaying

    progress.doing("replaying")
    try:
        replay = replaying.replay(
            snapshots,
            asked,
            profile=args.profile,
            release=args.release,
            changed_only=args.changed_only,
        )
    except BadInputError:
        if snapshots.snapshots.isEmpty():
            raise nothing_good(snapshots.quarantine, args.limit) from None
        raise
    try:
        if not replay.replayed:
            raise nothing_good(replay.quarantine, args.limit)
        chosen = _chosen_tables(args.tables)
        tables = replay.tables.only(chosen).beside(replay.refused)
        progress.doing("writing tables", tables=len(tables))
        counts = publish.publish(
            spark,
            args.out,
            run,
            tables,
            verdict="done",
            notes=replay.notes,
            on_table=progress.table,
        )
    finally:
        replay.close()
    return publish.Published(run.run_id, counts, "done"), list(replay.notes)


def _chosen_tables(given: str | None) -> list[str]:
    from understudy.schemas import REPLAY_TABLES

    if given is None:
        return list(REPLAY_TABLES)
    named = [name.strip() for name in given.split(",") if name.strip()]
    unknown = sorted(set(named) - set(REPLAY_TABLES) - {"quarantine"})
    if unknown:
        raise UsageError(
            f"--tables: a replay writes no {', '.join(unknown)}; "
            f"it writes {', '.join(REPLAY_TABLES)}"
        )
    return [name for name in REPLAY_TABLES if name in named]


VERB: Final = Verb(
    "replay",
    "Replay scenarios over snapshots and write what the controller decides.",
    "understudy replay store --scenarios lose-3.json --out out",
    _arguments,
    _run,
)
