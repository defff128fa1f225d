"""The native form in two calls: what scenarios know, then every output table of them."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial, reduce
from typing import Final, NamedTuple

from pyspark.sql import DataFrame

from understudy.controller import elections_sql
from understudy.controller.interpreted import RESUMED
from understudy.controller.native import clusters as knowing
from understudy.controller.native import failover, failure, shutdown, startup
from understudy.controller.native import requests as sending
from understudy.controller.native import tables as telling
from understudy.controller.native.clusters import TopicExceptions
from understudy.controller.native.decided import Decided
from understudy.controller.native.failover_facts import failover_facts
from understudy.controller.native.running import settled_clusters, settled_partitions
from understudy.controller.native.sent_again import sent_again
from understudy.controller.zk.events import (
    BROKER_FAILURE,
    BROKER_STARTUP,
    CONTROLLED_SHUTDOWN,
    FAILOVER,
)
from understudy.frames import Tables, settled
from understudy.names import SCENARIO_KEY, SNAPSHOT_KEY
from understudy.sql import Rows, text


class _Kind(NamedTuple):
    """An event of a running controller: what its scenarios know, and what they decide."""

    facts: Callable[[Rows, Rows], Rows]
    decide: Callable[..., Decided]


_OF_RUNNING: Final = {
    BROKER_FAILURE: _Kind(failure.failure_facts, failure.decide),
    BROKER_STARTUP: _Kind(startup.startup_facts, startup.decide),
    CONTROLLED_SHUTDOWN: _Kind(shutdown.shutdown_facts, shutdown.decide),
}
KINDS: Final = (FAILOVER, *_OF_RUNNING)

_BROADCAST_ROWS: Final = 1_000_000
_FEW_TOPICS: Final = 64  # fewer than this are found faster in a list than by a join


class Known(NamedTuple):
    """What scenarios know of their clusters: small, and settled."""

    facts: dict[str, Rows]  # by kind of event, one row per scenario the native form takes
    clusters: Rows | None  # one row per snapshot, where an event needs it
    exceptions: TopicExceptions

    def taken(self) -> DataFrame:
        """The scenarios the native form takes, and from where on others have to go on."""
        return reduce(
            Rows.union, (_taken(kind, facts) for kind, facts in self.facts.items())
        ).frame()


class Native(NamedTuple):
    """Every output table, not yet computed, and the decisions they tell of."""

    tables: Tables
    decided: dict[str, Decided]  # by kind of event

    def keep(self, scenarios: int) -> tuple[DataFrame, ...]:
        """Keep what all tables of so many scenarios are made from."""
        return tuple(each.kept.keep(scenarios) for each in self.decided.values())

    def followed_by(self, later: Tables) -> Tables:
        """The tables with the rows of *later* steps and of other scenarios."""
        joined = self.tables.followed_by(later)
        if FAILOVER not in self.decided:
            return joined

        def metadata_writes() -> DataFrame:
            rest = (each for kind, each in self.decided.items() if kind != FAILOVER)
            behind = Rows.of(later["metadata_writes"])
            return reduce(
                Rows.union,
                map(telling.metadata_writes, rest),
                telling.metadata_writes(self.decided[FAILOVER], behind),
            ).frame()

        return joined.beside(Tables({"metadata_writes": metadata_writes}))


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
    about = (Rows.of(snapshots), Rows.of(brokers), Rows.of(configs))
    exceptions = _measured(knowing.topic_exceptions(Rows.of(topics), Rows.of(configs)).frame())
    mentioned = knowing.mentions(Rows.of(partitions), exceptions)
    clusters: Rows | None = None
    facts: dict[str, Rows] = {}

    def asked(kind: str) -> Rows:
        return Rows.of(scenarios).where(is_a(kind))

    if any(kind in _OF_RUNNING for kind in kinds):
        found = knowing.with_cluster(*about, mentioned=mentioned, exceptions=exceptions)
        clusters = _settled(settled_clusters(found))
        for kind in (kind for kind in kinds if kind in _OF_RUNNING):
            facts[kind] = _settled(_OF_RUNNING[kind].facts(clusters, asked(kind)))
    if FAILOVER in kinds:
        facts[FAILOVER] = _settled(
            failover_facts(*about, asked(FAILOVER), mentioned=mentioned, exceptions=exceptions)
        )
    normal = {kind: each.where("NOT is_odd") for kind, each in facts.items()}
    return Known(normal, clusters, exceptions)


def tables(
    partitions: DataFrame, brokers: DataFrame, known: Known, *, changed_only: bool
) -> Native:
    """Every output table; the partitions a failover takes up again have no state rows yet."""
    elections_sql.register(partitions.sparkSession)
    decided: dict[str, Decided] = {}
    if FAILOVER in known.facts:
        decided[FAILOVER] = failover.decide(
            Rows.of(partitions), known.facts[FAILOVER], known.exceptions, changed_only=changed_only
        )
    if known.clusters is not None:
        # What many scenarios touch is many times what is read, which may be a single file.
        every = Rows.of(partitions).spread("topic", "partition")
        at_rest = settled_partitions(every, known.clusters, known.exceptions)
        for kind in (kind for kind in known.facts if kind in _OF_RUNNING):
            decided[kind] = _OF_RUNNING[kind].decide(
                at_rest, known.facts[kind], changed_only=changed_only
            )

    def of_all(table: Callable[[Decided], Rows]) -> DataFrame:
        return reduce(Rows.union, map(table, decided.values())).frame()

    told: dict[str, Callable[[Decided], Rows]] = {
        # Written in this order: those with the most stages first, so that others fill their gaps.
        "requests": partial(sending.requests, brokers=Rows.of(brokers)),
        "metadata_writes": telling.metadata_writes,
        "request_partitions": sending.request_partitions,
        "transitions": telling.transitions,
        "replica_states": telling.replica_states,
        "partition_states": telling.partition_states,
        "decisions": telling.decisions,
        "event_results": telling.event_results,
        "broker_states": telling.broker_states,
    }
    passes = [
        sent_again(each.healthy, with_states=not changed_only)
        for each in decided.values()
        if each.healthy is not None
    ]
    made = {name: partial(of_all, table) for name, table in told.items()}
    return Native(Tables(made, passes), decided)


def _taken(kind: str, facts: Rows) -> Rows:
    """Of a failover others replay what comes after the start-up, where there is any."""
    resumes, resumed = "false", f"CAST(NULL AS {RESUMED})"
    if kind == FAILOVER:
        resumes, resumed = "resumes", "struct(f.steps, offline_order)"
    return facts.select(*SCENARIO_KEY, f"{resumes} AS resumes", f"{resumed} AS resumed")


def _settled(rows: Rows) -> Rows:
    """They are few, as many as snapshots or scenarios, and go to every executor anyway."""
    return Rows.of(settled(rows.frame()))


def _measured(topics: DataFrame) -> TopicExceptions:
    """The topics, sent along where they are few.

    Spark cannot tell before it has run; it would shuffle every partition to meet a handful of
    topics.
    """
    import pyarrow.compute as pc  # noqa: PLC0415 - importing the package must not load it

    found = topics.limit(_BROADCAST_ROWS + 1).toArrow()
    if found.num_rows > _BROADCAST_ROWS:
        return TopicExceptions(Rows.of(topics), few_queued=False)
    queued = found.filter(pc.field("queued")).group_by(list(SNAPSHOT_KEY))
    most = pc.max(queued.aggregate([("topic", "count")])["topic_count"]).as_py() or 0
    return TopicExceptions(Rows.of(settled(topics, found)), few_queued=most <= _FEW_TOPICS)
