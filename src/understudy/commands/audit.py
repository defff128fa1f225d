"""``understudy audit``: do snapshots, and what happened between them, follow the rules."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from understudy.commands import report
from understudy.commands.verb import (
    JSON_SCHEMA,
    Verb,
    answer,
    nothing_good,
    paths_argument,
    regex,
    running,
)
from understudy.errors import (
    EXIT_BAD_INPUT,
    EXIT_CANNOT_DECIDE,
    EXIT_DONE,
    EXIT_FAILS,
    EXIT_WARNINGS,
    BadInputError,
    UsageError,
    worst,
)
from understudy.moments import micros, moment

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from understudy.auditing import Asked, Given, Standing
    from understudy.questions.audit.rule_set import RuleSet

_UNFINISHED: Final = {
    "exit_code": EXIT_CANNOT_DECIDE,
    "verdict": "cannot-decide",
    "reason": "the audit has not finished",
}
_EXIT_CODES: Final = {
    "fails": EXIT_FAILS,
    "cannot-decide": EXIT_CANNOT_DECIDE,
    "warnings": EXIT_WARNINGS,
    "holds": EXIT_DONE,
}


def _arguments(parser: argparse.ArgumentParser) -> None:
    paths_argument(parser)
    parser.add_argument("--out", required=True, metavar="DIR", help="where the tables go")
    parser.add_argument("--rules", metavar="FILE", help="TOML: choose, tune and silence rules")
    parser.add_argument("--since", metavar="T", help="snapshots from then on: a time, or like 24h")
    parser.add_argument("--until", metavar="T", help="snapshots before then: a time, or like 1h")
    parser.add_argument("--force", action="store_true", help="judge again what is judged already")
    parser.add_argument(
        "--topic", type=regex, metavar="REGEX", help="sum up these topics only; all are judged"
    )
    parser.add_argument("--verdict", metavar="FILE", help="write the JSON answer there, too")
    parser.add_argument(
        "--prometheus", metavar="FILE", help="write metrics of the newest snapshots there"
    )
    report.html_argument(parser)


def _run(args: argparse.Namespace) -> int:
    from understudy import auditing
    from understudy.report import audit_text, files, prometheus

    now = datetime.now(UTC)
    since, until = (None if t is None else micros(moment(t, now)) for t in (args.since, args.until))
    if since is not None and until is not None and since >= until:
        raise UsageError(f"--since {args.since} is not before --until {args.until}")
    if args.verdict is not None:
        # An audit that dies must not leave the verdict of the one before it.
        files.write_whole(args.verdict, _as_json(_UNFINISHED))
    with running("understudy audit", args, reads=[*args.paths, args.rules]) as (spark, progress):
        progress.doing("reading")
        asked = auditing.Asked(_rules(spark, args.rules), since, until)
        given = auditing.look(spark, args.paths)
        try:
            refused = _refused(given, args.limit)
            if not given.stored and given.read is not None:
                raise nothing_good(given.read.quarantine, args.limit)
            done = auditing.run(
                spark, given, args.out, asked, now=now, force=args.force, progress=progress
            )
        finally:
            given.close()
        progress.doing("summing up")
        told: dict[str, Any] = {
            "run_id": done.run_id,
            "root": args.out,
            "judged_now": done.judged,
            "tables": dict(done.row_counts),
            "verdict": done.standing.verdict,
            **asdict(done.standing),
            "clusters": list(done.clusters),
            **audit_text.gather(
                spark, args.out, done.clusters, asked, topic=args.topic, limit=args.limit
            ),
            "expired_silences": [silence.told() for silence in asked.rules.expired(now)],
            "notes": _notes(done.standing, asked),
            "quarantine": refused,
        }
        if args.prometheus is not None:
            text = prometheus.metrics(spark, args.out, clusters=done.clusters, now=now)
            files.write_whole(args.prometheus, text)
        if args.html is not None:
            report.write(spark, args, args.out, jobs=[auditing.JOB])
    code = _EXIT_CODES[done.standing.verdict]
    if args.verdict is not None:
        code_told = worst(code, EXIT_BAD_INPUT if refused["count"] else EXIT_DONE)
        files.write_whole(args.verdict, _as_json({"exit_code": code_told, **told}))
    return answer(args, told, audit_text.as_text, code=code)


def _as_json(told: dict[str, Any]) -> str:
    return json.dumps({"schema": JSON_SCHEMA, "verb": "audit", **told}) + "\n"


def _rules(spark: SparkSession, path: str | None) -> RuleSet:
    from understudy.questions.audit import rule_set
    from understudy.sources import documents

    if path is None:
        return rule_set.RuleSet()
    found = documents.fetched(spark, path)
    data = found[0][1] if len(found) == 1 else None
    if data is None:
        raise BadInputError(f"{path}: expected one file of rules, found {len(found)}")
    try:
        content = data.decode()
    except UnicodeDecodeError as error:
        raise BadInputError(f"{path}: not UTF-8: {error}") from None
    return rule_set.parse(content, path)


def _refused(given: Given, limit: int) -> dict[str, Any]:
    """What was refused of documents; a store told of it when it was loaded."""
    from understudy.report import summary

    if given.read is None:
        return {"count": 0, "first": []}
    count, first = summary.first_rows(given.read.quarantine, ["source", "position"], limit)
    return {"count": count, "first": first}


def _notes(standing: Standing, asked: Asked) -> list[str]:
    from understudy.questions.audit.rule_set import CATALOGUE

    notes = []
    if not standing.snapshots:
        notes.append("no snapshot was taken in that time; intervals are those of all times")
    if len(asked.rules.rules) < len(CATALOGUE):
        notes.append(f"{len(asked.rules.rules)} of {len(CATALOGUE)} rules were asked for")
    return notes


VERB: Final = Verb(
    "audit",
    "Hold snapshots, and what happened between them, against the rules.",
    "understudy audit store --out audit --rules rules.toml --since 24h",
    _arguments,
    _run,
    more="""
What is judged already, under the same rules, is not judged again. docs/audit.md lists the rules.
Exit codes: 0 all hold, 4 warnings, 2 errors, 3 cannot decide.""",
)
