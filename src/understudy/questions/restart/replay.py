"""A plan played through the controller: what each round makes it write, elect and send.

In each round every broker asks for a controlled shutdown, all of them go down, come back, and their
replicas catch up. Where the broker of a ZooKeeper-mode controller is among them, a new controller
starts instead of seeing the others fail.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from understudy.questions.units import Cluster
from understudy.scenarios import Scenario

NAME: Final = "restart"
_AROUND: Final = 3  # going down, coming back, catching up


def scenario(cluster: Cluster, rounds: Sequence[Sequence[int]]) -> Scenario:
    controller = None if cluster.is_kraft else cluster.controller_id
    events: list[dict[str, Any]] = []
    for down in rounds:
        events += [{"type": "controlled_shutdown", "broker": broker} for broker in down]
        if controller in down:
            events.append({"type": "controller_failover", "dead": list(down)})
            controller = min(set(cluster.live) - set(down), default=None)
        else:
            events.append({"type": "broker_failure", "brokers": list(down)})
        events += [{"type": kind, "brokers": list(down)} for kind in ("broker_startup", "catch_up")]
    texts = tuple(json.dumps(event, sort_keys=True) for event in events)
    return Scenario(NAME, cluster.cluster, cluster.snapshot_id, texts)


def with_the_controller_last(
    cluster: Cluster, rounds: Sequence[tuple[int, ...]]
) -> list[tuple[int, ...]]:
    """A controller that is restarted early moves again when the next one's turn comes."""
    return sorted(rounds, key=lambda each: cluster.controller_id in each)


def by_round(tables: Mapping[str, DataFrame], rounds: Sequence[Sequence[int]]) -> DataFrame:
    """What each round is worth to the controller, as counts."""
    elections = tables["decisions"].selectExpr(
        "event",
        "IF(chosen IS NULL, 0L, 1L) AS elections",
        "0L AS writes",
        "0L AS requests",
        "0L AS bytes",
        "CAST(NULL AS INT) AS leader_epoch",
    )
    writes = tables["metadata_writes"].selectExpr("event", "0L", "1L", "0L", "0L", "leader_epoch")
    sent = tables["requests"].selectExpr("event", "0L", "0L", "1L", "bytes", "CAST(NULL AS INT)")
    return (
        elections.unionAll(writes)
        .unionAll(sent)
        .withColumn("round", F.expr(_round_of("event", rounds)))
        .groupBy("round")
        .agg(
            *(F.expr(f"sum({name}) AS {name}") for name in ("elections", "writes")),
            *(F.expr(f"sum({name}) AS {name}") for name in ("requests", "bytes")),
            F.expr("max(leader_epoch) AS highest_leader_epoch"),
        )
    )


def _round_of(event: str, rounds: Sequence[Sequence[int]]) -> str:
    """The number of the round an event belongs to."""
    last, ends = 0, []
    for down in rounds:
        last += len(down) + _AROUND
        ends.append(str(last))
    return f"1 + size(filter(array({', '.join(ends)}), last -> last < {event}))"


def outcome(states: DataFrame) -> DataFrame:
    """One row: how the partitions stand when all is done."""
    return states.agg(
        F.expr("count_if(size(isr) < size(isr_before)) AS smaller_isr"),
        F.expr("count_if(leader != leader_before) AS leaders_elsewhere"),
        F.expr("count_if(leader = -1 AND leader_before != -1) AS leaderless"),
        F.expr("max(leader_epoch - leader_epoch_before) AS most_leader_epochs"),
    )
