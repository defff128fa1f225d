"""The ``understudy`` command: arguments in, one verb run, an answer and an exit code out.

A verb is one module of ``commands``. Whatever goes wrong is one clear message on standard error,
or one JSON object on standard output with ``--json``; a stack trace only with
``UNDERSTUDY_DEBUG=1``.
"""

from __future__ import annotations

import argparse
import difflib
import json
import os
import sys
import traceback
from collections.abc import Sequence
from typing import Final, NoReturn

from understudy import __version__
from understudy.commands import (
    audit,
    capture,
    compare,
    cutsets,
    demo,
    diff,
    explain,
    load,
    ok_to_stop,
    plan_restart,
    replay,
    report,
    runs,
    whatif,
)
from understudy.commands.verb import JSON_SCHEMA, add_arguments
from understudy.errors import (
    EXIT_BAD_INPUT,
    EXIT_DONE,
    EXIT_INTERNAL,
    EXIT_USAGE,
    UnderstudyError,
    UsageError,
)

EXIT_INTERRUPTED: Final = 130
_NO_SPARK: Final = "PySpark 4.3 or newer is needed: pip install 'understudy[spark]'"

VERBS: Final = (
    load.VERB,
    replay.VERB,
    whatif.VERB,
    compare.VERB,
    audit.VERB,
    cutsets.VERB,
    ok_to_stop.VERB,
    plan_restart.VERB,
    diff.VERB,
    explain.VERB,
    report.VERB,
    runs.VERB,
    capture.VERB,
    demo.VERB,
)


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


class _VerbParser(_Parser):
    """Says what it does not know along with what it misses: often the one is meant as the other."""

    def parse_known_args(  # type: ignore[override]  # the overloads come to this
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        self._unknown = [
            name
            for name in (text.partition("=")[0] for text in args or ())
            if name.startswith("--") and name != "--" and name not in self._option_string_actions
        ]
        found, left = super().parse_known_args(args, namespace)
        if left:
            self.error(f"unrecognized arguments: {' '.join(left)}")
        return found, left

    def error(self, message: str) -> NoReturn:
        super().error("\n".join([message, *map(self._not_an_option, self._unknown)]))

    def _not_an_option(self, name: str) -> str:
        near = difflib.get_close_matches(name, self._option_string_actions, n=1)
        return f"{name} is not an option" + "".join(f"; did you mean {option}?" for option in near)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="understudy",
        description="Replays the Apache Kafka controller over snapshots of a cluster, on Spark.",
        epilog="understudy VERB --help says more. Exit codes: 0 done, 2 to 4 an answer that is not "
        "yes, 64 usage, 65 bad input, 70 internal error, 130 interrupted.",
    )
    parser.add_argument("--version", action="version", version=f"understudy {__version__}")
    verbs = parser.add_subparsers(
        dest="verb", metavar="VERB", required=True, parser_class=_VerbParser
    )
    for verb in VERBS:
        sub = verbs.add_parser(
            verb.name,
            help=verb.help,
            description=verb.help,
            epilog=f"example:\n  {verb.example}\n{verb.more}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        add_arguments(verb, sub)
        sub.set_defaults(run=verb.run)
    return parser
