"""A snapshot as arrays: brokers by their place in a list of ids, partitions in their own order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from understudy.controller import releases, request_sizes
from understudy.controller.columnar.arrays import (
    NOBODY,
    UNSET,
    Flags,
    Ints,
    contained_in,
    distinct,
    lists,
)
from understudy.controller.snapshot_rows import SnapshotRows
from understudy.controller.words import DELETION_SETTING, UNCLEAN_SETTING

UNKNOWN_EPOCH: Final = np.iinfo(np.int64).min  # in place of a broker's epoch
ASSIGNMENT: Final = ("replicas", "adding", "removing")
UNCLEAN_LEVELS: Final = ("topic", "broker", "cluster", "static")
_TOPIC_LEVEL: Final = 0
_HIGH_ID: Final = (
    1_000_000  # below it, places of ids are looked up in a list of all ids there can be
)


class Cluster:
    """What a controller can know of a snapshot; a scenario changes none of it."""

    def __init__(self, known: Mapping[str, Any], partitions: pa.Table) -> None:
        """*known* is what the whole cluster has in common, as the interpreter is given it."""
        names, topic, order = _in_order(partitions)
        rows = (partitions if order is None else partitions.take(pa.array(order))).combine_chunks()

        def column(name: str) -> pa.Array:
            chunks = rows[name].chunks
            return chunks[0] if chunks else pa.array([], rows[name].type)

        def numbers(name: str) -> Ints:
            return np.asarray(pc.fill_null(column(name), NOBODY), dtype=np.int32)

        snapshot = known["snapshot"]
        self.release = releases.level(snapshot["release"])
        # Brokers cannot speak a protocol newer than the release they run.
        self.protocol = min(releases.level(snapshot["metadata_version"]), self.release)
        controller_id = snapshot["controller_id"]
        self.controller_id: int = UNSET if controller_id is None else controller_id
        self.epoch: int = snapshot["controller_epoch"]
        self.count = rows.num_rows

        self.topics = names
        self.topic = topic
        self.name_lengths = np.asarray(pc.utf8_length(self.topics), dtype=np.int64)
        self.partition = numbers("partition")
        self._assignment = {name: column(name) for name in ASSIGNMENT}
        self.reassigned = np.asarray(
            pc.add(*(pc.list_value_length(self._assignment[n]) for n in ("adding", "removing"))),
            dtype=np.int64,
        )
        self.moves = bool(self.reassigned.any())

        self.has_record = np.asarray(column("has_state"), dtype=bool)
        leaders = numbers("leader")
        brokers = known["brokers"]
        self.ids = _all_of(
            np.asarray([b["broker_id"] for b in brokers], dtype=np.int32),
            *(np.asarray(column(name).flatten()) for name in ("replicas", "isr", "offline_dirs")),
            leaders[leaders >= 0],
        )
        highest = int(self.ids.max(initial=NOBODY))
        self._place_of = np.zeros(highest + 1 if highest < _HIGH_ID else 0, dtype=np.int32)
        if len(self._place_of):
            self._place_of[self.ids] = np.arange(len(self.ids))
        self.replicas = self.filled_up(column("replicas"))
        # The first ISR of a partition is as long as its assignment.
        self.isr = self.filled_up(column("isr"), self.replicas.shape[1])
        self.leader = np.where(leaders >= 0, self.places_of(leaders), NOBODY).astype(np.int32)
        self.leader_epoch = numbers("leader_epoch")
        self.partition_epoch = numbers("partition_epoch")
        self.controller_epoch = numbers("controller_epoch")
        self.recovery = numbers("recovery")
        self._with_brokers(brokers)
        self._with_directories(column("offline_dirs"))
        self._with_settings(known["configs"])
        self._known, self._rows = known, rows
        queued = pc.is_in(self.topics, pa.array(known["queued_topics"], pa.string()))
        self.is_queued = np.asarray(queued, dtype=bool)[self.topic]
        self._hosted: tuple[Ints, Ints] | None = None
        self._in_trouble: Ints | None = None

    def assignment(self, rows: Ints, names: Iterable[str] = ASSIGNMENT) -> dict[str, pa.Array]:
        """Columns of the assignments of these partitions."""
        nothing = pa.ListArray.from_arrays(
            pa.array(np.zeros(len(rows) + 1, dtype=np.int32)), pa.array([], pa.int32())
        )

        def column(name: str) -> pa.Array:
            if name == "replicas":
                return lists(self.replicas.take(rows, axis=0), self.ids)
            return self._assignment[name].take(pa.array(rows)) if self.moves else nothing

        return {name: column(name) for name in names}

    def places_of(self, ids: Iterable[int] | Ints) -> Ints:
        """Where ids stand in the list; for those that do not, anywhere."""
        asked = np.asarray(ids, dtype=np.int64)
        if len(self._place_of):
            found: Ints = self._place_of.take(asked, mode="clip")
            return found
        return np.minimum(np.searchsorted(self.ids, asked), max(len(self.ids) - 1, 0))

    def known_places(self, ids: Sequence[int]) -> Ints:
        """The places of those *ids* that anybody mentions, ascending."""
        return np.flatnonzero(np.isin(self.ids, np.asarray(ids, dtype=np.int64)))

    def struck(self, brokers: Ints) -> Ints:
        """The partitions on these *brokers*, and those in trouble, which are always tried."""
        if self._hosted is None:
            # Nearly every leader is one of the replicas; no partition is on a broker twice.
            strangers = ~contained_in(self.leader[:, None], self.replicas)[:, 0]
            leaders = np.where(strangers, self.leader, NOBODY)
            hosts = np.column_stack([self.replicas, leaders])
            rows, columns = np.nonzero(hosts >= 0)
            found = hosts[rows, columns]
            order = np.argsort(found, kind="stable")
            starts = np.searchsorted(found[order], np.arange(len(self.ids) + 1, dtype=np.int64))
            self._hosted = rows[order], starts
        rows, starts = self._hosted
        on_brokers = [rows[starts[broker] : starts[broker + 1]] for broker in brokers]
        if len(on_brokers) == 1 and not len(self.in_trouble()):
            return on_brokers[0]
        return distinct(np.concatenate([self.in_trouble(), *on_brokers]))

    def in_trouble(self) -> Ints:
        """The partitions without a record, or with a leader that is not online."""
        if self._in_trouble is None:
            is_up = self.is_registered & ~self.is_shutting_down
            led = np.flatnonzero(self.has_record & (self.leader != NOBODY))
            keys = led.astype(np.int64) * len(self.ids) + self.leader[led]
            is_led = np.zeros(self.count, dtype=bool)
            is_led[led] = is_up[self.leader[led]] & ~self.lists_directory(keys)
            self._in_trouble = np.flatnonzero(~is_led)
        return self._in_trouble

    def lists_directory(self, keys: Ints) -> Flags:
        """Whether directories are offline, each by its partition times all brokers plus its own."""
        if not len(self._offline_dirs):
            return np.zeros(keys.shape, dtype=bool)
        found = np.searchsorted(self._offline_dirs, keys)
        nearest = self._offline_dirs[np.minimum(found, len(self._offline_dirs) - 1)]
        return np.asarray(nearest == keys)

    def filled_up(self, lists: pa.ListArray, at_least: int = 1) -> Ints:
        """The brokers of each list by their places, filled up with ``NOBODY`` to one length."""
        lengths = np.asarray(pc.fill_null(pc.list_value_length(lists), 0), dtype=np.int64)
        shape = (len(lengths), int(lengths.max(initial=at_least)))
        places = np.full(shape, NOBODY, dtype=np.int32)
        brokers = self.places_of(np.asarray(lists.flatten()))
        if len(brokers) == places.size:
            places[:] = brokers.reshape(shape)
        else:
            places[np.arange(places.shape[1]) < lengths[:, None]] = brokers
        return places

    def _with_brokers(self, brokers: Sequence[Mapping[str, Any]]) -> None:
        count = len(self.ids)
        self.is_registered = np.zeros(count, dtype=bool)
        self.is_shutting_down = np.zeros(count, dtype=bool)
        self.broker_epochs = np.full(count, UNKNOWN_EPOCH)
        self.highest_epoch = max((b["broker_epoch"] or 0 for b in brokers), default=0)
        self.described = np.full(count, request_sizes.described(None, None))
        for broker, place in zip(
            brokers, self.places_of([b["broker_id"] for b in brokers]), strict=True
        ):
            self.is_registered[place] = broker["alive"]
            self.is_shutting_down[place] = broker["alive"] and bool(broker["shutting_down"])
            if broker["broker_epoch"] is not None:
                self.broker_epochs[place] = broker["broker_epoch"]
            self.described[place] = request_sizes.described(broker["endpoints"], broker["rack"])

    def _with_directories(self, directories: pa.ListArray) -> None:
        rows = np.asarray(pc.list_parent_indices(directories), dtype=np.int64)
        brokers = self.places_of(np.asarray(directories.flatten(), dtype=np.int64))
        self._offline_dirs = np.sort(rows * len(self.ids) + brokers)
        self.has_offline_dirs = np.zeros(self.count, dtype=bool)
        self.has_offline_dirs[rows] = True

    def _with_settings(self, settings: Iterable[Mapping[str, Any]]) -> None:
        self.deletion_enabled = True
        self._by_broker: dict[int, bool] = {}
        self._by_level: dict[str, bool] = {}
        of_topics: dict[str, bool] = {}
        for row in settings:
            value, scope = row["value"].strip().lower(), row["scope"]
            if row["key"] == DELETION_SETTING and scope == "static" and value == "false":
                self.deletion_enabled = False
            if row["key"] != UNCLEAN_SETTING:
                continue
            if scope == "broker":
                self._by_broker[int(row["name"])] = value == "true"
            elif scope == "topic":
                of_topics[row["name"]] = value == "true"
            else:
                self._by_level[scope] = value == "true"
        self._unclean_topics = np.full(len(self.topics), UNSET)
        if of_topics:
            names = {name: place for place, name in enumerate(self.topics.to_pylist())}
            for name in of_topics.keys() & names.keys():
                self._unclean_topics[names[name]] = of_topics[name]

    def snapshot_rows(self, rows: Ints) -> SnapshotRows:
        """What an interpreter needs to replay with these partitions alone."""
        partitions = self._rows.take(pa.array(rows)).to_pylist()
        topics = {row["topic"] for row in partitions}
        queued = set(self._known["queued_topics"])
        configs = self._known["configs"]
        return SnapshotRows(
            snapshot=self._known["snapshot"],
            brokers=self._known["brokers"],
            topics=[
                {"topic": topic, "topic_id": None, "queued_for_deletion": topic in queued}
                for topic in sorted(topics | queued)
            ],
            partitions=partitions,
            configs=[row for row in configs if row["scope"] != "topic" or row["name"] in topics],
        )

    def unclean_levels(self, rows: Ints, of: Ints, controllers: Ints) -> Ints:
        """Of each partition, the level that allows an unclean election, or ``UNSET``.

        *controllers* are those of the scenarios that each partition is *of*.
        """
        otherwise = np.array([self._level_beside_topics(each) for each in controllers.tolist()])
        of_topic = self._unclean_topics[self.topic[rows]]
        allowed = np.where(of_topic == 1, _TOPIC_LEVEL, UNSET)
        return np.where(of_topic == UNSET, otherwise[of], allowed)

    def _level_beside_topics(self, controller_id: int) -> int:
        levels = (
            ("broker", self._by_broker.get(controller_id)),
            ("cluster", self._by_level.get("cluster")),
            ("static", self._by_level.get("static")),
        )
        level, is_on = next(((n, v) for n, v in levels if v is not None), ("", False))
        return UNCLEAN_LEVELS.index(level) if is_on else UNSET


def _in_order(partitions: pa.Table) -> tuple[pa.Array, Ints, Ints | None]:
    """The topics, ascending, that of each partition, and the order of these by topic and number.

    None where they stand in it. Mostly they do, or in long pieces, which to sort is to merge.
    """
    said = partitions["topic"].combine_chunks().dictionary_encode()
    ascending = pc.sort_indices(said.dictionary)
    place = np.empty(len(ascending), dtype=np.int32)
    place[np.asarray(ascending)] = np.arange(len(ascending), dtype=np.int32)
    topic = place.take(np.asarray(said.indices))
    numbers = np.asarray(partitions["partition"].combine_chunks(), dtype=np.int64)
    keys = (topic.astype(np.int64) << 32) + numbers
    names = said.dictionary.take(ascending)
    if (keys[1:] >= keys[:-1]).all():
        return names, topic, None
    order = np.argsort(keys, kind="stable")
    return names, topic.take(order), order


def _all_of(*ids: Ints) -> Ints:
    """Every id there is, once, ascending."""
    highest = max(int(each.max(initial=NOBODY)) for each in ids)
    if highest >= _HIGH_ID:
        return distinct(np.concatenate([distinct(each) for each in ids])).astype(np.int32)
    is_there = np.zeros(highest + 1, dtype=bool)
    for each in ids:
        is_there[each] = True
    return np.flatnonzero(is_there).astype(np.int32)
