"""Snapshot tables of any size, made by native Spark expressions.

Nothing per partition passes through the driver, and no value depends on how Spark cuts the work:
every number is a hash of what it is for.
"""

# ruff: noqa: PLR2004 - the odds of a made-up cluster; naming each would hide the picture

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from understudy import schemas
from understudy.errors import BadInputError
from understudy.publish import Run, digest, publish

NO_LEADER: Final = -1
UNCLEAN: Final = "unclean.leader.election.enable"
MIN_ISR: Final = "min.insync.replicas"

SYNTHETIC: Final = "synthetic"
PARTITIONS_PER_TOPIC: Final = 50  # on average; sizes run from 1 to about 200
PARTITIONS_PER_FILE: Final = 250_000
FIRST_INSTANT: Final = datetime(2026, 3, 1, 9, tzinfo=UTC)
SUBJECTS: Final = ("orders", "payments", "clicks", "stock", "audit", "mail", "prices", "returns")
OLD_EPOCHS: Final = 40  # no partition starts with a leader epoch above this


@dataclass(frozen=True)
class Shape:
    """What a synthetic store looks like; every row follows from these numbers alone."""

    partitions: int
    brokers: int
    dead: int
    rf: int
    seed: int
    snapshots: int
    topics: int
    deleting: int

    def __post_init__(self) -> None:
        wrong = [
            text
            for holds, text in (
                (self.rf >= 1, "--rf must be at least 1"),
                (self.rf <= self.brokers, "--rf must not exceed --brokers"),
                (0 <= self.dead < self.brokers, "--dead must leave a broker alive"),
                (self.snapshots >= 1, "--snapshots must be at least 1"),
                (1 <= self.topics <= self.partitions, "--topics must be from 1 to --partitions"),
                (0 <= self.deleting <= self.topics, "--deleting must be from 0 to --topics"),
            )
            if not holds
        ]
        if wrong:
            raise BadInputError("no store can have this shape", wrong)

    @property
    def racks(self) -> int:
        return max(self.rf, 3)

    def special_brokers(self) -> tuple[list[int], int | None]:
        """The dead brokers, and beside them one that is shutting down if there is one to spare."""
        dice = random.Random(f"{self.seed}:brokers")  # noqa: S311 - reproducible, not secret
        chosen = dice.sample(range(1, self.brokers + 1), self.brokers)
        dead, live = sorted(chosen[: self.dead]), chosen[self.dead :]
        return dead, live[0] if dead and len(live) > 1 else None

    def controller(self) -> int:
        """A dead broker when there is one: then nobody has reacted to any death yet."""
        dead, _ = self.special_brokers()
        return dead[0] if dead else 1


def synthetic_tables(
    spark: SparkSession,
    *,
    partitions: int,
    brokers: int,
    dead: int,
    rf: int,
    seed: int,
    snapshots: int = 1,
    topics: int | None = None,
    deleting: int = 0,
) -> dict[str, DataFrame]:
    """The canonical snapshot tables of a cluster of this size, as its controller left it.

    With nobody *dead* the controller is at work and has settled everything: all partitions are led.
    """
    count = topics or max(1, partitions // PARTITIONS_PER_TOPIC)
    shape = Shape(partitions, brokers, dead, rf, seed, snapshots, count, deleting)
    listing = _sized_topics(spark, shape)
    tables = {
        "snapshots": _snapshots(spark, shape),
        "brokers": _brokers(spark, shape),
        "topics": _topics(listing, shape),
        "partitions": _partitions(listing, shape),
        "configs": _configs(spark, listing, shape),
        "provenance": _provenance(spark, shape),
    }
    return {
        name: schemas.conform(table, schemas.SNAPSHOT_TABLES[name])
        for name, table in tables.items()
    }


def write_store(
    spark: SparkSession,
    root: str,
    *,
    partitions: int,
    brokers: int,
    dead: int,
    rf: int,
    seed: int,
    snapshots: int = 1,
    topics: int | None = None,
    deleting: int = 0,
) -> dict[str, int]:
    """Publish these tables to *root* as one run; return the rows of each."""
    tables = synthetic_tables(
        spark,
        partitions=partitions,
        brokers=brokers,
        dead=dead,
        rf=rf,
        seed=seed,
        snapshots=snapshots,
        topics=topics,
        deleting=deleting,
    )
    settings = digest(
        {
            "partitions": partitions,
            "brokers": brokers,
            "dead": dead,
            "rf": rf,
            "seed": seed,
            "snapshots": snapshots,
            "topics": topics,
            "deleting": deleting,
        }
    )
    run = Run.start("load", input_digest=settings, config_digest=settings)
    return publish(spark, root, run, tables, verdict="none")


def _roll(shape: Shape, purpose: str, sides: int | Column, *keys: str) -> Column:
    """A number from 0 to *sides* - 1 that depends on nothing but its arguments."""
    columns = [F.col(key) for key in keys]
    return F.pmod(F.xxhash64(F.lit(f"{shape.seed}:{purpose}"), *columns), F.lit(sides))


def _keyed(rows: DataFrame) -> DataFrame:
    return rows.withColumns(
        {
            "cluster": F.lit(SYNTHETIC),
            "snapshot_id": F.format_string("s%04d", F.col("snapshot")),
        }
    )


def _each_snapshot(spark: SparkSession, shape: Shape) -> DataFrame:
    return spark.range(1, shape.snapshots + 1).select(F.col("id").alias("snapshot"))


def _snapshots(spark: SparkSession, shape: Shape) -> DataFrame:
    half_hours = (F.col("snapshot") - 1) * 1800
    return _keyed(_each_snapshot(spark, shape)).withColumns(
        {
            "taken_at": F.timestamp_seconds(F.lit(int(FIRST_INSTANT.timestamp())) + half_hours),
            "mode": F.lit("zk"),
            "source_form": F.lit(SYNTHETIC),
            "release": F.lit("3.9"),
            "metadata_version": F.lit("3.9"),
            "elr_enabled": F.lit(None).cast("boolean"),
            "controller_id": F.lit(shape.controller()),
            "controller_epoch": F.lit(OLD_EPOCHS),
            "complete": F.lit(True),
            "content_digest": F.sha2(F.concat_ws(" ", F.lit(repr(shape)), "snapshot"), 256),
        }
    )


def _brokers(spark: SparkSession, shape: Shape) -> DataFrame:
    dead, shutting_down = shape.special_brokers()
    broker = F.col("broker_id")
    return _keyed(
        _each_snapshot(spark, shape).crossJoin(
            spark.range(1, shape.brokers + 1).select(F.col("id").cast("int").alias("broker_id"))
        )
    ).withColumns(
        {
            "alive": ~broker.isin(dead) if dead else F.lit(True),
            "shutting_down": broker == F.lit(shutting_down if shutting_down is not None else -1),
            "fenced": F.lit(None).cast("boolean"),
            "broker_epoch": F.lit(51539607552) + broker * 37,
            "rack": F.format_string("rack-%d", F.pmod(broker, F.lit(shape.racks))),
            "endpoints": F.lit(None).cast("string"),
            "log_dirs": F.lit(None).cast("array<string>"),
        }
    )


def _sized_topics(spark: SparkSession, shape: Shape) -> DataFrame:
    """Every topic with its number of partitions: many small, few large, the sum exact.

    The one window without partitions runs over topics, of which there are few.
    """
    by_number = Window.orderBy("number").rowsBetween(Window.unboundedPreceding, 0)
    everything = Window.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    spare = shape.partitions - shape.topics
    side = F.col("side")
    return (
        spark.range(shape.topics)
        .withColumnRenamed("id", "number")
        .withColumn("side", _roll(shape, "size", 100, "number"))
        .withColumn("weight", side * side * side + 1)
        .withColumns(
            {"so_far": F.sum("weight").over(by_number), "whole": F.sum("weight").over(everything)}
        )
        .withColumns(
            {
                "end": F.expr(f"(so_far * {spare}) div whole"),
                "start": F.expr(f"((so_far - weight) * {spare}) div whole"),
                "subject": F.get(
                    F.array(*map(F.lit, SUBJECTS)), _roll(shape, "name", len(SUBJECTS), "number")
                ),
            }
        )
        .select(
            "number",
            # The number leads, so that the order of names is the order of numbers.
            F.format_string("svc%07d.%s", "number", "subject").alias("topic"),
            (F.col("end") - F.col("start") + 1).cast("int").alias("size"),
        )
    )


def _in_order(listing: DataFrame, shape: Shape) -> DataFrame:
    """A row per snapshot and topic, in order, cut where files of a good size will end."""
    files = -(-shape.partitions * shape.snapshots // PARTITIONS_PER_FILE)
    return (
        listing.withColumn("snapshot", F.explode(F.sequence(F.lit(1), F.lit(shape.snapshots))))
        .repartitionByRange(files, "snapshot", "number")
        .sortWithinPartitions("snapshot", "number")
    )


def _topics(listing: DataFrame, shape: Shape) -> DataFrame:
    every = max(1, shape.topics // max(1, shape.deleting))
    spread = (F.col("number") % every == every // 2) & (F.col("number") < every * shape.deleting)
    return _keyed(_in_order(listing, shape)).withColumns(
        {
            "topic_id": F.concat(
                F.lit("T"),
                F.substring(F.translate(F.base64(F.unhex(F.md5("topic"))), "+/", "-_"), 2, 21),
            ),
            "queued_for_deletion": spread,
        }
    )


def _configs(spark: SparkSession, listing: DataFrame, shape: Shape) -> DataFrame:
    setting = "struct<key: string, value: string>"
    of_topics = (
        _in_order(listing, shape)
        .withColumns(
            {
                "unclean": F.when(
                    _roll(shape, UNCLEAN, 20, "number") == 0, _setting(UNCLEAN, "true")
                ),
                "min_isr": F.when(_roll(shape, MIN_ISR, 10, "number") < 7, _setting(MIN_ISR, "2")),
            }
        )
        .select(
            "snapshot",
            F.lit("topic").alias("scope"),
            F.col("topic").alias("name"),
            F.inline(F.array_compact(F.array(F.col("unclean"), F.col("min_isr")))),
        )
    )
    of_the_cluster = _each_snapshot(spark, shape).select(
        "snapshot",
        F.lit("cluster").alias("scope"),
        F.lit(None).cast("string").alias("name"),
        F.inline(F.array(_setting(UNCLEAN, "false").cast(setting))),
    )
    return _keyed(of_topics.unionByName(of_the_cluster))


def _setting(key: str, value: str) -> Column:
    return F.struct(F.lit(key).alias("key"), F.lit(value).alias("value"))


def _partitions(listing: DataFrame, shape: Shape) -> DataFrame:
    identity, instant = ("number", "partition"), ("number", "partition", "snapshot")
    replicas, isr = F.col("replicas"), F.col("isr")
    led = F.col("has_state")
    calm = F.lit(shape.dead == 0)
    return (
        _keyed(_in_order(listing, shape))
        .withColumn("partition", F.explode(F.sequence(F.lit(0), F.col("size") - 1)))
        .withColumns(
            {
                "replicas": _replicas(shape, *identity),
                "luck": _roll(shape, "luck", 10_000, *instant),
                "turn": F.when(
                    _roll(shape, "turned", 10, *instant) < 4,
                    _roll(shape, "turn", shape.rf, *instant),
                )
                .otherwise(0)
                .cast("int"),
                "age": _roll(shape, "age", OLD_EPOCHS, *identity).cast("int"),
            }
        )
        .withColumns(
            {
                "has_state": (F.col("luck") >= 5) | calm,  # 0.05 % were never led
                "leaderless": F.col("luck").between(5, 14) & ~calm,  # 0.1 %
                "shrunk": F.col("luck").between(15, 114),  # 1 %
                # 0.1 % on an offline directory
                "unreadable": F.col("luck").between(9_990, 9_999) & ~calm,
                "all_in_sync": F.concat(
                    F.slice(replicas, F.col("turn") + 1, F.lit(shape.rf)),
                    F.slice(replicas, F.lit(1), F.col("turn")),
                ),
            }
        )
        .withColumn("isr", F.slice(F.col("all_in_sync"), F.lit(1), _isr_size(shape, *instant)))
        .withColumns(
            {
                "adding": F.array().cast("array<int>"),
                "removing": F.array().cast("array<int>"),
                "offline_dirs": F.when(F.col("unreadable"), F.slice(replicas, 1, 1)).otherwise(
                    F.array().cast("array<int>")
                ),
                "leader": F.when(led & F.col("leaderless"), NO_LEADER)
                .when(
                    led
                    & F.array_contains(isr, replicas[0])
                    & (_roll(shape, "moved", 100, *instant) < 92),
                    replicas[0],
                )
                .when(led, isr[0]),
                "leader_epoch": F.when(led, F.col("age") + 2 * F.col("snapshot")),
                "isr": F.when(led, isr),
                "partition_epoch": F.when(led, 2 * F.col("age") + 4 * F.col("snapshot")),
                "controller_epoch": F.when(led, F.lit(OLD_EPOCHS) - F.col("age") % 5),
                "recovery": F.when(led, 0),
                "elr": F.lit(None).cast("array<int>"),
                "last_known_elr": F.lit(None).cast("array<int>"),
                "directories": F.lit(None).cast("array<string>"),
            }
        )
    )


def _replicas(shape: Shape, *keys: str) -> Column:
    """Brokers on distinct racks, the first of them on any, the others on the racks that follow."""
    racks = min(shape.racks, shape.brokers)
    first = _roll(shape, "replica 0", shape.brokers, *keys)
    positions = [first]
    for follower in range(1, shape.rf):
        rack = F.pmod(first + follower, F.lit(racks))
        in_rack = F.floor((shape.brokers - 1 - rack) / racks) + 1
        positions.append(rack + racks * _roll(shape, f"replica {follower}", in_rack, *keys))
    return F.array(*((position + 1).cast("int") for position in positions))


def _isr_size(shape: Shape, *keys: str) -> Column:
    few = 1 + _roll(shape, "shrunk", max(1, shape.rf - 1), *keys)
    size = F.when(F.col("leaderless"), 1).when(F.col("shrunk"), few).otherwise(shape.rf)
    return size.cast("int")


def _provenance(spark: SparkSession, shape: Shape) -> DataFrame:
    return _keyed(_each_snapshot(spark, shape)).withColumns(
        {"source": F.lit(SYNTHETIC), "position": F.lit(repr(shape))}
    )
