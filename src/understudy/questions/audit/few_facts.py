"""What :mod:`~understudy.questions.audit.facts` says of a few rows, put together in this process.

The same columns with the same values, which the tests hold them to. For what is in question of one
more snapshot Spark would be busy planning for longer than all of this takes.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any, Final, NamedTuple

from pyspark.sql import types as T

from understudy import schemas
from understudy.controller.kraft.partitions import LOST, MIGRATING, UNASSIGNED
from understudy.controller.profiles import KRAFT
from understudy.names import SNAPSHOT_KEY
from understudy.questions.audit.facts import (
    BROKER_REMEMBERED,
    EVER,
    LOAD,
    PLACES,
    REMEMBERED,
    said_of_difference,
)
from understudy.questions.availability import min_isr_by_topic, unclean_by_topic
from understudy.questions.history.divergence import UNCLEAN, UNEXPLAINED
from understudy.questions.history.few import Moment
from understudy.snapshot import Key, Row

Partition = tuple[str, int]
Load = Mapping[int, Mapping[str, int]]
"""By broker, how many partitions it holds, leads and so on."""


class Looked(NamedTuple):
    """A snapshot to be judged, and the two before it."""

    place: Row
    """Its row of ``places``."""
    now: View
    before: View
    earlier: View
    load_of_rest: Load
    """Of partitions that are not in question."""

    @property
    def key(self) -> Key:
        return self.place["cluster"], self.place["snapshot_id"]


# --- One snapshot --------------------------------------------------------------------------------


class View:
    """What is true of partitions and brokers in their own snapshot, which is the *number*-th."""

    def __init__(self, moment: Moment, number: int) -> None:
        snapshot, brokers = moment.snapshot, moment.brokers.values()
        self.moment = moment
        self.number = number
        self.is_kraft = snapshot["mode"] == KRAFT.mode
        self.alive = {row["broker_id"] for row in brokers if row["alive"]}
        leaving = {row["broker_id"] for row in brokers if row["alive"] and row["shutting_down"]}
        self._leaving = leaving
        self._live = self.alive - leaving
        self._racks = {row["broker_id"]: row["rack"] for row in brokers}
        self.rack_count = len({*self._racks.values()} - {None})
        self._log_dirs = {
            row["broker_id"]: frozenset(row["log_dirs"])
            for row in brokers
            if row["broker_id"] in self._live and row["log_dirs"]
        }
        self._min_isr = min_isr_by_topic(moment.settings, snapshot["controller_id"])
        self._unclean = unclean_by_topic(moment.settings, snapshot)

    @cached_property
    def partitions(self) -> dict[Partition, dict[str, Any]]:
        """Those that count."""
        return {
            (topic, number): self._judged(row)
            for (topic, number), row in self.moment.partitions.items()
            if not self._is_queued(topic)
        }

    def _is_queued(self, topic: str) -> bool:
        row = self.moment.topics.get(topic)
        return row is not None and bool(row["queued_for_deletion"])

    def _judged(self, row: Row) -> dict[str, Any]:
        replicas, topic = row["replicas"] or [], row["topic"]
        offline_dirs = self._offline_dirs(row)
        idle_isr = self._idle(row["isr"])
        racks = [self._racks.get(replica) for replica in replicas]
        return {
            **row,
            "number": self.number,
            "is_kraft": self.is_kraft,
            "min_isr": self._effective_min_isr(topic),
            "unclean_allowed": self._unclean.get(topic, self._unclean[None]),
            "offline_dirs": offline_dirs,
            "is_led": row["leader"] in self._live and row["leader"] not in offline_dirs,
            "idle_isr": idle_isr,
            "idle_replicas": self._idle(replicas),
            "dead_isr": idle_isr and [r for r in idle_isr if r not in self._leaving],
            "rack_count": self.rack_count,
            "racks_known": None not in racks,
            "rack_spread": len(set(racks)),
        }

    def _effective_min_isr(self, topic: str) -> int:
        """KRaft: never more than partition 0 has replicas."""
        wanted = self._min_isr.get(topic, self._min_isr[None])
        first = self.moment.partitions.get((topic, 0)) if self.is_kraft else None
        return wanted if first is None else min(wanted, len(first["replicas"] or ()))

    def _idle(self, brokers: Sequence[int] | None) -> list[int] | None:
        return None if brokers is None else [b for b in brokers if b not in self._live]

    def _offline_dirs(self, row: Row) -> list[int]:
        """Kafka's DirectoryId.isOnline, of the directories that are known."""
        lost = [
            replica
            for replica, directory in zip(
                row["replicas"] or (), row["directories"] or (), strict=False
            )
            if self._is_lost(replica, directory)
        ]
        found: list[int] = row["offline_dirs"]
        return [*dict.fromkeys([*found, *lost])] if row["directories"] else found

    def _is_lost(self, replica: int, directory: str | None) -> bool:
        if directory in (None, UNASSIGNED, MIGRATING):
            return False
        return directory == LOST or directory not in self._log_dirs.get(replica, {directory})

    @cached_property
    def load(self) -> dict[int, Counter[str]]:
        """By broker, what it is to partitions that have a leader or had one."""
        found: defaultdict[int, Counter[str]] = defaultdict(Counter)
        for row in self.partitions.values():
            if row["has_state"]:
                for broker in row["replicas"] or ():
                    found[broker].update(name for name, holds in _is_to(broker, row) if holds)
        return found


def _is_to(broker: int, row: Row) -> Iterator[tuple[str, bool]]:
    """What a broker is to a partition that it holds; as ``LOAD`` says it."""
    leader, is_led, isr = row["leader"], row["is_led"], row["isr"] or ()
    leads = broker == leader
    follows = not leads and leader is not None and is_led
    yield "held", True
    yield "leaders", leads and is_led
    yield "preferred", broker == row["replicas"][0]
    yield "preferred_led", leads and broker == row["replicas"][0]
    if leads and any(r != leader and r not in row["idle_replicas"] for r in row["replicas"]):
        yield "shared_led", True
        yield "alone", len(isr) == 1
    yield "followed", follows
    yield "followed_in_sync", follows and broker in isr


# --- What rules look at --------------------------------------------------------------------------


def _fields(**kinds: T.DataType) -> list[T.StructField]:
    return [T.StructField(name, kind) for name, kind in kinds.items()]


_JUDGED: Final = T.StructType(
    [
        *(field for field in schemas.PARTITIONS if field.name not in SNAPSHOT_KEY),
        *_fields(
            min_isr=schemas.INT,
            unclean_allowed=schemas.BOOLEAN,
            is_led=schemas.BOOLEAN,
            idle_isr=schemas.IDS,
            idle_replicas=schemas.IDS,
            dead_isr=schemas.IDS,
            rack_count=schemas.INT,
            racks_known=schemas.BOOLEAN,
            rack_spread=schemas.INT,
        ),
    ]
)


def _beside(known: T.StructType, remembered: Iterable[str]) -> list[T.StructField]:
    memory = T.StructType([known[name] for name in remembered])
    return [T.StructField(name, memory) for name in ("before", "earlier")]


PARTITIONS: Final = T.StructType(
    [
        *PLACES,
        *_JUDGED,
        *_beside(T.StructType([*_JUDGED, PLACES["number"]]), REMEMBERED),
        T.StructField("is_unclean", schemas.BOOLEAN),
    ]
)
CHANGES: Final = T.StructType(
    [
        *PLACES,
        *_fields(topic=schemas.STRING, partition=schemas.INT, differences=schemas.STRINGS),
    ]
)
_BROKER: Final = [field for field in schemas.BROKERS if field.name not in SNAPSHOT_KEY]
BROKERS: Final = T.StructType(
    [
        *PLACES,
        *_BROKER,
        *_fields(**dict.fromkeys((*LOAD, "all_leaders"), schemas.LONG)),
        *_beside(T.StructType([*_BROKER, PLACES["number"]]), BROKER_REMEMBERED),
        *_fields(
            stayed_for=schemas.LONG,
            same_endpoints=schemas.LONG,
            rack_count=schemas.INT,
            live_brokers=schemas.LONG,
            returned=schemas.BOOLEAN,
            returned_together=schemas.LONG,
        ),
    ]
)
SNAPSHOTS: Final = T.StructType([*PLACES, *_fields(is_controller_alive=schemas.BOOLEAN)])


def partitions(looked: Iterable[Looked], changes: Iterable[Row]) -> Iterator[dict[str, Any]]:
    unclean = {
        (*_key(row), row["topic"], row["partition"])
        for row in changes
        if row["field"] == "leader" and row["reason"] == UNCLEAN
    }
    for each in looked:
        for partition, row in each.now.partitions.items():
            yield {
                **each.place,
                **row,
                "before": each.before.partitions.get(partition),
                "earlier": each.earlier.partitions.get(partition),
                "is_unclean": True if (*each.key, *partition) in unclean else None,
            }


def unexplained(looked: Iterable[Looked], divergences: Iterable[Row]) -> Iterator[dict[str, Any]]:
    found: defaultdict[tuple[Any, ...], list[str]] = defaultdict(list)
    for row in divergences:
        if row["reason"] == UNEXPLAINED:
            found[*_key(row), row["topic"], row["partition"]].append(said_of_difference(row))
    places = {each.key: each.place for each in looked}
    for (*key, topic, partition), differences in found.items():
        if (place := places.get(tuple(key))) is not None:
            said = sorted(differences, key=str.encode)
            yield {**place, "topic": topic, "partition": partition, "differences": said}


def brokers(looked: Iterable[Looked]) -> Iterator[dict[str, Any]]:
    for each in looked:
        yield from _brokers(each)


def _brokers(looked: Looked) -> list[dict[str, Any]]:
    now, before, earlier = (
        {
            broker: {**row, "alive": broker in view.alive, "number": view.number}
            for broker, row in view.moment.brokers.items()
        }
        for view in (looked.now, looked.before, looked.earlier)
    )
    load = {
        broker: looked.now.load.get(broker, Counter()) + Counter(looked.load_of_rest.get(broker))
        for broker in looked.now.load.keys() | looked.load_of_rest.keys()
    }
    nothing = dict.fromkeys(LOAD, 0)
    unregistered: dict[str, Any] = {field.name: None for field in _BROKER}
    rows = [
        {
            **looked.place,
            **now.get(broker, {**unregistered, "broker_id": broker, "alive": False}),
            **nothing,
            **load.get(broker, {}),
            "before": before.get(broker),
            "earlier": earlier.get(broker),
        }
        for broker in now.keys() | load.keys()
    ]
    endpoints = Counter(row["endpoints"] for row in rows if row["alive"])
    returned = [row["broker_id"] for row in rows if _has_returned(row)]
    of_all = {
        "rack_count": looked.now.rack_count,
        "live_brokers": len(looked.now.alive),
        "returned_together": len(returned),
        "all_leaders": sum(row["leaders"] for row in rows),
    }
    return [
        {
            **row,
            **of_all,
            "stayed_for": _stayed_for(row),
            "same_endpoints": 0 if row["endpoints"] is None else endpoints[row["endpoints"]],
            "returned": row["broker_id"] in returned,
        }
        for row in rows
    ]


def _has_returned(row: Row) -> bool:
    """Fenced and back under the same registration: the broker never stopped."""
    before, earlier, epoch = row["before"], row["earlier"], row["broker_epoch"]
    if before is None or earlier is None or epoch is None:
        return False
    was_away = row["alive"] and not before["alive"] and earlier["alive"]
    return was_away and before["broker_epoch"] == earlier["broker_epoch"] == epoch


def _stayed_for(row: Row) -> int:
    """How long it is known to be up; of a first snapshot, long enough."""
    if row["seconds"] is None:
        return EVER
    before = row["before"]
    if before is None or not before["alive"]:
        return 0
    epochs = (before["broker_epoch"], row["broker_epoch"])
    is_known_to_grow = None not in epochs and epochs[1] > epochs[0]
    return 0 if is_known_to_grow else row["seconds"]


def whole(looked: Iterable[Looked]) -> Iterator[dict[str, Any]]:
    for each in looked:
        controller = each.place["controller_id"]
        is_alive = None if controller is None else controller in each.now.alive
        yield {**each.place, "is_controller_alive": is_alive}


def renewed_topics(looked: Iterable[Looked]) -> set[tuple[str, str, str, int]]:
    """Cluster, snapshot and topic, and how far a rule has to look back to look past it."""
    return {
        (*each.key, topic, lookback)
        for each in looked
        for topic in each.now.moment.topics
        for lookback in _renewed(topic, (each.earlier, each.before, each.now))
    }


def _renewed(topic: str, views: Sequence[View]) -> Collection[int]:
    """A topic that was renewed a snapshot earlier is that for two of them."""
    there = [
        (view.number, view.moment.topics[topic]["topic_id"])
        for view in views
        if topic in view.moment.topics
    ]
    now = views[-1].number
    return [
        now - number + 1
        for (_, old), (number, new) in pairwise(there)
        if None not in (old, new) and old != new and now - number <= 1
    ]


def _key(row: Row) -> Key:
    cluster, snapshot_id = (row[name] for name in SNAPSHOT_KEY)
    return cluster, snapshot_id
