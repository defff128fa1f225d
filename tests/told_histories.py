"""Histories to derive events from: small ones told by name, and recorded ones."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from clusters import Document, cluster, partition

REAL = Path(__file__).parent / "data" / "real"

# Which replicas of the queued topic were still ineligible for deletion was only in the memory of
# the controller.
IN_MEMORY_ONLY = {"zk10-a-dump030"}

Json = Any
Event = dict[str, Json]
Pair = tuple[Document, Document, list[Event]]


# --- Small histories by name -------------------------------------------------------------------

LED = partition([1, 2, 3], (1, 4, [1, 2, 3]))
LED_BY_2 = partition([1, 2, 3], (2, 5, [2, 3]), partition_epoch=11)
CLEAN = "unclean.leader.election.enable"


def zk(
    *partitions: Document, live: tuple[int, ...] = (1, 2, 3), topic: str = "t", **more: Json
) -> Document:
    """A cluster of ZooKeeper's time; its controller is broker 9, which leads nothing."""
    known = {key: more.pop(key) for key in ("queued", "epoch", "unclean") if key in more}
    topics = {topic: list(partitions)} if partitions else {}
    return cluster(topics, live=live, **known) | {"controller": {"id": 9, "epoch": 4}} | more


def with_epochs(doc: Document, **epochs: int) -> Document:
    brokers = [b | {"epoch": epochs.get(f"b{b['id']}", b["epoch"])} for b in doc["brokers"]]
    return doc | {"brokers": brokers}


def assigned(
    replicas: list[int], adding: list[int], removing: list[int], *record: Json
) -> Document:
    leader, epoch, isr, partition_epoch = record
    made = partition(replicas, (leader, epoch, isr), partition_epoch=partition_epoch)
    return made | {"adding": adding, "removing": removing}


def with_id(doc: Document, topic_id: str) -> Document:
    return doc | {"topics": [topic | {"id": topic_id} for topic in doc["topics"]]}


def quorum(
    *partitions: Document, fenced: tuple[int, ...] = (), gone: tuple[int, ...] = (), **more: Json
) -> Document:
    down, dirs, epochs = (more.pop(key, {}) for key in ("down", "dirs", "epochs"))
    brokers = [
        {
            "id": b,
            "epoch": epochs.get(b, 100 + b),
            "fenced": b in fenced,
            "shutting_down": b in down,
            "log_dirs": dirs.get(b, [f"dir{b}a", f"dir{b}b"]),
        }
        for b in (1, 2, 3)
        if b not in gone
    ]
    for each in partitions:
        each["state"].pop("controller_epoch", None)
    return {
        "mode": "kraft",
        "release": "4.3",
        "controller": {"id": 101, "epoch": more.pop("epoch", 4)},
        "brokers": brokers,
        "topics": [{"name": "t", "partitions": list(partitions)}] if partitions else [],
    } | more


def led(leader: int, epoch: int, isr: list[int], partition_epoch: int = 10) -> Document:
    return partition([1, 2, 3], (leader, epoch, isr), partition_epoch=partition_epoch)


def led_by_1_again(epoch: int, *, partition_epoch: int) -> Document:
    """Under a new controller broker 1 came back, caught up, and was elected."""
    state = (1, epoch, [2, 3, 1])
    led_again = partition([1, 2, 3], state, partition_epoch=partition_epoch, controller_epoch=5)
    return with_epochs(zk(led_again, controller={"id": 3, "epoch": 5}), b1=300)


HOW_1_LED_AGAIN: list[Event] = [
    {"controller": 3, "forget": True, "type": "controller_failover"},
    {"brokers": [1], "epochs": [300], "type": "broker_startup"},
    {"isr": [2, 3, 1], "partition": "t-0", "type": "isr_change"},
    {"partitions": ["t-0"], "type": "preferred_election"},
]

PAIRS: dict[str, Pair] = {
    "unchanged": (zk(LED), zk(LED), []),
    "unchanged quorum": (quorum(led(1, 4, [1, 2])), quorum(led(1, 4, [1, 2])), []),
    "failover": (
        zk(LED),
        zk(LED, controller={"id": 2, "epoch": 5}),
        [{"controller": 2, "forget": True, "type": "controller_failover"}],
    ),
    "failover with the dead": (
        zk(LED, controller={"id": 1, "epoch": 4}),
        zk(
            partition([1, 2, 3], (2, 6, [2, 3]), partition_epoch=12, controller_epoch=5),
            live=(2, 3),
            controller={"id": 3, "epoch": 5},
        ),
        [{"controller": 3, "dead": [1], "forget": True, "type": "controller_failover"}],
    ),
    "several failovers": (
        zk(LED),
        zk(LED, controller={"id": 2, "epoch": 6}),
        [
            {"forget": True, "type": "controller_failover"},
            {"controller": 2, "forget": True, "type": "controller_failover"},
        ],
    ),
    "a failure that the controller before the failover had seen": (
        zk(LED, controller={"id": 3, "epoch": 4}),
        zk(
            partition([1, 2, 3], (2, 5, [2, 3]), partition_epoch=11, controller_epoch=4),
            live=(2, 3),
            controller={"id": 2, "epoch": 5},
        ),
        [
            {"brokers": [1], "type": "broker_failure"},
            {"controller": 2, "forget": True, "type": "controller_failover"},
        ],
    ),
    "brokers that vanish together": (
        zk(LED, live=(1, 2, 3, 10)),
        zk(partition([1, 2, 3], (2, 5, [2]), partition_epoch=11), live=(2,)),
        [{"brokers": [1, 3, 10], "type": "broker_failure"}],
    ),
    "brokers that come": (
        zk(LED, live=(1,)),
        with_epochs(zk(LED, live=(1, 2, 3)), b2=301, b3=300),
        [
            {"brokers": [3], "epochs": [300], "type": "broker_startup"},
            {"brokers": [2], "epochs": [301], "type": "broker_startup"},
        ],
    ),
    "a broker that bounced": (
        zk(LED),
        with_epochs(zk(partition([1, 2, 3], (2, 5, [2, 3, 1]), partition_epoch=12)), b1=300),
        [
            {"brokers": [1], "type": "broker_failure"},
            {"brokers": [1], "epochs": [300], "type": "broker_startup"},
            {"isr": [2, 3, 1], "partition": "t-0", "type": "isr_change"},
        ],
    ),
    "a log directory known to be offline": (
        zk(LED, led(2, 1, [2, 1]) | {"partition": 1}),
        zk(
            LED_BY_2 | {"offline_dirs": [1]},
            led(2, 1, [2, 1]) | {"partition": 1},
        ),
        [{"broker": 1, "partitions": ["t-0"], "type": "log_dir_failure"}],
    ),
    "a log directory that must be offline": (
        zk(LED, led(2, 1, [2, 1]) | {"partition": 1}),
        zk(LED_BY_2, led(2, 1, [2, 1]) | {"partition": 1}),
        [{"broker": 1, "partitions": ["t-0"], "type": "log_dir_failure"}],
    ),
    "a broker that shuts down": (
        zk(LED),
        zk(
            LED_BY_2,
            live=(2, 3),
            brokers=[
                {"id": 1, "epoch": 101, "shutting_down": True},
                {"id": 2, "epoch": 102},
                {"id": 3, "epoch": 103},
            ],
        ),
        [{"broker": 1, "type": "controlled_shutdown"}],
    ),
    "a broker that must be shutting down": (
        zk(LED),
        zk(LED_BY_2),
        [{"broker": 1, "type": "controlled_shutdown"}],
    ),
    "a topic": (
        zk(),
        zk(led(1, 0, [1, 2, 3], 0)),
        [{"topics": {"t": {"0": [1, 2, 3]}}, "type": "topic_change"}],
    ),
    "partitions": (
        zk(LED),
        zk(LED, *(partition([2, 3], (2, 0, [2, 3]), number=n, partition_epoch=0) for n in (10, 9))),
        [{"partitions": {"9": [2, 3], "10": [2, 3]}, "topic": "t", "type": "partition_change"}],
    ),
    "a deletion queued": (
        zk(LED),
        zk(partition([1, 2, 3], (-1, 7, [3]), partition_epoch=13), queued=["t"]),
        [{"topics": ["t"], "type": "delete_topics"}],
    ),
    "a deletion finished": (
        zk(partition([1, 2], (1, 4, [1, 2]))),
        zk(),
        [
            {"topics": ["t"], "type": "delete_topics"},
            {"broker": 1, "partitions": ["t-0"], "type": "stop_replica_response"},
            {"broker": 2, "partitions": ["t-0"], "type": "stop_replica_response"},
        ],
    ),
    "another topic under the same name": (
        with_id(zk(partition([1], (1, 0, [1]), partition_epoch=0)), "AAAAAAAAAAAAAAAAAAAAAw"),
        with_id(zk(partition([1], (1, 0, [1]), partition_epoch=0)), "AAAAAAAAAAAAAAAAAAAABA"),
        [
            {"topics": ["t"], "type": "delete_topics"},
            {"broker": 1, "partitions": ["t-0"], "type": "stop_replica_response"},
            {"topics": {"t": {"0": [1]}}, "type": "topic_change"},
        ],
    ),
    "a reassignment begun": (
        zk(partition([1, 2], (1, 4, [1, 2]))),
        zk(assigned([3, 1, 2], [3], [2], 1, 5, [1, 2], 11)),
        [{"partitions": {"t-0": [3, 1]}, "type": "reassign"}],
    ),
    "a reassignment done": (
        zk(partition([1, 2], (1, 4, [1, 2]))),
        zk(assigned([3, 1], [], [], 1, 7, [1, 3], 14)),
        [
            {"partitions": {"t-0": [3, 1]}, "type": "reassign"},
            {"isr": [1, 2, 3], "partition": "t-0", "type": "isr_change"},
        ],
    ),
    "a reassignment that ends": (
        zk(assigned([3, 1, 2], [3], [2], 1, 5, [1, 2], 11)),
        zk(assigned([3, 1], [], [], 1, 7, [1, 3], 14)),
        [{"isr": [1, 2, 3], "partition": "t-0", "type": "isr_change"}],
    ),
    "a reassignment replaced": (
        zk(assigned([3, 1, 2], [3], [2], 1, 5, [1, 2], 11), live=(1, 2, 3, 4)),
        zk(assigned([4, 1, 2], [4], [2], 1, 6, [1, 2], 12), live=(1, 2, 3, 4)),
        [{"partitions": {"t-0": [4, 1]}, "type": "reassign"}],
    ),
    "a reassignment cancelled": (
        zk(assigned([3, 1, 2], [3], [2], 1, 5, [1, 2], 11)),
        zk(partition([1, 2], (1, 6, [1, 2]), partition_epoch=12)),
        [{"partitions": ["t-0"], "type": "cancel_reassignment"}],
    ),
    "the same reassignment again": (
        zk(LED),
        zk(led(1, 5, [1, 2, 3], 11)),
        [{"partitions": {"t-0": [1, 2, 3]}, "type": "reassign"}],
    ),
    "an ISR": (
        zk(led(1, 4, [1, 2, 3], 10)),
        zk(led(1, 4, [1, 3, 2], 12)),
        [
            {"isr": [1, 3], "partition": "t-0", "type": "isr_change"},
            {"isr": [1, 3, 2], "partition": "t-0", "type": "isr_change"},
        ],
    ),
    "an ISR that only its epoch betrays": (
        zk(led(1, 4, [1, 2], 10)),
        zk(led(1, 4, [1, 2], 12)),
        [
            {"isr": [1], "partition": "t-0", "type": "isr_change"},
            {"isr": [1, 2], "partition": "t-0", "type": "isr_change"},
        ],
    ),
    "a preferred leader": (
        zk(led(2, 4, [2, 1], 10)),
        zk(led(1, 5, [2, 1], 11)),
        [{"partitions": ["t-0"], "type": "preferred_election"}],
    ),
    "an unclean leader": (
        zk(led(-1, 4, [3], 10), live=(1, 2)),
        zk(led(1, 5, [1], 11), live=(1, 2)),
        [{"partitions": ["t-0"], "type": "unclean_election"}],
    ),
    "unclean election for a topic": (
        zk(led(-1, 4, [3], 10), live=(1, 2)),
        {
            **(after := zk(led(1, 5, [1], 11), live=(1, 2))),
            "topics": [after["topics"][0] | {"configs": {CLEAN: "true"}}],
        },
        [{"topic": "t", "type": "unclean_enabled"}],
    ),
    "unclean election by default": (
        zk(led(-1, 4, [3], 10), live=(1, 2)),
        zk(led(1, 5, [1], 11), live=(1, 2), unclean=True),
        [{"type": "unclean_enabled"}],
    ),
    "a follower that caught up before the leader died": (
        zk(led(1, 4, [1, 3], 10)),
        zk(led(2, 5, [3, 2], 12), live=(2, 3)),
        [
            {"isr": [1, 3, 2], "partition": "t-0", "type": "isr_change"},
            {"brokers": [1], "type": "broker_failure"},
        ],
    ),
    "a follower that caught up after the leader died": (
        zk(led(1, 4, [1, 3], 10)),
        zk(led(3, 5, [3, 2], 12), live=(2, 3)),
        [
            {"brokers": [1], "type": "broker_failure"},
            {"isr": [3, 2], "partition": "t-0", "type": "isr_change"},
        ],
    ),
    "followers that fell behind before the leader lost its directory": (
        zk(LED),
        zk(led(-1, 5, [1], 12) | {"offline_dirs": [1]}),
        [
            {"isr": [1], "partition": "t-0", "type": "isr_change"},
            {"broker": 1, "partitions": ["t-0"], "type": "log_dir_failure"},
        ],
    ),
    "a preferred leader that then is alone in sync": (
        zk(led(2, 4, [2, 1], 10)),
        zk(led(1, 5, [1], 12)),
        [
            {"partitions": ["t-0"], "type": "preferred_election"},
            {"isr": [1], "partition": "t-0", "type": "isr_change"},
        ],
    ),
    "a broker that was back in sync when another died": (
        zk(led(1, 4, [1, 3, 2], 10)),
        with_epochs(zk(led(2, 6, [3, 2], 13), live=(2, 3)), b2=300),
        [
            {"brokers": [2], "type": "broker_failure"},
            {"brokers": [2], "epochs": [300], "type": "broker_startup"},
            {"isr": [1, 3, 2], "partition": "t-0", "type": "isr_change"},
            {"brokers": [1], "type": "broker_failure"},
        ],
    ),
    "brokers that died one after the other": (
        zk(led(1, 4, [1, 2, 3], 10)),
        zk(led(3, 6, [3], 12), live=(3,)),
        [
            {"brokers": [1], "type": "broker_failure"},
            {"brokers": [2], "type": "broker_failure"},
        ],
    ),
    "a controller that died while nobody follows it": (
        zk(LED, controller={"id": 1, "epoch": 4}),
        zk(led(1, 4, [1], 11), live=(2, 3), controller={"id": 1, "epoch": 4}),
        [{"isr": [1], "partition": "t-0", "type": "isr_change"}],
    ),
    "a failover after a death that nobody had met": (
        zk(LED, live=(2, 3), controller={"id": 1, "epoch": 4}),
        led_by_1_again(7, partition_epoch=14),
        HOW_1_LED_AGAIN,
    ),
    "a directory of which the next controller has to learn": (
        zk(led(-1, 4, [1], 10) | {"offline_dirs": [1]}),
        zk(
            partition([1, 2, 3], (-1, 6, [1]), partition_epoch=12, controller_epoch=5)
            | {"offline_dirs": [1]},
            controller={"id": 2, "epoch": 5},
        ),
        [
            {"controller": 2, "forget": True, "type": "controller_failover"},
            {"broker": 1, "partitions": ["t-0"], "type": "log_dir_failure"},
        ],
    ),
    "a partition first led after the failover, and then by its first replica": (
        zk(partition([1, 2, 3]), live=(2, 3)),
        led_by_1_again(1, partition_epoch=2),
        HOW_1_LED_AGAIN,
    ),
    "a new leader of the quorum": (
        quorum(led(1, 4, [1, 2])),
        quorum(led(1, 4, [1, 2]), epoch=7),
        [{"controller": 101, "type": "controller_failover"}],
    ),
    "brokers fenced one after the other": (
        quorum(led(2, 4, [2, 1, 3], 10)),
        quorum(led(3, 6, [3], 12), fenced=(1, 2)),
        [{"brokers": [2, 1], "type": "broker_failure"}],
    ),
    "a broker unfenced": (
        quorum(led(1, 4, [1]), fenced=(2,)),
        quorum(led(1, 4, [1])),
        [{"brokers": [2], "type": "unfence"}],
    ),
    "a broker registered anew": (
        quorum(led(1, 4, [1]), fenced=(2,)),
        quorum(led(1, 4, [1]), epochs={2: 300}),
        [{"brokers": [2], "epochs": [300], "type": "broker_startup"}],
    ),
    "a broker unregistered": (
        quorum(led(1, 4, [1]), fenced=(2,)),
        quorum(led(1, 4, [1]), gone=(2,)),
        [{"brokers": [2], "type": "unregister"}],
    ),
    "a broker that shut down": (
        quorum(led(1, 4, [1, 2], 10)),
        quorum(led(2, 5, [2], 11), fenced=(1,), down=(1,)),
        [
            {"broker": 1, "type": "controlled_shutdown"},
            {"broker": 1, "type": "controlled_shutdown"},
        ],
    ),
    "directories lost": (
        quorum(led(1, 4, [1, 2])),
        quorum(led(1, 4, [1, 2]), dirs={2: ["dir2b"]}),
        [{"broker": 2, "dirs": ["dir2a"], "type": "log_dir_failure"}],
    ),
    "a topic deleted by the quorum": (
        quorum(led(1, 4, [1, 2])),
        quorum(),
        [{"topics": ["t"], "type": "delete_topics"}],
    ),
}


def in_time(name: str, pair: Pair) -> Iterator[Document]:
    for place, doc in enumerate(pair[:2]):
        named = {"cluster": name, "snapshot_id": f"s{place}"}
        yield doc | named | {"taken_at": f"2026-01-01T00:00:0{place}Z"}


# --- Recorded histories ------------------------------------------------------------------------


def read_lines(name: str) -> list[Any]:
    with gzip.open(REAL / name, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


RECORDED: dict[str, list[Document]] = {
    "zk-3.9": read_lines("history-zk-3.9.jsonl.gz"),
    "zk-2.8": read_lines("history-zk-2.8.jsonl.gz"),
    "zk-1.0": read_lines("history-zk-1.0.jsonl.gz"),
    "kraft-4.3": [case["before"] for case in read_lines("kraft-4.3/cases.jsonl.gz")],
    "kraft-3.9": [case["before"] for case in read_lines("kraft-3.9/cases.jsonl.gz")],
}


# --- A burst -----------------------------------------------------------------------------------


def at_second(doc: Document, second: float, name: str) -> Document:
    times = {"snapshot_id": name, "taken_at": f"2026-01-01T00:00:{second:06.3f}Z"}
    return doc | {"cluster": "burst"} | times


def _burst() -> list[Document]:
    """Broker 1 dies, and its two partitions are moved one after the other."""
    one, two = (partition([1, 2, 3], (1, 4, [1, 2, 3]), number=n) for n in (0, 1))
    moved = [partition([1, 2, 3], (2, 5, [2, 3]), partition_epoch=11, number=n) for n in (0, 1)]
    return [
        at_second(zk(one, two), 0, "s0"),
        at_second(zk(one, two, live=(2, 3)), 10, "s1"),
        at_second(zk(moved[0], two, live=(2, 3)), 10.01, "s2"),
        at_second(zk(*moved, live=(2, 3)), 10.01, "s10"),  # after s2, though "s10" < "s2"
    ]


BURST = _burst()
