"""What the rules look at: partitions, brokers and snapshots, each beside what it was before.

Every table is read once and laid out by key and snapshot number; how many snapshots there are
changes nothing in the plan. ``places`` says of each snapshot where it stands in its history.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from understudy import schemas
from understudy.names import SNAPSHOT_KEY
from understudy.questions import availability
from understudy.questions.history.divergence import UNCLEAN, UNEXPLAINED
from understudy.snapshot import Row, Snapshots
from understudy.sql import NO_IDS, struct

PLACES: Final = T.StructType(
    [
        T.StructField("cluster", schemas.STRING),
        T.StructField("snapshot_id", schemas.STRING),
        T.StructField("number", schemas.INT),  # among the complete ones of its cluster, else null
        T.StructField("is_asked", schemas.BOOLEAN),  # to be judged; the others are looked back at
        T.StructField("taken_at", schemas.TIMESTAMP),
        T.StructField("is_kraft", schemas.BOOLEAN),
        T.StructField("source_form", schemas.STRING),
        T.StructField("complete", schemas.BOOLEAN),
        T.StructField("controller_id", schemas.INT),
        T.StructField("now_controller_epoch", schemas.INT),
        T.StructField("before_controller_epoch", schemas.INT),
        T.StructField("seconds", schemas.LONG),  # since the complete snapshot before
        T.StructField("earlier_seconds", schemas.LONG),  # since the one before that
    ]
)

_PARTITION_KEY: Final = (*SNAPSHOT_KEY, "topic", "partition")
_PLACE: Final = tuple(name for name in PLACES.names if name not in SNAPSHOT_KEY)
_LED: Final = f"IF(complete, {availability.is_online('leader')}, leader >= 0)"
REMEMBERED: Final = (
    *("number", "replicas", "adding", "isr", "elr", "leader", "is_led", "min_isr"),
    *("leader_epoch", "partition_epoch", "controller_epoch", "recovery"),
    *("idle_isr", "idle_replicas", "dead_isr", "offline_dirs"),
)
BROKER_REMEMBERED: Final = ("number", "alive", "broker_epoch")
EVER: Final = 10**9
LOAD: Final = {
    "held": "true",
    "leaders": "leader = broker_id AND is_led",
    "preferred": "replicas[0] = broker_id",
    "preferred_led": "replicas[0] = broker_id AND leader = broker_id",
    # Led with another replica online that could be in sync, and led so without any.
    "shared_led": "leader = broker_id AND has_others",
    "alone": "leader = broker_id AND has_others AND size(isr) = 1",
    "followed": "leader != broker_id AND is_led",
    "followed_in_sync": "leader != broker_id AND is_led AND array_contains(isr, broker_id)",
}


def partitions(
    snapshots: Snapshots, places: DataFrame, changes: DataFrame, *, looks_back: bool
) -> DataFrame:
    """One row per partition that counts and snapshot, with ``before`` and ``earlier``.

    ``is_unclean`` where a replay tells that its leader was elected out of sync.
    """
    judged = _judged(snapshots, places)
    if not looks_back:
        return judged.where("is_asked")
    unclean = (
        changes.where((F.col("field") == "leader") & (F.col("reason") == UNCLEAN))
        .select(*_PARTITION_KEY, F.lit(True).alias("is_unclean"))
        .distinct()
    )
    return (
        _beside(judged, ("topic", "partition"), REMEMBERED)
        .where("is_asked")
        .join(F.broadcast(unclean), on=list(_PARTITION_KEY), how="left")
    )


_DIFFERENCE: Final = (
    "concat(field, ' ', coalesce(recorded, '?'), ' instead of ', coalesce(predicted, '?'))"
)


def said_of_difference(row: Row) -> str:
    """The same of a row at hand."""
    recorded, predicted = ("?" if row[n] is None else row[n] for n in ("recorded", "predicted"))
    return f"{row['field']} {recorded} instead of {predicted}"


def unexplained(divergences: DataFrame, places: DataFrame) -> DataFrame:
    """One row per partition that a replay of the snapshot before leaves otherwise, unexplained."""
    return (
        divergences.where(F.col("reason") == UNEXPLAINED)
        .groupBy(*SNAPSHOT_KEY, "topic", "partition")
        .agg(F.expr(f"array_sort(collect_list({_DIFFERENCE})) AS differences"))
        .join(F.broadcast(places.where("is_asked")), on=list(SNAPSHOT_KEY), how="inner")
    )


def brokers(snapshots: Snapshots, places: DataFrame, load: DataFrame | None) -> DataFrame:
    """One row per broker and snapshot, with what it leads and follows if that *load* is given.

    With that, also those that hold replicas and are not registered: in ZooKeeper mode the dead.
    """
    found = snapshots.with_defaults().brokers
    if load is not None:
        counts = [f"coalesce({name}, 0) AS {name}" for name in LOAD]
        found = found.join(load, on=[*SNAPSHOT_KEY, "broker_id"], how="full").selectExpr(
            *(name for name in found.columns if name != "alive"),
            "coalesce(alive, false) AS alive",
            *counts,
        )
    placed = found.join(F.broadcast(places), on=list(SNAPSHOT_KEY), how="inner")
    beside = _beside(placed, ("broker_id",), BROKER_REMEMBERED).where("is_asked")
    here = f"OVER (PARTITION BY {', '.join(SNAPSHOT_KEY)})"
    same = f"OVER (PARTITION BY {', '.join(SNAPSHOT_KEY)}, endpoints)"
    # Fenced and back under the same registration: the broker never stopped.
    returned = (
        "coalesce(alive AND NOT before.alive AND earlier.alive"
        " AND broker_epoch = before.broker_epoch AND broker_epoch = earlier.broker_epoch, false)"
    )
    stayed = "before.alive AND NOT coalesce(broker_epoch > before.broker_epoch, false)"
    known = beside.selectExpr(
        "*",
        # How long it is known to be up; of a first snapshot, long enough.
        f"IF(seconds IS NULL, {EVER}, IF({stayed}, seconds, 0)) AS stayed_for",
        f"IF(endpoints IS NULL, 0, count_if(alive) {same}) AS same_endpoints",
        f"size(collect_set(rack) {here}) AS rack_count",
        f"count_if(alive) {here} AS live_brokers",
        f"{returned} AS returned",
        f"count_if({returned}) {here} AS returned_together",
    )
    return known if load is None else known.selectExpr("*", f"sum(leaders) {here} AS all_leaders")


def load(snapshots: Snapshots, places: DataFrame) -> DataFrame:
    """Per asked snapshot and broker, how many partitions it leads and follows, and how."""
    judged = _judged(snapshots, places).where("is_asked AND has_state")
    replicas = judged.selectExpr(
        *SNAPSHOT_KEY,
        *("replicas", "leader", "is_led", "isr"),
        "exists(replicas, r -> r != leader AND NOT array_contains(idle_replicas, r)) AS has_others",
        "explode(replicas) AS broker_id",
    )
    return replicas.groupBy(*SNAPSHOT_KEY, "broker_id").agg(
        *(F.expr(f"count_if({condition}) AS {name}") for name, condition in LOAD.items())
    )


def whole(snapshots: Snapshots, places: DataFrame) -> DataFrame:
    """One row per snapshot."""
    live = snapshots.brokers.groupBy(*SNAPSHOT_KEY).agg(
        F.expr("collect_list(broker_id) FILTER (WHERE alive) AS live")
    )
    return (
        places.where("is_asked")
        .join(F.broadcast(live), on=list(SNAPSHOT_KEY), how="left")
        .selectExpr(
            *PLACES.names,
            f"array_contains(coalesce(live, {NO_IDS}), controller_id) AS is_controller_alive",
        )
    )


def renewed_topics(snapshots: Snapshots, places: DataFrame) -> DataFrame:
    """Topics deleted and created again since the snapshot before: nothing is comparable.

    ``lookback`` is how far a rule has to look back to look past that.
    """
    placed = snapshots.topics.join(
        F.broadcast(places.select(*SNAPSHOT_KEY, "number")), on=list(SNAPSHOT_KEY), how="inner"
    )
    order = "OVER (PARTITION BY cluster, topic ORDER BY number)"
    return (
        placed.selectExpr("cluster", "topic", "number", "topic_id", f"lag(topic_id) {order} AS old")
        .where("topic_id != old")
        .selectExpr(
            *("cluster", "topic"),
            f"inline(array({struct(number='number', lookback='1')},"
            f" {struct(number='number + 1', lookback='2')}))",
        )
    )


# --- Steps ---------------------------------------------------------------------------------------


def _judged(snapshots: Snapshots, places: DataFrame) -> DataFrame:
    """What is true of each partition in its own snapshot."""
    known = places.join(_broker_lists(snapshots.brokers), on=list(SNAPSHOT_KEY), how="left")
    counted = availability.counted(snapshots).drop("is_kraft")
    found = counted.join(F.broadcast(known), on=list(SNAPSHOT_KEY), how="inner").selectExpr(
        *(name for name in counted.columns if name != "down"),
        *_PLACE,
        "leaving",
        "rack_count",
        "transform(replicas, r -> racks[r]) AS replica_racks",
        f"{_LED} AS is_led",
        f"filter(isr, r -> NOT {availability.is_live('r')}) AS idle_isr",
        f"filter(replicas, r -> NOT {availability.is_live('r')}) AS idle_replicas",
    )
    return found.selectExpr(
        *(name for name in found.columns if name not in ("leaving", "replica_racks")),
        "filter(idle_isr, r -> NOT coalesce(array_contains(leaving, r), false)) AS dead_isr",
        "forall(replica_racks, rack -> rack IS NOT NULL) AS racks_known",
        "size(array_distinct(replica_racks)) AS rack_spread",
    )


def _broker_lists(brokers: DataFrame) -> DataFrame:
    racks = "collect_list(struct(broker_id, rack)) FILTER (WHERE rack IS NOT NULL)"
    return brokers.groupBy(*SNAPSHOT_KEY).agg(
        F.expr("collect_list(broker_id) FILTER (WHERE alive AND shutting_down) AS leaving"),
        F.expr(f"map_from_entries({racks}) AS racks"),
        F.expr("size(collect_set(rack)) AS rack_count"),
    )


def _beside(df: DataFrame, keys: tuple[str, ...], remembered: tuple[str, ...]) -> DataFrame:
    """*df* with what each key was in the two complete snapshots before, if they had it."""
    order = f"OVER (PARTITION BY cluster, {', '.join(keys)} ORDER BY number)"
    memory = struct(**{name: name for name in remembered})
    looking = df.selectExpr(
        "*", f"lag({memory}) {order} AS _before", f"lag({memory}, 2) {order} AS _earlier"
    )
    # Only what stood exactly one, or two, snapshots before counts; the one between may lack it.
    steps = "array(_before, _earlier)"
    return looking.selectExpr(
        *df.columns,
        f"get(filter({steps}, s -> s.number = number - 1), 0) AS before",
        f"get(filter({steps}, s -> s.number = number - 2), 0) AS earlier",
    )
