"""What a session of Spark can be taught: the elections as SQL functions, the forms as sources."""

from __future__ import annotations

from pyspark.sql import SparkSession

from understudy.controller import elections_sql
from understudy.sources import data_sources


def register(spark: SparkSession) -> None:
    """Teach *spark*'s session both; doing it again changes nothing."""
    elections_sql.register(spark)
    data_sources.register(spark)
