"""Importing costs nothing, and the decision core stays pure."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import understudy

PACKAGE = Path(understudy.__file__).parent
HEAVY = ("pandas", "pyarrow", "pyspark", "py4j", "grpc")
# Nothing that reads, writes, listens, asks the clock or rolls dice.
IMPURE = {
    *("os", "io", "pathlib", "shutil", "tempfile", "glob", "sys", "logging"),
    *("socket", "subprocess", "threading", "asyncio", "urllib", "http"),
    *("time", "datetime", "random", "secrets", "uuid", "pickle"),
}
# Above the core: what may use it and may not be used by it.
ABOVE = {
    *("sources", "snapshot", "scenarios", "replay", "questions"),
    *("publish", "report", "session", "commands", "cli"),
}


def loaded_by(statement: str) -> set[str]:
    code = f"{statement}\nimport sys\nprint(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60
    )
    return {name.partition(".")[0] for name in done.stdout.split()}


@pytest.mark.parametrize("statement", ["import understudy", "import understudy.cli"])
def test_importing_loads_nothing_heavy(statement: str) -> None:
    assert loaded_by(statement) & set(HEAVY) == set()


def test_help_needs_no_spark() -> None:
    code = "from understudy.cli import main; main(['replay', '--help'])"
    wrapped = f"try:\n  {code}\nexcept SystemExit as e:\n  assert e.code == 0"
    assert loaded_by(wrapped) & set(HEAVY) == set()


def test_what_needs_spark_is_loaded_when_asked_for() -> None:
    from understudy.publish import read  # noqa: PLC0415

    assert understudy.read is read
    with pytest.raises(AttributeError, match="no attribute 'frobnicate'"):
        _ = understudy.frobnicate


def imports_of(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize(
    "path", sorted((PACKAGE / "controller").rglob("*.py")), ids=lambda path: path.stem
)
def test_the_controller_neither_reads_nor_writes(path: Path) -> None:
    wanted = {name for name in imports_of(path) if name.partition(".")[0] in IMPURE}
    wanted |= {name for name in imports_of(path) if [*name.split("."), ""][1] in ABOVE}
    # Only the registration of the SQL functions is handed a session.
    if path.stem != "elections_sql":
        wanted |= {name for name in imports_of(path) if name.endswith(".SparkSession")}
    assert wanted == set()


@pytest.mark.parametrize(
    "path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE))
)
def test_only_the_session_looks_below_the_data_frame_api(path: Path) -> None:
    names = {
        node.attr
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute)
    }
    allowed = {"sparkContext", "_jsc", "_jvm"} if path.name == "session.py" else set()
    assert names & {"sparkContext", "rdd", "_jvm", "_jdf", "_sc", "_jsc"} <= allowed
    assert not any(name.partition(".")[0] in {"py4j", "pickle"} for name in imports_of(path))
