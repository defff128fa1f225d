"""A replay over Spark Connect writes what a classic one writes, table by table."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq

from understudy.schemas import REPLAY_TABLES

ROOT = Path(__file__).parents[2]
TROUBLE = ROOT / "data" / "sample" / "shop-eu-2026-03-01T0930.json"


def replay(out: Path, **environment: str) -> None:
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("SPARK_", "PYSPARK_"))
    }
    done = subprocess.run(
        [sys.executable, "-m", "understudy", "replay", str(TROUBLE), "--out", str(out), "--json"],
        cwd=out.parent,
        env={**inherited, "SPARK_LOCAL_IP": "127.0.0.1", **environment},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["tables"]["partition_states"] > 0


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
