"""Random clusters for questions about failures, and what a failure does to them, in plain Python.

The rules are written down a second time here, in the words of Kafka's election and nothing else:
no thresholds and no sets. Clusters are as a controller writes them (the leader is in the ISR, the
ISR in the assignment), with members that died since, brokers that are shutting down and log
directories that are offline.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, combinations
from random import Random
from typing import NamedTuple, TypeVar

from clusters import Document, rows_of
from understudy.controller.profiles import PROFILES
from understudy.names import SCENARIO_KEY
from understudy.schemas import REPLAY_TABLES

UNAVAILABLE, FULL_ACKS = "unavailable", "full_acks_produce_unavailable"
TopicPartition = tuple[str, int]
_Any = TypeVar("_Any", int, str)

RELEASES = {
    "zk": (("3.9", "3.9"), ("2.8", "2.8"), ("1.0", "1.0")),
    "kraft": (("4.3", "4.3-IV0"), ("4.1", "4.1-IV1"), ("3.9", "3.9-IV0"), ("3.8", "3.8-IV0")),
}

# Also ids that share a bucket, and the last that fits into a packed set with the first that not.
IDS = (*range(1, 36), 1025, 1026, 2_097_150, 2_097_151)


# --- Clusters ------------------------------------------------------------------------------------


def failing_cluster(rng: Random, name: str, mode: str | None = None) -> Document:
    mode = mode or rng.choice(["zk", "kraft"])
    release, version = rng.choice(RELEASES[mode])
    elr = mode == "kraft" and release.startswith("4") and rng.random() < 0.7
    ids = sorted(rng.sample(IDS, rng.randint(2, 6)))
    down = [b for b in ids if rng.random() < 0.15]
    leaving = [b for b in ids if b not in down and rng.random() < 0.07]
    live = [b for b in ids if b not in down and b not in leaving] or ids[:1]
    down, leaving = ([b for b in each if b not in live] for each in (down, leaving))
    configs = {}
    if rng.random() < 0.3:
        configs["unclean.leader.election.enable"] = "true"
    if rng.random() < 0.5:
        configs["min.insync.replicas"] = str(rng.randint(1, 3))
    topics = [
        _topic(rng, topic, ids, live, elr=elr, mode=mode)
        for topic in rng.sample(["orders", "a-b", "__consumer_offsets"], rng.randint(1, 2))
    ]
    doc: Document = {
        "cluster": name,
        "snapshot_id": "s",
        "mode": mode,
        "release": release,
        "metadata_version": version,
        **({"elr_enabled": True} if elr else {}),
        "controller": {"id": rng.choice(live), "epoch": 3},
        "brokers": [_broker(rng, b, mode, down=b in down, leaving=b in leaving) for b in ids],
        "configs": configs,
        "topics": topics,
    }
    judge = Judge(doc)
    for topic, partition in judge.partitions.values():
        # There are eligible leader replicas only while the ISR is too small (KIP-966).
        if len(partition["state"]["isr"]) >= judge.min_isr(topic):
            partition["state"].pop("elr", None)
    return doc


def _broker(rng: Random, broker: int, mode: str, *, down: bool, leaving: bool) -> Document:
    gone = {"fenced": down} if mode == "kraft" else {"alive": not down}
    rack = {"rack": rng.choice(["a", "b", "c"])} if rng.random() < 0.8 else {}
    return {"id": broker, "epoch": 100 + broker, "shutting_down": leaving, **gone, **rack}


def _topic(
    rng: Random, name: str, ids: list[int], live: list[int], *, elr: bool, mode: str
) -> Document:
    configs = {}
    if rng.random() < 0.5:
        configs["min.insync.replicas"] = str(rng.randint(1, 4))
    if rng.random() < 0.2:
        configs["unclean.leader.election.enable"] = rng.choice(["true", "false"])
    numbers = range(rng.randint(1, 4))
    return {
        "name": name,
        "queued_for_deletion": mode == "zk" and rng.random() < 0.1,
        "configs": configs,
        "partitions": [_partition(rng, n, ids, live, elr=elr, mode=mode) for n in numbers],
    }


def _partition(
    rng: Random, number: int, ids: list[int], live: list[int], *, elr: bool, mode: str
) -> Document:
    replicas = rng.sample(ids, rng.randint(1, min(5, len(ids))))
    doc: Document = {"partition": number, "replicas": replicas}
    if mode == "zk" and rng.random() < 0.1:
        doc["offline_dirs"] = rng.sample(replicas, 1)
    if rng.random() < 0.05:
        return doc
    # A member that is down is still in the ISR only until somebody notices.
    in_sync = [r for r in replicas if rng.random() < (0.8 if r in live else 0.25)]
    isr = rng.sample(in_sync, len(in_sync)) or replicas[:1]
    leader = rng.choice(isr) if rng.random() < 0.9 else -1
    state: Document = {"leader": leader, "leader_epoch": 4, "isr": isr, "partition_epoch": 9}
    if elr and rng.random() < 0.5:
        state["elr"] = [r for r in replicas if r not in isr][:2]
    if elr and rng.random() < 0.2:
        # Everybody in sync is gone; the last of them may have been forgotten since.
        state |= {"leader": -1, "isr": [], "last_known_elr": [leader] if leader >= 0 else []}
        state["elr"] = isr[:2] if rng.random() < 0.7 else []
    doc["state"] = state
    return doc


# --- What a failure does, read from Kafka's election alone ---------------------------------------


class Fate(NamedTuple):
    offline: bool
    blocked: bool


class Judge:
    """Judges failures of one cluster; queued topics and partitions never led are no concern."""

    def __init__(self, doc: Document) -> None:
        self.doc = doc
        self.kraft = doc["mode"] == "kraft"
        self.registered = {
            b["id"] for b in doc["brokers"] if not b.get("fenced", False) and b.get("alive", True)
        }
        leaving = {b["id"] for b in doc["brokers"] if b["shutting_down"]}
        self.live = self.registered - leaving
        self.partitions = {
            (topic["name"], p["partition"]): (topic, p)
            for topic in doc["topics"]
            for p in topic["partitions"]
            if not topic["queued_for_deletion"] and p.get("state")
        }

    def setting(self, topic: Document, key: str) -> str | None:
        value: str | None = topic["configs"].get(key, self.doc["configs"].get(key))
        return value

    def unclean(self, topic: Document) -> bool:
        if self.kraft and self.doc["release"] < "3.9":
            return False
        return self.setting(topic, "unclean.leader.election.enable") == "true"

    def min_isr(self, topic: Document) -> int:
        wanted = int(self.setting(topic, "min.insync.replicas") or 1)
        first = next(p for p in topic["partitions"] if p["partition"] == 0)
        return min(wanted, len(first["replicas"])) if self.kraft else wanted

    def online(self, partition: Document) -> set[int]:
        return self.live - set(partition.get("offline_dirs", ()))

    def before(self, tp: TopicPartition) -> Fate:
        topic, partition = self.partitions[tp]
        state = partition["state"]
        return self._fate(topic, partition, state["leader"], state["isr"], self.online(partition))

    def after(self, tp: TopicPartition, failed: Iterable[int]) -> Fate:
        topic, partition = self.partitions[tp]
        gone = set(failed) & self.registered
        online = self.online(partition) - gone
        state = partition["state"]
        leader, isr = state["leader"], list(state["isr"])
        if self.kraft:
            leader, isr = self._fenced(topic, partition, gone, online)
        else:
            if leader in gone:
                leader, isr = self._elected(topic, partition, online)
            isr = [r for r in isr if r not in gone] or isr[:1]
        return self._fate(topic, partition, leader, isr, online)

    def _elected(
        self, topic: Document, partition: Document, online: set[int]
    ) -> tuple[int, list[int]]:
        """The first assigned replica that is online and in sync; else, if unclean, online."""
        isr = partition["state"]["isr"]
        for replica in partition["replicas"]:
            if replica in online and replica in isr:
                return replica, [r for r in isr if r in online]
        for replica in partition["replicas"] if self.unclean(topic) else ():
            if replica in online:
                return replica, [replica]
        return -1, isr

    def _fenced(
        self, topic: Document, partition: Document, gone: set[int], online: set[int]
    ) -> tuple[int, list[int]]:
        """All at once what the quorum controller does one after the other."""
        state = partition["state"]
        isr = [r for r in state["isr"] if r not in gone]
        if len(isr) == len(state["isr"]) or (state["leader"] in online and isr):
            return state["leader"], isr
        eligible = isr or state.get("elr", [])
        for replica in partition["replicas"]:
            if replica in online and replica in eligible:
                return replica, isr or [replica]
        for replica in partition["replicas"] if self.unclean(topic) else ():
            if replica in online:
                return replica, [replica]
        return -1, isr

    def _fate(
        self, topic: Document, partition: Document, leader: int, isr: list[int], online: set[int]
    ) -> Fate:
        del partition
        offline = leader not in online
        return Fate(offline, offline or len(isr) < self.min_isr(topic))


def subsets(pool: Iterable[_Any]) -> Iterator[tuple[_Any, ...]]:
    """Every set of these but the empty one, the small ones first."""
    ordered = sorted(pool)
    return chain.from_iterable(combinations(ordered, n) for n in range(1, len(ordered) + 1))


def minimal(lost: Iterable[tuple[_Any, ...]]) -> list[tuple[_Any, ...]]:
    """Those that contain no other; the small ones come first."""
    found: list[tuple[_Any, ...]] = []
    for each in lost:
        if not any(set(other) <= set(each) for other in found):
            found.append(each)
    return found


# --- The same through the controller itself ------------------------------------------------------


class After(NamedTuple):
    leader: int | None
    isr: list[int]
    outcome: str


def replayed(doc: Document, *events: Document) -> dict[TopicPartition, After]:
    """What became of every partition."""
    profile = next(
        p for p in PROFILES.values() if p.mode == doc["mode"] and p.covers(doc["release"])
    )
    names = REPLAY_TABLES["partition_states"].names[len(SCENARIO_KEY) :]
    states = [
        dict(zip(names, row, strict=True))
        for row in profile.replay(rows_of(doc), events)["partition_states"]
    ]
    return {
        (row["topic"], row["partition"]): After(
            row["leader"], list(row["isr"] or ()), row["outcome"]
        )
        for row in states
    }


def failure(failed: Iterable[int]) -> Document:
    return {"type": "broker_failure", "brokers": list(failed)}
