"""Facts about one partition: what all kinds of them have in common."""

from __future__ import annotations

from collections.abc import Iterable

from understudy.controller.words import NO_LEADER
from understudy.questions.history.facts import Fact, Item, event_text
from understudy.questions.history.partitions import PartitionStep


def name_of(step: PartitionStep) -> str:
    return f"{step.topic}-{step.partition}"


def ids_text(ids: Iterable[int]) -> str:
    return f"[{', '.join(map(str, ids))}]"


def fact_of(
    step: PartitionStep,
    place: int,
    event: str,
    said: str,
    *,
    item: Item | None = None,
    rank: int = 0,
) -> Fact:
    return Fact(place, event, said, item, rank=rank, topic=step.topic, nth=step.partition)


def election(step: PartitionStep, event_type: str, place: int, rank: int = 0) -> Fact:
    """An election that somebody asked for."""
    was = "unknown" if step.before is None else step.before["leader_epoch"]
    said = (
        f"{name_of(step)} was led by {_leader(step.old_leader)} with ISR {ids_text(step.old_isr)}"
        f" and leader epoch {was}, and is led by {_leader(step.leader)} with leader epoch"
        f" {step.after['leader_epoch'] if step.after else None}"
    )
    if event_type == "unclean_election":
        said += ", which was not in sync"
    elif step.is_preferred:
        said += f", its first replica, though {step.heir} could lead"
    item = Item(("partitions",), name_of(step))
    return fact_of(step, place, event_text(event_type), said, item=item, rank=rank)


def _leader(leader: int) -> str:
    return "nobody" if leader == NO_LEADER else str(leader)


def isr_report(step: PartitionStep, place: int, isr: tuple[int, ...], rank: int) -> Fact:
    said = f"{name_of(step)} had ISR {ids_text(step.old_isr)} and has {ids_text(step.isr)}"
    if step.by_leaders is not None:
        changes = "change" if step.by_leaders == 1 else "changes"
        said += f", after {step.by_leaders} {changes} by leaders"
    event = event_text("isr_change", isr=list(isr), partition=name_of(step))
    return fact_of(step, place, event, said, rank=rank)
