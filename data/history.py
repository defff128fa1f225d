"""A long history of a large cluster: many snapshots, of which each changes little.

The cluster is that of :mod:`synthetic`. Every partition changes twice in so many snapshots, at a
moment of its own: its ISR loses its last follower, and has it back some snapshots later. So however
long the history is, about as many partitions are behind in each snapshot. Each load is a run of its
own, as a schedule would have it.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

import synthetic
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from understudy import schemas
from understudy.errors import BadInputError
from understudy.publish import Run, digest, publish

SECONDS_APART: Final = 300
BEHIND: Final = 3  # snapshots


def write_history(
    spark: SparkSession,
    root: str,
    *,
    partitions: int,
    brokers: int,
    rf: int,
    seed: int,
    snapshots: int,
    change: float,
    per_load: int,
    first: int = 1,
) -> int:
    """Publish the snapshots from number *first* on to *root*; return how many loads that took."""
    if not 0 < change <= 1 or per_load < 1 or snapshots < 1:
        raise BadInputError("--change is from 0 to 1, --per-load and --snapshots at least 1")
    base = synthetic.synthetic_tables(
        spark, partitions=partitions, brokers=brokers, dead=0, rf=rf, seed=seed
    )
    settings = {"partitions": partitions, "brokers": brokers, "rf": rf, "seed": seed}
    starts = range(first, first + snapshots, per_load)
    for start in starts:
        numbers = (start, min(start + per_load, first + snapshots) - 1)
        tables = {
            name: schemas.conform(
                _at(base[name], name, numbers, round(1 / change)), schemas.SNAPSHOT_TABLES[name]
            )
            for name in base
        }
        load = digest({**settings, "change": change, "numbers": numbers})
        now = datetime.now(UTC) + timedelta(milliseconds=start)
        run = Run.start("load", input_digest=load, config_digest=load, now=now)
        publish(spark, root, run, tables, verdict="none")
    return len(starts)


def _at(table: DataFrame, name: str, numbers: tuple[int, int], period: int) -> DataFrame:
    """The rows of *table* in each of these snapshots."""
    each = F.explode(F.sequence(F.lit(numbers[0]), F.lit(numbers[1])))
    # One snapshot after the other, as documents are loaded.
    order = [column for column in ("topic", "partition") if column in table.columns]
    rows = (
        table.withColumn("number", each)
        .withColumn("snapshot_id", F.format_string("s%06d", "number"))
        .sortWithinPartitions("number", *order)
    )
    if name == "snapshots":
        return rows.selectExpr(
            "* EXCEPT (taken_at, content_digest)",
            f"taken_at + make_interval(0, 0, 0, 0, 0, 0, number * {SECONDS_APART}) AS taken_at",
            "sha2(concat(content_digest, ' ', number), 256) AS content_digest",
        )
    if name != "partitions":
        return rows
    # Two changes in each round of a partition: it falls behind, and has caught up a little later.
    phase = f"pmod(xxhash64(topic, partition), {2 * period})"
    follower = "IF(element_at(isr, -1) = leader, isr[size(isr) - 2], element_at(isr, -1))"
    turns = f"2 * (moment div {2 * period}) + IF(is_behind, 1, 2)"
    return (
        rows.withColumn("moment", F.expr(f"number + {phase}"))
        .withColumn("is_behind", F.expr(f"moment % {2 * period} < {BEHIND}"))
        .withColumn("changes", F.expr(f"IF(has_state AND size(isr) > 1, {turns}, 0)"))
        .selectExpr(
            "* EXCEPT (isr, partition_epoch)",
            f"IF(is_behind AND changes > 0, array_remove(isr, {follower}), isr) AS isr",
            "partition_epoch + CAST(changes AS INT) AS partition_epoch",
        )
    )
