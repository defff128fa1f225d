"""Runs one scenario over one KRaft snapshot and gives the rows of every output table.

The twin of ``interpreter`` for the quorum controller, which has no state machines and sends no
requests: those tables stay empty.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from understudy.controller.journal import Row
from understudy.controller.kraft.brokers import Registration, in_kafka_order
from understudy.controller.kraft.cluster import Cluster, Setting
from understudy.controller.kraft.events import QuorumController
from understudy.controller.kraft.journal import KraftJournal, partition_columns
from understudy.controller.kraft.partitions import MIGRATING, Partition
from understudy.controller.kraft.releases import Rules
from understudy.controller.kraft.words import (
    CHANGED,
    CREATED,
    MEMBERS_LEFT,
    MIN_ISR_SETTING,
    RECORD_CHANGED,
    REPLICAS_CHANGED,
    TOPIC_CREATED,
)
from understudy.controller.records import TopicPartition
from understudy.controller.scope import Event
from understudy.controller.snapshot_rows import CanonicalRow, SnapshotRows
from understudy.controller.words import (
    DELETED,
    ELECTED,
    ELECTED_UNCLEAN,
    ISR_CHANGED,
    ISR_SHRUNK,
    NO_LEADER,
    OFFLINE,
    REASSIGNED,
    REPORTED,
    TOPIC_GONE,
    UNCHANGED,
    UNCLEAN_OFF,
    UNCLEAN_SETTING,
)

Before = dict[TopicPartition, Partition]

_NOT_IN_KRAFT: Final = ("replica_states", "transitions", "requests", "request_partitions")

FIRST_REPLICAS: Final = "first_replicas"
"""Of a row of ``partitions``: how many replicas its topic's first partition has, where that row may
be missing."""


def replay(rows: SnapshotRows, events: Iterable[Event]) -> dict[str, list[Row]]:
    """The rows of every output table, without the keys of the scenario."""
    cluster = load(rows)
    before = dict(cluster.all_partitions())
    never_led = {_key(row) for row in rows.partitions if not row["has_state"]}
    journal = KraftJournal()
    controller = QuorumController(cluster, journal)
    for event in events:
        controller.process(event)
    tables: dict[str, list[Row]] = {name: [] for name in _NOT_IN_KRAFT}
    return tables | {
        "partition_states": _partition_states(cluster, journal, before, never_led),
        "metadata_writes": journal.metadata_writes,
        "decisions": journal.decisions,
        "event_results": journal.event_results,
        "broker_states": [
            (b.broker_id, b.epoch, b.fenced, b.shutting_down, b.rack, b.directories)
            for _, b in sorted(cluster.brokers.items())
        ],
    }


# --- From canonical rows -----------------------------------------------------------------------


def load(rows: SnapshotRows) -> Cluster:
    """The controller's knowledge of a snapshot, before any event."""
    snapshot = rows.snapshot
    cluster = Cluster(
        rules=Rules.of(
            snapshot["release"],
            snapshot["metadata_version"],
            elr_enabled=bool(snapshot["elr_enabled"]),
        ),
        controller_id=snapshot["controller_id"],
        unclean=_setting(rows.configs, UNCLEAN_SETTING),
        min_isr=_setting(rows.configs, MIN_ISR_SETTING),
    )
    for broker in rows.brokers:
        cluster.register(_registration(broker))
    for row in sorted(rows.partitions, key=_key):
        cluster.put(_key(row), _partition(row))
        if (replicas := row.get(FIRST_REPLICAS)) is not None:
            cluster.first_replicas[row["topic"]] = replicas
    return cluster


def _setting(configs: Iterable[CanonicalRow], key: str) -> Setting:
    setting = Setting()
    for config in configs:
        if config["key"] != key:
            continue
        scope, value = config["scope"], config["value"]
        if scope == "topic":
            setting.by_topic[config["name"]] = value
        elif scope == "broker":
            setting.by_broker[int(config["name"])] = value
        elif scope == "cluster":
            setting.cluster = value
        else:
            setting.static = value
    return setting


def _registration(row: CanonicalRow) -> Registration:
    return Registration(
        row["broker_id"],
        row["broker_epoch"] or 0,
        bool(row["fenced"]),
        bool(row["shutting_down"]),
        row["rack"],
        in_kafka_order(row["log_dirs"] or ()),
    )


def _key(row: CanonicalRow) -> TopicPartition:
    return row["topic"], row["partition"]


def _partition(row: CanonicalRow) -> Partition:
    replicas = tuple(row["replicas"])
    partition = Partition(
        replicas,
        tuple(row["directories"] or ()) or (MIGRATING,) * len(replicas),
        isr=tuple(row["isr"] or ()),
        adding=tuple(row["adding"] or ()),
        removing=tuple(row["removing"] or ()),
    )
    if not row["has_state"]:
        return partition
    return partition._replace(
        leader=row["leader"],
        leader_epoch=row["leader_epoch"],
        partition_epoch=row["partition_epoch"],
        recovery=row["recovery"],
        elr=tuple(row["elr"] or ()),
        last_known_elr=tuple(row["last_known_elr"] or ()),
    )


# --- To rows of partition_states ---------------------------------------------------------------


def _partition_states(
    cluster: Cluster, journal: KraftJournal, before: Before, never_led: set[TopicPartition]
) -> list[Row]:
    after = dict(cluster.all_partitions())
    rows: list[Row] = []
    for tp in sorted(before.keys() | after.keys()):
        old, new = before.get(tp), after.get(tp)
        was, *_ = partition_columns(None if tp in never_led else old)
        now, rest, lists, kraft = partition_columns(new)
        leaders = (value for pair in zip(was, now, strict=True) for value in pair)
        outcome = _outcome(journal, tp, old, new)
        rows.append((*tp, None, None, *lists, *leaders, *rest, *outcome, *kraft))
    return rows


def _outcome(  # noqa: PLR0911 - one return for each outcome reads best
    journal: KraftJournal, tp: TopicPartition, old: Partition | None, new: Partition | None
) -> tuple[str, str | None]:
    """What became of a partition, in one word and one sentence."""
    clean, reason = journal.last_election.get(tp, (None, UNCLEAN_OFF))
    if new is None:
        return DELETED, TOPIC_GONE
    if new == old:
        return UNCHANGED, None
    if new.leader == NO_LEADER:
        return OFFLINE, reason
    if old is None or new.partition_epoch <= old.partition_epoch:
        return CREATED, TOPIC_CREATED
    if new.leader != old.leader:
        return ELECTED if clean else ELECTED_UNCLEAN, reason
    if set(new.replicas) != set(old.replicas):
        return REASSIGNED, REPLICAS_CHANGED
    if set(new.isr) < set(old.isr):
        return ISR_SHRUNK, MEMBERS_LEFT
    if new.isr != old.isr:
        return ISR_CHANGED, REPORTED
    return CHANGED, RECORD_CHANGED
