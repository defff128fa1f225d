"""The table ``exposure``: how long a partition or a broker was in which condition.

A condition holds from the first snapshot that shows it until the first that no longer does. What is
already known as an interval, and what was found in single snapshots, are both stretches of
successive snapshots; those that touch become one. So an interval can be carried on from run to run,
and comes out as if all snapshots had been seen at once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from understudy import schemas
from understudy.columns import codes, differs
from understudy.frames import arrow_conform, arrow_rows
from understudy.questions.audit.ledger import History
from understudy.questions.audit.rule_set import CATALOGUE

if TYPE_CHECKING:
    import pyarrow as pa

_SUBJECT: Final = ("cluster", "topic", "partition", "broker_id", "rule")
_STRETCH: Final = (*_SUBJECT, "first_snapshot", "last_snapshot", "snapshots")
CONDITIONS: Final = tuple(rule.name for rule in CATALOGUE.values() if not rule.lookback)
"""Rules that can go on for a while; the others tell of something that happened."""

_NUMBERS: Final = T.StructType(
    [
        T.StructField("cluster", schemas.STRING),
        T.StructField("snapshot_id", schemas.STRING),
        T.StructField("number", schemas.LONG),
        T.StructField("micros", schemas.LONG),
        T.StructField("next_micros", schemas.LONG),
    ]
)

Number = tuple[str, str, int, int | None, int | None]
"""Cluster and snapshot, its number, when it was taken and when the next one was."""


def numbers(histories: Iterable[History]) -> list[Number]:
    """The judged complete snapshots of each cluster, numbered."""
    rows = []
    for history in histories:
        taken = [*(seen.taken_at for seen in history.judged), None]
        rows += [
            (*seen.key, n, seen.taken_at, taken[n]) for n, seen in enumerate(history.judged, 1)
        ]
    return rows


def found_in(findings: DataFrame) -> DataFrame:
    """What *findings* tell of conditions, each a stretch of one snapshot."""
    return (
        findings.where(F.col("rule").isin(*CONDITIONS))
        .where("silenced IS NULL")
        .selectExpr(
            *("cluster", "topic", "partition"),
            # Which broker a partition's condition is about may change while it lasts.
            "IF(topic IS NULL, broker_id, NULL) AS broker_id",
            *("rule", "snapshot_id AS first_snapshot", "snapshot_id AS last_snapshot"),
            "1L AS snapshots",
        )
    )


def known_from(exposure: DataFrame) -> DataFrame:
    """Intervals of an earlier run as stretches."""
    return exposure.select(*_STRETCH)


def carried_on(
    exposure: pa.Table, last: Collection[tuple[str, str]], findings: pa.Table
) -> pa.Table:
    """The stretches of both, at hand: intervals of the *last* run of each cluster, and findings."""
    import pyarrow as pa  # noqa: PLC0415 - importing the package must not load it
    import pyarrow.compute as pc  # noqa: PLC0415

    names = zip(*(exposure[name].to_pylist() for name in ("cluster", "run_id")), strict=True)
    exposure = exposure.filter(pa.array([name in last for name in names], pa.bool_()))
    is_counted = pc.and_(
        pc.is_in(findings["rule"], pa.array(CONDITIONS)), findings["silenced"].is_null()
    )
    found = findings.filter(is_counted)
    of_broker = pc.if_else(found["topic"].is_null(), found["broker_id"], None)
    found = found.set_column(found.column_names.index("broker_id"), "broker_id", of_broker)
    for end in ("first", "last"):
        found = found.append_column(f"{end}_snapshot", found["snapshot_id"])
    found = found.append_column("snapshots", pa.repeat(pa.scalar(1, pa.int64()), len(found)))
    return pa.concat_tables([exposure.select(_STRETCH), found.select(_STRETCH)])


def exposure(stretches: DataFrame, numbered: Sequence[Number]) -> DataFrame:
    """The stretches that touch, joined into intervals; null until: still so in the newest."""
    of_subjects = stretches.repartition(*_SUBJECT)
    return of_subjects.mapInArrow(partial(_each_joined, numbered), schemas.EXPOSURE)


def _each_joined(
    numbered: Sequence[Number], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa  # noqa: PLC0415 - executors only

    given = list(batches)
    if given:
        yield from joined(pa.Table.from_batches(given), numbered).to_batches()


def joined(stretches: pa.Table, numbered: Sequence[Number]) -> pa.Table:
    """As :func:`exposure` says it, of all the stretches of some subjects."""
    import numpy as np  # noqa: PLC0415 - importing the package must not load it
    import pyarrow as pa  # noqa: PLC0415

    places = arrow_rows(numbered, _NUMBERS)
    placed = stretches
    for end in ("first", "last"):
        number = places.select(["cluster", "snapshot_id", "number"]).rename_columns(
            ["cluster", f"{end}_snapshot", end]
        )
        placed = placed.join(number, ["cluster", f"{end}_snapshot"], join_type="inner")
    names = [*_SUBJECT, "first", "last"]
    distinct = placed.group_by([*names, "snapshots"]).aggregate([])
    rows = distinct.sort_by([(name, "ascending") for name in names])
    first, last, count = (rows[name].to_numpy() for name in ("first", "last", "snapshots"))
    subject = np.cumsum(differs(codes(rows[name]) for name in _SUBJECT))
    # The last snapshot so far of each subject: none reaches as far as the next subject.
    beyond = subject * (len(numbered) + 2)
    far = np.maximum.accumulate(last + beyond)
    begins = np.flatnonzero(np.append([True], first[1:] + beyond[1:] > far[:-1] + 1)[: len(first)])
    ends = np.append(begins, len(first))[1:] - 1
    intervals = rows.select(_SUBJECT).take(begins)
    sums = np.add.reduceat(count, begins) if len(begins) else count
    found = {"first": first[begins], "last": (far - beyond)[ends], "snapshots": sums}
    for name, values in found.items():
        intervals = intervals.append_column(name, pa.array(values, pa.int64()))
    for end, told in (("first", "micros"), ("last", "next_micros")):
        side = places.select(["cluster", "number", "snapshot_id", told]).rename_columns(
            ["cluster", end, f"{end}_snapshot", told]
        )
        # Without threads they stay in their order: the same again gives the same bytes.
        intervals = intervals.join(side, ["cluster", end], join_type="inner", use_threads=False)
    return arrow_conform(
        intervals.rename_columns({"micros": "since", "next_micros": "until"}), schemas.EXPOSURE
    )
