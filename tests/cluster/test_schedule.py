"""docs/scheduling.md holds: its script runs on a real cluster, and its DAG is one for Airflow."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
import venv
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pyspark
import pytest

from new_shell import environment
from understudy import bundle

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "scheduling.md").read_text(encoding="utf-8")
SCRIPT = ROOT / "conf" / "schedule" / "audit.sh"
DAG = ROOT / "conf" / "airflow" / "understudy_audit.py"
SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"
PATIENCE_SECONDS = 300


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def daemon(log: Path, *arguments: str) -> subprocess.Popen[bytes]:
    with log.open("wb") as out:
        return subprocess.Popen(
            [SPARK_CLASS, *arguments],
            env=environment(PYSPARK_PYTHON=sys.executable),
            stdout=out,
            stderr=out,
        )


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A standalone master and two workers on the loopback interface."""
    scratch, port = tmp_path_factory.mktemp("cluster"), free_port()
    at = ("--host", "127.0.0.1", "--webui-port", "0")
    deploy, url = "org.apache.spark.deploy", f"spark://127.0.0.1:{port}"
    daemons = [daemon(scratch / "master.log", f"{deploy}.master.Master", *at, "--port", str(port))]
    try:
        wait_for(port)
        for name in ("one", "two"):
            size = ("--cores", "1", "--memory", "1g", "--work-dir", str(scratch / name))
            log = scratch / f"{name}.log"
            daemons.append(daemon(log, f"{deploy}.worker.Worker", *at, *size, url))
        yield url
    finally:
        for each in daemons:
            each.terminate()
        for each in daemons:
            with suppress(subprocess.TimeoutExpired):
                each.wait(30)
            each.kill()
            each.wait()


def wait_for(port: int) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            assert time.monotonic() < deadline, "no master came up"
            time.sleep(0.2)
        else:
            return


def scheduled(master: str, places: dict[str, str], scratch: Path) -> int:
    done = subprocess.run(
        [SCRIPT],
        cwd=scratch,
        env={
            **environment(PYSPARK_PYTHON=sys.executable),
            **places,
            "MASTER": master,
            "ZIP": str(scratch / "understudy.zip"),
            "SPARK_SUBMIT": str(Path(sys.executable).parent / "spark-submit"),
            "SUBMIT_ARGS": "--conf spark.ui.enabled=false --conf spark.sql.shuffle.partitions=2"
            " --conf spark.executor.memory=512m",
        },
        capture_output=True,
        text=True,
        timeout=1800,
        check=False,
    )
    assert done.returncode < 64, done.stderr[-3000:]
    return done.returncode


@pytest.mark.slow
def test_the_script_runs_on_a_cluster_and_a_second_time_has_nothing_to_do(
    master: str, tmp_path: Path
) -> None:
    places = {
        "SNAPSHOTS": str(ROOT / "data" / "sample"),
        "STORE": str(tmp_path / "store"),
        "OUT": str(tmp_path / "out"),
        "VERDICT": str(tmp_path / "verdict.json"),
        "PROMETHEUS": str(tmp_path / "kafka.prom"),
    }
    bundle.bundle(tmp_path / "understudy.zip")
    code = scheduled(master, places, tmp_path)
    first = json.loads(Path(places["VERDICT"]).read_text(encoding="utf-8"))
    assert code == first["exit_code"] == 2  # the sample is a cluster in trouble
    assert first["judged_now"] == first["snapshots"] > 0
    assert "kafka_audit_findings{" in Path(places["PROMETHEUS"]).read_text(encoding="utf-8")

    again = scheduled(master, places, tmp_path)
    second = json.loads(Path(places["VERDICT"]).read_text(encoding="utf-8"))
    assert again == code
    assert (second["run_id"], second["judged_now"]) == (None, 0)
    assert second["errors"] == first["errors"]


def test_the_page_names_what_there_is() -> None:
    named = set(re.findall(r"conf/[a-z_/]+\.(?:sh|py)", PAGE))
    assert named == {"conf/schedule/audit.sh", "conf/airflow/understudy_audit.py"}
    assert all((ROOT / name).exists() for name in named)
    assert os.access(SCRIPT, os.X_OK)
    variables = set(re.findall(r"^([A-Z_]+)=", PAGE, re.MULTILINE))
    assert variables <= set(re.findall(r"\b[A-Z_]+\b", SCRIPT.read_text(encoding="utf-8")))
    compile(DAG.read_text(encoding="utf-8"), str(DAG), "exec")


IMPORTED = """
import sys
try:
    from airflow.dag_processing.dagbag import DagBag
except ImportError:
    from airflow.models import DagBag
bag = DagBag(dag_folder=sys.argv[1])
assert not bag.import_errors, bag.import_errors
dag = bag.dags["understudy_audit"]
assert [task.task_id for task in dag.topological_sort()] == ["load", "audit"]
"""


@pytest.mark.slow
def test_airflow_takes_the_dag(tmp_path: Path) -> None:
    home = tmp_path / "airflow"
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv" / "bin" / "python"
    wanted = ("apache-airflow>=3,<4", "apache-airflow-providers-apache-spark")
    installed = subprocess.run(
        [python, "-m", "pip", "install", "--quiet", *wanted],
        capture_output=True,
        text=True,
        timeout=3600,
        check=False,
    )
    if installed.returncode:
        pytest.skip(f"Airflow cannot be installed here: {installed.stderr[-300:]}")
    done = subprocess.run(
        [python, "-c", IMPORTED, str(DAG)],
        env={**environment(), "AIRFLOW_HOME": str(home), "AIRFLOW__CORE__LOAD_EXAMPLES": "false"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
