"""Restart plans of whole snapshots: against partitions taken one by one, and from end to end."""

from __future__ import annotations

import json
import re
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession

import restart_checker as checker
from clusters import Document, cluster, partition
from commands import told
from understudy import publish, sources
from understudy.questions.known_clusters import known_clusters
from understudy.questions.restart import demands as demanding
from understudy.questions.restart.answer import Asked, answered

DOCS = Path(__file__).parents[2] / "docs"
LIVE = range(1, 10)
DEAD = 10


def random_document(rng: Random) -> Document:
    """Nine live brokers and a dead one, every slack from none to three, and what does not count."""
    topics: dict[str, list[Document]] = {}
    for name in ("min1", "min2", "min3", "queued"):
        topics[name] = []
        for number in range(30):
            replicas = rng.sample([*LIVE, DEAD], rng.choice([1, 2, 3, 3, 3, 4]))
            in_sync = rng.sample(
                replicas, rng.choice([len(replicas), rng.randint(1, len(replicas))])
            )
            state = None if rng.random() < 0.05 else (in_sync[0], 1, in_sync)
            offline = [replicas[-1]] if rng.random() < 0.05 else []
            topics[name].append(partition(replicas, state, number=number, offline_dirs=offline))
    doc = cluster(topics, live=LIVE, queued=["queued"])
    for topic in doc["topics"]:
        topic["configs"] = {"min.insync.replicas": topic["name"][-1:].replace("d", "1")}
    for broker in doc["brokers"]:
        broker["rack"] = "abc"[broker["id"] % 3]
    return doc


def expected(doc: Document, brokers: set[int]) -> dict[tuple[str, int], tuple[checker.Demand, int]]:
    """The touched partitions: who is restarted of them, with their slack, by the rules alone."""
    found = {}
    for topic in doc["topics"]:
        for part in topic["partitions"]:
            if topic["queued_for_deletion"] or part["state"] is None:
                continue
            in_sync = {*part["state"]["isr"]} - {DEAD} - {*part["offline_dirs"]}
            slack = len(in_sync) - int(topic["configs"]["min.insync.replicas"])
            if in_sync & brokers:
                demand = checker.Demand(frozenset(in_sync & brokers), slack)
                found[topic["name"], part["partition"]] = (demand, len(in_sync))
    return found


def write(path: Path, doc: Document) -> str:
    path.write_text(json.dumps(doc), encoding="utf-8")
    return str(path)


def test_a_plan_holds_for_every_partition(spark: SparkSession, tmp_path: Path) -> None:
    doc = random_document(Random(5))
    brokers = {1, 2, 3, 4, 5, 6, 8}
    partitions = expected(doc, brokers)
    savable = {tp: demand for tp, (demand, _) in partitions.items() if demand.slack > 0}
    # What cannot be saved keeps one in-sync replica if it has two.
    led = [
        checker.Demand(demand.pool, max(1, in_sync - 1))
        for demand, in_sync in partitions.values()
        if demand.slack <= 0
    ]
    snapshots = sources.read(spark, [write(tmp_path / "s.json", doc)])
    (known,) = known_clusters(snapshots, assigned=False)
    with answered(snapshots, Asked(known, tuple(sorted(brokers)), (), {})) as found:
        assert found.totals.partitions == len(partitions)
        assert found.totals.unsavable == len(led) > 0
        behind = [u for u in found.told(limit=200)["unsavable"] if u["replicas"] > u["min_isr"]]
        assert found.totals.unsavable_now == len(behind) > 0
        assert {u["too_few"] for u in behind} == {"in_sync"}
        assert sorted(b for each in found.rounds for b in each) == sorted(brokers)
        demands = [*savable.values(), *led]
        assert all(checker.is_safe(each, demands) for each in found.rounds)
        assert len(found.rounds) == checker.fewest_rounds(sorted(brokers), demands)
        assert found.plan.is_fewest
        for each in found.tightest:
            spares = {
                tp: demand.slack - len(demand.pool & {*each["brokers"]})
                for tp, demand in savable.items()
                if demand.pool & {*each["brokers"]}
            }
            assert each["partitions"] == len(spares)
            assert each["spare"] == min(spares.values())
            assert each["at_min_isr"] == sum(spare == 0 for spare in spares.values())
            assert spares[each["topic"], each["partition"]] == each["spare"]
        unsavable = found.told(limit=200)["unsavable"]
        assert {
            (u["topic"], u["partition"]) for u in unsavable
        } == partitions.keys() - savable.keys()
        conflicts = demanding.conflicts(found.demands)
        exact = demanding.collected(conflicts, has_larger=True)
        assert exact.sets.keys() == {*checker.conflicts(demands)}
        few = demanding.collected(conflicts, has_larger=True, limit=1)
        assert not few.are_exact
        assert all(any(pair <= each for pair in few.sets) for each in exact.sets)


def documented() -> tuple[str, list[str]]:
    """The example of the documentation: the snapshot, and what is said of it."""
    page = (DOCS / "rolling-restart.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```json\n(.*?)```", page, re.DOTALL)
    texts = re.findall(r"```text\n(.*?)```", page, re.DOTALL)
    return example, texts


@pytest.mark.usefixtures("spark")
def test_the_documented_example(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from understudy import cli  # noqa: PLC0415

    example, (text,) = documented()
    path = tmp_path / "example.json"
    path.write_text(example, encoding="utf-8")
    capsys.readouterr()
    assert cli.main(["plan-restart", "--snapshot", str(path)]) == 0
    assert capsys.readouterr().out == text


def test_from_end_to_end(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    doc: dict[str, Any] = json.loads(documented()[0])
    doc["taken_at"] = "2026-01-01T00:00:00Z"
    path, out = write(tmp_path / "s.json", doc), str(tmp_path / "out")
    asked = ("plan-restart", "--snapshot", path, "--by", "rack", "--out", out, "--replay")
    answer = told(capsys, 0, *asked)
    assert (answer["schema"], answer["verdict"], answer["unsavable_count"]) == (1, "yes", 0)
    assert answer["rounds"] == [[3, 4], [5, 6], [2], [1]]
    assert answer["conflicts"] == [
        {"brokers": [1, 2], "partitions": 1, "topic": "orders", "partition": 4}
    ]
    assert [(f["partition"], f["from"]) for f in answer["fixes"]] == [(4, 2)]
    assert answer["fixes"][0]["to"] in (5, 6)
    assert answer["fix_count"] == answer["fixes_at_least"] == 1
    assert answer["replay"]["after"]["smaller_isr"] == answer["replay"]["after"]["leaderless"] == 0
    rounds = publish.read(spark, out, "restart_rounds").orderBy("round").collect()
    assert [row.brokers for row in rounds] == answer["rounds"]
    assert min(row.spare for row in rounds) == 0
    assert publish.read(spark, out, "restart_moves").count() == 1

    doc["topics"].append(
        {"name": "alone", "partitions": [partition([2], (2, 1, [2]))]},
    )
    path = write(tmp_path / "t.json", doc)
    answer = told(capsys, 2, "plan-restart", "--snapshot", path)
    assert (answer["verdict"], answer["rounds"], answer["unsavable_count"]) == ("no", [], 1)
    assert [(u["topic"], u["too_few"]) for u in answer["unsavable"]] == [("alone", "replicas")]
    ignoring = ("--ignore-unsavable", "--max-parallel", "1")
    answer = told(capsys, 0, "plan-restart", "--snapshot", path, *ignoring)
    assert sorted(answer["rounds"]) == [[1], [2], [3], [4], [5], [6]]
    assert answer["rounds"][-1] == [1]  # the controller's
    doc["topics"].append({"name": "behind", "partitions": [partition([3, 2, 1], (3, 1, [3]))]})
    behind = write(tmp_path / "behind.json", doc)
    answer = told(capsys, 2, "plan-restart", "--snapshot", behind, *ignoring)
    assert (answer["unsavable_count"], answer["unsavable_now_count"]) == (2, 1)
    answer = told(capsys, 0, "plan-restart", "--snapshot", path, "--brokers", "3,4")
    assert answer["rounds"] == [[3, 4]]
    answer = told(capsys, 3, "plan-restart", "--snapshot", path, "--max-age", "2h")
    assert (answer["verdict"], answer["rounds"]) == ("cannot-decide", [])
    answer = told(capsys, 65, "plan-restart", "--snapshot", path, "--brokers", "3,77")
    assert "77" in answer["error"]
