"""The answer as one pass: scenarios are replayed and judged in the same task (``in_columns``)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from understudy.columns import HandOver, Pass, Told, beside
from understudy.controller.columnar.feed import Key, LaidOut, Work
from understudy.names import SCENARIO_KEY
from understudy.questions.availability import min_isr_by_topic
from understudy.questions.what_if.impact import judged

if TYPE_CHECKING:
    import pyarrow as pa

_TABLES: Final = frozenset({"impact", "impact_partitions", "impact_brokers"})


class About(NamedTuple):
    """What an answer says of a scenario, and who lives no longer, or again, at its end."""

    brokers: tuple[int, ...]
    gone: tuple[int, ...]
    back: tuple[int, ...]


class Known(NamedTuple):
    """What the tasks have to know of a snapshot, beside what a replay needs."""

    min_isr: dict[str | None, int]  # by topic; None stands for every other one
    about: dict[str, About]  # by scenario


def one_pass(asked: LaidOut, about: Mapping[Key, dict[str, About]], cases: DataFrame) -> Pass:
    """The tables of the scenarios *about*, all of which are *asked* for in columns.

    *cases* has for each of them what its verdict depends on beside its counts.
    """
    known = {key: Known(_min_isr(asked.work.known[key]), each) for key, each in about.items()}
    judged_by = cases.select(*SCENARIO_KEY, "complete", "quorum_survives", "quorum_reason")

    def finished(told: DataFrame) -> DataFrame:
        rows = told.drop("verdict", "reason")
        return judged(rows.join(F.broadcast(judged_by), on=list(SCENARIO_KEY), how="inner"))

    return Pass(asked.rows, _TABLES, partial(_tell, asked.work, known), {"impact": finished})


def _min_isr(known: Mapping[str, Any]) -> dict[str | None, int]:
    return min_isr_by_topic(known["configs"], known["snapshot"]["controller_id"])


def _tell(
    work: Work,
    known: Mapping[Key, Known],
    batches: Iterator[pa.RecordBatch],
    wanted: Collection[str],
) -> Told:
    # Arrays are for those who work with them.
    from understudy.questions.what_if.in_columns import (  # noqa: PLC0415
        READ,
        Answer,
        Before,
        portions,
    )

    def tell(hand_over: HandOver) -> None:
        for share, cluster in work.each(batches):
            own = known[share.snapshot]
            before = Before(cluster, own.min_isr)
            for some in portions(len(share.scenarios), len(cluster.ids)):
                part = share._replace(scenarios=share.scenarios[some])
                about = {name: own.about[name] for name, _ in part.scenarios}
                answer = Answer(before, share.snapshot, about, hand_over, wanted)
                work.replay(part, cluster, answer.take, READ)
                answer.tell_sums(work.known[share.snapshot]["brokers"])

    return beside(tell)
