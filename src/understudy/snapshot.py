"""The canonical tables of a set of snapshots as one object."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from understudy import schemas
from understudy.errors import BadInputError, SeveralClustersError, UsageError
from understudy.frames import collected
from understudy.names import SNAPSHOT_KEY

if TYPE_CHECKING:
    import pyarrow as pa

_NO_IDS: Final = "CAST(array() AS ARRAY<INT>)"
# What decides which rules hold for a snapshot.
_RULING: Final = ("mode", "release", "metadata_version", "elr_enabled", "controller_id")
_PENDING: Final = ("adding", "removing", "offline_dirs")
# What a record always has, with the number it begins with.
_IN_A_RECORD: Final = dict.fromkeys(
    ("leader_epoch", "partition_epoch", "controller_epoch", "recovery"), 0
)


def instant(text: str) -> datetime:
    """A time as people write it; UTC unless it says otherwise."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"{text!r} is not a time like 2026-01-01T00:00:00Z") from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _defaulted(table: DataFrame, **defaults: str) -> DataFrame:
    return table.selectExpr(
        *(
            f"coalesce({name}, {defaults[name]}) AS {name}" if name in defaults else name
            for name in table.columns
        )
    )


Key = tuple[str, str]
Row = Mapping[str, Any]
Sizes = Mapping[Key, int]
"""A number for each snapshot."""


# --- What Snapshots.with_defaults() does, for rows at hand ---------------------------------------


def snapshot_with_defaults(row: Row) -> dict[str, Any]:
    defaults = {
        "metadata_version": row["release"],
        "controller_epoch": 0,
        "elr_enabled": False,
    }
    return _with(row, defaults)


def broker_with_defaults(row: Row) -> dict[str, Any]:
    is_fenced = None if row["alive"] is None else not row["alive"]
    return _with(row, {"shutting_down": False, "fenced": is_fenced})


def partition_with_defaults(row: Row) -> dict[str, Any]:
    pending: dict[str, Any] = {name: [] for name in _PENDING}
    return _with(row, pending | _IN_A_RECORD if row["has_state"] else pending)


def _with(row: Row, defaults: Row) -> dict[str, Any]:
    return {**row, **{name: value for name, value in defaults.items() if row[name] is None}}


# --- The tables of snapshots ---------------------------------------------------------------------


def unknown_sizes() -> Sizes | None:
    """Who wants to know has to count."""
    return None


def not_at_hand(table: str, key: Key) -> pa.Table | None:  # noqa: ARG001 - Spark has to be asked
    return None


@dataclass(frozen=True)
class Snapshots:
    """What is known of some clusters at some instants, and what was refused on the way."""

    snapshots: DataFrame
    brokers: DataFrame
    topics: DataFrame
    partitions: DataFrame
    configs: DataFrame
    provenance: DataFrame
    quarantine: DataFrame
    input_digest: str
    """Of what was read: the bytes of documents, the visible runs of stores."""
    held: tuple[DataFrame, ...] = ()
    """Frames that stay in memory until :meth:`close`."""
    rows: int | None = None
    """Of all tables at most, where that is known to be little."""
    sizes: Callable[[], Sizes | None] = unknown_sizes
    """How many partitions were read of each snapshot; none of those that were made since."""
    nothing_refused: bool = False
    """Whether the quarantine is known to be empty."""
    at_hand: Callable[[str, Key], pa.Table | None] = not_at_hand
    """The rows of a small table that were read of a snapshot, where files tell without Spark."""
    key: Key | None = None
    """Of the only snapshot there is, if it was chosen (:meth:`one`)."""

    def at_most(self, times: int) -> int | None:
        """How many rows there can be of so many for each of these, where that is known."""
        return None if self.rows is None else self.rows * times

    def tables(self) -> dict[str, DataFrame]:
        """The tables of a snapshot store by name; the quarantine is none of them."""
        return {name: getattr(self, name) for name in schemas.SNAPSHOT_TABLES}

    def keys(self) -> list[tuple[str, str]]:
        """Cluster and id of each snapshot."""
        rows = self.snapshots.select(*SNAPSHOT_KEY).toArrow()
        return [*zip(*rows.to_pydict().values(), strict=True)]

    def small(self, *names: str) -> dict[str, pa.Table]:
        """What was read into some tables, which are small, of the one snapshot there is."""
        key = self.key
        there = {} if key is None else {name: self.at_hand(name, key) for name in names}
        found = {name: rows for name, rows in there.items() if rows is not None}
        left = {name: getattr(self, name) for name in names if name not in found}
        return {**found, **collected(self.snapshots.sparkSession, left)} if left else found

    def only(self, snapshots: DataFrame) -> Snapshots:
        """The same, restricted to the keys of *snapshots*; the quarantine stays as it is."""
        keys = F.broadcast(snapshots.select(*SNAPSHOT_KEY))

        def chosen(table: DataFrame) -> DataFrame:
            return table.join(keys, list(SNAPSHOT_KEY), "left_semi").select(*table.columns)

        return self._each(chosen)

    def _each(self, chosen: Callable[[DataFrame], DataFrame]) -> Snapshots:
        return replace(
            self,
            snapshots=chosen(self.snapshots),
            brokers=chosen(self.brokers),
            topics=chosen(self.topics),
            partitions=chosen(self.partitions),
            configs=chosen(self.configs),
            provenance=chosen(self.provenance),
        )

    def one(
        self, *, cluster: str | None = None, snapshot_id: str | None = None, at: str | None = None
    ) -> Snapshots:
        """The newest snapshot alone, of those that fit; they have to be of one cluster."""
        rows = self.snapshots
        for name, value in (("cluster", cluster), ("snapshot_id", snapshot_id)):
            if value is not None:
                rows = rows.where(F.col(name) == value)
        if at is not None:
            rows = rows.where(F.col("taken_at") <= F.lit(instant(at)))
        clusters = F.sort_array(F.collect_set("cluster")).alias("clusters")
        newest = F.max_by(
            F.struct(*SNAPSHOT_KEY, *_RULING),
            F.struct("taken_at", F.length("snapshot_id"), "snapshot_id"),
        )
        found = rows.agg(clusters, newest.alias("newest")).first()
        if found is None or found.newest is None:
            raise BadInputError("there is no such snapshot")
        if len(found.clusters) > 1:
            raise SeveralClustersError(found.clusters)
        # Said in so many words it reaches the files, and no table has to be joined with the keys.
        is_newest = (F.col("cluster") == found.newest.cluster) & (
            F.col("snapshot_id") == found.newest.snapshot_id
        )
        # And since it is the same in every row, no row has to carry it; what holds for all rows
        # leaves out of the plan whatever is about other rules.
        key = {name: F.lit(found.newest[name]) for name in SNAPSHOT_KEY}
        ruling = {
            name: F.lit(found.newest[name]).cast(schemas.SNAPSHOTS[name].dataType)
            for name in _RULING
        }
        chosen = self._each(lambda table: table.where(is_newest).withColumns(key))
        # Of one snapshot all but the partitions is little: it is grouped without a shuffle.
        return replace(
            chosen,
            snapshots=chosen.snapshots.coalesce(1).withColumns(ruling),
            brokers=chosen.brokers.coalesce(1),
            topics=chosen.topics.coalesce(1),
            configs=chosen.configs.coalesce(1),
            key=(found.newest.cluster, found.newest.snapshot_id),
        )

    def fork(self, *, fail: Iterable[int] = (), restore: Iterable[int] = ()) -> Snapshots:
        """The same clusters with these brokers dead, and those alive.

        Only who is alive changes: leaders and ISRs stay as they were recorded, as they do in the
        instant before a controller acts.
        """
        dead, alive = sorted(set(fail)), sorted(set(restore))
        if set(dead) & set(alive):
            raise UsageError("a broker cannot be failed and restored at once")

        def named(ids: list[int]) -> Column:
            return F.col("broker_id").isin(ids)

        fork = F.lit(f" fork: fail {dead}, restore {alive}")
        missing = self.snapshots.select(
            *SNAPSHOT_KEY, F.explode(F.lit(alive).cast(schemas.IDS)).alias("broker_id")
        ).join(self.brokers, [*SNAPSHOT_KEY, "broker_id"], "left_anti")
        brokers = self.brokers.unionByName(missing, allowMissingColumns=True)
        return replace(
            self,
            snapshots=self.snapshots.withColumn(
                "content_digest", F.sha2(F.concat("content_digest", fork), 256)
            ),
            brokers=brokers.withColumns(
                {
                    "alive": (F.col("alive") | named(alive)) & ~named(dead),
                    "fenced": (F.col("fenced") | named(dead)) & ~named(alive),
                    "shutting_down": F.col("shutting_down") & ~named([*dead, *alive]),
                }
            ).select(*self.brokers.columns),
            input_digest=sha256(f"{self.input_digest} {dead} {alive}".encode()).hexdigest(),
            at_hand=not_at_hand,
        )

    def with_defaults(self) -> Snapshots:
        """The same for those who must decide: what is unknown takes the harmless default.

        A controller cannot hesitate over an unknown log directory or epoch. Answers that need the
        unknown thing have to look at the tables as they are.
        """
        return replace(
            self,
            snapshots=_defaulted(
                self.snapshots,
                metadata_version="release",
                controller_epoch="0",
                elr_enabled="false",
            ),
            brokers=_defaulted(self.brokers, shutting_down="false", fenced="NOT alive"),
            partitions=_defaulted(
                self.partitions,
                **dict.fromkeys(_PENDING, _NO_IDS),
                **{
                    name: f"IF(has_state, {default}, NULL)"
                    for name, default in _IN_A_RECORD.items()
                },
            ),
        )

    def close(self) -> None:
        """Let go of what is held in memory; the tables are read again if still used."""
        for frame in self.held:
            frame.unpersist()
