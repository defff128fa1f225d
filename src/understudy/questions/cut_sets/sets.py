"""The minimal sets of brokers, or of racks and the like, whose loss costs partitions.

A set is minimal for a partition when its loss costs the partition and no part of it would do. They
follow from the thresholds of ``cuts`` without trying a single failure: a partition has one set that
takes it offline, and its sets that block ``acks=all`` are the combinations that reach a threshold.
One explode and one group-by over the partitions, however many sets of brokers there could be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from understudy.buckets import bucket, firsts, found, in_buckets
from understudy.frames import compiled_apart, small_frame, unfolded
from understudy.names import SNAPSHOT_KEY
from understudy.questions.cut_sets.counting import DIGIT, DIGITS, counted
from understudy.questions.cut_sets.cuts import FULL_ACKS, UNAVAILABLE
from understudy.schemas import INT, STRING
from understudy.sql import NO_IDS, null, struct, text

_UNITS: Final = T.StructType([T.StructField("broker_id", INT), T.StructField("unit", STRING)])
_NO_SETS: Final = "CAST(array() AS ARRAY<ARRAY<INT>>)"
_NO_LISTS: Final = "CAST(array() AS ARRAY<ARRAY<ARRAY<STRING>>>)"
_TAKES: Final = ("take_with", "take_without")
_POOLS: Final = ("successors", "pool_with", "pool_without")
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


def cut_sets_by_topic(
    partitions: DataFrame, units: DataFrame | None = None, *, largest: int | None = None
) -> DataFrame:
    """One row per topic, risk and minimal set, of whatever size or of up to *largest* members.

    *partitions* are those of ``cuts.thresholds`` with a weight. ``partitions`` and ``weight`` of a
    row are of those for which this very set is minimal. What the sets are says :func:`named`.

    With *units* (cluster, snapshot_id, broker_id, unit) the sets are of units, each of which takes
    all its brokers along; a broker without a unit is one of its own.
    """
    members: tuple[str, ...] = _PACKED
    if units is None:
        rows = _sets_of_brokers(partitions, largest)
    else:
        rows, members = _sets_of_units(partitions, units, largest), ("units",)
    # Whatever is grouped later, by set or by set and topic, lies together from here on.
    return (
        rows.repartition(*members)
        .groupBy(*SNAPSHOT_KEY, "is_offline", *members, "topic")
        .agg(F.expr("sum(partitions) AS partitions"), F.expr("sum(weight) AS weight"))
    )


def cut_sets_of_all(
    partitions: DataFrame, units: DataFrame | None = None, *, largest: int | None = None
) -> DataFrame:
    """The same over all topics, and named; what the topics are called is not asked."""
    numbered = partitions.withColumn("topic", F.xxhash64("topic"))
    if units is None:
        return named(counted(_numbered_sets(numbered, largest), largest))
    return cut_sets(cut_sets_by_topic(numbered, units, largest=largest))


def cut_sets(by_topic: DataFrame) -> DataFrame:
    """The rows of :func:`cut_sets_by_topic` over all topics, and named."""
    key = [name for name in by_topic.columns if name not in ("topic", "partitions", "weight")]
    return named(
        by_topic.groupBy(*key).agg(
            F.expr("sum(partitions) AS partitions"),
            F.expr("count(1) AS topics"),
            F.expr("sum(weight) AS weight"),
        )
    )


def named(sets: DataFrame) -> DataFrame:
    """The risk in words, and the members as ``brokers`` or ``units``."""
    of_units = "units" in sets.columns
    key = (*SNAPSHOT_KEY, "is_offline", "units", *_PACKED)
    return sets.selectExpr(
        *SNAPSHOT_KEY,
        f"IF(is_offline, {text(UNAVAILABLE)}, {text(FULL_ACKS)}) AS risk",
        f"{null('ARRAY<INT>') if of_units else _unpacked()} AS brokers",
        f"{'units' if of_units else null('ARRAY<STRING>')} AS units",
        *(name for name in sets.columns if name not in key),
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

# A set is one number where that holds its members, which is so of nearly all: numbers are grouped
# in a fraction of the time that lists are. Whatever does not fit is the list itself, beside a
# number below 0.
_PACKED: Final = ("packed", "wide")
_LISTS: Final = "concat(of_offline, of_blocking)"
_FITS: Final = (1 << DIGIT) - 2
_WIDE: Final = "shiftleft(1L, 63)"


def _number(*members: str) -> str:
    """Ascending members, each already one more than its id, as a number."""
    return " | ".join(
        f"shiftleft({member}, {DIGIT * (DIGITS - 1 - place)})"
        for place, member in enumerate(members)
    )


def _member(ids: str, place: int) -> str:
    return f"coalesce(get({ids}, {place}) + 1L, 0L)"


def _fits(ids: str) -> str:
    """Whether an ascending list is held by a number."""
    return (
        f"(size({ids}) <= {DIGITS} AND coalesce(get({ids}, 0) >= 0, true)"
        f" AND coalesce(get({ids}, size({ids}) - 1) <= {_FITS}, true))"
    )


def _unpacked() -> str:
    mask = (1 << DIGIT) - 1
    digits = [f"CAST((shiftright(packed, {DIGIT * n}) & {mask}L) - 1 AS INT)" for n in (2, 1, 0)]
    many = "\n".join(
        f"WHEN packed & {mask << (DIGIT * (DIGITS - n))}L != 0 THEN array({', '.join(digits[:n])})"
        for n in range(DIGITS, 0, -1)
    )
    return f"CASE WHEN packed < 0 THEN wide {many} ELSE {NO_IDS} END"


def _sets_of_brokers(partitions: DataFrame, largest: int | None) -> DataFrame:
    """A row per partition and minimal set, ``is_offline`` where that is the risk."""
    listed = _listed_sets(partitions, largest)
    return unfolded(listed, "sets", *_COUNTED, "offline_count", "wide_sets").selectExpr(
        *_COUNTED,
        "place < offline_count AS is_offline",
        "item AS packed",
        "IF(item < 0, get(wide_sets, place), NULL) AS wide",
    )


def _numbered_sets(partitions: DataFrame, largest: int | None) -> DataFrame:
    """A row per partition, as :func:`counting.counted` takes it."""
    fits = _fits("whole")
    members = (_member("whole", place) for place in range(DIGITS))
    numbered = partitions.selectExpr(
        *(*SNAPSHOT_KEY, "topic", "weight"),
        f"IF({fits}, {_number(*members)}, NULL) AS whole",
        f"IF({fits} AND NOT blocked, take_without, 0) AS taken",
        *_others(largest),
    )
    return compiled_apart(numbered).selectExpr(
        *(*SNAPSHOT_KEY, "topic", "weight", "whole", "taken"),
        "coalesce(size(of_offline), 0) AS offline_count",
        f"transform({_LISTS}, s -> {_packed('s')}) AS sets",
        f"{_LISTS} AS wide_sets",
    )


def _listed_sets(partitions: DataFrame, largest: int | None) -> DataFrame:
    """A row per partition with its minimal ``sets`` as numbers, and ``wide_sets`` beside them."""
    listed = partitions.selectExpr(
        *(*SNAPSHOT_KEY, "topic", "1L AS partitions", "weight"),
        f"IF({_fits('whole')}, size(whole), NULL) AS replication",
        "least(size(whole), take_without) AS taken",
        "blocked",
        *(f"{_member('whole', place)} AS {name}" for place, name in enumerate("xyz")),
        *_others(largest),
    )
    listed = compiled_apart(listed)
    return listed.selectExpr(
        *(*_COUNTED, f"{_LISTS} AS wide_sets"),
        f"IF(replication IS NULL, size(of_offline), {_count('replication', largest)})"
        " AS offline_count",
        f"IF(replication IS NULL, transform({_LISTS}, s -> {_packed('s')}), {_of_whole(largest)})"
        " AS sets",
    )


def _others(largest: int | None) -> tuple[str, ...]:
    """The sets of partitions whose replicas do not say them, as lists."""
    fitting = _of_at_most(largest)
    return (
        f"IF({_fits('whole')}, NULL, {fitting(offline_sets())}) AS of_offline",
        f"IF({_fits('whole')}, NULL, {fitting(blocking_sets())}) AS of_blocking",
    )


def _packed(members: str) -> str:
    number = _number(*(_member(members, n) for n in range(DIGITS)))
    return f"IF({_fits(members)}, {number}, xxhash64({members}) | {_WIDE})"


def _of_whole(largest: int | None) -> str:
    """The sets of a whole partition with replicas x, y and z, or the first of them."""
    everyone, nobody = f"array({_number('x', 'y', 'z')})", "CAST(array() AS ARRAY<BIGINT>)"
    pairs = f"array({_number('x', 'y')}, {_number('x', 'z')}, {_number('y', 'z')})"
    each = [_number(name) for name in "xyz"]
    blocking = f"""CASE WHEN blocked OR {_count("taken", largest)} = 0 THEN {nobody}
        WHEN taken = replication THEN {everyone}
        WHEN taken = 2 THEN {pairs}
        WHEN replication = 2 THEN array({each[0]}, {each[1]})
        ELSE array({", ".join(each)}) END"""
    return f"concat(IF({_count('replication', largest)} = 0, {nobody}, {everyone}), {blocking})"


def _count(size: str, largest: int | None) -> str:
    """Whether a set of this size is wanted, as 1 or 0."""
    return "1" if largest is None else f"IF({size} <= {int(largest)}, 1, 0)"


def _of_at_most(largest: int | None) -> Callable[[str], str]:
    """What leaves the sets of an array out that have more members."""

    def fitting(sets: str) -> str:
        return sets if largest is None else f"filter({sets}, s -> size(s) <= {int(largest)})"

    return fitting


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


def _sets_of_units(partitions: DataFrame, units: DataFrame, largest: int | None) -> DataFrame:
    """A row per minimal set and kind of partition.

    There are far fewer racks than brokers: partitions of a topic that lie in the same units are
    counted first, and what takes them down is worked out once.
    """
    known = F.broadcast(_units_of_brokers(units))
    listed = partitions.join(known, list(SNAPSHOT_KEY), "left").transform(_in_units)
    counted = ("partitions", "weight")
    kinds = (
        listed.groupBy(*(name for name in listed.columns if name not in counted))
        .agg(*(F.expr(f"sum({name}) AS {name}") for name in counted))
        .join(known, list(SNAPSHOT_KEY), "left")
        .transform(_as_any_other)
        .transform(compiled_apart)
    )
    of_offline = f"IF(offline, {_NO_LISTS}, array(array_append(successors, leader)))"
    of_blocking = (
        f"IF(blocked, {_NO_LISTS}, concat("
        f"transform({_chosen('pool_with', 'take_with')}, s -> array_append(s, leader)),"
        f" {_chosen('pool_without', 'take_without')}))"
    )
    sets = kinds.selectExpr(
        *_COUNTED, f"{of_offline} AS of_offline", f"{of_blocking} AS of_blocking"
    )
    for step in (_hitting_units, _minimal, *(() if largest is None else (_of_at_most(largest),))):
        sets = compiled_apart(sets).selectExpr(
            *_COUNTED,
            *(f"{step(name)} AS {name}" for name in ("of_offline", "of_blocking")),
        )
    sets = compiled_apart(sets).selectExpr("*", "size(of_offline) AS offline_count")
    return unfolded(sets, "concat(of_offline, of_blocking)", *_COUNTED, "offline_count").selectExpr(
        *_COUNTED, "place < offline_count AS is_offline", "item AS units"
    )


def _chosen(pool: str, take: str) -> str:
    """Every choice of *take* from *pool*: of places, since brokers may be in the same units."""
    places = f"IF(size({pool}) = 0, {NO_IDS}, sequence(0, size({pool}) - 1))"
    return f"transform({combinations(places, take)}, s -> transform(s, i -> get({pool}, i)))"


def _in_units(partitions: DataFrame) -> DataFrame:
    """The partitions by the units of their brokers, and nothing else about those.

    Of a whole partition that is a number, made of the numbers of its lists of units, and how many
    brokers block ``acks=all``.
    """

    def in_units(pool: str) -> str:
        return f"sort_array(transform({pool}, b -> {_units_of('b')}))"

    sorted_numbers = f"sort_array(transform(whole, b -> {_number_of('b')}))"
    numbers = f"IF(size(whole) <= {DIGITS}, {sorted_numbers}, NULL)"
    digits = (f"coalesce(get(numbers, {place}), 0L)" for place in range(DIGITS))
    # The smallest comes first, and before it what has no number.
    packed = f"IF(get(numbers, 0) IS NULL, NULL, {_number(*digits)})"
    numbered = partitions.selectExpr("*", f"{numbers} AS numbers").selectExpr(
        "*", f"{packed} AS packed"
    )
    return numbered.selectExpr(
        *(*SNAPSHOT_KEY, "topic", "1L AS partitions", "weight", "offline", "blocked", "packed"),
        "IF(packed IS NULL, NULL, least(size(whole), take_without)) AS taken",
        *(f"IF(packed IS NULL, {name}, NULL) AS {name}" for name in _TAKES),
        f"IF(packed IS NULL, {_units_of('leader')}, NULL) AS leader",
        *(f"IF(packed IS NULL, {in_units(pool)}, NULL) AS {pool}" for pool in _POOLS),
    )


def _as_any_other(kinds: DataFrame) -> DataFrame:
    """The kinds of whole partitions as those of others: it does not matter who leads."""
    mask = (1 << DIGIT) - 1
    digits = [f"(shiftright(packed, {DIGIT * n}) & {mask}L)" for n in (2, 1, 0)]
    first, *others = (f"get(unit_lists, CAST({digit} - 1 AS INT))" for digit in digits)
    rest = f"array_compact(array({', '.join(others)}))"
    whole = {
        "take_with": "taken - 1",
        "take_without": "taken",
        "leader": first,
        **dict.fromkeys(_POOLS, rest),
    }
    return kinds.selectExpr(
        *(*_COUNTED, "offline", "blocked"),
        *(f"IF(packed IS NULL, {name}, {value}) AS {name}" for name, value in whole.items()),
    )


def _units_of_brokers(units: DataFrame) -> DataFrame:
    """Per snapshot, the units of each broker, and the lists of units there are, numbered from 1."""
    per_broker = units.groupBy(*SNAPSHOT_KEY, "broker_id").agg(
        F.expr("sort_array(collect_set(unit)) AS units")
    )
    number = "array_position(unit_lists, b.units)"
    numbered = f"transform(listed, b -> {struct(id='b.id', units='b.units', number=number)})"
    return (
        per_broker.groupBy(*SNAPSHOT_KEY)
        .agg(
            F.expr(f"collect_list({struct(id='broker_id', units='units')}) AS listed"),
            F.expr("sort_array(collect_set(units)) AS unit_lists"),
        )
        .selectExpr(*SNAPSHOT_KEY, "unit_lists", f"{numbered} AS numbered")
        .selectExpr(*SNAPSHOT_KEY, "unit_lists", f"{in_buckets('numbered', 'b.id')} AS units_of")
        .selectExpr(
            "*",
            f"{firsts('units_of')}.id AS first_ids",
            f"{firsts('units_of')}.number AS first_numbers",
        )
    )


def _entry_of(broker: str) -> str:
    return found("units_of", broker)


def _units_of(broker: str) -> str:
    return f"coalesce({_entry_of(broker)}.units, array(concat('broker:', {broker})))"


def _number_of(broker: str) -> str:
    """The number of a broker's list of units; null where it has none."""
    is_first = f"{bucket('first_ids', broker)} = {broker}"
    number = bucket("first_numbers", broker)
    return f"IF({is_first}, {number}, {_entry_of(broker)}.number)"


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
