"""What cut sets say, in a screenful: how many of each size, the worst of them, who must return."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from pyspark import inheritable_thread_target
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from understudy import publish
from understudy.names import SNAPSHOT_KEY
from understudy.questions.cut_sets.cuts import FULL_ACKS, RISKS, UNAVAILABLE
from understudy.questions.recovery import Return, returns
from understudy.report import summary
from understudy.report.tables import amount, of_which, table, wrapped

Told = dict[str, Any]

_HEADINGS: Final = {
    UNAVAILABLE: "without a leader",
    FULL_ACKS: "blocked for acks=all",
}
_LOST: Final = {
    UNAVAILABLE: "Sets whose loss leaves partitions without a leader",
    FULL_ACKS: "Sets whose loss blocks acks=all",
}


# --- Gathering -----------------------------------------------------------------------------------


def gather(spark: SparkSession, root: str, run_id: str, *, k: int, limit: int) -> Told:
    """The facts of one published run; the questions are asked at the same time."""

    def rows_of(name: str) -> DataFrame:
        return publish.read_runs(spark, root, name, [run_id]).drop("run_id")

    def worst(risk: str, size: int) -> Told:
        sets = rows_of("cut_sets").where((F.col("risk") == risk) & (F.col("k") == size))
        order: list[Column | str] = [
            F.desc("weight"),
            F.desc("partitions"),
            *SNAPSHOT_KEY,
            "brokers",
        ]
        count, first = summary.first_rows(sets, order, limit)
        return {"risk": risk, "k": size, "count": count, "first": first}

    def totals() -> list[Told]:
        order: list[Column | str] = [*SNAPSHOT_KEY, F.desc("risk")]
        return summary.first_rows(rows_of("cut_totals"), order, limit)[1]

    def recovery() -> list[Told]:
        return [_return(each) for each in returns(rows_of("recovery"))]

    with ThreadPoolExecutor(4, thread_name_prefix="summary") as pool:
        inherit = inheritable_thread_target(spark)
        asked_totals = pool.submit(inherit(totals))
        asked_recovery = pool.submit(inherit(recovery))
        asked = [pool.submit(inherit(worst), r, n) for r in RISKS for n in range(1, k + 1)]
        return {
            "totals": asked_totals.result(),
            "recovery": asked_recovery.result(),
            "worst": [each.result() for each in asked],
        }


def _return(found: Return) -> Told:
    needed = found.needed
    return {
        "cluster": found.cluster,
        "snapshot_id": found.snapshot_id,
        "partitions": found.partitions,
        "hopeless": found.hopeless,
        "brokers": None if needed is None else list(needed.brokers),
        "at_least": None if needed is None else needed.at_least,
    }


# --- Telling -------------------------------------------------------------------------------------


def as_text(told: Told) -> str:
    keys = _telling_keys(told["totals"])
    blocks = [
        _totals(told, keys),
        *(_worst(found, keys) for found in told["worst"]),
        *(_recovery(found) for found in told["recovery"]),
        [line for note in told["notes"] for line in wrapped(f"Note: {note}.")],
        summary.refusals(told.get("quarantine", {})),
        summary.told_tables(told),
    ]
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _telling_keys(rows: Sequence[Told]) -> list[str]:
    return [key for key in SNAPSHOT_KEY if len({row[key] for row in rows}) > 1]


def _totals(told: Told, keys: Sequence[str]) -> list[str]:
    rows = [
        (
            *(row[key] for key in keys),
            _HEADINGS[row["risk"]],
            *(row[name] for name in ("partitions", "already", "sets", "smallest")),
            _number(row["expected_partitions"]),
            _chance(row["any_low"], row["any_high"]),
        )
        for row in told["totals"]
    ]
    headings = (*keys, "risk", "partitions", "already", "sets", "smallest", "expected", "any loss")
    rated = any(row["expected_partitions"] is not None for row in told["totals"])
    if not rated:
        headings, rows = headings[:-2], [row[:-2] for row in rows]
    return ["Minimal sets whose loss costs partitions", *table(headings, rows)]


def _worst(found: Told, keys: Sequence[str]) -> list[str]:
    if not found["count"]:
        return []
    is_weighed = any(row["weight"] != row["partitions"] for row in found["first"])
    rows = [
        (
            *(row[key] for key in keys),
            row["partitions"],
            row["topics"],
            *([_number(row["weight"])] if is_weighed else []),
            ", ".join(row["units"] or map(str, row["brokers"])),
        )
        for row in found["first"]
    ]
    weight = ["weight"] if is_weighed else []
    listed = of_which(len(rows), found["count"], which="worst")
    beyond = "" if found["k"] == 1 else "; on top of what a part of each costs"
    sets = f"{amount(found['count'], 'set')}{listed}{beyond}"
    return [
        f"{_LOST[found['risk']]}, k = {found['k']}: {sets}",
        *table((*keys, "partitions", "topics", *weight, "set"), rows),
    ]


def _recovery(found: Told) -> list[str]:
    waiting = amount(found["partitions"], "partition")
    lines = [f"Waiting for a broker to return ({found['snapshot_id']}): {waiting}"]
    if found["brokers"]:
        ids = ", ".join(map(str, found["brokers"]))
        fewest = len(found["brokers"]) == found["at_least"]
        bound = "no fewer would do" if fewest else f"at least {found['at_least']} are needed"
        lines += wrapped(
            f"  the return of {ids} brings back all that can be brought back ({bound})"
        )
    if found["hopeless"]:
        lost = amount(found["hopeless"], "partition")
        lines.append(f"  {lost} cannot come back with every record, whoever returns")
    return lines


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.4g}"


def _chance(low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return "-"
    return f"{low:.3g}" if low == high else f"{low:.3g} to {high:.3g}"
