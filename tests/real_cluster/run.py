"""Drives a real Kafka cluster through a seeded sequence of steps and replays every one of them.

    python -m real_cluster.run [--steps 30] [--seed 1] [--into DIR]

Run with ``tests`` on the path, as ``make real-cluster`` does. Ends with 1 if the replay leaves any
partition in another state than the real controller did, each difference shown.
"""

from __future__ import annotations

import argparse
import gzip
import json
import signal
import sys
import tarfile
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any, Final, NamedTuple

from real_cluster.cluster import RELEASE, Cluster, ClusterError, fetch_jars
from real_cluster.judging import DIFFERS, DISTURBED, PREDICTED, Judged, disturbances, judge
from real_cluster.recording import Recorder, document
from real_cluster.steps import CREATE_TOPICS, KINDS, View, choose, first_topics
from understudy.sources.zookeeper.kafka import Naming

Document = dict[str, Any]

BROKERS: Final = [1, 2, 3]

_SHORT_RELEASE: Final = RELEASE.rpartition(".")[0]
_POLL_SECONDS: Final = 0.5
_QUIET_SECONDS: Final = 2
_PATIENCE_SECONDS: Final = 240
_SHOWN: Final = 10
_INTERRUPTED: Final = 130


class Instant(NamedTuple):
    """A moment in which nothing was going on."""

    zxid: int
    view: View


def main(argv: Sequence[str] | None = None) -> int:
    arguments = _parser().parse_args(argv)
    former = signal.signal(signal.SIGTERM, _end)
    try:
        fetch_jars()
        judged = _record(arguments.seed, arguments.steps, arguments.into)
    except ClusterError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("interrupted; every process is stopped\n")
        return _INTERRUPTED
    finally:
        signal.signal(signal.SIGTERM, former)
    counts = Counter(each.verdict for each in judged)
    sys.stdout.write(
        f"{counts[PREDICTED]} of {len(judged)} steps predicted exactly,"
        f" {counts[DIFFERS]} not, {counts[DISTURBED]} disturbed from outside\n"
    )
    return 1 if counts[DIFFERS] or not counts[PREDICTED] else 0


def _end(_number: int, _frame: FrameType | None) -> None:
    """Leave by the normal way out, which stops the cluster."""
    raise SystemExit(1)


def _record(seed: int, steps: int, into: Path | None) -> list[Judged]:
    """Every step taken and judged; what there is of them is kept even if the cluster fails."""
    run = f"zk-{_SHORT_RELEASE}-seed-{seed}"
    judged: list[Judged] = []
    with (
        tempfile.TemporaryDirectory(prefix="real-cluster-") as home,
        Cluster(Path(home), BROKERS) as cluster,
    ):
        stage = _Stage(cluster, Recorder(cluster.zookeeper_data, Naming(run, _SHORT_RELEASE)))
        _say(f"Kafka {RELEASE}, {len(BROKERS)} brokers, seed {seed}\n{_HEADINGS}\n")
        try:
            for case in _cases(stage, run, Random(seed), steps):
                judged.append(judge(case))
                _say(_line(judged[-1]))
        finally:
            if into is not None:
                _save(into, [each.case for each in judged], {"seed": seed, "steps": steps})
                _save_files(into, cluster)
    return judged


def _cases(stage: _Stage, run: str, rng: Random, steps: int) -> Iterator[Document]:
    """Some topics to begin with, then the steps."""
    stage.start()
    used: Counter[str] = Counter()
    yield stage.take(f"{run}-001", CREATE_TOPICS, first_topics(rng, BROKERS))
    for number in range(2, steps + 2):
        kind, asked = choose(stage.now.view, rng, used, BROKERS)
        used[kind] += 1
        yield stage.take(f"{run}-{number:03}", kind, asked)


class _Stage:
    """The cluster and the last quiet instant of it."""

    def __init__(self, cluster: Cluster, recorder: Recorder) -> None:
        self._cluster = cluster
        self._recorder = recorder
        self.now: Instant

    def start(self) -> None:
        self.now = self._wait("start", lambda view: view.live == BROKERS)

    def take(self, name: str, kind: str, asked: Document) -> Document:
        """Take a step, wait until all is quiet again, and write down what happened."""
        before, started = self.now, _milliseconds()
        KINDS[kind].perform(self._cluster, asked)
        self.now = self._wait(kind, lambda view: KINDS[kind].is_done(asked, before.view, view))
        writes = self._recorder.writes(before.zxid, self.now.zxid)
        case = _case(name, (kind, asked), before, self.now, writes)
        return case | {"time_from": started, "time_to": _milliseconds(), "tools": []}

    def _wait(self, what: str, is_done: Callable[[View], bool]) -> Instant:
        """The first instant at which it is done and nobody has anything left to do.

        The znodes look final and stay so for a while; then the controller is asked something, and
        since it answers in turn, it has dealt with all it had been told until then.
        """
        deadline = time.monotonic() + _PATIENCE_SECONDS
        unchanged_since, last, waits_for = time.monotonic(), -1, ["a controller"]
        while time.monotonic() < deadline:
            self._cluster.check()
            found = self._recorder.newest()
            if found is not None:
                zxid, content = found
                view = View(document(content))
                waits_for = view.unsettled() or ([] if is_done(view) else [what])
                if waits_for or zxid != last:
                    unchanged_since, last = time.monotonic(), zxid
                elif time.monotonic() - unchanged_since >= _QUIET_SECONDS:
                    self._cluster.ask("wait_for_controller")
                    if self._recorder.newest() == found:
                        return Instant(zxid, view)
            time.sleep(_POLL_SECONDS)
        raise ClusterError(
            f"{what}: not done after {_PATIENCE_SECONDS} s, waiting for {', '.join(waits_for)}"
        )


def _milliseconds() -> int:
    return time.time_ns() // 1_000_000


# --- What is written down ----------------------------------------------------------------------


def _case(
    name: str,
    step: tuple[str, Document],
    before: Instant,
    after: Instant,
    writes: list[Document],
) -> Document:
    kind, asked = step
    run = before.view.document["cluster"]
    changes = _isr_changes(writes)
    events = [*KINDS[kind].events(asked, before.view, after.view), *changes]
    noise: Document = {"isr_changes": len(changes)} if changes else {}
    disturbed = disturbances(before.view, after.view, events, writes)
    if disturbed:
        noise["remarks"] = disturbed
    return {
        "case": name,
        "run": run,
        "release": RELEASE,
        "driver_event": {"kind": kind, "args": asked},
        "clean": not noise,
        "noisy": bool(noise),
        "noise": noise,
        "empty": False,
        "before": {**before.view.document, "snapshot_id": name},
        "scenario": {"scenario": name, "cluster": run, "snapshot_id": name, "events": events},
        "after": _after(after.view),
        "writes": writes,
        "zxid_before": before.zxid,
        "zxid_after": after.zxid,
    }


def _isr_changes(writes: Iterable[Document]) -> list[Document]:
    """What leaders asked for meanwhile; each one changes its own partition alone."""
    return [
        {
            "type": "isr_change",
            "partition": f"{write['topic']}-{write['partition']}",
            "isr": write["isr"],
        }
        for write in writes
        if write["kind"] == "state" and write["by"] == "leader"
    ]


def _after(view: View) -> Document:
    fields = ("replicas", "adding", "removing", "state")
    return {
        "controller": view.document["controller"],
        "brokers": view.document["brokers"],
        "topics_queued_for_deletion": view.queued,
        "partitions": {
            name: {field: partition[field] for field in fields}
            for name, partition in view.partitions.items()
        },
    }


# --- What is printed and kept ------------------------------------------------------------------

_HEADINGS: Final = (
    f"{'step':>4}  {'what was done':38} {'events':>6} {'writes':>6} {'partitions':>10}"
    "  predicted  what became of them"
)


def _line(judged: Judged) -> str:
    case = judged.case
    number = case["case"].rpartition("-")[2]
    line = (
        f"{number:>4}  {_done(case['driver_event']):38} {len(case['scenario']['events']):6}"
        f" {len(case['writes']):6} {len(case['after']['partitions']):10}"
        f"  {judged.verdict:9}  {judged.outcomes}\n"
    )
    shown = [f"      {remark}\n" for remark in judged.remarks[:_SHOWN]]
    left = len(judged.remarks) - len(shown)
    return "".join((line, *shown, f"      … and {left} more\n" if left > 0 else ""))


def _done(driver_event: Document) -> str:
    """The step in a few words: its kind and to whom."""
    asked = driver_event["args"]
    whom = asked.get("broker") or asked.get("topic") or _names(asked)
    return f"{driver_event['kind']} {whom}"[:38]


def _names(asked: Document) -> str:
    names = asked.get("partitions") or [topic["topic"] for topic in asked["topics"]]
    return ", ".join(names)


def _say(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def _save(into: Path, cases: Iterable[Document], run: Document) -> None:
    into.mkdir(parents=True, exist_ok=True)
    lines = "".join(json.dumps(case) + "\n" for case in cases)
    (into / "cases.jsonl.gz").write_bytes(gzip.compress(lines.encode(), mtime=0))
    text = json.dumps({"release": RELEASE, **run}, indent=1)
    (into / "run.json").write_text(text + "\n", encoding="utf-8")


def _save_files(into: Path, cluster: Cluster) -> None:
    """What everybody logged, and ZooKeeper's own files."""
    for log in sorted(cluster.home.glob("*.log")):
        (into / f"{log.name}.gz").write_bytes(gzip.compress(log.read_bytes(), mtime=0))
    if cluster.zookeeper_data.is_dir():
        with tarfile.open(into / "zookeeper-data.tar.gz", "w:gz") as packed:
            packed.add(cluster.zookeeper_data, arcname=cluster.zookeeper_data.name)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Hold the replay against a real Kafka cluster.")
    parser.add_argument("--steps", type=int, default=30, help="after the topics are created")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--into", type=Path, metavar="DIR", help="keep the recorded cases there")
    return parser


if __name__ == "__main__":
    sys.exit(main())
