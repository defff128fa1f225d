"""The elections by name, from SQL and from ``F.call_function``, equal to their plain twins."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from chispa import assert_column_equality
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

from understudy.controller import elections
from understudy.controller.elections_sql import FUNCTIONS, register

CASES = "replicas ARRAY<INT>, isr ARRAY<INT>, online ARRAY<INT>, other ARRAY<INT>, unclean BOOLEAN"


@pytest.fixture(scope="module")
def random_cases(spark: SparkSession) -> list[tuple[Any, ...]]:
    register(spark)
    rng = Random(11)

    def some() -> list[int]:
        return rng.sample(range(6), rng.randint(0, 5))

    return [
        (some() or [1], [*some(), *some()], some(), some(), rng.random() < 0.5)
        for _ in range(3_000)
    ]


def _found(rows: list[Row]) -> list[tuple[int, tuple[int, ...], bool] | None]:
    return [
        None if row.e is None else (row.e.leader, tuple(row.e.isr), row.e.clean) for row in rows
    ]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_an_election_in_sql_equals_its_plain_twin(
    spark: SparkSession, random_cases: list[tuple[Any, ...]], name: str
) -> None:
    last = {
        "elect_offline_leader": ", unclean",
        "elect_controlled_shutdown_leader": ", other",
    }.get(name, "")
    spark.createDataFrame(random_cases, CASES).createOrReplaceTempView("election_cases")
    found = spark.sql(f"SELECT {name}(replicas, isr, online{last}) AS e FROM election_cases")  # noqa: S608
    assert _found(found.collect()) == [_plain(name, case) for case in random_cases]


def _plain(name: str, case: tuple[Any, ...]) -> elections.Elected | None:
    replicas, isr, online, other, unclean = case
    lists = (tuple(replicas), tuple(isr), online)
    if name == "elect_offline_leader":
        return elections.elect_offline_leader(*lists, unclean=unclean)
    if name == "elect_controlled_shutdown_leader":
        return elections.elect_controlled_shutdown_leader(*lists, other)
    if name == "elect_preferred_leader":
        return elections.elect_preferred_leader(*lists)
    return elections.elect_reassigned_leader(*lists)


def test_an_election_is_called_by_name_and_inlined(spark: SparkSession) -> None:
    register(spark)
    df = spark.createDataFrame(
        [
            ("first in the assignment, not in the ISR", [1, 2, 3], [3, 1], [1, 3], False, 1),
            ("nobody in sync, clean only", [1, 2], [1], [2], False, None),
            ("nobody in sync, unclean allowed", [1, 2], [1], [2], True, 2),
            ("a stranger in sync forbids unclean", [1, 2], [3], [2, 3], True, None),
        ],
        "case STRING, replicas ARRAY<INT>, isr ARRAY<INT>, online ARRAY<INT>, unclean BOOLEAN,"
        " expected INT",
    )
    elected = F.call_function("elect_offline_leader", df.replicas, df.isr, df.online, df.unclean)
    decided = df.withColumn("actual", elected["leader"])
    assert_column_equality(decided, "actual", "expected")
    plan = decided._jdf.queryExecution().optimizedPlan().toString()  # noqa: SLF001
    assert "elect_offline_leader" not in plan


def test_registering_again_changes_nothing(spark: SparkSession) -> None:
    register(spark)
    register(spark)
    assert spark.sql(
        "SELECT elect_preferred_leader(array(1), array(1), array(1)).leader"
    ).head() == (1,)
