"""Runs one scenario over one snapshot, event by event, and gives the rows of every output table.

This is the reference: it follows Kafka's controller call by call. Partitions are taken by topic,
then partition, wherever Kafka's own order is an accident of hashing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from understudy.controller import releases
from understudy.controller.journal import Journal, Row
from understudy.controller.records import Assignment, LeaderAndIsr, Replica, TopicPartition
from understudy.controller.scope import Event
from understudy.controller.snapshot_rows import CanonicalRow, SnapshotRows
from understudy.controller.states import NON_EXISTENT_PARTITION, OFFLINE_PARTITION
from understudy.controller.words import (
    DELETED,
    DELETING,
    DELETION_SETTING,
    DELETION_STARTED_REASON,
    ELECTED,
    ELECTED_UNCLEAN,
    EPOCH_RAISED,
    INITIALIZED,
    ISR_CHANGED,
    ISR_SHRUNK,
    NEVER_LED,
    NO_REPLICA_ONLINE,
    NOBODY_KNOWS,
    OFFLINE,
    QUEUED,
    RAISED,
    REASSIGNED,
    REASSIGNING,
    REASSIGNMENT_DONE,
    REASSIGNMENT_STARTED,
    RECORD_REFRESHED,
    REPORTED,
    RESIGNED,
    SENT_AGAIN,
    SHRUNK,
    TOPIC_GONE,
    UNCHANGED,
    UNCLEAN_SETTING,
)
from understudy.controller.zk.context import Broker, ControllerContext, UncleanElection
from understudy.controller.zk.events import FAILOVER, ZkController, start_up, take_up


class _Start(NamedTuple):
    """What the controller held before the first event."""

    assignments: Mapping[TopicPartition, Assignment]
    leadership: Mapping[TopicPartition, LeaderAndIsr]
    partition_states: Mapping[TopicPartition, str]
    replica_states: Mapping[Replica, str]


def replay(rows: SnapshotRows, events: Iterable[Event]) -> dict[str, list[Row]]:
    """The rows of every output table, without the keys of the scenario."""
    events = list(events)
    context = load(rows)
    if not events or events[0]["type"] != FAILOVER:
        settle(context)
    start = _start(context)
    controller = ZkController(context, Journal())
    for event in events:
        controller.process(event)
    return _tables(controller, start)


def resume(
    rows: SnapshotRows, failover: Event, offline_order: Sequence[int], steps: int
) -> dict[str, list[Row]]:
    """The second half of a failover: what is done after *steps* steps of start-up.

    *rows* holds at least the partitions that were being reassigned or deleted; *offline_order* is
    the order of broker groups that the start-up of all partitions had.
    """
    context = load(rows)
    start = _start(context)
    controller = ZkController(context, Journal())
    controller.journal.begin_event(FAILOVER)
    start_up(controller, failover, offline_order)
    controller.journal.forget_until(steps)
    take_up(controller)
    return _tables(controller, start)


def _start(context: ControllerContext) -> _Start:
    return _Start(
        dict(context.assignments),
        dict(context.leadership),
        dict(context.partition_states),
        dict(context.replica_states),
    )


def _tables(controller: ZkController, start: _Start) -> dict[str, list[Row]]:
    context, journal = controller.context, controller.journal
    return journal.tables(
        _partition_states(context, journal, start), _replica_states(context, start)
    )


def load(rows: SnapshotRows) -> ControllerContext:
    """The controller's knowledge of a snapshot, before any event."""
    snapshot = rows.snapshot
    brokers = [
        Broker(b["broker_id"], b["broker_epoch"], b["rack"], b["endpoints"]) for b in rows.brokers
    ]
    alive = {b["broker_id"] for b in rows.brokers if b["alive"]}
    context = ControllerContext(
        release=releases.level(snapshot["release"]),
        # Brokers cannot speak a protocol newer than the release they run.
        protocol=min(
            releases.level(snapshot["metadata_version"]), releases.level(snapshot["release"])
        ),
        controller_id=snapshot["controller_id"],
        epoch=snapshot["controller_epoch"],
        live={b.broker_id: b for b in brokers if b.broker_id in alive},
        shutting_down={b["broker_id"] for b in rows.brokers if b["alive"] and b["shutting_down"]},
        brokers_seen={b.broker_id: b for b in brokers},
        highest_broker_epoch=max((b.epoch or 0 for b in brokers), default=0),
        topics={t["topic"] for t in rows.topics},
        queued_topics={t["topic"] for t in rows.topics if t["queued_for_deletion"]},
        deletion_enabled=_deletion_enabled(rows.configs),
        unclean=_unclean(rows.configs),
    )
    for row in sorted(rows.partitions, key=lambda p: (p["topic"], p["partition"])):
        tp = (row["topic"], row["partition"])
        context.topics.add(row["topic"])
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


def settle(context: ControllerContext) -> None:
    """Let *context* be what a running controller holds when no event is in progress."""
    context.find_reassignments()
    context.queue_requested_deletions()
    context.settle_states()


def _deletion_enabled(configs: Iterable[CanonicalRow]) -> bool:
    """Only the properties file can switch topic deletion off."""
    return not any(
        config["key"] == DELETION_SETTING
        and config["scope"] == "static"
        and config["value"].strip().lower() == "false"
        for config in configs
    )


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


def _replica_states(context: ControllerContext, start: _Start) -> list[Row]:
    before, after = start.replica_states, context.replica_states
    return [
        (*replica[0], replica[1], before.get(replica), after.get(replica))
        for replica in dict.fromkeys((*before, *after))
    ]


def _partition_states(context: ControllerContext, journal: Journal, start: _Start) -> list[Row]:
    rows: list[Row] = []
    known = (*start.assignments, *context.assignments, *context.partition_states)
    for tp in dict.fromkeys(known):
        old, new = start.leadership.get(tp), context.leadership.get(tp)
        leader, epoch, isr, *rest = new or (None,) * 6
        leader_before, epoch_before, isr_before, *_ = old or (None,) * 6
        assignment = context.assignments.get(tp) or (None,) * 3
        states = (start.partition_states.get(tp), context.partition_states.get(tp))
        leaders = (leader_before, leader, epoch_before, epoch, isr_before, isr)
        outcome = _outcome(context, journal, tp, start)
        rows.append((*tp, *states, *assignment, *leaders, *rest, *outcome))
    return rows


def _outcome(  # noqa: C901, PLR0911 - one return for each outcome reads best
    context: ControllerContext, journal: Journal, tp: TopicPartition, start: _Start
) -> tuple[str, str | None]:
    """What became of a partition, in one word and one sentence."""
    old, new = start.leadership.get(tp), context.leadership.get(tp)
    state, assignment = context.partition_states.get(tp), context.assignments.get(tp)
    clean, reason = journal.last_elected.get(tp, (None, None))
    if assignment is None:
        is_known = context.znode_assignments.get(tp) is not None
        return (RESIGNED, NOBODY_KNOWS) if is_known else (DELETED, TOPIC_GONE)
    if state == NON_EXISTENT_PARTITION:
        return DELETING, DELETION_STARTED_REASON
    if new is None:
        return NEVER_LED, QUEUED if context.is_queued(tp) else NO_REPLICA_ONLINE
    if state == OFFLINE_PARTITION:
        return OFFLINE, QUEUED if context.is_queued(tp) else journal.last_reason.get(tp)
    if old is None:
        return INITIALIZED, reason
    if clean is False:
        return ELECTED_UNCLEAN, reason
    if assignment != start.assignments.get(tp):
        if assignment.is_being_reassigned:
            return REASSIGNING, REASSIGNMENT_STARTED
        return REASSIGNED, REASSIGNMENT_DONE
    if clean:
        return ELECTED, reason
    if new.isr != old.isr:
        return (ISR_SHRUNK, SHRUNK) if set(new.isr) < set(old.isr) else (ISR_CHANGED, REPORTED)
    if tp in journal.epochs_raised:
        return EPOCH_RAISED, RAISED
    if new != old:
        return RECORD_REFRESHED, SENT_AGAIN
    return UNCHANGED, None
