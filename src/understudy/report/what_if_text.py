"""What failures would do, in a screenful: the verdict, the worst scenarios, who is at risk."""

from __future__ import annotations

from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from understudy import publish
from understudy.names import SCENARIO_KEY, SNAPSHOT_KEY
from understudy.questions.what_if.impact import CANNOT_DECIDE, SAFE, UNSAFE, WARNINGS, WORST_FIRST
from understudy.report.summary import are_several, first_rows, refusals, several_of, told_tables
from understudy.report.tables import amount, leader, listed, table, wrapped
from understudy.schemas import RISKS

Told = dict[str, Any]

RISK_MEANINGS: Final = {
    "rf1_offline": "a single replica goes offline",
    "unavailable": "no leader",
    "full_acks_produce_unavailable": "no leader or under min ISR: acks=all is refused",
    "acks1_data_loss": "the leader dies: writes with acks=1 that only it had may be lost",
}
_VERDICTS: Final = {
    UNSAFE: "unsafe",
    CANNOT_DECIDE: "cannot be decided",
    WARNINGS: "with warnings",
    SAFE: "safe",
}
_COUNTS: Final = ("unavailable", "full_acks_produce_unavailable", "unclean", "newly_at_min_isr")
_SHOWN: Final = (
    *(*SCENARIO_KEY, "verdict", *_COUNTS, "leaders_moved", "partitions", "reason"),
    *("offline_before", "offline", "acks_all_blocked_before", "acks_all_blocked", "brokers"),
    *("at_min_isr_before", "at_min_isr", "leader_skew", "busiest_broker", "busiest_bytes"),
    "internal_topics",
)


# --- Gathering -----------------------------------------------------------------------------------


def gather(spark: SparkSession, root: str, run_id: str, *, topic: str | None, limit: int) -> Told:
    """The facts of one published answer, ready for JSON."""
    impact = publish.read_runs(spark, root, "impact", [run_id])
    partitions = publish.read_runs(spark, root, "impact_partitions", [run_id])
    if topic is not None:
        partitions = partitions.where(F.col("topic").rlike(topic))
    scenarios = worst_scenarios(impact, limit)
    row = impact.agg(
        *(F.count_if(F.col("verdict") == name).alias(name) for name in WORST_FIRST),
        *(F.count_if(F.col(risk) > 0).alias(risk) for risk in RISKS),
        F.array_sort(F.array_distinct(F.flatten(F.collect_set("internal_topics")))).alias(
            "internal_topics"
        ),
        F.count_distinct(*SNAPSHOT_KEY).alias("snapshots"),
        *are_several(SNAPSHOT_KEY),
    ).first()
    totals = row.asDict() if row is not None else {}
    at_risk, named = first_rows(
        partitions.where("size(risks) > 0").select(
            *SCENARIO_KEY, "topic", "partition", "risks", "leader_before", "leader", "isr", "reason"
        ),
        [F.desc(F.array_contains("risks", "unavailable")), *SCENARIO_KEY, "topic", "partition"],
        limit,
    )
    return {
        "scenarios": scenarios,
        "snapshots": totals.get("snapshots", 0),
        "several": several_of(totals, SNAPSHOT_KEY),
        "verdicts": {name: totals.get(name, 0) for name in WORST_FIRST},
        "risks": {risk: totals.get(risk, 0) for risk in RISKS},
        "internal_topics": totals.get("internal_topics", []),
        "at_risk": {"count": at_risk, "first": named, "topic": topic},
    }


def worst_scenarios(impact: DataFrame, limit: int) -> Told:
    """How many scenarios there are, and the worst of them."""
    worst = F.array_position(F.lit(list(WORST_FIRST)), F.col("verdict"))
    count, first = first_rows(
        impact.select(*_SHOWN),
        [worst, *(F.desc(name) for name in (*_COUNTS, "leaders_moved")), *SCENARIO_KEY],
        limit,
    )
    return {"count": count, "first": first}


# --- Telling -------------------------------------------------------------------------------------


def as_text(told: Told) -> str:
    blocks = [
        [_headline(told)],
        _told_scenarios(told),
        _told_risks(told),
        _told_internal(told),
        _told_partitions(told),
        [line for note in told["notes"] for line in wrapped(f"Note: {note}.")],
        refusals(told.get("quarantine", {})),
        told_tables(told),
    ]
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _headline(told: Told) -> str:
    parts = [f"{told['verdicts'][v]:,} {word}" for v, word in _VERDICTS.items()]
    counted = [part for part in parts if not part.startswith("0 ")]
    return f"Verdict: {told['verdict']}. Of {how_many(told)}: {', '.join(counted)}."


def how_many(told: Told) -> str:
    """``12 scenarios``, or ``36 scenarios over 3 snapshots``."""
    over = f" over {told['snapshots']:,} snapshots" if told["snapshots"] > 1 else ""
    return amount(told["scenarios"]["count"], "scenario") + over


def _told_scenarios(told: Told) -> list[str]:
    found = told["scenarios"]
    keys = told["several"]
    rows = [
        (
            *(row[key] for key in keys),
            row["scenario"],
            row["verdict"],
            row["unavailable"],
            row["full_acks_produce_unavailable"],
            row["unclean"],
            row["newly_at_min_isr"],
            row["leaders_moved"],
            row["reason"] or "",
        )
        for row in found["first"]
    ]
    headings = (*keys, "scenario", "verdict", "offline", "blocked", "unclean", "at min", "moved")
    return [
        f"Scenarios, the worst first: {listed(found, 'scenario')}",
        *table((*headings, "why"), rows),
        "  offline, blocked (acks=all), at min (ISR): partitions that newly are so",
    ]


def _told_risks(told: Told) -> list[str]:
    rows = [(told["risks"][risk], risk, meaning) for risk, meaning in RISK_MEANINGS.items()]
    return ["Risks that come true", *table(("scenarios", "risk", ""), rows)]


def _told_internal(told: Told) -> list[str]:
    if not told["internal_topics"]:
        return []
    return wrapped(f"Internal topics at risk: {', '.join(told['internal_topics'])}.")


def _told_partitions(told: Told) -> list[str]:
    found = told["at_risk"]
    if not found["count"]:
        return []
    keys = told["several"]
    rows = [
        (
            f"{row['topic']}-{row['partition']}",
            *(row[key] for key in keys),
            row["scenario"],
            leader(row["leader_before"]),
            leader(row["leader"]),
            ", ".join(row["risks"]),
        )
        for row in found["first"]
    ]
    matching = f" (topics matching {found['topic']})" if found["topic"] else ""
    return [
        f"Partitions at risk{matching}: {listed(found, 'row')}",
        *table(("partition", *keys, "scenario", "led by", "then by", "risks"), rows),
    ]
