"""``understudy report``: a published run as one HTML page that needs nothing else."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any, Final

from understudy.commands.verb import Verb, answer, regex, running
from understudy.errors import BadInputError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import Row, SparkSession

    Page = Callable[..., str]


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("root", metavar="DIR", help="where whatif or audit wrote tables")
    parser.add_argument("--run-id", metavar="ID", help="this run instead of the newest")
    parser.add_argument("--html", required=True, metavar="FILE", help="the page to write")
    parser.add_argument("--topic", type=regex, metavar="REGEX", help="list these topics only")


def _run(args: argparse.Namespace) -> int:
    from understudy.report import files

    with running("understudy report", args) as (spark, progress):
        progress.doing("reading")
        run = _chosen(spark, args.root, args.run_id, list(_PAGES))
        progress.doing("summing up")
        page = _page(spark, args, run)
    files.write_whole(args.html, page)
    told = {
        "root": args.root,
        "run_id": run.run_id,
        "job": run.job,
        "verdict": run.verdict,
        "html": args.html,
        "bytes": len(page.encode()),
    }
    return answer(args, told, _as_text)


def _chosen(spark: SparkSession, root: str, run_id: str | None, jobs: Sequence[str]) -> Row:
    """The run that is asked for, or the newest there is a page for."""
    from pyspark.sql import functions as F

    from understudy import publish

    runs = publish.visible_runs(spark, root).where(F.col("job").isin(list(jobs)))
    if run_id is not None:
        runs = runs.where(F.col("run_id") == run_id)
    columns = ("run_id", "job", "verdict", "schema_version")
    run = runs.select(*columns).orderBy(F.desc("run_id")).first()
    if run is None:
        which = "no run" if run_id is None else f"no run {run_id}"
        raise BadInputError(f"{root}: {which} of {' or '.join(jobs)} is published there")
    publish.check_versions(root, [run])
    return run


def _page(spark: SparkSession, args: argparse.Namespace, run: Row) -> str:
    return _PAGES[run.job](spark, args, run)


def _what_if(spark: SparkSession, args: argparse.Namespace, run: Row) -> str:
    from understudy import publish
    from understudy.report import what_if_facts, what_if_page

    found = what_if_facts.gather(spark, args.root, run.run_id, topic=args.topic, limit=args.limit)
    notes = publish.notes_of(spark, args.root, run.run_id)
    return what_if_page.as_html(
        {"run_id": run.run_id, "verdict": run.verdict, "notes": notes, **found}
    )


def _audit(spark: SparkSession, args: argparse.Namespace, run: Row) -> str:
    """What holds now: findings of older runs stand until later ones supersede them."""
    from understudy.report import audit_facts, audit_page

    if args.run_id is not None:
        newest = _chosen(spark, args.root, None, jobs=[run.job])
        if newest.run_id != run.run_id:
            raise BadInputError(
                f"{args.root}: of audits what holds now is shown, as of run {newest.run_id}; "
                f"run {run.run_id} is older"
            )
    found = audit_facts.gather(spark, args.root, topic=args.topic, limit=args.limit)
    return audit_page.as_html({"run_id": run.run_id, **found})


def _as_text(told: dict[str, Any]) -> str:
    return f"Wrote {told['html']}: {told['job']}, run {told['run_id']}, {told['verdict']}.\n"


_PAGES: Final[dict[str, Page]] = {"whatif": _what_if, "audit": _audit}

VERB: Final = Verb(
    "report",
    "Show a published run as one HTML page that needs nothing else.",
    "understudy report out --html report.html",
    _arguments,
    _run,
    more="""
The newest run of whatif or audit is shown; of audits, what holds now. Restart plans and cut sets
of the same snapshot that are published to the same place are shown with a what-if.""",
)
