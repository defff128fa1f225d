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


def html_argument(parser: argparse.ArgumentParser) -> None:
    """For verbs that publish what there is a page for."""
    parser.add_argument("--html", metavar="FILE", help="write a page of it there, too")


def _run(args: argparse.Namespace) -> int:
    with running("understudy report", args, root=args.root) as (spark, progress):
        progress.doing("summing up")
        told = write(spark, args, args.root, run_id=args.run_id)
    return answer(args, {"root": args.root, **told}, _as_text)


def write(
    spark: SparkSession,
    args: argparse.Namespace,
    root: str,
    *,
    run_id: str | None = None,
    jobs: Sequence[str] | None = None,
) -> dict[str, Any]:
    """Write the page that ``--html`` names; say of which run it is."""
    from understudy.report import files

    run = _chosen(spark, root, run_id, jobs or list(_PAGES))
    page = _PAGES[run.job](spark, root, run, topic=args.topic, limit=args.limit)
    files.write_whole(args.html, page)
    return {
        "run_id": run.run_id,
        "job": run.job,
        "verdict": run.verdict,
        "html": args.html,
        "bytes": len(page.encode()),
    }


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


def _what_if_page(
    spark: SparkSession, root: str, run: Row, *, topic: str | None, limit: int
) -> str:
    from understudy import publish
    from understudy.report import what_if_facts, what_if_page

    found = what_if_facts.gather(spark, root, run.run_id, topic=topic, limit=limit)
    notes = publish.notes_of(spark, root, run.run_id)
    told = {"run_id": run.run_id, "verdict": run.verdict, "notes": notes, **found}
    return what_if_page.as_html(told)


def _audit_page(spark: SparkSession, root: str, run: Row, *, topic: str | None, limit: int) -> str:
    """What holds now: findings of older runs stand until later ones supersede them."""
    from understudy.report import audit_facts, audit_page

    newest = _chosen(spark, root, None, jobs=[run.job])
    if newest.run_id != run.run_id:
        raise BadInputError(
            f"{root}: of audits what holds now is shown, as of run {newest.run_id}; "
            f"run {run.run_id} is older"
        )
    found = audit_facts.gather(spark, root, topic=topic, limit=limit)
    return audit_page.as_html({"run_id": run.run_id, **found})


def _as_text(told: dict[str, Any]) -> str:
    return f"Wrote {told['html']}: {told['job']}, run {told['run_id']}, {told['verdict']}.\n"


_PAGES: Final[dict[str, Page]] = {"whatif": _what_if_page, "audit": _audit_page}

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
