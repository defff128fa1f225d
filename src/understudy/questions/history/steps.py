"""Successive snapshots of a cluster, and what is different from one to the next.

Every table is read once: its rows are laid out by key and snapshot number, and each row looks at
its neighbours. How many snapshots there are changes nothing in the plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter
from typing import Final, NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from understudy import schemas
from understudy.frames import small_frame
from understudy.names import SNAPSHOT_KEY
from understudy.questions.history.order import Moment, bursts
from understudy.sql import struct

STEP_KEY = ("cluster", "number")

_NUMBERS: Final = T.StructType(
    [
        T.StructField("cluster", schemas.STRING),
        T.StructField("snapshot_id", schemas.STRING),
        T.StructField("controller_id", schemas.INT),
        T.StructField("controller_epoch", schemas.INT),
        T.StructField("number", schemas.INT),
        T.StructField("last", schemas.INT),
        T.StructField("burst", schemas.INT),
    ]
)


class Listed(NamedTuple):
    """A snapshot of a history, and a number that those of its burst have in common."""

    cluster: str
    snapshot_id: str
    controller_id: int | None
    controller_epoch: int | None
    burst: int


def added(df: DataFrame, **columns: str) -> DataFrame:
    """*df* with more columns, each an expression over those it has."""
    return df.selectExpr("*", *(f"{value} AS {name}" for name, value in columns.items()))


def listed(snapshots: DataFrame) -> list[Listed]:
    """The complete snapshots of each cluster, in order.

    A snapshot that is not complete is left out: what it lacks would look like something gone. The
    list of snapshots is short and wanted in many places, so it comes to the driver: one small job
    instead of a window in each of them.
    """
    found = (
        snapshots.where("coalesce(complete, true)")
        .selectExpr(
            *(*SNAPSHOT_KEY, "controller_id", "controller_epoch", "mode"),
            "unix_micros(taken_at) AS micros",
        )
        .collect()
    )
    rows = []
    for _, each in groupby(sorted(found, key=attrgetter("cluster")), attrgetter("cluster")):
        moments = [
            (Moment(row.micros, row.controller_epoch, row.snapshot_id, row.mode), row)
            for row in each
        ]
        moments.sort(key=lambda pair: pair[0].order)
        firsts = bursts([moment for moment, _ in moments])
        rows += [
            Listed(row.cluster, row.snapshot_id, row.controller_id, row.controller_epoch, first)
            for (_, row), first in zip(moments, firsts, strict=True)
        ]
    return rows


def numbered(spark: SparkSession, history: Sequence[Listed]) -> DataFrame:
    """The snapshots of each cluster, numbered from 1; *last* is their count."""
    rows = []
    for _, each in groupby(history, attrgetter("cluster")):
        of_cluster = list(each)
        rows += [
            (*row[:4], number, len(of_cluster), row.burst)
            for number, row in enumerate(of_cluster, start=1)
        ]
    return small_frame(spark, rows, _NUMBERS)


def steps(table: DataFrame, keys: Sequence[str], numbers: DataFrame) -> DataFrame:
    """Each key of *table* in each two successive snapshots that have it.

    Columns: cluster, number (of the later snapshot), the keys, and two structs, *before* and
    *after*; the one is null where the key is new, the other where it is gone.
    """
    values = [name for name in table.columns if name not in {*SNAPSHOT_KEY, *keys}]
    order = f"OVER (PARTITION BY cluster, {', '.join(keys)} ORDER BY number)"
    placed = table.join(
        numbers.select(*SNAPSHOT_KEY, "number", "last").hint("broadcast"), list(SNAPSHOT_KEY)
    ).selectExpr(
        *("cluster", "number", "last", *keys),
        f"{struct(**{name: name for name in values})} AS row",
    )
    beside = added(
        placed,
        earlier=f"lag(struct(number, row)) {order}",
        is_gone_next=f"number < last AND NOT (lead(number) {order} <=> number + 1)",
    )
    here = struct(
        number="number", before="IF(earlier.number = number - 1, earlier.row, NULL)", after="row"
    )
    gone = struct(number="number + 1", before="row", after="IF(is_gone_next, NULL, row)")
    return beside.selectExpr(
        "cluster", *keys, f"inline(IF(is_gone_next, array({here}, {gone}), array({here})))"
    ).where("number > 1")
