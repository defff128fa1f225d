"""Random KRaft clusters and what happens to them, for Kafka and the replay to answer alike.

As in ``cases``, a case follows from its seed, release and number alone, and the odd corners are
frequent on purpose. What no quorum controller can have written is left out: a leader that is no
replica, or an ISR with strangers.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final, TypeVar

Document = dict[str, Any]
T = TypeVar("T")

RELEASES: Final = ("4.3", "4.2", "4.1", "4.0", "kraft-3.9")
BROKER_FAILURE: Final = "broker_failure"
MOST_EVENTS: Final = 10
NOBODY: Final = 123_456  # a broker that no document lists, above all that are drawn

UNCLEAN: Final = "unclean.leader.election.enable"
MIN_ISR: Final = "min.insync.replicas"

# Directory ids with a meaning of their own.
_MIGRATING: Final = "AAAAAAAAAAAAAAAAAAAAAA"
_UNASSIGNED: Final = "AAAAAAAAAAAAAAAAAAAAAQ"
_LOST: Final = "AAAAAAAAAAAAAAAAAAAAAg"

# Every metadata version that a quorum controller of production may have, oldest first.
_METADATA_VERSIONS: Final = (
    "3.3-IV3", "3.4-IV0", "3.5-IV0", "3.5-IV1", "3.5-IV2", "3.6-IV0", "3.6-IV1", "3.6-IV2",
    "3.7-IV0", "3.7-IV1", "3.7-IV2", "3.7-IV3", "3.7-IV4", "3.8-IV0", "3.9-IV0", "4.0-IV0",
    "4.0-IV1", "4.0-IV2", "4.0-IV3", "4.1-IV0", "4.1-IV1", "4.2-IV0", "4.2-IV1", "4.3-IV0",
)  # fmt: skip
_NEWEST: Final = {
    "4.3": "4.3-IV0",
    "4.2": "4.2-IV1",
    "4.1": "4.1-IV1",
    "4.0": "4.0-IV3",
    "kraft-3.9": "3.9-IV0",
}
_WITH_DIRECTORIES: Final = _METADATA_VERSIONS.index("3.7-IV2")
_WITH_ELR: Final = _METADATA_VERSIONS.index("4.0-IV1")

_TOPIC_NAMES: Final = ("orders", "a", "b-0", "audit.log", "my_topic", "Z")
_NEW_TOPIC_NAMES: Final = ("new", "audit_log", "my.topic")  # the latter two may collide


def draw(seed: int, release: str, number: int, events: Sequence[str]) -> Document:
    """Case *number*: a snapshot and a scenario made of events of these types."""
    rng = Random(f"{seed}:{release}:{number}:{','.join(events)}")
    world = _cluster(rng, f"q{number:06d}", release)
    if tuple(events) == (BROKER_FAILURE,):
        happens = [_brokers_fail(world)]
    else:
        weights = [EVENTS[name][0] for name in events]
        drawn = rng.choices(events, weights, k=rng.randint(1, MOST_EVENTS))
        # Kafka remembers directories of deleted topics: rare enough to be asked for.
        if "delete_topics" in drawn and "log_dir_failure" in events:
            drawn.append("log_dir_failure")
        happens = [{"type": name, **EVENTS[name][1](world)} for name in drawn]
    scenario = {
        "scenario": "case",
        "cluster": world.snapshot["cluster"],
        "snapshot_id": "s1",
        "events": happens,
    }
    return {"snapshot": world.snapshot, "scenario": scenario}


@dataclass
class _World:
    """What has been drawn so far, for the next draw to be about."""

    rng: Random
    snapshot: Document
    brokers: list[int]  # that replicas are placed on, registered or not
    directories: dict[int, list[str]]
    topics: dict[str, dict[int, list[int]]] = field(default_factory=dict)
    leaders: dict[str, int] = field(default_factory=dict)
    deleted_from: list[int] = field(default_factory=list)  # brokers that had replicas

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def some(self, choices: Sequence[T], most: int = 3) -> list[T]:
        return self.rng.sample(choices, self.rng.randint(1, min(most, len(choices))))

    def some_brokers(self) -> list[int]:
        return self.some([*self.brokers, NOBODY] if self.chance(0.05) else self.brokers)

    def a_broker(self) -> int:
        return self.some_brokers()[0]

    def a_topic(self) -> str:
        return self.rng.choice([*self.topics, "nowhere"])

    def some_topics(self) -> list[str]:
        return self.some([*self.topics, "nowhere"], 2)

    def partitions(self) -> list[str]:
        """All there are, and two that there are not."""
        known = [f"{topic}-{n}" for topic, numbers in self.topics.items() for n in numbers]
        return [*known, "nowhere-0", f"{next(iter(self.topics), 'gone')}-99"]

    def replicas(self, partition: str) -> list[int]:
        topic, _, number = partition.rpartition("-")
        return self.topics.get(topic, {}).get(int(number), self.brokers)

    def an_assignment(self, most: int = 5) -> list[int]:
        return self.some(self.brokers, most)


# --- Clusters ----------------------------------------------------------------------------------


def _cluster(rng: Random, name: str, release: str) -> _World:
    newest = _METADATA_VERSIONS.index(_NEWEST[release])
    level = newest if rng.random() < 0.5 else rng.randrange(newest + 1)
    elr = level >= _WITH_ELR and rng.random() < 0.75
    span = rng.choice([6, 12, 40, 40, 2_000, 70_000])
    ids = rng.sample(range(span), rng.randint(1, 7 if span > 6 else 6))
    listed = [broker for broker in ids if rng.random() < 0.92] or ids[:1]
    brokers = [_broker(rng, broker, level) for broker in listed]
    doc: Document = {
        "cluster": name,
        "snapshot_id": "s1",
        "mode": "kraft",
        "release": release.removeprefix("kraft-"),
        "metadata_version": _METADATA_VERSIONS[level],
        "elr_enabled": elr,
        "brokers": brokers,
        "configs": _settings(rng, 0.3),
        "static_configs": _settings(rng, 0.2),
    }
    if level == newest and rng.random() < 0.2:
        del doc["metadata_version"]
    known = [*ids, span + 5] if rng.random() < 0.3 else ids
    if rng.random() < 0.9 or all(broker.get("fenced") for broker in brokers):
        doc["controller"] = {"id": rng.choice([*known, 3_000]), "epoch": 3}
    directories = {broker["id"]: broker.get("log_dirs", []) for broker in brokers}
    world = _World(rng, doc, known, directories)
    names = rng.sample(_TOPIC_NAMES, rng.randint(1, 3))
    doc["topics"] = [_topic(world, topic, level, elr=elr) for topic in names]
    return world


def _broker(rng: Random, broker: int, level: int) -> Document:
    doc: Document = {"id": broker, "epoch": rng.randint(100, 200)}
    if rng.random() < 0.25:
        doc["fenced"] = True
    if rng.random() < 0.12:
        doc["shutting_down"] = True
    if rng.random() < 0.3:
        doc["rack"] = rng.choice("ab")
    if level >= _WITH_DIRECTORIES and rng.random() < 0.95:
        doc["log_dirs"] = [_id(rng) for _ in range(rng.choice([1, 1, 2, 2, 3]))]
    if settings := _settings(rng, 0.15):
        doc["configs"] = settings
    return doc


def _settings(rng: Random, probability: float) -> dict[str, str]:
    settings = {}
    if rng.random() < probability:
        settings[UNCLEAN] = rng.choice(["true", "false"])
    if rng.random() < probability:
        settings[MIN_ISR] = str(rng.randint(1, 4))
    return settings


def _id(rng: Random) -> str:
    """One of Kafka's ids: 16 bytes in 22 characters."""
    return base64.urlsafe_b64encode(rng.randbytes(16)).decode().rstrip("=")


def _topic(world: _World, name: str, level: int, *, elr: bool) -> Document:
    rng = world.rng
    count = rng.choice([1, 1, 2, 3, 4, rng.randint(1, 16)])
    partitions = [_partition(world, number, level, elr=elr) for number in range(count)]
    world.topics[name] = {p["partition"]: p["replicas"] for p in partitions}
    world.leaders |= {f"{name}-{p['partition']}": p["state"]["leader"] for p in partitions}
    doc: Document = {"name": name, "id": _id(rng), "partitions": partitions}
    if settings := _settings(rng, 0.35):
        doc["configs"] = settings
    return doc


def _partition(world: _World, number: int, level: int, *, elr: bool) -> Document:
    replicas = world.an_assignment()
    doc: Document = {"partition": number, "replicas": replicas}
    if level >= _WITH_DIRECTORIES and world.chance(0.95):
        doc["directories"] = [_directory_of(world, broker) for broker in replicas]
    if len(replicas) > 1 and world.chance(0.25):
        doc |= _reassignment(world, replicas)
    doc["state"] = _state(world, replicas, level, elr=elr)
    return doc


def _directory_of(world: _World, broker: int) -> str:
    if world.chance(0.75):
        return world.rng.choice(world.directories.get(broker) or [_UNASSIGNED])
    return world.rng.choice([_MIGRATING, _UNASSIGNED, _LOST, _id(world.rng)])


def _reassignment(world: _World, replicas: list[int]) -> Document:
    shuffled = world.rng.sample(replicas, len(replicas))
    cut = world.rng.randint(1, len(replicas) - 1)
    adding = sorted(shuffled[: world.rng.randint(0, cut)])
    removing = {broker for broker in shuffled[cut:] if world.chance(0.5)}
    if world.chance(0.1):  # one that comes and goes
        removing |= set(adding[:1])
    return {"adding": adding, "removing": sorted(removing)}


def _state(world: _World, replicas: list[int], level: int, *, elr: bool) -> Document:
    rng = world.rng
    isr = rng.sample(replicas, rng.randint(1, len(replicas)))
    if world.chance(0.3 if elr else 0.02):
        isr = []
    state: Document = {
        "leader": _leader(world, isr),
        "leader_epoch": rng.randint(0, 20),
        "isr": isr,
        "partition_epoch": rng.randint(0, 60),
    }
    rest = [broker for broker in replicas if broker not in isr]
    # Records written while the feature was on stay when it is switched off.
    remembers = level >= _WITH_ELR
    if rest and remembers and world.chance(0.6 if elr else 0.1):
        state["elr"] = rng.sample(rest, rng.randint(1, len(rest)))
    if remembers and world.chance((0.15 if isr else 0.6) if elr else 0.05):
        state["last_known_elr"] = rng.choice(
            [
                [rng.choice(replicas)],
                [rng.choice(world.brokers)],
                # Of a partition that has no leader: one that gets a leader forgets it at once.
                [-1] if state["leader"] == -1 else [],
                world.some(world.brokers, 2),
            ]
        )
    if world.chance(0.15):
        state["recovery"] = 1
    return state


def _leader(world: _World, isr: list[int]) -> int:
    """Mostly one that may lead."""
    active = {
        broker["id"]
        for broker in world.snapshot["brokers"]
        if not broker.get("fenced") and not broker.get("shutting_down")
    }
    able = [broker for broker in isr if broker in active]
    if able and world.chance(0.85):
        return world.rng.choice(able)
    return world.rng.choice(isr) if isr and world.chance(0.15) else -1


# --- Brokers come and go -----------------------------------------------------------------------


def _brokers_fail(world: _World) -> Document:
    return {"type": BROKER_FAILURE, **_some_brokers(world)}


def _some_brokers(world: _World) -> Document:
    return {"brokers": world.some_brokers()}


def _all_brokers(world: _World) -> Document:
    return {"brokers": world.rng.sample(world.brokers, len(world.brokers))}


def _one_broker(world: _World) -> Document:
    return {"broker": world.a_broker()}


def _broker_startup(world: _World) -> Document:
    brokers = world.some_brokers()
    event: Document = {"brokers": brokers}
    if world.chance(0.7):
        event["clean"] = world.chance(0.5)
    if world.chance(0.1):
        event["epochs"] = [world.rng.choice([None, world.rng.randint(300, 400)]) for _ in brokers]
    if world.chance(0.25):
        event["log_dirs"] = {
            str(broker): _registered_directories(world, broker)
            for broker in brokers
            if world.chance(0.8)
        }
    return event


def _registered_directories(world: _World, broker: int) -> list[str]:
    own = world.directories.get(broker, [])
    fresh = _id(world.rng)
    another = world.directories.get(world.rng.choice(world.brokers), [])
    return world.rng.choice([[*own, fresh], [fresh], own[:1], [], [_LOST], another, [fresh, fresh]])


def _log_dir_failure(world: _World) -> Document:
    """Often of a broker with replicas of a deleted topic, whose directories Kafka remembers."""
    if world.deleted_from and world.chance(0.7):
        broker = world.rng.choice(world.deleted_from)
        return {"broker": broker, "dirs": world.directories.get(broker, [])}
    broker = world.a_broker()
    known = [*world.directories.get(broker, []), _id(world.rng)]
    return {"broker": broker, "dirs": world.some(known)}


def _assign_dirs(world: _World) -> Document:
    broker = world.a_broker()
    own = world.directories.get(broker, [])
    choices = [*own, *own, _UNASSIGNED, _LOST, _id(world.rng)]
    partitions = {name: world.rng.choice(choices) for name in world.some(world.partitions())}
    return {"broker": broker, "partitions": partitions}


# --- ISRs, elections, reassignments ------------------------------------------------------------


def _isr_change(world: _World) -> Document:
    rng = world.rng
    partition = rng.choice(world.partitions())
    replicas = world.replicas(partition)
    isr = rng.sample(replicas, rng.randint(0 if world.chance(0.1) else 1, len(replicas)))
    leader = world.leaders.get(partition, -1)
    if leader in replicas and leader not in isr and world.chance(0.8):
        isr.append(leader)
    if world.chance(0.05):
        isr += isr[:1]
    event: Document = {"partition": partition, "isr": isr}
    if world.chance(0.1):
        event["sender"] = rng.choice(world.brokers)
    if world.chance(0.05):
        event["leader_epoch"] = rng.randint(0, 22)
    if world.chance(0.05):
        event["partition_epoch"] = rng.randint(0, 62)
    if world.chance(0.15):
        event["recovery"] = 1
    if world.chance(0.05):
        event["broker_epochs"] = {str(b): rng.choice([-1, rng.randint(100, 200)]) for b in isr}
    return event


def _election(world: _World) -> Document:
    return {"partitions": "all" if world.chance(0.4) else world.some(world.partitions())}


def _nothing_more(_world: _World) -> Document:
    return {}


def _reassign(world: _World) -> Document:
    partitions = {name: world.an_assignment() for name in world.some(world.partitions())}
    if world.chance(0.05):
        partitions[world.partitions()[0]] = []
    event: Document = {"partitions": partitions}
    if world.chance(0.2):
        event["allow_replication_factor_change"] = world.chance(0.3)
    return event


def _cancel_reassignment(world: _World) -> Document:
    return {"partitions": world.some(world.partitions())}


# --- Topics and the controller -----------------------------------------------------------------


def _topic_change(world: _World) -> Document:
    removed = world.some_topics() if world.chance(0.3) else []
    added = {}
    for name in world.some([*_NEW_TOPIC_NAMES, world.rng.choice(_TOPIC_NAMES)], 2):
        added[name] = _new_assignment(world)
        world.topics.setdefault(name, {int(n): ids for n, ids in added[name].items()})
    return {"topics": added, "removed": removed}


def _new_assignment(world: _World) -> dict[str, list[int]]:
    """Mostly one that Kafka takes: numbered from 0, as many replicas everywhere."""
    factor = world.rng.randint(1, min(3, len(world.brokers)))
    first = 1 if world.chance(0.1) else 0
    assignment = {
        str(number): world.rng.sample(world.brokers, factor)
        for number in range(first, first + world.rng.randint(1, 3))
    }
    if world.chance(0.1):
        assignment["0"] = world.rng.sample(world.brokers, 1)
    return assignment


def _partition_change(world: _World) -> Document:
    topic = world.a_topic()
    known = world.topics.get(topic, {0: world.brokers[:1]})
    factor = len(world.rng.choice(list(known.values())))
    first = max(known) + 1
    added = {
        number: world.rng.sample(world.brokers, min(factor, len(world.brokers)))
        for number in range(first, first + world.rng.randint(1, 3))
    }
    return {"topic": topic, "partitions": {str(n): ids for n, ids in added.items()}}


def _delete_topics(world: _World) -> Document:
    topics = world.some_topics()
    replicas = (ids for topic in topics for ids in world.topics.get(topic, {}).values())
    world.deleted_from += [broker for ids in replicas for broker in ids]
    return {"topics": topics}


def _controller_failover(world: _World) -> Document:
    return {"controller": world.rng.choice(world.brokers)} if world.chance(0.6) else {}


# How often each event is drawn, and what it says. To add one, write its function, name it here.
EVENTS: Final[dict[str, tuple[int, Callable[[_World], Document]]]] = {
    "fence": (2, _some_brokers),
    BROKER_FAILURE: (4, _some_brokers),
    "unfence": (2, _some_brokers),
    "controlled_shutdown": (4, _one_broker),
    "unregister": (1, _some_brokers),
    "broker_startup": (6, _broker_startup),
    "log_dir_failure": (2, _log_dir_failure),
    "assign_dirs": (2, _assign_dirs),
    "isr_change": (4, _isr_change),
    "catch_up": (4, _all_brokers),
    "preferred_election": (2, _election),
    "unclean_election": (2, _election),
    "auto_rebalance": (2, _nothing_more),
    "auto_unclean_election": (2, _nothing_more),
    "reassign": (4, _reassign),
    "cancel_reassignment": (2, _cancel_reassignment),
    "topic_change": (1, _topic_change),
    "partition_change": (2, _partition_change),
    "delete_topics": (2, _delete_topics),
    "controller_failover": (2, _controller_failover),
}
