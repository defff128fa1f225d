"""Projects decided partitions onto the schema of an output table."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from understudy.names import PARTITION_KEY

_EVENT_TYPE: Final = "controller_failover"


def shape(
    df: DataFrame, schema: T.StructType, **values: Column | str | int | bool | None
) -> DataFrame:
    """Project onto *schema*: columns by name from *values*, then the keys, else null."""
    given: dict[str, Column | str | int | bool | None] = {
        "event": 1,
        "event_type": _EVENT_TYPE,
        **values,
    }

    def column(field: T.StructField) -> Column:
        if field.name in given:
            value = given[field.name]
            column = value if isinstance(value, Column) else F.lit(value)
        elif field.name in PARTITION_KEY:
            column = F.col(field.name)
        else:
            column = F.lit(None)
        return column.cast(field.dataType).alias(field.name)

    return df.select(*(column(field) for field in schema))
