"""Runs every measurement in a process of its own and prints the ratios in one table.

    python tests/bench/bench.py [--partitions 100000,1000000] [--full] [--rounds 3] [--only PART]

Absolute seconds say little about another machine; ratios taken in one run do. Nothing here fails a
build: a target that is missed is said so in the table. Stores are kept under ``out/bench``.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[2]
MEASURE: Final = Path(__file__).with_name("measure.py")
HOME: Final = ROOT / "out" / "bench"
SAMPLE: Final = ROOT / "data" / "sample"
UNDERSTUDY: Final = Path(sys.executable).with_name("understudy")

HEAP: Final = "2g"
SMALL_HEAP: Final = "1g"
CORES: Final = 2
OVERHEAD_PARTITIONS: Final = 1_000  # so few that the time is all overhead
FULL_PARTITIONS: Final = 5_000_000
SEQUENCE_PARTITIONS: Final = 100_000
SEQUENCE_RATE: Final = 500_000
MANY: Final = 1_000
FEW: Final = 100  # below that, overhead is most of it
FLAT: Final = 1.2
KAFKAS_PACE: Final = 8
SMALL: Final = 1.5
HALF: Final = 0.5
MORE_CORES: Final = 1.4  # of two, on a machine whose JVM wants some of them, too
MORE: Final = 0.1  # of an audit of ten snapshots, for one more
HISTORY: Final = (2_000, (10, 100, 1_000))  # partitions, snapshots
LARGE_HISTORY: Final = (100_000, (10,))
FULL_HISTORY: Final = (100_000, (10, 100, 1_000))
PARTS: Final = (
    *("throughput", "scaling", "sequences", "heap", "questions", "small"),
    *("plans", "audits", "pace", "kraft", "readers"),
)


@dataclass(frozen=True)
class Line:
    """One row of the table; *holds* is None where there is nothing to hold."""

    what: str
    size: str
    value: str
    target: str
    holds: bool | None
    detail: str


class MeasurementFailedError(Exception):
    """A measuring process ended badly; its own words are on stderr."""


def main(argv: Sequence[str] | None = None) -> int:
    arguments = _parser().parse_args(argv)
    sizes = [*arguments.partitions, *([FULL_PARTITIONS] if arguments.full else [])]
    HOME.mkdir(parents=True, exist_ok=True)
    parts: dict[str, Callable[[], list[Line]]] = {
        "throughput": lambda: throughput(sizes, arguments.rounds),
        "scaling": lambda: scaling(sizes, arguments.rounds),
        "sequences": lambda: sequences(arguments.rounds),
        "heap": small_heap,
        "questions": lambda: questions(max(arguments.partitions), arguments.rounds),
        "small": lambda: small(arguments.rounds),
        "plans": plans,
        "audits": lambda: audits(full=arguments.full),
        "pace": lambda: pace(sizes, arguments.rounds),
        "kraft": lambda: kraft(sizes, arguments.rounds),
        "readers": lambda: readers(arguments.rounds),
    }
    lines: list[Line] = []
    failed = False
    for name, part in parts.items():
        if arguments.only in (None, name):
            try:
                lines += part()
            except MeasurementFailedError as error:
                failed = True
                lines.append(Line(name, "", "failed", "", None, str(error)))
    result = HOME / "result.json"
    result.write_text(json.dumps([asdict(line) for line in lines], indent=1), encoding="utf-8")
    sys.stdout.write(table(lines))
    return 1 if failed else 0


def throughput(sizes: Sequence[int], rounds: int) -> list[Line]:
    """Every comparison at every size."""
    every = json.loads(_run("list", capture=True))["comparisons"]
    lines = []
    for size in sizes:
        comparisons = [c for c in every if c["up_to"] is None or size <= c["up_to"]]
        names = sorted({c["measure"] for c in comparisons} | {c["against"] for c in comparisons})
        taken = _repeated([f"{name}@{size}" for name in names], rounds)
        lines += [_compared(comparison, taken, size) for comparison in comparisons]
    return lines


def _compared(
    comparison: dict[str, Any], taken: dict[str, Any], size: int, shape: str = ""
) -> Line:
    """*shape* is that of the store where it is not the usual one."""
    measured = taken[f"{comparison['measure']}@{size}{shape}"]
    against = taken[f"{comparison['against']}@{size}{shape}"]
    at_most, at_least = comparison["at_most"], comparison["at_least"]
    ratio = measured["best"] / against["best"]
    target, holds = "", None
    if at_most is not None:
        target, holds = f"<= {at_most}x", ratio <= at_most
    elif at_least is not None:
        target, holds = f">= {at_least}x", ratio >= at_least
    return Line(
        what=f"{comparison['measure']} / {comparison['against']}",
        size=f"{size:,}",
        value=f"{ratio:.2f}x",
        target=target,
        holds=holds,
        detail=_both(measured, against),
    )


def questions(size: int, rounds: int) -> list[Line]:
    """Questions about failures over many brokers, and what ten times the brokers cost."""
    told = json.loads(_run("list", capture=True))
    few, many = told["brokers"]
    comparisons = told["questions"]
    names = list(dict.fromkeys(c[side] for c in comparisons for side in ("against", "measure")))
    best: dict[int, dict[str, Any]] = {}
    for brokers in (few, many):
        takes = [f"{name}@{size}x{brokers}" for name in names]
        best[brokers] = _result("repeat", *takes, "--rounds", str(rounds))
    lines = [_compared(each, best[many], size, f"x{many}") for each in comparisons]
    for name in names:
        at = {brokers: best[brokers][f"{name}@{size}x{brokers}"]["best"] for brokers in best}
        lines.append(
            Line(
                what=f"{name}, {few} -> {many} brokers",
                size=f"{size:,}",
                value=f"{at[many] / at[few]:.2f}x",
                target="",
                holds=None,
                detail=f"best {at[few]:.2f} s -> {at[many]:.2f} s",
            )
        )
    return lines


def scaling(sizes: Sequence[int], rounds: int) -> list[Line]:
    """What one more partition costs a replay, beyond the cost of replaying almost nothing."""
    every = [OVERHEAD_PARTITIONS, *sorted(sizes)]
    taken = _repeated([f"replay@{size}" for size in every], rounds)
    best = {size: taken[f"replay@{size}"]["best"] for size in every}
    overhead = best[OVERHEAD_PARTITIONS]
    lines = [Line("fixed overhead", f"{every[0]:,}", f"{overhead:.2f} s", "", None, "")]
    micros = {size: 1e6 * (best[size] - overhead) / size for size in every[1:]}
    first = micros[every[1]]
    for smaller, size in itertools.pairwise(every):
        marginal = 1e6 * (best[size] - best[smaller]) / (size - smaller)
        growth = micros[size] / first if first > 0 else None
        comparable = growth is not None and size != every[1]
        lines.append(
            Line(
                what="cost per partition",
                size=f"{size:,}",
                value=f"{growth:.2f}x" if growth is not None else "lost in noise",
                target=f"<= {FLAT}x" if comparable else "",
                holds=growth <= FLAT if growth is not None and comparable else None,
                detail=(
                    f"{best[size]:.2f} s: {micros[size]:.2f} us beyond the overhead, "
                    f"{marginal:.2f} us each since {smaller:,}"
                ),
            )
        )
    return lines


def sequences(rounds: int) -> list[Line]:
    """Broker failures by the thousand and in sequence, in partition-events per second.

    And start-ups, which touch every partition: a broker that starts is told of all of them.
    """
    told = json.loads(_run("list", capture=True))
    shapes = told["sequences"]
    takes = {
        (count, events): f"failures-{count}x{events}@{SEQUENCE_PARTITIONS}"
        for count, events in shapes
    }
    few, many = (f"startups-{count}@{SEQUENCE_PARTITIONS}" for count in told["startups"])
    interpreted = few.replace("@", "-interpreted@")
    every = [*takes.values(), few, many, interpreted]
    taken = _repeated(every, rounds)
    overhead = min(taken[take]["best"] for take in takes.values())
    lines = []
    for (count, events), take in takes.items():
        touched = taken[take]["touched"]
        rate = touched / taken[take]["best"]
        beyond = 1e6 * (taken[take]["best"] - overhead) / touched
        lines.append(
            Line(
                what=f"{count} scenarios of {events} failures",
                size=f"{SEQUENCE_PARTITIONS:,}",
                value=f"{rate:,.0f}/s",
                target=f">= {SEQUENCE_RATE:,}/s" if count * events > FEW else "",
                holds=rate >= SEQUENCE_RATE if count * events > FEW else None,
                detail=(
                    f"best {taken[take]['best']:.2f} s; {touched:,} partition-events, "
                    "all tables written; "
                    f"{beyond:.1f} us each beyond the shortest of these"
                ),
            )
        )
    ratio = taken[interpreted]["best"] / taken[few]["best"]
    more = told["startups"][1] - told["startups"][0]
    beyond = (taken[many]["best"] - taken[few]["best"]) / (SEQUENCE_PARTITIONS * more)
    return [
        *lines,
        Line(
            what="a start-up interpreted / natively",
            size=f"{SEQUENCE_PARTITIONS:,}",
            value=f"{ratio:.2f}x",
            target="",
            holds=None,
            detail=_both(taken[interpreted], taken[few]),
        ),
        Line(
            what=f"{told['startups'][1]} start-ups",
            size=f"{SEQUENCE_PARTITIONS:,}",
            value=f"{told['startups'][1] * SEQUENCE_PARTITIONS / taken[many]['best']:,.0f}/s",
            target=f">= {SEQUENCE_RATE:,}/s",
            holds=told["startups"][1] * SEQUENCE_PARTITIONS >= SEQUENCE_RATE * taken[many]["best"],
            detail=f"best {taken[many]['best']:.2f} s; partitions told, tables written; "
            f"{1e6 * beyond:.2f} us each beyond one start-up",
        ),
    ]


def small_heap() -> list[Line]:
    """A thousand failures in a heap that cannot hold what they touch."""
    take = f"failures-{MANY}x1@{SEQUENCE_PARTITIONS}"
    taken = _repeated([take], 1, heap=SMALL_HEAP)[take]
    return [
        Line(
            what=f"{MANY} single failures in a heap of {SMALL_HEAP}",
            size=f"{SEQUENCE_PARTITIONS:,}",
            value=f"{taken['best']:.2f} s",
            target="ends",
            holds=True,
            detail="a heap that is too small fails the measurement",
        )
    ]


def _repeated(takes: Sequence[str], rounds: int, *, heap: str = HEAP) -> dict[str, Any]:
    return _result("repeat", *takes, "--rounds", str(rounds), heap=heap)


def _both(measured: dict[str, Any], against: dict[str, Any]) -> str:
    return (
        f"best {measured['best']:.2f} s / {against['best']:.2f} s, "
        f"median {measured['median']:.2f} s / {against['median']:.2f} s"
    )


def small(rounds: int) -> list[Line]:
    """The sample from a cold start to a published answer, against a bare Spark program."""
    out = HOME / "small"
    source = min(SAMPLE.iterdir())
    commands = {
        "replay": [str(UNDERSTUDY), "replay", str(SAMPLE), "--out", str(out / "replay")],
        "bare": [sys.executable, str(MEASURE), "bare", str(source), str(out / "bare")],
    }
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    for turn in range(rounds + 1):
        for name, command in commands.items():
            shutil.rmtree(out, ignore_errors=True)
            start = time.perf_counter()
            _call(command)
            elapsed = time.perf_counter() - start
            _say(f"small {name}, {'round' if turn else 'warm-up'}: {elapsed:.2f} s")
            if turn:
                seconds[name].append(elapsed)
    shutil.rmtree(out, ignore_errors=True)
    taken = {
        name: {"best": min(runs), "median": statistics.median(runs)}
        for name, runs in seconds.items()
    }
    ratio = taken["replay"]["best"] / taken["bare"]["best"]
    return [
        Line(
            what="sample / bare session",
            size="",
            value=f"{ratio:.2f}x",
            target=f"<= {SMALL}x",
            holds=ratio <= SMALL,
            detail=_both(taken["replay"], taken["bare"]),
        )
    ]


def plans() -> list[Line]:
    """Optimized plans, which may not grow with brokers or snapshots."""
    # As many rows in each, so that a plan can only grow with what is compared.
    shapes = {
        "10 brokers": (5_000, 10, 1),
        "200 brokers": (5_000, 200, 1),
        "50 snapshots": (100, 10, 50),
    }
    found = {}
    for label, shape_of in shapes.items():
        options = zip(("--partitions", "--brokers", "--snapshots"), shape_of, strict=True)
        shape = [text for option, number in options for text in (option, str(number))]
        _run("store", *shape, "--home", str(HOME))
        found[label] = _result("plan", *shape)
    base, *others = found
    lines = []
    for other in others:
        grown = {
            name: f"{name} {size['nodes']} -> {found[other][name]['nodes']} nodes, "
            f"{size['characters']} -> {found[other][name]['characters']} characters"
            for name, size in found[base].items()
            if found[other][name] != size
        }
        nodes = sum(size["nodes"] for size in found[other].values())
        lines.append(
            Line(
                what=f"plan of {other} / {base}",
                size="",
                value="equal" if not grown else f"{len(grown)} differ",
                target="equal",
                holds=not grown,
                detail="; ".join(grown.values()) or f"{nodes} nodes in {len(found[other])} tables",
            )
        )
    return lines


def audits(*, full: bool) -> list[Line]:
    """Audits of long histories in which little changes: the cost per snapshot, and of one more."""
    lines = []
    for partitions, snapshots in (HISTORY, FULL_HISTORY if full else LARGE_HISTORY):
        path = HOME / "audits.json"
        command = [sys.executable, "-m", "bench.audits", "--home", str(HOME), "--result", str(path)]
        command += ["--partitions", str(partitions), "--snapshots", ",".join(map(str, snapshots))]
        _call(command)
        told = json.loads(path.read_text(encoding="utf-8"))
        path.unlink()
        lines += _of_history(partitions, told)
    return lines


def _of_history(partitions: int, told: list[dict[str, Any]]) -> list[Line]:
    first = told[0]
    # Of few partitions it is what any run costs.
    is_large = partitions >= LARGE_HISTORY[0]
    lines = [
        Line(
            what=f"one more / {first['snapshots']} audited",
            size=f"{partitions:,}",
            value=f"{first['more'] / first['whole']:.2f}x",
            target=f"<= {MORE}x" if is_large else "",
            holds=first["more"] <= MORE * first["whole"] if is_large else None,
            detail=f"{first['more']:.2f} s / {first['whole']:.2f} s",
        )
    ]
    for fewer, each in itertools.pairwise(told):
        # What each snapshot costs beyond the fewer: what an audit costs anyway is in both.
        added = (each["whole"] - fewer["whole"]) / (each["snapshots"] - fewer["snapshots"])
        average = first["whole"] / first["snapshots"]
        lines.append(
            Line(
                what=f"per snapshot, {each['snapshots']} / {first['snapshots']} audited",
                size=f"{partitions:,}",
                value=f"{added / average:.2f}x",
                target=f"<= {FLAT}x",
                holds=added <= FLAT * average,
                detail=f"{each['whole']:.2f} s in all, {added * 1000:.0f} ms each since "
                f"{fewer['snapshots']}; one more {each['more']:.2f} s",
            )
        )
    return lines


def pace(sizes: Sequence[int], rounds: int) -> list[Line]:
    """Kafka's own state machines over the same snapshot, in memory, against a whole replay."""
    lines = []
    for size in sizes:
        taken = _repeated([f"replay@{size}"], rounds)[f"replay@{size}"]
        command = [sys.executable, "-m", "bench.pace", "--home", str(HOME)]
        command += ["--partitions", str(size)]
        kafka = json.loads(_call(command, capture=True))
        ratio = kafka["machines_seconds"] / taken["best"]
        lines.append(
            Line(
                what=f"{kafka['jar']} / replay",
                size=f"{size:,}",
                value=f"{ratio:.1f}x",
                target=f">= {KAFKAS_PACE}x",
                holds=ratio >= KAFKAS_PACE,
                detail=(
                    f"state machines {kafka['machines_seconds']:.1f} s, the whole failover "
                    f"{kafka['failover_seconds']:.1f} s / replay {taken['best']:.2f} s"
                ),
            )
        )
    return lines


def kraft(sizes: Sequence[int], rounds: int) -> list[Line]:
    """One broker fenced, and each by itself, beside Kafka's own manager over the same snapshot."""
    lines = []
    for size in sizes:
        _run("store", "--partitions", str(size), "--home", str(HOME))
        command = [sys.executable, "-m", "bench.kraft_pace", "--home", str(HOME)]
        command += ["--partitions", str(size), "--rounds", str(rounds)]
        told = json.loads(_call(command, capture=True))
        for name, fences in (("one", 1), ("every", told["fences"])):
            ours, kafka = told["ours"][name], told["kafka"]
            alone = kafka[f"{name}_seconds"]
            loaded = kafka["load_seconds"] + alone
            same = ours["records"] == kafka[f"{name}_records"]
            lines.append(
                Line(
                    what=f"{fences} fenced / {kafka['jar']}",
                    size=f"{size:,}",
                    value=f"{ours['seconds'] / loaded:.2f}x",
                    target="",
                    holds=None,
                    detail=(
                        f"replay {ours['seconds']:.2f} s with all tables written; Kafka loads in "
                        f"{kafka['load_seconds']:.2f} s, decides in {alone:.2f} s; "
                        f"{'as many' if same else 'NOT AS MANY'} records: {ours['records']:,}"
                    ),
                )
            )
    return lines


def readers(rounds: int) -> list[Line]:
    """Large files beside the tools of their makers, and small ones by the thousand."""
    module = [sys.executable, "-m", "bench.readers"]
    made = json.loads(_call([*module, "make", "--home", str(HOME / "readers")], capture=True))
    quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"
    java = ["java", f"-Xmx{HEAP}", quiet, "-cp", f"{made['jars']}/*"]
    snapshot, log = made["snapshot"], made["log"]
    formatter = "org.apache.zookeeper.server.SnapshotFormatter"
    dump = ["kafka.tools.DumpLogSegments", "--cluster-metadata-decoder", "--files"]
    lines = []
    for what, theirs, ours in (
        ("SnapshotFormatter -d / zk-snapshot", [formatter, "-d", snapshot], "zk-snapshot"),
        ("kafka-dump-log / kraft", [*dump, log], "kraft"),
    ):
        path = snapshot if ours == "zk-snapshot" else log
        taken = _in_turn([[*java, *theirs], [*module, "read", ours, path]], rounds)
        ratio = taken[0]["best"] / taken[1]["best"]
        lines.append(
            Line(
                what=what,
                size=f"{made['partitions']:,}",
                value=f"{ratio:.2f}x",
                target=f">= {HALF}x",
                holds=ratio >= HALF,
                detail=_both(*taken),
            )
        )
    return [*lines, *_many_files(made["many"], module)]


def _in_turn(commands: Sequence[Sequence[str]], rounds: int) -> list[dict[str, Any]]:
    seconds: list[list[float]] = [[] for _ in commands]
    for _ in range(rounds):
        for command, taken in zip(commands, seconds, strict=True):
            start = time.perf_counter()
            _call(command)
            taken.append(time.perf_counter() - start)
            _say(f"{Path(command[0]).name} {' '.join(command[-3:])}: {taken[-1]:.2f} s")
    return [{"best": min(runs), "median": statistics.median(runs)} for runs in seconds]


def _many_files(directories: dict[str, str], module: Sequence[str]) -> list[Line]:
    def taken(directory: str, cores: int) -> dict[str, Any]:
        told: dict[str, Any] = json.loads(
            _call([*module, "many", directory], capture=True, cores=cores)
        )
        _say(f"{told['snapshots']:,} files with {cores} cores: {told['seconds']:.2f} s")
        return told

    (few, fewer), (most, all_of_them) = sorted((int(n), path) for n, path in directories.items())
    one, two = taken(all_of_them, 1), taken(all_of_them, CORES)
    less = taken(fewer, CORES)
    faster = one["seconds"] / two["seconds"]
    grown = two["worker_mib"] / less["worker_mib"]
    return [
        Line(
            what=f"{most:,} files, {CORES} cores / 1 core",
            size="",
            value=f"{faster:.2f}x",
            target=f">= {MORE_CORES}x",
            holds=faster >= MORE_CORES,
            detail=f"{most / two['seconds']:,.0f} / {most / one['seconds']:,.0f} files a second",
        ),
        Line(
            what=f"memory of a worker, {most:,} / {few:,} files",
            size="",
            value=f"{grown:.2f}x",
            target=f"<= {FLAT}x",
            holds=grown <= FLAT,
            detail=f"{two['worker_mib']:.0f} MiB / {less['worker_mib']:.0f} MiB",
        ),
    ]


def table(lines: Sequence[Line]) -> str:
    verdicts = {True: "holds", False: "MISSED", None: ""}
    rows = [("measure", "partitions", "ratio", "target", "", "")] + [
        (line.what, line.size, line.value, line.target, verdicts[line.holds], line.detail)
        for line in lines
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        + "\n"
        for row in rows
    )


def _result(*arguments: str, heap: str = HEAP) -> dict[str, Any]:
    path = HOME / "part.json"
    path.unlink(missing_ok=True)
    _run(*arguments, "--home", str(HOME), "--result", str(path), heap=heap)
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    path.unlink()
    return found


def _run(*arguments: str, capture: bool = False, heap: str = HEAP) -> str:
    return _call([sys.executable, str(MEASURE), *arguments], capture=capture, heap=heap)


def _call(
    command: Sequence[str], *, capture: bool = False, heap: str = HEAP, cores: int = CORES
) -> str:
    done = subprocess.run(
        command,
        env={**os.environ, **_environment(heap, cores)},
        stdout=subprocess.PIPE if capture else subprocess.DEVNULL,
        text=True,
        check=False,
        cwd=ROOT,
    )
    if done.returncode:
        raise MeasurementFailedError(f"{' '.join(command)} exited with {done.returncode}")
    return done.stdout or ""


def _environment(heap: str, cores: int) -> dict[str, str]:
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.warehouse.dir": str(HOME / "warehouse"),
    }
    options = [f"--conf {name}={value}" for name, value in settings.items()]
    properties = f"--properties-file {ROOT / 'conf' / 'spark-defaults.conf'}"
    master = f"--master local[{cores}] --driver-memory {heap} {properties}"
    return {
        "PYSPARK_SUBMIT_ARGS": " ".join([master, *options, "pyspark-shell"]),
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(ROOT / "tests"),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "TZ": "UTC",
    }


def _say(text: str) -> None:
    sys.stderr.write(f"bench: {text}\n")
    sys.stderr.flush()


def _sizes(text: str) -> list[int]:
    return [int(size) for size in text.split(",")]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--partitions", type=_sizes, default=[100_000, 1_000_000])
    parser.add_argument("--full", action="store_true", help="5,000,000 partitions as well")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=PARTS)
    return parser


if __name__ == "__main__":
    sys.exit(main())
