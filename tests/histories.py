"""Histories for tests: recorded ones, and random ones with odd corners."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

from clusters import Document, random_cluster

REAL = Path(__file__).parent / "data" / "real"
_SPARE = 6  # a broker without replicas, which is dead at first
START = datetime(2026, 1, 1, tzinfo=UTC)


def recorded(name: str) -> list[Document]:
    """The snapshots of a cluster that really ran, in their order."""
    path = REAL / f"history-{name}.jsonl.gz"
    if path.exists():
        docs = _lines(path)
    else:
        docs = [case["before"] for case in _lines(REAL / name / "cases.jsonl.gz")]
    return sorted(docs, key=lambda doc: (doc["taken_at"], doc["controller"]["epoch"]))


def _lines(path: Path) -> list[Document]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def random_history(dice: Random, cluster: str, length: int) -> list[Document]:
    """One cluster at successive instants; from one to the next most of it stays as it was."""
    kraft = dice.random() < 0.4
    docs = [_dated(random_cluster(dice, cluster), cluster, 0, START, kraft=kraft)]
    at = START
    for number in range(1, length):
        at += timedelta(seconds=dice.choice([1, 9, 10, 15, 45, 3600]))
        docs.append(_later(dice, docs[-1], number, at))
    return docs


def quiet_history(dice: Random, cluster: str, length: int) -> list[Document]:
    """One cluster at successive instants; hardly anything happens, and mostly to few partitions."""
    kraft = dice.random() < 0.5
    doc: Document = {
        "mode": "zk",
        "release": "3.9",
        "controller": {"id": 1, "epoch": 3},
        "configs": {"min.insync.replicas": "2"},
        "brokers": [
            {"id": broker, "epoch": broker, "rack": f"r{broker % 2}", "alive": broker != _SPARE}
            for broker in range(1, _SPARE + 1)
        ],
        "topics": [_quiet_topic(dice, f"topic-{n}") for n in range(4)],
    }
    docs = [_dated(doc, cluster, 0, START, kraft=kraft)]
    at = START
    for number in range(1, length):
        at += timedelta(seconds=dice.choice([5, 45, 3600, 40_000]))
        new: Document = json.loads(json.dumps(docs[-1]))
        new |= {"snapshot_id": f"s{number:03}", "taken_at": at.isoformat()}
        for happened in dice.choices([*_HAPPENINGS, _nothing], k=2):
            happened(dice, new)
        docs.append(new)
    return docs


def _quiet_topic(dice: Random, name: str) -> Document:
    parts = [_quiet_partition(dice, number) for number in range(dice.randint(1, 5))]
    return {"name": name, "id": "A" * 22, "configs": {}, "partitions": parts}


def _quiet_partition(dice: Random, number: int) -> Document:
    replicas = dice.sample(range(1, _SPARE), dice.choice([1, 2, 3, 3, 3]))
    state = {"leader": replicas[0], "leader_epoch": 3, "isr": replicas, "partition_epoch": 9}
    state |= {"controller_epoch": 3, "recovery": 0}
    return {"partition": number, "replicas": replicas, "state": state}


def _nothing(_dice: Random, _doc: Document) -> None:
    pass


def _some_change(dice: Random, doc: Document) -> None:
    for topic in doc["topics"]:
        for part in topic["partitions"]:
            if dice.random() < 0.2:
                _change(dice, part)


def _a_topic_grows(dice: Random, doc: Document) -> None:
    parts = dice.choice(doc["topics"])["partitions"]
    parts.append(_quiet_partition(dice, len(parts)))


def _a_topic_comes(dice: Random, doc: Document) -> None:
    doc["topics"].append(_quiet_topic(dice, f"topic-{doc['snapshot_id']}"))


def _a_topic_goes(dice: Random, doc: Document) -> None:
    doc["topics"].pop(dice.randrange(len(doc["topics"])))


def _a_topic_is_another(dice: Random, doc: Document) -> None:
    dice.choice(doc["topics"])["id"] = "B" * 21 + "A"


def _a_setting_changes(dice: Random, doc: Document) -> None:
    dice.choice(doc["topics"])["configs"] = {"min.insync.replicas": str(dice.randint(1, 4))}


def _a_first_partition_moves(dice: Random, doc: Document) -> None:
    """What of KRaft bounds the min ISR of all partitions of the topic."""
    part = dice.choice(doc["topics"])["partitions"][0]
    part["replicas"] = [*(r for r in part["replicas"] if r != _SPARE), _SPARE][-2:]
    part["state"] |= {"isr": part["replicas"], "leader": part["replicas"][0]}
    part["state"]["partition_epoch"] += 1


def _the_controller_fails(dice: Random, doc: Document) -> None:
    doc["controller"]["epoch"] += dice.randint(1, 2)


def _a_broker_goes_or_comes(dice: Random, doc: Document) -> None:
    broker = dice.choice(doc["brokers"])
    flag = "fenced" if doc["mode"] == "kraft" else "alive"
    broker[flag] = not broker[flag]


_HAPPENINGS = (
    *(_some_change, _some_change, _a_topic_grows, _a_topic_comes, _a_topic_goes),
    *(_a_topic_is_another, _a_setting_changes, _a_first_partition_moves),
    *(_the_controller_fails, _a_broker_goes_or_comes),
)


def _dated(doc: Document, cluster: str, number: int, at: datetime, *, kraft: bool) -> Document:
    doc |= {"cluster": cluster, "snapshot_id": f"s{number:03}", "taken_at": at.isoformat()}
    for n, topic in enumerate(doc["topics"]):
        topic["configs"]["min.insync.replicas"] = str(1 + (len(doc["brokers"]) + n) % 4)
    if kraft:
        doc |= {"mode": "kraft", "release": "4.1", "metadata_version": "4.1"}
        for broker in doc["brokers"]:
            broker["fenced"] = not broker.pop("alive")
        for topic in doc["topics"]:
            for part in topic["partitions"]:
                part.pop("offline_dirs", None)
                if part.get("state"):
                    part["state"] |= {"controller_epoch": None, "elr": [], "last_known_elr": []}
    return doc


def _later(dice: Random, doc: Document, number: int, at: datetime) -> Document:
    new: Document = json.loads(json.dumps(doc))
    new |= {"snapshot_id": f"s{number:03}", "taken_at": at.isoformat()}
    if dice.random() < 0.2:
        new["controller"]["epoch"] += dice.choice([1, 1, 2, -1])
        new["controller"]["epoch"] = max(0, new["controller"]["epoch"])
    for broker in new["brokers"]:
        if dice.random() < 0.2:
            flag = "fenced" if new["mode"] == "kraft" else "alive"
            broker[flag] = not broker[flag]
        if dice.random() < 0.1:
            broker["epoch"] = max(0, broker["epoch"] + dice.choice([1, 5, -1]))
        if dice.random() < 0.05:
            broker["endpoints"] = "PLAINTEXT://same:9092"
    for topic in new["topics"]:
        if dice.random() < 0.1:
            topic["id"] = dice.choice(["AAAAAAAAAAAAAAAAAAAAAA", "BBBBBBBBBBBBBBBBBBBBBA"])
        for part in topic["partitions"]:
            if part.get("state") and dice.random() < 0.6:
                _change(dice, part)
    return new


def _change(dice: Random, part: Document) -> None:
    state = part["state"]
    state["leader"] = dice.choice([*part["replicas"], state["leader"], -1])
    if dice.random() < 0.6:
        state["isr"] = dice.sample(part["replicas"], dice.randint(1, len(part["replicas"])))
    if state.get("elr") is not None and dice.random() < 0.3:
        state["elr"] = [r for r in part["replicas"] if r not in state["isr"]][:1]
    moved = dice.choice([0, 1, 1, 2, -1])
    state["leader_epoch"] = max(0, state["leader_epoch"] + moved)
    state["partition_epoch"] = max(0, state["partition_epoch"] + moved + dice.choice([0, 0, 1]))
    state["recovery"] = dice.choice([0, 0, 0, 1])
    if state["controller_epoch"] is not None:
        state["controller_epoch"] = max(0, state["controller_epoch"] + dice.choice([0, 0, 1, -1]))
    if dice.random() < 0.1:
        part["adding"], part["removing"] = part["replicas"][:1], []
