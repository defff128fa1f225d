"""The facts of a published what-if that its page shows.

Restart plans and cut sets published to the same place are taken where they are of the same
snapshot. Only counts, and rows up to a limit, ever reach the driver.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from pyspark import inheritable_thread_target
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from understudy import publish
from understudy.names import SCENARIO_KEY, SNAPSHOT_KEY
from understudy.report import what_if_text
from understudy.report.html.charts import MOST_ROWS
from understudy.report.summary import first_rows

Told = dict[str, Any]

_NOTHING: Final[Told] = {"count": 0, "first": []}
# Of every pair only counts are written: no rows per broker, so no skew.
_EVERY_PAIR: Final = "size(brokers) = 2 AND replica_skew_before IS NULL"


def gather(spark: SparkSession, root: str, run_id: str, *, topic: str | None, limit: int) -> Told:
    """The facts of one published what-if, and of what was planned for its worst snapshot."""
    impact = publish.read_runs(spark, root, "impact", [run_id])
    worst = what_if_text.worst_scenarios(impact.where(f"NOT ({_EVERY_PAIR})"), limit)
    shown = worst["first"] or what_if_text.worst_scenarios(impact, 1)["first"]
    focus = {name: shown[0][name] for name in SCENARIO_KEY} if shown else None

    def newest(name: str) -> DataFrame:
        return publish.read_runs(spark, root, name, publish.runs_with(spark, root, name)[-1:])

    def listed(rows: DataFrame, order: Sequence[Column | str], most: int = limit) -> Told:
        if focus is None:
            return _NOTHING
        count, first = first_rows(_of(rows, focus, SNAPSHOT_KEY), order, most)
        return {"count": count, "first": first}

    questions: dict[str, Callable[[], Any]] = {
        "text": lambda: what_if_text.gather(spark, root, run_id, topic=topic, limit=limit),
        "pairs": lambda: _pairs(impact.where(_EVERY_PAIR), focus, limit),
        "brokers": lambda: _brokers(
            publish.read_runs(spark, root, "impact_brokers", [run_id]), focus
        ),
        "recovery": lambda: listed(
            publish.read_runs(spark, root, "recovery", [run_id]), ["topic", "partition"]
        ),
        "cut_sets": lambda: listed(
            newest("cut_sets"), ["k", F.desc("weight"), "risk", "brokers", "units"]
        ),
        "rounds": lambda: listed(newest("restart_rounds"), ["round"], MOST_ROWS),
        "moves": lambda: listed(newest("restart_moves"), ["topic", "partition"]),
        "plan": lambda: _plan(spark, root),
    }
    with ThreadPoolExecutor(len(questions), thread_name_prefix="report") as pool:
        asked = {
            name: pool.submit(inheritable_thread_target(spark)(question))
            for name, question in questions.items()
        }
        told = {name: answer.result() for name, answer in asked.items()}
    return {**told.pop("text"), "worst": worst, "focus": focus, **told}


def _plan(spark: SparkSession, root: str) -> Told:
    """The answer that the newest restart plan was, and why; it may be no plan to act upon."""
    planned = publish.runs_with(spark, root, "restart_rounds")[-1:]
    runs = publish.visible_runs(spark, root).where(F.col("run_id").isin(planned))
    found = runs.select("run_id", "verdict").first()
    if found is None:
        return {"verdict": None, "notes": []}
    return {"verdict": found.verdict, "notes": publish.notes_of(spark, root, found.run_id)}


def _of(rows: DataFrame, focus: Mapping[str, str], names: Sequence[str]) -> DataFrame:
    for name in names:
        rows = rows.where(F.col(name) == focus[name])
    return rows


def _pairs(pairs: DataFrame, focus: Mapping[str, str] | None, limit: int) -> Told:
    """The worst pairs, and every pair of the brokers that are worst in pairs."""
    if focus is None:
        return {**_NOTHING, "brokers": 0, "ids": [], "cells": []}
    pairs = _of(pairs, focus, SNAPSHOT_KEY)
    found = what_if_text.worst_scenarios(pairs, limit)
    if not found["count"]:
        return {**found, "brokers": 0, "ids": [], "cells": []}
    each = pairs.selectExpr("explode(brokers) AS id", "full_acks_produce_unavailable AS blocked")
    ranked = each.groupBy("id").agg(F.sum("blocked").alias("blocked"))
    brokers, first = first_rows(ranked, [F.desc("blocked"), "id"], MOST_ROWS)
    ids = sorted(row["id"] for row in first)
    among = pairs.where(F.col("brokers")[0].isin(ids) & F.col("brokers")[1].isin(ids))
    cells = among.select("brokers", "unavailable", "full_acks_produce_unavailable", "verdict")
    rows = [row.asDict() for row in cells.orderBy("brokers").collect()]
    return {**found, "brokers": brokers, "ids": ids, "cells": rows}


def _brokers(rows: DataFrame, focus: Mapping[str, str] | None) -> Told:
    if focus is None:
        return _NOTHING
    moved = F.expr("abs(leaders - leaders_before)")
    rows = _of(rows, focus, SCENARIO_KEY)
    count, first = first_rows(rows, [F.desc(moved), "broker_id"], MOST_ROWS)
    return {"count": count, "first": sorted(first, key=lambda row: int(row["broker_id"]))}
