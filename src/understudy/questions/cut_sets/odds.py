"""How likely losses are when brokers fail by themselves, each at its own rate.

What is expected to be lost is exact: by the linearity of expectation it is the sum of what each
partition risks, and that is a count of failures reaching a threshold. That anything at all is lost
depends on how sets overlap; it is exact where ``broker_sets`` can say so, else between two bounds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import exp, log1p, prod
from typing import Final

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from understudy.frames import small_frame
from understudy.names import SNAPSHOT_KEY
from understudy.questions.broker_sets import Bounds, probability_of_any
from understudy.questions.cut_sets.cuts import conditions
from understudy.schemas import CUT_TOTALS

SETS_AT_MOST: Final = 2_000
"""The likeliest sets of each snapshot and risk that are looked at together."""

_KEY: Final = (*SNAPSHOT_KEY, "risk")
_COUNTED: Final = {
    "partitions": "count(1)",
    "already": "count_if(already)",
}


@dataclass(frozen=True)
class Rates:
    """How likely each broker is to be down; those that are not named have the default."""

    default: float = 0.0
    by_broker: Mapping[int, float] = field(default_factory=dict)

    def of(self, broker: int) -> float:
        return self.by_broker.get(broker, self.default)

    def sql(self, broker: str) -> str:
        if not self.by_broker:
            return f"{self.default!r}D"
        pairs = ", ".join(f"{int(b)}, {float(r)!r}D" for b, r in sorted(self.by_broker.items()))
        return f"coalesce(try_element_at(map({pairs}), {broker}), {self.default!r}D)"


def with_probability(risks: DataFrame, rates: Rates) -> DataFrame:
    """``probability``, that the risk of a row comes true; 0 where it has already."""
    leader = rates.sql("leader")
    with_leader = _at_least("take_with", "pool_with", rates)
    without = _at_least("take_without", "pool_without", rates)
    risk = f"{leader} * {with_leader} + (1 - {leader}) * {without}"
    return risks.withColumn("probability", F.expr(f"IF(already, 0D, {risk})"))


def _at_least(take: str, pool: str, rates: Rates) -> str:
    """That at least *take* of *pool* fail: the odds of each number of failures, summed up."""
    rate = rates.sql("b")
    step = (
        f"transform(sequence(0, size(odds)), n -> coalesce(get(odds, n), 0D) * (1 - {rate})"
        f" + IF(n > 0, get(odds, n - 1), 0D) * {rate})"
    )
    odds = f"aggregate({pool}, array(1D), (odds, b) -> {step})"
    tail = f"slice({odds}, greatest({take}, 0) + 1, size({pool}) + 1)"
    summed = f"aggregate({tail}, 0D, (sum, p) -> sum + p)"
    return f"IF({take} > size({pool}), 0D, {summed})"


def totals(
    partitions: DataFrame, sets: DataFrame, brokers: DataFrame, rates: Rates | None
) -> DataFrame:
    """The table ``cut_totals``, two rows for each snapshot, which the driver puts together.

    *partitions* are those of ``cuts.thresholds`` with a weight, *sets* those of ``cut_sets``, of
    every size; *rates* only where the sets are of brokers.
    """
    columns = dict(_COUNTED)
    rated = conditions(partitions)
    if rates is not None:
        rated = with_probability(rated, rates)
        columns |= {
            "expected_partitions": "sum(probability)",
            "expected_weight": "sum(probability * weight)",
        }
    counted = rated.groupBy(*_KEY).agg(*(F.expr(f"{e} AS {c}") for c, e in columns.items()))
    found = sets.groupBy(*_KEY).agg(
        F.expr("count(1) AS sets"), F.expr("min(coalesce(size(units), size(brokers))) AS smallest")
    )
    live = (
        brokers.where("alive AND NOT coalesce(shutting_down, false)")
        .groupBy(*SNAPSHOT_KEY)
        .agg(F.expr("count(1) AS brokers"))
    )
    rows = (
        counted.join(F.broadcast(found), list(_KEY), "left")
        .join(F.broadcast(live), list(SNAPSHOT_KEY), "left")
        .orderBy(*_KEY)
        .collect()
    )
    anything = {} if rates is None else any_loss(sets, rates)
    return small_frame(
        partitions.sparkSession, [_total(row, anything, rates) for row in rows], CUT_TOTALS
    )


def _total(
    row: Row, anything: Mapping[tuple[str, str, str], Bounds], rates: Rates | None
) -> tuple[object, ...]:
    known = row.asDict()
    nothing = Bounds(0.0, 0.0)
    bounds = None if rates is None else anything.get((row.cluster, row.snapshot_id, row.risk))
    odds = (None, None) if rates is None else (bounds or nothing)
    return (
        *(row.cluster, row.snapshot_id, row.risk),
        row.brokers or 0,
        row.partitions,
        row.already,
        row.sets or 0,
        row.smallest,
        known.get("expected_partitions"),
        known.get("expected_weight"),
        *odds,
    )


def any_loss(
    sets: DataFrame, rates: Rates, at_most: int = SETS_AT_MOST
) -> dict[tuple[str, str, str], Bounds]:
    """Per snapshot and risk, how likely it is that some set is lost.

    The likeliest sets are looked at together. The others can only add to that: at most as much as
    if they failed independently (Harris' inequality).
    """
    odds = f"aggregate(brokers, 1D, (p, b) -> p * {rates.sql('b')})"
    whole = "sum(IF(p >= 1, -double('Infinity'), ln(1 - p)))"
    ranked = sets.withColumn("p", F.expr(odds)).selectExpr(
        *_KEY,
        "brokers",
        f"row_number() OVER (PARTITION BY {', '.join(_KEY)} ORDER BY p DESC, brokers) AS place",
        f"{whole} OVER (PARTITION BY {', '.join(_KEY)}) AS whole",
    )
    likely: dict[tuple[str, str, str], list[list[int]]] = {}
    none_lost: dict[tuple[str, str, str], float] = {}
    for row in ranked.where(f"place <= {int(at_most) + 1}").orderBy("place").collect():
        key = (row.cluster, row.snapshot_id, row.risk)
        likely.setdefault(key, []).append(row.brokers)
        none_lost[key] = exp(row.whole)
    return {key: _bounds(found, none_lost[key], rates, at_most) for key, found in likely.items()}


def _bounds(found: list[list[int]], none_lost: float, rates: Rates, at_most: int) -> Bounds:
    named = {broker: rates.of(broker) for each in found for broker in each}
    seen = probability_of_any(found[:at_most], named)
    if len(found) <= at_most:
        return seen
    # Of all sets together those looked at leave this much of "none is lost" to the others.
    of_seen = sum(log1p(-min(prod(named[b] for b in s), 1 - 1e-16)) for s in found[:at_most])
    others = min(1.0, none_lost / exp(of_seen)) if none_lost > 0 else 0.0
    return Bounds(seen.low, max(seen.low, 1 - (1 - seen.high) * others))
