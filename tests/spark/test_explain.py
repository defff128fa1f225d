"""The story of one partition, from snapshots with a history and from published runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from clusters import partition
from commands import told
from told_histories import zk
from understudy import cli
from understudy.report import explain_text

pytestmark = pytest.mark.usefixtures("spark")

TAKEN = ("2026-01-01T00:00:00Z", "2026-01-01T00:10:00Z", "2026-01-01T00:20:00Z")


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Broker 1 leads, then dies; nobody else notices anything for the rest of the time."""
    other = partition([2, 3], (2, 1, [2, 3]), number=1)
    before = partition([1, 2, 3], (1, 4, [1, 2, 3]))
    after = partition([1, 2, 3], (2, 5, [2, 3]), partition_epoch=11)
    docs = [
        zk(before, other),
        zk(after, other, live=(2, 3)),
        zk(after, other, live=(2, 3)),
    ]
    path = tmp_path_factory.mktemp("explain") / "story.jsonl"
    named = (
        doc | {"cluster": "c", "snapshot_id": f"s{n}", "taken_at": taken_at}
        for n, (doc, taken_at) in enumerate(zip(docs, TAKEN, strict=True))
    )
    path.write_text("\n".join(map(json.dumps, named)))
    return path


def test_of_a_snapshot(story: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answer = told(capsys, 0, "explain", "t-0", "--snapshot", str(story))
    assert (answer["now"]["snapshot_id"], answer["now"]["leader"]) == ("s2", 2)
    assert answer["past"]["count"] == 1
    (step,) = answer["past"]["first"]
    assert step["snapshot_id"] == "s1"
    assert {each["field"]: each["reason"] for each in step["changes"]} == dict.fromkeys(
        ("leader", "leader_epoch", "isr", "partition_epoch"), "broker_failure"
    )
    assert [json.loads(each["event"]) for each in step["events"]] == [
        {"brokers": [1], "type": "broker_failure"}
    ]
    (decision,) = step["decisions"]
    assert decision["candidates"] == [
        {"replica": 1, "verdict": "broker_down"},
        {"replica": 2, "verdict": "chosen"},
        {"replica": 3, "verdict": "not_tried"},
    ]
    assert not step["divergences"]
    # One failure more: the other broker in sync takes over.
    leaders = {each["scenario"]: each["leader"] for each in answer["next"]}
    assert leaders == {"broker:2": 3, "broker:3": 2}

    text = " ".join(explain_text.as_text(answer).split())
    for sentence in (
        "t-0 in snapshot s2 of c, taken at 2026-01-01T00:20:00.000Z",
        "Broker 2 leads it (leader epoch 5, partition epoch 11); in sync: 2, 3;",
        "Not alive, or shutting down: 1.",
        "leader was 1 and is 2, by broker_failure.",
        "broker 1 was alive with epoch 101 and is gone.",
        "tried 1 broker_down, 2 chosen, 3 not_tried: broker 2 is chosen, cleanly;",
        "broker:2 fails: broker 3 leads it in leader epoch 6, in sync: 3",
    ):
        assert sentence in text


def test_of_a_published_run(
    story: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "out")
    told(capsys, 0, "replay", str(story), "--out", out)
    assert cli.main(["explain", "t-0", "--run", out, "--snapshot-id", "s1"]) == 0
    text = capsys.readouterr().out
    assert "What became of it: 1 row" in text
    assert "s1, scenario failover: broker 2 led it;" in text
    assert told(capsys, 65, "explain", "t-9", "--run", out)["error"].endswith("nothing about t-9")


@pytest.mark.parametrize(
    ("argv", "code", "error"),
    [
        (("orders",), 64, "'orders' is not a partition such as orders-0"),
        (("t-7",), 65, "t-7 is not in snapshot s2 of cluster c, nor in one before it"),
    ],
)
def test_refusals(
    story: Path,
    capsys: pytest.CaptureFixture[str],
    argv: tuple[str, ...],
    code: int,
    error: str,
) -> None:
    assert told(capsys, code, "explain", *argv, "--snapshot", str(story))["error"] == error
