"""The same answer over whole columns, as part of the pass that replays the scenarios.

The columnar form of the controller tells of each scenario which partitions end otherwise and which
requests are sent. Both are judged and counted as they are told: a changed partition becomes a row
of ``impact_partitions``, all else is sums by scenario, or by scenario and broker. None of it is put
into rows that Spark would have to join and group again.

What the words mean is said in ``before``, ``answer`` and ``impact_brokers``, and said here anew for
arrays; tests hold one against the other. Only clusters with ZooKeeper have a columnar form.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from understudy.columns import HandOver, rows_of
from understudy.controller.columnar.arrays import (
    NOBODY,
    Flags,
    Ints,
    any_of,
    contained_in,
    count_of,
    distinct,
    ids_of,
    lists,
    numbers,
    words,
)
from understudy.controller.columnar.cluster import Cluster
from understudy.controller.columnar.state import (
    NEW,
    NONE,
    OFFLINE_NOW,
    ONLINE,
    PARTITION_STATES,
    Record,
    picked,
)
from understudy.controller.words import ELECTED_UNCLEAN
from understudy.names import SCENARIO_KEY
from understudy.questions.availability import INTERNAL_TOPICS
from understudy.questions.what_if.before import STATUSES
from understudy.questions.what_if.impact import ADDED
from understudy.questions.what_if.impact_brokers import REQUESTS
from understudy.questions.what_if.one_pass import About
from understudy.schemas import RISKS

READ: Final = ("partition_states", "requests")
"""The tables of a replay that the answer is made of."""

_CELLS_AT_ONCE: Final = 2_000_000  # of scenarios and brokers
_ROWS_AT_ONCE: Final = 100_000


def portions(scenarios: int, brokers: int, cells: int = _CELLS_AT_ONCE) -> Iterator[slice]:
    """The scenarios a few at a time, by so many *cells* of a scenario and a broker."""
    size = max(cells // max(brokers, 1), 1)
    return (slice(start, start + size) for start in range(0, scenarios, size))


def _statuses(has_record: Flags, led: Flags, in_sync: Ints, min_isr: Ints) -> dict[str, Flags]:
    """Whether partitions are in each of the STATUSES; *led* is by a leader that is online."""
    return {
        "offline": has_record & ~led,
        "under_min_isr": led & (in_sync < min_isr),
        "at_min_isr": led & (in_sync == min_isr),
        "acks_all_blocked": has_record & ~(led & (in_sync >= min_isr)),
        "never_led": ~has_record,
    }


class Before:
    """A snapshot before anything happens; partitions of topics queued for deletion do not count."""

    def __init__(self, cluster: Cluster, min_isr: Mapping[str | None, int]) -> None:
        """*min_isr* is by topic, that of every other one under ``None``."""
        self.cluster = cluster
        self.counts = ~cluster.is_queued
        self.was_led = np.ones(cluster.count, dtype=bool)
        self.was_led[cluster.in_trouble()] = False
        self.state = np.where(
            self.was_led, ONLINE, np.where(cluster.has_record, OFFLINE_NOW, NEW)
        ).astype(np.int8)
        asked = [min_isr.get(topic, min_isr[None]) for topic in _texts(cluster.topics)]
        self.min_isr = np.array(asked, dtype=np.int32)[cluster.topic]
        self.in_sync = count_of(cluster.isr != NOBODY)
        self.statuses = _statuses(cluster.has_record, self.was_led, self.in_sync, self.min_isr)
        self.totals = {name: int((is_so & self.counts).sum()) for name, is_so in self._every()}
        self.is_internal = np.asarray(pc.is_in(cluster.topics, pa.array(INTERNAL_TOPICS)))
        # Partitions are in the order of their keys.
        self._keys = _keys(cluster.topic, cluster.partition)
        self._count_by_broker()

    def _every(self) -> Iterable[tuple[str, Flags]]:
        return [("partitions", self.counts), *self.statuses.items()]

    def _count_by_broker(self) -> None:
        """What each broker leads, follows and holds, and the partitions that name it."""
        cluster, counts = self.cluster, self.counts
        leads = self.was_led & counts
        held = _others(cluster.replicas)
        followed = leads[:, None] & _others(cluster.isr, cluster.leader)
        self.leaders = self._counted(cluster.leader[leads])
        self.followers = self._counted(cluster.isr[followed])
        self.replicas = self._counted(cluster.replicas[held & counts[:, None]])
        others = np.column_stack([cluster.isr, cluster.leader])
        strangers = _others(others) & ~contained_in(others, cluster.replicas)
        rows = np.concatenate([np.nonzero(held)[0], np.nonzero(strangers)[0]])
        named = np.concatenate([cluster.replicas[held], others[strangers]])
        self._named = rows[counts[rows]], named[counts[rows]]
        self.mentions = self._counted(self._named[1])

    def _counted(self, places: Ints) -> Ints:
        return np.bincount(places[places != NOBODY], minlength=len(self.cluster.ids))

    def naming(self, brokers: Ints) -> int:
        """How many partitions name any of these brokers."""
        if len(brokers) == 1:
            return int(self.mentions[brokers[0]])
        rows, named = self._named
        is_one = np.zeros(len(self.cluster.ids), dtype=bool)
        is_one[brokers] = True
        return len(distinct(rows[is_one[named]]))

    def rows_of(self, topics: pa.DictionaryArray, partitions: pa.Array) -> Ints:
        """The partitions of the cluster that are meant, each by its place."""
        asked = _keys(_codes(topics, self.cluster.topics), np.asarray(partitions))
        return np.searchsorted(self._keys, asked)


def _keys(topics: Ints, partitions: Ints) -> Ints:
    return (topics.astype(np.int64) << 32) | partitions


def _texts(column: pa.Array) -> list[str]:
    found: list[str] = column.to_pylist()
    return found


def _codes(column: pa.DictionaryArray, every: pa.Array | Sequence[str]) -> Ints:
    """Each word as its place among *every* one, or ``NOBODY``."""
    known = every if isinstance(every, pa.Array) else pa.array(every, pa.string())
    places = np.append(
        np.asarray(pc.fill_null(pc.index_in(column.dictionary, known), NOBODY)), NOBODY
    )
    found: Ints = places[np.asarray(pc.fill_null(column.indices, len(places) - 1))]
    return found


class Answer:
    """The answer about some scenarios over a snapshot, told once they are replayed."""

    def __init__(
        self,
        before: Before,
        snapshot: Sequence[str],
        about: Mapping[str, About],
        hand_over: HandOver,
        wanted: Collection[str],
    ) -> None:
        self._before = before
        self._cluster = before.cluster
        *of_snapshot, self._of_scenario = SCENARIO_KEY
        self._key = dict(zip(of_snapshot, snapshot, strict=True))
        self._about = about
        self._number = {name: number for number, name in enumerate(about)}
        self._hand_over = hand_over
        self._wanted = wanted
        self._concerned = self._among([each.brokers for each in about.values()])
        self._gone = self._among([each.gone for each in about.values()])
        self._back = self._among([each.back for each in about.values()])
        counts = (*STATUSES, *ADDED)
        self._more = {name: np.zeros(len(about), dtype=np.int64) for name in counts}
        self._internal: list[set[str]] = [set() for _ in about]
        shape = (len(about), len(self._cluster.ids))
        self._leaders, self._followers = (np.zeros(shape, dtype=np.int64) for _ in range(2))
        self._sent = np.zeros((*shape, len(REQUESTS)), dtype=np.int64)
        self._bytes = np.zeros((*shape, len(REQUESTS)), dtype=np.int64)

    def _among(self, brokers: Sequence[Sequence[int]]) -> Flags:
        """By scenario and broker, whether the broker is one of those of the scenario."""
        found = np.zeros((len(brokers), len(self._cluster.ids)), dtype=bool)
        for flags, named in zip(found, brokers, strict=True):
            flags[self._cluster.known_places(named)] = True
        return found

    def take(self, table: str, rows: pa.RecordBatch) -> None:
        """Rows of one of the tables that are READ, as the replay tells them."""
        if not len(self._cluster.ids):
            return  # there is nobody to whom anything could happen
        if table == "requests":
            self._take_requests(rows)
        else:
            self._take_states(rows)

    def _scenarios(self, rows: pa.RecordBatch) -> tuple[Ints, Ints]:
        """The scenarios that rows are of, and for each row its place among those."""
        named = rows[self._of_scenario]
        own = [self._number[name] for name in _texts(named.dictionary)]
        return np.array(own, dtype=np.int64), np.asarray(named.indices)

    # --- Partitions that change --------------------------------------------------------------

    def _take_states(self, rows: pa.RecordBatch) -> None:
        before = self._before
        seen = self._seen(rows)
        is_shown = before.counts[seen["row"]] & _is_changed(seen)
        if not is_shown.all():
            rows, seen = rows.filter(pa.array(is_shown)), picked(seen, np.flatnonzero(is_shown))
        scenarios, of = self._scenarios(rows)
        row = seen["row"]
        was_led, min_isr = before.was_led[row], before.min_isr[row]
        # A controller that resigned holds no states any more.
        led = (seen["leader"] != NOBODY) & np.isin(seen["state"], (ONLINE, NONE))
        led &= ~self._gone[scenarios[of], seen["leader"]]
        in_sync = count_of(seen["isr"] != NOBODY)
        now = _statuses(seen["has_record"] == 1, led, in_sync, min_isr)
        was = {name: flags[row] for name, flags in before.statuses.items()}
        is_same_leader = seen["leader"] == seen["leader_before"]
        lost_leader = was_led & self._concerned[scenarios[of], seen["leader_before"]]
        risks = {
            "rf1_offline": now["offline"]
            & was_led
            & (count_of(seen["replicas_before"] != NOBODY) == 1),
            "unavailable": now["offline"] & was_led,
            "full_acks_produce_unavailable": now["acks_all_blocked"]
            & was_led
            & ~was["under_min_isr"],
            "acks1_data_loss": lost_leader & ~(led & is_same_leader),
        }
        newly = now["at_min_isr"] & was_led & (before.in_sync[row] > min_isr)
        added = {
            "unclean": _codes(rows["outcome"], [ELECTED_UNCLEAN]) == 0,
            "leaders_moved": was_led & led & ~is_same_leader,
            **risks,
            "newly_at_min_isr": newly,
        }

        def counted(flags: Flags) -> Ints:
            return np.bincount(of[flags], minlength=len(scenarios))

        for name in STATUSES:
            self._more[name][scenarios] += counted(now[name]) - counted(was[name])
        for name, flags in added.items():
            self._more[name][scenarios] += counted(flags)
        self._count_moves(scenarios, of, seen, was_led, led)
        at_risk = np.column_stack([risks[name] for name in RISKS])
        topic = self._cluster.topic[row]
        for place in np.flatnonzero(before.is_internal[topic] & any_of(at_risk)):
            name = self._cluster.topics[topic[place]].as_py()
            self._internal[scenarios[of[place]]].add(name)
        if "impact_partitions" in self._wanted:
            self._tell_partitions(rows, seen, at_risk)

    def _seen(self, rows: pa.RecordBatch) -> Record:
        """What is known of these partitions before and after, brokers by their places."""
        cluster = self._cluster
        row = self._before.rows_of(rows["topic"], rows["partition"])
        replicas = cluster.replicas.take(row, axis=0)
        leader = np.asarray(pc.fill_null(rows["leader"], NOBODY))
        state = _codes(rows["state_after"], PARTITION_STATES)
        return {
            "row": row,
            "replicas_before": replicas,
            "replicas": cluster.filled_up(rows["replicas"]) if cluster.moves else replicas,
            "leader_before": cluster.leader[row],
            "leader": np.where(leader >= 0, cluster.places_of(leader), NOBODY),
            "has_record_before": cluster.has_record[row].astype(np.int8),
            "has_record": np.asarray(rows["leader"].is_valid()).astype(np.int8),
            "isr_before": cluster.isr.take(row, axis=0),
            "isr": cluster.filled_up(rows["isr"]),
            # A failover does not know the state before; it is that of a settled controller.
            "state_before": np.where(
                state == NONE,
                _codes(rows["state_before"], PARTITION_STATES),
                self._before.state[row],
            ),
            "state": state,
        }

    def _count_moves(
        self, scenarios: Ints, of: Ints, seen: Record, was_led: Flags, led: Flags
    ) -> None:
        """By scenario and broker, how many partitions more or less it leads and follows."""
        brokers = len(self._cluster.ids)

        def counted(places: Ints, flags: Flags) -> Ints:
            cells = of[flags].astype(np.int64) * brokers + places[flags]
            found = np.bincount(cells, minlength=len(scenarios) * brokers)
            return found.reshape(len(scenarios), brokers)

        self._leaders[scenarios] += counted(seen["leader"], led)
        self._leaders[scenarios] -= counted(seen["leader_before"], was_led)
        for column, others in _columns(seen["isr"], seen["leader"]):
            self._followers[scenarios] += counted(column, others & led)
        for column, others in _columns(seen["isr_before"], seen["leader_before"]):
            self._followers[scenarios] -= counted(column, others & was_led)

    def _tell_partitions(self, rows: pa.RecordBatch, seen: Record, at_risk: Flags) -> None:
        cluster, before = self._cluster, self._before
        ends = np.zeros(len(at_risk) + 1, dtype=np.int32)
        np.cumsum(count_of(at_risk), out=ends[1:])
        named = pa.array(RISKS, pa.string()).take(pa.array(np.nonzero(at_risk)[1]))
        had = seen["has_record_before"] == 1
        as_told = ("topic", "partition", "leader", "isr", "state_after", "reason")
        leader = seen["leader_before"]
        columns: dict[str, Any] = {
            **{name: rows[name] for name in (*SCENARIO_KEY, *as_told)},
            "leader_before": numbers(ids_of(leader, cluster.ids), known=had),
            "isr_before": lists(seen["isr_before"], cluster.ids, known=had),
            "state_before": words(seen["state_before"], PARTITION_STATES),
            "min_isr": numbers(before.min_isr[seen["row"]]),
            "risks": pa.ListArray.from_arrays(pa.array(ends), named),
        }
        table = "impact_partitions"
        self._hand_over(table, rows_of(table, rows.num_rows, columns))

    # --- Requests ----------------------------------------------------------------------------

    def _take_requests(self, rows: pa.RecordBatch) -> None:
        ids = self._cluster.ids
        scenarios, of = self._scenarios(rows)
        broker = np.asarray(rows["broker_id"])
        place = self._cluster.places_of(broker)
        is_known = ids[place] == broker
        kind = _codes(rows["request"], [name.upper() for name in REQUESTS])
        cells = (of.astype(np.int64) * len(ids) + place) * len(REQUESTS) + kind
        cells, sizes = cells[is_known], np.asarray(rows["bytes"])[is_known]
        shape = (len(scenarios), len(ids), len(REQUESTS))
        counts = np.bincount(cells, minlength=shape[0] * shape[1] * shape[2])
        self._sent[scenarios] += counts.reshape(shape)
        totals = np.bincount(cells, sizes, minlength=len(counts)).astype(np.int64)
        self._bytes[scenarios] += totals.reshape(shape)

    # --- Sums --------------------------------------------------------------------------------

    def tell_sums(self, brokers: Sequence[Mapping[str, Any]]) -> None:
        """Rows of ``impact``, without what is judged by them, and of ``impact_brokers``.

        *brokers* are those that the snapshot lists.
        """
        racks = {broker["broker_id"]: broker["rack"] for broker in brokers}
        ids = self._cluster.ids
        is_listed = np.isin(ids, np.array([*racks], dtype=np.int64))
        shown = np.flatnonzero(is_listed | (self._before.mentions > 0))
        if "impact" in self._wanted:
            self._tell_impact(shown)
        if "impact_brokers" in self._wanted:
            rack = pa.array([racks.get(broker) for broker in ids[shown].tolist()], pa.string())
            every = np.arange(len(self._about))
            for some in portions(len(every), len(shown), _ROWS_AT_ONCE):
                self._tell_brokers(every[some], shown, rack.dictionary_encode())

    def _tell_brokers(self, scenarios: Ints, shown: Ints, rack: pa.DictionaryArray) -> None:
        before, times = self._before, len(scenarios)
        named = pa.DictionaryArray.from_arrays(
            np.repeat(scenarios, len(shown)).astype(np.int32), pa.array([*self._about], pa.string())
        )

        def repeated(counts: Ints) -> Ints:
            return np.tile(counts[shown], times)

        def of(counts: Ints) -> Ints:
            return counts[scenarios][:, shown].reshape(-1)

        columns: dict[str, Any] = {
            "leaders_before": repeated(before.leaders),
            "leaders": repeated(before.leaders) + of(self._leaders),
            "replicas": repeated(before.replicas),
            "followers_before": repeated(before.followers),
            "followers": repeated(before.followers) + of(self._followers),
        }
        for place, name in enumerate(REQUESTS):
            columns[f"{name}_requests"] = of(self._sent[:, :, place])
            columns[f"{name}_bytes"] = of(self._bytes[:, :, place])
        table = "impact_brokers"
        told = {
            **self._key,
            self._of_scenario: named,
            "broker_id": numbers(repeated(self._cluster.ids)),
            "rack": rack.take(pa.array(np.tile(np.arange(len(shown)), times))),
            **{name: pa.array(values, pa.int64()) for name, values in columns.items()},
        }
        self._hand_over(table, rows_of(table, len(named), told))

    def _tell_impact(self, shown: Ints) -> None:
        before, cluster = self._before, self._cluster
        own = [self._cluster.known_places(each.brokers) for each in self._about.values()]
        columns: dict[str, Any] = {
            "brokers": pa.array(
                [each.brokers for each in self._about.values()], pa.list_(pa.int32())
            ),
            "partitions": [before.naming(places) if len(places) else 0 for places in own],
            **{f"{name}_before": total for name, total in before.totals.items()},
            **{name: before.totals[name] + self._more[name] for name in STATUSES},
            **{name: self._more[name] for name in ADDED},
            "internal_topics": pa.array(map(sorted, self._internal), pa.list_(pa.string())),
        }
        was_live = (cluster.is_registered & ~cluster.is_shutting_down)[None, :]
        live = (was_live | self._back) & ~self._gone
        for count, was, more in (
            ("leader", before.leaders, self._leaders),
            ("replica", before.replicas, 0),
        ):
            columns[f"{count}_skew_before"] = _skew(
                was[None, shown], np.broadcast_to(was_live, live.shape)[:, shown]
            )
            columns[f"{count}_skew"] = _skew((was + more)[..., shown], live[:, shown])
        # Of several that are sent as much, the one with the smallest id.
        sent = np.pad(self._bytes.sum(axis=2)[:, shown], ((0, 0), (0, 1)))
        busiest = sent.argmax(axis=1)
        most = sent[np.arange(len(sent)), busiest]
        columns["requests"] = self._sent.sum(axis=2)[:, shown].sum(axis=1)
        ids = np.append(cluster.ids[shown], NOBODY)
        columns["busiest_broker"] = numbers(ids[busiest], known=most > 0)
        columns["busiest_bytes"] = pa.array(most, mask=most == 0)
        told = {
            name: values if isinstance(values, int | pa.Array) else pa.array(values)
            for name, values in columns.items()
        }
        named = {**self._key, self._of_scenario: pa.array([*self._about], pa.string())}
        self._hand_over("impact", rows_of("impact", len(own), {**named, **told}))


def _others(places: Ints, leader: Ints | None = None) -> Flags:
    """Which of each list are somebody beside the *leader*, each of them once."""
    found: Flags = places != NOBODY
    if leader is not None:
        found &= places != leader[:, None]
    for place in range(1, places.shape[1]):
        found[:, place] &= ~any_of(places[:, :place] == places[:, place, None])
    return found


def _columns(places: Ints, leader: Ints) -> Iterable[tuple[Ints, Flags]]:
    return zip(places.T, _others(places, leader).T, strict=True)


def _is_changed(seen: Record) -> Flags:
    changed = np.zeros(len(seen["row"]), dtype=bool)
    for name in ("leader", "has_record", "state"):
        changed |= seen[name] != seen[f"{name}_before"]
    for name in ("replicas", "isr"):
        some, others = seen[name], seen[f"{name}_before"]
        shared = min(some.shape[1], others.shape[1])
        changed |= any_of(some[:, :shared] != others[:, :shared])
        # Only one of them goes on, and is longer where that holds anybody.
        changed |= any_of(np.hstack([some[:, shared:], others[:, shared:]]) != NOBODY)
    return changed


def _skew(counts: Ints, live: Flags) -> pa.Array:
    """By scenario, the most over the mean of those that are live; null where all have none."""
    total, many = np.where(live, counts, 0).sum(axis=1), live.sum(axis=1)
    most = np.where(live, counts, 0).max(axis=1, initial=0)
    mean = total / np.maximum(many, 1)
    return pa.array(most / np.where(mean, mean, 1), mask=mean == 0)
