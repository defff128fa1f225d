"""A replay over Spark Connect writes what a classic one writes, table by table."""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from commands import told
from new_shell import environment
from understudy.schemas import REPLAY_TABLES, SNAPSHOT_TABLES

ROOT = Path(__file__).parents[2]
TROUBLE = ROOT / "data" / "sample" / "shop-eu-2026-03-01T0930.json"


# However small they are, snapshots are replayed in the columnar form, or in the native one.
LARGE = """
import sys
from understudy import cli, replay
from understudy.controller.columnar import feed

replay.SMALL = 0
feed.SNAPSHOTS_AT_ONCE = {at_once}
sys.exit(cli.main(sys.argv[1:]))
"""


def run(
    *argv: str, at: Path, program: Sequence[str] = ("-m", "understudy"), **more: str
) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, *program, *argv, "--json"],
        cwd=at,
        env=environment(**more),
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def rows(out: Path, table: str) -> list[str]:
    found = [
        row
        for file in (out / table).glob("run=*/part-*.parquet")
        for row in pq.ParquetFile(file).read().to_pylist()
    ]
    return sorted(json.dumps(row, sort_keys=True, default=str) for row in found)


@pytest.mark.usefixtures("spark")
def test_connect_and_classic_agree(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    classic, connect = tmp_path / "classic", tmp_path / "connect"
    told(capsys, 0, "replay", str(TROUBLE), "--out", str(classic))
    run("replay", str(TROUBLE), "--out", str(connect), at=tmp_path, SPARK_REMOTE="local[2]")
    for table in REPLAY_TABLES:
        assert rows(connect, table) == rows(classic, table), table
    assert rows(classic, "partition_states")


@pytest.mark.slow
@pytest.mark.parametrize("at_once", [0, 100])
@pytest.mark.usefixtures("spark")
def test_the_other_forms_over_connect_agree_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], at_once: int
) -> None:
    """With a failure and a start-up beside the failover: every kind of view in views."""
    events = ({"type": "controller_failover"}, {"type": "broker_failure", "brokers": [103]},
              {"type": "broker_startup", "brokers": [104]})  # fmt: skip
    asked = tmp_path / "asked.jsonl"
    lines = [json.dumps({"scenario": each["type"], "events": [each]}) for each in events]
    asked.write_text("\n".join(lines), encoding="utf-8")
    classic, connect = tmp_path / "classic", tmp_path / "connect"
    given = ("replay", str(TROUBLE), "--scenarios", str(asked), "--out")
    told(capsys, 0, *given, str(classic))
    program = ("-c", LARGE.format(at_once=at_once))
    run(*given, str(connect), at=tmp_path, program=program, SPARK_REMOTE="local[2]")
    for table in REPLAY_TABLES:
        assert rows(connect, table) == rows(classic, table), table
    assert rows(classic, "requests")


@pytest.mark.slow
@pytest.mark.usefixtures("spark")
def test_what_operators_have_is_loaded_alike(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = ROOT / "tests" / "data"
    given = tmp_path / "_given, so to speak"
    for archive in (
        data / "zookeeper" / "zk-2.8" / "zookeeper-data.tar.gz",
        data / "kraft-log" / "kraft-4.3" / "node1.tar.gz",
        data / "texts" / "zk-3.9-two-down-new-topics.tar.gz",
    ):
        with tarfile.open(archive) as packed:
            packed.extractall(given / archive.name, filter="data")
    for overrides in given.glob("*/topics-with-overrides.txt"):
        overrides.unlink()  # it lists no partition, and is refused
    asked = ("load", str(given), "--cluster", "c", "--into")
    for loaded in (
        told(capsys, 0, *asked, str(tmp_path / "classic")),
        run(*asked, str(tmp_path / "connect"), at=tmp_path, SPARK_REMOTE="local[2]"),
    ):
        assert loaded["quarantine"]["count"] == 0
    for table in SNAPSHOT_TABLES:
        assert rows(tmp_path / "connect", table) == rows(tmp_path / "classic", table), table
    assert len(rows(tmp_path / "classic", "snapshots")) > 5
