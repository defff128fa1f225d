"""One pass over the newest snapshots of clusters, which lets through what is in question.

A partition that is as it was, in sync with brokers that are all there, with nothing left to be done
about it, is only counted: how many such partitions each broker holds and leads. All others come
through, and with them what is said of their topics. Rows of one topic are looked at together, as
whole columns.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial, reduce
from typing import TYPE_CHECKING, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from understudy import schemas
from understudy.columns import codes, differs
from understudy.controller.kraft.partitions import MIGRATING, UNASSIGNED
from understudy.frames import arrow_schema_of
from understudy.names import SNAPSHOT_KEY
from understudy.snapshot import Key, Snapshots

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    Flags = NDArray[np.bool_]
    Numbers = NDArray[np.int64]

NOW, BEFORE, EARLIER = range(3)
_NOWHERE: Final = -1
_SIDE: Final = T.StructField("side", schemas.INT)
_ONE_TASK: Final = 3_000_000  # partitions that fit into one

COUNTED: Final = "counted"
_TABLE: Final = "table_name"
_COLUMNS: Final = {
    name: [column for column in schemas.SNAPSHOT_TABLES[name].names if column != "snapshot_id"]
    for name in ("partitions", "topics", "configs")
}
TABLES: Final = tuple(_COLUMNS)
_RECORD: Final = [name for name in _COLUMNS["partitions"] if name not in schemas.TOPICS.names]
_HELD: Final = ["replicas", "isr", "leader", "directories"]
_PENDING: Final = ["adding", "removing", "offline_dirs"]
_LOOKED_AT: Final = ["partition", "has_state", *_HELD, *_PENDING]
COUNTS: Final = ("held", "leaders", "preferred", "preferred_led", "shared_led", "accompanied")
"""Partitions by what a broker is to them; accompanied is one that others are in sync with, too."""


def _all_columns(*more: T.StructField) -> T.StructType:
    """Of all the tables, each name once, beside the name of the table and the side."""
    fields = [T.StructField(_TABLE, schemas.STRING), _SIDE]
    fields += [field for name in _COLUMNS for field in schemas.SNAPSHOT_TABLES[name]]
    named = {field.name: field for field in fields if field.name != "snapshot_id"}
    return T.StructType([*named.values(), *more])


_ROWS: Final = _all_columns()
_FED: Final = ["snapshot_id" if name == _SIDE.name else name for name in _ROWS.names]
_SIFTED: Final = _all_columns(
    T.StructField("broker_id", schemas.INT),
    *(T.StructField(name, schemas.LONG) for name in COUNTS),
)


@dataclass(frozen=True)
class Cluster:
    """What the partitions of a cluster are looked at with."""

    is_kraft: bool
    steady: frozenset[int]
    """The brokers that are there all the time."""
    directories: frozenset[tuple[int, str]]
    """Those that brokers have online."""


def sifted(
    there: Snapshots, sides: Mapping[Key, int], clusters: Mapping[str, Cluster]
) -> DataFrame:
    """Rows of several tables in one; see :func:`rows_of`. *sides* names the snapshots."""
    topic = F.expr("IF(scope = 'topic', name, NULL)")
    tables = {**there.tables(), "configs": there.configs.withColumn("topic", topic)}
    named = (tables[name].withColumn(_TABLE, F.lit(name)) for name in TABLES)
    rows = reduce(lambda some, more: some.unionByName(more, allowMissingColumns=True), named)
    fed = rows.select(*_FED)
    # To bring the rows of each topic together takes Spark longer than all that is done with them.
    fits = _fits_one_task(there, sides)
    of_topics = fed.coalesce(1) if fits else fed.repartition("cluster", "topic")
    return of_topics.mapInArrow(partial(_sift_placed, sides, clusters), _SIFTED)


def _fits_one_task(there: Snapshots, keys: Collection[Key]) -> bool:
    if there.rows is not None:
        return True
    sizes = there.sizes() or {}
    return all(key in sizes for key in keys) and sum(sizes[key] for key in keys) <= _ONE_TASK


def rows_of(table: str, found: pa.Table) -> pa.Table:
    """The rows of a table, or those that are counted, in what is sifted.

    Of topics and their settings there is what belongs to partitions in question, with a side for
    the snapshot; of all other settings everything.
    """
    import pyarrow.compute as pc  # noqa: PLC0415 - importing the package must not load it

    counted = ["cluster", "broker_id", *COUNTS]
    names = ["side", *_COLUMNS[table]] if table in _COLUMNS else counted
    return found.filter(pc.equal(found[_TABLE], table)).select(names)


# --- On executors --------------------------------------------------------------------------------


def _sift_placed(
    sides: Mapping[Key, int], clusters: Mapping[str, Cluster], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    return _sift(clusters, (_placed(sides, batch) for batch in batches if batch.num_rows))


def _placed(sides: Mapping[Key, int], batch: pa.RecordBatch) -> pa.RecordBatch:
    """The rows of these snapshots, each with its side instead of the name."""
    import numpy as np  # noqa: PLC0415 - executors only
    import pyarrow as pa  # noqa: PLC0415

    cluster, snapshot = (batch.column(name).dictionary_encode() for name in SNAPSHOT_KEY)
    names = snapshot.dictionary.to_pylist()
    side_of = [
        [sides.get((of, name), _NOWHERE) for name in names] for of in cluster.dictionary.to_pylist()
    ]
    at = (each.indices.to_numpy() for each in (cluster, snapshot))
    found = np.array(side_of, np.int32).reshape(-1, len(names))[*at]
    at_side = batch.set_column(_FED.index("snapshot_id"), _SIDE.name, pa.array(found))
    return at_side.filter(pa.array(found != _NOWHERE))


def _sift(
    clusters: Mapping[str, Cluster], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    import numpy as np  # noqa: PLC0415 - executors only
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.compute as pc  # noqa: PLC0415

    given = list(batches)
    if not given:
        return
    rows = pa.Table.from_batches(given)
    # What is said of one topic has one number, and so has what is said of none.
    topic = codes(rows["topic"])
    group = codes(rows["cluster"]) * (topic.max(initial=0) + 2) + topic + 1
    side = rows["side"].to_numpy()
    is_of = {name: pc.equal(rows[_TABLE], name).to_numpy() for name in TABLES}
    changed = [
        _changed(rows.select(_COLUMNS[name]), group, side, np.flatnonzero(is_of[name]))
        for name in ("topics", "configs")
    ]
    # How far a deletion has come is seen partition by partition.
    queued = group[pc.fill_null(rows["queued_for_deletion"], False).to_numpy()]

    at = np.flatnonzero(is_of["partitions"])
    at = at[np.lexsort((side[at], rows["partition"].take(at).to_numpy(), group[at]))]
    partitions = _Partitions(rows, at, group[at], side[at], clusters)
    whole = np.concatenate([*changed, queued, partitions.grown()])
    at_rest = ~partitions.is_changed & ~np.isin(group[at], whole) & (side[at] == NOW)
    at_rest[at_rest] = partitions.are_plain(at[at_rest])
    in_question = ~partitions.has_any(at_rest)
    named = np.concatenate([whole, group[at[in_question]]])
    comes_through = np.isin(group, named) | (topic < 0)
    comes_through[at] = in_question
    yield from _out(rows.filter(pa.array(comes_through)))
    yield from _out(partitions.counted(at[at_rest]))


def _out(rows: pa.Table) -> list[pa.RecordBatch]:
    """*rows* with all the columns there are; those they lack are empty."""
    import pyarrow as pa  # noqa: PLC0415

    schema = arrow_schema_of(_SIFTED)
    columns = {field.name: pa.nulls(rows.num_rows, field.type) for field in schema}
    columns |= dict(zip(rows.column_names, rows.columns, strict=True))
    batches: list[pa.RecordBatch] = pa.table(columns).select(schema.names).cast(schema).to_batches()
    return batches


def _changed(rows: pa.Table, group: Numbers, side: Numbers, at: Numbers) -> Numbers:
    """The groups whose *rows*, at these places, are not the same now and before."""
    import numpy as np  # noqa: PLC0415

    at = at[side[at] != EARLIER]
    columns = [codes(column) for column in rows.take(at).columns]
    order = np.lexsort(columns)
    starts = np.flatnonzero(differs(column[order] for column in columns))
    more = np.where(side[at][order] == NOW, 1, -1)
    is_same = np.add.reduceat(more, starts) == 0 if len(at) else starts == 0
    found: Numbers = group[at][order][starts[~is_same]]
    return found


@dataclass(frozen=True)
class _Partitions:
    """The *rows* of partitions: those of one partition together, by side."""

    rows: pa.Table
    at: Numbers
    """Where they stand in all the rows, in that order."""
    group: Numbers
    side: Numbers
    clusters: Mapping[str, Cluster]

    @cached_property
    def _number(self) -> Numbers:
        """What Kafka calls the partition."""
        return self._values(self.rows["partition"])

    def _values(self, column: pa.ChunkedArray) -> Numbers:
        import pyarrow.compute as pc  # noqa: PLC0415

        found: Numbers = pc.fill_null(column, 0).to_numpy()[self.at]
        return found

    @cached_property
    def _partition(self) -> Numbers:
        """The number of a row's partition in these rows."""
        import numpy as np  # noqa: PLC0415

        return np.cumsum(differs([self.group, self._number])) - 1

    @cached_property
    def _cluster(self) -> Numbers:
        """The number of any row's cluster, in the order of their names in :attr:`_names`."""
        return codes(self.rows["cluster"])

    @cached_property
    def _names(self) -> list[str]:
        return list(self.rows["cluster"].unique().to_pylist())

    @cached_property
    def _are_of_kraft(self) -> Flags:
        import numpy as np  # noqa: PLC0415

        is_kraft = np.array([self.clusters[name].is_kraft for name in self._names], dtype=bool)
        found: Flags = is_kraft[self._cluster]
        return found

    def has_any(self, flags: Flags) -> Flags:
        """Of each row whether any of its partition is one of these."""
        import numpy as np  # noqa: PLC0415

        found: Flags = (np.bincount(self._partition, flags) > 0)[self._partition]
        return found

    @cached_property
    def is_changed(self) -> Flags:
        """Of each row whether its partition is not the same in all three snapshots."""
        import numpy as np  # noqa: PLC0415

        is_other = differs(codes(self.rows[name])[self.at] for name in _RECORD)
        is_other &= ~differs([self._partition])
        is_there_always = np.bincount(self._partition) == len((NOW, BEFORE, EARLIER))
        found: Flags = self.has_any(is_other) | ~is_there_always[self._partition]
        return found

    def grown(self) -> Numbers:
        """Groups that decide about each other: others are there now, or another first one."""
        import numpy as np  # noqa: PLC0415

        # The first partition of a topic bounds its min ISR, for KRaft.
        is_first = self._are_of_kraft[self.at] & (self._number == 0)
        sizes = _sizes(self.rows["replicas"])[self.at] * is_first + 1
        now, before = (
            np.bincount(self._partition, sizes * (self.side == side)) for side in (NOW, BEFORE)
        )
        found: Numbers = self.group[(now != before)[self._partition]]
        return found

    def are_plain(self, at: Numbers) -> Flags:
        """Of the rows that stand there, whether nothing but what it was can become of each."""
        import numpy as np  # noqa: PLC0415
        import pyarrow.compute as pc  # noqa: PLC0415

        rows = self.rows.select(_LOOKED_AT).take(at)
        size = _sizes(rows["replicas"])
        is_first = self._are_of_kraft[at] & (rows["partition"].to_numpy() == 0)
        found: Flags = ~is_first & (size > 0) & (size == _sizes(rows["isr"]))
        for pending in _PENDING:
            found &= _sizes(rows[pending]) == 0
        known = pc.and_(rows["has_state"], pc.greater_equal(rows["leader"], 0))
        found &= pc.fill_null(known, False).to_numpy()
        # From here on replicas and ISR of each are as many.
        left = np.flatnonzero(found)
        held = _Held(rows.take(left), self._cluster[at[left]])
        found[left] &= held.is_led_in_sync & held.are_all_among(self._steady)
        found[left] &= held.has_directories(self._directories)
        return found

    @cached_property
    def _steady(self) -> Numbers:
        import numpy as np  # noqa: PLC0415

        of_all = (
            (np.int64(number) << _BROKER_BITS) + np.fromiter(self.clusters[name].steady, np.int64)
            for number, name in enumerate(self._names)
        )
        return np.concatenate([np.array([], np.int64), *of_all])

    @cached_property
    def _directories(self) -> list[str]:
        return [
            f"{(number << _BROKER_BITS) + broker} {directory}"
            for number, name in enumerate(self._names)
            for broker, directory in self.clusters[name].directories
        ]

    def counted(self, at: Numbers) -> pa.Table:
        """By broker, how many of the plain partitions there it holds, leads and so on."""
        import numpy as np  # noqa: PLC0415
        import pyarrow as pa  # noqa: PLC0415

        held = _Held(self.rows.select(_HELD).take(at), self._cluster[at])
        brokers = np.unique(held.replica)

        def times(found: Numbers) -> Numbers:
            return np.bincount(np.searchsorted(brokers, found), minlength=len(brokers))

        first = held.replica[np.flatnonzero(differs([held.owner]))] if len(at) else held.leader
        counts = {
            "held": held.replica,
            "leaders": held.leader,
            "preferred": first,
            "preferred_led": first[first == held.leader],
            "shared_led": held.leader[held.size > 1],
            "accompanied": held.replica[(held.size > 1)[held.owner]],
        }
        return pa.table(
            {
                _TABLE: [COUNTED] * len(brokers),
                "cluster": [self._names[number] for number in brokers >> _BROKER_BITS],
                "broker_id": brokers & ((1 << _BROKER_BITS) - 1),
                **{name: times(counts[name]) for name in COUNTS},
            }
        )


_BROKER_BITS: Final = 32  # of a broker and the number of its cluster in one number


class _Held:
    """Partitions that have as many ISR members as replicas, replica by replica."""

    def __init__(self, rows: pa.Table, cluster: Numbers) -> None:
        import numpy as np  # noqa: PLC0415

        def brokers(column: str, numbers: Numbers) -> Numbers:
            values = rows[column].combine_chunks()
            ids = values if column == "leader" else values.flatten()
            found: Numbers = (numbers << _BROKER_BITS) + ids.to_numpy().astype(np.int64)
            return found

        self._rows = rows
        self.size = _sizes(rows["replicas"])
        self.owner = np.repeat(np.arange(rows.num_rows), self.size)
        """Of each replica, the number of the partition."""
        self.replica = brokers("replicas", cluster[self.owner])
        self.leader = brokers("leader", cluster)
        self._member = brokers("isr", cluster[self.owner])

    @property
    def is_led_in_sync(self) -> Flags:
        """Whether each has its replicas for ISR members, each once, and one of them for leader."""
        import numpy as np  # noqa: PLC0415

        replicas = self.replica[np.lexsort((self.replica, self.owner))]
        members = self._member[np.lexsort((self._member, self.owner))]
        is_single = differs([self.owner, replicas])
        is_leader = self.replica == self.leader[self.owner]
        return self._all((replicas == members) & is_single) & ~self._all(~is_leader)

    def are_all_among(self, brokers: Numbers) -> Flags:
        import numpy as np  # noqa: PLC0415

        return self._all(np.isin(self.replica, brokers))

    def has_directories(self, online: Sequence[str]) -> Flags:
        """Whether no directory of each is known to be offline."""
        import numpy as np  # noqa: PLC0415
        import pyarrow as pa  # noqa: PLC0415
        import pyarrow.compute as pc  # noqa: PLC0415

        sizes = _sizes(self._rows["directories"])
        found: Flags = (sizes == 0) | (sizes == self.size)
        at = np.flatnonzero(found & (sizes > 0))
        named = self._rows["directories"].take(at).combine_chunks().flatten()
        is_here = np.isin(self.owner, at)
        brokers = pa.array(self.replica[is_here]).cast(pa.string())
        placed = pc.binary_join_element_wise(brokers, named, " ")
        is_online = pc.or_(
            pc.is_in(placed, pa.array(online, pa.string())),
            pc.is_in(named, pa.array([UNASSIGNED, MIGRATING])),
        )
        everywhere = np.ones(len(self.owner), dtype=bool)
        everywhere[is_here] = is_online.to_numpy(zero_copy_only=False)
        found &= self._all(everywhere)
        return found

    def _all(self, flags: Flags) -> Flags:
        """Of each partition, whether all of its replicas are among these."""
        import numpy as np  # noqa: PLC0415

        found: Flags = np.bincount(self.owner, ~flags, minlength=len(self.size)) == 0
        return found


def _sizes(lists: pa.ChunkedArray) -> Numbers:
    """How long each list is; of none that are unknown, it is none."""
    import pyarrow.compute as pc  # noqa: PLC0415

    return pc.fill_null(pc.list_value_length(lists), 0).to_numpy()  # type: ignore[no-any-return]
