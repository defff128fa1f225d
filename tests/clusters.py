"""Snapshot documents for tests: written by hand in a few words, or random with odd corners."""

from __future__ import annotations

import json
from collections.abc import Iterable
from random import Random
from typing import Any

from understudy.controller.snapshot_rows import SnapshotRows
from understudy.sources import content, document

Document = dict[str, Any]


def rows_of(doc: Document) -> SnapshotRows:
    """A document as rows of the canonical tables, through the product's own parser."""
    (parsed,) = document.parse(json.dumps(doc).encode())
    assert not parsed.problems, parsed.problems
    assert parsed.content is not None
    return rows_of_content(parsed.content)


def rows_of_content(found: content.Content) -> SnapshotRows:
    """What any reader made of a snapshot, as rows of the canonical tables."""

    def named(columns: Iterable[str], rows: list[content.Row]) -> list[dict[str, Any]]:
        return [dict(zip(columns, row, strict=True)) for row in rows]

    return SnapshotRows(
        dict(zip(content.SNAPSHOT_COLUMNS, found.snapshot, strict=True)),
        named(content.BROKER_COLUMNS, found.brokers),
        named(content.TOPIC_COLUMNS, found.topics),
        named(content.PARTITION_COLUMNS, found.partitions),
        named(content.CONFIG_COLUMNS, found.configs),
    )


def partition(
    replicas: list[int],
    state: tuple[int, int, list[int]] | None = None,
    *,
    number: int = 0,
    partition_epoch: int = 10,
    controller_epoch: int = 1,
    recovery: int = 0,
    offline_dirs: Iterable[int] = (),
) -> Document:
    """A partition; *state* is (leader, leader epoch, ISR), None when it never had a leader."""
    record = None
    if state is not None:
        leader, leader_epoch, isr = state
        record = {
            "leader": leader,
            "leader_epoch": leader_epoch,
            "isr": isr,
            "partition_epoch": partition_epoch,
            "controller_epoch": controller_epoch,
            "recovery": recovery,
        }
    return {
        "partition": number,
        "replicas": replicas,
        "offline_dirs": list(offline_dirs),
        "state": record,
    }


def cluster(
    topics: dict[str, list[Document]],
    *,
    live: Iterable[int],
    shutting_down: Iterable[int] = (),
    epoch: int = 4,
    unclean: bool | None = None,
    queued: Iterable[str] = (),
    metadata_version: str = "3.9",
) -> Document:
    """A snapshot whose next controller epoch is 5 unless said otherwise."""
    configs = {} if unclean is None else {"unclean.leader.election.enable": str(unclean).lower()}
    down = set(shutting_down)
    brokers = [
        {"id": b, "epoch": 100 + b, "shutting_down": b in down} for b in sorted({*live, *down})
    ]
    return {
        "cluster": "c",
        "snapshot_id": "s",
        "mode": "zk",
        "release": "3.9",
        "metadata_version": metadata_version,
        "controller": {"id": min(live), "epoch": epoch},
        "brokers": brokers,
        "configs": configs,
        "topics": [
            {"name": name, "queued_for_deletion": name in set(queued), "partitions": partitions}
            for name, partitions in topics.items()
        ],
    }


_PROTOCOLS = (
    "2.4-IV0", "2.4", "2.5", "2.6-IV0", "2.7", "2.8-IV0", "2.8", "3.0", "3.1", "3.2-IV0", "3.2",
    "3.3", "3.4-IV0", "3.9",
)  # fmt: skip


def random_cluster(rng: Random, name: str = "c") -> Document:
    """A small cluster in any state a controller could meet, odd ones on purpose."""
    ids = _broker_ids(rng)
    brokers = [_broker(rng, b) for b in ids if rng.random() < 0.95]
    strangers = [each for each in range(2000, 2003) if each not in ids] or [max(ids) + 1]
    known = [*ids, rng.choice(strangers)]  # some replicas sit on brokers nobody lists
    names = rng.sample(["orders", "a", "b", "my-topic", "Z", "audit.log", "__consumer_offsets"], 3)
    configs = {}
    if rng.random() < 0.3:
        configs["unclean.leader.election.enable"] = rng.choice(["true", "false", " TRUE "])
    static = {"unclean.leader.election.enable": "true"} if rng.random() < 0.1 else {}
    return {
        "cluster": name,
        "snapshot_id": "s1",
        "mode": "zk",
        "release": "3.9",
        "metadata_version": rng.choice(_PROTOCOLS),
        "controller": {"id": rng.choice(ids), "epoch": rng.randrange(6)},
        "brokers": brokers,
        "configs": configs,
        "static_configs": static,
        "topics": [_topic(rng, topic, known) for topic in names[: rng.randint(0, 3)]],
    }


def random_failover(rng: Random, doc: Document) -> Document:
    """A failover event with some of its optional fields."""
    event: Document = {"type": "controller_failover"}
    ids = [b["id"] for b in doc["brokers"]]
    if ids and rng.random() < 0.3:
        event["controller"] = rng.choice(ids)
    if ids and rng.random() < 0.3:
        event["dead"] = rng.sample(ids, rng.randint(1, min(2, len(ids))))
    if rng.random() < 0.2:
        event["forget"] = rng.random() < 0.7
    return event


def _broker_ids(rng: Random) -> list[int]:
    span = rng.choice([8, 20, 150, 2_000, 2**31 - 1])
    return rng.sample(range(span), rng.randint(1, 7))


def _broker(rng: Random, broker: int) -> Document:
    doc: Document = {"id": broker, "epoch": rng.randrange(2**40), "alive": rng.random() < 0.75}
    if rng.random() < 0.15:
        doc["shutting_down"] = True
    if rng.random() < 0.4:
        doc["rack"] = rng.choice(["a", "b", "rack-three"])
    if rng.random() < 0.15:
        doc["configs"] = {"unclean.leader.election.enable": rng.choice(["true", "false"])}
    return doc


def _topic(rng: Random, name: str, known: list[int]) -> Document:
    configs = {}
    if rng.random() < 0.35:
        configs["unclean.leader.election.enable"] = rng.choice(["true", "false"])
    return {
        "name": name,
        "queued_for_deletion": rng.random() < 0.1,
        "configs": configs,
        "partitions": [_partition(rng, n, known) for n in range(rng.randint(1, 4))],
    }


def _partition(rng: Random, number: int, known: list[int]) -> Document:
    replicas = rng.sample(known, rng.randint(1, min(6, len(known))))
    doc: Document = {"partition": number, "replicas": replicas}
    if rng.random() < 0.15:
        doc["offline_dirs"] = rng.sample(known, rng.randint(1, min(2, len(known))))
    if len(replicas) > 1 and rng.random() < 0.1:
        doc["adding"], doc["removing"] = replicas[:1], replicas[-1:]
    if rng.random() < 0.88:
        doc["state"] = _state(rng, replicas, known)
    return doc


def _state(rng: Random, replicas: list[int], known: list[int]) -> Document:
    isr = rng.sample(replicas, rng.randint(1, len(replicas)))
    odd = rng.random()
    if odd < 0.05:
        isr = []
    elif odd < 0.12:
        isr = [*isr, *rng.sample(known, 1)]
    elif odd < 0.16:
        isr = [isr[0], isr[0]]
    leader = (
        rng.choice([*isr, *isr, *replicas]) if rng.random() < 0.85 else rng.choice([-1, *known])
    )
    return {
        "leader": leader,
        "leader_epoch": rng.randrange(90),
        "isr": isr,
        "partition_epoch": rng.randrange(200),
        "controller_epoch": rng.randrange(8),
        "recovery": rng.choice([0, 0, 0, 1]),
    }
