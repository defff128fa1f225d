"""``understudy demo``: a failover over the sample cluster, then what-ifs as a page."""

from __future__ import annotations

import argparse
import io
import json
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Final

from understudy.commands import cutsets, plan_restart, replay, report, whatif
from understudy.commands.verb import JSON_SCHEMA, Verb, add_arguments
from understudy.errors import EXIT_DONE, EXIT_USAGE, UsageError

_PAGE: Final = "report.html"
_EVERY: Final = ("--every", "broker", "--every", "rack", "--every", "pair")


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", default="out/demo", metavar="DIR", help="default: out/demo")


def _run(args: argparse.Namespace) -> int:
    from understudy.session import session

    sample = next((place for place in _sample_places() if place.is_dir()), None)
    if sample is None:
        raise UsageError("the sample is in data/sample of the project: run the demo from there")
    newest = max(sample.glob("*.json"), key=lambda path: path.name)
    page = str(Path(args.out) / _PAGE)
    commands = (
        (replay.VERB, [str(sample), "--out", args.out]),
        (cutsets.VERB, [str(newest), "--out", args.out]),
        (plan_restart.VERB, ["--snapshot", str(newest), "--out", args.out]),
        (whatif.VERB, [str(newest), *_EVERY, "--out", args.out]),
        (report.VERB, [args.out, "--html", page]),
    )
    said: dict[str, str] = {}
    # A session that is there is used by every step.
    with session("understudy demo", is_short=True):
        for verb, command in commands:
            said[verb.name] = _step(verb, args, command)
            if verb is replay.VERB and not args.json:
                print(said[verb.name], flush=True)
    if args.json:
        told = {name: json.loads(answer) for name, answer in said.items()}
        print(json.dumps({"schema": JSON_SCHEMA, "verb": "demo", "exit_code": EXIT_DONE, **told}))
        return EXIT_DONE
    verdict = next(line for line in said["whatif"].splitlines() if line.startswith("Verdict"))
    print(f"What if each broker, rack or pair of brokers of {newest} failed?\n{verdict}")
    print(f"Open {page} in a browser to see what that means.")
    return EXIT_DONE


def _step(verb: Verb, args: argparse.Namespace, command: Sequence[str]) -> str:
    """What *verb* says. A verdict, however bad, is what the demo is about; a failure is not."""
    parser = argparse.ArgumentParser()
    add_arguments(verb, parser)
    shared = {"verb": verb.name, "json": args.json, "limit": args.limit, "verbose": args.verbose}
    given = parser.parse_args(command)
    vars(given).update(shared)
    with redirect_stdout(io.StringIO()) as said:
        code = verb.run(given)
    if code >= EXIT_USAGE:
        raise UsageError(f"{verb.name} failed over the sample")
    return said.getvalue()


def _sample_places() -> tuple[Path, ...]:
    return Path("data/sample"), Path(__file__).parents[3] / "data" / "sample"


VERB: Final = Verb(
    "demo",
    "Replay a failover over the sample cluster, and let brokers of it fail, as a page.",
    "understudy demo",
    _arguments,
    _run,
)
