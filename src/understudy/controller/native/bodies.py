"""The bodies of requests that each touched partition contributes, per kind of event.

LeaderAndIsr and StopReplica bodies know their recipients; an UpdateMetadata body goes to every
broker of its step, so it has none.
"""

from __future__ import annotations

from typing import Final

from understudy.controller.native.decided import RECORD
from understudy.controller.words import (
    EPOCH_DURING_DELETE,
    LEADER_AND_ISR,
    LEADER_DURING_DELETE,
    NO_EPOCH,
    STOP_REPLICA,
    UPDATE_METADATA,
)
from understudy.sql import Rows, null, struct, text

BODY_FIELDS: Final = {
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
_BODY: Final = f"STRUCT<{', '.join(f'{name}: {kind}' for name, kind in BODY_FIELDS.items())}>"


def of_failover(touched: Rows) -> Rows:
    """``bodies`` of a failover: its online call, its offline call, its elections."""
    in_online_call = _bodies_if(
        "old IS NOT NULL AND size(online) > 0",
        _leader_and_isr("f.step_online", "sort_array(online)", _record("old"), is_new="false"),
        _metadata("f.step_online", veiled_while_deleting(_record("old"))),
    )
    in_offline_call = _bodies_if(
        "size(removals) > 0 AND NOT queued",
        _leader_and_isr("f.step_offline", _TOLD_OF_LAST_RECORD, _record("shrunk"), is_new="false"),
        _leader_and_isr(
            "f.step_offline", _TOLD_OF_RECORD_BEFORE, _record_before_last(), is_new="false"
        ),
        _metadata("f.step_offline", _record("shrunk")),
    )
    return _with_bodies(
        touched, in_online_call, in_offline_call, _stops("f.step_offline"), _of_election()
    )


def of_failure(touched: Rows) -> Rows:
    """``bodies`` of a broker failure; nothing reaches the brokers that failed."""
    in_offline_call = _bodies_if(
        "size(removals) > 0",
        _leader_and_isr("f.step_offline", "sort_array(reachable)", _record("new"), is_new="false"),
        _metadata("f.step_offline", _record("new")),
    )
    return _with_bodies(touched, _of_election(), in_offline_call)


def of_shutdown(touched: Rows) -> Rows:
    """``bodies`` of a controlled shutdown; the broker is told twice to stop what it follows."""
    to_online = "sort_array(array_except(reachable, offline_dirs))"
    election = _bodies_if(
        "led",
        _leader_and_isr("f.step_partitions", to_online, _record("risen"), is_new="false"),
        _metadata("f.step_partitions", _record("risen")),
    )
    to_others = "sort_array(array_remove(reachable, f.broker))"
    in_offline_call = _bodies_if(
        "size(removals) > 0",
        _leader_and_isr("f.step_offline", to_others, _record("new"), is_new="false"),
        _metadata("f.step_offline", _record("new")),
    )
    return _with_bodies(
        touched, election, _stops("f.step_stop"), in_offline_call, _stops("f.step_offline")
    )


def of_startup(touched: Rows) -> Rows:
    """``bodies`` of a broker start-up, but for what the brokers that start are told first."""
    in_online_call = _bodies_if(
        "old IS NOT NULL AND size(returning) > 0",
        _leader_and_isr("f.step_online", "sort_array(returning)", _record("old"), is_new="false"),
        _metadata("f.step_online", _record("old")),
    )
    return _with_bodies(touched, in_online_call, _of_election())


def of_never_led(touched: Rows, record: str) -> Rows:
    """Stopping a replica that has no *record* by then sends UpdateMetadata with nothing in it."""
    return touched.where(f"{record} IS NULL AND size(removed) > 0").select(
        "f.number AS number", "f.step_offline AS step"
    )


def _of_election() -> str:
    return _bodies_if(
        "led",
        _leader_and_isr(
            "f.step_partitions", "sort_array(online)", _record("risen"), is_new="initialized"
        ),
        _metadata("f.step_partitions", _record("risen")),
    )


def _with_bodies(touched: Rows, *bodies: str) -> Rows:
    """One array of structs with those that reach somebody."""
    reaches_somebody = (
        f"IF(body.request = {text(UPDATE_METADATA)}, f.has_receivers, size(body.recipients) > 0)"
    )
    every = f"concat({', '.join(bodies)})"
    return touched.select("*", f"filter({every}, body -> {reaches_somebody}) AS bodies")


def _body(**fields: str) -> str:
    return struct(
        **{
            name: f"CAST({fields[name]} AS {kind})" if name in fields else null(kind)
            for name, kind in BODY_FIELDS.items()
        }
    )


def _bodies_if(condition: str, *bodies: str) -> str:
    return f"IF({condition}, array({', '.join(bodies)}), CAST(array() AS ARRAY<{_BODY}>))"


def _record(name: str) -> dict[str, str]:
    return {field: f"{name}.{field}" for field in RECORD}


def veiled_while_deleting(record: dict[str, str]) -> dict[str, str]:
    """What UpdateMetadata shows of a record: hardly anything while its topic is being deleted."""
    veil = {"leader": LEADER_DURING_DELETE, "leader_epoch": 0, "partition_epoch": 0}
    return {
        field: f"IF(queued, {veil[field]}, {value})" if field in veil else value
        for field, value in record.items()
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
        **{field: f"{before}.{field}" for field in RECORD},
        "controller_epoch": "f.epoch",
    }


def _stops(step: str) -> str:
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
        step=step,
        request=text(STOP_REPLICA),
        recipients=f"sort_array({receivers})",
        leader_epoch="e",
    )
    return (
        f"IF(size(removed) = 0, CAST(array() AS ARRAY<{_BODY}>),"
        f" transform(array_distinct(transform({stops}, stop -> stop.epoch)), e -> {body}))"
    )
