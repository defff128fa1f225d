"""What is not there is told before Spark is started, which takes seconds."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import pytest
from pyspark.sql import SparkSession

from understudy import cli, session
from understudy.commands.verb import running
from understudy.errors import BadInputError, UsageError
from understudy.sources import local_paths

THERE = "there.json"
ELSEWHERE = ("SPARK_CONF_DIR", "SPARK_HOME", "MASTER", "SPARK_REMOTE", "PYSPARK_SUBMIT_ARGS")
HADOOP = ("HADOOP_CONF_DIR", "YARN_CONF_DIR", "PYSPARK_GATEWAY_PORT")


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A directory to stand in, with some files; a Spark would be one in this process."""
    monkeypatch.chdir(tmp_path)
    for name in (*ELSEWHERE, *HADOOP):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)
    (tmp_path / THERE).write_text("{}")
    (tmp_path / "empty" / "below").mkdir(parents=True)
    (tmp_path / "deep" / "below").mkdir(parents=True)
    (tmp_path / "deep" / "below" / ".hidden").touch()
    return tmp_path


@pytest.fixture
def no_spark(monkeypatch: pytest.MonkeyPatch, here: Path) -> Path:
    """As *here*, where a Spark that is started all the same is a failure."""

    def start(_: str, **__: bool) -> NoReturn:
        raise AssertionError("Spark is started")

    monkeypatch.setattr(session, "_start", start)
    return here


def refused(*paths: str) -> Sequence[str]:
    with pytest.raises(BadInputError, match="nothing was found to read") as refusal:
        local_paths.check_there(paths)
    return refusal.value.problems


def test_everything_that_is_missing_is_named_once(here: Path) -> None:
    assert refused("no.json", THERE, "no/*.json", "empty", f"file:{here}/no", "no.json") == (
        "no.json: no such file",
        "no/*.json: no such file",
        "empty: there is no file",
        f"file:{here}/no: no such file",
    )
    assert refused("emp*") == ("emp*: there is no file",)


@pytest.mark.parametrize(
    "path",
    [
        THERE,
        "*.json",
        "[^x]here.jso?",
        "[!x]*",
        "deep",
        "deep/*/*",
        "deep/**/.hid*",
        ".",
        "no{,t}.json",
        r"no\\*",
        "hdfs://host/no",
        "s3a://no/no",
        "no:no",
    ],
)
@pytest.mark.usefixtures("here")
def test_what_is_there_and_what_only_spark_can_know_is_let_through(path: str) -> None:
    local_paths.check_there([path])


@pytest.mark.parametrize(
    "command",
    [
        "replay no --out out",
        f"replay {THERE} --scenarios no --out out",
        "load no --into store",
        "whatif no --every broker --out out",
        f"whatif {THERE} --scenarios no --out out",
        f"whatif {THERE} --every unit --dependencies no --out out",
        f"whatif {THERE} --reassignment no --out out",
        "cutsets no --out out",
        f"cutsets {THERE} --by unit --dependencies no --out out",
        f"cutsets {THERE} --weights no --out out",
        f"cutsets {THERE} --rates no --out out",
        "compare no --profiles zk,kraft --out out",
        f"compare {THERE} --profiles zk,kraft --scenarios no --out out",
        "audit no --out out",
        f"audit {THERE} --rules no --out out",
        f"diff {THERE} no",
        f"diff no {THERE}",
        "explain orders-0 --snapshot no",
        "ok-to-stop 1 --snapshot no",
        "plan-restart --snapshot no",
    ],
)
@pytest.mark.usefixtures("no_spark")
def test_every_verb_that_reads_says_so_at_once(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main([*command.split(), "--json"]) == 65
    told = json.loads(capsys.readouterr().out)
    assert (told["error"], told["problems"]) == ("nothing was found to read", ["no: no such file"])


@pytest.mark.parametrize("command", ["runs {}", "report {} --html x", "explain a-0 --run {}"])
@pytest.mark.parametrize("root", ["no", THERE, "empty"])
@pytest.mark.usefixtures("no_spark")
def test_a_place_without_runs_is_told_of_at_once(
    command: str, root: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(command.format(root).split()) == 65
    assert capsys.readouterr().err == (
        f"understudy: {root}: no run was ever published there (it has no runs/)\n"
    )


@pytest.mark.usefixtures("no_spark")
def test_what_is_there_goes_on_to_spark(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "store" / "runs").mkdir(parents=True)
    for command in (f"replay {THERE} --out out", "runs store"):
        assert cli.main(command.split()) == 70
        assert "Spark is started" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((name, "x") for name in ("SPARK_CONF_DIR", "SPARK_HOME", "SPARK_REMOTE", *HADOOP)),
        ("PYSPARK_SUBMIT_ARGS", "--master yarn pyspark-shell"),
        ("PYSPARK_SUBMIT_ARGS", "--conf spark.hadoop.fs.defaultFS=hdfs://h pyspark-shell"),
    ],
)
@pytest.mark.usefixtures("here")
def test_another_spark_is_asked_itself(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    assert session.is_this_machines()
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--driver-memory 4g pyspark-shell")
    assert session.is_this_machines()
    monkeypatch.setenv(name, value)
    assert not session.is_this_machines()


def test_little_is_told_from_much_and_from_what_is_not_known(here: Path) -> None:
    (here / "nowhere").symlink_to("gone")
    assert local_paths.hold_little([THERE, "deep", "nowhere"])
    assert not local_paths.hold_little([])
    assert not local_paths.hold_little([THERE, "hdfs://name/there.json"])
    assert not local_paths.hold_little(["the{re,y}.json"])
    for half in ("deep/first", "deep/second"):
        (here / half).write_bytes(bytes(local_paths.LITTLE // 2 + 1))
    assert local_paths.hold_little(["deep/fir*"])
    assert not local_paths.hold_little(["deep"])


@pytest.mark.parametrize("size", [10, 2 * local_paths.LITTLE])
def test_a_jvm_that_is_started_for_little_does_not_optimise(
    here: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    class Started(Exception):  # noqa: N818 - it is none
        pass

    def start(_: str, *, is_short: bool) -> NoReturn:
        raise Started(is_short)

    (here / THERE).write_text(" " * size)
    monkeypatch.setattr(session, "_start", start)
    args = argparse.Namespace(verbose=False, json=True)
    with pytest.raises(Started) as started, running("test", args, reads=[THERE, None]):
        pass
    assert started.value.args == (size < local_paths.LITTLE,)


def test_no_content_is_given_of_much_compressed_or_not(here: Path) -> None:
    there, large, zipped = (str(here / name) for name in (THERE, "large", "zipped"))
    Path(large).write_bytes(b"x" * local_paths.LITTLE)
    assert local_paths.little_content([there]) == {there: b"{}"}
    assert local_paths.little_content([large]) is not None
    assert local_paths.little_content([large, there]) is None
    content = b"\x1f\x8b" + b"x" * (local_paths.LITTLE // local_paths.COMPRESSED - 2)
    Path(zipped).write_bytes(content)
    assert local_paths.little_content([zipped]) is not None
    Path(zipped).write_bytes(content + b"x")
    assert local_paths.little_content([zipped]) is None


@pytest.mark.parametrize("below", ["", "some/where"])
def test_a_place_that_cannot_be_written_is_refused(tmp_path: Path, below: str) -> None:
    file = tmp_path / "a file"
    file.touch()
    with pytest.raises(UsageError, match=r"cannot be written: .*a file: Not a directory"):
        local_paths.check_can_be_written(str(file / below))
    local_paths.check_can_be_written(str(tmp_path / "there" / below))
    local_paths.check_can_be_written("hdfs://elsewhere/out")
    assert list(tmp_path.iterdir()) == [file]
