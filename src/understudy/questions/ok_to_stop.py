"""Which partitions stand in the way of stopping some brokers at once, and who could go with them.

Stopping is judged as the loss of all of them at the same instant (``cuts``). A partition blocks
when that takes its leader away or blocks ``acks=all``, and it was not so before. Partitions with as
many replicas as min ISR or fewer are *unsavable*: any stop of theirs blocks, whatever the order.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pyspark.sql import DataFrame

from understudy.frames import unfolded
from understudy.questions.availability import is_internal
from understudy.questions.cut_sets.cuts import (
    FULL_ACKS,
    UNAVAILABLE,
    is_left_blocked,
    is_left_without_leader,
)
from understudy.questions.cut_sets.sets import blocking_sets, offline_sets
from understudy.sql import struct, text

CONFLICTS_AT_MOST: Final = 200_000
"""Distinct sets of brokers the driver takes; where there are more, each is cut down to two."""


def worst_risk(stopping: str) -> str:
    """The risk that stopping the brokers of an array makes come true, the worse one; else null."""
    return (
        f"CASE WHEN {is_left_without_leader(stopping)} THEN {text(UNAVAILABLE)}"
        f" WHEN {is_left_blocked(stopping)} THEN {text(FULL_ACKS)} END"
    )


def blocking(partitions: DataFrame, stopping: Iterable[int]) -> DataFrame:
    """The partitions of ``cuts.thresholds`` that stopping these brokers at once would cost."""
    found = struct(
        topic="topic",
        partition="partition",
        risk=worst_risk(_ids(stopping)),
        unsavable="unsavable",
        internal=is_internal(),
    )
    # A condition on the risk alone would be pushed down, and all it is made of worked out twice.
    rows = unfolded(partitions, f"filter(array({found}), p -> p.risk IS NOT NULL)")
    return rows.select("item.*")


def conflicts(
    partitions: DataFrame,
    stopping: Iterable[int],
    *,
    at_most: int,
    limit: int = CONFLICTS_AT_MOST,
) -> tuple[list[list[int]], bool]:
    """The sets of up to *at_most* more brokers that cannot go as well, and whether they are exact.

    Stopping these brokers alone must be safe. Where there are too many sets to look at, each is
    cut down to two of its members: what avoids those is safe, though more might be.
    """
    rest = (
        unfolded(partitions, f"concat({offline_sets()}, {blocking_sets()})")
        .selectExpr(f"array_except(item, {_ids(stopping)}) AS others")
        .where(f"size(others) <= {int(at_most)}")
        .distinct()
    )
    found = rest.limit(limit + 1).collect()
    if len(found) <= limit:
        return [row.others for row in found], True
    pairs = rest.selectExpr("slice(others, 1, 2) AS others").distinct().collect()
    return [row.others for row in pairs], False


def _ids(brokers: Iterable[int]) -> str:
    return f"CAST(array({', '.join(str(int(b)) for b in sorted(set(brokers)))}) AS ARRAY<INT>)"
