"""The native form in two calls: what a failover knows, then every output table of it."""

from __future__ import annotations

from typing import Final, NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from understudy.controller import native_facts, native_failover, native_requests, native_tables

_BROADCAST_ROWS: Final = 1_000_000


class Known(NamedTuple):
    """What scenarios know of their clusters; both frames are small and kept in memory."""

    facts: DataFrame  # one row per scenario
    exceptions: DataFrame  # the few topics that are not like the others
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
    exceptions, held = _small(native_facts.topic_exceptions(topics, configs))
    mentioned = native_facts.mentions(partitions, exceptions)
    facts = native_facts.failover_facts(snapshots, brokers, configs, scenarios, mentioned)
    facts.persist()
    return Known(facts, exceptions, (facts, held))


def tables(partitions: DataFrame, known: Known) -> tuple[dict[str, DataFrame], DataFrame]:
    """Every output table, and the touched partitions they share, which are kept in memory."""
    failover = native_failover.decide(partitions, known.facts, known.exceptions)
    touched = failover.touched.transform(native_requests.with_bodies).persist()
    failover = failover._replace(touched=touched)
    return {
        # Written in this order: the one with the most stages first, so that others fill its gaps.
        "requests": native_requests.requests(failover, known.facts),
        "request_partitions": native_requests.request_partitions(failover),
        "transitions": native_tables.transitions(failover),
        "replica_states": native_tables.replica_states(failover),
        "partition_states": native_tables.partition_states(failover),
        "metadata_writes": native_tables.metadata_writes(failover),
        "decisions": native_tables.decisions(failover),
        "event_results": native_tables.event_results(failover),
    }, touched


def _small(frame: DataFrame) -> tuple[DataFrame, DataFrame]:
    """*frame* with the promise that it is small, where it is, and the frame to let go of.

    Spark cannot tell before it has run; without the promise it shuffles every partition to meet
    a handful of topics.
    """
    held = frame.persist()
    return (F.broadcast(held) if held.count() <= _BROADCAST_ROWS else held), held
