"""The commands from end to end, in the process of the test."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from commands import told
from understudy import cli, publish
from understudy.schemas import REPLAY_TABLES

pytestmark = pytest.mark.usefixtures("spark")


def document(snapshot: str = "s1", **changes: Any) -> dict[str, Any]:  # noqa: ANN401
    """Two brokers, one dead; a partition it led alone, one it led, and one it only followed."""

    def partition(number: int, leader: int, isr: list[int]) -> dict[str, Any]:
        state = {"leader": leader, "leader_epoch": 4, "isr": isr, "partition_epoch": 9}
        return {"partition": number, "replicas": [1, 2], "state": state}

    topic = {
        "name": "orders",
        "partitions": [partition(0, 1, [1]), partition(1, 1, [1, 2]), partition(2, 2, [2, 1])],
    }
    return {
        "cluster": "c1",
        "snapshot_id": snapshot,
        "brokers": [{"id": 2, "epoch": 102}],
        "topics": [topic],
        **changes,
    }


def write(path: Path, *documents: dict[str, Any]) -> str:
    path.write_text("".join(json.dumps(each) + "\n" for each in documents), encoding="utf-8")
    return str(path)


def test_a_replay_is_published_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, out = write(tmp_path / "s.json", document()), str(tmp_path / "out")
    first = told(capsys, 0, "replay", source, "--out", out)
    assert not first["already_published"]
    assert set(first["tables"]) == {*REPLAY_TABLES, "quarantine"}
    assert first["tables"]["partition_states"] == first["partitions"] == 3
    assert first["outcomes"]["elected"] == 1
    assert first["outcomes"]["offline"] == 1
    assert [row["partition"] for row in first["leaderless"]["first"]] == [0]
    assert first["requests"]["brokers"]["count"] == 1

    again = told(capsys, 0, "replay", source, "--out", out, "--topic", "nothing", "--limit", "1")
    assert again["already_published"]
    assert again["run_id"] == first["run_id"]
    assert again["partitions"] == 0

    forced = told(capsys, 0, "replay", source, "--out", out, "--force")
    assert forced["run_id"] > first["run_id"]
    assert told(capsys, 0, "runs", out)["count"] == 2


def test_a_replay_writes_the_tables_it_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, out = write(tmp_path / "s.json", document()), tmp_path / "out"
    assert cli.main(["replay", source, "--out", str(out), "--tables", "decisions,requests"]) == 0
    text = capsys.readouterr().out
    assert "1 clean, 0 unclean, 1 without a candidate" in text
    written = {folder.name for folder in out.iterdir()}
    assert written == {"decisions", "requests", "quarantine", "runs", "verdicts"}


def test_bad_snapshots_beside_good_ones(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = write(tmp_path / "s.json", document(), document("s2", topic="?"), document("s3"))
    out = str(tmp_path / "out")
    for already in (False, True):
        answer = told(capsys, 65, "replay", source, "--out", out)
        assert answer["already_published"] is already
        assert answer["quarantine"]["count"] == 1
        assert answer["quarantine"]["first"][0]["position"] == "line 2"
        assert answer["replays"]["count"] == 2
    rows = publish.read(spark, out, "quarantine").collect()
    assert [row.snapshot_id for row in rows] == ["s2"]


def test_nothing_good_publishes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = write(tmp_path / "s.json", document(brokers=[{"id": -1}], colour="red"))
    answer = told(capsys, 65, "replay", source, "--out", str(tmp_path / "out"))
    assert "not one good snapshot" in answer["error"]
    assert any("colour" in problem for problem in answer["problems"])
    assert any("brokers[0].id" in problem for problem in answer["problems"])
    answer = told(capsys, 65, "load", source, "--into", str(tmp_path / "store"))
    assert "not one good snapshot" in answer["error"]
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "store").exists()


def test_a_store_keeps_one_content_of_a_snapshot(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = str(tmp_path / "store")
    first = write(tmp_path / "1.json", document())
    second = write(tmp_path / "2.json", document(), document("s2"))
    third = write(tmp_path / "3.json", document(release="3.8"))
    assert told(capsys, 0, "load", first, "--into", store)["tables"]["snapshots"] == 1
    assert told(capsys, 0, "load", first, "--into", store)["already_published"]
    # What the store holds is not loaded a second time, what it lacks is.
    answer = told(capsys, 0, "load", second, "--into", store)
    assert (answer["tables"]["snapshots"], answer["tables"]["partitions"]) == (1, 3)
    answer = told(capsys, 65, "load", third, "--into", store)
    assert answer["tables"]["snapshots"] == 0
    assert "with other content" in answer["quarantine"]["first"][0]["problems"][0]
    loaded = publish.read(spark, store, "snapshots").collect()
    assert sorted(row.snapshot_id for row in loaded) == ["s1", "s2"]
    replayed = told(capsys, 0, "replay", store, "--out", str(tmp_path / "out"))
    assert replayed["replays"]["count"] == 2


def test_a_path_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    missing = str(tmp_path / "nowhere")
    assert missing in str(told(capsys, 65, "replay", missing, "--out", str(tmp_path / "out")))
    assert missing in str(told(capsys, 65, "runs", missing))
