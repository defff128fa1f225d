"""What a load brought into the store: forms, snapshots, and what they do not know."""

from __future__ import annotations

from functools import reduce
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from understudy import publish
from understudy.names import SNAPSHOT_KEY
from understudy.report.summary import first_rows, refusals, told_tables
from understudy.report.tables import amount, listed, table, wrapped

Told = dict[str, Any]

_DECISIVE: Final = {
    "snapshots": (
        *("taken_at", "mode", "release", "metadata_version", "controller_id", "controller_epoch"),
    ),
    "brokers": ("alive", "shutting_down", "broker_epoch"),
    "partitions": (
        *("adding", "removing", "offline_dirs", "has_state"),
        *("leader", "isr", "leader_epoch", "partition_epoch"),
    ),
}
"""What a controller decides by: worth a word if a form knows nothing of it."""

_WHAT_IF: Final = "what-if"
_NEEDED: Final = {
    _WHAT_IF: {"brokers.alive", "partitions.leader", "partitions.isr"},
    "audit of epochs": {"partitions.leader_epoch", "partitions.partition_epoch"},
}
"""What a question cannot do without; a what-if needs a complete snapshot, too."""


def gather(spark: SparkSession, root: str, run_id: str, *, limit: int) -> Told:
    """Per form what there is and what is unknown; and the first snapshots that are not complete."""
    tables = {
        name: publish.read_runs(spark, root, name, [run_id]).drop("run_id")
        for name in (*_DECISIVE, "provenance")
    }
    incomplete = tables["snapshots"].where("NOT coalesce(complete, false)")
    where = tables["provenance"].groupBy(*SNAPSHOT_KEY).agg(F.min("position").alias("position"))
    count, first = first_rows(
        incomplete.select(*SNAPSHOT_KEY, F.col("source_form").alias("form")).join(
            where, list(SNAPSHOT_KEY), "left"
        ),
        ["form", *SNAPSHOT_KEY],
        limit,
    )
    return {"forms": _forms(tables), "incomplete": {"count": count, "first": first}}


def _forms(tables: dict[str, DataFrame]) -> list[Told]:
    whose = tables["snapshots"].select(*SNAPSHOT_KEY, F.col("source_form").alias("form"))
    known = [
        _known(name, tables[name].join(F.broadcast(whose), list(SNAPSHOT_KEY)))
        for name in _DECISIVE
    ]
    counted = (
        tables["snapshots"]
        .groupBy(F.col("source_form").alias("form"))
        .agg(
            F.count(F.lit(1)).alias("snapshots"),
            F.count_if(F.col("complete")).alias("complete"),
        )
    )
    unknown = (
        reduce(DataFrame.unionAll, known)
        .groupBy("form")
        .agg(F.sort_array(F.flatten(F.collect_list("unknown"))).alias("unknown"))
    )
    rows = counted.join(unknown, "form", "left").orderBy("form").collect()
    return [{**row.asDict(), "cannot_answer": _cannot_answer(row.asDict())} for row in rows]


def _cannot_answer(form: Told) -> list[str]:
    """The questions that no snapshot of a form can answer, whatever else it knows."""
    lacking = set(form["unknown"] or ())
    return [
        question
        for question, needed in _NEEDED.items()
        if lacking & needed or (question == _WHAT_IF and not form["complete"])
    ]


def _known(name: str, rows: DataFrame) -> DataFrame:
    """Per form, the columns of a table that are null in every row."""
    unknown = F.array(
        *(
            F.when(F.count(column) == 0, F.lit(f"{name}.{column}")).otherwise(None)
            for column in _DECISIVE[name]
        )
    )
    return rows.groupBy("form").agg(F.array_compact(unknown).alias("unknown"))


def as_text(told: Told, did: str = "Loaded") -> str:
    counts = told["tables"]
    new = f"{did} {amount(counts['snapshots'], 'snapshot')}"
    inside = f"{amount(counts['topics'], 'topic')}, {amount(counts['partitions'], 'partition')}"
    blocks = [
        [f"{new}: {inside}."],
        _told_forms(told["forms"]),
        _told_incomplete(told["incomplete"]),
        refusals(told["quarantine"]),
        told_tables(told),
    ]
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _told_forms(forms: list[Told]) -> list[str]:
    if not forms:
        return []
    rows = [(each["form"], each["snapshots"], each["complete"]) for each in forms]
    unknown = [
        line
        for each in forms
        if each["unknown"]
        for line in wrapped(f"  {each['form']} does not know: {', '.join(each['unknown'])}")
    ]
    questions = [
        line
        for each in forms
        if each["cannot_answer"]
        for line in wrapped(f"  {each['form']} cannot answer: {', '.join(each['cannot_answer'])}")
    ]
    return [*table(("form", "snapshots", "complete"), rows), *unknown, *questions]


def _told_incomplete(found: Told) -> list[str]:
    if not found["count"]:
        return []
    lines = [
        line
        for row in found["first"]
        for line in wrapped(f"  {row['cluster']}/{row['snapshot_id']}: {row['position']}")
    ]
    return [f"Not complete: {listed(found, 'snapshot')}", *lines]
