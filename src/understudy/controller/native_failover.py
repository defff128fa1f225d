"""A controller failover decided for whole snapshots at once, as Spark column expressions.

Most partitions of a cluster are healthy: every replica online, a leader that is online, no offline
directory, not queued for deletion. The failover re-sends their record and changes nothing. Only the
others, the *touched* ones, go through ISR removal and election; they are decided once and kept,
and every output table reads them from there (``native_tables``).

The steps follow Kafka's onControllerFailover: the empty UpdateMetadata, the replica machine's
online call, its offline call, the partition machine's call.
"""

from __future__ import annotations

from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from understudy.controller.elections_sql import elect_offline_leader
from understudy.controller.native_facts import no_ids
from understudy.controller.states import NEW_PARTITION, OFFLINE_PARTITION, ONLINE_PARTITION
from understudy.controller.words import (
    BROKER_DOWN,
    LOG_DIR_OFFLINE,
    NO_LEADER,
    RECOVERED,
    RECOVERING,
    SHUTTING_DOWN,
)
from understudy.names import SNAPSHOT_KEY, TOPIC_KEY


class Failover(NamedTuple):
    """The two kinds of partitions; each is one row per scenario and partition."""

    healthy: DataFrame
    touched: DataFrame


def decide(partitions: DataFrame, facts: DataFrame, exceptions: DataFrame) -> Failover:
    """Split the partitions of every scenario and decide the touched ones."""
    known = (
        partitions.join(exceptions, on=list(TOPIC_KEY), how="left")
        .join(
            F.broadcast(facts.drop("release", "queued", "reassigning")),
            on=list(SNAPSHOT_KEY),
            how="inner",
        )
        .withColumns(
            {
                "queued": F.coalesce("queued", F.lit(False)),
                "offline_dirs": F.when(F.col("forget"), no_ids()).otherwise(F.col("offline_dirs")),
            }
        )
    )
    touched = (
        known.where(~_is_healthy())
        .transform(_with_liveness)
        .transform(_with_removals)
        .transform(_with_record_after_removals)
        .transform(_with_election)
        .transform(_with_final_record)
        .drop("not_live", "offline_order", "brokers")
    )
    return Failover(healthy=known.where(_is_healthy()), touched=touched)


def _is_healthy() -> Column:
    """Cheap to test, since it runs over every partition: a few comparisons with short lists."""
    return (
        F.col("has_state")
        & ~F.col("queued")
        & (F.size("offline_dirs") == 0)
        & ~F.array_contains("not_live", F.col("leader"))
        & ~F.exists("replicas", lambda r: F.array_contains("not_live", r))
    )


def _is_online(broker: Column) -> Column:
    return ~F.array_contains("not_live", broker) & ~F.array_contains("offline_dirs", broker)


def _with_liveness(known: DataFrame) -> DataFrame:
    def why(r: Column) -> Column:
        return (
            F.when(F.array_contains("unreachable", r), F.lit(BROKER_DOWN))
            .when(F.array_contains("not_live", r), F.lit(SHUTTING_DOWN))
            .when(F.array_contains("offline_dirs", r), F.lit(LOG_DIR_OFFLINE))
        )

    return known.withColumns(
        {
            "why_not_online": F.transform("replicas", why),
            "online": F.filter("replicas", _is_online),
            "offline_replicas": F.filter("replicas", lambda r: ~_is_online(r)),
            "reachable": F.filter("replicas", lambda r: ~F.array_contains("unreachable", r)),
            # Kafka refuses to touch a record that a later controller has written.
            "superseded": F.coalesce(F.col("controller_epoch") > F.col("epoch"), F.lit(False)),
        }
    ).withColumn("removed", F.array_intersect("offline_order", "offline_replicas"))


def _no_removals() -> Column:
    return F.array().cast(
        "array<struct<replica:int,position:int,stop_epoch:int,wrote:boolean,"
        "leader:int,leader_epoch:int,isr:array<int>,partition_epoch:int>>"
    )


def _with_removals(known: DataFrame) -> DataFrame:
    """Fold the offline replicas, in group order, into one record after the other.

    Each entry is a removal and the record it left behind. The last ISR member is retained, but the
    epochs rise all the same; a replica outside the ISR changes nothing and is not written.
    """
    start = F.struct(
        F.col("leader").alias("leader"),
        F.col("leader_epoch").alias("leader_epoch"),
        F.col("isr").alias("isr"),
        F.col("partition_epoch").alias("partition_epoch"),
        _no_removals().alias("done"),
    )
    folded = F.aggregate("removed", start, _remove_from_isr)["done"]
    applies = F.col("has_state") & ~F.col("superseded")
    return known.withColumn("removals", F.when(applies, folded).otherwise(_no_removals()))


def _remove_from_isr(record: Column, replica: Column) -> Column:
    in_isr = F.array_contains(record["isr"], replica)
    bump = in_isr.cast("int")
    leader = F.when(in_isr & (record["leader"] == replica), F.lit(NO_LEADER)).otherwise(
        record["leader"]
    )
    isr = F.when(F.size(record["isr"]) == 1, record["isr"]).otherwise(
        F.filter(record["isr"], lambda r: r != replica)
    )
    after = {
        "leader": leader,
        "leader_epoch": record["leader_epoch"] + bump,
        "isr": isr,
        "partition_epoch": record["partition_epoch"] + bump,
    }
    removal = F.struct(
        replica.alias("replica"),
        F.array_position("offline_order", replica).cast("int").alias("position"),
        record["leader_epoch"].alias("stop_epoch"),
        in_isr.alias("wrote"),
        *(column.alias(name) for name, column in after.items()),
    )
    return F.struct(
        *(column.alias(name) for name, column in after.items()),
        F.concat(record["done"], F.array(removal)).alias("done"),
    )


def _with_record_after_removals(known: DataFrame) -> DataFrame:
    last = F.get("removals", F.size("removals") - 1)
    return (
        known.withColumn("last_removal", last)
        .withColumns(
            {
                f"shrunk_{name}": F.when(
                    F.col("last_removal").isNotNull(), F.col(f"last_removal.{name}")
                ).otherwise(F.col(name))
                for name in ("leader", "leader_epoch", "isr", "partition_epoch")
            }
        )
        .withColumn(
            "shrunk_controller_epoch",
            F.when(F.col("last_removal").isNotNull(), F.col("epoch")).otherwise(
                F.col("controller_epoch")
            ),
        )
    )


def _with_election(known: DataFrame) -> DataFrame:
    """The partition machine's start-up: first states, then a leader for all that lack one."""
    leaderless = (F.col("shrunk_leader") == NO_LEADER) | ~_is_online(F.col("shrunk_leader"))
    state = (
        F.when(~F.col("has_state"), F.lit(NEW_PARTITION))
        .when(leaderless, F.lit(OFFLINE_PARTITION))
        .otherwise(F.lit(ONLINE_PARTITION))
    )
    tried = ~F.col("queued") & (F.col("state_at_start") != ONLINE_PARTITION)
    elects = F.col("tried") & F.col("has_state") & ~F.col("superseded")
    return (
        known.withColumn("state_at_start", state)
        .withColumns(
            {
                "tried": tried,
                "online_known": F.filter(
                    F.array_union("replicas", F.coalesce("shrunk_isr", no_ids())), _is_online
                ),
                "unclean_allowed": F.coalesce("unclean_topic", "unclean_default"),
            }
        )
        .withColumns(
            {
                "elected": F.when(
                    elects,
                    elect_offline_leader(
                        F.col("replicas"),
                        F.col("shrunk_isr"),
                        F.col("online_known"),
                        F.col("unclean_allowed"),
                    ),
                ),
                "initialized": F.col("tried") & ~F.col("has_state") & (F.size("online") > 0),
            }
        )
    )


def _with_final_record(known: DataFrame) -> DataFrame:
    """The cached record at the end, under ``new_*``; null where the partition never had one."""

    def choose(initial: Column, elected: Column, otherwise: str) -> Column:
        return (
            F.when(F.col("initialized"), initial)
            .when(F.col("elected").isNotNull(), elected)
            .otherwise(F.col(otherwise))
        )

    recovery_if_elected = F.when(
        ~F.col("elected.clean") & F.col("has_recovery"), F.lit(RECOVERING)
    ).otherwise(F.col("recovery"))
    led = F.col("initialized") | F.col("elected").isNotNull()
    zero = F.lit(0)
    return known.withColumns(
        {
            "new_leader": choose(F.get("online", zero), F.col("elected.leader"), "shrunk_leader"),
            "new_leader_epoch": choose(
                zero, F.col("shrunk_leader_epoch") + 1, "shrunk_leader_epoch"
            ),
            "new_isr": choose(F.col("online"), F.col("elected.isr"), "shrunk_isr"),
            "new_partition_epoch": choose(
                zero, F.col("shrunk_partition_epoch") + 1, "shrunk_partition_epoch"
            ),
            "new_controller_epoch": choose(
                F.col("epoch"), F.col("epoch"), "shrunk_controller_epoch"
            ),
            "new_recovery": choose(F.lit(RECOVERED), recovery_if_elected, "recovery"),
            "led": led,
            "state_after": F.when(led, F.lit(ONLINE_PARTITION)).otherwise(F.col("state_at_start")),
        }
    )
