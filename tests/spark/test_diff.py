"""What is different between two snapshots: applied to the first, it gives the second."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession

from clusters import Document, random_cluster, rows_of
from commands import told
from understudy import cli, sources
from understudy.commands.diff import LEGEND
from understudy.questions import diff
from understudy.report import diff_text

pytestmark = pytest.mark.usefixtures("spark")

SAMPLE = Path(__file__).parents[2] / "data" / "sample"
PAIRS = 30

Rows = dict[tuple[Any, ...], dict[str, Any]]


def by_key(rows: Iterable[Mapping[str, Any]], keys: tuple[str, ...]) -> Rows:
    hidden = {"snapshot_id", "cluster", *keys}
    return {
        tuple(row[key] for key in keys): {k: v for k, v in row.items() if k not in hidden}
        for row in rows
    }


def applied(rows: Rows, differences: list[dict[str, Any]], keys: tuple[str, ...]) -> Rows:
    """*rows* after *differences*; of what changed only the columns named as changed are taken."""
    found = {key: dict(values) for key, values in rows.items()}
    for each in differences:
        key = tuple(each[name] for name in keys)
        right = {k.removeprefix("right_"): v for k, v in each.items() if k.startswith("right_")}
        if each["diff"] == diff.INSERTED:
            assert key not in found
            found[key] = right
        elif each["diff"] == diff.DELETED:
            del found[key]
        elif each["diff"] == diff.CHANGED:
            assert each["changes"]
            found[key] |= {name: right[name] for name in each["changes"]}
        else:
            assert each["changes"] == []
    return found


def variant(rng: Random, doc: Document) -> Document:
    """The same cluster some time later: some of it as it was, some of another one."""
    other = random_cluster(rng, doc["cluster"])
    return doc | {
        name: rng.choice([doc, other])[name]
        for name in ("brokers", "configs", "topics", "controller")
    }


def test_applied_to_the_first_it_gives_the_second(spark: SparkSession, tmp_path: Path) -> None:
    rng = Random(11)
    firsts = [random_cluster(rng, f"c{n}") for n in range(PAIRS)]
    sides = {"left": firsts, "right": [variant(rng, doc) for doc in firsts]}
    for side, docs in sides.items():
        (tmp_path / f"{side}.jsonl").write_text("\n".join(map(json.dumps, docs)))
    seen: Counter[str] = Counter()
    with (
        closing(sources.read(spark, [str(tmp_path / "left.jsonl")])) as left,
        closing(sources.read(spark, [str(tmp_path / "right.jsonl")])) as right,
    ):
        before, after = left.tables(), right.tables()
        for name in ("brokers", "topics", "partitions", "configs"):
            # Many clusters in one frame: their name is a key like any other.
            keys = ("cluster", *diff.KEYS[name])
            found = diff.differences(before[name], after[name], keys)
            rows = [row.asDict(recursive=True) for row in found.collect()]
            was, now = (
                by_key([r.asDict(recursive=True) for r in table[name].collect()], keys)
                for table in (before, after)
            )
            assert applied(was, rows, keys) == now
            seen.update(row["diff"] for row in rows)
            unchanged = {key for key in was.keys() & now.keys() if was[key] == now[key]}
            assert unchanged == {
                tuple(row[key] for key in keys) for row in rows if row["diff"] == diff.UNCHANGED
            }
    assert all(seen[kind] > 5 for kind in "NIDC")


def test_command(capsys: pytest.CaptureFixture[str]) -> None:
    first, last = (SAMPLE / f"shop-eu-2026-03-01T{at}.json" for at in ("0900", "1000"))
    wanted = "^(returns|fraud-scores|orders.*)$"
    answer = told(capsys, 0, "diff", str(first), str(last), "--topic", wanted, "--limit", "3")
    before, after = (rows_of(json.loads(path.read_text())) for path in (first, last))
    keys = ("topic", "partition")
    was, now = (
        by_key([row for row in rows.partitions if re.match(wanted, row["topic"])], keys)
        for rows in (before, after)
    )
    found = answer["differences"]["partitions"]
    both = was.keys() & now.keys()
    assert found["inserted"] == len(now.keys() - was.keys())
    assert found["deleted"] == len(was.keys() - now.keys())
    assert found["unchanged"] == sum(was[key] == now[key] for key in both)
    assert found["changed"] == len(both) - found["unchanged"]
    assert found["count"] == found["changed"] + found["inserted"] + found["deleted"]
    assert found["inserted"] > 0
    assert found["changed"] > 3
    assert len(found["first"]) == 3
    for row in found["first"]:
        assert row["diff"] != "N"
        if row["diff"] == "C":
            assert set(row["changes"]) == row["left"].keys() == row["right"].keys()

    assert "→" in diff_text.as_text(answer, legend=LEGEND)


def test_a_snapshot_is_no_different_from_itself(capsys: pytest.CaptureFixture[str]) -> None:
    path = str(SAMPLE / "shop-eu-2026-03-01T0900.json")
    assert cli.main(["diff", path, path, "--topic", "^returns$"]) == 0
    assert "Nothing is different." in capsys.readouterr().out


def test_a_snapshot_that_is_not_there_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    path = str(SAMPLE / "shop-eu-2026-03-01T0900.json")
    answer = told(capsys, 65, "diff", path, path, "--id-b", "nowhere")
    assert answer["error"] == "there is no such snapshot"
