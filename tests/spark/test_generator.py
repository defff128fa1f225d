"""A synthetic store follows from its arguments alone and is a cluster Kafka could have left."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from chispa import assert_df_equality
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from understudy import publish, schemas
from understudy.errors import BadInputError

SYNTHETIC = Path(__file__).parents[2] / "data" / "synthetic.py"
SIZES = {"partitions": 3_000, "brokers": 20, "dead": 2, "rf": 3, "seed": 7, "snapshots": 2}
DELETING = 4


def _load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module  # dataclasses look their module up by name
    spec.loader.exec_module(module)
    return module


synthetic = _load(SYNTHETIC)


@pytest.fixture(scope="module")
def tables(spark: SparkSession) -> dict[str, DataFrame]:
    made: dict[str, DataFrame] = synthetic.synthetic_tables(spark, **SIZES, deleting=DELETING)
    return made


@pytest.fixture(scope="module")
def partitions(tables: dict[str, DataFrame]) -> Iterator[DataFrame]:
    kept = tables["partitions"].cache()
    yield kept
    kept.unpersist()


@pytest.fixture
def other_cut(spark: SparkSession) -> Iterator[SparkSession]:
    settings = {"spark.sql.shuffle.partitions": "7", "spark.sql.adaptive.enabled": "false"}
    before = {name: str(spark.conf.get(name)) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    yield spark
    for name, value in before.items():
        spark.conf.set(name, value)


def test_the_tables_have_the_canonical_schemas(tables: dict[str, DataFrame]) -> None:
    assert tables.keys() == schemas.SNAPSHOT_TABLES.keys()
    for name, table in tables.items():
        expected = schemas.SNAPSHOT_TABLES[name]
        assert table.columns == expected.names
        assert [f.dataType.simpleString() for f in table.schema] == [
            f.dataType.simpleString() for f in expected
        ]


def test_every_snapshot_has_the_promised_partitions(partitions: DataFrame) -> None:
    per_snapshot = partitions.groupBy("snapshot_id").agg(
        F.count("*").alias("rows"), F.count_distinct("topic", "partition").alias("distinct")
    )
    assert sorted(map(tuple, per_snapshot.collect())) == [
        ("s0001", 3_000, 3_000),
        ("s0002", 3_000, 3_000),
    ]


def test_topics_differ_in_size_and_number_their_partitions_from_zero(
    tables: dict[str, DataFrame], partitions: DataFrame
) -> None:
    sizes = partitions.groupBy("snapshot_id", "topic").agg(
        F.count("*").alias("size"), F.max("partition").alias("last")
    )
    found = sizes.agg(
        F.count("*"),
        F.min("size"),
        F.max("size"),
        F.count_if(F.col("last") != F.col("size") - 1),
    ).first()
    assert found is not None
    topics, smallest, largest, gaps = found
    assert topics == tables["topics"].count() == 120
    assert smallest < 10
    assert largest > 100
    assert gaps == 0


def test_the_same_arguments_make_the_same_rows_however_spark_cuts_them(
    other_cut: SparkSession, partitions: DataFrame, tables: dict[str, DataFrame]
) -> None:
    again = synthetic.synthetic_tables(other_cut, **SIZES, deleting=DELETING)
    assert_df_equality(
        again["partitions"].repartition(5), partitions, ignore_row_order=True, ignore_nullable=True
    )
    for name in tables.keys() - {"partitions"}:
        assert_df_equality(again[name], tables[name], ignore_row_order=True)


def test_another_seed_makes_another_cluster(spark: SparkSession, partitions: DataFrame) -> None:
    other = synthetic.synthetic_tables(spark, **{**SIZES, "seed": 8})["partitions"]
    same = other.join(partitions, ["snapshot_id", "topic", "partition", "replicas"]).count()
    assert same < 300


@pytest.mark.parametrize("brokers", [3, 4, 20])
def test_replicas_are_known_brokers_of_distinct_racks(spark: SparkSession, brokers: int) -> None:
    made = synthetic.synthetic_tables(
        spark, partitions=2_000, brokers=brokers, dead=1, rf=3, seed=7
    )["partitions"]
    replicas = F.col("replicas")
    wrong = made.where(
        (F.size(F.array_distinct(F.transform(replicas, lambda broker: broker % 3))) != 3)
        | (F.array_min(replicas) < 1)
        | (F.array_max(replicas) > brokers)
    )
    assert wrong.isEmpty()


def test_states_are_ones_a_controller_could_have_written(partitions: DataFrame) -> None:
    led, state = F.col("has_state"), ("leader", "leader_epoch", "isr", "partition_epoch")
    wrong = {
        "state without has_state": ~led
        & F.coalesce(*(F.col(c).cast("string") for c in state)).isNotNull(),
        "has_state without state": led & F.greatest(*(F.col(c).isNull() for c in state)),
        "isr outside the replicas": F.size(F.array_except("isr", "replicas")) > 0,
        "isr empty or doubled": led
        & ((F.size("isr") == 0) | (F.size(F.array_distinct("isr")) != F.size("isr"))),
        "leader outside the isr": (F.col("leader") != -1)
        & ~F.array_contains("isr", F.col("leader")),
        "epochs": led
        & ~(
            (F.col("partition_epoch") >= F.col("leader_epoch"))
            & (F.col("leader_epoch") >= 0)
            & F.col("controller_epoch").between(0, 40)
        ),
        "disk of a stranger": F.size(F.array_except("offline_dirs", "replicas")) > 0,
    }
    counted = partitions.agg(*(F.count_if(rule).alias(name) for name, rule in wrong.items()))
    assert counted.first().asDict() == dict.fromkeys(wrong, 0)  # type: ignore[union-attr]


def test_every_kind_of_trouble_is_there(
    tables: dict[str, DataFrame], partitions: DataFrame
) -> None:
    dead = [row.broker_id for row in tables["brokers"].where("not alive").collect()]
    assert len(set(dead)) == SIZES["dead"]
    assert tables["brokers"].where("alive and shutting_down").count() == SIZES["snapshots"]
    queued = tables["topics"].where("queued_for_deletion").count()
    assert queued == DELETING * SIZES["snapshots"]
    kinds = {
        "never led": ~F.col("has_state"),
        "leader -1": F.col("leader") == -1,
        "shrunk": F.size("isr") < 3,
        "isr in another order": F.col("isr") != F.col("replicas"),
        "led by another than the preferred": ~F.col("leader").isin(-1)
        & (F.col("leader") != F.col("replicas")[0]),
        "led by the dead": F.col("leader").isin(dead),
        "offline directory": F.size("offline_dirs") > 0,
    }
    counted = partitions.agg(*(F.count_if(rule).alias(name) for name, rule in kinds.items()))
    found = counted.first()
    assert found is not None
    assert {name for name, rows in found.asDict().items() if not rows} == set()
    unclean = tables["configs"].where("key = 'unclean.leader.election.enable'")
    assert {(row.scope, row.value) for row in unclean.collect()} == {
        ("topic", "true"),
        ("cluster", "false"),
    }


def test_epochs_rise_from_snapshot_to_snapshot(partitions: DataFrame) -> None:
    first = partitions.where("snapshot_id = 's0001'").alias("first")
    second = partitions.where("snapshot_id = 's0002'").alias("second")
    falling = first.join(second, ["topic", "partition"]).where(
        (F.col("second.leader_epoch") <= F.col("first.leader_epoch"))
        | (F.col("second.partition_epoch") <= F.col("first.partition_epoch"))
    )
    assert falling.isEmpty()


def test_a_store_is_published_in_order(spark: SparkSession, tmp_path: Path) -> None:
    root = str(tmp_path / "store")
    counts = synthetic.write_store(spark, root, **SIZES)
    assert counts["partitions"] == 6_000
    assert {
        row.row_counts["partitions"] for row in publish.visible_runs(spark, root).collect()
    } == {6_000}
    stored = publish.read(spark, root, "partitions")
    assert stored.inputFiles()
    assert len(stored.inputFiles()) == 1
    keys = [tuple(row) for row in stored.select("snapshot_id", "topic", "partition").collect()]
    assert keys == sorted(keys)


def test_an_impossible_shape_is_refused_with_every_reason(spark: SparkSession) -> None:
    with pytest.raises(BadInputError) as refused:
        synthetic.synthetic_tables(spark, partitions=10, brokers=2, dead=2, rf=3, seed=7, topics=11)
    assert refused.value.problems == (
        "--rf must not exceed --brokers",
        "--dead must leave a broker alive",
        "--topics must be from 1 to --partitions",
    )


def test_with_nobody_dead_the_controller_has_settled_everything(spark: SparkSession) -> None:
    calm = synthetic.synthetic_tables(spark, **{**SIZES, "dead": 0})
    brokers, rows = calm["brokers"], calm["partitions"]
    assert brokers.where("NOT alive OR shutting_down").isEmpty()
    assert calm["snapshots"].join(brokers, ["cluster", "snapshot_id"]).where(
        "controller_id = broker_id"
    ).count() == len(calm["snapshots"].collect())
    unsettled = "leader IS NULL OR NOT array_contains(isr, leader) OR size(offline_dirs) > 0"
    assert rows.where(unsettled).isEmpty()
    assert not rows.where("size(isr) < size(replicas)").isEmpty()
