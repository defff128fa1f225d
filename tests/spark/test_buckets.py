"""Brokers in buckets: every one where its id says, and nobody else."""

from __future__ import annotations

from random import Random

from pyspark.sql import SparkSession

from understudy.buckets import firsts, found, in_buckets, is_among


def test_everybody_is_in_the_bucket_of_their_id(spark: SparkSession) -> None:
    dice = Random(11)
    ids = [*dice.sample(range(5_000), 1_000), 2**31 - 1, 1_000_000]
    asked = [*range(-3, 2_000), 1_000_000, 1_000_001, 2**31 - 1]
    row = (ids, [{"id": broker, "rack": f"r{broker}"} for broker in ids], asked)
    schema = "ids ARRAY<INT>, listed ARRAY<STRUCT<id: INT, rack: STRING>>, asked ARRAY<INT>"
    laid_out = spark.createDataFrame([row], schema).selectExpr(
        "asked", f"{in_buckets('ids', 'b')} AS live", f"{in_buckets('listed', 'b.id')} AS racks"
    )
    answers = laid_out.selectExpr("*", f"{firsts('live')} AS first_live").selectExpr(
        f"transform(asked, a -> {is_among('live', 'first_live', 'a')}) AS is_live",
        f"transform(asked, a -> {found('racks', 'a')}.rack) AS rack",
        "flatten(live) AS everybody",
    )
    (answer,) = answers.collect()
    assert answer.is_live == [broker in ids for broker in asked]
    assert answer.rack == [f"r{broker}" if broker in ids else None for broker in asked]
    assert sorted(answer.everybody) == sorted(ids)
