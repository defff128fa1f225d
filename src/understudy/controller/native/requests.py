"""The requests of a native replay: bodies per partition, requests per broker.

Requests are the bodies counted and sized per receiver.
"""

from __future__ import annotations

from functools import reduce
from typing import Final

from understudy.controller import request_sizes
from understudy.controller.native.bodies import BODY_FIELDS, veiled_while_deleting
from understudy.controller.native.clusters import CLUSTER_NUMBER
from understudy.controller.native.decided import RECORD, Decided, Starting
from understudy.controller.words import LEADER_AND_ISR, STOP_REPLICA, UPDATE_METADATA
from understudy.names import PARTITION_KEY, SCENARIO_KEY, SNAPSHOT_KEY
from understudy.schemas import REQUEST_PARTITIONS, REQUESTS
from understudy.sql import Rows, select, struct, text


def request_partitions(decided: Decided) -> Rows:
    bodies = [_touched_bodies(decided)]
    if decided.starting is not None:
        bodies.append(_told_to_starting(decided, decided.starting))
    return reduce(Rows.union, bodies)


# Whether brokers that start are told of a settled partition, beside the facts of their scenario.
_IS_TOLD: Final = "has_state AND f.step_told IS NOT NULL AND (NOT queued OR f.tells_queued)"


def _told_to_starting(decided: Decided, starting: Starting) -> Rows:
    about = decided.facts.select(*SCENARIO_KEY, "struck", "f")
    told = (
        starting.partitions.select("*", "array_except(replicas, online_before) AS offline")
        .join(about, SNAPSHOT_KEY, broadcast=True)
        .where(_IS_TOLD)
    )
    record = veiled_while_deleting({name: name for name in RECORD if name != "recovery"})
    return select(
        told,
        REQUEST_PARTITIONS,
        **decided.event,
        step="f.step_told",
        request=text(UPDATE_METADATA),
        replicas="replicas",
        offline_replicas="IF(size(offline) = 0, offline, array_except(offline, struck))",
        **record,
    )


def _touched_bodies(decided: Decided) -> Rows:
    each = decided.touched.select(
        *PARTITION_KEY,
        "replicas",
        "adding",
        "removing",
        "online",
        "explode(bodies) AS body",
    )
    with_assignment = f"body.request = {text(LEADER_AND_ISR)}"
    stops = f"body.request = {text(STOP_REPLICA)}"
    offline = "array_except(replicas, online)"
    return select(
        each,
        REQUEST_PARTITIONS,
        **decided.event,
        replicas=f"IF({stops}, NULL, replicas)",
        adding=f"IF({with_assignment}, adding, NULL)",
        removing=f"IF({with_assignment}, removing, NULL)",
        offline_replicas=f"IF(body.request = {text(UPDATE_METADATA)}, {offline}, NULL)",
        delete_partition=f"IF({stops}, false, NULL)",
        **{name: f"body.{name}" for name in BODY_FIELDS},
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


def receivers(brokers: Rows) -> Rows:
    """Every registered broker twice: for requests to itself, and for those to all."""
    return brokers.where("alive").select(
        f"{CLUSTER_NUMBER} AS cluster_number", "broker_id", "broker_epoch", _ITSELF_AND_ALL
    )


_ITSELF_AND_ALL: Final = f"explode(array(broker_id, {_TO_ALL})) AS broker"


def requests(decided: Decided, brokers: Rows) -> Rows:
    """One row per request.

    Bodies are grouped by three numbers, not by names: the scenario's, the request's, the topic's.
    Rows with no topic stand for an UpdateMetadata that goes out even if no partition is in it.
    """
    shares = [] if decided.healthy is None else [_healthy_shares(decided.healthy)]
    shares += [_touched_shares(decided.touched), _empty_metadata(decided.told_nothing)]
    if decided.starting is not None:
        shares += _shares_of_starting(decided, decided.starting)
    per_topic = reduce(Rows.union, shares).grouped(
        ("number", "request", "topic"),
        "sum(partitions) AS partitions",
        "sum(elements) AS elements",
    )
    name = f"(topic & {_NAME_MASK})"
    per_request = per_topic.grouped(
        ("number", "request"),
        "sum(partitions) AS partitions",
        "sum(elements) AS elements",
        "count(topic) AS topics",
        f"coalesce(sum({name}), 0) AS names",
        f"coalesce(sum({name} * partitions), 0) AS repeated_names",
    ).select("*", *_unpacked_request())
    known = decided.facts.select(*SCENARIO_KEY, "gone", "f", "f.number", "f.cluster_number")
    versions = ", ".join(
        f"f.{name}" for name in
        ("leader_and_isr_version", "update_metadata_version", "stop_replica_version")
    )  # fmt: skip
    sized = (
        per_request.join(known, ("number",), broadcast=True)
        .select("*", f"get(array({versions}), kind) AS version")
        .select("*", f"{_layouts()}[kind * 100 + version] AS layout")
        .select("*", f"{_size()} AS bytes")
    )
    return select(
        _sent(sized, decided, brokers),
        REQUESTS,
        **decided.event,
        step="step",
        request=f"get(array({', '.join(map(text, _KINDS))}), kind)",
        broker_id="broker_id",
        broker_epoch="broker_epoch",
        controller_id="f.controller_id",
        controller_epoch="f.epoch",
        version="version",
        partition_count="partitions",
        bytes="bytes",
    )


def _sent(sized: Rows, decided: Decided, brokers: Rows) -> Rows:
    """Each request beside each of its receivers.

    Of a start-up, only those that were there get the first one, and only those that start the next.
    """
    sent = sized.join(receivers(brokers), ("cluster_number", "broker"), broadcast=True).where(
        "NOT array_contains(gone, broker_id)"
    )
    if decided.starting is None:
        return sent
    to_starting = sized.join(
        decided.starting.brokers.select("*", _ITSELF_AND_ALL), ("number", "broker"), broadcast=True
    )
    columns = ("step", "kind", "version", "bytes", "partitions", "broker_id", "broker_epoch")
    return (
        sent.where("step != f.step_told")
        .select(*SCENARIO_KEY, "f", *columns)
        .union(to_starting.where("step != f.step_known").select(*SCENARIO_KEY, "f", *columns))
    )


def _healthy_shares(healthy: Rows) -> Rows:
    """What each healthy partition adds to each request: one share per replica, one for metadata."""
    return healthy.unfolded(
        f"concat(replicas, array({_TO_ALL}))",
        "f.number AS number",
        "f.step_online AS step",
        f"{_TOPIC_NUMBER} AS topic",
        f"{_listed_in_leader_and_isr('size(isr)')} AS to_replica",
        "size(isr) + size(replicas) AS to_all",
    ).select(
        "number",
        f"{_packed_request('step', f'IF(item = {_TO_ALL}, 1, 0)', 'item')} AS request",
        "topic",
        "1 AS partitions",
        f"IF(item = {_TO_ALL}, to_all, to_replica) AS elements",
    )


def _touched_shares(touched: Rows) -> Rows:
    isr = "size(body.isr)"
    metadata = f"{isr} + size(replicas){_if_offline_is_told('size(replicas) - size(online)')}"
    return (
        touched.select(
            "f", "topic", "replicas", "adding", "removing", "online", "explode(bodies) AS body"
        )
        .unfolded(
            f"coalesce(body.recipients, array({_TO_ALL}))",
            "f.number AS number",
            "body.step AS step",
            f"array_position(array({', '.join(map(text, _KINDS))}), body.request) - 1 AS kind",
            f"{_TOPIC_NUMBER} AS topic",
            f"CASE body.request WHEN {text(LEADER_AND_ISR)} THEN {_listed_in_leader_and_isr(isr)}"
            f" WHEN {text(UPDATE_METADATA)} THEN {metadata} ELSE 0 END AS elements",
        )
        .select(
            "number",
            f"{_packed_request('step', 'kind', 'item')} AS request",
            "topic",
            "1 AS partitions",
            "elements",
        )
    )


def _shares_of_starting(decided: Decided, starting: Starting) -> list[Rows]:
    """What brokers that start are told, by topic as it was before, and what has come back since.

    So the work follows topics and touched partitions, not scenarios times partitions.
    """
    request = f"{_packed_request('f.step_told', '1', _TO_ALL)} AS request"
    before = starting.partitions.where("has_state").grouped(
        ("cluster_number", "topic", "queued"),
        "count(*) AS partitions",
        "sum(size(isr) + size(replicas)) AS listed",
        "sum(size(replicas) - size(online_before)) AS offline",
    )
    about = decided.facts.select("f.cluster_number AS cluster_number", "f")
    told = before.select("*", "true AS has_state").join(about, ("cluster_number",), broadcast=True)
    return [
        told.where(_IS_TOLD).select(
            "f.number AS number",
            request,
            f"{_TOPIC_NUMBER} AS topic",
            "partitions",
            f"listed{_if_offline_is_told('offline')} AS elements",
        ),
        decided.touched.where("old IS NOT NULL AND size(returning) > 0").select(
            "f.number AS number",
            request,
            f"{_TOPIC_NUMBER} AS topic",
            "0 AS partitions",
            f"0{_if_offline_is_told('-size(returning)')} AS elements",
        ),
    ]


def _empty_metadata(told_nothing: Rows) -> Rows:
    return told_nothing.select(
        "number",
        f"{_packed_request('step', '1', _TO_ALL)} AS request",
        "CAST(NULL AS BIGINT) AS topic",
        "0 AS partitions",
        "0 AS elements",
    )


def _listed_in_leader_and_isr(isr: str) -> str:
    """Broker ids in the lists of a LeaderAndIsr body."""
    return f"{isr} + size(replicas)" + _since(
        "leader_and_isr_version",
        min(v for v in range(8) if request_sizes.leader_and_isr(v).reassignment_lists),
        "size(adding) + size(removing)",
    )


def _if_offline_is_told(count: str) -> str:
    return _since(
        "update_metadata_version",
        min(v for v in range(9) if request_sizes.update_metadata(v).offline_replicas),
        count,
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
    live_brokers = (
        "CASE kind WHEN 0 THEN layout.per_live_broker * least(partitions, f.live_brokers)"
        " WHEN 1 THEN layout.per_live_broker * f.live_brokers + f.described_brokers ELSE 0 END"
    )
    return (
        f"layout.base + {names} + partitions * layout.per_partition"
        f" + elements * {request_sizes.ELEMENT} + {live_brokers}"
    )
