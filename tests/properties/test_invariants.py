"""What holds for every cluster a controller takes over, whatever its state."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clusters import Document, random_cluster, random_failover, rows_of
from kafka_answers import named
from understudy.controller.zk import interpreter

randoms = st.randoms(use_true_random=False)
many = settings(max_examples=300, deadline=None)


class Failover:
    def __init__(self, rng: Random) -> None:
        self.doc: Document = random_cluster(rng)
        for topic in self.doc["topics"]:  # a resumed reassignment has rules of its own
            for each in topic["partitions"]:
                each.update(adding=[], removing=[])
        self.event = random_failover(rng, self.doc)
        rows = interpreter.replay(rows_of(self.doc), [self.event])
        self.tables = {name: named(name, found) for name, found in rows.items()}
        self.partitions = {
            (t["name"], p["partition"]): p for t in self.doc["topics"] for p in t["partitions"]
        }

    def live(self, broker: int, partition: dict[str, Any]) -> bool:
        entry = next((b for b in self.doc["brokers"] if b["id"] == broker), None)
        if entry is None or not entry["alive"] or broker in self.event.get("dead", ()):
            return False
        if self.event.get("forget"):
            return True
        return not entry.get("shutting_down") and broker not in partition.get("offline_dirs", ())

    def led(self) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        """(row of partition_states, partition of the document) of every successful election."""
        return [
            (row, self.partitions[row["topic"], row["partition"]])
            for row in self.tables["partition_states"]
            if row["outcome"] in {"elected", "elected_unclean", "initialized"}
        ]


@many
@given(rng=randoms)
def test_no_dead_leader_is_ever_elected(rng: Random) -> None:
    failover = Failover(rng)
    for row, partition in failover.led():
        assert failover.live(row["leader"], partition)


@many
@given(rng=randoms)
def test_an_online_partition_has_an_online_leader(rng: Random) -> None:
    failover = Failover(rng)
    for row in failover.tables["partition_states"]:
        partition = failover.partitions[row["topic"], row["partition"]]
        if row["state_after"] == "OnlinePartition":
            assert failover.live(row["leader"], partition)


@many
@given(rng=randoms)
def test_a_clean_leader_was_in_the_isr_and_stays_in_it(rng: Random) -> None:
    for row, partition in Failover(rng).led():
        assert row["leader"] in row["isr"]
        if row["outcome"] == "elected":
            assert row["leader"] in partition["state"]["isr"]
        elif row["outcome"] == "elected_unclean":
            assert row["isr"] == (row["leader"],)


@many
@given(rng=randoms)
def test_epochs_never_fall_and_rise_with_each_write(rng: Random) -> None:
    failover = Failover(rng)
    writes: dict[tuple[str, int], int] = {}
    for write in failover.tables["metadata_writes"]:
        key = (write["topic"], write["partition"])
        writes[key] = writes.get(key, 0) + 1
    for row in failover.tables["partition_states"]:
        before = failover.partitions[row["topic"], row["partition"]].get("state")
        if before is not None:
            risen = writes.get((row["topic"], row["partition"]), 0)
            assert row["leader_epoch"] == before["leader_epoch"] + risen
            assert row["partition_epoch"] == before["partition_epoch"] + risen


@many
@given(rng=randoms)
def test_the_last_isr_member_is_retained(rng: Random) -> None:
    for row in Failover(rng).tables["partition_states"]:
        before = row["isr_before"]
        if before and len(set(before)) == len(before):
            assert row["isr"]


@many
@given(rng=randoms)
def test_an_offline_partition_had_no_clean_candidate(rng: Random) -> None:
    failover = Failover(rng)
    epoch = failover.doc["controller"]["epoch"] + 1
    for row in failover.tables["partition_states"]:
        partition = failover.partitions[row["topic"], row["partition"]]
        topic = next(t for t in failover.doc["topics"] if t["name"] == row["topic"])
        record = partition.get("state")
        untouchable = (
            topic["queued_for_deletion"] or (record or {}).get("controller_epoch", 0) > epoch
        )
        if row["state_after"] == "OfflinePartition" and not untouchable:
            assert not any(
                r in record["isr"] and failover.live(r, partition) for r in partition["replicas"]
            )


@many
@given(rng=randoms)
def test_requests_and_their_bodies_belong_together(rng: Random) -> None:
    tables = Failover(rng).tables
    counts: dict[tuple[int, str, int], int] = {}
    receivers: dict[tuple[int, str], list[int]] = {}
    for request in tables["requests"]:
        key = (request["step"], request["request"])
        receivers.setdefault(key, []).append(request["broker_id"])
    for body in tables["request_partitions"]:
        key = (body["step"], body["request"])
        for broker in receivers[key] if body["recipients"] is None else body["recipients"]:
            counts[(*key, broker)] = counts.get((*key, broker), 0) + 1
    for request in tables["requests"]:
        key3 = (request["step"], request["request"], request["broker_id"])
        assert counts.pop(key3, 0) == request["partition_count"]
        assert request["bytes"] > 0
    assert not counts


@many
@given(rng=randoms)
def test_every_election_is_explained(rng: Random) -> None:
    tables = Failover(rng).tables
    tried = [t for t in tables["transitions"] if t["to_state"] == "OnlinePartition"]
    assert len(tried) == len(tables["decisions"])
    for decision in tables["decisions"]:
        chosen = [c for c, verdict in decision["candidates"] if verdict == "chosen"]
        assert chosen == ([] if decision["chosen"] is None else [decision["chosen"]])
        assert decision["reason"]


def test_the_random_clusters_reach_every_outcome() -> None:
    rng = Random(7)
    seen = {row["outcome"] for _ in range(400) for row in Failover(rng).tables["partition_states"]}
    assert seen == {
        "unchanged", "record_refreshed", "isr_shrunk", "elected", "elected_unclean", "initialized",
        "offline", "never_led", "deleting",
    }  # fmt: skip


@pytest.mark.parametrize("seed", range(3))
def test_the_same_input_gives_the_same_rows(seed: int) -> None:
    assert Failover(Random(seed)).tables == Failover(Random(seed)).tables
