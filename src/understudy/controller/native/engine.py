"""The native form in two calls: what scenarios know, then every output table of them."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import reduce
from typing import Final, NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from understudy.controller.interpreted import RESUMED
from understudy.controller.native import clusters as knowing
from understudy.controller.native import failover, failure, shutdown
from understudy.controller.native import requests as sending
from understudy.controller.native import tables as telling
from understudy.controller.native.clusters import TopicExceptions
from understudy.controller.native.decided import Decided
from understudy.controller.native.failover_facts import failover_facts
from understudy.controller.native.running import settled_clusters, settled_partitions
from understudy.controller.native.sql import text
from understudy.controller.zk import BROKER_FAILURE, CONTROLLED_SHUTDOWN, FAILOVER
from understudy.names import SCENARIO_KEY, SNAPSHOT_KEY


class _Kind(NamedTuple):
    """An event of a running controller: what its scenarios know, and what they decide."""

    facts: Callable[[DataFrame, DataFrame], DataFrame]
    decide: Callable[..., Decided]


_OF_RUNNING: Final = {
    BROKER_FAILURE: _Kind(failure.failure_facts, failure.decide),
    CONTROLLED_SHUTDOWN: _Kind(shutdown.shutdown_facts, shutdown.decide),
}
KINDS: Final = (FAILOVER, *_OF_RUNNING)

_BROADCAST_ROWS: Final = 1_000_000
_FEW_TOPICS: Final = 64  # fewer than this are found faster in a list than by a join


class Known(NamedTuple):
    """What scenarios know of their clusters; the frames are small and kept in memory."""

    facts: dict[str, DataFrame]  # by kind of event, one row per scenario the native form takes
    clusters: DataFrame | None  # one row per snapshot, where an event needs it
    exceptions: TopicExceptions
    held: tuple[DataFrame, ...]  # the caller lets go of them

    def taken(self) -> DataFrame:
        """The scenarios the native form takes, and from where on others have to go on."""
        return reduce(
            DataFrame.unionAll, (_taken(kind, facts) for kind, facts in self.facts.items())
        )


class Native(NamedTuple):
    """Every output table, not yet computed, and what is kept in memory meanwhile."""

    tables: dict[str, DataFrame]
    decided: dict[str, Decided]  # by kind of event

    @property
    def held(self) -> tuple[DataFrame, ...]:
        return tuple(each.touched for each in self.decided.values())

    def followed_by(self, later: dict[str, DataFrame]) -> dict[str, DataFrame]:
        """The tables with the rows of *later* steps and of other scenarios."""
        joined = {name: table.unionAll(later[name]) for name, table in self.tables.items()}
        if FAILOVER in self.decided:
            rest = (each for kind, each in self.decided.items() if kind != FAILOVER)
            joined["metadata_writes"] = reduce(
                DataFrame.unionAll,
                map(telling.metadata_writes, rest),
                telling.metadata_writes(self.decided[FAILOVER], later["metadata_writes"]),
            )
        return joined


def is_a(kind: str) -> str:
    """Whether a scenario is a single event of this kind, as SQL text."""
    return f"size(events) = 1 AND get_json_object(events[0], '$.type') = {text(kind)}"


def known(
    kinds: Collection[str],
    *,
    snapshots: DataFrame,
    brokers: DataFrame,
    topics: DataFrame,
    partitions: DataFrame,
    configs: DataFrame,
    scenarios: DataFrame,
) -> Known:
    """What every scenario that is a single event of these *kinds* knows."""
    held = knowing.topic_exceptions(topics, configs).persist()
    exceptions = _measured(held)
    mentioned = knowing.mentions(partitions, exceptions)
    clusters: DataFrame | None = None
    facts: dict[str, DataFrame] = {}
    if any(kind in _OF_RUNNING for kind in kinds):
        clusters = settled_clusters(
            knowing.with_cluster(
                snapshots, brokers, configs, mentioned=mentioned, exceptions=exceptions
            )
        ).persist()
        for kind in (kind for kind in kinds if kind in _OF_RUNNING):
            found = _OF_RUNNING[kind].facts(clusters, scenarios.where(is_a(kind)))
            facts[kind] = found.persist()
    if FAILOVER in kinds:
        failovers = failover_facts(
            snapshots,
            brokers,
            configs,
            scenarios.where(is_a(FAILOVER)),
            mentioned=mentioned,
            exceptions=exceptions,
        )
        facts[FAILOVER] = failovers.persist()
    normal = {kind: each.where("NOT is_odd") for kind, each in facts.items()}
    also_held = () if clusters is None else (clusters,)
    return Known(normal, clusters, exceptions, (*facts.values(), *also_held, held))


def tables(
    partitions: DataFrame, brokers: DataFrame, known: Known, *, changed_only: bool
) -> Native:
    """Every output table; the partitions a failover takes up again have no state rows yet."""
    decided: dict[str, Decided] = {}
    if FAILOVER in known.facts:
        decided[FAILOVER] = failover.decide(
            partitions, known.facts[FAILOVER], known.exceptions, changed_only=changed_only
        )
    if known.clusters is not None:
        settled = settled_partitions(partitions, known.clusters, known.exceptions)
        for kind in (kind for kind in known.facts if kind in _OF_RUNNING):
            decided[kind] = _OF_RUNNING[kind].decide(
                settled, known.facts[kind], changed_only=changed_only
            )

    def of_all(table: Callable[[Decided], DataFrame]) -> DataFrame:
        return reduce(DataFrame.unionAll, map(table, decided.values()))

    return Native(
        {
            # Written in this order: the one with the most stages first, so that others fill its
            # gaps.
            "requests": of_all(lambda each: sending.requests(each, brokers)),
            "request_partitions": of_all(sending.request_partitions),
            "transitions": of_all(telling.transitions),
            "replica_states": of_all(telling.replica_states),
            "partition_states": of_all(telling.partition_states),
            "metadata_writes": of_all(telling.metadata_writes),
            "decisions": of_all(telling.decisions),
            "event_results": of_all(telling.event_results),
            "broker_states": of_all(telling.broker_states),
        },
        decided,
    )


def _taken(kind: str, facts: DataFrame) -> DataFrame:
    """Of a failover others replay what comes after the start-up, where there is any."""
    resumes, resumed = "false", f"CAST(NULL AS {RESUMED})"
    if kind == FAILOVER:
        resumes, resumed = "resumes", "struct(f.steps, offline_order)"
    return facts.selectExpr(*SCENARIO_KEY, f"{resumes} AS resumes", f"{resumed} AS resumed")


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
