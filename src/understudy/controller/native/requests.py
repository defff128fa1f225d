"""The requests of a native failover: bodies per partition, requests per broker.

LeaderAndIsr and StopReplica bodies know their recipients; an UpdateMetadata body goes to every
broker of its step, so it has none. Requests are the bodies counted and sized per receiver.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from understudy.controller import request_sizes
from understudy.controller.native.failover import RECORD, Failover
from understudy.controller.native.sql import NO_IDS, null, select, struct, text
from understudy.controller.words import (
    EPOCH_DURING_DELETE,
    LEADER_AND_ISR,
    LEADER_DURING_DELETE,
    NO_EPOCH,
    STOP_REPLICA,
    UPDATE_METADATA,
)
from understudy.names import PARTITION_KEY, SCENARIO_KEY
from understudy.schemas import REQUEST_PARTITIONS, REQUESTS

_FIRST_STEP: Final = 1
_BODY_FIELDS: Final = {
    "step": "INT",
    "request": "STRING",
    "recipients": "ARRAY<INT>",
    "leader": "INT",
    "leader_epoch": "INT",
    "isr": "ARRAY<INT>",
    "partition_epoch": "INT",
    "controller_epoch": "INT",
    "is_new": "BOOLEAN",
    "recovery": "INT",
}
_BODY: Final = f"STRUCT<{', '.join(f'{name}: {kind}' for name, kind in _BODY_FIELDS.items())}>"


def with_bodies(touched: DataFrame) -> DataFrame:
    """Every body a touched partition contributes, as one array of structs."""
    in_online_call = _bodies_if(
        "old IS NOT NULL AND size(online) > 0",
        _leader_and_isr("f.step_online", "sort_array(online)", _record("old"), is_new="false"),
        _metadata("f.step_online", _veiled_while_deleting("old")),
    )
    in_offline_call = _bodies_if(
        "size(removals) > 0 AND NOT queued",
        _leader_and_isr("f.step_offline", _TOLD_OF_LAST_RECORD, _record("shrunk"), is_new="false"),
        _leader_and_isr(
            "f.step_offline", _TOLD_OF_RECORD_BEFORE, _record_before_last(), is_new="false"
        ),
        _metadata("f.step_offline", _record("shrunk")),
    )
    in_partition_call = _bodies_if(
        "led",
        _leader_and_isr(
            "f.step_partitions", "sort_array(online)", _record("new"), is_new="initialized"
        ),
        _metadata("f.step_partitions", _record("new")),
    )
    bodies = f"concat({in_online_call}, {in_offline_call}, {_stops()}, {in_partition_call})"
    reaches_somebody = (
        f"IF(body.request = {text(UPDATE_METADATA)}, f.has_receivers, size(body.recipients) > 0)"
    )
    return touched.selectExpr("*", f"filter({bodies}, body -> {reaches_somebody}) AS bodies")


def _body(**fields: str) -> str:
    return struct(
        **{
            name: f"CAST({fields[name]} AS {kind})" if name in fields else null(kind)
            for name, kind in _BODY_FIELDS.items()
        }
    )


def _bodies_if(condition: str, *bodies: str) -> str:
    return f"IF({condition}, array({', '.join(bodies)}), CAST(array() AS ARRAY<{_BODY}>))"


def _record(name: str) -> dict[str, str]:
    return {field: f"{name}.{field}" for field in RECORD}


def _veiled_while_deleting(name: str) -> dict[str, str]:
    """What UpdateMetadata shows of a record: hardly anything while its topic is being deleted."""
    veil = {"leader": LEADER_DURING_DELETE, "leader_epoch": 0, "partition_epoch": 0}
    return {
        field: f"IF(queued, {veil[field]}, {value})" if field in veil else value
        for field, value in _record(name).items()
    }


def _leader_and_isr(step: str, recipients: str, record: dict[str, str], *, is_new: str) -> str:
    recovery = f"IF(f.has_recovery, {record['recovery']}, NULL)"
    return _body(
        step=step,
        request=text(LEADER_AND_ISR),
        recipients=recipients,
        is_new=is_new,
        **{**record, "recovery": recovery},
    )


def _metadata(step: str, record: dict[str, str]) -> str:
    shown = {field: value for field, value in record.items() if field != "recovery"}
    return _body(step=step, request=text(UPDATE_METADATA), **shown)


_LAST: Final = "get(removals, size(removals) - 1)"

# All replicas but the last one removed, which is not told of its own removal. Where that removal
# changed nothing, the record it was told before is the same one.
_TOLD_OF_LAST_RECORD: Final = f"""sort_array(filter(reachable,
    r -> r != {_LAST}.replica OR (size(removals) > 1 AND NOT {_LAST}.wrote)))"""

# The last one removed, told of the record before its own removal, if it was told at all.
_TOLD_OF_RECORD_BEFORE: Final = f"""filter(reachable,
    r -> r = {_LAST}.replica AND size(removals) > 1 AND {_LAST}.wrote)"""


def _record_before_last() -> dict[str, str]:
    before = "get(removals, size(removals) - 2)"
    return {
        **{
            field: f"{before}.{field}"
            for field in ("leader", "leader_epoch", "isr", "partition_epoch")
        },
        "controller_epoch": "f.epoch",
        "recovery": "old.recovery",
    }


def _stops() -> str:
    """StopReplica to every removed replica whose broker is still registered.

    Carries the leader epoch as it was before that replica's own removal; receivers of the same
    epoch share one body.
    """
    epoch = f"""CASE
        WHEN queued THEN {EPOCH_DURING_DELETE}
        WHEN old IS NULL THEN {NO_EPOCH}
        ELSE coalesce(get(removals, i).stop_epoch, old.leader_epoch) END"""
    stops = (
        f"filter(transform(removed, (r, i) -> {struct(r='r', epoch=epoch)}),"
        " stop -> array_contains(reachable, stop.r))"
    )
    receivers = f"transform(filter({stops}, stop -> stop.epoch = e), stop -> stop.r)"
    body = _body(
        step="f.step_offline",
        request=text(STOP_REPLICA),
        recipients=f"sort_array({receivers})",
        leader_epoch="e",
    )
    return (
        f"IF(size(removed) = 0, CAST(array() AS ARRAY<{_BODY}>),"
        f" transform(array_distinct(transform({stops}, stop -> stop.epoch)), e -> {body}))"
    )


def request_partitions(failover: Failover) -> DataFrame:
    to_replicas = f"request = {text(LEADER_AND_ISR)}"
    healthy = failover.healthy.selectExpr(
        *PARTITION_KEY,
        "f.step_online AS step",
        "f.has_recovery",
        "replicas",
        "adding",
        "removing",
        *RECORD,
        f"explode(array({text(LEADER_AND_ISR)}, {text(UPDATE_METADATA)})) AS request",
    )
    touched = failover.touched.selectExpr(
        *PARTITION_KEY,
        "replicas",
        "adding",
        "removing",
        "online",
        "explode(bodies) AS body",
    )
    with_assignment = f"body.request = {text(LEADER_AND_ISR)}"
    stops = f"body.request = {text(STOP_REPLICA)}"
    offline = "filter(replicas, r -> NOT array_contains(online, r))"
    return select(
        healthy,
        REQUEST_PARTITIONS,
        step="step",
        request="request",
        recipients=f"IF({to_replicas}, sort_array(replicas), NULL)",
        adding=f"IF({to_replicas}, adding, NULL)",
        removing=f"IF({to_replicas}, removing, NULL)",
        offline_replicas=f"IF({to_replicas}, NULL, {NO_IDS})",
        is_new=f"IF({to_replicas}, false, NULL)",
        replicas="replicas",
        **{
            **{name: name for name in RECORD},
            "recovery": f"IF({to_replicas} AND has_recovery, recovery, NULL)",
        },
    ).unionAll(
        select(
            touched,
            REQUEST_PARTITIONS,
            replicas=f"IF({stops}, NULL, replicas)",
            adding=f"IF({with_assignment}, adding, NULL)",
            removing=f"IF({with_assignment}, removing, NULL)",
            offline_replicas=f"IF(body.request = {text(UPDATE_METADATA)}, {offline}, NULL)",
            delete_partition=f"IF({stops}, false, NULL)",
            **{name: f"body.{name}" for name in _BODY_FIELDS},
        )
    )


# --- Requests: the bodies counted and sized per receiver ----------------------------------------

_KINDS: Final = (LEADER_AND_ISR, UPDATE_METADATA, STOP_REPLICA)
_TO_ALL: Final = -1  # in place of a broker: the body goes to every broker of its step
# A topic as one number: its hash, and the length of its name (at most 249) in the lowest bits.
_NAME_MASK: Final = 0xFF
_TOPIC_NUMBER: Final = f"(xxhash64(topic) & {~_NAME_MASK}L | length(topic))"


def _packed_request(step: str, kind: str, broker: str | int) -> str:
    """A request as one number: its step, kind and receiver."""
    return f"shiftleft(CAST({step} * 4 + {kind} AS BIGINT), 32) | ({broker} & {0xFFFFFFFF}L)"


def _unpacked_request() -> tuple[str, str, str]:
    return (
        "CAST(shiftright(request, 34) AS INT) AS step",
        "CAST(shiftright(request, 32) & 3 AS INT) AS kind",
        "CAST(shiftright(shiftleft(request, 32), 32) AS INT) AS broker",
    )


def requests(failover: Failover, facts: DataFrame) -> DataFrame:
    """One row per request.

    Bodies are grouped by three numbers, not by names: the scenario's, the request's, the topic's.
    Rows with no topic stand for an UpdateMetadata that goes out even if no partition is in it.
    """
    per_topic = (
        _healthy_shares(failover.healthy)
        .unionAll(_touched_shares(failover.touched))
        .unionAll(_empty_metadata(failover.touched, facts))
        .groupBy("number", "request", "topic")
        .agg(F.expr("count(topic) AS partitions"), F.expr("sum(elements) AS elements"))
    )
    name = f"(topic & {_NAME_MASK})"
    per_request = (
        per_topic.groupBy("number", "request")
        .agg(
            F.expr("sum(partitions) AS partitions"),
            F.expr("sum(elements) AS elements"),
            F.expr("count(topic) AS topics"),
            F.expr(f"coalesce(sum({name}), 0) AS names"),
            F.expr(f"coalesce(sum({name} * partitions), 0) AS repeated_names"),
        )
        .selectExpr("*", *_unpacked_request())
    )
    known = facts.selectExpr(*SCENARIO_KEY, "brokers", "f", "f.number")
    versions = ", ".join(
        f"f.{name}" for name in
        ("leader_and_isr_version", "update_metadata_version", "stop_replica_version")
    )  # fmt: skip
    receivers = f"IF(broker = {_TO_ALL}, brokers, filter(brokers, b -> b.id = broker))"
    sent = (
        per_request.join(known.hint("broadcast"), on="number", how="inner")
        .selectExpr("*", f"get(array({versions}), kind) AS version")
        .selectExpr("*", f"{_layouts()}[kind * 100 + version] AS layout")
        .selectExpr("*", f"{_size()} AS bytes", f"explode({receivers}) AS receiver")
    )
    return select(
        sent,
        REQUESTS,
        step="step",
        request=f"get(array({', '.join(map(text, _KINDS))}), kind)",
        broker_id="receiver.id",
        broker_epoch="receiver.epoch",
        controller_id="f.controller_id",
        controller_epoch="f.epoch",
        version="version",
        partition_count="partitions",
        bytes="bytes",
    )


def _healthy_shares(healthy: DataFrame) -> DataFrame:
    """What each healthy partition adds to each request: one share per replica, one for metadata."""
    return healthy.selectExpr(
        "f.number AS number",
        "f.step_online AS step",
        f"{_TOPIC_NUMBER} AS topic",
        f"{_listed_in_leader_and_isr('size(isr)')} AS to_replica",
        "size(isr) + size(replicas) AS to_all",
        f"explode(concat(replicas, array({_TO_ALL}))) AS broker",
    ).selectExpr(
        "number",
        f"{_packed_request('step', f'IF(broker = {_TO_ALL}, 1, 0)', 'broker')} AS request",
        "topic",
        f"IF(broker = {_TO_ALL}, to_all, to_replica) AS elements",
    )


def _touched_shares(touched: DataFrame) -> DataFrame:
    isr = "size(body.isr)"
    metadata = f"{isr} + size(replicas)" + _since(
        "update_metadata_version",
        min(v for v in range(9) if request_sizes.update_metadata(v).offline_replicas),
        "size(replicas) - size(online)",
    )
    return (
        touched.selectExpr(
            "f", "topic", "replicas", "adding", "removing", "online", "explode(bodies) AS body"
        )
        .selectExpr(
            "f.number AS number",
            "body.step AS step",
            f"array_position(array({', '.join(map(text, _KINDS))}), body.request) - 1 AS kind",
            f"{_TOPIC_NUMBER} AS topic",
            f"CASE body.request WHEN {text(LEADER_AND_ISR)} THEN {_listed_in_leader_and_isr(isr)}"
            f" WHEN {text(UPDATE_METADATA)} THEN {metadata} ELSE 0 END AS elements",
            f"explode(coalesce(body.recipients, array({_TO_ALL}))) AS broker",
        )
        .selectExpr(
            "number",
            f"{_packed_request('step', 'kind', 'broker')} AS request",
            "topic",
            "elements",
        )
    )


def _empty_metadata(touched: DataFrame, facts: DataFrame) -> DataFrame:
    """The failover's first batch, and the offline call with a replica of a never-led partition."""
    first = facts.selectExpr("f.number AS number", f"{_FIRST_STEP} AS step")
    never_led = touched.where("old IS NULL AND size(removed) > 0").selectExpr(
        "f.number AS number", "f.step_offline AS step"
    )
    return first.unionAll(never_led).selectExpr(
        "number",
        f"{_packed_request('step', '1', _TO_ALL)} AS request",
        "CAST(NULL AS BIGINT) AS topic",
        "0 AS elements",
    )


def _listed_in_leader_and_isr(isr: str) -> str:
    """Broker ids in the lists of a LeaderAndIsr body."""
    return f"{isr} + size(replicas)" + _since(
        "leader_and_isr_version",
        min(v for v in range(8) if request_sizes.leader_and_isr(v).reassignment_lists),
        "size(adding) + size(removing)",
    )


def _since(version: str, first: int, count: str) -> str:
    return f" + IF(f.{version} >= {first}, {count}, 0)"


def _layouts() -> str:
    """The wire format of every kind and version of request, by kind * 100 + version."""
    entries = (
        f"{kind * 100 + version}, {struct(**_numbers(request_sizes.FORMATS[request](version)))}"
        for kind, request in enumerate(_KINDS)
        for version in range(request_sizes.NEWEST_VERSION[request] + 1)
    )
    return f"map({', '.join(entries)})"


def _numbers(layout: request_sizes.Coefficients) -> dict[str, str]:
    return {name: str(value).lower() for name, value in layout._asdict().items()}


def _size() -> str:
    names = "IF(layout.names_per_partition, repeated_names, names + topics * layout.per_topic)"
    described = (
        "aggregate(brokers, 0, (total, b) -> total"
        f" + coalesce(length(b.endpoints), {request_sizes.UNKNOWN_ENDPOINTS})"
        " + coalesce(length(b.rack), 0))"
    )
    live_brokers = (
        "CASE kind WHEN 0 THEN layout.per_live_broker * least(partitions, size(brokers))"
        f" WHEN 1 THEN layout.per_live_broker * size(brokers) + {described} ELSE 0 END"
    )
    return (
        f"layout.base + {names} + partitions * layout.per_partition"
        f" + elements * {request_sizes.ELEMENT} + {live_brokers}"
    )
