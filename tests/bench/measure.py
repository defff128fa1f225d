"""What is measured, each thing a small function; one process, one Spark session per call.

A measure is a function of a :class:`Room` with ``@measure`` above it; a comparison is a line in
``COMPARISONS``. Adding one of either touches nothing else: ``bench.py`` asks for the names.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import json
import re
import shutil
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from pyspark import inheritable_thread_target
from pyspark.sql import DataFrame, SparkSession

ROOT: Final = Path(__file__).parents[2]
SEED: Final = 7
BROKERS: Final = 200
DEAD: Final = 5
REPLICATION: Final = 3
# The first run compiles, and the next ones still do, ever less: of the CPU time of a replay of
# 100,000 partitions three quarters in the first run, and still a quarter in the twentieth. What is
# compiled does not depend on how many partitions there are, so a measure is warmed up over fewer,
# up to so often; after so many seconds no other one begins. Then it is taken so often at its own
# size before it counts.
WARMING_PARTITIONS: Final = 100_000
WARM_UPS: Final = 25
WARMED_UP: Final = 100
WARM_UPS_AT_SIZE: Final = 3


@dataclass(frozen=True)
class Comparison:
    """One measure over another, both repeated in turn in the same session."""

    measure: str
    against: str
    at_most: float | None = None
    at_least: float | None = None
    up_to: int | None = None  # partitions


# What questions about failures are held against, over a snapshot with as many brokers as this, all
# of them alive: who asks what may fail looks at a cluster that is well.
MANY_BROKERS: Final = 1_000
FEW_BROKERS: Final = 100
QUESTIONS: Final = (
    Comparison("every_broker", "replay", at_most=3),
    Comparison("every_pair", "scan_and_group"),
    Comparison("cut_sets_by_rack", "scan_and_group", at_most=2),
    Comparison("cut_pairs", "scan_and_group", at_most=2),
    Comparison("cut_sets", "scan_and_group"),
    Comparison("ok_to_stop", "scan", at_most=1.5),
    Comparison("restart_plan", "scan_and_group"),
)

COMPARISONS: Final = (
    Comparison("replay", "copy", at_most=1.5),
    Comparison("interpreted", "replay", at_least=3, up_to=100_000),
    Comparison("single_failures", "replay", up_to=1_000_000),
    Comparison("single_failures_interpreted", "single_failures", at_least=3, up_to=100_000),
)


@dataclass
class Room:
    """Where one measurement works: its session, its input and directories to throw away."""

    spark: SparkSession
    store: str
    scratch: Path
    made: list[Path] = field(default_factory=list)
    absent: list[int] = field(default_factory=list)
    touched: dict[str, int] = field(default_factory=dict)  # partition-events, by measure

    def fresh(self, name: str) -> str:
        path = self.scratch / f"{name}-{len(self.made)}"
        self.made.append(path)
        return str(path)

    def published(self, name: str, publish: Callable[[str], None]) -> Path:
        """What *publish* published, once for all rounds."""
        path = self.scratch / f"published-{name}"
        if not path.exists():
            publish(str(path))
        return path

    def away(self) -> list[int]:
        """The brokers of the store that are not alive."""
        if not self.absent:
            with _opened(self) as snapshots:
                rows = snapshots.brokers.where("NOT alive").collect()
                self.absent = sorted(row.broker_id for row in rows)
        return self.absent

    def clean(self) -> None:
        for path in self.made:
            shutil.rmtree(path, ignore_errors=True)


Work = Callable[[Room], None]
MEASURES: Final[dict[str, Work]] = {}


def measure(work: Work) -> Work:
    MEASURES[work.__name__] = work
    return work


@measure
def replay(room: Room) -> None:
    """Read a store, replay the failover of its controller, publish every table."""
    _replay(room.spark, room.store, room.fresh("replay"))


@measure
def copy(room: Room) -> None:
    """Read the tables such a replay published and write them again, as many at once."""
    _copy(room, room.published("replay", lambda out: _replay(room.spark, room.store, out)))


def _copy(room: Room, source: Path) -> None:
    from understudy.publish import WRITERS  # noqa: PLC0415 - loaded by those who need it

    target = room.fresh("copy")

    def write(name: str) -> None:
        table = room.spark.read.parquet(*map(str, (source / name).glob("run=*")))
        table.write.option("compression", "zstd").parquet(f"{target}/{name}")

    tables = [path.name for path in source.iterdir() if path.name != "verdicts"]
    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(inheritable_thread_target(room.spark)(write), tables))


@measure
def interpreted(room: Room) -> None:
    """The same replay as ``replay``, through the interpreter."""
    with _only_interpreters():
        _replay(room.spark, room.store, room.fresh("interpreted"))


@contextlib.contextmanager
def _only_interpreters() -> Iterator[None]:
    from understudy import replay as replaying  # noqa: PLC0415
    from understudy.controller.columnar import feed as columnar  # noqa: PLC0415

    # The one place that chooses the engine.
    chosen = replaying._native_kinds, replaying._has_fences  # noqa: SLF001
    at_once = columnar.SNAPSHOTS_AT_ONCE
    replaying._native_kinds = lambda asked: ()  # noqa: ARG005, SLF001
    replaying._has_fences = lambda asked: False  # noqa: ARG005, SLF001
    columnar.SNAPSHOTS_AT_ONCE = 0
    try:
        yield
    finally:
        replaying._native_kinds, replaying._has_fences = chosen  # noqa: SLF001
        columnar.SNAPSHOTS_AT_ONCE = at_once


@measure
def single_failures(room: Room) -> None:
    """Every broker of the store fails once, each in a scenario of its own; what changed."""
    _failures(BROKERS, 1)(room)


@measure
def single_failures_interpreted(room: Room) -> None:
    """The same as ``single_failures``, through the interpreter."""
    with _only_interpreters():
        single_failures(room)


# --- Questions about failures ----------------------------------------------------------------


def _drop(table: DataFrame) -> None:
    """Compute every row and column, and let go of them."""
    table.write.format("noop").mode("overwrite").save()


@contextlib.contextmanager
def _opened(room: Room) -> Iterator[Any]:
    """The one snapshot of the store, as a verb opens it."""
    from understudy import sources  # noqa: PLC0415

    snapshots = sources.read(room.spark, [room.store]).one()
    try:
        yield snapshots
    finally:
        snapshots.close()


@measure
def scan(room: Room) -> None:
    """Open the store and read every column of every partition."""
    with _opened(room) as snapshots:
        _drop(snapshots.partitions)


@measure
def scan_and_group(room: Room) -> None:
    """Read every column of every partition, and count which three brokers share how many."""
    with _opened(room) as snapshots:
        _drop(snapshots.partitions)
        _drop(
            snapshots.partitions.selectExpr("cluster", "snapshot_id", "sort_array(replicas) AS set")
            .groupBy("cluster", "snapshot_id", "set")
            .count()
        )


@measure
def ok_to_stop(room: Room) -> None:
    """May these three brokers be stopped: the verb from its arguments to its answer."""
    _verb("ok-to-stop", "3", "4", "5", "--snapshot", room.store, "--json")


@measure
def restart_plan(room: Room) -> None:
    """Rounds for a restart of every broker, and the moves that would save some."""
    _verb("plan-restart", "--snapshot", room.store, "--ignore-unsavable", "--json")


_ANSWERED: Final = (0, 2, 3, 4)


def _verb(*arguments: str) -> None:
    from understudy import cli  # noqa: PLC0415

    with contextlib.redirect_stdout(io.StringIO()):
        code = cli.main(list(arguments))
    if code not in _ANSWERED:
        raise RuntimeError(f"understudy {' '.join(arguments)} exited with {code}")


@measure
def cut_sets(room: Room) -> None:
    """Every minimal set of brokers, of whatever size, for both risks."""
    _cut_sets(room)


@measure
def cut_pairs(room: Room) -> None:
    """Every minimal set of one or two brokers, for both risks: all failures of pairs at once."""
    _cut_sets(room, largest=2)


@measure
def cut_sets_by_rack(room: Room) -> None:
    """Every minimal set of racks: all failures of racks at once."""
    _cut_sets(room, by_rack=True)


def _cut_sets(room: Room, *, by_rack: bool = False, largest: int | None = None) -> None:
    from understudy.questions.cut_sets import cuts, sets  # noqa: PLC0415

    with _opened(room) as snapshots:
        units = sets.racks(snapshots.brokers) if by_rack else None
        partitions = sets.weighed(cuts.thresholds(snapshots))
        _drop(sets.cut_sets_of_all(partitions, units, largest=largest))


@measure
def every_pair(room: Room) -> None:
    """The impact of every two brokers failing together."""
    from understudy.questions.what_if.before import before  # noqa: PLC0415
    from understudy.questions.what_if.pair_failures import impact_of_pairs  # noqa: PLC0415

    with _opened(room) as snapshots:
        partitions = before(snapshots).persist()
        try:
            _drop(impact_of_pairs(snapshots, partitions))
        finally:
            partitions.unpersist()


@measure
def every_broker(room: Room) -> None:
    """Each broker fails once: what changes, for whom and how bad, published."""
    _verb("whatif", room.store, "--every", "broker", "--out", room.fresh("every-broker"), "--json")


def _failures(scenarios: int, events: int) -> Work:
    """Replays of so many scenarios, each so many broker failures; touched partitions only."""

    def work(room: Room) -> None:
        out = room.fresh("failures")
        _replay_events(room, "broker_failure", _failing(scenarios, events), out)
        # Counted once, while warming up.
        name = f"failures-{scenarios}x{events}"
        if name not in room.touched:
            room.touched[name] = _partition_events(room.spark, out)

    return work


def _failing(scenarios: int, events: int) -> list[list[int]]:
    """The brokers that fail in each scenario, one after the other."""
    return [
        [(number + event) % BROKERS + 1 for event in range(events)] for number in range(scenarios)
    ]


def _startups(scenarios: int) -> Work:
    """Replays of so many scenarios, in each of which a broker that was away starts."""

    def work(room: Room) -> None:
        away = room.away()
        started = [[away[number % len(away)]] for number in range(scenarios)]
        _replay_events(room, "broker_startup", started, room.fresh("startups"))

    return work


def _interpreted(work: Work) -> Work:
    """The same, through the interpreter."""

    def interpreting(room: Room) -> None:
        with _only_interpreters():
            work(room)

    return interpreting


def _partition_events(spark: SparkSession, out: str) -> int:
    """How often an event moved, or tried to move, the state of a partition or of its replicas."""
    import understudy  # noqa: PLC0415

    moved = understudy.read(spark, out, "transitions")
    return moved.select("scenario", "event", "topic", "partition").distinct().count()


def _replay_events(room: Room, kind: str, scenarios: Sequence[Sequence[int]], out: str) -> None:
    """One event of this kind for each broker of a scenario; what changed is published."""
    from understudy.scenarios import Scenario  # noqa: PLC0415

    asked = [
        Scenario(
            f"s{number}",
            None,
            None,
            tuple(json.dumps({"brokers": [broker], "type": kind}) for broker in brokers),
        )
        for number, brokers in enumerate(scenarios)
    ]
    _replay(room.spark, room.store, out, asked)


# Scenarios and events of each: what the cost of sequences is measured with.
SEQUENCES: Final = ((10, 1), (100, 1), (1_000, 1), (100, 8))
for _shape_of in SEQUENCES:
    _name = f"failures-{_shape_of[0]}x{_shape_of[1]}"
    MEASURES[_name] = _failures(*_shape_of)
# Single start-ups, each of which tells a broker of every partition.
STARTUPS: Final = (1, 20)
for _count in (*STARTUPS, 200):
    MEASURES[f"startups-{_count}"] = _startups(_count)
    MEASURES[f"startups-{_count}-interpreted"] = _interpreted(_startups(_count))


def _replay(spark: SparkSession, store: str, out: str, asked: Sequence[Any] = ()) -> None:
    from understudy import publish  # noqa: PLC0415 - a bare session must not pay for these

    with _decided(spark, store, asked) as (input_digest, tables):
        run = publish.Run.start(
            "replay", input_digest=input_digest, config_digest=publish.digest({})
        )
        publish.publish(spark, out, run, tables, verdict="none")


@contextlib.contextmanager
def _decided(
    spark: SparkSession, store: str, asked: Sequence[Any] = ()
) -> Iterator[tuple[str, Mapping[str, DataFrame]]]:
    """The digest of a store and the tables of its replay, before anything is written."""
    from understudy import replay as replaying  # noqa: PLC0415
    from understudy import scenarios, sources  # noqa: PLC0415

    snapshots = sources.read(spark, [store])
    try:
        decided = replaying.replay(
            snapshots, asked or [scenarios.FAILOVER], changed_only=bool(asked)
        )
        try:
            yield snapshots.input_digest, decided.tables.beside(decided.refused)
        finally:
            decided.close()
    finally:
        snapshots.close()


# --- What one process does -------------------------------------------------------------------


@dataclass(frozen=True)
class Take:
    """A measure at a size, written ``replay@100000`` or, with so many brokers, ``…x1000``."""

    name: str
    partitions: int
    brokers: int = BROKERS

    @classmethod
    def parse(cls, text: str) -> Take:
        name, _, size = text.partition("@")
        if name not in MEASURES:
            raise argparse.ArgumentTypeError(f"no measure is called {name}; see list")
        partitions, _, brokers = size.partition("x")
        return cls(name, int(partitions), int(brokers or BROKERS))

    @property
    def shape(self) -> tuple[int, int]:
        return self.partitions, self.brokers

    def warming(self) -> Take:
        """The same over as few partitions as it is warmed up with."""
        return replace(self, partitions=min(self.partitions, WARMING_PARTITIONS))

    def __str__(self) -> str:
        brokers = "" if self.brokers == BROKERS else f"x{self.brokers}"
        return f"{self.name}@{self.partitions}{brokers}"


def repeat(takes: Sequence[Take], rounds: int, home: Path) -> dict[str, Any]:
    """Seconds of every take, warmed up first, then taken in turn so that drift hits all alike."""
    scratch = home / "scratch"
    shutil.rmtree(scratch, ignore_errors=True)
    seconds: dict[str, list[float]] = {str(take): [] for take in takes}
    for take in takes:
        for each in (take, take.warming()):
            make_store(home, partitions=each.partitions, brokers=each.brokers, snapshots=1)
    with _session() as spark:

        def room(take: Take) -> Room:
            store = store_path(home, take.partitions, take.brokers)
            return Room(spark, str(store), scratch / f"{take.partitions}x{take.brokers}")

        rooms = {take.shape: room(take) for each in takes for take in (each.warming(), each)}
        try:
            for take in takes:
                _warm_up(take, rooms)
            for _ in range(rounds):
                for take in takes:
                    seconds[str(take)].append(_timed(take, rooms[take.shape], "round"))
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
    return {
        str(take): {
            **summary(seconds[str(take)]),
            "touched": rooms[take.shape].touched.get(take.name),
        }
        for take in takes
    }


def _warm_up(take: Take, rooms: Mapping[tuple[int, int], Room]) -> None:
    until = time.perf_counter() + WARMED_UP
    smaller = take.warming()
    for _ in range(WARM_UPS):
        _timed(smaller, rooms[smaller.shape], "warm-up")
        if time.perf_counter() >= until:
            break
    for _ in range(WARM_UPS_AT_SIZE):
        _timed(take, rooms[take.shape], "warm-up")


def summary(seconds: Sequence[float]) -> dict[str, Any]:
    return {"best": min(seconds), "median": statistics.median(seconds), "all": list(seconds)}


def store_path(home: Path, partitions: int, brokers: int = BROKERS, snapshots: int = 1) -> Path:
    shape = f"{brokers}-brokers-{_dead(brokers)}-dead-{snapshots}-snapshots"
    return home / f"store-{partitions}x{REPLICATION}-{shape}"


def _dead(brokers: int) -> int:
    return 0 if brokers in (FEW_BROKERS, MANY_BROKERS) else min(DEAD, brokers // 2)


def make_store(home: Path, *, partitions: int, brokers: int, snapshots: int) -> None:
    """A store of this size, made on first use and kept: the generator is deterministic."""
    path = store_path(home, partitions, brokers, snapshots)
    if (path / "runs").exists():
        return
    _say(f"generating {path.name}")
    shutil.rmtree(path, ignore_errors=True)
    with _session() as spark:
        _synthetic().write_store(
            spark,
            str(path),
            partitions=partitions,
            brokers=brokers,
            dead=_dead(brokers),
            rf=REPLICATION,
            seed=SEED,
            snapshots=snapshots,
        )


def plan(home: Path, *, partitions: int, brokers: int, snapshots: int) -> dict[str, Any]:
    """Size of each table's optimized plan."""
    store = store_path(home, partitions, brokers, snapshots)
    with _session() as spark:
        spark.conf.set("spark.sql.debug.maxToStringFields", "100000")
        with _decided(spark, str(store)) as (_, tables):
            return {name: plan_size(table) for name, table in tables.items()}


# What tells one store or one session from another without being part of the plan: places,
# digests, expression ids and numbers.
_INCIDENTAL: Final = re.compile(r"(file:)?/[^\s,\]]+|[0-9a-f-]{8,}|\d+")


def plan_size(table: DataFrame) -> dict[str, int]:
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        table.explain(mode="extended")
    _, after = text.getvalue().split("== Optimized Logical Plan ==")
    lines = [line for line in after.split("== Physical Plan ==")[0].splitlines() if line.strip()]
    return {"nodes": len(lines), "characters": len(_INCIDENTAL.sub("_", "\n".join(lines)))}


def bare(source: Path, target: Path) -> None:
    """The least a Spark program can do: a session that reads one file and writes one."""
    spark = SparkSession.builder.appName("bare").getOrCreate()
    spark.read.text(str(source), wholetext=True).write.parquet(str(target))
    spark.stop()


def _timed(take: Take, room: Room, what: str) -> float:
    start = time.perf_counter()
    MEASURES[take.name](room)
    taken = time.perf_counter() - start
    room.clean()
    _say(f"{take}, {what}: {taken:.2f} s")
    return taken


@contextlib.contextmanager
def _session() -> Iterator[SparkSession]:
    from understudy.session import session  # noqa: PLC0415 - a bare session must not pay for it

    with session("understudy bench") as spark:
        yield spark


def _synthetic() -> Any:  # noqa: ANN401 - a script's module, not a package's
    sys.path.insert(0, str(ROOT / "data"))
    return importlib.import_module("synthetic")


def _say(text: str) -> None:
    sys.stderr.write(f"bench: {text}\n")
    sys.stderr.flush()


def main(argv: Sequence[str] | None = None) -> int:
    arguments = _parser().parse_args(argv)
    match arguments.what:
        case "list":
            told = {
                "comparisons": [asdict(each) for each in COMPARISONS],
                "questions": [asdict(each) for each in QUESTIONS],
                "brokers": [FEW_BROKERS, MANY_BROKERS],
                "sequences": SEQUENCES,
                "startups": STARTUPS,
            }
            json.dump(told, sys.stdout)
        case "bare":
            bare(arguments.source, arguments.target)
        case "store":
            make_store(arguments.home, **_shape(arguments))
        case "plan":
            _tell(arguments.result, plan(arguments.home, **_shape(arguments)))
        case "repeat":
            _tell(arguments.result, repeat(arguments.takes, arguments.rounds, arguments.home))
    return 0


def _shape(arguments: argparse.Namespace) -> dict[str, int]:
    return {name: getattr(arguments, name) for name in ("partitions", "brokers", "snapshots")}


def _tell(path: Path, result: dict[str, Any]) -> None:
    path.write_text(json.dumps(result), encoding="utf-8")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    what = parser.add_subparsers(dest="what", required=True)
    what.add_parser("list", help="what can be measured, as JSON")
    store = what.add_parser("store", help="make the store of this shape unless it is there")
    plans = what.add_parser("plan", help="the size of every table's plan over such a store")
    for one in (store, plans):
        one.add_argument("--partitions", type=int, required=True)
        one.add_argument("--brokers", type=int, default=BROKERS)
        one.add_argument("--snapshots", type=int, default=1)
    repeated = what.add_parser("repeat", help="seconds of these measures, in turn")
    repeated.add_argument("takes", nargs="+", type=Take.parse, metavar="MEASURE@PARTITIONS")
    repeated.add_argument("--rounds", type=int, required=True)
    for one in (store, plans, repeated):
        one.add_argument("--home", type=Path, required=True)
    for one in (plans, repeated):
        one.add_argument("--result", type=Path, required=True)
    least = what.add_parser("bare", help="read one file, write one file")
    least.add_argument("source", type=Path)
    least.add_argument("target", type=Path)
    return parser


if __name__ == "__main__":
    sys.exit(main())
