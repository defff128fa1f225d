"""One Spark session for the whole test run, in UTC, with a scratch directory of its own."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from new_shell import SHORT_LIVED_JVM
from understudy.session import configure

os.environ["TZ"] = "UTC"
os.environ["COLUMNS"] = "100"
os.environ["PYSPARK_PYTHON"] = sys.executable
os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
os.environ.setdefault("SPARK_SUBMIT_OPTS", SHORT_LIVED_JVM)

DATA = Path(__file__).parent / "data"


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    scratch = tmp_path_factory.mktemp("spark")
    session = (
        SparkSession.builder.master("local[2]")
        .appName("understudy tests")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "3g")
        .config("spark.buffer.pageSize", "1m")  # as in the product's settings
        .config("spark.ui.retainedJobs", "1")  # nobody looks at them, and plans are large
        .config("spark.ui.retainedStages", "1")
        .config("spark.sql.ui.retainedExecutions", "1")
        .config("spark.sql.ui.explainMode", "simple")
        .config("spark.sql.debug.maxToStringFields", "5")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
        .config("spark.sql.adaptive.enabled", "false")  # costs more than it gives so few rows
        .config("spark.sql.codegen.cache.maxEntries", "1000")
        .config("spark.sql.warehouse.dir", str(scratch / "warehouse"))
        .config("spark.local.dir", str(scratch / "local"))
        .getOrCreate()
    )
    yield configure(session)
    session.stop()


@pytest.fixture
def unsettled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that is read is so little that it is computed at once."""
    for module in ("combine", "few_documents"):
        monkeypatch.setattr(f"understudy.sources.{module}.FEW_ROWS", -1)


@pytest.fixture
def native(monkeypatch: pytest.MonkeyPatch) -> None:
    """What has a native form runs in it, however little it is."""
    monkeypatch.setattr("understudy.replay.SMALL", 0)
    monkeypatch.setattr("understudy.controller.columnar.feed.SNAPSHOTS_AT_ONCE", 0)


@pytest.fixture
def in_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """What has a columnar form runs in it, however little it is."""
    monkeypatch.setattr("understudy.replay.SMALL", 0)
    monkeypatch.setattr("understudy.controller.columnar.feed.SNAPSHOTS_AT_ONCE", 2**31)
