"""A replay over Spark Connect writes what a classic one writes, table by table."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from understudy.schemas import REPLAY_TABLES, SNAPSHOT_TABLES

ROOT = Path(__file__).parents[2]
TROUBLE = ROOT / "data" / "sample" / "shop-eu-2026-03-01T0930.json"


def run(*argv: str, at: Path, **environment: str) -> dict[str, Any]:
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("SPARK_", "PYSPARK_"))
    }
    done = subprocess.run(
        [sys.executable, "-m", "understudy", *argv, "--json"],
        cwd=at,
        env={**inherited, "SPARK_LOCAL_IP": "127.0.0.1", **environment},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def replay(out: Path, **environment: str) -> None:
    told = run("replay", str(TROUBLE), "--out", str(out), at=out.parent, **environment)
    assert told["tables"]["partition_states"] > 0


def rows(out: Path, table: str) -> list[str]:
    found = [
        row
        for file in (out / table).glob("run=*/part-*.parquet")
        for row in pq.ParquetFile(file).read().to_pylist()
    ]
    return sorted(json.dumps(row, sort_keys=True, default=str) for row in found)


def test_connect_and_classic_agree(tmp_path: Path) -> None:
    classic, connect = tmp_path / "classic", tmp_path / "connect"
    replay(classic)
    replay(connect, SPARK_REMOTE="local[2]")
    for table in REPLAY_TABLES:
        assert rows(connect, table) == rows(classic, table), table
    assert rows(classic, "partition_states")


@pytest.mark.slow
def test_what_operators_have_is_loaded_alike(tmp_path: Path) -> None:
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
    for name, environment in (("classic", {}), ("connect", {"SPARK_REMOTE": "local[2]"})):
        into = str(tmp_path / name)
        told = run("load", str(given), "--cluster", "c", "--into", into, at=tmp_path, **environment)
        assert told["quarantine"]["count"] == 0
    for table in SNAPSHOT_TABLES:
        assert rows(tmp_path / "connect", table) == rows(tmp_path / "classic", table), table
    assert len(rows(tmp_path / "classic", "snapshots")) > 5
