"""Writes cases with Kafka's answers into ``tests/data/vectors``, for tests without Kafka.

    python -m conformance.vectors [--seed 1]

The same seed gives the same bytes. Kafka's log is left out: nobody compares it.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from conformance import kafka_oracle
from conformance.zk_family import FAMILY
from kafka_answers import VECTORS

Document = dict[str, Any]


class Suite(NamedTuple):
    """How many cases of a release: single failovers, and sequences of all events."""

    release: str
    failovers: int
    sequences: int

    @property
    def name(self) -> str:
        return f"oracle-zk-{self.release}"


SUITES: Final = (Suite("3.9", 1_000, 1_200), Suite("2.8", 400, 500))


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Record Kafka's answers as test vectors.")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args(argv)
    try:
        kafka_oracle.build(FAMILY.oracle)
        for suite in SUITES:
            size = write(suite, arguments.seed)
            sys.stdout.write(f"{suite.name}: {suite.failovers + suite.sequences} cases, {size} B\n")
    except kafka_oracle.OracleError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


def write(suite: Suite, seed: int) -> int:
    """Write one suite; return its size in bytes."""
    cases = [FAMILY.draw(seed, suite.release, n, FAMILY.single) for n in range(suite.failovers)]
    cases += [
        FAMILY.draw(seed, suite.release, suite.failovers + n, FAMILY.events)
        for n in range(suite.sequences)
    ]
    with kafka_oracle.Oracle(FAMILY.oracle, suite.release) as oracle:
        answers = [_without_log(answer) for answer in oracle.ask_all(cases)]
    folder = VECTORS / suite.name
    folder.mkdir(parents=True, exist_ok=True)
    return _pack(folder / "cases.jsonl.gz", cases) + _pack(folder / "answers.jsonl.gz", answers)


def _without_log(answer: Document) -> Document:
    return {key: value for key, value in answer.items() if key != "log"}


def _pack(path: Path, rows: Iterable[Document]) -> int:
    """Bytes that depend on the rows alone: no time, no file name."""
    text = "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)
    path.write_bytes(gzip.compress(text.encode(), compresslevel=9, mtime=0))
    return path.stat().st_size


if __name__ == "__main__":
    sys.exit(main())
