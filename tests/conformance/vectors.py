"""Writes cases with Kafka's answers into ``tests/data/vectors``, for tests without Kafka.

    python -m conformance.vectors [--seed 1]

The same seed gives the same bytes. What nobody compares is left out: Kafka's log, and requests for
brokers that nobody could reach.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from conformance import kafka_oracle, kraft_family, legacy_family, zk_family
from conformance.families import Family
from kafka_answers import VECTORS

Document = dict[str, Any]


class Suite(NamedTuple):
    """How many cases of a release: of the family's single event, and sequences of all events."""

    family: Family
    release: str
    single: int
    sequences: int

    @property
    def name(self) -> str:
        return f"oracle-{self.family.name}-{self.release.removeprefix('kraft-')}"

    def cases(self, seed: int) -> list[Document]:
        family, release = self.family, self.release
        single = [family.draw(seed, release, n, family.single) for n in range(self.single)]
        numbers = range(self.single, self.single + self.sequences)
        return single + [family.draw(seed, release, n, family.events) for n in numbers]


_NOT_COMPARED: Final = {"log", "dropped"}

SUITES: Final = (
    Suite(zk_family.FAMILY, "3.9", 800, 1_000),
    Suite(zk_family.FAMILY, "2.8", 300, 400),
    Suite(legacy_family.FAMILY, "1.0", 200, 300),
    Suite(kraft_family.FAMILY, "4.3", 60, 160),
    Suite(kraft_family.FAMILY, "4.2", 20, 60),
    Suite(kraft_family.FAMILY, "4.1", 20, 60),
    Suite(kraft_family.FAMILY, "4.0", 20, 60),
    Suite(kraft_family.FAMILY, "kraft-3.9", 20, 60),
)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Record Kafka's answers as test vectors.")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args(argv)
    try:
        for home in {suite.family.oracle for suite in SUITES}:
            kafka_oracle.build(home)
        for suite in SUITES:
            size = write(suite, arguments.seed)
            sys.stdout.write(f"{suite.name}: {suite.single + suite.sequences} cases, {size} B\n")
    except kafka_oracle.OracleError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


def write(suite: Suite, seed: int) -> int:
    """Write one suite; return its size in bytes."""
    cases = suite.cases(seed)
    with kafka_oracle.Oracle(suite.family.oracle, suite.release) as oracle:
        answers = [_compared(answer) for answer in oracle.ask_all(cases)]
    folder = VECTORS / suite.name
    folder.mkdir(parents=True, exist_ok=True)
    return _pack(folder / "cases.jsonl.gz", cases) + _pack(folder / "answers.jsonl.gz", answers)


def _compared(answer: Document) -> Document:
    """Without what nobody compares, also in the answer for the other order of sets."""
    return {
        key: _compared(value) if key == "other_order" else value
        for key, value in answer.items()
        if key not in _NOT_COMPARED
    }


def _pack(path: Path, rows: Iterable[Document]) -> int:
    """Bytes that depend on the rows alone: no time, no file name."""
    text = "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)
    path.write_bytes(gzip.compress(text.encode(), compresslevel=9, mtime=0))
    return path.stat().st_size


if __name__ == "__main__":
    sys.exit(main())
