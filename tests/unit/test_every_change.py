"""Recorded clusters, a snapshot after every single change: each change has its right reason.

What was done to the clusters is known (tests/data/real), and so is what their controllers saw.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import kraft_log_samples
import zookeeper_samples
from intervals import of_content, told
from understudy.questions.history.divergence import DELETING, UNCLEAN, Change, Divergence
from understudy.sources import kraft_directory
from understudy.sources.content import Content, Parsed
from understudy.sources.zookeeper.history import Asked

REAL = Path(__file__).parents[1] / "data" / "real"
ZOOKEEPER = ["zk-1.0", "zk-2.8", "zk-3.9"]

# An automatic rebalance is a preferred election that nobody asked for. How far a deletion had come
# was only in the memory of the controller, which went on with it when the broker was back.
ALSO = {
    "zk28-a-017": {"preferred_election"},
    "zk10-a-028": {DELETING},
    "zk10-a-029": {DELETING, "stop_replica_response"},
}


def contents(parsed: list[Parsed]) -> list[Content]:
    assert not [each.problems for each in parsed if each.problems]
    # Those without a controller do not say who is to decide.
    return [each.content for each in parsed if each.content and each.content.snapshot[8]]


@cache
def history(run: str) -> list[Content]:
    if run in zookeeper_samples.RUNS:
        wanted = Asked(zookeeper_samples.naming(zookeeper_samples.RUNS[run]), every_change=True)
        return contents(zookeeper_samples.load(zookeeper_samples.directory_of(run), wanted))
    files = kraft_log_samples.files_of(run)
    every = kraft_directory.Asked("it", every_change=True)
    names = kraft_directory.plan(files, every)
    return contents(list(kraft_directory.snapshots([(n, files[n]) for n in names], every)))


@cache
def all_told(run: str) -> tuple[list[tuple[str, Change]], list[Divergence]]:
    """The changes, each with its snapshot, and the divergences of a whole run."""
    changes, divergences = [], []
    for _, _, snapshots in told([of_content(each) for each in history(run)]):
        for name, found in snapshots:
            changes += [(name, change) for change in found.changes]
            divergences += found.divergences
    return changes, divergences


@pytest.mark.parametrize("run", [*ZOOKEEPER, "kraft-4.3", "kraft-3.9"])
def test_nothing_is_unexplained(run: str) -> None:
    changes, divergences = all_told(run)
    assert {each.reason for each in divergences} <= ({DELETING} if run == "zk-1.0" else set())
    assert {change.reason for _, change in changes} <= REASONS | {DELETING}


REASONS = {
    *("controller_failover", "broker_failure", "broker_startup", "controlled_shutdown"),
    *("log_dir_failure", "topic_change", "partition_change", "delete_topics", "unfence"),
    *("stop_replica_response", "reassign", "cancel_reassignment", "assign_dirs", "isr_change"),
    *("preferred_election", UNCLEAN, "not_replayed"),
}


def cases(run: str) -> list[dict[str, Any]]:
    with gzip.open(REAL / run / "cases.jsonl.gz") as lines:
        return [json.loads(line) for line in lines]


@pytest.mark.parametrize("run", ZOOKEEPER)
def test_every_change_has_the_reason_that_the_controller_logged(run: str) -> None:
    """Also in what the cases call noise: what leaders and rebalances did is among the events."""
    quiet = [(zxid, doc["taken_at"]) for zxid, _, doc in zookeeper_samples.recorded(run)]
    logged: dict[str, set[str]] = {}
    name = began = ""
    for case in cases(run):
        if case["case"].rstrip("ab") != name:  # the second half of a case belongs to the first
            name, began = case["case"].rstrip("ab"), case["before"]["taken_at"]
        types = {event["type"] for event in case["events"]}
        logged.setdefault(began, {UNCLEAN}).update(types | ALSO.get(name, set()))
    wrong: Counter[Any] = Counter()
    right = 0
    for name, change in all_told(run)[0]:
        zxid = int(name.removeprefix("zxid-"), 16)
        before = [taken_at for at, taken_at in quiet if at < zxid]
        if not before or before[-1] not in logged:
            continue
        if change.reason in logged[before[-1]]:
            right += 1
        else:
            wrong[before[-1], change.reason, *sorted(logged[before[-1]])] += 1
    assert not wrong
    assert right > 1_000


def test_the_unclean_elections_of_the_quorum_are_those_its_log_marks() -> None:
    """A leader that has to recover was elected out of sync; Kafka itself writes that down."""
    run = "kraft-4.3"
    names: dict[str, str] = {}
    marked: Counter[tuple[str, int]] = Counter()
    with gzip.open(kraft_log_samples.DATA / run / "records.jsonl.gz") as lines:
        for record in map(json.loads, lines):
            if record.get("type") == "TOPIC_RECORD":
                names[record["data"]["topicId"]] = record["data"]["name"]
            elif record.get("data", {}).get("leaderRecoveryState") == 1:
                marked[names[record["data"]["topicId"]], record["data"]["partitionId"]] += 1
    found = Counter(
        (change.topic, change.partition)
        for _, change in all_told(run)[0]
        if change.field == "leader" and change.reason == UNCLEAN
    )
    assert found.keys() == marked.keys()
    # A single replica never stops recovering, so that it is marked no second time.
    assert marked - found == Counter()
    assert {topic for topic, _ in found - marked} == {"audit_log", "t"}
