"""Successive snapshots of a cluster, and what is different from one to the next.

Every table is read once: its rows are laid out by key and snapshot number, and each row looks at
its neighbours. How many snapshots there are changes nothing in the plan.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from understudy.controller.native.sql import struct
from understudy.names import SNAPSHOT_KEY

STEP_KEY = ("cluster", "number")


def added(df: DataFrame, **columns: str) -> DataFrame:
    """*df* with more columns, each an expression over those it has."""
    return df.selectExpr("*", *(f"{value} AS {name}" for name, value in columns.items()))


def numbered(snapshots: DataFrame) -> DataFrame:
    """The complete snapshots of each cluster, numbered from 1, beside what the one before said.

    A snapshot that is not complete is left out: what it lacks would look like something gone.
    """
    order = "OVER (PARTITION BY cluster ORDER BY taken_at, controller_epoch, snapshot_id)"
    return snapshots.where("coalesce(complete, true)").selectExpr(
        *SNAPSHOT_KEY,
        "mode = 'kraft' AS is_kraft",
        "controller_id",
        "controller_epoch",
        f"lag(controller_id) {order} AS old_controller_id",
        f"lag(controller_epoch) {order} AS old_controller_epoch",
        f"row_number() {order} AS number",
        "count(*) OVER (PARTITION BY cluster) AS last",
    )


def steps(table: DataFrame, keys: Sequence[str], numbers: DataFrame) -> DataFrame:
    """Each key of *table* in each two successive snapshots that have it.

    Columns: cluster, number (of the later snapshot), the keys, and two structs, *before* and
    *after*; the one is null where the key is new, the other where it is gone.
    """
    values = [name for name in table.columns if name not in {*SNAPSHOT_KEY, *keys}]
    order = f"OVER (PARTITION BY cluster, {', '.join(keys)} ORDER BY number)"
    placed = table.join(
        F.broadcast(numbers.select(*SNAPSHOT_KEY, "number", "last")), list(SNAPSHOT_KEY)
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
