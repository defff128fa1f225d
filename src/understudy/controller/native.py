"""The native form as one call: frames of snapshots in, frames of every output table out."""

from __future__ import annotations

from typing import NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from understudy.controller import native_facts, native_failover, native_requests, native_tables


class NativeReplay(NamedTuple):
    tables: dict[str, DataFrame]
    facts: DataFrame  # one small row per scenario
    held: tuple[DataFrame, ...]  # persisted; the caller lets go of them


def replay_failovers(
    *,
    snapshots: DataFrame,
    brokers: DataFrame,
    topics: DataFrame,
    partitions: DataFrame,
    configs: DataFrame,
    scenarios: DataFrame,
) -> NativeReplay:
    """Replay every scenario that is a single ``controller_failover``.

    What is read by every table, the facts and the touched partitions, is computed once and kept.
    """
    exceptions, held = _small(native_facts.topic_exceptions(topics, configs))
    mentioned = native_facts.mentions(partitions, exceptions)
    facts = native_facts.failover_facts(snapshots, brokers, configs, scenarios, mentioned).persist()
    failover = native_failover.decide(partitions, facts, exceptions)
    touched = failover.touched.transform(native_requests.with_bodies).persist()
    failover = failover._replace(touched=touched)
    tables = {
        # Written in this order: the one with the most stages first, so that others fill its gaps.
        "requests": native_requests.requests(failover, facts),
        "request_partitions": native_requests.request_partitions(failover),
        "transitions": native_tables.transitions(failover),
        "replica_states": native_tables.replica_states(failover),
        "partition_states": native_tables.partition_states(failover),
        "metadata_writes": native_tables.metadata_writes(failover),
        "decisions": native_tables.decisions(failover),
        "event_results": native_tables.event_results(failover),
    }
    return NativeReplay(tables, facts, (touched, facts, held))


_BROADCAST_ROWS = 1_000_000


def _small(frame: DataFrame) -> tuple[DataFrame, DataFrame]:
    """*frame* with the promise that it is small, where it is, and the frame to let go of.

    Spark cannot tell before it has run; without the promise it shuffles every partition to meet
    a handful of topics.
    """
    held = frame.persist()
    return (F.broadcast(held) if held.count() <= _BROADCAST_ROWS else held), held
