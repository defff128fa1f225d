"""``understudy demo``: a controller failover over the sample cluster."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from understudy.commands import replay
from understudy.commands.verb import Verb, add_arguments
from understudy.errors import UsageError


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", default="out/demo", metavar="DIR", help="default: out/demo")


def _run(args: argparse.Namespace) -> int:
    sample = next((place for place in _sample_places() if place.is_dir()), None)
    if sample is None:
        raise UsageError("the sample is in data/sample of the project: run the demo from there")
    parser = argparse.ArgumentParser()
    add_arguments(replay.VERB, parser)
    command = parser.parse_args([str(sample), "--out", args.out], args)
    return replay.VERB.run(command)


def _sample_places() -> tuple[Path, ...]:
    return Path("data/sample"), Path(__file__).parents[3] / "data" / "sample"


VERB: Final = Verb(
    "demo",
    "Replay a controller failover over the sample cluster.",
    "understudy demo",
    _arguments,
    _run,
)
