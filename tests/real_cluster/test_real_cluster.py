"""A short run of a real cluster: each step predicted, wrong events noticed, nothing left behind."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from real_cluster import run
from real_cluster.judging import DIFFERS, DISTURBED, judge

pytestmark = pytest.mark.slow

STEPS = 6
SEED = 6  # its controller dies, a broker shuts down and one comes back
PATIENCE_SECONDS = 120

Case = dict[str, Any]


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> list[Case]:
    into = tmp_path_factory.mktemp("recorded")
    arguments = ["--steps", str(STEPS), "--seed", str(SEED), "--into", str(into)]
    assert run.main(arguments) == 0
    with gzip.open(into / "cases.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def test_every_step_is_recorded_in_a_row(cases: list[Case]) -> None:
    assert len(cases) == STEPS + 1
    assert len({case["driver_event"]["kind"] for case in cases}) >= 5
    for earlier, later in pairwise(cases):
        assert earlier["zxid_after"] == later["zxid_before"]
        assert earlier["after"]["controller"] == later["before"]["controller"]


def test_a_story_without_its_events_is_noticed(cases: list[Case]) -> None:
    judged = 0
    for case in cases:
        if case["noise"].get("remarks"):
            continue
        told = {**case, "scenario": {**case["scenario"], "events": []}}
        assert judge(told).verdict == DIFFERS
        judged += 1
    assert judged


def test_a_wrong_epoch_is_noticed(cases: list[Case]) -> None:
    for case in cases:
        changed = json.loads(json.dumps(case))
        name, partition = next(
            (name, each) for name, each in changed["after"]["partitions"].items() if each["state"]
        )
        partition["state"]["partition_epoch"] += 1
        verdict = judge(changed)
        assert verdict.verdict == DISTURBED or any(
            remark.startswith(f"{name} partition_epoch") for remark in verdict.remarks
        )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_nothing_is_left_when_it_is_interrupted(tmp_path: Path, number: signal.Signals) -> None:
    script = subprocess.Popen(
        [sys.executable, "-m", "real_cluster.run"],
        env={**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": str(Path(__file__).parents[1])},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        # Whoever runs the tests in the background of a script has it ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
    )
    try:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while len(_processes_below(tmp_path)) < len(run.BROKERS) + 1:
            assert time.monotonic() < deadline
            time.sleep(0.5)
        script.send_signal(number)
        assert script.wait(PATIENCE_SECONDS) != 0
    finally:
        script.terminate()  # killed, it could not stop the others
        script.wait(PATIENCE_SECONDS)
    assert _processes_below(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


def _processes_below(home: Path) -> list[str]:
    """Brokers and ZooKeeper have their properties file among their arguments."""
    listed = subprocess.run(
        ["ps", "-eww", "-o", "args"], capture_output=True, check=True, text=True
    )
    return [line for line in listed.stdout.splitlines() if str(home) in line]
