"""What an audit found, in a screenful: by rule, by topic, by broker, and for how long.

Only counts and the first few rows ever reach the driver; every listing says how many there are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from pyspark import inheritable_thread_target
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from understudy import auditing, publish
from understudy.names import SNAPSHOT_KEY
from understudy.questions.audit.rule import ERROR, INFO, UNDECIDED, WARNING
from understudy.questions.audit.rule_set import CATALOGUE
from understudy.questions.availability import is_internal
from understudy.questions.history.divergence import UNEXPLAINED
from understudy.report.summary import first_rows, refusals, told_tables
from understudy.report.tables import amount, cell, listed, table, wrapped

Told = dict[str, Any]

_SHOWN: Final = "yyyy-MM-dd'T'HH:mm:ss'Z'"
_WORST_FIRST: Final = (ERROR, WARNING, UNDECIDED, INFO)
_LISTINGS: Final = ("findings", "topics", "brokers", "racks", "exposure", "divergences")
_COUNTS: Final = ("errors", "warnings", "infos")
_VERDICTS: Final = {
    auditing.FAILS: "The rules are broken",
    auditing.CANNOT_DECIDE: "Cannot decide: not all snapshots say all there is",
    auditing.WARNINGS: "No rule is broken badly, but there are warnings",
    auditing.HOLDS: "All rules hold",
}
_NOTHING_THERE: Final = "Cannot decide: no snapshot was taken in that time"


# --- Gathering -----------------------------------------------------------------------------------


def gather(
    spark: SparkSession,
    root: str,
    clusters: Sequence[str],
    asked: auditing.Asked,
    *,
    topic: str | None,
    limit: int,
) -> Told:
    """The facts that hold in *root* for what was asked, ready for JSON."""
    if not publish.is_store(spark, root):
        nothing: Told = {"count": 0, "first": []}
        return {"rules": [], "changes": [], **dict.fromkeys(_LISTINGS, nothing)}

    def of(name: str) -> DataFrame:
        rows = publish.read(spark, root, name).where(F.col("cluster").isin(list(clusters)))
        return rows.where(F.col("topic").rlike(topic)) if topic is not None else rows

    def since_then(name: str) -> DataFrame:
        """What has no time of its own has that of its snapshot."""
        taken = publish.read(spark, root, "audited").select(*SNAPSHOT_KEY, "taken_at")
        timed = of(name).join(F.broadcast(taken), on=list(SNAPSHOT_KEY), how="inner")
        return auditing.in_range(timed, asked)

    found = auditing.in_range(of("findings"), asked).where("silenced IS NULL")
    questions: dict[str, Callable[[], Any]] = {
        "rules": lambda: _rules(found),
        "findings": lambda: _first(found, limit),
        "topics": lambda: _rolled_up(found, "topic", limit),
        "brokers": lambda: _rolled_up(found, "broker_id", limit),
        "racks": lambda: _rolled_up(found, "rack", limit),
        "exposure": lambda: _exposure(of("exposure"), limit),
        "changes": lambda: _reasons(since_then("changes")),
        "divergences": lambda: _divergences(since_then("divergences"), limit),
    }
    with ThreadPoolExecutor(len(questions), thread_name_prefix="summary") as pool:
        asked_now = {
            name: pool.submit(inheritable_thread_target(spark)(question))
            for name, question in questions.items()
        }
        return {name: answer.result() for name, answer in asked_now.items()}


def _severity_rank() -> Column:
    ranks = " ".join(f"WHEN '{name}' THEN {n}" for n, name in enumerate(_WORST_FIRST))
    return F.expr(f"CASE severity {ranks} ELSE {len(_WORST_FIRST)} END")


def _rules(found: DataFrame) -> list[Told]:
    """At most as many rows as there are rules."""
    counted = found.groupBy("rule", "severity").agg(
        F.count(F.lit(1)).alias("findings"),
        F.count_distinct("cluster", "snapshot_id").alias("snapshots"),
        F.count_distinct("cluster", "topic", "partition").alias("partitions"),
    )
    rows = counted.orderBy(_severity_rank(), F.desc("findings"), "rule").collect()
    return [
        row.asDict() | {"says": CATALOGUE[row.rule].says, "link": CATALOGUE[row.rule].link}
        for row in rows
        if row.rule in CATALOGUE
    ]


def _first(found: DataFrame, limit: int) -> Told:
    shown = found.select(
        *("cluster", "snapshot_id"),
        F.date_format("taken_at", _SHOWN).alias("taken_at"),
        *("rule", "severity", "topic", "partition", "broker_id", "evidence"),
    )
    # Consumers and transactions stand still while the internal topics do.
    internal = F.expr(f"coalesce({is_internal()}, false)").desc()
    order: list[Column | str] = [_severity_rank(), internal, F.desc("taken_at"), "rule", "cluster"]
    order += ["topic", "partition", "broker_id", "snapshot_id"]
    count, first = first_rows(shown, order, limit)
    return {"count": count, "first": first}


def _rolled_up(found: DataFrame, by: str, limit: int) -> Told:
    severities = zip(_COUNTS, (ERROR, WARNING, INFO), strict=True)
    counted = (
        found.where(F.col(by).isNotNull())
        .groupBy("cluster", by)
        .agg(*(F.count_if(F.col("severity") == s).alias(name) for name, s in severities))
    )
    count, first = first_rows(counted, [*(F.desc(name) for name in _COUNTS), "cluster", by], limit)
    return {"count": count, "first": first}


def _exposure(exposed: DataFrame, limit: int) -> Told:
    """What lasts before what is over, the worst first, then the longest."""
    shown = exposed.select(
        *("cluster", "topic", "partition", "broker_id", "rule", "snapshots"),
        F.date_format("since", _SHOWN).alias("since"),
        F.date_format("until", _SHOWN).alias("until"),
    )
    ranks = " ".join(
        f"WHEN '{rule.name}' THEN {_WORST_FIRST.index(rule.severity)}"
        for rule in CATALOGUE.values()
    )
    order: list[Column | str] = [F.expr("until IS NOT NULL"), F.expr(f"CASE rule {ranks} END")]
    order += [F.desc("snapshots"), "since", "cluster", "rule", "topic", "partition", "broker_id"]
    count, first = first_rows(shown, order, limit)
    return {"count": count, "first": first}


def _reasons(changes: DataFrame) -> list[Told]:
    """At most as many rows as there are reasons."""
    counted = changes.groupBy("reason").agg(
        F.count(F.lit(1)).alias("changes"),
        F.count_distinct("cluster", "topic", "partition").alias("partitions"),
        F.count_if(F.col("field") == "leader").alias("leaders"),
    )
    return [row.asDict() for row in counted.orderBy(F.desc("changes"), "reason").collect()]


def _divergences(found: DataFrame, limit: int) -> Told:
    """What nothing explains before the rest, the newest first."""
    shown = found.select(
        *("cluster", "snapshot_id"),
        F.date_format("taken_at", _SHOWN).alias("taken_at"),
        *("topic", "partition", "field", "predicted", "recorded", "reason"),
    )
    order: list[Column | str] = [F.col("reason") != UNEXPLAINED, F.desc("taken_at"), "cluster"]
    order += ["topic", "partition", "field", "snapshot_id"]
    count, first = first_rows(shown, order, limit)
    return {"count": count, "first": first}


# --- Telling -------------------------------------------------------------------------------------


def as_text(told: Told) -> str:
    """The same facts for a person: a verdict line, then what is behind it."""
    blocks = [
        _headline(told),
        _told_rules(told["rules"]),
        _told_findings(told["findings"]),
        _told_roll_up("topic", told["topics"]),
        _told_roll_up("broker", told["brokers"]),
        _told_roll_up("rack", told["racks"]),
        _told_exposure(told["exposure"]),
        _told_changes(told["changes"]),
        _told_divergences(told["divergences"]),
        [f"Expired silence, to be renewed or removed: {each}" for each in told["expired_silences"]],
        [line for note in told["notes"] for line in wrapped(f"Note: {note}.")],
        refusals(told["quarantine"]),
        told_tables(told) if told["run_id"] else [],
    ]
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _headline(told: Told) -> list[str]:
    new = told["judged_now"]
    judged = f"{amount(told['snapshots'], 'snapshot')}, {new:,} of them judged now"
    counts = [
        amount(told["errors"], "error"),
        amount(told["warnings"], "warning"),
        f"{told['infos']:,} for information",
        f"{told['silenced']:,} silenced",
    ]
    verdict = _VERDICTS[told["verdict"]] if told["snapshots"] else _NOTHING_THERE
    return [f"{verdict}: {', '.join(counts)}.", f"{judged}."]


def _told_rules(rows: Sequence[Told]) -> list[str]:
    if not rows:
        return []
    cells = [
        (row["severity"], row["rule"], row["findings"], row["snapshots"], row["says"])
        for row in rows
    ]
    return ["By rule", *table(("", "rule", "findings", "snapshots", "what it means"), cells)]


def _told_findings(found: Told) -> list[str]:
    if not found["count"]:
        return []
    several = _clusters(found) > 1
    rows = [
        (row["severity"], row["taken_at"], row["rule"], _subject(row, several), row["evidence"])
        for row in found["first"]
    ]
    heading = f"Findings: {listed(found, 'finding')}"
    return [heading, *table(("", "snapshot", "rule", "about", "evidence"), rows)]


def _told_roll_up(what: str, found: Told) -> list[str]:
    if not found["count"]:
        return []
    key = "broker_id" if what == "broker" else what
    named = ("cluster",) if _clusters(found) > 1 else ()
    rows = [
        (*(row[name] for name in named), str(row[key]), *(row[count] for count in _COUNTS))
        for row in found["first"]
    ]
    return [f"By {what}: {listed(found, what)}", *table((*named, what, *_COUNTS), rows)]


def _told_exposure(found: Told) -> list[str]:
    if not found["count"]:
        return []
    several = _clusters(found) > 1
    rows = [
        (
            row["snapshots"],
            row["since"],
            row["until"] or "still",
            row["rule"],
            _subject(row, several),
        )
        for row in found["first"]
    ]
    heading = f"How long: {listed(found, 'interval')}"
    return [heading, *table(("snapshots", "since", "until", "rule", "about"), rows)]


def _told_changes(rows: Sequence[Told]) -> list[str]:
    if not rows:
        return []
    cells = [(row["reason"], row["changes"], row["partitions"], row["leaders"]) for row in rows]
    headings = ("reason", "changes", "partitions", "leader moves")
    return ["What changed from snapshot to snapshot, and why", *table(headings, cells)]


def _told_divergences(found: Told) -> list[str]:
    if not found["count"]:
        return []
    several = _clusters(found) > 1
    rows = [
        (
            row["reason"],
            row["taken_at"],
            _subject({**row, "broker_id": None}, several),
            row["field"],
            f"{cell(row['predicted'])} → {cell(row['recorded'])}",
        )
        for row in found["first"]
    ]
    headings = ("reason", "snapshot", "about", "field", "predicted → recorded")
    return [f"Not as predicted: {listed(found, 'difference')}", *table(headings, rows)]


def _clusters(found: Told) -> int:
    return len({row["cluster"] for row in found["first"]})


def _subject(row: Told, several: bool) -> str:  # noqa: FBT001 - where there are several clusters
    cluster = f"{row['cluster']} " if several else ""
    if row["topic"] is not None:
        return f"{cluster}{row['topic']}-{row['partition']}"
    if row["broker_id"] is not None:
        return f"{cluster}broker {row['broker_id']}"
    return str(row["cluster"])
