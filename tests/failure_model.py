"""Failures of brokers in plain Python, one partition at a time, and random clusters to fail.

Written from the rules alone and sharing nothing with the product but the documents: a second
opinion on what a failure does and on what counts. Slow and short on purpose.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from random import Random
from typing import Any

Document = dict[str, Any]
MIN_ISR = "min.insync.replicas"
UNCLEAN = "unclean.leader.election.enable"
INTERNAL = "__consumer_offsets"


# --- Random clusters ---------------------------------------------------------------------------


def random_cluster(rng: Random, name: str) -> Document:
    """Six brokers at most, in states controllers leave behind or are just about to mend."""
    kraft = rng.random() < 0.5
    ids = sorted(rng.sample(range(1, 7), rng.randint(2, 6)))
    down = {b for b in ids if rng.random() < 0.2}
    elr = kraft and rng.random() < 0.5
    doc: Document = {
        "cluster": name,
        "snapshot_id": "s1",
        "mode": "kraft" if kraft else "zk",
        "release": rng.choice(["3.8", "3.9", "4.0", "4.3"]) if kraft else "3.9",
        "controller": {"id": rng.choice([3000, *ids]) if kraft else rng.choice(ids), "epoch": 3},
        "brokers": [_broker(rng, b, down, kraft=kraft) for b in ids],
        "configs": _some(rng, {MIN_ISR: "2"}, 0.5) | _some(rng, {UNCLEAN: "true"}, 0.2),
        "static_configs": _some(rng, {MIN_ISR: "3"}, 0.2),
        "topics": [
            _topic(rng, topic, ids, down, kraft=kraft, elr=elr)
            for topic in rng.sample(["orders", "a", "b-c", INTERNAL], rng.randint(1, 4))
        ],
    }
    if elr:
        doc |= {"elr_enabled": True, "release": "4.3"}
    return doc


def _some(rng: Random, configs: dict[str, str], chance: float) -> dict[str, str]:
    return configs if rng.random() < chance else {}


def _broker(rng: Random, broker: int, down: Collection[int], *, kraft: bool) -> Document:
    doc: Document = {"id": broker, "epoch": 100 + broker, "rack": rng.choice(["a", "b", "c"])}
    doc |= {"fenced": broker in down} if kraft else {"alive": broker not in down}
    doc["configs"] = _some(rng, {MIN_ISR: "1"}, 0.1)
    return doc


def _topic(
    rng: Random, name: str, ids: list[int], down: set[int], *, kraft: bool, elr: bool
) -> Document:
    replication = rng.randint(1, min(4, len(ids)))
    return {
        "name": name,
        "queued_for_deletion": not kraft and rng.random() < 0.1,
        "configs": _some(rng, {MIN_ISR: rng.choice("123")}, 0.4)
        | _some(rng, {UNCLEAN: rng.choice(["true", "false"])}, 0.3),
        "partitions": [
            _partition(rng, n, rng.sample(ids, replication), down, kraft=kraft, elr=elr)
            for n in range(rng.randint(1, 4))
        ],
    }


def _partition(
    rng: Random, number: int, replicas: list[int], down: set[int], *, kraft: bool, elr: bool
) -> Document:
    doc: Document = {"partition": number, "replicas": replicas}
    if not kraft and rng.random() < 0.1:
        doc["offline_dirs"] = rng.sample(replicas, 1)
    if not kraft and rng.random() < 0.1:
        return doc  # never had a leader
    isr = rng.sample(replicas, rng.randint(1, len(replicas)))
    leader = rng.choice(isr)
    state: Document = {"leader_epoch": 4, "partition_epoch": 9, "recovery": 0}
    if not kraft:
        state["controller_epoch"] = 2
        if rng.random() < 0.1:
            leader = -1
    else:
        standing = [r for r in isr if r not in down]
        if standing:
            isr, leader = standing, rng.choice(standing)
        elif elr:
            state |= {"elr": isr, "last_known_elr": [leader]}
            isr, leader = [], -1
        else:
            isr, leader = isr[:1], -1
        others = [r for r in replicas if r not in isr]
        if elr and leader >= 0 and len(isr) == 1 and others and rng.random() < 0.3:
            state["elr"] = rng.sample(others, 1)
    return doc | {"state": state | {"leader": leader, "isr": isr}}


# --- What a failure does -----------------------------------------------------------------------


@dataclass(frozen=True)
class Partition:
    topic: str
    number: int
    replicas: tuple[int, ...]
    offline_dirs: frozenset[int]
    min_isr: int
    unclean: bool
    leader: int | None  # None: never had one
    isr: tuple[int, ...] = ()
    elr: tuple[int, ...] = ()
    elected_unclean: bool = False


def partitions_of(doc: Document) -> Iterator[Partition]:
    """The partitions that count, with the settings that hold for them."""
    kraft = doc["mode"] == "kraft"
    honours = not kraft or float(doc["release"]) >= 3.9
    for topic in doc["topics"]:
        if topic.get("queued_for_deletion"):
            continue
        first = len(topic["partitions"][0]["replicas"])
        wanted = int(_setting(doc, topic, MIN_ISR) or 1)
        for p in topic["partitions"]:
            state = p.get("state") or {}
            yield Partition(
                topic["name"],
                p["partition"],
                tuple(p["replicas"]),
                frozenset(p.get("offline_dirs", ())),
                min(wanted, first) if kraft else wanted,
                honours and _setting(doc, topic, UNCLEAN) == "true",
                state.get("leader"),
                tuple(state.get("isr", ())),
                tuple(state.get("elr", ())),
            )


def _setting(doc: Document, topic: Document, key: str) -> str | None:
    own = [b["configs"] for b in doc["brokers"] if b["id"] == doc["controller"]["id"]]
    levels = (topic["configs"], *own, doc["configs"], doc["static_configs"])
    return next((level[key] for level in levels if key in level), None)


def live_brokers(doc: Document) -> set[int]:
    return {b["id"] for b in doc["brokers"] if b.get("alive", True) and not b.get("fenced")}


def fail(doc: Document, failed: Collection[int]) -> Iterator[tuple[Partition, Partition]]:
    """Every partition that counts, before and after."""
    live = live_brokers(doc)
    dying = sorted(set(failed) & live)
    for before in partitions_of(doc):
        if doc["mode"] == "kraft":
            after = _fenced(before, live, dying, elr=bool(doc.get("elr_enabled")))
        elif doc["controller"]["id"] in failed:
            after = _loaded_anew(before, live - set(failed))
        else:  # where all of them were dead before, nothing happens
            after = _lost(before, live - set(failed), dying) if dying else before
        yield before, after


def _online(p: Partition, live: Collection[int]) -> list[int]:
    return [r for r in p.replicas if r in live and r not in p.offline_dirs]


def _elected(p: Partition, live: Collection[int]) -> Partition:
    """ZooKeeper: the leader is not online, or there never was one."""
    online = _online(p, live)
    if p.leader is None:
        return replace(p, leader=online[0], isr=tuple(online)) if online else p
    in_sync = [r for r in online if r in p.isr]
    if in_sync:
        return replace(p, leader=in_sync[0], isr=tuple(r for r in p.isr if r in in_sync))
    if p.unclean and online:
        return replace(p, leader=online[0], isr=(online[0],), elected_unclean=True)
    return p


def _without(p: Partition, gone: Iterable[int]) -> Partition:
    """ZooKeeper: replicas leave the ISR, but not the last; a leader that leaves leads no more."""
    for replica in gone:
        if replica in p.isr:
            isr = p.isr if len(p.isr) == 1 else tuple(r for r in p.isr if r != replica)
            p = replace(p, leader=-1 if p.leader == replica else p.leader, isr=isr)
    return p


def _lost(p: Partition, live: set[int], failed: Collection[int]) -> Partition:
    if p.leader not in _online(p, live):
        p = _elected(p, live)
    return _without(p, [r for r in p.replicas if r in failed])


def _loaded_anew(p: Partition, live: set[int]) -> Partition:
    p = _without(p, [r for r in p.replicas if r not in _online(p, live)])
    return p if p.leader in _online(p, live) else _elected(p, live)


def _fenced(p: Partition, live: Collection[int], failed: list[int], *, elr: bool) -> Partition:
    """KRaft: one after the other, and only who has the broker in the ISR is looked at."""
    active = set(live)
    for broker in failed:
        active.discard(broker)
        if broker in p.isr:
            p = _changed(p, active, tuple(r for r in p.isr if r != broker), elr=elr)
    return p


def _changed(p: Partition, active: set[int], isr: tuple[int, ...], *, elr: bool) -> Partition:
    eligible: tuple[int, ...] = ()
    if elr and len(isr) < p.min_isr:
        eligible = tuple(dict.fromkeys(r for r in (*p.elr, *p.isr) if r not in isr))
    candidates = [r for r in p.replicas if r in active and r in (isr or eligible)]
    if candidates:
        leader = p.leader if p.leader in candidates else candidates[0]
        left = tuple(r for r in eligible if r != leader)
        return replace(p, leader=leader, isr=isr or (leader,), elr=left)
    standing = [r for r in p.replicas if r in active]
    if p.unclean and standing:
        return replace(p, leader=standing[0], isr=(standing[0],), elr=(), elected_unclean=True)
    left = isr if elr else isr or p.isr
    return replace(p, leader=-1, isr=left, elr=eligible, elected_unclean=False)


# --- What counts -------------------------------------------------------------------------------


def impact(doc: Document, failed: Collection[int]) -> dict[str, Any]:
    """The counts of one failure, by the names of the table."""
    live, counts = live_brokers(doc), Counter[str]()
    internal = set()
    for before, after in fail(doc, failed):
        was = _status(before, live)
        now = _status(after, live - set(failed))
        counts.update(f"{name}_before" for name in ("partitions", *was))
        counts.update(now)
        counts["partitions"] += not {*before.replicas, *before.isr}.isdisjoint(failed)
        counts["unclean"] += after.elected_unclean
        was_led, led = "led" in was, "led" in now
        counts["leaders_moved"] += was_led and led and before.leader != after.leader
        risks = {
            "rf1_offline": was_led and "offline" in now and len(before.replicas) == 1,
            "unavailable": was_led and "offline" in now,
            "full_acks_produce_unavailable": was_led
            and "acks_all_blocked" in now
            and "acks_all_blocked" not in was,
            "acks1_data_loss": was_led and before.leader in failed,
        }
        counts.update(risk for risk, is_so in risks.items() if is_so)
        counts["newly_at_min_isr"] += (
            was_led and "at_min_isr" in now and len(before.isr) > before.min_isr
        )
        if before.topic == INTERNAL and any(risks.values()):
            internal.add(before.topic)
    return {**counts, "internal_topics": sorted(internal)}


def _status(p: Partition, live: Collection[int]) -> set[str]:
    if p.leader is None:
        return {"never_led"}
    if p.leader not in live or p.leader in p.offline_dirs:
        return {"offline", "acks_all_blocked"}
    if len(p.isr) < p.min_isr:
        return {"led", "under_min_isr", "acks_all_blocked"}
    return {"led", "at_min_isr"} if len(p.isr) == p.min_isr else {"led"}


def loads(doc: Document, failed: Collection[int]) -> dict[int, tuple[int, int, int, int]]:
    """By broker: leaders before and after, in-sync followers before and after."""
    live = live_brokers(doc)
    found: dict[int, list[int]] = {}
    for pair in fail(doc, failed):
        for nth, (p, alive) in enumerate(zip(pair, (live, live - set(failed)), strict=True)):
            if "led" not in _status(p, alive):
                continue
            for broker in p.isr:
                of = found.setdefault(broker, [0, 0, 0, 0])
                of[nth if broker == p.leader else nth + 2] += 1
    return {broker: (n[0], n[1], n[2], n[3]) for broker, n in found.items()}
