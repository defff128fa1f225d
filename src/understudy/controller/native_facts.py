"""What a failover knows about its cluster as a whole: one small row per scenario.

Everything that crosses partitions is settled here, before any partition is decided: who is live,
which ids are not online, the order of broker groups, which machine calls have any input (and so
the step numbers), the unclean default and the request formats. The row is broadcast to all
partitions; its size follows the number of brokers, never the number of partitions.

Membership is tested against the few ids that are *not* live rather than the many that are. The ids
come from the partitions themselves, since a replica may sit on a broker that nobody lists.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from understudy.controller import releases
from understudy.controller.group_order import with_group_order
from understudy.names import SCENARIO_KEY, SNAPSHOT_KEY, TOPIC_KEY

UNCLEAN_KEY: Final = "unclean.leader.election.enable"

_FAILOVER_EVENT: Final = "controller INT, dead ARRAY<INT>, forget BOOLEAN"


def no_ids() -> Column:
    return F.array().cast("array<int>")


def topic_exceptions(topics: DataFrame, configs: DataFrame) -> DataFrame:
    """The few topics that are queued for deletion or override the unclean setting."""
    queued = topics.where("queued_for_deletion").select(
        *TOPIC_KEY, F.lit(True).alias("queued"), F.lit(None).cast("boolean").alias("unclean_topic")
    )
    overrides = configs.where((F.col("scope") == "topic") & (F.col("key") == UNCLEAN_KEY)).select(
        *SNAPSHOT_KEY,
        F.col("name").alias("topic"),
        F.lit(None).cast("boolean").alias("queued"),
        _is_true("value").alias("unclean_topic"),
    )
    return (
        queued.unionAll(overrides)
        .groupBy(*TOPIC_KEY)
        .agg(F.max("queued").alias("queued"), F.max("unclean_topic").alias("unclean_topic"))
    )


def mentions(partitions: DataFrame, exceptions: DataFrame) -> DataFrame:
    """Per snapshot, every broker id its partitions name, and in which roles.

    One pass over the partitions; what comes out is as small as the list of brokers. ``dir`` roles
    count replicas whose log directory is offline, which a controller may or may not know about.
    """
    replicas = F.size("replicas")
    strangers = F.filter(F.coalesce("isr", no_ids()), lambda r: ~F.array_contains("replicas", r))
    tried = F.coalesce("queued", F.lit(False)) == F.lit(False)
    named = partitions.join(exceptions, on=list(TOPIC_KEY), how="left").select(
        *SNAPSHOT_KEY,
        replicas.alias("assigned"),
        tried.alias("tried"),
        (F.size("adding") + F.size("removing") > 0).alias("reassigning"),
        "offline_dirs",
        F.posexplode(F.concat("replicas", F.array("leader"), strangers)).alias("position", "id"),
    )
    first = F.col("position") == 0
    assigned = F.col("position") < F.col("assigned")
    leads = (F.col("position") == F.col("assigned")) & F.col("tried")
    bad_dir = F.coalesce(F.array_contains("offline_dirs", F.col("id")), F.lit(False))
    by_id = named.groupBy(*SNAPSHOT_KEY, "id").agg(
        F.max(assigned & ~bad_dir).alias("assigned"),
        F.max(assigned & bad_dir).alias("assigned_dir"),
        F.max(leads & ~bad_dir).alias("leads"),
        F.max(leads & bad_dir).alias("leads_dir"),
        F.sum(F.when(first & F.col("reassigning"), 1)).alias("reassigning"),
        F.sum(F.when(first & ~F.col("tried"), 1)).alias("queued"),
    )
    roles = F.struct("id", "assigned", "assigned_dir", "leads", "leads_dir")
    return by_id.groupBy(*SNAPSHOT_KEY).agg(
        F.array_sort(F.collect_list(roles)).alias("mentioned"),
        F.coalesce(F.sum("reassigning"), F.lit(0)).alias("reassigning"),
        F.coalesce(F.sum("queued"), F.lit(0)).alias("queued"),
    )


def failover_facts(
    snapshots: DataFrame,
    brokers: DataFrame,
    configs: DataFrame,
    scenarios: DataFrame,
    mentioned: DataFrame,
) -> DataFrame:
    """One row per scenario that is a single failover.

    ``not_live`` and ``unreachable`` (not even shutting down) list ids that partitions mention;
    ``offline_order`` the broker groups of the offline call in Kafka's order; a step is null when
    its call has no input.
    """
    known = (
        scenarios.select(
            *SCENARIO_KEY, F.from_json(F.get("events", F.lit(0)), _FAILOVER_EVENT).alias("event")
        )
        .join(snapshots, on=list(SNAPSHOT_KEY), how="inner")
        .join(_registered(brokers), on=list(SNAPSHOT_KEY), how="left")
        .join(mentioned, on=list(SNAPSHOT_KEY), how="left")
        .join(_unclean_levels(configs), on=list(SNAPSHOT_KEY), how="left")
    )
    return (
        known.transform(_with_controller)
        .transform(_with_broker_sets)
        .transform(_with_calls)
        .transform(with_group_order, "offline_order")
        .transform(_with_steps)
        .select(
            *SCENARIO_KEY,
            "release",
            "controller_id",
            "epoch",
            "forget",
            "reassigning",
            "queued",
            *_protocol_columns(),
            "brokers",
            (F.size("brokers") > 0).alias("has_receivers"),
            "not_live",
            "unreachable",
            "offline_order",
            "step_online",
            "step_offline",
            "step_partitions",
            *_unclean_columns(),
        )
    )


def _registered(brokers: DataFrame) -> DataFrame:
    """Per snapshot, the brokers that have a session, shutting down or not."""
    broker = F.struct(
        F.col("broker_id").alias("id"),
        F.col("broker_epoch").alias("epoch"),
        F.coalesce("shutting_down", F.lit(False)).alias("shutting_down"),
        "endpoints",
        "rack",
    )
    return (
        brokers.where("alive")
        .groupBy(*SNAPSHOT_KEY)
        .agg(F.array_sort(F.collect_list(broker)).alias("registered"))
    )


def _unclean_levels(configs: DataFrame) -> DataFrame:
    """Per snapshot, the unclean setting of the cluster, the properties file and each broker."""
    settings = configs.where((F.col("key") == UNCLEAN_KEY) & (F.col("scope") != "topic"))
    value = _is_true("value")
    by_broker = F.when(
        F.col("scope") == "broker",
        F.struct(F.col("name").cast("int").alias("id"), value.alias("on")),
    )
    return settings.groupBy(*SNAPSHOT_KEY).agg(
        F.max(F.when(F.col("scope") == "cluster", value)).alias("unclean_cluster"),
        F.max(F.when(F.col("scope") == "static", value)).alias("unclean_static"),
        F.collect_list(by_broker).alias("unclean_brokers"),
    )


def _is_true(value: str) -> Column:
    return F.lower(F.trim(value)) == "true"


def _with_controller(known: DataFrame) -> DataFrame:
    dead = F.coalesce("event.dead", no_ids())
    brokers = F.filter(
        F.coalesce("registered", F.array().cast(known.schema["registered"].dataType)),
        lambda b: ~F.array_contains("dead", b["id"]),
    )
    same_again = F.when(~F.array_contains("dead", F.col("controller_id")), F.col("controller_id"))
    smallest = F.get("brokers", F.lit(0))["id"]
    return (
        known.withColumns(
            {
                "dead": dead,
                "forget": F.coalesce("event.forget", F.lit(False)),
                "epoch": F.col("controller_epoch") + 1,
                # Brokers cannot speak a protocol newer than the release they run.
                "protocol": F.least(
                    releases.level_column(F.col("metadata_version")),
                    releases.level_column(F.col("release")),
                ),
            }
        )
        .withColumn("brokers", brokers)
        .withColumn("controller_id", F.coalesce("event.controller", same_again, smallest))
    )


def _with_broker_sets(known: DataFrame) -> DataFrame:
    ids = F.transform("brokers", lambda b: b["id"])
    staying = F.transform(
        F.filter("brokers", lambda b: F.col("forget") | ~b["shutting_down"]), lambda b: b["id"]
    )
    mentioned = F.filter(
        F.transform(F.coalesce("mentioned", F.array()), lambda m: m["id"]),
        lambda i: i.isNotNull(),
    )
    return known.withColumns(
        {
            "unreachable": F.array_except(mentioned, ids),
            "not_live": F.array_except(mentioned, staying),
        }
    )


def _with_calls(known: DataFrame) -> DataFrame:
    """Which of the three machine calls have input, and the brokers of the offline one."""

    def any_mention(holds: Column) -> Column:
        return F.coalesce(holds, F.lit(False))

    knows_dirs = ~F.col("forget")

    def live(mention: Column) -> Column:
        return ~F.array_contains("not_live", mention["id"])

    offline = F.filter(
        "mentioned",
        lambda m: (
            (~live(m) & (m["assigned"] | m["assigned_dir"])) | (knows_dirs & m["assigned_dir"])
        ),
    )
    return known.withColumns(
        {
            "any_online": any_mention(
                F.exists(
                    "mentioned",
                    lambda m: live(m) & (m["assigned"] | (~knows_dirs & m["assigned_dir"])),
                )
            ),
            "any_tried": any_mention(
                F.exists(
                    "mentioned",
                    # A partition without a record has a null leader and is always tried.
                    lambda m: (
                        ((m["leads"] | m["leads_dir"]) & (m["id"].isNull() | ~live(m)))
                        | (knows_dirs & m["leads_dir"])
                    ),
                )
            ),
            "offline_order": F.coalesce(F.transform(offline, lambda m: m["id"]), no_ids()),
        }
    )


def _with_steps(known: DataFrame) -> DataFrame:
    """Step 1 is the empty UpdateMetadata; the calls follow in order, those with input count."""
    any_offline = F.size("offline_order") > 0
    online, offline = F.col("any_online").cast("int"), any_offline.cast("int")
    return known.withColumns(
        {
            "step_online": F.when(F.col("any_online"), F.lit(2)),
            "step_offline": F.when(any_offline, online + 2),
            "step_partitions": F.when(F.col("any_tried"), online + offline + 2),
        }
    )


def _protocol_columns() -> list[Column]:
    protocol = F.col("protocol")
    versions = releases.request_version_columns(protocol)
    return [
        (protocol >= releases.PROTOCOL_3_2).alias("has_recovery"),
        versions.leader_and_isr.alias("leader_and_isr_version"),
        versions.update_metadata.alias("update_metadata_version"),
        versions.stop_replica.alias("stop_replica_version"),
    ]


def _unclean_columns() -> list[Column]:
    """The setting for topics that do not override it, and the level that decided it."""
    of_broker = F.get(
        F.filter("unclean_brokers", lambda b: b["id"] == F.col("controller_id")), F.lit(0)
    )["on"]
    level = (
        F.when(of_broker.isNotNull(), F.lit("broker"))
        .when(F.col("unclean_cluster").isNotNull(), F.lit("cluster"))
        .when(F.col("unclean_static").isNotNull(), F.lit("static"))
    )
    return [
        F.coalesce(of_broker, "unclean_cluster", "unclean_static", F.lit(False)).alias(
            "unclean_default"
        ),
        level.alias("unclean_level"),
    ]
