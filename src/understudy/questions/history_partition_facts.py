"""What happened to topics and partitions between two snapshots, as facts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from understudy.controller.words import NO_LEADER
from understudy.questions.history_facts import (
    BEFORE_FAILOVER,
    Fact,
    Item,
    Place,
    event_text,
)
from understudy.questions.history_interval import Interval
from understudy.questions.history_partitions import PartitionStep, TopicStep, partition_steps


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


def partition_facts(interval: Interval) -> Iterator[Fact]:
    for step in partition_steps(interval):
        for facts in _KINDS:
            yield from facts(step)


def name_of(step: PartitionStep) -> str:
    return f"{step.topic}-{step.partition}"


def _ids(ids: Iterable[int]) -> str:
    return f"[{', '.join(map(str, ids))}]"


def _fact(
    step: PartitionStep,
    place: int,
    event: str,
    said: str,
    *,
    item: Item | None = None,
    rank: int = 0,
) -> Fact:
    return Fact(place, event, said, item, rank=rank, topic=step.topic, nth=step.partition)


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
        f"{name_of(step)} was not there and has replicas {_ids(step.replicas)}",
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
        yield _fact(
            step,
            Place.DELETION_ANSWER,
            event_text("stop_replica_response", broker=r),
            f"{name_of(step)} had a replica on broker {r} and is gone",
            item=Item(("partitions",), name_of(step)),
            rank=r,
        )


def _reassignments(step: PartitionStep) -> Iterator[Fact]:
    on_the_way = " on the way to {}"
    was = _ids(step.old_replicas)
    was += on_the_way.format(_ids(step.old_target)) if step.was_pending else ""
    now = _ids(step.replicas) + (on_the_way.format(_ids(step.target)) if step.is_pending else "")
    again = ", and the controller wrote its record anew as it was" if step.is_repeated else ""
    said = f"{name_of(step)} had replicas {was} and has {now}{again}"
    if step.is_reassigned or step.is_repeated:
        yield _fact(
            step,
            Place.REASSIGNMENT + step.place_shift,
            event_text("reassign"),
            said,
            item=Item(("partitions",), list(step.target), name_of(step)),
        )
    if step.is_cancelled:
        yield _fact(
            step,
            Place.CANCELLATION + step.place_shift,
            event_text("cancel_reassignment"),
            said,
            item=Item(("partitions",), name_of(step)),
        )


def _dir_assignments(step: PartitionStep) -> Iterator[Fact]:
    for broker, directory in step.assigned:
        yield _fact(
            step,
            Place.DIR_ASSIGNMENT,
            event_text("assign_dirs", broker=broker),
            f"the replica of {name_of(step)} on broker {broker} is now in directory {directory}",
            item=Item(("partitions",), directory, name_of(step)),
            rank=broker,
        )


# --- Brokers, as partitions betray them --------------------------------------------------------


def _shutdown(place: int, broker: int, said: str) -> Fact:
    return Fact(place, event_text("controlled_shutdown", broker=broker), said, rank=2 * broker)


def _departures(step: PartitionStep) -> Iterator[Fact]:
    """Brokers the controller took out of ISRs although they never went away."""
    if step.interval.is_kraft:
        return
    for r in step.dirless:
        why = f"by the controller, though broker {r} never went away"
        if r in step.failed_dirs:
            why = f"and its log directory on broker {r} is offline"
        yield _fact(
            step,
            Place.LOG_DIR + step.place_shift,
            event_text("log_dir_failure", broker=r),
            f"{name_of(step)} had ISR {_ids(step.old_isr)} and has {_ids(step.isr)}, {why}",
            item=Item(("partitions",), name_of(step)),
            rank=r,
        )
    for r in step.departed:
        yield _shutdown(
            Place.SHUTDOWN + step.place_shift,
            r,
            f"the controller took broker {r} out of every ISR with other members, though it never"
            " went away",
        )


def _lingering(step: PartitionStep) -> Iterator[Fact]:
    """Brokers that fetched on after their controlled shutdown, and were taken out twice."""
    for r in step.rejoined:
        yield _shutdown(
            Place.SHUTDOWN_BEFORE_FAILURE,
            r,
            f"the controller took broker {r} out of ISRs twice before it was gone, and leaders let"
            " it in between",
        )
    if len(step.rejoined) == 1:
        others = tuple(r for r in step.old_isr if r not in step.rejoined)
        yield _report(step, Place.ISR_BEFORE_FAILURE, others + step.rejoined, 0)


def _before_the_failover(step: PartitionStep) -> Iterator[Fact]:
    """Brokers that are gone, and whose partitions the controller before still moved.

    Nobody outlives the own failure, so where that was the controller itself it had shut down.
    """
    broker, interval = step.old_leader, step.interval
    is_moved = (
        step.place_shift < 0
        and step.is_kept
        and step.elections > 0
        and step.leader != broker
        and broker in interval.broke_off
    )
    if not is_moved:
        return
    said = (
        f"broker {broker} was alive and is gone or registered anew, and the controller of epoch"
        f" {interval.old_epoch} still moved what it led"
    )
    if broker == interval.old_controller:
        yield _shutdown(Place.SHUTDOWN + step.place_shift, broker, said)
    else:
        yield Fact(
            Place.FAILURE + step.place_shift,
            event_text("broker_failure"),
            said,
            Item(("brokers",), broker),
            nth=broker,
        )


def _order_of_failures(step: PartitionStep) -> Iterator[Fact]:
    """The quorum fences one broker after the other, and leader epochs tell which came first.

    When a leader is gone and so is the first who could follow it, a leader epoch that rose twice
    says that the follower led for a while.
    """
    gone = step.interval.gone
    if not (step.interval.is_kraft and step.is_kept and step.elections > 0):
        return
    in_line = (r for r in step.old_replicas if r != step.old_leader and r in step.old_isr)
    heir = next(in_line, None)
    if step.old_leader not in gone or heir not in gone:
        return
    follows = 1 if step.elections > 1 else -1
    for broker, weight in ((heir, follows), (step.old_leader, -follows)):
        yield Fact(
            Place.FAILURE,
            event_text("broker_failure"),
            None,
            Item(("brokers",), broker),
            weight=weight,
        )


# --- ISRs and elections ------------------------------------------------------------------------


def _isr_changes(step: PartitionStep) -> Iterator[Fact]:
    for n, isr in enumerate(step.reports):
        # Of a broker that is gone, leaders were faster than the controller.
        left_out = [r for r in step.old_isr if r not in isr]
        is_early = n == 0 and step.elections == 0
        is_early = is_early and not step.interval.broke_off.isdisjoint(left_out)
        place = Place.ISR_BEFORE_FAILURE if is_early else Place.ISR
        yield _report(step, place + step.place_shift, isr, n)


def _report(step: PartitionStep, place: int, isr: tuple[int, ...], rank: int) -> Fact:
    said = f"{name_of(step)} had ISR {_ids(step.old_isr)} and has {_ids(step.isr)}"
    if step.by_leaders is not None:
        changes = "change" if step.by_leaders == 1 else "changes"
        said += f", after {step.by_leaders} {changes} by leaders"
    event = event_text("isr_change", isr=list(isr), partition=name_of(step))
    return _fact(step, place, event, said, rank=rank)


def _elections(step: PartitionStep) -> Iterator[Fact]:
    if not (step.is_preferred or step.is_unclean_election):
        return
    was = "unknown" if step.before is None else step.before["leader_epoch"]
    led = (
        f"{name_of(step)} was led by {_leader(step.old_leader)} with ISR {_ids(step.old_isr)} and"
        f" leader epoch {was}, and is led by {step.leader} with leader epoch"
        f" {step.after['leader_epoch'] if step.after else None}"
    )
    kinds = (
        (
            step.is_preferred,
            "preferred_election",
            Place.PREFERRED_ELECTION,
            f", its first replica, though {step.heir} could lead",
        ),
        (
            step.is_unclean_election,
            "unclean_election",
            Place.UNCLEAN_ELECTION,
            ", which was not in sync",
        ),
    )
    for is_so, event_type, place, why in kinds:
        if is_so:
            yield _fact(
                step,
                place + step.place_shift,
                event_text(event_type),
                led + why,
                item=Item(("partitions",), name_of(step)),
            )


def _leader(leader: int) -> str:
    return "nobody" if leader == NO_LEADER else str(leader)


_KINDS = (
    _creations,
    _deletion_answers,
    _reassignments,
    _departures,
    _lingering,
    _before_the_failover,
    _order_of_failures,
    _dir_assignments,
    _isr_changes,
    _elections,
)
