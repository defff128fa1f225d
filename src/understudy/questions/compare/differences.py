"""Where controllers part over the same partition, field by field, and the rule that makes them.

The first controller is the measure: each other one is held against it. Frames in, frame out; the
replays of all controllers come as one (see ``controllers``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from understudy import schemas
from understudy.controller.profiles import KRAFT
from understudy.controller.states import ONLINE_PARTITION
from understudy.controller.words import NO_LEADER, UNCHANGED
from understudy.frames import small_frame
from understudy.names import PARTITION_KEY, SCENARIO_KEY, SNAPSHOT_KEY
from understudy.questions import availability
from understudy.questions.compare.controllers import Controller, unforked
from understudy.questions.compare.rules import rule
from understudy.schemas import DIFFERENCES
from understudy.snapshot import Snapshots
from understudy.sql import NO_IDS, struct, text

# Field -> how its value is written; what stands in the table differs in this text.
FIELDS: Final = {
    "available": "CAST({} AS STRING)",
    "leader": "CAST({} AS STRING)",
    "isr": "to_json({})",
    "leader_epoch": "CAST({} AS STRING)",
    "partition_epoch": "CAST({} AS STRING)",
}
TABLES: Final = ("partition_states", "metadata_writes", "event_results", "broker_states")
"""Of a replay, what is looked at."""

# The order of an ISR is that of its history and changes nothing: it is compared as a set.
_RECORD: Final = {
    "leader": "leader",
    "isr": "array_sort(isr)",
    "leader_epoch": "leader_epoch",
    "partition_epoch": "partition_epoch",
}
_MORE: Final = ("replicas", "adding", "removing", "elr")  # that rules look at


def differences(
    replayed: Mapping[str, DataFrame], snapshots: Snapshots, controllers: Sequence[Controller]
) -> DataFrame:
    """Rows of ``differences``: *replayed* are the TABLES of the forks of *snapshots*.

    They had better be computed already: the plans of four tables in one are too much for Spark.
    """
    states, writes, results, brokers = (unforked(replayed[name]) for name in TABLES)
    spark = snapshots.snapshots.sparkSession
    touched = (
        _ends(states)
        .unionByName(_written(writes), allowMissingColumns=True)
        .groupBy(*PARTITION_KEY)
        .agg(F.expr("collect_list(ended) AS ends"), F.expr("collect_list(wrote) AS writes"))
        .join(_before(snapshots), on=[*SNAPSHOT_KEY, "topic", "partition"], how="left")
        .join(_refusals(results), on=list(SCENARIO_KEY), how="left")
        .join(_active(brokers), on=list(SCENARIO_KEY), how="left")
    )
    pairs = F.broadcast(small_frame(spark, _pairs(controllers), _PAIRS))
    return (
        _judged(touched.crossJoin(pairs))
        .selectExpr(
            *PARTITION_KEY,
            *("controller_a", "controller_b", "rule", "event", "event_type"),
            f"inline({_each_field()})",
        )
        .where("NOT value_a <=> value_b")
        .select(*DIFFERENCES.names)
    )


def _each_field() -> str:
    """One entry for each field, as text of both sides."""
    entries = (
        struct(
            field=text(name),
            **{f"value_{side}": form.format(f"end_{side}.{name}") for side in "ab"},
        )
        for name, form in FIELDS.items()
    )
    return f"array({', '.join(entries)})"


# --- What each controller made of a partition ----------------------------------------------------


def _ends(states: DataFrame) -> DataFrame:
    """The partitions at the end, of every controller that did anything to them."""
    is_online = f"coalesce(state_after = {text(ONLINE_PARTITION)}, false)"
    end = struct(controller="controller", is_online=is_online, record=struct(**_RECORD))
    return states.where(f"outcome != {text(UNCHANGED)}").selectExpr(
        *PARTITION_KEY, f"{end} AS ended"
    )


def _written(writes: DataFrame) -> DataFrame:
    """The records of partitions as they were written."""
    wrote = _held(event="event", seq="seq", event_type="event_type", controller="controller")
    return writes.where("partition IS NOT NULL AND leader IS NOT NULL").selectExpr(
        *PARTITION_KEY, f"{wrote} AS wrote"
    )


def _before(snapshots: Snapshots) -> DataFrame:
    """Every partition as the snapshot has it: what a controller holds that does nothing."""
    known = snapshots.with_defaults()
    live = F.broadcast(availability.live_brokers(known.brokers))
    held = _held(
        event="CAST(NULL AS INT)",
        seq="CAST(NULL AS INT)",
        event_type="CAST(NULL AS STRING)",
        controller="CAST(NULL AS INT)",
    )
    return (
        known.partitions.join(live, on=list(SNAPSHOT_KEY), how="left")
        .selectExpr(*known.partitions.columns, f"{availability.named_down()} AS down")
        .selectExpr(
            *SNAPSHOT_KEY,
            *("topic", "partition", "has_state", "offline_dirs"),
            f"{availability.is_online('leader')} AS was_online",
            f"{held} AS held_before",
        )
    )


def _held(**about: str) -> str:
    """What a controller holds of a partition after one of its writes."""
    return struct(**about, record=struct(**_RECORD), **{name: name for name in _MORE})


def _refusals(results: DataFrame) -> DataFrame:
    """Per scenario the events that a controller refused as a whole, or for one of the brokers."""
    refusal = struct(controller="controller", event="event", error="error")
    return (
        results.where("topic IS NULL AND error IS NOT NULL")
        .groupBy(*SCENARIO_KEY)
        .agg(F.expr(f"collect_set({refusal}) AS refusals"))
    )


def _active(brokers: DataFrame) -> DataFrame:
    """Per scenario the brokers that are active at its end, for each quorum controller."""
    return (
        brokers.where("NOT fenced AND NOT shutting_down")
        .groupBy(*SCENARIO_KEY, "controller")
        .agg(F.expr("collect_list(broker_id) AS ids"))
        .groupBy(*SCENARIO_KEY)
        .agg(F.expr(f"collect_list({struct(controller='controller', ids='ids')}) AS active"))
    )


# --- Two of them, side by side -------------------------------------------------------------------

_PAIRS: Final = T.StructType(
    [
        *(T.StructField(f"number_{side}", schemas.INT) for side in "ab"),
        *(T.StructField(f"controller_{side}", schemas.STRING) for side in "ab"),
        *(T.StructField(f"mode_{side}", schemas.STRING) for side in "ab"),
    ]
)


def _pairs(controllers: Sequence[Controller]) -> list[tuple[int, int, str, str, str, str]]:
    first, *others = controllers
    return [
        (0, number, first.label, other.label, first.profile.mode, other.profile.mode)
        for number, other in enumerate(others, 1)
    ]


def _judged(sides: DataFrame) -> DataFrame:
    """Both ends, the event after which the two differ for the first time, and the rule."""
    events = "array_sort(array_distinct(transform(concat(writes_a, writes_b), w -> w.event)))"
    parting = f"filter({events}, e -> NOT {_after('a', 'e')}.record <=> {_after('b', 'e')}.record)"
    kind = "get(filter(concat(writes_a, writes_b), w -> w.event <=> event), 0).event_type"
    own = _with(
        sides,
        **{f"own_{side}": _own_end(side) for side in "ab"},
        **{f"writes_{side}": _own_writes(side) for side in "ab"},
    )
    apart = _with(own, **{f"end_{side}": _end(side) for side in "ab"}).where("NOT end_a <=> end_b")
    parted = _with(
        _with(apart, event=f"get({parting}, 0)"),
        event_type=kind,
        **{f"was_{side}": _after(side, "event - 1") for side in "ab"},
        **{f"held_{side}": _after(side, "event") for side in "ab"},
        **{f"refused_{side}": _refusal(side) for side in "ab"},
    )
    return parted.selectExpr("*", _common(), *(_flat(side) for side in "ab")).selectExpr(
        "*", f"{rule()} AS rule"
    )


def _with(frame: DataFrame, **columns: str) -> DataFrame:
    """More columns, each computed once.

    Spark would write an expression out wherever a later one uses it, and these are used by many: a
    generator is a line it does not move expressions over.
    """
    return frame.selectExpr("*", f"inline(array({struct(**columns)}))")


def _own_end(side: str) -> str:
    """What this controller did to the partition, null when nothing."""
    return f"get(filter(ends, e -> e.controller = number_{side}), 0)"


def _end(side: str) -> str:
    """The partition at the end.

    A quorum controller has no states: a partition is available with a leader that is active. It
    has a record from the beginning, where a ZooKeeper controller writes one with the first leader.
    """
    untouched = f"IF(mode_{side} = {text(KRAFT.mode)} AND NOT has_state, {_FIRST}, {_HELD})"
    record = f"coalesce(own_{side}.record, {untouched})"
    active = f"get(filter(active, a -> a.controller = number_{side}), 0).ids"
    is_led = (
        f"(coalesce(array_contains({active}, {record}.leader), false)"
        f" AND (own_{side} IS NOT NULL OR"
        f" NOT coalesce(array_contains(offline_dirs, {record}.leader), false)))"
    )
    is_available = (
        f"IF(mode_{side} = {text(KRAFT.mode)}, {is_led},"
        f" coalesce(own_{side}.is_online, was_online, false))"
    )
    return struct(available=is_available, **{name: f"{record}.{name}" for name in _RECORD})


_HELD: Final = "held_before.record"
_FIRST: Final = struct(
    leader=str(NO_LEADER), isr=NO_IDS, leader_epoch=str(0), partition_epoch=str(0)
)


def _own_writes(side: str) -> str:
    """In their order: by event, then by the number of the write."""
    return f"array_sort(filter(writes, w -> w.controller = number_{side}))"


def _after(side: str, event: str) -> str:
    """What a controller holds after an event: its last write until then, or the snapshot's."""
    last = f"try_element_at(filter(writes_{side}, w -> w.event <= {event}), -1)"
    return f"coalesce({last}, held_before)"


def _refusal(side: str) -> str:
    said = f"filter(refusals, r -> r.controller = number_{side} AND r.event = event)"
    return f"get({said}, 0).error"


def _flat(side: str) -> str:
    held = f"held_{side}"
    fields = {name: f"{held}.record.{name}" for name in _RECORD}
    return f"{struct(**fields, **{name: f'{held}.{name}' for name in _MORE})} AS {side}"


def _common() -> str:
    """The partition before they part: its record is one, the lists are what either knows."""
    fields = {name: f"was_a.record.{name}" for name in _RECORD}
    lists = {name: f"coalesce(was_a.{name}, was_b.{name})" for name in _MORE}
    lists["elr"] = f"array_union(coalesce(was_a.elr, {NO_IDS}), coalesce(was_b.elr, {NO_IDS}))"
    return f"{struct(**fields, **lists)} AS was"
