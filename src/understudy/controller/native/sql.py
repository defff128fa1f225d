"""Small helpers to write column expressions as SQL text.

The native form is written as SQL text rather than with ``F.…`` calls: a Column is built by one call
into the JVM for each of its nodes, and a replay has tens of thousands of them. Nothing from input
ever becomes part of the text.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import types as T

from understudy.controller.native.rows import Rows
from understudy.names import PARTITION_KEY

NO_IDS: Final = "CAST(array() AS ARRAY<INT>)"


def text(value: str) -> str:
    """A string literal."""
    return "'" + value.replace("'", "''") + "'"


def null(kind: str) -> str:
    return f"CAST(NULL AS {kind})"


def struct(**fields: str) -> str:
    inside = ", ".join(f"'{name}', {value}" for name, value in fields.items())
    return f"named_struct({inside})"


def select(rows: Rows, schema: T.StructType, **values: str) -> Rows:
    """Project onto *schema*: columns by name from *values*, then the keys, else null."""
    given = {**{name: name for name in PARTITION_KEY}, **values}
    return rows.select(
        *(
            f"CAST({given.get(field.name, 'NULL')} AS {field.dataType.simpleString()})"
            f" AS {field.name}"
            for field in schema
        )
    )
