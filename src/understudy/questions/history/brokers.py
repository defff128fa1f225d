"""What happened to brokers, to the controller and to settings between two snapshots, as facts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations
from typing import Final, NamedTuple

from understudy.controller.words import UNCLEAN_SETTING
from understudy.questions.history.facts import Fact, Item, Place, event_text
from understudy.questions.history.interval import BrokerStep, Interval, is_new

_SEVERAL: Final = 2
_MOST_PERMUTED: Final = 3


class Course(NamedTuple):
    """In which order brokers came and went, and controllers: what snapshots do not tell.

    Unless said otherwise all went at once, before any came: with the controller, if that was lost.
    """

    is_apart: bool = False
    """Each for itself: who came back had gone right before, and the controller was lost alone."""
    gone: tuple[int, ...] = ()
    """Those that are gone for good, one after the other; they went together where none is named."""
    is_gone_late: bool = False
    is_failover_late: bool = False


def courses(interval: Interval) -> Iterator[Course]:
    """The likeliest first. In the quorum the epochs of partitions tell who went first."""
    yield Course()
    moved = len(interval.broke_off | interval.started) + interval.failovers
    if interval.is_kraft or moved < _SEVERAL:
        return
    for is_failover_late in (False, True) if interval.failovers else (False,):
        for is_gone_late in (False, True) if interval.started else (False,):
            for gone in _orders(sorted(interval.gone)):
                yield Course(True, gone, is_gone_late, is_failover_late)


def _orders(gone: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Together; each for itself, in any order of few, and up and down of many."""
    yield ()
    if _SEVERAL <= len(gone) <= _MOST_PERMUTED:
        yield from permutations(gone)
    elif len(gone) > _MOST_PERMUTED:
        yield from (tuple(gone), tuple(reversed(gone)))


def failover_facts(interval: Interval, course: Course) -> Iterator[Fact]:
    """A failover for each epoch; the last is the one that made the controller there is now.

    A new leader of the quorum knows all the old one knew, and its epochs also count elections that
    nobody won.
    """
    if interval.failovers == 0 or interval.epoch is None or interval.old_epoch is None:
        return
    first = interval.epoch if interval.is_kraft else interval.old_epoch + 1
    for epoch in range(first, interval.epoch + 1):
        dead = []
        if interval.is_controller_lost and epoch == interval.old_epoch + 1:
            dead = sorted(lost_with_controller(interval, course))
        yield Fact(
            Place.LATE_FAILOVER if course.is_failover_late else Place.FAILOVER,
            event_text(
                "controller_failover",
                controller=interval.controller if epoch == interval.epoch else None,
                dead=dead or None,
                forget=None if interval.is_kraft else True,
            ),
            _failover_said(interval, dead),
            rank=epoch,
        )


def lost_with_controller(interval: Interval, course: Course) -> frozenset[int]:
    if not interval.is_controller_lost:
        return frozenset()
    return interval.broke_off & {interval.old_controller} if course.is_apart else interval.broke_off


def _failover_said(interval: Interval, dead: list[int]) -> str:
    several = interval.failovers > 1 and not interval.is_kraft
    return (
        f"the controller epoch was {interval.old_epoch} and is {interval.epoch}"
        + (f", so there were {interval.failovers} failovers" if several else "")
        + f", the controller was {_known(interval.old_controller)}"
        + f" and is {_known(interval.controller)}"
        + (
            f", and these brokers are gone or registered anew: {', '.join(map(str, dead))}"
            if dead
            else ""
        )
    )


def _known(value: int | None) -> int | str:
    return "unknown" if value is None else value


def broker_facts(interval: Interval, course: Course) -> Iterator[Fact]:
    for step in interval.brokers.values():
        if step.before != step.after:
            yield from _losses(interval, step, course)
            yield from _arrivals(interval, step)
            yield from _shutdowns(interval, step)
            if interval.is_kraft:
                yield from _of_the_quorum(step)


def _losses(interval: Interval, step: BrokerStep, course: Course) -> Iterator[Fact]:
    broker = step.broker_id
    # In the quorum the last heartbeat of a controlled shutdown is what fences the broker.
    is_shut_down = interval.is_kraft and _shuts_down(step)
    is_met = broker not in lost_with_controller(interval, course) and not is_shut_down
    if broker not in interval.broke_off or not is_met:
        return
    became = f"is registered anew with {_epoch(step.epoch)}" if step.is_bounced else "is gone"
    place, rank = Place.FAILURE, 0
    if step.is_bounced and course.is_apart:
        place, rank = Place.STARTUP, _rank_of_startup(step) - 1
    elif course.is_apart:
        place = Place.LATE_FAILURE if course.is_gone_late else Place.FAILURE
        rank = course.gone.index(broker) if course.gone else 0
    yield Fact(
        place,
        event_text("broker_failure"),
        f"broker {broker} was alive with {_epoch(step.old_epoch)} and {became}",
        Item(("brokers",), broker),
        rank=rank,
        nth=broker,
    )


def _rank_of_startup(step: BrokerStep) -> int:
    return 2 * (step.epoch or 0)


def _arrivals(interval: Interval, step: BrokerStep) -> Iterator[Fact]:
    was, now = _epoch(step.old_epoch), _epoch(step.epoch)
    broker = step.broker_id
    is_first = step.before is None or step.is_other
    is_registered = interval.is_kraft and step.after is not None and is_first
    if not (step.is_started or is_registered):
        return
    if not interval.is_kraft or is_first:
        before = f"had {was}" if step.was_alive else "was not alive"
        event = event_text(
            "broker_startup",
            brokers=[broker],
            clean=_left_cleanly(interval, broker) or None,
            epochs=None if step.epoch is None else [step.epoch],
            fenced=None if step.is_alive else True,
            log_dirs=_new_dirs(interval, step),
        )
        became = "is alive" if step.is_alive else "is registered anew, still fenced,"
        said = f"broker {broker} {before} and {became} with {now}"
    else:
        event = event_text("unfence", brokers=[broker])
        said = f"broker {broker} was fenced and is not, with {now}"
    yield Fact(Place.STARTUP, event, said, rank=_rank_of_startup(step))


def _left_cleanly(interval: Interval, broker: int) -> bool:
    """A broker that may have lost records is no longer eligible when it registers again."""
    return interval.is_kraft and any(
        before is not None
        and after is not None
        and broker in (before["elr"] or ())
        and broker in (after["elr"] or ())
        for before, after in interval.partitions
    )


def _epoch(epoch: int | None) -> str:
    return "an unknown epoch" if epoch is None else f"epoch {epoch}"


def _new_dirs(interval: Interval, step: BrokerStep) -> dict[str, list[str]] | None:
    dirs = step.after["log_dirs"] if step.after else None
    is_new = interval.is_kraft and dirs != (step.before["log_dirs"] if step.before else None)
    return {str(step.broker_id): list(dirs)} if is_new and dirs else None


def _shuts_down(step: BrokerStep) -> bool:
    was = step.is_same and step.before is not None and bool(step.before["shutting_down"])
    return step.after is not None and bool(step.after["shutting_down"]) and not was


def _shutdowns(interval: Interval, step: BrokerStep) -> Iterator[Fact]:
    if not _shuts_down(step):
        return
    # The second heartbeat is the one that fences it, when it leads nothing any more.
    heartbeats = 2 if interval.is_kraft and step.is_gone else 1
    for heartbeat in range(heartbeats):
        yield Fact(
            Place.SHUTDOWN,
            event_text("controlled_shutdown", broker=step.broker_id),
            f"broker {step.broker_id} is in controlled shutdown and was not before",
            rank=2 * step.broker_id + heartbeat,
        )


def _of_the_quorum(step: BrokerStep) -> Iterator[Fact]:
    if step.is_same and step.before is not None and step.after is not None:
        had, has = step.before["log_dirs"] or [], step.after["log_dirs"]
        lost = [] if has is None else [each for each in had if each not in has]
        if lost:
            yield Fact(
                Place.LOG_DIR,
                event_text("log_dir_failure", broker=step.broker_id, dirs=lost),
                f"broker {step.broker_id} had log directories {', '.join(had)}"
                f" and has {', '.join(has)}",
            )
    if step.after is None:
        yield Fact(
            Place.UNREGISTRATION,
            event_text("unregister"),
            f"broker {step.broker_id} was registered with {_epoch(step.old_epoch)} and is not",
            Item(("brokers",), step.broker_id),
            nth=step.broker_id,
        )


def setting_facts(interval: Interval) -> Iterator[Fact]:
    """Unclean election switched on, for a topic that was there or by default."""
    before = interval.old.unclean
    for (scope, name), is_on in interval.new.unclean.items():
        if not is_on or before.get((scope, name), False):
            continue
        topic = name if scope == "topic" else None
        if topic is not None and topic in interval.topics and is_new(interval.topics[topic]):
            continue
        is_heard = scope in {"topic", "cluster"} or (
            scope == "broker" and name == str(interval.controller)
        )
        if is_heard:
            whose = f"topic {topic}" if topic else "every topic that says nothing"
            yield Fact(
                Place.UNCLEAN_ENABLED,
                event_text("unclean_enabled", topic=topic),
                f"{UNCLEAN_SETTING} was not true and is, for {whose}",
                topic=topic or "",
            )
