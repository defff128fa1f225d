"""What the script does to a cluster, one small group of functions for each kind of step.

A kind says what it would do to the cluster as it is, does it, knows when it is done, and which
events its controller has processed then. To add one, write these four and name them in ``KINDS``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import cached_property
from random import Random
from typing import Any, Final, NamedTuple

from real_cluster.cluster import Cluster
from understudy.controller.records import named_partition
from understudy.controller.words import UNCLEAN_SETTING

Document = dict[str, Any]
Events = list[Document]

NO_LEADER: Final = -1
_MIN_TOPICS: Final = 3
_MAX_TOPICS: Final = 6
_RESTARTS: Final = 3  # there are three ways to lose a broker and one to get it back


class View:
    """A snapshot document, as a step looks at it."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.brokers: dict[int, int] = {b["id"]: b["epoch"] for b in document["brokers"]}
        self.controller: int | None = document["controller"]["id"]
        self.controller_epoch: int = document["controller"]["epoch"]
        self.topics: list[str] = [topic["name"] for topic in document["topics"]]
        self.queued = [t["name"] for t in document["topics"] if t["queued_for_deletion"]]

    @property
    def live(self) -> list[int]:
        return sorted(self.brokers)

    @cached_property
    def partitions(self) -> dict[str, Document]:
        return {
            f"{topic['name']}-{partition['partition']}": partition
            for topic in self.document["topics"]
            for partition in topic["partitions"]
        }

    def partitions_of(self, topic: str) -> list[str]:
        return [name for name in self.partitions if named_partition(name)[0] == topic]

    def allows_unclean(self, name: str) -> bool:
        topic = named_partition(name)[0]
        (configs,) = (t["configs"] for t in self.document["topics"] if t["name"] == topic)
        return bool(configs.get(UNCLEAN_SETTING) == "true")

    def is_led(self, name: str) -> bool:
        state = self.partitions[name]["state"]
        return state is not None and state["leader"] in self.brokers

    def unsettled(self) -> list[str]:
        """What the controller, or a leader, still has to do before nothing more happens."""
        found = [] if self.controller in self.brokers else ["controller"]
        found += self.queued
        return found + [name for name in self.partitions if not self._is_settled(name)]

    def _is_settled(self, name: str) -> bool:
        partition = self.partitions[name]
        online = self.brokers.keys() & set(partition["replicas"])
        state = partition["state"]
        if partition["adding"] or partition["removing"]:
            return False
        if state is None:
            return not online
        if state["leader"] in self.brokers:
            return set(state["isr"]) == online
        electable = online if self.allows_unclean(name) else online & set(state["isr"])
        return state["leader"] == NO_LEADER and not electable


class Kind(NamedTuple):
    draw: Callable[[View, Random, list[int]], Document | None]
    """The arguments of such a step, or None where there is nothing to do it to."""
    perform: Callable[[Cluster, Document], None]
    is_done: Callable[[Document, View, View], bool]
    """By the arguments, what was before, and what is now."""
    events: Callable[[Document, View, View], Events]
    """What the controller processed, but for the ISR changes that leaders asked for."""


def choose(view: View, rng: Random, used: Counter[str], brokers: list[int]) -> tuple[str, Document]:
    """A step that can be taken, of a kind that was taken least so far."""
    by_use = sorted(KINDS, key=lambda name: (used[name] / _SHARES.get(name, 1), rng.random()))
    drawn = ((name, KINDS[name].draw(view, rng, brokers)) for name in by_use)
    return next((name, arguments) for name, arguments in drawn if arguments is not None)


def membership(before: View, after: View) -> Events:
    """How brokers went and came, as it stands in the writes of a step that nothing disturbed."""
    gone = [{"kind": "broker_gone", "broker": b} for b in before.live if b not in after.brokers]
    return gone + [
        {"kind": "broker_registered", "broker": b, "broker_epoch": epoch}
        for b, epoch in sorted(after.brokers.items())
        if b not in before.brokers
    ]


def _some(rng: Random, brokers: list[int], size: int) -> list[int]:
    return rng.sample(brokers, min(size, len(brokers)))


# --- Topics and partitions ---------------------------------------------------------------------


def first_topics(rng: Random, brokers: list[int]) -> Document:
    """One topic of each replication, and one that may lose records."""
    topics = [
        _new_topic(rng, f"{name}-{replication}", replication, brokers)
        for name, replication in (("orders", 3), ("clicks", 2), ("audit", 1))
    ]
    unclean = _new_topic(rng, "metrics.unclean", 2, brokers)
    return {"topics": [*topics, {**unclean, "configs": {UNCLEAN_SETTING: "true"}}]}


def _new_topic(rng: Random, name: str, replication: int, brokers: list[int]) -> Document:
    assignment = [_some(rng, brokers, replication) for _ in range(rng.randint(2, 4))]
    return {"topic": name, "assignment": assignment, "configs": {}}


def _draw_topic(view: View, rng: Random, brokers: list[int]) -> Document | None:
    """Its replicas may be on brokers that are down: Kafka does not mind."""
    if len(view.topics) >= _MAX_TOPICS:
        return None
    name = f"new_{rng.randrange(10**6)}"
    return {"topics": [_new_topic(rng, name, rng.randint(1, 3), brokers)]}


def _create_topics(cluster: Cluster, arguments: Document) -> None:
    cluster.ask("create_topics", **arguments)


def _are_created(arguments: Document, _before: View, now: View) -> bool:
    return {topic["topic"] for topic in arguments["topics"]} <= set(now.topics)


def _topic_change(arguments: Document, _before: View, _after: View) -> Events:
    topics = {
        topic["topic"]: {str(n): replicas for n, replicas in enumerate(topic["assignment"])}
        for topic in arguments["topics"]
    }
    return [{"type": "topic_change", "topics": topics}]


def _draw_growth(view: View, rng: Random, _brokers: list[int]) -> Document | None:
    """New partitions on live brokers, as many replicas as the others; else Kafka refuses."""
    topic = rng.choice(view.topics)
    present = view.partitions_of(topic)
    replication = len(view.partitions[present[0]]["replicas"])
    if replication > len(view.live):
        return None
    added = [_some(rng, view.live, replication) for _ in range(rng.randint(1, 2))]
    return {"topic": topic, "total": len(present) + len(added), "added": added}


def _grow(cluster: Cluster, arguments: Document) -> None:
    cluster.ask("add_partitions", **arguments)


def _is_grown(arguments: Document, _before: View, now: View) -> bool:
    total: int = arguments["total"]
    return len(now.partitions_of(arguments["topic"])) == total


def _partition_change(arguments: Document, _before: View, _after: View) -> Events:
    first = arguments["total"] - len(arguments["added"])
    partitions = {str(n): replicas for n, replicas in enumerate(arguments["added"], first)}
    return [{"type": "partition_change", "topic": arguments["topic"], "partitions": partitions}]


def _draw_deletion(view: View, rng: Random, _brokers: list[int]) -> Document | None:
    """A topic that is online as a whole, since any other deletion waits for brokers."""
    online = [
        topic
        for topic in view.topics
        if all(
            view.brokers.keys() >= set(view.partitions[name]["replicas"])
            for name in view.partitions_of(topic)
        )
    ]
    if not online or len(view.topics) <= _MIN_TOPICS:
        return None
    return {"topic": rng.choice(online)}


def _delete(cluster: Cluster, arguments: Document) -> None:
    cluster.ask("delete_topic", **arguments)


def _is_deleted(arguments: Document, _before: View, now: View) -> bool:
    return arguments["topic"] not in now.topics


def _deletion(arguments: Document, before: View, _after: View) -> Events:
    """The request, and every broker's answer for its replicas."""
    topic = arguments["topic"]
    hosted: dict[int, list[str]] = {}
    for name in before.partitions_of(topic):
        for broker in before.partitions[name]["replicas"]:
            hosted.setdefault(broker, []).append(name)
    answers = [
        {"type": "stop_replica_response", "broker": broker, "partitions": hosted[broker]}
        for broker in sorted(hosted)
    ]
    return [{"type": "delete_topics", "topics": [topic]}, *answers]


# --- Brokers -----------------------------------------------------------------------------------


def _draw_broker(view: View, rng: Random, _brokers: list[int]) -> Document | None:
    """Any live broker, as long as another one stays."""
    return {"broker": rng.choice(view.live)} if len(view.live) > 1 else None


def _draw_follower(view: View, rng: Random, _brokers: list[int]) -> Document | None:
    others = [broker for broker in view.live if broker != view.controller]
    return {"broker": rng.choice(others)} if others else None


def _draw_controller(view: View, _rng: Random, _brokers: list[int]) -> Document | None:
    return {"broker": view.controller} if len(view.live) > 1 else None


def _draw_dead(view: View, rng: Random, brokers: list[int]) -> Document | None:
    dead = [broker for broker in brokers if broker not in view.brokers]
    return {"broker": rng.choice(dead)} if dead else None


def _kill(cluster: Cluster, arguments: Document) -> None:
    cluster.kill(arguments["broker"])


def _shut_down(cluster: Cluster, arguments: Document) -> None:
    cluster.shut_down(arguments["broker"])


def _restart(cluster: Cluster, arguments: Document) -> None:
    cluster.start(arguments["broker"])


def _is_gone(arguments: Document, before: View, now: View) -> bool:
    """Where the controller goes, another one has to come."""
    failovers = arguments["broker"] == before.controller
    has_controller = now.controller_epoch >= before.controller_epoch + failovers
    return has_controller and arguments["broker"] not in now.brokers


def _is_back(arguments: Document, _before: View, now: View) -> bool:
    return arguments["broker"] in now.brokers


def _loss(arguments: Document, before: View, after: View) -> Events:
    broker = arguments["broker"]
    if broker != before.controller:
        return [{"type": "broker_failure", "brokers": [broker]}]
    failover = {"type": "controller_failover", "controller": after.controller}
    return [{**failover, "dead": [broker], "forget": True}]


def _shutdown(arguments: Document, before: View, after: View) -> Events:
    """A controller moves its own leaderships away before it goes."""
    asked = {"type": "controlled_shutdown", "broker": arguments["broker"]}
    return [asked, *_loss(arguments, before, after)]


def _startup(arguments: Document, _before: View, after: View) -> Events:
    broker = arguments["broker"]
    return [{"type": "broker_startup", "brokers": [broker], "epochs": [after.brokers[broker]]}]


# --- Leaders and replicas ----------------------------------------------------------------------


def _draw_election(view: View, rng: Random, _brokers: list[int]) -> Document | None:
    """At least one partition whose preferred replica can lead and does not, and some others."""
    led = [name for name in view.partitions if view.is_led(name)]
    wanted = [name for name in led if _preferred_is_waiting(view.partitions[name])]
    if not wanted:
        return None
    others = rng.sample(led, rng.randint(0, len(led)))
    return {"partitions": list(dict.fromkeys([*wanted[: rng.randint(1, 5)], *others]))}


def _preferred_is_waiting(partition: Document) -> bool:
    state, preferred = partition["state"], partition["replicas"][0]
    return preferred in state["isr"] and preferred != state["leader"]


def _elect(cluster: Cluster, arguments: Document) -> None:
    cluster.ask("preferred_election", **arguments)


def _are_elected(arguments: Document, _before: View, now: View) -> bool:
    return not any(_preferred_is_waiting(now.partitions[name]) for name in arguments["partitions"])


def _election(arguments: Document, _before: View, _after: View) -> Events:
    return [{"type": "preferred_election", **arguments}]


def _draw_reassignment(view: View, rng: Random, _brokers: list[int]) -> Document | None:
    """To live brokers, of partitions with a leader to catch up from; else it would not end."""
    led = [name for name in view.partitions if view.is_led(name)]
    asked = {}
    for name in rng.sample(led, min(len(led), rng.randint(1, 3))):
        target = _some(rng, view.live, rng.randint(1, 3))
        if target != view.partitions[name]["replicas"]:
            asked[name] = target
    return {"partitions": asked} if asked else None


def _reassign(cluster: Cluster, arguments: Document) -> None:
    cluster.ask("reassign", **arguments)


def _are_reassigned(arguments: Document, _before: View, now: View) -> bool:
    return all(
        now.partitions[name]["replicas"] == target
        for name, target in arguments["partitions"].items()
    )


def _reassignment(arguments: Document, _before: View, _after: View) -> Events:
    return [{"type": "reassign", **arguments}]


# --- All of them -------------------------------------------------------------------------------

CREATE_TOPICS: Final = "create_topics"
KINDS: Final[dict[str, Kind]] = {
    CREATE_TOPICS: Kind(_draw_topic, _create_topics, _are_created, _topic_change),
    "add_partitions": Kind(_draw_growth, _grow, _is_grown, _partition_change),
    "delete_topic": Kind(_draw_deletion, _delete, _is_deleted, _deletion),
    "kill_broker": Kind(_draw_follower, _kill, _is_gone, _loss),
    "kill_controller": Kind(_draw_controller, _kill, _is_gone, _loss),
    "controlled_shutdown": Kind(_draw_broker, _shut_down, _is_gone, _shutdown),
    "restart": Kind(_draw_dead, _restart, _is_back, _startup),
    "preferred_election": Kind(_draw_election, _elect, _are_elected, _election),
    "reassign": Kind(_draw_reassignment, _reassign, _are_reassigned, _reassignment),
}
_SHARES: Final = {"restart": _RESTARTS}
