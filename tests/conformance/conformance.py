"""Asks Apache Kafka's own controller and the replay the same questions and compares every answer.

    python -m conformance.conformance [--cases 20000] [--seed 1] [--events all|failover|TYPE,…]
        [--release RELEASE,…|zk|kraft|both|all] [--through interpreter|columns|spark|both|all]
        [--mutations]

Run with ``tests`` on the path, as ``make conformance`` does. Ends with 1 on any difference, each
shown as the smallest case that still has it.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from conformance import kafka_oracle, kraft_cases, kraft_family, legacy_family, zk_family
from conformance.comparing import Difference, shrunk
from conformance.families import Family, Tables
from conformance.mutations import survivors
from understudy.schemas import REPLAY_TABLES

Document = dict[str, Any]
Route = Callable[[Family, Collection[Document]], Iterator[Tables]]
"""One way through the product: the tables of each case, in order."""

# The releases that can be asked. To add one, name it here with its family; a new family is an
# object of ``families.Family`` in a module of its own.
RELEASES: Final[dict[str, Family]] = {
    "3.9": zk_family.FAMILY,
    "2.8": zk_family.FAMILY,
    "1.0": legacy_family.FAMILY,
    **dict.fromkeys(kraft_cases.RELEASES, kraft_family.FAMILY),
}
# Names for several of them; ``both`` are those of ZooKeeper mode, the default.
_BOTH: Final = ("3.9", "2.8")
_SEVERAL: Final = {
    "both": _BOTH,
    "zk": (*_BOTH, "1.0"),
    "kraft": kraft_cases.RELEASES,
    "all": tuple(RELEASES),
}

_MUTATION_CASES: Final = 300  # of each release and kind: single events and sequences
_CHUNK: Final = 1_000  # cases between two words of progress
_SHOWN: Final = 3
_LOGGED: Final = 12
_ALL: Final = "all"


@dataclass
class Tally:
    """What was compared on one release through one route."""

    cases: int = 0
    events: Counter[str] = field(default_factory=Counter)
    rows: Counter[str] = field(default_factory=Counter)
    differing: Counter[str] = field(default_factory=Counter)
    different: list[tuple[Document, list[Difference]]] = field(default_factory=list)
    seconds: float = 0

    def add(self, case: Document, answer: Document, found: list[Difference]) -> None:
        self.cases += 1
        self.events.update(event["type"] for event in case["scenario"]["events"])
        for table, rows in answer.items():
            if table in REPLAY_TABLES:
                self.rows[table] += len(rows)
        self.differing.update(difference.table for difference in found)
        if found:
            self.different.append((case, found))


def main(argv: Sequence[str] | None = None) -> int:
    parser = _parser()
    arguments = parser.parse_args(argv)
    _check_events(parser, arguments)
    try:
        for home in {RELEASES[release].oracle for release in arguments.release}:
            kafka_oracle.build(home)
        return _break_rules(arguments) if arguments.mutations else _compare(arguments)
    except kafka_oracle.OracleError as error:
        sys.stderr.write(f"{error}\n")
        return 1


def _compare(arguments: argparse.Namespace) -> int:
    failed = False
    with ExitStack() as open_ones:
        folder = Path(open_ones.enter_context(tempfile.TemporaryDirectory()))
        routes = _routes(arguments.through, folder, open_ones)
        for release in arguments.release:
            family = RELEASES[release]
            oracle = open_ones.enter_context(kafka_oracle.Oracle(family.oracle, release))
            cases = Drawn(family, release, arguments.seed, arguments.cases, arguments.events)
            answers = folder / f"answers-{release}.jsonl"
            sys.stdout.write(_asked(oracle, cases, answers))
            for name, route in routes.items():
                tally = _held_against(answers, family, cases, route)
                sys.stdout.write(_table(release, name, tally))
                for case, _ in tally.different[:_SHOWN]:
                    sys.stdout.write(_story(case, oracle, family, route))
                failed |= bool(tally.different)
    return 1 if failed else 0


@dataclass(frozen=True)
class Drawn:
    """The cases of a release; they are drawn again whenever somebody walks them."""

    family: Family
    release: str
    seed: int
    many: int
    events: str

    def __len__(self) -> int:
        return self.many

    def __iter__(self) -> Iterator[Document]:
        for number in range(self.many):
            yield self.family.draw(self.seed, self.release, number, self._events(number))

    def __contains__(self, case: object) -> bool:
        return any(case == drawn for drawn in self)

    def _events(self, number: int) -> Sequence[str]:
        """Of all events, every fourth case is a single one of the most usual kind.

        Those are the ones that run in the native form.
        """
        if self.events == _ALL and number % 4 == 0:
            return self.family.single
        return _drawn(self.events, self.family)


def _asked(oracle: kafka_oracle.Oracle, cases: Drawn, answers: Path) -> str:
    """Keep Kafka's answers, which are too many for the memory, a line each."""
    started = time.monotonic()
    with answers.open("w", encoding="utf-8") as kept:
        for number, line in enumerate(oracle.lines(cases), 1):
            kept.write(line)
            if number % _CHUNK == 0:
                _say(f"Kafka {oracle.release}: {number} cases")
    seconds = time.monotonic() - started
    return f"Kafka {oracle.release} answered {len(cases)} cases in {seconds:.0f} s\n\n"


def _held_against(answers: Path, family: Family, cases: Drawn, route: Route) -> Tally:
    tally = Tally()
    started = time.monotonic()
    with answers.open(encoding="utf-8") as lines:
        kafka = map(json.loads, lines)
        for case, answer, tables in zip(cases, kafka, route(family, cases), strict=True):
            tally.add(case, answer, family.differences(case, answer, tables))
    tally.seconds = time.monotonic() - started
    return tally


def _drawn(asked: str, family: Family) -> Sequence[str]:
    named = {"failover": family.single, _ALL: family.events}
    return tuple(named.get(asked) or asked.split(","))


# --- Broken rules ------------------------------------------------------------------------------


def _break_rules(arguments: argparse.Namespace) -> int:
    """Every family of the chosen releases, its releases in turn."""
    survived = 0
    for name in dict.fromkeys(RELEASES[release].name for release in arguments.release):
        own = [release for release in arguments.release if RELEASES[release].name == name]
        checks = [_checks(release, arguments.seed) for release in own]
        in_turn = [check for turn in zip(*checks, strict=True) for check in turn]
        survived += survivors(RELEASES[own[0]].mutations, in_turn)
    return 1 if survived else 0


def _checks(release: str, seed: int) -> list[Callable[[], bool]]:
    """Single events and sequences in turn, each with Kafka's answer at hand."""
    family = RELEASES[release]
    cases = [
        family.draw(seed, release, number, events)
        for number in range(_MUTATION_CASES)
        for events in (family.single, family.events)
    ]

    def check(case: Document, answer: Document) -> bool:
        return bool(family.differences(case, answer, family.interpreted(case)))

    with kafka_oracle.Oracle(family.oracle, release) as oracle:
        return [
            partial(check, case, answer)
            for case, answer in zip(cases, oracle.ask_all(cases), strict=True)
        ]


# --- The ways through the product --------------------------------------------------------------


_ROUTES: Final = ("interpreter", "columns", "spark", "both", "all")


def _routes(through: str, folder: Path, open_ones: ExitStack) -> dict[str, Route]:
    routes: dict[str, Route] = {}
    if through in {"interpreter", "both", "all"}:
        routes["interpreter"] = _through_interpreter
    if through in {"columns", "all"}:
        routes["columns"] = _in_columns
    if through in {"spark", "both", "all"}:
        routes["spark"] = _through_spark(folder, open_ones)
    return routes


def _through_interpreter(family: Family, cases: Collection[Document]) -> Iterator[Tables]:
    return (_told(family.interpreted, case) for case in cases)


def _in_columns(family: Family, cases: Collection[Document]) -> Iterator[Tables]:
    """Families without a columnar form are interpreted."""
    return (_told(family.in_columns or family.interpreted, case) for case in cases)


def _told(form: Callable[[Document], Tables], case: Document) -> Tables:
    """No rows at all where it breaks down, which differs from anything Kafka says."""
    try:
        return form(case)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is a difference to be shown
        sys.stderr.write(f"{case['snapshot']['cluster']}: {error!r}\n")
        return {table: [] for table in REPLAY_TABLES}


def _through_spark(folder: Path, open_ones: ExitStack) -> Route:
    from conformance import spark_route  # noqa: PLC0415 - only who wants Spark starts it
    from understudy.session import session  # noqa: PLC0415

    # What is known of twenty thousand clusters is more than the heap of a session by default.
    os.environ.setdefault("PYSPARK_SUBMIT_ARGS", "--driver-memory 3g pyspark-shell")
    spark = open_ones.enter_context(session("conformance"))
    return lambda _family, cases: spark_route.replayed(spark, folder, cases)


# --- What is printed ---------------------------------------------------------------------------


def _table(release: str, route: str, tally: Tally) -> str:
    events = sum(tally.events.values())
    lines = [
        f"Kafka {release}, {route}: {tally.cases} cases, {events} events, {tally.seconds:.0f} s",
        f"  {'table':20} {'rows':>10} {'cases that differ':>18}",
    ]
    lines += [
        f"  {table:20} {rows:10} {tally.differing[table]:18}" for table, rows in tally.rows.items()
    ]
    lines.append(f"  {'any':20} {sum(tally.rows.values()):10} {len(tally.different):18}")
    return "\n".join(lines) + "\n\n"


def _story(case: Document, oracle: kafka_oracle.Oracle, family: Family, route: Route) -> str:
    """A case made small, what each side says of it, and Kafka's own words."""

    def differ(candidates: Sequence[Document]) -> list[bool]:
        own = [_renamed(candidate, number) for number, candidate in enumerate(candidates)]
        answers = list(oracle.ask_all(own))
        return [
            bool(family.differences(asked, answer, tables))
            for asked, answer, tables in zip(own, answers, route(family, own), strict=True)
        ]

    small = shrunk(case, differ)
    answer = oracle.ask(small)
    (tables,) = route(family, [small])
    told = "\n".join(map(str, family.differences(small, answer, tables)))
    words = answer["log"]
    log = "\n".join(f"    {line}" for line in words[:_LOGGED])
    if len(words) > _LOGGED:
        log += f"\n    … and {len(words) - _LOGGED} more lines"
    return f"{json.dumps(small)}\n{told}\n  Kafka's log\n{log}\n\n"


def _renamed(case: Document, number: int) -> Document:
    """Candidates that are asked together need names of their own."""
    renamed = copy.deepcopy(case)
    for part in ("snapshot", "scenario"):
        renamed[part]["cluster"] = f"c{number}"
    return renamed


def _say(text: str) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\r{text}")


# --- Arguments ---------------------------------------------------------------------------------


def _check_events(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> None:
    for release in arguments.release:
        family = RELEASES[release]
        unknown = sorted(set(_drawn(arguments.events, family)) - set(family.events))
        if unknown:
            parser.error(f"Kafka {release} is asked no event called {', '.join(unknown)}")


def _releases(text: str) -> tuple[str, ...]:
    chosen = _SEVERAL.get(text) or tuple(text.split(","))
    if not set(chosen) <= RELEASES.keys():
        named = ", ".join((*RELEASES, *_SEVERAL))
        raise argparse.ArgumentTypeError(f"the releases are {named}")
    return chosen


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Hold the replay against Kafka's own controller.")
    parser.add_argument("--cases", type=int, default=20_000, help="of each release")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--events", default=_ALL, help="failover, all or types")
    parser.add_argument(
        "--release",
        type=_releases,
        default=_BOTH,
        help=f"{', '.join((*RELEASES, *_SEVERAL))} (both: the newer two of ZooKeeper mode)",
    )
    parser.add_argument("--through", choices=_ROUTES, default="all")
    parser.add_argument("--mutations", action="store_true", help="break rules: each must be caught")
    return parser


if __name__ == "__main__":
    sys.exit(main())
