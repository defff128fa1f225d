"""Facts about one partition: what all kinds of them have in common."""

from __future__ import annotations

from collections.abc import Iterable

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


def isr_report(step: PartitionStep, place: int, isr: tuple[int, ...], rank: int) -> Fact:
    said = f"{name_of(step)} had ISR {ids_text(step.old_isr)} and has {ids_text(step.isr)}"
    if step.by_leaders is not None:
        changes = "change" if step.by_leaders == 1 else "changes"
        said += f", after {step.by_leaders} {changes} by leaders"
    event = event_text("isr_change", isr=list(isr), partition=name_of(step))
    return fact_of(step, place, event, said, rank=rank)
