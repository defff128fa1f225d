"""What :mod:`~understudy.questions.history.feed` gives, put together in this process.

For a few rows Spark would be busy planning for longer than all of this takes.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import groupby, pairwise
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any, Final, TypeVar

from understudy.controller.profiles import DECISIVE_SETTINGS
from understudy.controller.words import NO_LEADER
from understudy.names import SNAPSHOT_KEY
from understudy.questions.history.feed import BROKER, MAY_BE_UNKNOWN, SETTING, SNAPSHOT
from understudy.questions.history.interval import Burst, Change, Interval, Row, Side, bursts_of
from understudy.questions.history.steps import Listed
from understudy.snapshot import (
    Key,
    broker_with_defaults,
    partition_with_defaults,
    snapshot_with_defaults,
)

if TYPE_CHECKING:
    import pyarrow as pa

K = TypeVar("K", str, tuple[str, int])
TABLES: Final = ("snapshots", "brokers", "topics", "partitions", "configs")
_NOBODY: Final = frozenset[int]()


class Moment:
    """One snapshot: its rows by their keys, with defaults for what is unknown."""

    def __init__(self, rows: Mapping[str, Sequence[Row]]) -> None:
        (snapshot,) = rows["snapshots"]
        self.snapshot = snapshot_with_defaults(snapshot)
        self.brokers = {row["broker_id"]: broker_with_defaults(row) for row in rows["brokers"]}
        self.settings = [row for row in rows["configs"] if row["key"] in DECISIVE_SETTINGS]
        self.topics = {row["topic"]: row for row in rows["topics"]}
        self.partitions = {
            (row["topic"], row["partition"]): partition_with_defaults(row)
            for row in rows["partitions"]
        }
        self.unknown = {
            (row["topic"], row["partition"]): unknown
            for row in rows["partitions"]
            if row["has_state"] and (unknown := [n for n in MAY_BE_UNKNOWN if row[n] is None])
        }
        """Names of what is unknown, of those partitions that have any."""


def moments(tables: Mapping[str, pa.Table]) -> dict[Key, Moment]:
    """Each of the snapshots in these *tables*."""
    found: defaultdict[Key, defaultdict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for name, table in tables.items():
        for row in table.to_pylist():
            cluster, snapshot_id = (row.pop(name) for name in SNAPSHOT_KEY)
            found[cluster, snapshot_id][name].append(row)
    return {key: Moment(rows) for key, rows in found.items() if "snapshots" in rows}


def bursts(
    there: Mapping[Key, Moment],
    history: Iterable[Listed],
    followed: Mapping[Key, AbstractSet[int]] | None = None,
) -> Iterator[tuple[str, Burst]]:
    """The bursts of a *history*, each with the name of its cluster.

    *followed* are the brokers that are in sync with somebody else about partitions that are not
    *there*.
    """
    for cluster, listed in groupby(history, attrgetter("cluster")):
        sides = [
            _Side(each, there[key], (followed or {}).get(key, _NOBODY))
            for each in listed
            for key in [(each.cluster, each.snapshot_id)]
        ]
        steps = [(new.listed.burst, _interval(old, new)) for old, new in pairwise(sides)]
        for _, found in groupby(steps, itemgetter(0)):
            for burst in bursts_of([interval for _, interval in found]):
                yield cluster, burst


class _Side:
    """One snapshot of a history, as the one before and the one after it are held against it."""

    def __init__(self, listed: Listed, moment: Moment, followed: AbstractSet[int]) -> None:
        said = {**moment.snapshot, **listed._asdict()}
        sizes = Counter(topic for topic, _ in moment.partitions)
        self.listed = listed
        self.brokers = {broker: _named(row, BROKER) for broker, row in moment.brokers.items()}
        self.topics = {
            topic: {**row, "partitions": sizes.get(topic)} for topic, row in moment.topics.items()
        }
        self.partitions = {
            key: {**row, "unknown": moment.unknown.get(key, [])}
            for key, row in moment.partitions.items()
        }
        self.side = Side(
            snapshot=_named(said, SNAPSHOT),
            brokers=self.brokers,
            settings=[_named(row, SETTING) for row in moment.settings],
            queued_topics=frozenset(
                topic for topic, row in moment.topics.items() if row["queued_for_deletion"]
            ),
            followed=frozenset(followed).union(*map(_in_sync, moment.partitions.values())),
        )
        self.is_elr_enabled = bool(moment.snapshot["elr_enabled"])


def _named(row: Row, names: Sequence[str]) -> dict[str, Any]:
    return {name: row[name] for name in names}


def _in_sync(row: Row) -> Sequence[int]:
    """As :func:`~understudy.questions.history.feed.followed_brokers` says it."""
    is_shared = len(row["isr"] or ()) > 1 and row["leader"] not in (None, NO_LEADER)
    return row["isr"] if is_shared else ()


def _interval(old: _Side, new: _Side) -> Interval:
    topics = {name: change for name, change in _pairs(old.topics, new.topics) if _differs(change)}
    steady = {
        broker
        for broker, row in new.brokers.items()
        if row["alive"] and not row["shutting_down"] and row == old.brokers.get(broker)
    }
    partitions = [
        change
        for (topic, number), change in _pairs(old.partitions, new.partitions)
        if _differs(change)
        or topic in topics
        or (new.is_elr_enabled and number == 0)
        or _may_change(change.before, steady)
    ]
    return Interval(old.side, new.side, topics, partitions)


def _pairs(old: Mapping[K, Row], new: Mapping[K, Row]) -> Iterator[tuple[K, Change]]:
    for key in sorted(old.keys() | new.keys()):
        yield key, Change(old.get(key), new.get(key))


def _differs(change: Change) -> bool:
    return change.before != change.after


def _may_change(row: Row | None, steady: AbstractSet[int]) -> bool:
    """As :func:`~understudy.questions.history.feed.may_change` says it."""
    return (
        row is None
        or not row["has_state"]
        or row["leader"] not in steady
        or not steady >= frozenset(row["isr"] or ())
        or bool(row["adding"] or row["removing"])
        or row["leader"] in row["offline_dirs"]
    )
