"""Controllers side by side: against plain Python, against the rules, and from end to end."""

from __future__ import annotations

import base64
import copy
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession

from clusters import Document, cluster, partition, random_cluster, rows_of
from commands import told
from conformance import kraft_cases
from kafka_answers import named
from random_events import random_events
from understudy import cli, scenarios, sources
from understudy.controller.profiles import KRAFT, PROFILES, ZK
from understudy.questions.compare.controllers import Controller, as_seen_by, for_each
from understudy.questions.compare.differences import FIELDS, TABLES, differences
from understudy.questions.compare.rules import RULES, UNKNOWN
from understudy.replay import replay

ZK_39 = Controller(ZK, "3.9")
KRAFT_43 = Controller(KRAFT, "4.3", elr=False)
KRAFT_43_ELR = Controller(KRAFT, "4.3", elr=True)
KRAFT_40 = Controller(KRAFT, "4.0", elr=False)
ZK_AND_KRAFT = [ZK_39, KRAFT_43, KRAFT_43_ELR]

Case = tuple[Document, list[Document]]
Key = tuple[str, str, int, str, str]  # cluster, topic, partition, field, the other controller
Values = tuple[str | None, str | None]


@pytest.fixture(autouse=True)
def interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine changes no row, and the interpreter is the quicker one for clusters so small."""
    monkeypatch.setattr("understudy.replay.SMALL", 10**9)


def compared(
    spark: SparkSession, folder: Path, cases: Sequence[Case], controllers: Sequence[Controller]
) -> list[Any]:
    """The rows of ``differences`` for one scenario over each cluster, in one go."""
    path = folder / "snapshots.jsonl"
    path.write_text("\n".join(json.dumps(doc) for doc, _ in cases), encoding="utf-8")
    lines = [
        {"scenario": "case", "cluster": doc["cluster"], "events": events} for doc, events in cases
    ]
    asked = scenarios.parse("\n".join(map(json.dumps, lines)).encode(), "events.jsonl")
    snapshots = sources.read(spark, [str(path)])
    found = replay(
        as_seen_by(snapshots, controllers), for_each(asked, controllers), changed_only=True
    )
    try:
        computed = {name: found.tables[name].localCheckpoint() for name in TABLES}
        return differences(computed, snapshots, controllers).collect()
    finally:
        found.close()
        snapshots.close()


def zk_cases(seeds: range) -> list[Case]:
    found = []
    for seed in seeds:
        rng = Random(seed)
        doc = random_cluster(rng, f"zk{seed}")
        found.append((doc, random_events(rng, doc)))
    return found


def kraft_case(seed: int) -> Case:
    case = kraft_cases.draw(seed, "4.3", seed, list(kraft_cases.EVENTS))
    return {**case["snapshot"], "cluster": f"kraft{seed}"}, case["scenario"]["events"]


# --- By hand, in plain Python --------------------------------------------------------------------


def as_kraft(doc: Document, controller: Controller) -> Document:
    """A document of ZooKeeper mode as one of KRaft."""
    doc = copy.deepcopy(doc)
    doc |= {"mode": "kraft", "release": controller.release, "elr_enabled": bool(controller.elr)}
    del doc["metadata_version"]
    for broker in doc["brokers"]:
        broker["fenced"] = not broker.pop("alive", True)
        digest = hashlib.sha256(str(broker["id"]).encode()).digest()[:16]
        broker["log_dirs"] = [base64.urlsafe_b64encode(digest).decode().rstrip("=")]
    for topic in doc["topics"]:
        for each in topic["partitions"]:
            offline = each.pop("offline_dirs", [])
            each["directories"] = [
                "AAAAAAAAAAAAAAAAAAAAAg" if replica in offline else "AAAAAAAAAAAAAAAAAAAAAA"
                for replica in each["replicas"]
            ]
            (each.get("state") or {}).pop("controller_epoch", None)
    return doc


def ended(
    doc: Document, events: list[Document], controller: Controller
) -> dict[Any, tuple[bool, list[Any]]]:
    """Partition -> whether anything was done to it, and the compared fields at the end."""
    seen = as_kraft(doc, controller) if controller.profile is KRAFT else doc
    tables = PROFILES[controller.profile.name].replay(rows_of(seen), events)
    active = {
        row["broker_id"]
        for row in named("broker_states", tables["broker_states"])
        if not row["fenced"] and not row["shutting_down"]
    }
    offline = {
        (topic["name"], each["partition"]): each.get("offline_dirs", [])
        for topic in doc["topics"]
        for each in topic["partitions"]
    }
    found = {}
    for row in named("partition_states", tables["partition_states"]):
        key = row["topic"], row["partition"]
        if controller.profile is KRAFT:
            stuck = row["outcome"] == "unchanged" and row["leader"] in offline.get(key, [])
            available = row["leader"] in active and not stuck
        else:
            available = row["state_after"] == "OnlinePartition"
        isr = None if row["isr"] is None else sorted(row["isr"])
        epochs = row["leader_epoch"], row["partition_epoch"]
        is_touched = row["outcome"] != "unchanged"
        found[key] = is_touched, [available, row["leader"], isr, *epochs]
    return found


def by_hand(cases: Sequence[Case], controllers: Sequence[Controller]) -> dict[Key, Values]:
    found: dict[Key, Values] = {}
    for doc, events in cases:
        ends = [ended(doc, events, controller) for controller in controllers]
        for controller, other in zip(controllers[1:], ends[1:], strict=True):
            for key in ends[0].keys() | other.keys():
                nothing = True, [False, None, None, None, None]
                (touched_a, fields_a), (touched_b, fields_b) = (
                    end.get(key, nothing) for end in (ends[0], other)
                )
                pairs = zip(fields_a, fields_b, strict=True)
                for field, (a, b) in zip(FIELDS, pairs, strict=True):
                    if a != b and (touched_a or touched_b):
                        found[doc["cluster"], *key, field, controller.label] = (shown(a), shown(b))
    return found


def shown(value: object) -> str | None:
    return None if value is None else json.dumps(value, separators=(",", ":"))


# --- Properties ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def zk_against_kraft(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> tuple[list[Case], list[Any]]:
    """Random cases and those of the rules in one run, and how the controllers differ."""
    of_rules = [({**doc, "cluster": name}, events) for name, (doc, events, _) in RULE_CASES.items()]
    cases = [*zk_cases(range(60)), *of_rules]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("understudy.replay.SMALL", 10**9)
        return cases, compared(spark, tmp_path_factory.mktemp("zk"), cases, ZK_AND_KRAFT)


def test_the_differences_are_those_of_the_replays_one_by_one(
    zk_against_kraft: tuple[list[Case], list[Any]],
) -> None:
    cases = [case for case in zk_against_kraft[0] if case[0]["cluster"] not in RULE_CASES]
    rows = [row for row in zk_against_kraft[1] if row.cluster not in RULE_CASES]
    found = {
        (row.cluster, row.topic, row.partition, row.field, row.controller_b): (
            row.value_a,
            row.value_b,
        )
        for row in rows
    }
    assert found == by_hand(cases, ZK_AND_KRAFT)
    assert len(rows) == len(found)
    assert UNKNOWN not in {row.rule for row in rows}
    assert {row.field for row in rows} == set(FIELDS)


def test_snapshots_of_kraft_have_a_rule_for_every_difference(
    spark: SparkSession, tmp_path: Path
) -> None:
    doc = one(ALL, 1, [1, 2], configs={"min.insync.replicas": "2"}, cluster="eligible")
    events: list[Document] = [
        {"type": FAILS, "brokers": [2]},
        {"type": "broker_startup", "brokers": [2], "clean": True},
        {"type": FAILS, "brokers": [1]},
    ]
    eligible: Case = (as_kraft(doc, KRAFT_43), events)
    cases = [eligible, *(kraft_case(seed) for seed in range(60))]
    rows = compared(spark, tmp_path, cases, [KRAFT_43, KRAFT_43_ELR, KRAFT_40, ZK_39])
    assert {row.controller_b for row in rows} == {"kraft 4.3 elr", "kraft 4.0 no-elr", "zk 3.9"}
    assert UNKNOWN not in {row.rule for row in rows}
    with_elr = {
        row.field: (row.value_a, row.value_b, row.rule, row.event)
        for row in rows
        if (row.cluster, row.controller_b) == ("eligible", "kraft 4.3 elr")
    }
    assert with_elr == {
        "available": ("false", "true", "eligible_leader", 3),
        "leader": ("-1", "2", "eligible_leader", 3),
        "isr": ("[1]", "[2]", "eligible_leader", 3),
    }


@pytest.mark.parametrize(
    "controller",
    [ZK_39, pytest.param(KRAFT_43_ELR, marks=pytest.mark.slow)],
    ids=lambda each: each.label,
)
def test_a_controller_does_not_differ_from_itself(
    spark: SparkSession, tmp_path: Path, controller: Controller
) -> None:
    cases = [*zk_cases(range(100, 130)), *map(kraft_case, range(100, 130))]
    assert compared(spark, tmp_path, cases, [controller, controller]) == []


# --- The rules -----------------------------------------------------------------------------------

FAILS = "broker_failure"
ALL = [1, 2, 3]


def one(replicas: list[int], leader: int, isr: list[int], **changes: Any) -> Document:  # noqa: ANN401
    doc = cluster({"t": [partition(replicas, (leader, 5, isr))]}, live=[1, 2, 3, 4], epoch=1)
    return {**doc, **changes}


# Name of the case -> snapshot, events, and rule by the other controller (none: no difference).
RULE_CASES: dict[str, tuple[Document, list[Document], dict[str, str]]] = {
    "follower-dies": (
        one(ALL, 1, ALL),
        [{"type": FAILS, "brokers": [3]}],
        {"kraft 4.3 no-elr": "epoch_at_shrink", "kraft 4.3 elr": "epoch_at_shrink"},
    ),
    "leader-dies": (one(ALL, 1, ALL), [{"type": FAILS, "brokers": [1]}], {}),
    "last-dies": (
        one(ALL, 1, [1]),
        [{"type": FAILS, "brokers": [1]}],
        {"kraft 4.3 elr": "isr_emptied"},
    ),
    "last-shuts-down": (
        one(ALL, 1, [1]),
        [{"type": "controlled_shutdown", "broker": 1}],
        {"kraft 4.3 no-elr": "shutdown_of_the_last", "kraft 4.3 elr": "shutdown_of_the_last"},
    ),
    "follower-shuts-down": (
        one(ALL, 1, ALL),
        [{"type": "controlled_shutdown", "broker": 3}],
        {"kraft 4.3 no-elr": "epoch_at_shrink", "kraft 4.3 elr": "epoch_at_shrink"},
    ),
    "failover-with-a-dead-leader": (
        one([9, 2, 3], 9, [9, 2, 3]),
        [{"type": "controller_failover"}],
        {"kraft 4.3 no-elr": "failover", "kraft 4.3 elr": "failover"},
    ),
    "reassigned": (
        one(ALL, 1, ALL),
        [{"type": "reassign", "partitions": {"t-0": [1, 2, 4]}}],
        {"kraft 4.3 no-elr": "reassignment", "kraft 4.3 elr": "reassignment"},
    ),
    "deleted": (
        one(ALL, 1, ALL),
        [{"type": "delete_topics", "topics": ["t"]}],
        {"kraft 4.3 no-elr": "deletion", "kraft 4.3 elr": "deletion"},
    ),
    "fenced": (
        one(ALL, 1, ALL),
        [{"type": "fence", "brokers": [1]}],
        {"kraft 4.3 no-elr": "unknown_event", "kraft 4.3 elr": "unknown_event"},
    ),
    "two-die-together": (
        one(ALL, 1, [1, 2]),
        [{"type": FAILS, "brokers": [1, 2]}],
        {"kraft 4.3 elr": "isr_emptied"},
    ),
}


def test_each_difference_is_laid_at_the_rule_that_makes_it(
    zk_against_kraft: tuple[list[Case], list[Any]],
) -> None:
    found: dict[str, dict[str, set[str]]] = {name: {} for name in RULE_CASES}
    for row in zk_against_kraft[1]:
        if row.cluster in found:
            found[row.cluster].setdefault(row.controller_b, set()).add(row.rule)
    expected = {
        name: {other: {rule} for other, rule in rules.items()}
        for name, (_, _, rules) in RULE_CASES.items()
    }
    assert found == expected


# --- From end to end -----------------------------------------------------------------------------


def test_a_comparison_is_published_and_told(
    tmp_path: Path, spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    source, out, lose_3 = tmp_path / "s.json", str(tmp_path / "out"), tmp_path / "lose-3.json"
    source.write_text(json.dumps(one(ALL, 1, ALL)), encoding="utf-8")
    events = [{"type": FAILS, "brokers": [3]}]
    lose_3.write_text(json.dumps({"scenario": "lose-3", "events": events}), encoding="utf-8")
    command = ["compare", str(source), "--profiles", "zk,kraft", "--releases", "3.9,4.3"]
    command += ["--out", out, "--scenarios", str(lose_3)]

    first = told(capsys, 0, *command)
    assert first["controllers"] == ["zk 3.9", "kraft 3.9", "kraft 4.3"]
    assert first["notes"] == ["zk 4.3 does not exist: zk is 2.4 to 3.9"]
    assert first["tables"] == {"differences": 2, "quarantine": 0}
    (rule, _) = first["rules"]["first"]
    assert (rule["rule"], rule["partitions"], rule["leader_epoch"]) == ("epoch_at_shrink", 1, 1)
    assert rule["example"]["fields"] == {"leader_epoch": {"value_a": "6", "value_b": "5"}}

    assert cli.main(command) == 0
    text = capsys.readouterr().out
    assert "Nothing to do" in text
    assert "t-0: leader_epoch 6 -> 5" in text
    assert "zk 4.3 does not exist" in text
    rules = {row.rule for row in spark.read.parquet(f"{out}/differences").collect()}
    assert rules <= {rule.name for rule in RULES}


def test_a_failover_alone_is_told_with_a_hint(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "s.json"
    source.write_text(json.dumps(one(ALL, 1, ALL)), encoding="utf-8")
    command = ["compare", str(source), "--profiles", "kraft", "--releases", "4.0,4.3"]
    assert cli.main([*command, "--out", str(tmp_path / "out")]) == 0
    text = capsys.readouterr().out
    assert "they do the same" in text
    assert "writes nothing at a failover" in text


@pytest.mark.usefixtures("spark")
def test_a_scenario_that_fits_no_snapshot_is_bad_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, asked = tmp_path / "s.json", tmp_path / "e.json"
    source.write_text(json.dumps(one(ALL, 1, ALL)), encoding="utf-8")
    asked.write_text(json.dumps({"scenario": "x", "snapshot_id": "s9", "events": []}))
    command = ["compare", str(source), "--profiles", "zk,kraft", "--scenarios", str(asked)]
    answer = told(capsys, 65, *command, "--out", str(tmp_path / "out"))
    assert answer["problems"] == ["scenario x: no snapshot is of snapshot s9"]


def test_what_cannot_be_compared_is_a_mistake_of_the_command(
    capsys: pytest.CaptureFixture[str],
) -> None:
    answer = told(capsys, 64, "compare", "x", "--profiles", "zk", "--out", "y")
    assert "two controllers are needed" in answer["error"]
