"""Runs one scenario over one snapshot, event by event, and gives the rows of every output table.

This is the reference: it follows Kafka's controller call by call. Partitions are taken by topic,
then partition, wherever Kafka's own order is an accident of hashing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from understudy.controller import releases
from understudy.controller.context import Broker, ControllerContext, UncleanElection
from understudy.controller.journal import Journal, Row
from understudy.controller.records import Assignment, LeaderAndIsr, TopicPartition
from understudy.controller.states import OFFLINE_PARTITION
from understudy.controller.words import (
    ELECTED,
    ELECTED_UNCLEAN,
    FIRST_IN_SYNC,
    INITIALIZED,
    ISR_SHRUNK,
    NEVER_LED,
    NO_REPLICA_ONLINE,
    OFFLINE,
    QUEUED,
    RECORD_REFRESHED,
    SENT_AGAIN,
    SHRUNK,
    UNCHANGED,
    UNCLEAN_SETTING,
)
from understudy.controller.zk import Event, ZkController

CanonicalRow = Mapping[str, Any]


class SnapshotRows(NamedTuple):
    """One snapshot as plain rows of the canonical tables."""

    snapshot: CanonicalRow
    brokers: Sequence[CanonicalRow]
    topics: Sequence[CanonicalRow]
    partitions: Sequence[CanonicalRow]
    configs: Sequence[CanonicalRow]


def replay(rows: SnapshotRows, events: Iterable[Event]) -> dict[str, list[Row]]:
    """The rows of every output table, without the keys of the scenario."""
    context = load(rows)
    before = dict(context.leadership)
    journal = Journal()
    controller = ZkController(context, journal)
    for event in events:
        controller.process(event)
    return {
        "partition_states": _partition_states(context, journal, before),
        "replica_states": [
            (*tp, replica, None, state)
            for (tp, replica), state in sorted(context.replica_states.items())
        ],
        "transitions": journal.transitions,
        "metadata_writes": journal.metadata_writes,
        "requests": journal.requests,
        "request_partitions": journal.request_partitions,
        "decisions": journal.decisions,
        "event_results": journal.event_results,
    }


def load(rows: SnapshotRows) -> ControllerContext:
    """The controller's knowledge of a snapshot, before any event."""
    snapshot = rows.snapshot
    context = ControllerContext(
        release=releases.level(snapshot["release"]),
        # Brokers cannot speak a protocol newer than the release they run.
        protocol=min(
            releases.level(snapshot["metadata_version"]), releases.level(snapshot["release"])
        ),
        controller_id=snapshot["controller_id"],
        epoch=snapshot["controller_epoch"],
        unclean=_unclean(rows.configs),
        queued_topics={t["topic"] for t in rows.topics if t["queued_for_deletion"]},
    )
    for broker in rows.brokers:
        if broker["alive"]:
            broker_id = broker["broker_id"]
            context.live[broker_id] = Broker(
                broker_id, broker["broker_epoch"], broker["rack"], broker["endpoints"]
            )
            if broker["shutting_down"]:
                context.shutting_down.add(broker_id)
    for row in sorted(rows.partitions, key=lambda p: (p["topic"], p["partition"])):
        tp = (row["topic"], row["partition"])
        context.assignments[tp] = Assignment(
            tuple(row["replicas"]), tuple(row["adding"]), tuple(row["removing"])
        )
        for broker_id in row["offline_dirs"]:
            context.offline_dirs.setdefault(broker_id, set()).add(tp)
        if row["has_state"]:
            context.leadership[tp] = LeaderAndIsr(
                row["leader"],
                row["leader_epoch"],
                tuple(row["isr"]),
                row["partition_epoch"],
                row["controller_epoch"],
                row["recovery"],
            )
    context.znodes = dict(context.leadership)
    return context


def _unclean(configs: Iterable[CanonicalRow]) -> UncleanElection:
    unclean = UncleanElection()
    for config in configs:
        if config["key"] != UNCLEAN_SETTING:
            continue
        value = config["value"].strip().lower() == "true"
        scope = config["scope"]
        if scope == "topic":
            unclean.by_topic[config["name"]] = value
        elif scope == "broker":
            unclean.by_broker[int(config["name"])] = value
        elif scope == "cluster":
            unclean.cluster = value
        else:
            unclean.static = value
    return unclean


def _partition_states(
    context: ControllerContext, journal: Journal, before: Mapping[TopicPartition, LeaderAndIsr]
) -> list[Row]:
    rows: list[Row] = []
    for tp in sorted(context.assignments.keys() | context.partition_states.keys() | before.keys()):
        old, new = before.get(tp), context.leadership.get(tp)
        leader, epoch, isr, *rest = new or (None,) * 6
        leader_before, epoch_before, isr_before, *_ = old or (None,) * 6
        assignment = context.assignments.get(tp) or (None,) * 3
        states = (None, context.partition_states.get(tp))
        leaders = (leader_before, leader, epoch_before, epoch, isr_before, isr)
        outcome = _outcome(context, journal, tp, old, new)
        rows.append((*tp, *states, *assignment, *leaders, *rest, *outcome))
    return rows


def _outcome(  # noqa: PLR0911 - one return for each outcome reads best
    context: ControllerContext,
    journal: Journal,
    tp: TopicPartition,
    old: LeaderAndIsr | None,
    new: LeaderAndIsr | None,
) -> tuple[str, str | None]:
    """What became of a partition, in one word and one sentence."""
    _, clean, reason = journal.last_election.get(tp, ("", None, FIRST_IN_SYNC))
    if new is None:
        return NEVER_LED, QUEUED if context.is_queued(tp) else NO_REPLICA_ONLINE
    if context.partition_states.get(tp) == OFFLINE_PARTITION:
        return OFFLINE, QUEUED if context.is_queued(tp) else reason
    if old is None:
        return INITIALIZED, reason
    if clean is not None:
        return ELECTED if clean else ELECTED_UNCLEAN, reason
    if new.isr != old.isr:
        return ISR_SHRUNK, SHRUNK
    if new != old:
        return RECORD_REFRESHED, SENT_AGAIN
    return UNCHANGED, None
