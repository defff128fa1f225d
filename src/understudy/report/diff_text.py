"""What is different between two snapshots: gathered in two small passes, told to people."""

from __future__ import annotations

from typing import Any, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from understudy.questions import diff
from understudy.report.tables import amount, of_which, table

Told = dict[str, Any]

_WORDS: Final = {
    diff.UNCHANGED: "unchanged",
    diff.CHANGED: "changed",
    diff.INSERTED: "inserted",
    diff.DELETED: "deleted",
}
_NOT_TELLING: Final = (None, "[]", "false")
_ONE: Final = {
    "snapshots": "cluster",
    "brokers": "broker",
    "topics": "topic",
    "partitions": "partition",
    "configs": "configuration value",
}


def gather(listing: DataFrame, *, topic: str | None, limit: int) -> Told:
    """For each table how much of what there is, and the first differences."""
    rows = listing
    if topic is not None:
        # Brokers and settings of the cluster have no topic, and are about every one.
        rows = rows.where(F.col("topic").isNull() | F.col("topic").rlike(topic))
    counted = rows.groupBy("table_name", "diff").count().collect()
    told: Told = {
        name: {**dict.fromkeys(_WORDS.values(), 0), "count": 0, "first": []} for name in diff.KEYS
    }
    for row in counted:
        _, kind, count = row
        told[row.table_name][_WORDS[kind]] = count
        if kind != diff.UNCHANGED:
            told[row.table_name]["count"] += count
    if limit and any(each["count"] for each in told.values()):
        for each in _first(rows, limit):
            told[each.pop("table_name")]["first"].append(each)
    return told


def _first(rows: DataFrame, limit: int) -> list[Told]:
    place = "row_number() OVER (PARTITION BY table_name ORDER BY name, number) AS place"
    first = (
        rows.where(F.col("diff") != diff.UNCHANGED)
        .selectExpr("*", place)
        .where(F.col("place") <= limit)
        .drop("place")
        .orderBy("table_name", "name", "number")
    )
    return [_told(row.asDict(recursive=True)) for row in first.collect()]


def _told(row: Told) -> Told:
    """As other programs want it: what changed by name, and both values by column."""
    values = row.pop("values")
    is_changed = row["diff"] == diff.CHANGED
    return row | {
        "changes": [each["column"] for each in values] if is_changed else None,
        "left": {each["column"]: each["left"] for each in values},
        "right": {each["column"]: each["right"] for each in values},
    }


# --- Telling -----------------------------------------------------------------------------------


def as_text(told: Told, *, legend: str) -> str:
    """What is different, for a person; *legend* says what the letters in front mean."""
    left, right = told["left"], told["right"]
    blocks = [
        [
            f"From {_snapshot(left)}",
            f"to   {_snapshot(right)}"
            + (f", topics matching {told['topic']}" if told["topic"] else ""),
        ],
        *(_block(name, found) for name, found in told["differences"].items() if found["count"]),
    ]
    is_different = any(found["count"] for found in told["differences"].values())
    blocks.append([legend if is_different else "Nothing is different."])
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"


def _snapshot(told: Told) -> str:
    when = f", taken at {told['taken_at']}" if told["taken_at"] else ""
    return f"{told['snapshot_id']} of {told['cluster']}{when}"


def _block(name: str, found: Told) -> list[str]:
    kinds = [f"{found[word]:,} {word}" for word in _WORDS.values() if found[word]]
    more = of_which(len(found["first"]), found["count"])
    total = sum(found[word] for word in _WORDS.values())
    heading = amount(total, _ONE[name])
    rows = [(row["diff"], _name(name, row), _change(row)) for row in found["first"]]
    return [f"{heading}: {', '.join(kinds)}{more}", *table(("diff", "what", "how"), rows)]


def _name(table_name: str, row: Told) -> str:
    if table_name == "partitions":
        return f"{row['name']}-{row['number']}"
    return f"broker {row['number']}" if table_name == "brokers" else str(row["name"])


def _change(row: Told) -> str:
    if row["diff"] == diff.CHANGED:
        parts = [f"{c} {_shown(row['left'][c])} → {_shown(row['right'][c])}" for c in row["left"]]
    else:
        side = row["right"] if row["diff"] == diff.INSERTED else row["left"]
        parts = [f"{column} {value}" for column, value in _telling(side)]
    return "; ".join(parts)


def _telling(values: dict[str, str | None]) -> list[tuple[str, str]]:
    """Values that say something: not the empty lists."""
    return [(name, value) for name, value in values.items() if value not in _NOT_TELLING and value]


def _shown(value: str | None) -> str:
    return "unknown" if value is None else value
