"""Facts of reports, made by hand."""

from __future__ import annotations

from typing import Any

NASTY = [
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(1)>",
    '" onmouseover="alert(1)',
    "' onload='alert(1)",
    "</style></title></table><!-- ",
    "&lt;b&gt; &#x3c;",
    "a\x00b\x1b[31m\ud800",
]


def found(*rows: dict[str, Any], count: int | None = None) -> dict[str, Any]:
    return {"count": len(rows) if count is None else count, "first": list(rows)}


def scenario(name: str, brokers: list[int], **more: object) -> dict[str, Any]:
    return {
        "cluster": "c",
        "snapshot_id": "s1",
        "scenario": name,
        "verdict": "unsafe",
        "unavailable": 3,
        "full_acks_produce_unavailable": 5,
        "unclean": 0,
        "newly_at_min_isr": 1,
        "leaders_moved": 12,
        "reason": "3 partitions lose their leader",
        "brokers": brokers,
        **more,
    }


def broker(broker_id: int, rack: str | None, sent: int | None = 1000) -> dict[str, Any]:
    return {
        "broker_id": broker_id,
        "rack": rack,
        "leaders_before": 10,
        "leaders": 7 + broker_id,
        "leader_and_isr_bytes": sent,
        "update_metadata_bytes": sent,
        "stop_replica_bytes": sent,
    }


def what_if(name: str = "orders", **changes: object) -> dict[str, Any]:
    """Facts with *name* wherever a name of a cluster can stand."""
    worst = scenario(f"rack:{name}", [1, 2], cluster=name, snapshot_id=name, reason=name)
    pair = scenario("pair:1,2", [1, 2])
    at_risk = {
        "cluster": name,
        "snapshot_id": name,
        "topic": name,
        "partition": 7,
        "scenario": f"rack:{name}",
        "leader_before": 1,
        "leader": -1,
        "isr": [1],
        "risks": ["unavailable"],
        "reason": name,
    }
    return {
        "run_id": "r1",
        "verdict": "unsafe",
        "notes": [name],
        "scenarios": {"count": 41, "first": [worst]},
        "snapshots": 1,
        "several": [],
        "verdicts": {"unsafe": 40, "cannot-decide": 0, "warnings": 0, "safe": 1},
        "risks": {
            "rf1_offline": 0,
            "unavailable": 40,
            "full_acks_produce_unavailable": 40,
            "acks1_data_loss": 41,
        },
        "internal_topics": [name],
        "at_risk": {**found(at_risk, count=1234), "topic": name},
        "worst": found(worst, count=41),
        "focus": {"cluster": name, "snapshot_id": name, "scenario": f"rack:{name}"},
        "brokers": found(broker(1, name), broker(2, None)),
        "pairs": {**found(pair), "brokers": 2, "ids": [1, 2], "cells": [pair]},
        "recovery": found(
            {
                "topic": name,
                "partition": 0,
                "brokers": [],
                "condition": name,
                "unclean_choice": 2,
                "records_at_risk_reason": name,
            }
        ),
        "cut_sets": found(
            {
                "risk": "unavailable",
                "k": 1,
                "brokers": [1, 2],
                "units": [name],
                "partitions": 3,
                "topics": 1,
            }
        ),
        "rounds": found(
            {
                "round": 1,
                "brokers": [1, 2],
                "partitions": 9,
                "at_min_isr": 2,
                "spare": 0,
                "topic": name,
                "partition": 3,
            }
        ),
        "moves": found({"topic": name, "partition": 1, "from_broker": 1, "to_broker": 2}),
        "plan": {"verdict": "no", "notes": [f"any restart blocks 7 partitions of {name}"]},
        **changes,
    }


def audit(name: str = "orders", **changes: object) -> dict[str, Any]:
    """Facts of audits with *name* wherever a name of a cluster can stand."""
    about = {"cluster": name, "topic": name, "partition": 4, "broker_id": None, "rule": "offline"}
    counts = {"errors": 2, "warnings": 1, "infos": 0, "silenced": 3}
    rules = ("offline", "under-min-isr", "under-replicated", "at-min-isr")
    more = ("last-replica-standing", "one-failure-from-offline")
    history = [
        {
            "cluster": name,
            "snapshot_id": name,
            "taken_at": taken,
            **dict.fromkeys((*rules, *more, "broker-down", "brokers_up"), n),
            **dict.fromkeys(("leader_moves", "unclean_moves"), n),
        }
        for n, taken in enumerate(("2026-03-01 09:00", "2026-03-01 09:30", None))
    ]
    return {
        "run_id": "r1",
        "verdict": "fails",
        "snapshots": 6,
        **counts,
        "clusters": found(
            {"cluster": name, "snapshots": 3, "incomplete": 0, **counts},
            {"cluster": "other", "snapshots": 3, "incomplete": 0, **counts},
        ),
        "history": history,
        "rules": [
            {
                "severity": "error",
                "rule": "offline",
                "findings": 2,
                "snapshots": 1,
                "partitions": 2,
                "says": "No leader.",
            }
        ],
        "findings": found(
            {**about, "severity": "error", "taken_at": "2026-03-01T09:00:00Z", "evidence": name},
            count=99,
        ),
        "topics": found({"cluster": name, "topic": name, **counts}),
        "brokers": found({"cluster": name, "broker_id": 3, **counts}),
        "racks": found({"cluster": name, "rack": name, **counts}),
        "exposure": found(
            {**about, "snapshots": 2, "since": "2026-03-01T09:00:00Z", "until": None}
        ),
        "exposed": {
            key: found(
                {**about, key: name, "partitions": 1, "snapshots": 2, "first": name, "last": name}
            )
            for key in ("topic", "rack")
        },
        "changes": [{"reason": name, "changes": 4, "partitions": 2, "leaders": 1}],
        "divergences": found(
            {
                **about,
                "taken_at": "2026-03-01T09:00:00Z",
                **dict.fromkeys(("field", "predicted", "recorded", "reason"), name),
            }
        ),
        **changes,
    }
