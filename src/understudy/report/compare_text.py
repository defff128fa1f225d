"""Where controllers part, in a screenful: the rules that make them, how often, and examples."""

from __future__ import annotations

from itertools import groupby, islice
from operator import attrgetter
from typing import Any, Final

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from understudy import publish
from understudy.names import PARTITION_KEY
from understudy.questions.compare.differences import FIELDS
from understudy.questions.compare.rules import SAYS
from understudy.report.summary import refusals, told_notes, told_tables
from understudy.report.tables import amount, cell, of_which, table, wrapped

Told = dict[str, Any]

_PAIR: Final = ("controller_a", "controller_b")
_EXAMPLE: Final = (*PARTITION_KEY, "event", "event_type")


def gather(spark: SparkSession, root: str, run_id: str, *, topic: str | None, limit: int) -> Told:
    """Partitions by rule for each pair of controllers, each rule with the first partition.

    A partition counts once for each scenario, however many of its fields differ.
    """
    rows = publish.read_runs(spark, root, "differences", [run_id])
    if topic:
        rows = rows.where(F.col("topic").rlike(topic))
    values = "map_from_entries(collect_list(struct(field, struct(value_a, value_b))))"
    partitions = rows.groupBy(*_PAIR, "rule", *_EXAMPLE).agg(F.expr(f"{values} AS fields"))
    by_rule = partitions.groupBy(*_PAIR, "rule").agg(
        F.count(F.lit(1)).alias("partitions"),
        *(F.expr(f"count_if(map_contains_key(fields, '{name}')) AS {name}") for name in FIELDS),
        F.min_by(F.struct(*_EXAMPLE, "fields"), F.struct(*PARTITION_KEY)).alias("example"),
    )
    # A handful of rows, however many partitions there are: one for each pair and rule.
    found = by_rule.orderBy("controller_b", F.desc("partitions"), "rule").collect()
    pairs = groupby(found, key=attrgetter("controller_b"))
    first = [row.asDict(recursive=True) for _, each in pairs for row in islice(each, limit)]
    return {
        "rules": {
            "count": len(found),
            "names": sorted({row.rule for row in found}),
            "first": [{**row, "says": SAYS[row["rule"]]} for row in first],
        }
    }


def as_text(told: Told, *, topic: str | None = None) -> str:
    blocks = [
        [_headline(told, topic)],
        *(_told_pair(told, other) for other in told["controllers"][1:]),
        *([_told_rules(told)] if told["rules"]["first"] else []),
        told_notes(told),
        refusals(told["quarantine"]),
        told_tables(told),
    ]
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _headline(told: Told, topic: str | None) -> str:
    first, *others = told["controllers"]
    about = f" (topics matching {topic})" if topic else ""
    versus = f"{first} against {', '.join(others)}{about}"
    if not told["rules"]["count"]:
        return f"Compared {versus}: they do the same."
    found = told["rules"]
    rules = amount(len(found["names"]), "rule") + of_which(len(found["first"]), found["count"])
    return f"Compared {versus}: they part by {rules}."


def _told_pair(told: Told, other: str) -> list[str]:
    """How many partitions each rule makes differ, and in which fields."""
    found = [row for row in told["rules"]["first"] if row["controller_b"] == other]
    if not found:
        return []
    rows = [(row["rule"], row["partitions"], *(row[name] for name in FIELDS)) for row in found]
    headings = ("rule", "partitions", *(name.replace("_", " ") for name in FIELDS))
    examples = [f"  {row['rule']}: {_example(row['example'])}" for row in found]
    return [
        f"{told['controllers'][0]} -> {other}",
        *table(headings, rows),
        "For example",
        *(line for example in examples for line in wrapped(example)),
    ]


def _example(example: Told) -> str:
    """``orders-0: leader 1 -> 2, isr [1,2] -> [2]``."""
    fields = example["fields"]
    parts = [
        f"{name} {cell(fields[name]['value_a'])} -> {cell(fields[name]['value_b'])}"
        for name in FIELDS
        if name in fields
    ]
    return f"{example['topic']}-{example['partition']}: {', '.join(parts)}"


def _told_rules(told: Told) -> list[str]:
    named = dict.fromkeys(row["rule"] for row in told["rules"]["first"])
    return [line for name in named for line in wrapped(f"{name}: {SAYS[name]}.")]
