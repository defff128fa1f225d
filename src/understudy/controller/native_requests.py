"""The requests of a native failover: bodies per partition, requests per broker.

LeaderAndIsr and StopReplica bodies know their recipients; an UpdateMetadata body goes to every
broker of its step, so it has none. Requests are the bodies counted and sized per receiver.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from understudy.controller import request_sizes
from understudy.controller.native_facts import no_ids
from understudy.controller.native_failover import Failover
from understudy.controller.native_shape import shape
from understudy.controller.words import (
    EPOCH_DURING_DELETE,
    LEADER_AND_ISR,
    LEADER_DURING_DELETE,
    NO_EPOCH,
    STOP_REPLICA,
    UPDATE_METADATA,
)
from understudy.names import PARTITION_KEY, SCENARIO_KEY
from understudy.schemas import (
    REQUEST_PARTITIONS,
    REQUESTS,
)

_FIRST_STEP: Final = 1
_BODY: Final = (
    "struct<step:int,request:string,recipients:array<int>,leader:int,leader_epoch:int,isr:array<int>,"
    "partition_epoch:int,controller_epoch:int,is_new:boolean,recovery:int>"
)


def _body(
    step: str,
    request: str,
    recipients: Column,
    record: dict[str, Column],
    *,
    is_new: Column | None = None,
) -> Column:
    """One request body of a partition; ``_bodies`` adds what all bodies of a partition share."""
    columns = {
        "step": F.col(step),
        "request": F.lit(request),
        "recipients": recipients,
        **record,
        "is_new": F.lit(None) if is_new is None else is_new,
    }
    order = ("step", "request", "recipients", "leader", "leader_epoch", "isr", "partition_epoch",
             "controller_epoch", "is_new", "recovery")  # fmt: skip
    return F.struct(*(columns.get(name, F.lit(None)).alias(name) for name in order)).cast(_BODY)


def _record(prefix: str) -> dict[str, Column]:
    names = ("leader", "leader_epoch", "isr", "partition_epoch", "controller_epoch")
    recovery = "new_recovery" if prefix == "new_" else "recovery"
    return {
        **{name: F.col(f"{prefix}{name}") for name in names},
        "recovery": F.when(F.col("has_recovery"), F.col(recovery)),
    }


def _metadata_record(record: dict[str, Column]) -> dict[str, Column]:
    """What UpdateMetadata shows: the cached record, veiled while the topic is being deleted."""
    veil = {
        "leader": LEADER_DURING_DELETE,
        "leader_epoch": 0,
        "partition_epoch": 0,
    }
    return {
        name: F.when(F.col("queued"), F.lit(veil[name])).otherwise(column)
        if name in veil
        else column
        for name, column in record.items()
        if name != "recovery"
    }


def _bodies_of_touched() -> Column:
    """Every body a touched partition contributes, as one array."""
    everyone = F.lit(None).cast("array<int>")
    first = _record("")
    online_call = _when(
        F.col("has_state") & (F.size("online") > 0),
        _body("step_online", LEADER_AND_ISR, F.sort_array("online"), first, is_new=F.lit(False)),
        _body("step_online", UPDATE_METADATA, everyone, _metadata_record(first)),
    )
    shrunk = _record("shrunk_")
    offline_call = _when(
        F.col("last_removal").isNotNull() & ~F.col("queued"),
        _body("step_offline", LEADER_AND_ISR, _told_of_last_record(), shrunk, is_new=F.lit(False)),
        _body(
            "step_offline",
            LEADER_AND_ISR,
            _told_of_record_before(),
            _record_before_last_removal(),
            is_new=F.lit(False),
        ),
        _body("step_offline", UPDATE_METADATA, everyone, shrunk | {"recovery": F.lit(None)}),
    )
    new = _record("new_")
    partition_call = _when(
        F.col("led"),
        _body(
            "step_partitions",
            LEADER_AND_ISR,
            F.sort_array("online"),
            new,
            is_new=F.col("initialized"),
        ),
        _body("step_partitions", UPDATE_METADATA, everyone, new | {"recovery": F.lit(None)}),
    )
    return F.filter(
        F.concat(online_call, offline_call, _stops(), partition_call),
        lambda body: F.when(body["request"] == UPDATE_METADATA, F.col("has_receivers")).otherwise(
            F.size(body["recipients"]) > 0
        ),
    )


def _when(condition: Column, *bodies: Column) -> Column:
    return F.when(condition, F.array(*bodies)).otherwise(F.array().cast(f"array<{_BODY}>"))


def _last_removed() -> Column:
    return F.col("last_removal.replica")


def _told_of_last_record() -> Column:
    """All replicas but the last one removed, which was not told of its own removal.

    Where that removal changed nothing, the record it was told earlier is the same one.
    """
    not_told = F.when(
        F.col("last_removal.wrote") | (F.size("removals") == 1), F.array(_last_removed())
    ).otherwise(no_ids())
    return F.sort_array(F.array_except("reachable", not_told))


def _told_of_record_before() -> Column:
    """The last one removed, told of the record before its own removal, if it was told at all."""
    told = F.col("last_removal.wrote") & (F.size("removals") > 1)
    return F.when(told, F.filter("reachable", lambda r: r == _last_removed())).otherwise(no_ids())


def _record_before_last_removal() -> dict[str, Column]:
    before = F.get("removals", F.size("removals") - 2)
    names = ("leader", "leader_epoch", "isr", "partition_epoch")
    return {
        **{name: before[name] for name in names},
        "controller_epoch": F.col("epoch"),
        "recovery": F.when(F.col("has_recovery"), F.col("recovery")),
    }


def _stops() -> Column:
    """StopReplica to every offline replica whose broker is still registered.

    Carries the leader epoch as it was before that replica's own removal; receivers of the same
    epoch share one body.
    """

    def stop(replica: Column, index: Column) -> Column:
        epoch = (
            F.when(F.col("queued"), F.lit(EPOCH_DURING_DELETE))
            .when(~F.col("has_state"), F.lit(NO_EPOCH))
            .otherwise(F.coalesce(F.get("removals", index)["stop_epoch"], F.col("leader_epoch")))
        )
        return F.struct(replica.alias("r"), epoch.alias("epoch"))

    stops = F.filter(
        F.transform("removed", stop),
        lambda s: F.array_contains("reachable", s["r"]),
    )
    epochs = F.array_distinct(F.transform(stops, lambda s: s["epoch"]))
    return F.transform(
        epochs,
        lambda epoch: _body(
            "step_offline",
            STOP_REPLICA,
            F.sort_array(
                F.transform(F.filter(stops, lambda s: s["epoch"] == epoch), lambda s: s["r"])
            ),
            {"leader_epoch": epoch},
        ),
    )


def request_partitions(failover: Failover) -> DataFrame:
    kinds = F.explode(F.array(F.lit(LEADER_AND_ISR), F.lit(UPDATE_METADATA))).alias("request")
    to_replicas = F.col("request") == LEADER_AND_ISR
    healthy = failover.healthy.select("*", kinds)
    record = {
        name: F.col(name)
        for name in (
            "leader",
            "leader_epoch",
            "isr",
            "partition_epoch",
            "controller_epoch",
            "replicas",
        )
    }
    touched = failover.touched.select(
        *PARTITION_KEY,
        "replicas",
        "adding",
        "removing",
        "offline_replicas",
        F.explode("bodies").alias("body"),
    )
    request = F.col("body.request")
    with_assignment = request == LEADER_AND_ISR
    return shape(
        healthy,
        REQUEST_PARTITIONS,
        step=F.col("step_online"),
        request=F.col("request"),
        recipients=F.when(to_replicas, F.sort_array("replicas")),
        adding=F.when(to_replicas, F.col("adding")),
        removing=F.when(to_replicas, F.col("removing")),
        offline_replicas=F.when(~to_replicas, no_ids()),
        is_new=F.when(to_replicas, F.lit(False)),
        recovery=F.when(to_replicas & F.col("has_recovery"), F.col("recovery")),
        **record,
    ).unionAll(
        shape(
            touched,
            REQUEST_PARTITIONS,
            step=F.col("body.step"),
            request=request,
            recipients=F.col("body.recipients"),
            leader=F.col("body.leader"),
            leader_epoch=F.col("body.leader_epoch"),
            isr=F.col("body.isr"),
            partition_epoch=F.col("body.partition_epoch"),
            controller_epoch=F.col("body.controller_epoch"),
            replicas=F.when(request != STOP_REPLICA, F.col("replicas")),
            adding=F.when(with_assignment, F.col("adding")),
            removing=F.when(with_assignment, F.col("removing")),
            offline_replicas=F.when(request == UPDATE_METADATA, F.col("offline_replicas")),
            is_new=F.col("body.is_new"),
            delete_partition=F.when(request == STOP_REPLICA, F.lit(False)),
            recovery=F.col("body.recovery"),
        )
    )


def with_bodies(touched: DataFrame) -> DataFrame:
    return touched.withColumn("bodies", _bodies_of_touched())


def requests(failover: Failover, facts: DataFrame) -> DataFrame:
    """One row per request: bodies counted and sized per receiver.

    A row of the inner frames with no broker stands for UpdateMetadata, whose body goes to everyone.
    """
    per_topic = (
        _healthy_shares(failover.healthy)
        .unionAll(_touched_shares(failover.touched))
        .unionAll(_empty_metadata(failover.touched, facts))
        .groupBy(*SCENARIO_KEY, "step", "request", "broker", "topic")
        .agg(F.sum("partitions").alias("partitions"), F.sum("elements").alias("elements"))
    )
    name = F.length("topic")
    per_request = per_topic.groupBy(*SCENARIO_KEY, "step", "request", "broker").agg(
        F.sum("partitions").alias("partition_count"),
        F.sum("elements").alias("elements"),
        F.count("topic").alias("topics"),
        F.coalesce(F.sum(name), F.lit(0)).alias("names"),
        F.coalesce(F.sum(F.col("partitions") * name), F.lit(0)).alias("repeated_names"),
    )
    receivers = F.when(F.col("broker").isNull(), F.col("brokers")).otherwise(
        F.filter("brokers", lambda b: b["id"] == F.col("broker"))
    )
    version = (
        F.when(F.col("request") == LEADER_AND_ISR, F.col("leader_and_isr_version"))
        .when(F.col("request") == UPDATE_METADATA, F.col("update_metadata_version"))
        .otherwise(F.col("stop_replica_version"))
    )
    sent = (
        per_request.join(F.broadcast(facts), on=list(SCENARIO_KEY), how="inner")
        .withColumn("version", version)
        .withColumn("size", _coefficients(F.col("request"), F.col("version")))
        .withColumn("bytes", _bytes())
        .select("*", F.explode(receivers).alias("receiver"))
    )
    return shape(
        sent,
        REQUESTS,
        step=F.col("step"),
        request=F.col("request"),
        broker_id=F.col("receiver.id"),
        broker_epoch=F.col("receiver.epoch"),
        controller_id=F.col("controller_id"),
        controller_epoch=F.col("epoch"),
        version=F.col("version"),
        partition_count=F.col("partition_count"),
        bytes=F.col("bytes"),
    )


def _healthy_shares(healthy: DataFrame) -> DataFrame:
    """What each healthy partition adds to each request: one share per replica, one for metadata."""
    receivers = F.concat("replicas", F.array(F.lit(None).cast("int")))
    return healthy.select(
        *SCENARIO_KEY,
        F.col("step_online").alias("step"),
        "topic",
        _listed_in_leader_and_isr(F.size("isr")).alias("to_replica"),
        _listed_in_metadata(F.size("isr"), F.lit(0)).alias("to_all"),
        F.explode(receivers).alias("broker"),
    ).select(
        *SCENARIO_KEY,
        "step",
        F.when(F.col("broker").isNull(), F.lit(UPDATE_METADATA))
        .otherwise(F.lit(LEADER_AND_ISR))
        .alias("request"),
        "broker",
        "topic",
        F.lit(1).alias("partitions"),
        F.when(F.col("broker").isNull(), F.col("to_all"))
        .otherwise(F.col("to_replica"))
        .alias("elements"),
    )


def _touched_shares(touched: DataFrame) -> DataFrame:
    bodies = touched.select(
        *SCENARIO_KEY,
        "topic",
        "replicas",
        "adding",
        "removing",
        "offline_replicas",
        "leader_and_isr_version",
        "update_metadata_version",
        F.explode("bodies").alias("body"),
    )
    isr = F.size("body.isr")
    elements = (
        F.when(F.col("body.request") == LEADER_AND_ISR, _listed_in_leader_and_isr(isr))
        .when(
            F.col("body.request") == UPDATE_METADATA,
            _listed_in_metadata(isr, F.size("offline_replicas")),
        )
        .otherwise(F.lit(0))
    )
    everyone = F.array(F.lit(None).cast("int"))
    return bodies.select(
        *SCENARIO_KEY,
        F.col("body.step").alias("step"),
        F.col("body.request").alias("request"),
        F.explode(F.coalesce("body.recipients", everyone)).alias("broker"),
        "topic",
        F.lit(1).alias("partitions"),
        elements.alias("elements"),
    )


def _empty_metadata(touched: DataFrame, facts: DataFrame) -> DataFrame:
    """UpdateMetadata that goes out even if no partition is in it.

    The failover's first batch, and the offline call when a never-led partition has a replica in it.
    """
    first = facts.select(*SCENARIO_KEY, F.lit(_FIRST_STEP).alias("step"))
    never_led = touched.where(~F.col("has_state") & (F.size("removed") > 0)).select(
        *SCENARIO_KEY, F.col("step_offline").alias("step")
    )
    nothing = {"broker": "int", "topic": "string"}
    return first.unionAll(never_led).select(
        *SCENARIO_KEY,
        "step",
        F.lit(UPDATE_METADATA).alias("request"),
        *(F.lit(None).cast(kind).alias(name) for name, kind in nothing.items()),
        F.lit(0).alias("partitions"),
        F.lit(0).alias("elements"),
    )


def _listed_in_leader_and_isr(isr: Column) -> Column:
    """Broker ids in the lists of a LeaderAndIsr body."""
    since = next(
        v
        for v in range(request_sizes.NEWEST_VERSION[LEADER_AND_ISR] + 1)
        if request_sizes.leader_and_isr(v).reassignment_lists
    )
    reassignment = F.size("adding") + F.size("removing")
    return (
        isr
        + F.size("replicas")
        + F.when(F.col("leader_and_isr_version") >= since, reassignment).otherwise(F.lit(0))
    )


def _listed_in_metadata(isr: Column, offline: Column) -> Column:
    since = next(
        v
        for v in range(request_sizes.NEWEST_VERSION[UPDATE_METADATA] + 1)
        if request_sizes.update_metadata(v).offline_replicas
    )
    return (
        isr
        + F.size("replicas")
        + F.when(F.col("update_metadata_version") >= since, offline).otherwise(F.lit(0))
    )


def _coefficients(request: Column, version: Column) -> Column:
    """The wire format of a request as a struct, looked up by name and version."""
    entries = [
        (
            f"{name}/{v}",
            F.struct(*(F.lit(value).alias(field) for field, value in layout(v)._asdict().items())),
        )
        for name, layout in request_sizes.FORMATS.items()
        for v in range(request_sizes.NEWEST_VERSION[name] + 1)
    ]
    table = F.create_map(*(part for key, value in entries for part in (F.lit(key), value)))
    return table[F.concat_ws("/", request, version.cast("string"))]


def _bytes() -> Column:
    names = F.when(F.col("size.names_per_partition"), F.col("repeated_names")).otherwise(
        F.col("names") + F.col("topics") * F.col("size.per_topic")
    )
    described = F.aggregate(
        "brokers",
        F.lit(0),
        lambda total, b: (
            total
            + F.coalesce(F.length(b["endpoints"]), F.lit(request_sizes.UNKNOWN_ENDPOINTS))
            + F.coalesce(F.length(b["rack"]), F.lit(0))
        ),
    )
    live = F.size("brokers")
    live_brokers = (
        F.when(
            F.col("request") == LEADER_AND_ISR,
            F.col("size.per_live_broker") * F.least(F.col("partition_count"), live),
        )
        .when(F.col("request") == UPDATE_METADATA, F.col("size.per_live_broker") * live + described)
        .otherwise(F.lit(0))
    )
    return (
        F.col("size.base")
        + names
        + F.col("partition_count") * F.col("size.per_partition")
        + F.col("elements") * request_sizes.ELEMENT
        + live_brokers
    )
