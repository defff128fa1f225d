"""What a verb is, and what verbs share: a session with progress, arguments, answers.

Spark, and everything built on it, is imported when a verb runs: ``--help`` needs none of it.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from understudy.errors import (
    EXIT_BAD_INPUT,
    EXIT_DONE,
    BadInputError,
    SeveralClustersError,
    worst,
)
from understudy.progress import Progress, showing, watching
from understudy.report.tables import how_to_see_more

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from understudy.publish import Published, Run
    from understudy.snapshot import Snapshots

JSON_SCHEMA: Final = 1
DEFAULT_LIMIT: Final = 20


@dataclass(frozen=True)
class Verb:
    """One thing the command can do: its words, its arguments, and the function that does it."""

    name: str
    help: str
    example: str
    arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]
    more: str = ""
    """Said in the help after the example."""


@contextmanager
def running(
    name: str,
    args: argparse.Namespace,
    *,
    reads: Iterable[str | None] = (),
    root: str | None = None,
) -> Iterator[tuple[SparkSession, Progress]]:
    """A session with progress for a verb that *reads* these paths, and the runs in *root*.

    Those that are not there are told of before the session is started, which takes seconds.
    """
    from understudy.session import is_this_machines, session
    from understudy.sources import local_paths

    paths = [path for path in reads if path is not None]
    is_short = False
    if is_this_machines():
        _check_inputs(paths, root)
        for place in (getattr(args, name, None) for name in ("out", "into")):
            if place is not None:
                local_paths.check_can_be_written(place)
        is_short = local_paths.hold_little(paths if root is None else [*paths, root])
    with (
        showing(verbose=args.verbose, quiet=args.json) as progress,
        session(name, is_short=is_short) as spark,
        watching(spark, progress),
    ):
        yield spark, progress


def _check_inputs(paths: Sequence[str], root: str | None) -> None:
    from understudy import published
    from understudy.sources import local_paths

    local_paths.check_there(paths)
    if root is not None and local_paths.is_local(root):
        place = published.plain(root)
        if not Path(local_paths.plain(place), "runs").exists():
            raise published.never_published(place)


def same_run(spark: SparkSession, root: str, run: Run) -> Published | None:
    from understudy import publish

    return publish.find_same(
        spark,
        root,
        job=run.job,
        input_digest=run.input_digest,
        config_digest=run.config_digest,
        code_version=run.code_version,
    )


def nothing_good(quarantine: DataFrame, limit: int) -> BadInputError:
    from understudy.report import summary

    count, first = summary.first_rows(quarantine, ["source", "position"], limit)
    told = f"; the first {limit} follow" if count > limit else ""
    return BadInputError(
        f"not one good snapshot, so nothing is published ({count} refused{told})",
        list(summary.refused_problems(first)),
    )


@dataclass(frozen=True)
class Findings:
    """What a verb publishes."""

    tables: Mapping[str, DataFrame]
    verdict: str | Callable[[Callable[[str], DataFrame]], str]
    """If it takes tables to tell, what tells it once they can be read, by their names."""
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class Outcome:
    """A published run: a new one, or the one that already held the answer."""

    published: Published
    already: bool
    verdict: str
    notes: Sequence[str]

    def told(self, root: str) -> dict[str, Any]:
        """The part of an answer that every publishing verb begins with."""
        return {
            "run_id": self.published.run_id,
            "root": root,
            "already_published": self.already,
            "tables": dict(self.published.row_counts),
            "verdict": self.verdict,
            "notes": list(self.notes),
        }


def publish_once(
    spark: SparkSession,
    root: str,
    run: Run,
    progress: Progress,
    find: Callable[[], Findings],
    *,
    force: bool,
) -> Outcome:
    """Publish what *find* finds, unless a visible run has the same input, settings and code."""
    from understudy import publish

    same = None if force else same_run(spark, root, run)
    if same is not None:
        notes = publish.notes_of(spark, root, same.run_id)
        return Outcome(same, already=True, verdict=same.verdict, notes=notes)
    found = find()
    progress.doing("writing tables", tables=len(found.tables))
    counts = publish.write(spark, root, run, found.tables, on_table=progress.table)
    verdict = found.verdict
    if not isinstance(verdict, str):
        verdict = verdict(lambda name: publish.read_runs(spark, root, name, [run.run_id]))
    publish.commit(spark, root, run, counts, verdict=verdict, notes=found.notes)
    published = publish.Published(run.run_id, counts, verdict)
    return Outcome(published, already=False, verdict=verdict, notes=found.notes)


def answer(
    args: argparse.Namespace,
    told: dict[str, Any],
    text: Callable[[dict[str, Any]], str],
    *,
    code: int = EXIT_DONE,
) -> int:
    """Say what was found, as JSON or as text; *code* is that of the verdict.

    Refused snapshots count in the exit code that is returned.
    """
    refused = told.get("quarantine", {}).get("count", 0)
    code = worst(code, EXIT_BAD_INPUT if refused else EXIT_DONE)
    if args.json:
        print(json.dumps({"schema": JSON_SCHEMA, "verb": args.verb, "exit_code": code, **told}))
        return code
    if told.get("already_published"):
        print(f"Nothing to do: run {told['run_id']} already holds this; --force makes a new run.\n")
    said = text(told)
    print(said + how_to_see_more(said, args.limit), end="")
    if refused:
        print(f"understudy: {refused} refused, see the table quarantine", file=sys.stderr)
    return code


# --- Arguments ---------------------------------------------------------------------------------


def add_arguments(verb: Verb, parser: argparse.ArgumentParser) -> None:
    """Give *parser* the arguments of *verb*, and those every verb has."""
    verb.arguments(parser)
    parser.add_argument("--json", action="store_true", help="answer in JSON, failures too")
    parser.add_argument(
        "--limit",
        type=count,
        default=DEFAULT_LIMIT,
        metavar="N",
        help=f"list at most N of anything (default {DEFAULT_LIMIT}); counts are always true",
    )
    parser.add_argument(
        "--verbose",
        action="store_true",
        help="say what is going on, line by line; else only what takes long is told",
    )


def paths_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "paths",
        nargs="+",
        metavar="PATH",
        help="JSON documents (file, directory or glob, plain or gzip) or snapshot stores",
    )


def count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number")
    return int(text)


def regex(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a regular expression: {error}") from None
    return text


def snapshot_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments that choose one snapshot; :func:`one_snapshot` obeys them."""
    parser.add_argument(
        "--snapshot",
        required=True,
        metavar="PATH",
        help="JSON documents or a snapshot store; the newest snapshot there counts",
    )
    parser.add_argument("--cluster", metavar="NAME", help="where there are several clusters")
    parser.add_argument("--snapshot-id", metavar="ID", help="this one instead of the newest")
    parser.add_argument("--at", metavar="TIME", help="the newest one taken until then")


def one_snapshot(spark: SparkSession, args: argparse.Namespace) -> Snapshots:
    """The one snapshot that the arguments choose; the caller closes it."""
    return chosen_snapshot(
        spark, args.snapshot, cluster=args.cluster, snapshot_id=args.snapshot_id, at=args.at
    )


def chosen_snapshot(
    spark: SparkSession,
    path: str,
    *,
    cluster: str | None,
    snapshot_id: str | None,
    at: str | None,
    cluster_option: str = "--cluster",
) -> Snapshots:
    """The newest of the snapshots at *path* that fit; the caller closes it."""
    from understudy import sources

    found = sources.read(spark, [path])
    try:
        return found.one(cluster=cluster, snapshot_id=snapshot_id, at=at)
    except SeveralClustersError as error:
        found.close()
        raise SeveralClustersError(error.clusters, cluster_option) from None
    except BaseException:
        found.close()
        raise
