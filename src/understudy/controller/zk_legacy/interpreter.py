"""Runs one scenario over one snapshot under profile ``zk-legacy``, into rows of every table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from understudy.controller.journal import Row
from understudy.controller.records import Ids, LeaderAndIsr, Replica, TopicPartition, minus
from understudy.controller.scope import Event
from understudy.controller.snapshot_rows import SnapshotRows
from understudy.controller.states import (
    DELETION_STARTED,
    DELETION_SUCCESSFUL,
    OFFLINE_PARTITION,
)
from understudy.controller.words import (
    DELETED,
    DELETING,
    DELETION_STARTED_REASON,
    ELECTED,
    ELECTED_UNCLEAN,
    EPOCH_RAISED,
    FIRST_IN_SYNC,
    INITIALIZED,
    ISR_CHANGED,
    ISR_SHRUNK,
    NEVER_LED,
    NO_REPLICA_ONLINE,
    OFFLINE,
    QUEUED,
    RAISED,
    REASSIGNED,
    REASSIGNING,
    REASSIGNMENT_DONE,
    REASSIGNMENT_STARTED,
    RECORD_REFRESHED,
    RECOVERED,
    REPORTED,
    SENT_AGAIN,
    SHRUNK,
    TOPIC_GONE,
    UNCHANGED,
)
from understudy.controller.zk_legacy import releases
from understudy.controller.zk_legacy.context import Endpoints, LegacyContext, Settings, ZooKeeper
from understudy.controller.zk_legacy.events import FAILOVER, LegacyController
from understudy.controller.zk_legacy.journal import LegacyJournal

_BEING_DELETED: Final = frozenset({DELETION_STARTED, DELETION_SUCCESSFUL})


class _Start(NamedTuple):
    """What there was before the first event; no states where that is a failover."""

    records: Mapping[TopicPartition, LeaderAndIsr]
    assignments: Mapping[TopicPartition, Ids]
    partition_states: Mapping[TopicPartition, str]
    replica_states: Mapping[Replica, str]


def replay(rows: SnapshotRows, events: Iterable[Event]) -> dict[str, list[Row]]:
    """The rows of every output table, without the keys of the scenario."""
    events = list(events)
    context = load(rows)
    journal = LegacyJournal()
    controller = LegacyController(context, journal)
    if not events or events[0]["type"] != FAILOVER:
        controller.settle()
    start = _Start(
        dict(context.zookeeper.states),
        {(row["topic"], row["partition"]): tuple(row["replicas"]) for row in rows.partitions},
        dict(context.partition_states),
        dict(context.replica_states),
    )
    for event in events:
        controller.process(event)
    return journal.tables(
        _partition_states(context, journal, start), _replica_states(context, start)
    )


def load(rows: SnapshotRows) -> LegacyContext:
    """ZooKeeper and the live brokers as the snapshot has them; no topic is loaded yet."""
    snapshot = rows.snapshot
    rules = releases.rules(snapshot["release"])
    context = LegacyContext(
        rules=rules,
        # Brokers cannot speak a protocol newer than the release they run.
        protocol=min(
            releases.level(snapshot["metadata_version"]),
            releases.level(snapshot["release"]),
        ),
        controller_id=snapshot["controller_id"],
        epoch=snapshot["controller_epoch"],
        settings=Settings(rows.configs),
        zookeeper=_zookeeper(rows),
    )
    for broker in rows.brokers:
        broker_id = broker["broker_id"]
        context.known_brokers[broker_id] = Endpoints(broker["rack"], broker["endpoints"])
        if broker["alive"]:
            context.live[broker_id] = context.known_brokers[broker_id]
            if broker["shutting_down"]:
                context.shutting_down.add(broker_id)
    for row in rows.partitions if rules.log_dirs else ():
        for broker_id in row["offline_dirs"]:
            offline = context.offline_dirs.setdefault(broker_id, set())
            offline.add((row["topic"], row["partition"]))
    return context


def _zookeeper(rows: SnapshotRows) -> ZooKeeper:
    zookeeper = ZooKeeper(topics={row["topic"]: {} for row in rows.topics})
    for topic in rows.topics:
        if topic["queued_for_deletion"]:
            zookeeper.delete_requests.add(topic["topic"])
    for row in rows.partitions:
        tp = (row["topic"], row["partition"])
        replicas = tuple(row["replicas"])
        zookeeper.topics.setdefault(row["topic"], {})[row["partition"]] = replicas
        if row["adding"] or row["removing"]:
            zookeeper.reassignments[tp] = minus(replicas, tuple(row["removing"]))
        if row["has_state"]:
            zookeeper.states[tp] = LeaderAndIsr(
                row["leader"],
                row["leader_epoch"],
                tuple(row["isr"]),
                row["partition_epoch"],
                row["controller_epoch"],
                RECOVERED,
            )
    return zookeeper


def _replica_states(context: LegacyContext, start: _Start) -> list[Row]:
    before, after = start.replica_states, context.replica_states
    return [
        (*replica[0], replica[1], before.get(replica), after.get(replica))
        for replica in sorted(before.keys() | after)
    ]


def _partition_states(context: LegacyContext, journal: LegacyJournal, start: _Start) -> list[Row]:
    rows: list[Row] = []
    known = {*start.assignments, *context.assignments, *context.partition_states}
    for tp in sorted(known):
        old, new = start.records.get(tp), context.leadership.get(tp)
        leader, epoch, isr, partition_epoch, controller_epoch, _ = new or (None,) * 6
        leader_before, epoch_before, isr_before, *_ = old or (None,) * 6
        states = (start.partition_states.get(tp), context.partition_states.get(tp))
        assignment = (context.assignments.get(tp), None, None)
        leaders = (leader_before, leader, epoch_before, epoch, isr_before, isr)
        epochs = (partition_epoch, controller_epoch, None)
        outcome = _outcome(context, journal, tp, start)
        rows.append((*tp, *states, *assignment, *leaders, *epochs, *outcome))
    return rows


def _outcome(  # noqa: C901, PLR0911 - one return for each outcome reads best
    context: LegacyContext, journal: LegacyJournal, tp: TopicPartition, start: _Start
) -> tuple[str, str | None]:
    """What became of a partition, in one word and one sentence."""
    old, new = start.records.get(tp), context.leadership.get(tp)
    replicas = context.assignments.get(tp)
    clean, reason = journal.last_elected.get(tp, (None, FIRST_IN_SYNC))
    if replicas is None:
        return DELETED, TOPIC_GONE
    if any(context.replica_states.get((tp, r)) in _BEING_DELETED for r in replicas):
        return DELETING, DELETION_STARTED_REASON
    if new is None:
        return NEVER_LED, QUEUED if context.is_queued(tp) else NO_REPLICA_ONLINE
    if context.partition_states.get(tp) == OFFLINE_PARTITION:
        return OFFLINE, QUEUED if context.is_queued(tp) else journal.last_reason.get(
            tp, FIRST_IN_SYNC
        )
    if old is None:
        return INITIALIZED, reason
    if clean is False:
        return ELECTED_UNCLEAN, reason
    if replicas != start.assignments.get(tp):
        if tp in context.reassigning:
            return REASSIGNING, REASSIGNMENT_STARTED
        return REASSIGNED, REASSIGNMENT_DONE
    if clean:
        return ELECTED, reason
    if new.isr != old.isr:
        return (ISR_SHRUNK, SHRUNK) if set(new.isr) < set(old.isr) else (ISR_CHANGED, REPORTED)
    if new.leader_epoch != old.leader_epoch:
        return EPOCH_RAISED, RAISED
    if new != old:
        return RECORD_REFRESHED, SENT_AGAIN
    return UNCHANGED, None
