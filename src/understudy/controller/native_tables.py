"""The output tables of a native failover: projections of what ``native_failover`` decided.

Each table is the healthy partitions' rows, which follow from their record alone, and the touched
partitions' rows, which say what was decided. No table reads another. Requests are next door, in
``native_requests``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from understudy.controller.native_failover import Failover
from understudy.controller.native_shape import shape
from understudy.controller.states import (
    DELETION_INELIGIBLE,
    OFFLINE_PARTITION,
    OFFLINE_REPLICA,
    ONLINE_PARTITION,
    ONLINE_REPLICA,
)
from understudy.controller.words import (
    CHOSEN,
    ELECTED,
    ELECTED_UNCLEAN,
    FAILED,
    FIRST_IN_SYNC,
    FIRST_ONLINE_NEW,
    FIRST_ONLINE_UNCLEAN,
    INITIALIZE_STRATEGY,
    INITIALIZED,
    ISR_SHRUNK,
    LATER_CONTROLLER,
    NEVER_LED,
    NO_REPLICA_ONLINE,
    NOT_IN_ISR,
    NOT_TRIED,
    OFFLINE,
    OFFLINE_STRATEGY,
    OK,
    PARTITION_MACHINE,
    QUEUED,
    RECORD_REFRESHED,
    REPLICA_MACHINE,
    SENT_AGAIN,
    SHRUNK,
    STATE_CHANGE_FAILED,
    STATE_WRITE,
    STRANGER_IN_ISR,
    UNCHANGED,
    UNCLEAN_OFF,
)
from understudy.names import PARTITION_KEY, SCENARIO_KEY
from understudy.schemas import (
    DECISIONS,
    EVENT_RESULTS,
    METADATA_WRITES,
    PARTITION_STATES,
    REPLICA_STATES,
    TRANSITIONS,
)


def partition_states(failover: Failover) -> DataFrame:
    same = {name: F.col(name) for name in ("replicas", "adding", "removing")}
    before = {f"{name}_before": F.col(name) for name in ("leader", "leader_epoch", "isr")}
    record = ("leader", "leader_epoch", "isr", "partition_epoch", "controller_epoch", "recovery")
    outcome, reason = _outcome()
    return shape(
        failover.healthy,
        PARTITION_STATES,
        state_after=ONLINE_PARTITION,
        outcome=UNCHANGED,
        **same,
        **before,
        **{name: F.col(name) for name in record},
    ).unionAll(
        shape(
            failover.touched,
            PARTITION_STATES,
            state_after=F.col("state_after"),
            outcome=outcome,
            reason=reason,
            **same,
            **before,
            **{name: F.col(f"new_{name}") for name in record},
        )
    )


def _outcome() -> tuple[Column, Column]:
    """What became of a touched partition, in one word and one sentence."""
    cases = [
        (F.col("new_leader").isNull() & F.col("queued"), NEVER_LED, F.lit(QUEUED)),
        (F.col("new_leader").isNull(), NEVER_LED, F.lit(NO_REPLICA_ONLINE)),
        (
            (F.col("state_after") == OFFLINE_PARTITION) & F.col("queued"),
            OFFLINE,
            F.lit(QUEUED),
        ),
        (F.col("state_after") == OFFLINE_PARTITION, OFFLINE, _why()),
        (F.col("initialized"), INITIALIZED, _why()),
        (F.col("elected.clean"), ELECTED, _why()),
        (F.col("elected").isNotNull(), ELECTED_UNCLEAN, _why()),
        (F.col("new_isr") != F.col("isr"), ISR_SHRUNK, F.lit(SHRUNK)),
        (
            (F.col("new_leader_epoch") != F.col("leader_epoch"))
            | (F.col("new_controller_epoch") != F.col("controller_epoch")),
            RECORD_REFRESHED,
            F.lit(SENT_AGAIN),
        ),
    ]

    def choose(pick: Callable[[str, Column], Column], otherwise: Column) -> Column:
        for condition, word, sentence in reversed(cases):
            otherwise = F.when(condition, pick(word, sentence)).otherwise(otherwise)
        return otherwise

    return (
        choose(lambda word, _: F.lit(word), F.lit(UNCHANGED)),
        choose(lambda _, sentence: sentence, F.lit(None).cast("string")),
    )


def _why() -> Column:
    """Why the partition machine decided as it did."""
    return (
        F.when(F.col("superseded"), F.lit(LATER_CONTROLLER))
        .when(F.col("initialized"), F.lit(FIRST_ONLINE_NEW))
        .when(F.col("elected.clean"), F.lit(FIRST_IN_SYNC))
        .when(F.col("elected").isNotNull(), F.lit(FIRST_ONLINE_UNCLEAN))
        .when(F.size("online") == 0, F.lit(NO_REPLICA_ONLINE))
        .when(_isr_member_online(), F.lit(STRANGER_IN_ISR))
        .otherwise(F.lit(UNCLEAN_OFF))
    )


def _isr_member_online() -> Column:
    return F.exists("shrunk_isr", lambda r: F.array_contains("online_known", r))


def replica_states(failover: Failover) -> DataFrame:
    offline_state = F.when(F.col("superseded"), F.lit(DELETION_INELIGIBLE)).otherwise(
        F.lit(OFFLINE_REPLICA)
    )
    touched = failover.touched.select(
        *PARTITION_KEY,
        "online",
        offline_state.alias("offline_state"),
        F.explode("replicas").alias("replica"),
    )
    state = F.when(F.array_contains("online", F.col("replica")), F.lit(ONLINE_REPLICA)).otherwise(
        F.col("offline_state")
    )
    healthy = failover.healthy.select(*PARTITION_KEY, F.explode("replicas").alias("replica"))
    return shape(
        healthy, REPLICA_STATES, replica=F.col("replica"), state_after=ONLINE_REPLICA
    ).unionAll(shape(touched, REPLICA_STATES, replica=F.col("replica"), state_after=state))


def transitions(failover: Failover) -> DataFrame:
    healthy = failover.healthy.select(
        *PARTITION_KEY, "step_online", F.explode("replicas").alias("replica")
    )
    online = failover.touched.select(
        *PARTITION_KEY, "step_online", F.explode("online").alias("replica")
    )
    offline = failover.touched.select(
        *PARTITION_KEY,
        "step_offline",
        "superseded",
        "removals",
        F.posexplode("removed").alias("index", "replica"),
    ).withColumn("removal", F.get("removals", F.col("index")))
    tried = failover.touched.where("tried")
    stay_online = [
        shape(
            replicas,
            TRANSITIONS,
            step=F.col("step_online"),
            machine=REPLICA_MACHINE,
            replica=F.col("replica"),
            from_state=ONLINE_REPLICA,
            to_state=ONLINE_REPLICA,
            result=OK,
        )
        for replicas in (healthy, online)
    ]
    go_offline = shape(
        offline,
        TRANSITIONS,
        step=F.col("step_offline"),
        machine=REPLICA_MACHINE,
        replica=F.col("replica"),
        from_state=DELETION_INELIGIBLE,
        to_state=OFFLINE_REPLICA,
        result=F.when(F.col("superseded"), F.lit(FAILED)).otherwise(F.lit(OK)),
        error=F.when(F.col("superseded"), F.lit(STATE_CHANGE_FAILED)),
        leader=F.col("removal.leader"),
        isr=F.col("removal.isr"),
        leader_epoch=F.col("removal.leader_epoch"),
    )
    get_a_leader = shape(
        tried,
        TRANSITIONS,
        step=F.col("step_partitions"),
        machine=PARTITION_MACHINE,
        from_state=F.col("state_at_start"),
        to_state=ONLINE_PARTITION,
        result=F.when(F.col("led"), F.lit(OK)).otherwise(F.lit(FAILED)),
        error=F.when(~F.col("led"), F.lit(STATE_CHANGE_FAILED)),
        leader=F.when(F.col("led"), F.col("new_leader")),
        isr=F.when(F.col("led"), F.col("new_isr")),
        leader_epoch=F.when(F.col("led"), F.col("new_leader_epoch")),
    )
    return reduce(DataFrame.unionAll, [*stay_online, go_offline, get_a_leader])


def metadata_writes(failover: Failover) -> DataFrame:
    removals = (
        failover.touched.where(F.size("removals") > 0)
        .select(
            *PARTITION_KEY, "step_offline", "epoch", "recovery", F.explode("removals").alias("r")
        )
        .where("r.wrote")
        .select(
            *PARTITION_KEY,
            F.col("step_offline").alias("step"),
            "r.position",
            *(F.col(f"r.{name}").alias(name) for name in ("leader", "leader_epoch", "isr")),
            "r.partition_epoch",
            F.col("epoch").alias("controller_epoch"),
            "recovery",
        )
    )
    leaders = failover.touched.where("led").select(
        *PARTITION_KEY,
        F.col("step_partitions").alias("step"),
        # First leaders are written before any election of the same call.
        F.when(F.col("initialized"), F.lit(0)).otherwise(F.lit(1)).alias("position"),
        *(
            F.col(f"new_{name}").alias(name)
            for name in (
                "leader",
                "leader_epoch",
                "isr",
                "partition_epoch",
                "controller_epoch",
                "recovery",
            )
        ),
    )
    in_order = Window.partitionBy(*SCENARIO_KEY).orderBy("step", "position", "topic", "partition")
    writes = removals.unionAll(leaders).withColumn("seq", F.row_number().over(in_order))
    return shape(
        writes,
        METADATA_WRITES,
        kind=STATE_WRITE,
        **{
            name: F.col(name)
            for name in (
                "seq",
                "step",
                "leader",
                "leader_epoch",
                "isr",
                "partition_epoch",
                "controller_epoch",
                "recovery",
            )
        },
    )


def decisions(failover: Failover) -> DataFrame:
    chosen = F.when(F.col("led"), F.col("new_leader"))
    clean = F.when(F.col("initialized"), F.lit(True)).otherwise(F.col("elected.clean"))
    no_clean_candidate = F.col("has_state") & ~F.col("superseded") & ~_isr_member_online()
    allowed_by = F.when(
        no_clean_candidate & F.col("unclean_allowed"),
        F.when(F.col("unclean_topic").isNotNull(), F.lit("topic")).otherwise(
            F.col("unclean_level")
        ),
    )
    place = F.array_position("replicas", F.col("chosen"))

    def verdict(replica: Column, index: Column) -> Column:
        return (
            F.when(F.coalesce(replica == F.col("chosen"), F.lit(False)), F.lit(CHOSEN))
            .when(F.coalesce(F.col("clean") & (index >= place), F.lit(False)), F.lit(NOT_TRIED))
            .otherwise(F.coalesce(F.get("why_not_online", index), F.lit(NOT_IN_ISR)))
        )

    candidates = F.transform(
        "replicas",
        lambda r, i: F.struct(r.alias("replica"), verdict(r, i).alias("verdict")),
    )
    tried = failover.touched.where("tried").withColumns({"chosen": chosen, "clean": clean})
    return shape(
        tried,
        DECISIONS,
        step=F.col("step_partitions"),
        strategy=F.when(F.col("has_state"), F.lit(OFFLINE_STRATEGY)).otherwise(
            F.lit(INITIALIZE_STRATEGY)
        ),
        candidates=F.when(
            F.col("superseded"), F.array().cast("array<struct<replica:int,verdict:string>>")
        ).otherwise(candidates),
        chosen=F.col("chosen"),
        clean=F.col("clean"),
        unclean_allowed_by=allowed_by,
        reason=_why(),
    )


def event_results(failover: Failover) -> DataFrame:
    """A failover answers nothing."""
    return shape(failover.touched.where(F.lit(False)), EVENT_RESULTS, event=1)
