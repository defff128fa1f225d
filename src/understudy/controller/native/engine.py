"""The native form in two calls: what a failover knows, then every output table of it."""

from __future__ import annotations

from typing import Final, NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from understudy.controller.native import facts as knowing
from understudy.controller.native import failover as deciding
from understudy.controller.native import requests as sending
from understudy.controller.native import tables as telling
from understudy.controller.native.facts import TopicExceptions
from understudy.controller.native.failover import Failover
from understudy.names import SNAPSHOT_KEY

_BROADCAST_ROWS: Final = 1_000_000
_FEW_TOPICS: Final = 64  # fewer than this are found faster in a list than by a join


class Known(NamedTuple):
    """What scenarios know of their clusters; both frames are small and kept in memory."""

    facts: DataFrame  # one row per scenario
    exceptions: TopicExceptions
    held: tuple[DataFrame, ...]  # the caller lets go of them


def failovers(
    *,
    snapshots: DataFrame,
    brokers: DataFrame,
    topics: DataFrame,
    partitions: DataFrame,
    configs: DataFrame,
    scenarios: DataFrame,
) -> Known:
    """What every scenario that is a single ``controller_failover`` knows."""
    held = knowing.topic_exceptions(topics, configs).persist()
    exceptions = _measured(held)
    mentioned = knowing.mentions(partitions, exceptions)
    facts = knowing.failover_facts(
        snapshots, brokers, configs, scenarios, mentioned=mentioned, exceptions=exceptions
    )
    facts.persist()
    return Known(facts, exceptions, (facts, held))


def tables(partitions: DataFrame, known: Known) -> tuple[dict[str, DataFrame], Failover]:
    """Every output table, and the failover they show, whose touched partitions are kept in memory.

    The partitions whose reassignment or deletion is taken up afterwards have no state rows yet.
    """
    failover = deciding.decide(partitions, known.facts, known.exceptions)
    touched = failover.touched.transform(sending.with_bodies).persist()
    failover = failover._replace(touched=touched)
    return {
        # Written in this order: the one with the most stages first, so that others fill its gaps.
        "requests": sending.requests(failover, known.facts),
        "request_partitions": sending.request_partitions(failover),
        "transitions": telling.transitions(failover),
        "replica_states": telling.replica_states(failover),
        "partition_states": telling.partition_states(failover),
        "metadata_writes": telling.metadata_writes(failover),
        "decisions": telling.decisions(failover),
        "event_results": telling.event_results(failover),
        "broker_states": telling.broker_states(failover),
    }, failover


def _measured(topics: DataFrame) -> TopicExceptions:
    """The topics with the promise that they are few, where they are.

    Spark cannot tell before it has run; without the promise it shuffles every partition to meet
    a handful of topics.
    """
    counted = topics.groupBy(*SNAPSHOT_KEY).agg(
        F.count(F.lit(1)).alias("topics"), F.count_if("queued").alias("queued")
    )
    most = counted.agg(F.sum("topics").alias("topics"), F.max("queued").alias("queued")).first()
    total, queued = most or (0, 0)
    return TopicExceptions(
        F.broadcast(topics) if (total or 0) <= _BROADCAST_ROWS else topics,
        few_queued=(queued or 0) <= _FEW_TOPICS,
    )
