"""The minimal sets of brokers, or of racks and the like, whose loss costs partitions.

A set is minimal for a partition when its loss costs the partition and no part of it would do. They
follow from the thresholds of ``cuts`` without trying a single failure: a partition has one set that
takes it offline, and its sets that block ``acks=all`` are the combinations that reach a threshold.
One explode and one group-by over the partitions, however many sets of brokers there could be.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from understudy.frames import small_frame, unfolded
from understudy.names import SNAPSHOT_KEY
from understudy.questions.buckets import bucket, in_buckets
from understudy.questions.cuts import FULL_ACKS, UNAVAILABLE
from understudy.schemas import INT, STRING
from understudy.sql import NO_IDS, struct, text

_UNITS: Final = T.StructType([T.StructField("broker_id", INT), T.StructField("unit", STRING)])
_NO_SETS: Final = "CAST(array() AS ARRAY<ARRAY<INT>>)"
_NO_LISTS: Final = "CAST(array() AS ARRAY<ARRAY<ARRAY<STRING>>>)"
_SET_KEY: Final = (*SNAPSHOT_KEY, "risk", "brokers", "units")
_COUNTED: Final = (*SNAPSHOT_KEY, "topic", "partitions", "weight")


def weighed(partitions: DataFrame, weights: DataFrame | None = None) -> DataFrame:
    """The partitions with a ``weight``; what *weights* do not list weighs nothing.

    *weights* have the columns topic and weight, and partition if they tell partitions apart.
    """
    if weights is None:
        return partitions.withColumn("weight", F.lit(1.0))
    key = [name for name in weights.columns if name != "weight"]
    return partitions.join(weights, on=key, how="left").withColumn(
        "weight", F.expr("coalesce(CAST(weight AS DOUBLE), 0D)")
    )


def cut_sets_by_topic(partitions: DataFrame, units: DataFrame | None = None) -> DataFrame:
    """One row per topic, risk and minimal set, of whatever size.

    *partitions* are those of ``cuts.thresholds`` with a weight. ``partitions`` and ``weight`` of a
    row are of those for which this very set is minimal.

    With *units* (cluster, snapshot_id, broker_id, unit) the sets are of units, each of which takes
    all its brokers along; a broker without a unit is one of its own.
    """
    rows = _sets_of_brokers(partitions) if units is None else _sets_of_units(partitions, units)
    none = {"brokers": "CAST(NULL AS ARRAY<INT>)", "units": "CAST(NULL AS ARRAY<STRING>)"}
    none["brokers" if units is None else "units"] = "members"
    return (
        # Whatever is grouped later, by set or by set and topic, lies together from here on.
        rows.repartition("members")
        .groupBy(*SNAPSHOT_KEY, "is_offline", "members", "topic")
        .agg(F.expr("sum(partitions) AS partitions"), F.expr("sum(weight) AS weight"))
        .selectExpr(
            *SNAPSHOT_KEY,
            f"IF(is_offline, {text(UNAVAILABLE)}, {text(FULL_ACKS)}) AS risk",
            *(f"{value} AS {name}" for name, value in none.items()),
            "topic",
            "partitions",
            "weight",
        )
    )


def cut_sets(by_topic: DataFrame) -> DataFrame:
    """The same over all topics."""
    return by_topic.groupBy(*_SET_KEY).agg(
        F.expr("sum(partitions) AS partitions"),
        F.expr("count(1) AS topics"),
        F.expr("sum(weight) AS weight"),
    )


def table(sets: DataFrame, units: DataFrame | None, *, largest: int) -> DataFrame:
    """The sets of up to *largest* members, with ``k``; those of units with all their brokers."""
    sized = sets.withColumn("k", F.expr("coalesce(size(units), size(brokers))"))
    chosen = sized.where(f"k <= {int(largest)}")
    return chosen if units is None else _with_brokers(chosen, units)


def racks(brokers: DataFrame) -> DataFrame:
    """The racks as units."""
    return brokers.where("rack IS NOT NULL").selectExpr(*SNAPSHOT_KEY, "broker_id", "rack AS unit")


def dependencies(snapshots: DataFrame, table: Mapping[str, Iterable[int]]) -> DataFrame:
    """A table of what brokers depend on, as the units of every snapshot."""
    rows = [(broker, unit) for unit, ids in sorted(table.items()) for broker in sorted(ids)]
    named = small_frame(snapshots.sparkSession, rows, _UNITS)
    return snapshots.select(*SNAPSHOT_KEY).crossJoin(F.broadcast(named))


# --- Sets of brokers -----------------------------------------------------------------------------


def _sets_of_brokers(partitions: DataFrame) -> DataFrame:
    """A row per partition and minimal set, ``is_offline`` where that is the risk."""
    rows = partitions.selectExpr("*", "1L AS partitions", "IF(offline, 0, 1) AS offline_count")
    return _as_rows(rows, f"concat({offline_sets()}, {blocking_sets()})")


def _as_rows(rows: DataFrame, sets: str) -> DataFrame:
    """The sets of both risks, of which the first ``offline_count`` take the leader away."""
    return unfolded(rows, sets, *_COUNTED, "offline_count").selectExpr(
        *_COUNTED, "place < offline_count AS is_offline", "item AS members"
    )


def offline_sets() -> str:
    """The one minimal set that takes a partition of ``cuts.thresholds`` offline, as a list."""
    whole = "array(sort_array(array_append(successors, leader)))"
    return f"IF(offline, {_NO_SETS}, {whole})"


def blocking_sets() -> str:
    """Every minimal set that blocks ``acks=all``.

    A set with the leader needs fewer others than one without, so that none contains another.
    """
    with_leader = (
        f"transform({combinations('pool_with', 'take_with')},"
        " s -> sort_array(array_append(s, leader)))"
    )
    without = combinations("pool_without", "take_without")
    return f"IF(blocked, {_NO_SETS}, concat({with_leader}, {without}))"


def combinations(pool: str, take: str) -> str:
    """The subsets of the ascending array *pool* with *take* elements, each ascending.

    The first cases are all that partitions with up to three replicas need.
    """
    larger = f"filter({pool}, x -> size(s) = 0 OR x > get(s, size(s) - 1))"
    grown = f"flatten(transform(sets, s -> transform({larger}, x -> array_append(s, x))))"
    return f"""CASE
        WHEN {take} > size({pool}) THEN {_NO_SETS}
        WHEN {take} = size({pool}) THEN array({pool})
        WHEN {take} <= 0 THEN array({NO_IDS})
        WHEN {take} = 1 THEN transform({pool}, x -> array(x))
        WHEN {take} = size({pool}) - 1 THEN transform({pool}, x -> array_remove({pool}, x))
        ELSE aggregate(sequence(1, {take}), array({NO_IDS}), (sets, n) -> {grown}) END"""


# --- Sets of units -------------------------------------------------------------------------------


def _sets_of_units(partitions: DataFrame, units: DataFrame) -> DataFrame:
    """A row per minimal set and kind of partition.

    There are far fewer racks than brokers: partitions of a topic that lie in the same units are
    counted first, and what takes them down is worked out once.
    """
    rest = ("offline", "blocked", "take_with", "take_without")
    pools = ("pool_with", "pool_without")

    def in_units(pool: str) -> str:
        return f"sort_array(transform({pool}, b -> {_units_of('b')}))"

    kinds = (
        partitions.join(F.broadcast(_units_of_brokers(units)), list(SNAPSHOT_KEY), "left")
        .selectExpr("*", f"{in_units('successors')} AS by_units")
        .selectExpr(
            *(*SNAPSHOT_KEY, "topic", *rest, "weight"),
            f"{_units_of('leader')} AS leader",
            "by_units AS successors",
            # Most pools are those who could lead.
            *(f"IF({pool} = successors, by_units, {in_units(pool)}) AS {pool}" for pool in pools),
        )
        .groupBy(*SNAPSHOT_KEY, "topic", *rest, "leader", "successors", *pools)
        .agg(F.expr("count(1) AS partitions"), F.expr("sum(weight) AS weight"))
    )
    of_offline = f"IF(offline, {_NO_LISTS}, array(array_append(successors, leader)))"
    of_blocking = (
        f"IF(blocked, {_NO_LISTS}, concat("
        f"transform({_chosen('pool_with', 'take_with')}, s -> array_append(s, leader)),"
        f" {_chosen('pool_without', 'take_without')}))"
    )
    hitting = kinds.selectExpr(
        *_COUNTED,
        f"{_hitting_units(of_offline)} AS of_offline",
        f"{_hitting_units(of_blocking)} AS of_blocking",
    ).selectExpr(
        *_COUNTED,
        f"{_minimal('of_offline')} AS of_offline",
        f"{_minimal('of_blocking')} AS of_blocking",
    )
    return _as_rows(
        hitting.selectExpr("*", "size(of_offline) AS offline_count"),
        "concat(of_offline, of_blocking)",
    )


def _chosen(pool: str, take: str) -> str:
    """Every choice of *take* from *pool*: of places, since brokers may be in the same units."""
    places = f"IF(size({pool}) = 0, {NO_IDS}, sequence(0, size({pool}) - 1))"
    return f"transform({combinations(places, take)}, s -> transform(s, i -> get({pool}, i)))"


def _units_of_brokers(units: DataFrame) -> DataFrame:
    """Per snapshot, the units of each broker."""
    per_broker = units.groupBy(*SNAPSHOT_KEY, "broker_id").agg(
        F.expr("sort_array(collect_set(unit)) AS units")
    )
    return (
        per_broker.groupBy(*SNAPSHOT_KEY)
        .agg(F.expr(f"collect_list({struct(id='broker_id', units='units')}) AS listed"))
        .selectExpr(*SNAPSHOT_KEY, f"{in_buckets('listed', 'b.id')} AS units_of")
    )


def _units_of(broker: str) -> str:
    found = f"get(filter({bucket('units_of', broker)}, u -> u.id = {broker}), 0).units"
    return f"coalesce({found}, array(concat('broker:', {broker})))"


def _hitting_units(lists: str) -> str:
    """For each list of brokers by their units, every choice of one of each: what takes all down."""
    joined = "transform(units, u -> array_union(f, array(u)))"
    choices = (
        "aggregate(s, array(CAST(array() AS ARRAY<STRING>)),"
        f" (found, units) -> flatten(transform(found, f -> {joined})),"
        " found -> transform(found, f -> sort_array(f)))"
    )
    return f"array_distinct(flatten(transform({lists}, s -> {choices})))"


def _minimal(sets: str) -> str:
    """Those of the array *sets* that contain no other of them; they are distinct."""
    contains = "size(o) < size(s) AND size(array_except(o, s)) = 0"
    return f"filter({sets}, s -> NOT exists({sets}, o -> {contains}))"


def _with_brokers(sets: DataFrame, units: DataFrame) -> DataFrame:
    """The brokers that a set of units takes along."""
    per_unit = units.groupBy(*SNAPSHOT_KEY, "unit").agg(
        F.expr("sort_array(collect_set(broker_id)) AS brokers")
    )
    per_snapshot = per_unit.groupBy(*SNAPSHOT_KEY).agg(
        F.expr("map_from_entries(collect_list(struct(unit, brokers))) AS brokers_of")
    )
    alone = "array(try_cast(substring_index(u, ':', -1) AS INT))"
    brokers = f"flatten(transform(units, u -> coalesce(try_element_at(brokers_of, u), {alone})))"
    return (
        sets.drop("brokers")
        .join(F.broadcast(per_snapshot), list(SNAPSHOT_KEY), "left")
        .withColumn("brokers", F.expr(f"sort_array(array_distinct({brokers}))"))
        .drop("brokers_of")
    )
