"""What happened to brokers, as partitions betray it, as facts."""

from __future__ import annotations

from collections.abc import Iterator

from understudy.questions.history.facts import Fact, Item, Place, event_text
from understudy.questions.history.partitions import PartitionStep
from understudy.questions.history.step_facts import fact_of, ids_text, isr_report, name_of


def _shutdown(place: int, broker: int, said: str) -> Fact:
    return Fact(place, event_text("controlled_shutdown", broker=broker), said, rank=2 * broker)


def learnt_again(step: PartitionStep) -> Iterator[Fact]:
    """Log directories that were offline before the failover.

    A new controller takes them for online, until their brokers answer its first requests.
    """
    interval = step.interval
    if interval.is_kraft or not interval.failovers or step.before is None or step.place_shift < 0:
        return
    for r in step.before["offline_dirs"] or ():
        broker = interval.brokers.get(r)
        is_there = broker is not None and broker.was_alive
        if is_there and not (interval.is_controller_lost and r in interval.broke_off):
            yield fact_of(
                step,
                Place.LOG_DIR_LEARNT,
                event_text("log_dir_failure", broker=r),
                f"the log directory of {name_of(step)} on broker {r} was offline, as the next"
                " controller had to learn",
                item=Item(("partitions",), name_of(step)),
                rank=r,
            )


def departures(step: PartitionStep) -> Iterator[Fact]:
    """Brokers the controller took out of ISRs although they never went away."""
    if step.interval.is_kraft:
        return
    for r in step.dirless:
        why = f"by the controller, though broker {r} never went away"
        if r in step.failed_dirs:
            why = f"and its log directory on broker {r} is offline"
        yield fact_of(
            step,
            Place.LOG_DIR + step.place_shift,
            event_text("log_dir_failure", broker=r),
            f"{name_of(step)} had ISR {ids_text(step.old_isr)} and has {ids_text(step.isr)}, {why}",
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


def lingering(step: PartitionStep) -> Iterator[Fact]:
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
        yield isr_report(step, Place.ISR_BEFORE_FAILURE, others + step.rejoined, 0)


def before_the_failover(step: PartitionStep) -> Iterator[Fact]:
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


def order_of_failures(step: PartitionStep) -> Iterator[Fact]:
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
