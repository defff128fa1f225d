"""The jobs through real spark-submit, with executors in processes of their own."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyspark
import pytest

from new_shell import SHORT_LIVED_JVM, environment
from understudy import bundle

ROOT = Path(__file__).parents[2]
TROUBLE = ROOT / "data" / "sample" / "shop-eu-2026-03-01T0930.json"
WHERE_EXECUTORS_FIND_US = """
import understudy
from pyspark.sql import SparkSession

def found(batches):
    import pyarrow as pa
    for _ in batches:
        yield pa.RecordBatch.from_pydict({"path": [understudy.__file__]})

spark = SparkSession.builder.getOrCreate()
print(*{row.path for row in spark.range(2).mapInArrow(found, "path string").collect()})
"""


@pytest.fixture
def no_litter() -> Iterator[None]:
    """A local cluster's workers write below the installed pyspark; leave it as it was."""
    work = Path(pyspark.__file__).parent / "work"
    before = set(work.iterdir()) if work.exists() else None
    yield
    if before is None:
        shutil.rmtree(work, ignore_errors=True)
    else:
        for left in set(work.iterdir()) - before:
            shutil.rmtree(left, ignore_errors=True)


def submit(scratch: Path, *arguments: str) -> str:
    command = [
        str(Path(sys.executable).parent / "spark-submit"),
        *("--master", "local-cluster[2,1,1024]"),
        *("--properties-file", str(ROOT / "conf" / "spark-defaults.conf")),
        *("--conf", "spark.ui.enabled=false", "--conf", "spark.sql.shuffle.partitions=4"),
        *("--conf", f"spark.executor.extraJavaOptions={SHORT_LIVED_JVM}"),
        *("--py-files", str(bundle.bundle(scratch / "understudy.zip"))),
        *arguments,
    ]
    done = subprocess.run(
        command,
        cwd=scratch,
        env=environment(),  # it finds its own Python
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def answer(text: str) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(text.strip().splitlines()[-1])
    return told


@pytest.mark.usefixtures("no_litter")
def test_executors_use_the_zip_they_are_sent(tmp_path: Path) -> None:
    job = tmp_path / "where.py"
    job.write_text(WHERE_EXECUTORS_FIND_US, encoding="utf-8")
    (path,) = submit(tmp_path, str(job)).split()
    assert path.endswith("understudy.zip/understudy/__init__.py")


@pytest.mark.usefixtures("no_litter")
def test_load_then_replay(tmp_path: Path) -> None:
    store, out = str(tmp_path / "store"), str(tmp_path / "out")
    jobs = ROOT / "jobs"
    loaded = answer(
        submit(tmp_path, str(jobs / "load.py"), str(TROUBLE), "--into", store, "--json")
    )
    assert loaded["tables"]["snapshots"] == 1
    replayed = answer(submit(tmp_path, str(jobs / "replay.py"), store, "--out", out, "--json"))
    assert replayed["partitions"] == loaded["tables"]["partitions"] > 0
    assert replayed["elections"]["clean"] > 0
    assert replayed["requests"]["bytes"] > 0
