"""Killed at any moment, an audit leaves nothing wrong behind, and the next one completes it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any, Self

import pytest
from pyspark.sql import SparkSession

from histories import random_history
from understudy import auditing, publish, superseding
from understudy.auditing import Asked

TABLES = superseding.TABLES
PATIENCE_SECONDS = 900
SEEDS = 50
MOST_EXECUTORS = 2

AUDIT = """
import sys
from datetime import UTC, datetime
from pyspark.sql import SparkSession
from understudy import auditing
from understudy.session import configure

docs, out, master = sys.argv[1:]
builder = SparkSession.builder.master(master).config("spark.ui.enabled", "false")
spark = configure(builder.config("spark.sql.shuffle.partitions", "2").getOrCreate())
given = auditing.look(spark, [docs])
print("looked", flush=True)
auditing.run(spark, given, out, auditing.Asked(), now=datetime.now(UTC))
print("done", flush=True)
"""


class Audit:
    """An audit in a process of its own, that can be killed."""

    def __init__(self, docs: Path, out: Path, master: str = "local[1]") -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", AUDIT, str(docs), str(out), master],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"},
            start_new_session=True,  # with its JVM it is a group, which dies together
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Leave nothing behind of one whose test went wrong."""
        if self._process.poll() is None:
            self.kill()

    def has_looked(self) -> None:
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "looked\n"

    def descendants(self) -> list[tuple[int, str]]:
        listed = subprocess.run(
            ["ps", "-eww", "-o", "pid=,pgid=,args="], capture_output=True, text=True, check=True
        ).stdout
        rows = (line.split(None, 2) for line in listed.splitlines())
        return [(int(pid), args) for pid, group, args in rows if int(group) == self._process.pid]

    def kill(self) -> None:
        os.killpg(self._process.pid, signal.SIGKILL)
        self.wait()

    def wait(self) -> int:
        code = self._process.wait(PATIENCE_SECONDS)
        if self._process.stdout is not None:
            self._process.stdout.close()
        return code


def until_there_is(out: Path, sign: str) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not any(out.glob(sign)):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def written(path: Path) -> str:
    dice = Random(3)
    docs = [doc for name in ("a", "b") for doc in random_history(dice, name, 4)]
    path.write_text("".join(json.dumps(doc) + "\n" for doc in docs), encoding="utf-8")
    return str(path)


def audited(spark: SparkSession, docs: Path, out: Path) -> dict[str, list[Any]]:
    """What readers see after one more audit."""
    given = auditing.look(spark, [str(docs)])
    auditing.run(spark, given, str(out), Asked(), now=datetime.now(UTC))
    given.close()
    return shown(spark, out)


def shown(spark: SparkSession, out: Path) -> dict[str, list[Any]]:
    return {
        name: sorted(
            publish.read(spark, str(out), name).drop("run_id", "findings_run").collect(), key=str
        )
        for name in TABLES
    }


@pytest.fixture(scope="module")
def docs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("docs") / "history.jsonl"
    written(path)
    return path


@pytest.fixture(scope="module")
def expected(
    spark: SparkSession, docs: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, list[Any]]:
    return audited(spark, docs, tmp_path_factory.mktemp("whole") / "out")


def test_killed_while_it_writes_it_was_never_there(
    spark: SparkSession, docs: Path, expected: dict[str, list[Any]], tmp_path: Path
) -> None:
    """With the first of its files begun, and again with its findings written."""
    out = tmp_path / "out"
    for moment in ("*/run=*/*", "findings/run=*/_SUCCESS"):
        with Audit(docs, out) as running:
            until_there_is(out, moment)
            running.kill()
        assert whole_or_not_there(spark, out, expected)
    assert audited(spark, docs, out) == expected


def whole_or_not_there(spark: SparkSession, out: Path, expected: dict[str, list[Any]]) -> bool:
    if publish.is_store(spark, str(out)) and publish.runs_with(spark, str(out), "audited"):
        return shown(spark, out) == expected
    return not list(out.glob("runs/run=*/_SUCCESS"))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(SEEDS))
def test_killed_anywhere_it_is_whole_or_not_there(
    seed: int, spark: SparkSession, docs: Path, expected: dict[str, list[Any]], tmp_path: Path
) -> None:
    dice, out = Random(seed), tmp_path / "out"
    begun = time.monotonic()
    with Audit(docs, out) as running:
        running.has_looked()
        # From reading to some time after the end, as long as the start took: the machine sets the
        # pace.
        time.sleep(dice.random() * (time.monotonic() - begun))
        running.kill()
    assert whole_or_not_there(spark, out, expected)
    assert audited(spark, docs, out) == expected


@pytest.mark.slow
def test_two_at_once_do_no_harm(
    spark: SparkSession, docs: Path, expected: dict[str, list[Any]], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    with Audit(docs, out) as one, Audit(docs, out) as other:
        for each in (one, other):
            each.has_looked()
        assert (one.wait(), other.wait()) == (0, 0)
    assert shown(spark, out) == expected
    assert audited(spark, docs, out) == expected


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_an_executor_that_is_killed_changes_nothing(
    seed: int, spark: SparkSession, docs: Path, expected: dict[str, list[Any]], tmp_path: Path
) -> None:
    dice, out = Random(seed), tmp_path / "out"
    with Audit(docs, out, f"local-cluster[{MOST_EXECUTORS},1,1024]") as running:
        running.has_looked()
        time.sleep(dice.random() * 5)
        executors = [
            pid for pid, args in running.descendants() if "CoarseGrainedExecutorBackend" in args
        ]
        os.kill(dice.choice(executors), signal.SIGKILL)
        assert running.wait() == 0
    assert shown(spark, out) == expected
