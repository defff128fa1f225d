"""Random scenarios of the ZooKeeper era over a snapshot document, odd ones on purpose."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from clusters import Document, random_failover


class _Names:
    """What a scenario can name: things of the snapshot, and some nobody knows."""

    def __init__(self, doc: Document) -> None:
        assigned = [r for t in doc["topics"] for p in t["partitions"] for r in p["replicas"]]
        self.doc = doc
        self.brokers = sorted({*assigned, *(b["id"] for b in doc["brokers"]), 7})
        self.topics = [topic["name"] for topic in doc["topics"]]
        self.partitions = [
            f"{topic['name']}-{p['partition']}"
            for topic in doc["topics"]
            for p in topic["partitions"]
        ]

    def some_brokers(self, rng: Random) -> list[int]:
        return rng.sample(self.brokers, rng.randint(1, min(3, len(self.brokers))))

    def some_partitions(self, rng: Random) -> list[str]:
        known = [*self.partitions, "nobody-0"]
        return rng.sample(known, rng.randint(1, min(3, len(known))))

    def some_topics(self, rng: Random) -> list[str]:
        return rng.sample([*self.topics, "nobody"], rng.randint(1, min(2, len(self.topics) + 1)))


def _broker_change(rng: Random, names: _Names) -> Document:
    known = {b["id"]: b.get("epoch", 0) for b in names.doc["brokers"]}
    live = {str(b): known.get(b, 0) + rng.choice([0, 0, 1]) for b in names.some_brokers(rng)}
    return {"live": live}


def _broker_startup(rng: Random, names: _Names) -> Document:
    """Mostly of brokers that are away, some of which nobody has seen."""
    alive = {b["id"] for b in names.doc["brokers"] if b.get("alive", True)}
    away = [broker for broker in names.brokers if broker not in alive]
    brokers = names.some_brokers(rng)
    if away and rng.random() < 0.7:
        brokers = rng.sample(away, rng.randint(1, min(3, len(away))))
    if rng.random() < 0.7:
        return {"brokers": brokers}
    return {"brokers": brokers, "epochs": [rng.choice([None, 0, 2**41]) for _ in brokers]}


def _log_dir_failure(rng: Random, names: _Names) -> Document:
    return {"broker": rng.choice(names.brokers), "partitions": names.some_partitions(rng)}


def _topic_change(rng: Random, names: _Names) -> Document:
    new = {topic: {"0": names.some_brokers(rng)} for topic in names.some_topics(rng)}
    return {"topics": new} if rng.random() < 0.5 else {"removed": names.some_topics(rng)}


def _partition_change(rng: Random, names: _Names) -> Document:
    added = {str(n): names.some_brokers(rng) for n in rng.sample(range(6), 2)}
    return {"topic": names.some_topics(rng)[0], "partitions": added}


def _reassign(rng: Random, names: _Names) -> Document:
    return {"partitions": {name: names.some_brokers(rng) for name in names.some_partitions(rng)}}


def _partitions(rng: Random, names: _Names) -> Document:
    return {"partitions": names.some_partitions(rng)}


def _partitions_or_all(rng: Random, names: _Names) -> Document:
    return {"partitions": "all"} if rng.random() < 0.3 else _partitions(rng, names)


def _stop_replica_response(rng: Random, names: _Names) -> Document:
    error = rng.choice([None, None, "KAFKA_STORAGE_ERROR"])
    partitions = rng.choice([names.partitions, names.some_partitions(rng)])
    return {"broker": rng.choice(names.brokers), "partitions": partitions, "error": error}


_FIELDS: dict[str, Callable[[Random, _Names], dict[str, Any]]] = {
    "broker_failure": lambda rng, names: {"brokers": names.some_brokers(rng)},
    "broker_startup": _broker_startup,
    "broker_change": _broker_change,
    "log_dir_failure": _log_dir_failure,
    "controlled_shutdown": lambda rng, names: {"broker": rng.choice(names.brokers)},
    "topic_change": _topic_change,
    "partition_change": _partition_change,
    "delete_topics": lambda rng, names: {"topics": names.some_topics(rng)},
    "stop_replica_response": _stop_replica_response,
    "reassign": _reassign,
    "cancel_reassignment": _partitions,
    "isr_change": lambda rng, names: {
        "partition": names.some_partitions(rng)[0],
        "isr": names.some_brokers(rng),
    },
    "catch_up": lambda rng, names: {"brokers": names.some_brokers(rng)},
    "preferred_election": _partitions_or_all,
    "unclean_election": _partitions_or_all,
    "auto_rebalance": lambda rng, _names: {"percentage": rng.choice([0, 10, 50])},
    "unclean_enabled": lambda rng, names: {"topic": rng.choice([None, *names.topics])},
    "fence": lambda rng, names: {"brokers": names.some_brokers(rng)},
}

KINDS = ("controller_failover", *_FIELDS)


def random_events(rng: Random, doc: Document, kinds: tuple[str, ...] = KINDS) -> list[Document]:
    """One to six events of these kinds."""
    names = _Names(doc)
    return [_event(rng, names, rng.choice(kinds)) for _ in range(rng.randint(1, 6))]


def random_event(rng: Random, doc: Document, kind: str) -> Document:
    return _event(rng, _Names(doc), kind)


def _event(rng: Random, names: _Names, kind: str) -> Document:
    if kind == "controller_failover":
        return random_failover(rng, names.doc)
    return {"type": kind, **_FIELDS[kind](rng, names)}
