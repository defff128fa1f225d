"""Random clusters and what happens to them, for Kafka and the replay to answer alike.

Every case follows from its seed, release and number alone, in plain Python, so that the same seed
gives the same bytes anywhere. The odd corners are frequent on purpose: real clusters meet them
rarely, and that is when somebody needs to know.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

Document = dict[str, Any]

FAILOVER: Final = "controller_failover"
UNCLEAN: Final = "unclean.leader.election.enable"
DELETION: Final = "delete.topic.enable"
MOST_EVENTS: Final = 8
NOBODY: Final = 123_456  # a broker no document lists, above all that are drawn

# From 2.4 on; what the requests and znodes look like changes within this list.
_PROTOCOLS: Final = (
    "2.4-IV0", "2.4-IV1", "2.4", "2.5-IV0", "2.5", "2.6-IV0", "2.6", "2.7-IV0", "2.7-IV1",
    "2.7-IV2", "2.7", "2.8-IV0", "2.8-IV1", "2.8", "3.0-IV0", "3.0-IV1", "3.0", "3.1-IV0", "3.1",
    "3.2-IV0", "3.2", "3.3-IV0", "3.3-IV3", "3.3", "3.4-IV0", "3.4", "3.5-IV0", "3.5-IV2", "3.5",
    "3.6-IV1", "3.6", "3.7-IV4", "3.7", "3.8-IV0", "3.8", "3.9-IV0", "3.9",
)  # fmt: skip
_TOPIC_NAMES: Final = (
    "orders", "a", "b", "Z", "my-topic", "audit.log", "x_1", "__consumer_offsets",
)  # fmt: skip


def draw(seed: int, release: str, number: int, events: Sequence[str]) -> Document:
    """Case *number*: a snapshot and a scenario made of events of these types."""
    rng = Random(f"{seed}:{release}:{number}:{','.join(events)}")
    cluster = f"k{number:06d}"
    snapshot = _snapshot(rng, cluster, release)
    world = _World.of(snapshot, rng)
    if tuple(events) == (FAILOVER,):
        happens = [_controller_failover(world)]
    else:
        happens = list(_sequence(world, events))
    scenario = {"scenario": "case", "cluster": cluster, "snapshot_id": "s1", "events": happens}
    return {"snapshot": snapshot, "scenario": scenario}


# --- Clusters ----------------------------------------------------------------------------------


def _snapshot(rng: Random, cluster: str, release: str) -> Document:
    ids = _broker_ids(rng)
    alive = rng.choice([0.4, 0.7, 0.7, 0.95])
    brokers = [_broker(rng, broker, alive) for broker in ids if rng.random() < 0.95]
    controller: Document = {"id": rng.choice(ids), "epoch": rng.choice([0, 1, 5, 5, 41])}
    if rng.random() < 0.03:
        del controller["id"]
    doc: Document = {
        "cluster": cluster,
        "snapshot_id": "s1",
        "mode": "zk",
        "release": release,
        "controller": controller,
        "brokers": brokers,
    }
    if rng.random() < 0.8:
        doc["metadata_version"] = rng.choice(_protocols(release))
    if rng.random() < 0.35:
        doc["configs"] = {UNCLEAN: rng.choice(["true", "false"])}
    if rng.random() < 0.12:
        key, values = rng.choice([(UNCLEAN, ["true", "false"]), (DELETION, ["false", "true"])])
        doc["static_configs"] = {key: rng.choice(values)}
    known = [*ids, NOBODY]
    names = rng.sample(_TOPIC_NAMES, rng.choice([0, 1, 1, 2, 2, 3, 4]))
    doc["topics"] = [_topic(rng, name, known, controller["epoch"]) for name in names]
    return doc


def _protocols(release: str) -> Sequence[str]:
    """Those the release can speak, its newest as often as all others together."""
    upto = _PROTOCOLS[: _PROTOCOLS.index(release) + 1]
    return (*upto, *[release] * len(upto))


def _broker_ids(rng: Random) -> list[int]:
    """Small ids and large ones: the order in which brokers are handled depends on their hashes."""
    span = rng.choice([8, 8, 20, 150, 2_000, 9_999, 100_000])
    return rng.sample(range(span), rng.choice([1, 2, 3, 4, 5, 6, 7, 8, 12][: span // 2 + 1]))


def _broker(rng: Random, broker: int, alive: float) -> Document:
    doc: Document = {"id": broker, "epoch": rng.randrange(1, 2_000)}
    if rng.random() > alive:
        doc["alive"] = False
    if rng.random() < 0.12:
        doc["shutting_down"] = True
    if rng.random() < 0.3:
        doc["rack"] = rng.choice(["a", "b", "c"])
    if rng.random() < 0.12:
        doc["configs"] = {UNCLEAN: rng.choice(["true", "false"])}
    return doc


def _topic(rng: Random, name: str, known: list[int], epoch: int) -> Document:
    doc: Document = {"name": name}
    if rng.random() < 0.2:
        doc["queued_for_deletion"] = True
    if rng.random() < 0.4:
        doc["configs"] = {UNCLEAN: rng.choice(["true", "false"])}
    if rng.random() < 0.15:
        doc["id"] = _topic_id(rng)
    moving = rng.random() < 0.25
    doc["partitions"] = [
        _partition(rng, number, known, epoch, moving=moving)
        for number in range(rng.choice([1, 1, 2, 3, 5]))
    ]
    return doc


def _topic_id(rng: Random) -> str:
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
    return "".join(rng.choice(letters) for _ in range(21)) + rng.choice("AQgw")


def _partition(rng: Random, number: int, known: list[int], epoch: int, *, moving: bool) -> Document:
    replicas = rng.sample(known, rng.randint(1, min(6, len(known))))
    doc: Document = {"partition": number, "replicas": replicas}
    if moving and len(replicas) > 1 and rng.random() < 0.7:
        doc["adding"], doc["removing"] = _moves(rng, replicas)
    if rng.random() < 0.15:
        doc["offline_dirs"] = rng.sample(known, rng.randint(1, min(2, len(known))))
    if rng.random() < 0.9:
        doc["state"] = _state(rng, replicas, known, epoch)
    return doc


def _moves(rng: Random, replicas: list[int]) -> tuple[list[int], list[int]]:
    """Replicas being added and removed; neither before nor after are there none."""
    parts = rng.sample(replicas, len(replicas))
    adding = rng.randint(0, len(parts) - 1)
    removing = rng.randint(0, len(parts) - max(adding, 1))
    return parts[:adding], parts[adding : adding + removing]


def _state(rng: Random, replicas: list[int], known: list[int], epoch: int) -> Document:
    isr = rng.sample(replicas, rng.choice([1, len(replicas), rng.randint(1, len(replicas))]))
    odd = rng.random()
    if odd < 0.05:
        isr = []
    elif odd < 0.12:
        isr = [*isr, rng.choice(known)]
    elif odd < 0.15:
        isr = [isr[0], isr[0]]
    leader = rng.choice([*isr, *isr, *replicas])
    if rng.random() < 0.15:
        leader = rng.choice([-1, -1, *known])
    later = rng.random() < 0.04
    state: Document = {
        "leader": leader,
        "leader_epoch": rng.randrange(99),
        "isr": isr,
        "partition_epoch": rng.randrange(200),
        "controller_epoch": epoch + rng.randint(1, 3) if later else rng.randint(0, epoch),
    }
    if rng.random() < 0.15:
        state["recovery"] = 1
    return state


# --- Events ------------------------------------------------------------------------------------


@dataclass
class _World:
    """What a writer of scenarios remembers while events go by; it need not be right."""

    rng: Random
    brokers: list[int]
    live: set[int]
    topics: dict[str, dict[int, list[int]]]
    deleting: set[str] = field(default_factory=set)
    highest_epoch: int = 0

    @staticmethod
    def of(snapshot: Document, rng: Random) -> _World:
        listed = snapshot["brokers"]
        topics = {
            t["name"]: {p["partition"]: p["replicas"] for p in t["partitions"]}
            for t in snapshot["topics"]
        }
        return _World(
            rng,
            [*(b["id"] for b in listed), NOBODY],
            {b["id"] for b in listed if b.get("alive", True)},
            topics,
            {t["name"] for t in snapshot["topics"] if t.get("queued_for_deletion")},
            max((b["epoch"] for b in listed), default=0),
        )

    def some(self, choices: Sequence[Any], most: int) -> list[Any]:
        """One to *most* of them, fewer when there are fewer."""
        return self.rng.sample(choices, min(len(choices), self.rng.randint(1, most)))

    def chance(self, odds: float) -> bool:
        return self.rng.random() < odds

    def partitions(self) -> list[str]:
        return [f"{topic}-{number}" for topic, ps in self.topics.items() for number in ps]

    def a_partition(self) -> str:
        """Mostly one that exists."""
        known = self.partitions()
        return self.rng.choice(known) if known and self.chance(0.96) else "unknown-0"

    def replicas(self, partition: str) -> list[int]:
        topic, _, number = partition.rpartition("-")
        return self.topics.get(topic, {}).get(int(number), [])

    def a_topic(self) -> str:
        known = list(self.topics)
        return self.rng.choice(known) if known and self.chance(0.96) else "unknown"

    def an_assignment(self) -> list[int]:
        return self.some(self.brokers, 4)


def _sequence(world: _World, events: Sequence[str]) -> Iterator[Document]:
    """One to eight events: at random, or a story with something in between."""
    makers = [
        maker for kind, (weight, maker) in EVENTS.items() if kind in events for _ in range(weight)
    ]
    told = world.rng.choice(_STORIES)(world) if set(events) == set(EVENTS) else []
    if told and world.chance(0.3):
        if world.chance(0.4):
            told.insert(world.rng.randrange(len(told) + 1), world.rng.choice(makers)(world))
        yield from told[:MOST_EVENTS]
        return
    many = 1 if world.chance(0.4) else world.rng.randint(2, MOST_EVENTS)
    for _ in range(many):
        yield world.rng.choice(makers)(world)


def _controller_failover(world: _World) -> Document:
    event: Document = {"type": FAILOVER}
    if world.chance(0.3):
        event["controller"] = world.rng.choice(world.brokers)
    if world.chance(0.3):
        event["dead"] = world.some(world.brokers, 2)
        world.live -= set(event["dead"])
    if world.chance(0.2):
        event["forget"] = world.chance(0.8)
    return event


def _broker_change(world: _World) -> Document:
    live = {}
    for broker in world.brokers:
        if broker in world.live if world.chance(0.8) else world.chance(0.5):
            live[str(broker)] = world.rng.randint(1, 3_000)
    world.live = {int(broker) for broker in live}
    world.highest_epoch = max([world.highest_epoch, *live.values()])
    return {"type": "broker_change", "live": live}


def _broker_failure(world: _World) -> Document:
    alive = sorted(world.live)
    brokers = world.some(alive if alive and world.chance(0.9) else world.brokers, 3)
    world.live -= set(brokers)
    return {"type": "broker_failure", "brokers": brokers}


def _broker_startup(world: _World) -> Document:
    gone = sorted(set(world.brokers) - world.live)
    brokers = world.some(gone if gone and world.chance(0.75) else world.brokers, 3)
    world.live |= set(brokers)
    event: Document = {"type": "broker_startup", "brokers": brokers}
    if world.chance(0.2):
        event["epochs"] = [
            world.rng.choice([None, world.highest_epoch + 7, world.rng.randint(1, 3_000)])
            for _ in brokers
        ]
    return event


def _log_dir_failure(world: _World) -> Document:
    broker = world.rng.choice(sorted(world.live) or world.brokers)
    hosted = [p for p in world.partitions() if broker in world.replicas(p)]
    partitions = world.some(hosted, 3) if hosted else [world.a_partition()]
    return {"type": "log_dir_failure", "broker": broker, "partitions": partitions}


def _controlled_shutdown(world: _World) -> Document:
    alive = sorted(world.live)
    choices = alive if alive and world.chance(0.93) else world.brokers
    return {"type": "controlled_shutdown", "broker": world.rng.choice(choices)}


def _topic_change(world: _World) -> Document:
    event: Document = {"type": "topic_change"}
    if world.chance(0.85):
        added: dict[str, dict[str, list[int]]] = {}
        for name in world.some(["fresh", "new-topic", "n1", *_TOPIC_NAMES], 2):
            numbers = range(world.rng.randint(1, 3))
            added[name] = {str(n): world.an_assignment() for n in numbers}
            world.topics.setdefault(name, {int(n): ids for n, ids in added[name].items()})
        event["topics"] = added
    if "topics" not in event or world.chance(0.15):
        # A topic that is named as new and as gone at once says nothing that can be checked.
        gone = [t for t in world.topics if t not in event.get("topics", {})]
        event["removed"] = world.some(gone, 2) if gone else ["unknown"]
        for name in event["removed"]:
            world.topics.pop(name, None)
    return event


def _partition_change(world: _World) -> Document:
    topic = world.a_topic()
    known = world.topics.get(topic, {})
    first = max(known, default=-1) + 1
    numbers = range(first - world.chance(0.2) if first else 0, first + world.rng.randint(1, 2))
    partitions = {str(n): world.an_assignment() for n in numbers}
    for number in numbers:
        known.setdefault(number, partitions[str(number)])
    return {"type": "partition_change", "topic": topic, "partitions": partitions}


def _reassign(world: _World) -> Document:
    asked = {}
    for _ in range(world.rng.choice([1, 1, 1, 2, 3])):
        partition = world.a_partition()
        target = world.an_assignment()
        if world.chance(0.3):  # only the order, or fewer
            target = world.some(world.replicas(partition) or target, 4)
        if world.live and world.chance(0.7):  # all alive, or Kafka refuses
            target = [b for b in target if b in world.live] or [min(world.live)]
        if world.chance(0.06):
            target = world.rng.choice([[], [*target, *target[:1]], [-1, *target], [NOBODY]])
        asked[partition] = target
    return {"type": "reassign", "partitions": asked}


def _cancel_reassignment(world: _World) -> Document:
    partitions = [world.a_partition() for _ in range(world.rng.randint(1, 3))]
    return {"type": "cancel_reassignment", "partitions": list(dict.fromkeys(partitions))}


def _isr_change(world: _World) -> Document:
    partition = world.a_partition()
    replicas = world.replicas(partition) or world.brokers
    isr = world.some(replicas, len(replicas))
    odd = world.rng.random()
    if odd < 0.08:
        isr = [*isr, world.rng.choice(world.brokers)]
    elif odd < 0.1:
        isr = []
    return {"type": "isr_change", "partition": partition, "isr": isr}


def _catch_up(world: _World) -> Document:
    return {"type": "catch_up", "brokers": world.some(sorted(world.live) or world.brokers, 5)}


def _election(world: _World, kind: str) -> Document:
    if world.chance(0.35):
        return {"type": kind, "partitions": "all"}
    partitions = [world.a_partition() for _ in range(world.rng.randint(1, 4))]
    return {"type": kind, "partitions": list(dict.fromkeys(partitions))}


def _preferred_election(world: _World) -> Document:
    return _election(world, "preferred_election")


def _unclean_election(world: _World) -> Document:
    return _election(world, "unclean_election")


def _auto_rebalance(world: _World) -> Document:
    event: Document = {"type": "auto_rebalance"}
    if world.chance(0.6):
        event["percentage"] = world.rng.choice([0, 33, 50, 100, 100])
    return event


def _delete_topics(world: _World) -> Document:
    topics = list(dict.fromkeys(world.a_topic() for _ in range(world.rng.randint(1, 2))))
    world.deleting |= set(topics)
    return {"type": "delete_topics", "topics": topics}


def _stop_replica_response(world: _World) -> Document:
    """Mostly everything one broker may have been asked to delete."""
    deleting = [p for p in world.partitions() if p.rpartition("-")[0] in world.deleting]
    broker = world.rng.choice(sorted(world.live) or world.brokers)
    hosted = [p for p in deleting if broker in world.replicas(p)]
    partitions = hosted if hosted and world.chance(0.8) else [world.a_partition()]
    event: Document = {
        "type": "stop_replica_response",
        "broker": broker,
        "partitions": partitions,
    }
    if world.chance(0.15):
        event["error"] = world.rng.choice(["KAFKA_STORAGE_ERROR", "UNKNOWN_SERVER_ERROR"])
    return event


def _unclean_enabled(world: _World) -> Document:
    event: Document = {"type": "unclean_enabled"}
    if world.chance(0.7):
        event["topic"] = world.a_topic()
    return event


# --- Stories: events that lead somewhere only together -----------------------------------------


def _deletion(world: _World) -> list[Document]:
    """A topic on live brokers comes, is deleted everywhere, and perhaps comes again."""
    live = sorted(world.live)
    if not live:
        return []
    assignment = {str(n): world.some(live, 3) for n in range(world.rng.randint(1, 2))}
    created: Document = {"type": "topic_change", "topics": {"gone": assignment}}
    hosts = sorted({broker for ids in assignment.values() for broker in ids})
    answers: list[Document] = [
        {
            "type": "stop_replica_response",
            "broker": broker,
            "partitions": [f"gone-{n}" for n, ids in assignment.items() if broker in ids],
        }
        for broker in world.rng.sample(hosts, len(hosts))
    ]
    if world.chance(0.2):
        answers[0]["error"] = "KAFKA_STORAGE_ERROR"
    told = [created, {"type": "delete_topics", "topics": ["gone"]}, *answers]
    return [*told, created] if world.chance(0.3) else told


def _move(world: _World) -> list[Document]:
    """A reassignment to live brokers that catch up, at once or one by one."""
    live = sorted(world.live)
    if not live:
        return []
    partition, target = world.a_partition(), world.some(live, 4)
    told: list[Document] = [{"type": "reassign", "partitions": {partition: target}}]
    if world.chance(0.3):
        told.append({"type": "reassign", "partitions": {partition: world.some(live, 4)}})
    told += [{"type": "catch_up", "brokers": [broker]} for broker in target[:-1]]
    return [*told, {"type": "catch_up", "brokers": target}]


def _restart(world: _World) -> list[Document]:
    """A broker is shut down, goes, comes back, catches up, and perhaps leads again."""
    live = sorted(world.live)
    if not live:
        return []
    broker = world.rng.choice(live)
    return [
        {"type": "controlled_shutdown", "broker": broker},
        {"type": "broker_failure", "brokers": [broker]},
        {"type": "broker_startup", "brokers": [broker]},
        {"type": "catch_up", "brokers": [broker]},
        {"type": "auto_rebalance", "percentage": world.rng.choice([0, 50, 100])},
    ]


_STORIES: Final = (_deletion, _move, _restart)

# How often each event is drawn, and how. To add one, write its function and name it here.
EVENTS: Final[dict[str, tuple[int, Callable[[_World], Document]]]] = {
    FAILOVER: (2, _controller_failover),
    "broker_change": (3, _broker_change),
    "broker_failure": (6, _broker_failure),
    "broker_startup": (6, _broker_startup),
    "log_dir_failure": (4, _log_dir_failure),
    "controlled_shutdown": (4, _controlled_shutdown),
    "topic_change": (2, _topic_change),
    "partition_change": (2, _partition_change),
    "reassign": (5, _reassign),
    "cancel_reassignment": (2, _cancel_reassignment),
    "isr_change": (5, _isr_change),
    "catch_up": (4, _catch_up),
    "preferred_election": (3, _preferred_election),
    "unclean_election": (2, _unclean_election),
    "auto_rebalance": (3, _auto_rebalance),
    "delete_topics": (3, _delete_topics),
    "stop_replica_response": (5, _stop_replica_response),
    "unclean_enabled": (1, _unclean_enabled),
}
