"""What holds for the quorum controller whatever happens: random clusters, random events."""

from __future__ import annotations

from random import Random
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clusters import rows_of
from kraft_answers import replayed
from understudy.controller.kraft import interpreter as kraft_interpreter
from understudy.controller.kraft.cluster import Cluster
from understudy.controller.kraft.events import QuorumController
from understudy.controller.kraft.journal import KraftJournal
from understudy.controller.kraft.partitions import Partition

Json = Any
Document = dict[str, Json]

BROKERS = (1, 2, 3, 18, 70_000)
RELEASES = (
    ("3.5", "3.5-IV2"), ("3.8", "3.6-IV0"), ("4.0", "4.0-IV3"), ("4.1.0", "4.1-IV1"),
    ("4.2", "4.2-IV1"), ("4.3", "3.5-IV2"), ("4.3", "4.3-IV0"),
)  # fmt: skip

quick = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
scenarios = st.integers(0, 2**32).map(lambda seed: _scenario(Random(seed)))


def _scenario(rng: Random) -> tuple[Document, list[Document]]:
    release, metadata_version = rng.choice(RELEASES)
    unclean = {"unclean.leader.election.enable": "true"} if rng.random() < 0.4 else {}
    elr = metadata_version >= "4" and rng.random() < 0.8
    document = {
        "cluster": "c",
        "snapshot_id": "s",
        "mode": "kraft",
        "release": release,
        "metadata_version": metadata_version,
        "elr_enabled": elr,
        "controller": {"id": 100, "epoch": 1},
        "configs": {"min.insync.replicas": str(rng.randint(1, 3))} | unclean,
        "brokers": [{"id": b, "epoch": 100, "log_dirs": [_directory(b)]} for b in BROKERS],
        "topics": [
            {"name": "a", "partitions": [_partition(rng, n, elr=elr) for n in range(4)]},
        ],
    }
    return document, [_event(rng) for _ in range(rng.randint(1, 12))]


def _directory(broker: int) -> str:
    return f"{broker:021d}A"


def _partition(rng: Random, number: int, *, elr: bool) -> Document:
    replicas = rng.sample(BROKERS, rng.randint(1, 4))
    isr = rng.sample(replicas, rng.randint(1, len(replicas)))
    behind = [r for r in replicas if r not in isr]
    return {
        "partition": number,
        "replicas": replicas,
        "directories": [_directory(r) for r in replicas],
        "state": {
            "leader": rng.choice(isr),
            "leader_epoch": rng.randrange(9),
            "isr": isr,
            "partition_epoch": rng.randrange(9),
            "elr": rng.sample(behind, rng.randint(0, len(behind))) if elr else [],
        },
    }


def _event(rng: Random) -> Document:
    some = rng.sample(BROKERS, rng.randint(1, 3))
    name = f"a-{rng.randrange(4)}"
    return rng.choice(
        [
            {"type": "fence", "brokers": some},
            {"type": "broker_failure", "brokers": some},
            {"type": "unfence", "brokers": some},
            {"type": "broker_startup", "brokers": some, "clean": rng.random() < 0.5},
            {"type": "controlled_shutdown", "broker": some[0]},
            {"type": "unregister", "brokers": some[:1]},
            {"type": "log_dir_failure", "broker": some[0], "dirs": [_directory(some[0])]},
            {"type": "catch_up", "brokers": list(BROKERS)},
            {"type": "isr_change", "partition": name, "isr": some},
            {"type": "reassign", "partitions": {name: some}},
            {"type": "cancel_reassignment", "partitions": [name]},
            {"type": "preferred_election", "partitions": "all"},
            {"type": "unclean_election", "partitions": "all"},
            {"type": "auto_rebalance"},
            {"type": "auto_unclean_election"},
            {"type": "controller_failover"},
        ]
    )


def _steps(document: Document, events: list[Document]) -> list[tuple[Document, Cluster]]:
    """The cluster after each event, with the event."""
    cluster = kraft_interpreter.load(rows_of(document))
    controller = QuorumController(cluster, KraftJournal())
    seen = []
    for event in events:
        controller.process(event)
        snapshot = Cluster(cluster.rules, cluster.controller_id)
        snapshot.brokers = dict(cluster.brokers)
        snapshot.topics = {topic: dict(rows) for topic, rows in cluster.topics.items()}
        seen.append((event, snapshot))
    return seen


def _partitions(cluster: Cluster) -> list[Partition]:
    return [partition for _, partition in cluster.all_partitions()]


@quick
@given(scenarios)
def test_epochs_never_fall_and_rise_with_every_record(
    scenario: tuple[Document, list[Document]],
) -> None:
    document, events = scenario
    epochs: dict[int, tuple[int, int]] = {
        p["partition"]: (p["state"]["leader_epoch"], p["state"]["partition_epoch"])
        for p in document["topics"][0]["partitions"]
    }
    for row in replayed(document, events)["metadata_writes"]:
        if row["partition"] is None:
            continue
        leader_epoch, partition_epoch = epochs[row["partition"]]
        bumped = leader_epoch + ("leader" in row["changed"])
        assert (row["leader_epoch"], row["partition_epoch"]) == (bumped, partition_epoch + 1)
        epochs[row["partition"]] = (bumped, partition_epoch + 1)


@quick
@given(scenarios)
def test_isr_and_elr_have_no_member_in_common(scenario: tuple[Document, list[Document]]) -> None:
    for _, cluster in _steps(*scenario):
        for partition in _partitions(cluster):
            assert set(partition.isr).isdisjoint(partition.elr)
            assert cluster.rules.elr or not partition.elr
            assert cluster.rules.elr or partition.isr


@quick
@given(scenarios)
def test_a_fenced_broker_leads_nothing_and_is_in_no_isr_with_others(
    scenario: tuple[Document, list[Document]],
) -> None:
    for event, cluster in _steps(*scenario):
        if event["type"] not in ("fence", "broker_failure"):
            continue
        gone = set(event["brokers"])
        for partition in _partitions(cluster):
            assert partition.leader not in gone
            if gone.intersection(partition.isr):  # the last member stays where there is no ELR
                assert (len(partition.isr), partition.leader) == (1, -1)


@quick
@given(scenarios)
def test_a_clean_leader_was_in_the_isr_or_the_elr(
    scenario: tuple[Document, list[Document]],
) -> None:
    document, events = scenario
    tables = replayed(document, events)
    known = {
        p["partition"]: {*p["state"]["isr"], *p["state"]["elr"]}
        for p in document["topics"][0]["partitions"]
    }
    clean = {(r["event"], r["partition"]): r["clean"] for r in tables["decisions"]}
    for row in tables["metadata_writes"]:
        number = row["partition"]
        if number is None:
            continue
        by_request = "isr" in row["changed"] and row["event_type"] in ("isr_change", "catch_up")
        if row["leader"] != -1 and clean.get((row["event"], number)) and not by_request:
            assert row["leader"] in known[number]
        if row["recovery"] == 1 and "recovery" in row["changed"]:
            assert row["isr"] == (row["leader"],)
        known[number] = {*row["isr"], *row["elr"]}


@quick
@given(scenarios)
def test_a_leader_is_a_replica_and_in_the_isr(scenario: tuple[Document, list[Document]]) -> None:
    for _, cluster in _steps(*scenario):
        for partition in _partitions(cluster):
            if partition.leader != -1:
                assert partition.leader in partition.isr
            assert set(partition.isr) <= set(partition.replicas)
            assert len(partition.directories) == len(partition.replicas)


@quick
@given(scenarios)
def test_the_indexes_say_what_the_partitions_say(
    scenario: tuple[Document, list[Document]],
) -> None:
    document, events = scenario
    cluster = kraft_interpreter.load(rows_of(document))
    controller = QuorumController(cluster, KraftJournal())
    for event in events:
        controller.process(event)
    partitions = dict(cluster.all_partitions())
    for broker in BROKERS:
        assert cluster.by_isr.of(broker) == [tp for tp, p in partitions.items() if broker in p.isr]
        assert cluster.by_elr.of(broker) == [tp for tp, p in partitions.items() if broker in p.elr]
        directory = _directory(broker)
        assert cluster.by_directory.of(directory) == [
            tp for tp, p in partitions.items() if directory in p.directories
        ]
    assert cluster.leaderless == {tp for tp, p in partitions.items() if p.leader == -1}


@quick
@given(scenarios)
def test_replaying_the_records_gives_the_final_state(
    scenario: tuple[Document, list[Document]],
) -> None:
    tables = replayed(*scenario)
    last = {
        row["partition"]: row
        for row in tables["metadata_writes"]
        if row["record"] == "PartitionChangeRecord"
    }
    for state in tables["partition_states"]:
        if state["partition"] in last:
            row = last[state["partition"]]
            names = ("leader", "leader_epoch", "isr", "elr", "replicas", "directories")
            assert {n: state[n] for n in names} == {n: row[n] for n in names}
        else:
            assert state["outcome"] == "unchanged"
