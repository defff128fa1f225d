"""What happened to topics and partitions between two snapshots, as facts."""

from __future__ import annotations

from collections.abc import Iterator

from understudy.questions.history import partition_traces as traces
from understudy.questions.history.facts import (
    BEFORE_FAILOVER,
    Fact,
    Item,
    Place,
    event_text,
)
from understudy.questions.history.interval import Interval
from understudy.questions.history.partitions import PartitionStep
from understudy.questions.history.reports import Reports
from understudy.questions.history.step_facts import election, fact_of, ids_text, isr_report, name_of
from understudy.questions.history.topics import TopicStep


def topic_facts(interval: Interval) -> Iterator[Fact]:
    for topic, change in interval.topics.items():
        step = TopicStep(change)
        if not step.is_deleted:
            continue
        became = "queued for deletion"
        if change.after is None:
            became = "gone"
        elif step.is_recreated:
            became = "another one with a new id"
        yield Fact(
            Place.DELETION,
            event_text("delete_topics"),
            f"topic {topic} was there and is {became}",
            Item(("topics",), topic),
            topic=topic,
        )


def partition_facts(step: PartitionStep) -> Iterator[Fact]:
    for facts in _KINDS:
        yield from facts(step)


# --- Topics and assignments --------------------------------------------------------------------


def _creations(step: PartitionStep) -> Iterator[Fact]:
    if not step.is_new:
        return
    # What is being added was not there when the partition was made.
    first = [r for r in step.replicas if r not in step.adding]
    if step.of_topic.is_new:
        event = event_text("topic_change", topics={step.topic: {}})
        path: tuple[str, ...] = ("topics", step.topic)
    else:
        event = event_text("partition_change", topic=step.topic)
        path = ("partitions",)
    yield Fact(
        _place_of_creation(step),
        event,
        f"{name_of(step)} was not there and has replicas {ids_text(step.replicas)}",
        Item(path, first, str(step.partition)),
        topic=step.topic,
        nth=step.partition,
        is_creation=True,
    )


def _place_of_creation(step: PartitionStep) -> int:
    interval = step.interval
    is_moved_since = step.elections > 0 and not interval.broke_off.isdisjoint(step.replicas)
    if step.place_shift < 0 or is_moved_since:
        return Place.CREATION + BEFORE_FAILOVER
    has_newcomers = (
        step.by_leaders is not None
        and step.by_leaders <= 0
        and not interval.started.isdisjoint(step.isr)
    )
    if step.of_topic.is_recreated or has_newcomers:
        return Place.LATE_CREATION
    return Place.CREATION


def _deletion_answers(step: PartitionStep) -> Iterator[Fact]:
    if step.after is not None or step.interval.is_kraft:
        return
    for r in step.old_replicas:
        yield fact_of(
            step,
            Place.DELETION_ANSWER,
            event_text("stop_replica_response", broker=r),
            f"{name_of(step)} had a replica on broker {r} and is gone",
            item=Item(("partitions",), name_of(step)),
            rank=r,
        )


def _reassignments(step: PartitionStep) -> Iterator[Fact]:
    on_the_way = " on the way to {}"
    was = ids_text(step.old_replicas)
    was += on_the_way.format(ids_text(step.old_target)) if step.was_pending else ""
    now = ids_text(step.replicas) + (
        on_the_way.format(ids_text(step.target)) if step.is_pending else ""
    )
    again = ", and the controller wrote its record anew as it was" if step.is_repeated else ""
    said = f"{name_of(step)} had replicas {was} and has {now}{again}"
    if step.is_reassigned or step.is_repeated:
        yield fact_of(
            step,
            Place.REASSIGNMENT + step.place_shift,
            event_text("reassign"),
            said,
            item=Item(("partitions",), list(step.target), name_of(step)),
        )
    if step.is_cancelled:
        yield fact_of(
            step,
            Place.CANCELLATION + step.place_shift,
            event_text("cancel_reassignment"),
            said,
            item=Item(("partitions",), name_of(step)),
        )


def _dir_assignments(step: PartitionStep) -> Iterator[Fact]:
    for broker, directory in step.assigned:
        yield fact_of(
            step,
            Place.DIR_ASSIGNMENT,
            event_text("assign_dirs", broker=broker),
            f"the replica of {name_of(step)} on broker {broker} is now in directory {directory}",
            item=Item(("partitions",), directory, name_of(step)),
            rank=broker,
        )


# --- ISRs and elections ------------------------------------------------------------------------


def _isr_changes(step: PartitionStep) -> Iterator[Fact]:
    for n, isr in enumerate(Reports(step).all):
        # Of a broker that is gone, leaders were faster than the controller.
        left_out = [r for r in step.old_isr if r not in isr]
        is_early = n == 0 and step.elections == 0
        is_early = is_early and not step.interval.broke_off.isdisjoint(left_out)
        place = Place.ISR_BEFORE_FAILURE if is_early else Place.ISR
        yield isr_report(step, place + step.place_shift, isr, n)


def _elections(step: PartitionStep) -> Iterator[Fact]:
    if step.is_preferred:
        yield election(step, "preferred_election", Place.PREFERRED_ELECTION + step.place_shift)
    if step.is_unclean_election:
        yield election(step, "unclean_election", Place.UNCLEAN_ELECTION + step.place_shift)


_KINDS = (
    _creations,
    _deletion_answers,
    _reassignments,
    traces.learnt_again,
    traces.departures,
    traces.lingering,
    traces.before_the_failover,
    traces.order_of_failures,
    _dir_assignments,
    _isr_changes,
    _elections,
)
