"""The ``understudy`` command: arguments in, one verb run, an answer and an exit code out.

A verb is one entry of ``VERBS``. Whatever goes wrong is one clear message on standard error, or
one JSON object on standard output with ``--json``; a stack trace only with ``UNDERSTUDY_DEBUG=1``.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

from understudy import __version__
from understudy.errors import (
    EXIT_BAD_INPUT,
    EXIT_DONE,
    EXIT_INTERNAL,
    EXIT_USAGE,
    BadInputError,
    UnderstudyError,
    UsageError,
)
from understudy.progress import Progress, showing, watching
from understudy.sources.forms import FORMS, Wanted

# Spark, and everything built on it, is imported when a verb runs: --help needs none of it.
if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from understudy.publish import Published, Run
    from understudy.scenarios import Scenario
    from understudy.snapshot import Snapshots

JSON_SCHEMA: Final = 1
EXIT_INTERRUPTED: Final = 130
DEFAULT_LIMIT: Final = 20
_NO_SPARK: Final = "PySpark 4.3 or newer is needed: pip install 'understudy[spark]'"


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


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line; return the exit code."""
    given = list(sys.argv[1:] if argv is None else argv)
    as_json = "--json" in given
    try:
        args = _parser().parse_args(given)
        return int(args.run(args))
    except UnderstudyError as error:
        return _fail(str(error), error.exit_code, error, as_json=as_json)
    except KeyboardInterrupt:
        return _fail("interrupted", EXIT_INTERRUPTED, None, as_json=as_json)
    except BrokenPipeError:
        # The reader (head, less) went away; there is nobody left to tell.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_DONE
    except Exception as error:  # noqa: BLE001  # the last resort is what this is
        return _fail_unexpectedly(error, as_json=as_json)


# --- Verbs -------------------------------------------------------------------------------------


def _load(args: argparse.Namespace) -> int:
    from understudy import publish, sources  # noqa: PLC0415
    from understudy.report import loaded, summary  # noqa: PLC0415

    wanted = Wanted(
        form=args.form,
        cluster=args.cluster,
        release=args.release,
        metadata_version=args.metadata_version,
        at=args.at,
        every_change=args.every_change,
    )
    wanted.check()
    with _spark("understudy load", args) as (spark, progress):
        progress.doing("reading")
        snapshots = sources.load(spark, args.paths, wanted)
        try:
            run = publish.Run.start(
                "load",
                input_digest=snapshots.input_digest,
                config_digest=publish.digest(wanted.settings()),
            )
            published = None if args.force else _same(spark, args.into, run)
            already = published is not None
            if published is None:
                published = _publish_snapshots(spark, args, run, snapshots, progress)
            progress.doing("summing up")
            told = {
                "run_id": published.run_id,
                "root": args.into,
                "already_published": already,
                "tables": dict(published.row_counts),
                **loaded.gather(spark, args.into, published.run_id, limit=args.limit),
                "quarantine": summary.quarantine(
                    spark, args.into, published.run_id, published.row_counts, limit=args.limit
                ),
            }
        finally:
            snapshots.close()
    return _answer(args, told, loaded.as_text)


def _publish_snapshots(
    spark: SparkSession,
    args: argparse.Namespace,
    run: Run,
    snapshots: Snapshots,
    progress: Progress,
) -> Published:
    from understudy import publish  # noqa: PLC0415

    if snapshots.snapshots.isEmpty():
        raise _nothing_good(snapshots.quarantine, args.limit)
    fresh, quarantine = snapshots, snapshots.quarantine
    if publish.is_store(spark, args.into):
        fresh, quarantine = _not_yet_in(spark, args.into, snapshots)
    tables = {**fresh.tables(), "quarantine": quarantine}
    progress.doing("writing tables", tables=len(tables))
    counts = publish.publish(spark, args.into, run, tables, verdict="done", on_table=progress.table)
    return publish.Published(run.run_id, counts)


def _not_yet_in(
    spark: SparkSession, store: str, snapshots: Snapshots
) -> tuple[Snapshots, DataFrame]:
    """The snapshots *store* does not hold, and as refused those it holds with other content."""
    from pyspark.sql import functions as F  # noqa: PLC0415

    from understudy import publish  # noqa: PLC0415
    from understudy.names import SNAPSHOT_KEY  # noqa: PLC0415
    from understudy.schemas import QUARANTINE, conform  # noqa: PLC0415

    held = (
        publish.read(spark, store, "snapshots")
        .groupBy(*SNAPSHOT_KEY)
        .agg(F.collect_set("content_digest").alias("held"), F.max("run_id").alias("run_id"))
    )
    known = snapshots.snapshots.join(F.broadcast(held), list(SNAPSHOT_KEY), "left")
    fresh = known.where("held IS NULL").select(*SNAPSHOT_KEY)
    other = known.where("NOT array_contains(held, content_digest)").select(*SNAPSHOT_KEY, "run_id")
    where = snapshots.provenance.groupBy(*SNAPSHOT_KEY).agg(
        F.min("source").alias("source"), F.min_by("position", "source").alias("position")
    )
    refused = other.join(where, list(SNAPSHOT_KEY), "left").withColumn(
        "problems",
        F.array(
            F.format_string(
                "the store holds snapshot %s of cluster %s with other content, from run %s",
                "snapshot_id",
                "cluster",
                "run_id",
            )
        ),
    )
    return snapshots.only(fresh), snapshots.quarantine.unionAll(conform(refused, QUARANTINE))


def _replay(args: argparse.Namespace) -> int:
    from understudy import publish, scenarios, sources  # noqa: PLC0415
    from understudy.report import summary  # noqa: PLC0415

    tables = _chosen_tables(args.tables)
    with _spark("understudy replay", args) as (spark, progress):
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
            published = None if args.force else _same(spark, args.out, run)
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
    return _answer(args, told, lambda facts: summary.as_text(facts, topic=args.topic))


def _publish_replay(
    spark: SparkSession,
    args: argparse.Namespace,
    run: Run,
    *,
    snapshots: Snapshots,
    asked: Sequence[Scenario],
    progress: Progress,
) -> tuple[Published, list[str]]:
    from understudy import publish  # noqa: PLC0415
    from understudy import replay as replaying  # noqa: PLC0415

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
            raise _nothing_good(snapshots.quarantine, args.limit) from None
        raise
    try:
        if not replay.replayed:
            raise _nothing_good(replay.quarantine, args.limit)
        chosen = _chosen_tables(args.tables)
        tables = {name: replay.tables[name] for name in chosen} | {"quarantine": replay.quarantine}
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
    return publish.Published(run.run_id, counts), list(replay.notes)


def _demo(args: argparse.Namespace) -> int:
    sample = next((place for place in _sample_places() if place.is_dir()), None)
    if sample is None:
        raise UsageError("the sample is in data/sample of the project: run the demo from there")
    command = ["replay", str(sample), "--out", args.out, "--limit", str(args.limit)]
    flags = [flag for flag, on in (("--json", args.json), ("--verbose", args.verbose)) if on]
    return int(_replay(_parser().parse_args([*command, *flags])))


def _sample_places() -> tuple[Path, ...]:
    return Path("data/sample"), Path(__file__).parents[2] / "data" / "sample"


def _runs(args: argparse.Namespace) -> int:
    from pyspark.sql import functions as F  # noqa: PLC0415

    from understudy import publish  # noqa: PLC0415
    from understudy.report import summary  # noqa: PLC0415

    with _spark("understudy runs", args) as (spark, progress):
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
    return _answer(args, {"root": args.root, "count": count, "runs": first}, summary.runs_text)


# --- What verbs share --------------------------------------------------------------------------


@contextmanager
def _spark(name: str, args: argparse.Namespace) -> Iterator[tuple[SparkSession, Progress]]:
    from understudy.session import session  # noqa: PLC0415

    with (
        showing(verbose=args.verbose) as progress,
        session(name) as spark,
        watching(spark, progress),
    ):
        yield spark, progress


def _same(spark: SparkSession, root: str, run: Run) -> Published | None:
    from understudy import publish  # noqa: PLC0415

    return publish.find_same(
        spark,
        root,
        job=run.job,
        input_digest=run.input_digest,
        config_digest=run.config_digest,
        code_version=run.code_version,
    )


def _nothing_good(quarantine: DataFrame, limit: int) -> BadInputError:
    from understudy.report import summary  # noqa: PLC0415

    count, first = summary.first_rows(quarantine, ["source", "position"], limit)
    problems = [line.strip() for line in summary.refusals({"count": count, "first": first})[1:]]
    told = f"; the first {limit} follow" if count > limit else ""
    return BadInputError(
        f"not one good snapshot, so nothing is published ({count} refused{told})", problems
    )


def _chosen_tables(given: str | None) -> list[str]:
    from understudy.schemas import REPLAY_TABLES  # noqa: PLC0415

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


def _answer(
    args: argparse.Namespace, told: dict[str, Any], text: Callable[[dict[str, Any]], str]
) -> int:
    """Say what was found, as JSON or as text, and turn refused snapshots into the exit code."""
    refused = told.get("quarantine", {}).get("count", 0)
    code = EXIT_BAD_INPUT if refused else EXIT_DONE
    if args.json:
        print(json.dumps({"schema": JSON_SCHEMA, "verb": args.verb, "exit_code": code, **told}))
        return code
    if told.get("already_published"):
        print(f"Nothing to do: run {told['run_id']} already holds this; --force makes a new run.\n")
    print(text(told), end="")
    if refused:
        print(f"understudy: {refused} refused, see the table quarantine", file=sys.stderr)
    return code


# --- Failing -----------------------------------------------------------------------------------


def _fail(message: str, code: int, error: UnderstudyError | None, *, as_json: bool) -> int:
    if as_json:
        problems = list(getattr(error, "problems", ()))
        first = message.split("\n", 1)[0] if problems else message
        told = {"schema": JSON_SCHEMA, "error": first, "problems": problems, "exit_code": code}
        print(json.dumps(told))
    else:
        print(f"understudy: {message}", file=sys.stderr)
    return code


def _fail_unexpectedly(error: Exception, *, as_json: bool) -> int:
    if isinstance(error, ModuleNotFoundError) and (error.name or "").startswith("pyspark"):
        return _fail(_NO_SPARK, EXIT_USAGE, None, as_json=as_json)
    if os.environ.get("UNDERSTUDY_DEBUG"):
        traceback.print_exception(error)
    condition = getattr(error, "getCondition", lambda: None)() or ""
    first = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
    if condition == "PATH_NOT_FOUND" or condition.startswith("FAILED_READ_FILE"):
        return _fail(first, EXIT_BAD_INPUT, None, as_json=as_json)
    hint = "" if os.environ.get("UNDERSTUDY_DEBUG") else " (UNDERSTUDY_DEBUG=1 shows the trace)"
    told = f"something unexpected happened: {type(error).__name__}: {first}{hint}"
    return _fail(told, EXIT_INTERNAL, None, as_json=as_json)


# --- Arguments ---------------------------------------------------------------------------------


class _Parser(argparse.ArgumentParser):
    """An argument parser whose complaints are usage errors like any other."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}\n{self.format_usage().strip()}")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="understudy",
        description="Replays the Apache Kafka controller over snapshots of a cluster, on Spark.",
        epilog="understudy VERB --help says more. Exit codes: 0 done, 64 usage, 65 bad input, "
        "70 internal error.",
    )
    parser.add_argument("--version", action="version", version=f"understudy {__version__}")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    for verb in VERBS:
        sub = verbs.add_parser(
            verb.name,
            help=verb.help,
            description=verb.help,
            epilog=f"example:\n  {verb.example}\n{verb.more}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        verb.arguments(sub)
        sub.add_argument("--json", action="store_true", help="answer in JSON, failures too")
        sub.add_argument(
            "--limit",
            type=_count,
            default=DEFAULT_LIMIT,
            metavar="N",
            help=f"list at most N of anything (default {DEFAULT_LIMIT}); counts are always true",
        )
        sub.add_argument(
            "--verbose", action="store_true", help="say what is going on, line by line"
        )
        sub.set_defaults(run=verb.run)
    return parser


def _load_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "paths",
        nargs="+",
        metavar="PATH",
        help="files, directories or globs of any form below, or snapshot stores",
    )
    parser.add_argument("--into", required=True, metavar="STORE", help="the snapshot store")
    parser.add_argument(
        "--form",
        choices=FORMS,
        metavar="FORM",
        help="what the files are (default: recognised by content)",
    )
    parser.add_argument("--cluster", metavar="NAME", help="the cluster, where a form has no name")
    parser.add_argument(
        "--at", metavar="INSTANT", help="zxid:0x1f, offset:812 or a time (default: the newest)"
    )
    parser.add_argument(
        "--every-change", action="store_true", help="a snapshot after every change of a history"
    )
    parser.add_argument("--release", metavar="R", help="Kafka's release, where a form has none")
    parser.add_argument(
        "--metadata-version",
        metavar="V",
        help="metadata.version or inter.broker.protocol.version, where a form has none",
    )
    parser.add_argument("--force", action="store_true", help="load again what was loaded before")


def _replay_arguments(parser: argparse.ArgumentParser) -> None:
    _paths(parser)
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
        "--topic", type=_regex, metavar="REGEX", help="sum up these topics only; all are written"
    )


def _demo_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", default="out/demo", metavar="DIR", help="default: out/demo")


def _runs_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("root", metavar="DIR", help="a snapshot store or an output directory")


def _paths(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "paths",
        nargs="+",
        metavar="PATH",
        help="JSON documents (file, directory or glob, plain or gzip) or snapshot stores",
    )


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of rows")
    return int(text)


def _regex(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a regular expression: {error}") from None
    return text


_LOAD_HELP: Final = "\n".join(
    [
        "  understudy load zookeeper/data --release 2.8 --at 2026-01-01T00:00:00Z --into store",
        "  understudy load kafka-logs/__cluster_metadata-0 --every-change --into store",
        "  understudy load texts --form describe --cluster shop-eu --into store",
        "",
        "forms:",
        *(f"  {form.name:<17} {form.what}" for form in FORMS.values()),
    ]
)

VERBS: Final = (
    Verb(
        "load",
        "Load snapshots, in whatever form there are any, into a snapshot store.",
        "understudy load 'exports/*.json.gz' --into store",
        _load_arguments,
        _load,
        more=_LOAD_HELP,
    ),
    Verb(
        "replay",
        "Replay scenarios over snapshots and write what the controller decides.",
        "understudy replay store --scenarios lose-3.json --out out",
        _replay_arguments,
        _replay,
    ),
    Verb(
        "runs", "List the runs published to a place.", "understudy runs out", _runs_arguments, _runs
    ),
    Verb(
        "demo",
        "Replay a controller failover over the sample cluster.",
        "understudy demo",
        _demo_arguments,
        _demo,
    ),
)
