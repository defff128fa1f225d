"""``understudy compare``: the same scenarios under several controllers, and where they part."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict
from typing import TYPE_CHECKING, Final

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

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from understudy.questions.compare.controllers import Controller
    from understudy.scenarios import Scenario
    from understudy.snapshot import Snapshots

_HINT: Final = (
    "a quorum controller writes nothing at a failover; --scenarios names what else may happen,"
    ' such as {"type": "broker_failure", "brokers": [3]}'
)


def _arguments(parser: argparse.ArgumentParser) -> None:
    paths_argument(parser)
    parser.add_argument(
        "--profiles",
        required=True,
        type=_words,
        metavar="P,P",
        help="whose rules: zk, zk-legacy, kraft; the first is what the others are held against",
    )
    parser.add_argument(
        "--releases", type=_words, default=(), metavar="R,R", help="(default: each one's newest)"
    )
    parser.add_argument(
        "--elr",
        type=_switches,
        default=(),
        metavar="on,off",
        help="eligible leader replicas in KRaft (default: as the snapshot says)",
    )
    parser.add_argument("--scenarios", metavar="FILE", help="what happens (default: a failover)")
    parser.add_argument("--out", required=True, metavar="DIR", help="where the tables go")
    parser.add_argument("--force", action="store_true", help="a new run though there is the same")
    parser.add_argument(
        "--topic", type=regex, metavar="REGEX", help="sum up these topics only; all are written"
    )


def _words(given: str) -> tuple[str, ...]:
    words = tuple(word.strip() for word in given.split(",") if word.strip())
    if not words:
        raise argparse.ArgumentTypeError("nothing is named")
    return words


def _switches(given: str) -> tuple[bool, ...]:
    words = _words(given)
    if not set(words) <= {"on", "off"}:
        raise argparse.ArgumentTypeError(f"{given!r} is not on, off or both")
    return tuple(word == "on" for word in words)


def _run(args: argparse.Namespace) -> int:
    from understudy import publish, scenarios, sources
    from understudy.questions.compare.controllers import chosen
    from understudy.report import compare_text, summary

    controllers, missing = chosen(args.profiles, args.releases, args.elr)
    labels = [each.label for each in controllers]
    reads = [*args.paths, args.scenarios]
    with (
        running("understudy compare", args, reads=reads) as (spark, progress),
        ExitStack() as held,
    ):
        progress.doing("reading")
        asked = [scenarios.FAILOVER]
        if args.scenarios is not None:
            asked = scenarios.read(spark, args.scenarios)
        snapshots = sources.read(spark, args.paths)
        held.callback(snapshots.close)
        settings = {"scenarios": [asdict(each) for each in asked], "controllers": labels}
        run = publish.Run.start(
            "compare",
            input_digest=snapshots.input_digest,
            config_digest=publish.digest(settings),
        )

        def find() -> Findings:
            progress.doing("replaying")
            if snapshots.snapshots.isEmpty():
                raise nothing_good(snapshots.quarantine, args.limit)
            tables, notes = _compared(snapshots, asked, controllers, held)
            return Findings(tables, "done", [*missing, *notes])

        outcome = publish_once(spark, args.out, run, progress, find, force=args.force)
        progress.doing("summing up")
        found = (spark, args.out, outcome.published.run_id)
        told = {
            **outcome.told(args.out),
            "controllers": labels,
            **compare_text.gather(*found, topic=args.topic, limit=args.limit),
            "quarantine": summary.quarantine(
                *found, outcome.published.row_counts, limit=args.limit
            ),
        }
    return answer(args, told, lambda facts: compare_text.as_text(facts, topic=args.topic))


def _compared(
    snapshots: Snapshots,
    asked: Sequence[Scenario],
    controllers: Sequence[Controller],
    held: ExitStack,
) -> tuple[dict[str, DataFrame], list[str]]:
    """Replay everything under every controller at once; the outcomes side by side, and notes."""
    from understudy import replay as replaying
    from understudy import scenarios
    from understudy.questions.compare.controllers import as_seen_by, for_each
    from understudy.questions.compare.differences import TABLES, differences

    # Whether the scenarios fit is asked of the snapshots that the user knows, not of their forks.
    scenarios.resolve(asked, snapshots.keys())
    replay = replaying.replay(
        as_seen_by(snapshots, controllers),
        for_each(asked, controllers),
        changed_only=True,
    )
    held.callback(replay.close)
    computed = {name: replay.tables[name].localCheckpoint() for name in TABLES}
    tables = {
        "differences": differences(computed, snapshots, controllers),
        "quarantine": snapshots.quarantine,
    }
    hints = [_HINT] if list(asked) == [scenarios.FAILOVER] else []
    return tables, [*replay.notes, *hints]


VERB: Final = Verb(
    "compare",
    "Replay scenarios under several controllers and show where they part, and by which rule.",
    "understudy compare store --profiles zk,kraft --releases 3.9,4.3 --scenarios lose-3.json"
    " --out out",
    _arguments,
    _run,
)
