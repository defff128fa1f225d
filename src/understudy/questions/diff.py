"""What is different between two snapshots, table by table.

Each difference is marked as ``I`` (only in the second), ``D`` (only in the first) or ``C``
(changed); what is in both alike is ``N``. The two may be of different clusters: their keys are left
out.
"""

from __future__ import annotations

from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from understudy.names import SNAPSHOT_KEY
from understudy.snapshot import Snapshots
from understudy.sql import struct, text

INSERTED: Final = "I"
DELETED: Final = "D"
CHANGED: Final = "C"
UNCHANGED: Final = "N"

KEYS: Final[dict[str, tuple[str, ...]]] = {
    "snapshots": (),
    "brokers": ("broker_id",),
    "topics": ("topic",),
    "partitions": ("topic", "partition"),
    "configs": ("scope", "name", "key"),
}
_OF_THE_READING: Final = ("taken_at", "source_form", "content_digest", "complete")
"""Columns that say how a snapshot came about, not how the cluster was."""


def tables(left: Snapshots, right: Snapshots) -> dict[str, DataFrame]:
    """The differences of each table: ``diff``, ``changes``, the key, and both values of the rest.

    *left* and *right* hold one snapshot each.
    """
    before, after = left.tables(), right.tables()
    return {name: differences(before[name], after[name], keys) for name, keys in KEYS.items()}


def differences(left: DataFrame, right: DataFrame, keys: tuple[str, ...]) -> DataFrame:
    """One row for each key of either frame, with ``left_x`` beside ``right_x``."""
    values = _values(left, keys)
    whole = struct(**{name: name for name in values})

    def side(frame: DataFrame, name: str) -> DataFrame:
        named = [f"{key} AS {name}_{key}" for key in keys]
        return frame.selectExpr(*named, f"{whole} AS {name}_side")

    # Null is a name like any other: that of the settings of the whole cluster.
    is_same: Column = reduce(
        Column.__and__,
        (F.col(f"left_{key}").eqNullSafe(F.col(f"right_{key}")) for key in keys),
        F.lit(True),
    )
    changed = ", ".join(
        f"IF(left_side.{name} <=> right_side.{name}, NULL, {text(name)})" for name in values
    )
    return (
        side(left, "left")
        .join(side(right, "right"), is_same, "full")
        .selectExpr(
            # By the sides as wholes: a filter on an expression over every column, each of which is
            # a column here, takes Spark's optimizer time that doubles with each of them.
            f"""CASE WHEN left_side IS NULL THEN '{INSERTED}' WHEN right_side IS NULL
                THEN '{DELETED}' WHEN left_side <=> right_side THEN '{UNCHANGED}'
                ELSE '{CHANGED}' END AS diff""",
            f"IF(left_side IS NULL OR right_side IS NULL, NULL, array_compact(array({changed})))"
            " AS changes",
            *(f"IF(left_side IS NULL, right_{key}, left_{key}) AS {key}" for key in keys),
            *(
                f"{side}_side.{name} AS {side}_{name}"
                for name in values
                for side in ("left", "right")
            ),
        )
    )


def _values(table: DataFrame, keys: tuple[str, ...]) -> list[str]:
    return [name for name in table.columns if name not in {*SNAPSHOT_KEY, *keys, *_OF_THE_READING}]


_NAMES: Final = {
    "snapshots": ("'the cluster'", "0"),
    "brokers": ("'broker'", "broker_id"),
    "topics": ("topic", "0"),
    "partitions": ("topic", "partition"),
    "configs": ("concat_ws(' ', scope, name, key)", "0"),
}


def listing(found: dict[str, DataFrame]) -> DataFrame:
    """The differences of all tables as rows alike, for people.

    Columns: table_name, name and number (of the thing), topic, diff, and values: what is not the
    same, as structs of column, left and right in text.
    """
    return reduce(DataFrame.unionAll, (_listed(name, table) for name, table in found.items()))


def _listed(name: str, table: DataFrame) -> DataFrame:
    columns = [each.removeprefix("left_") for each in table.columns if each.startswith("left_")]
    named, number = _NAMES[name]
    topic = "topic" if "topic" in KEYS[name] else "CAST(NULL AS STRING)"
    if name == "configs":
        topic = "IF(scope = 'topic', name, NULL)"
    values = ", ".join(
        f"""IF(left_{column} <=> right_{column}, NULL, named_struct('column', '{column}',
            'left', CAST(left_{column} AS STRING), 'right', CAST(right_{column} AS STRING)))"""
        for column in columns
    )
    return table.selectExpr(
        f"{text(name)} AS table_name",
        f"{named} AS name",
        f"{number} AS number",
        f"{topic} AS topic",
        "diff",
        f"array_compact(array({values})) AS values",
    )
