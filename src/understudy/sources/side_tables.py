"""Tables that people bring along with a question: how often brokers fail, what topics weigh."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from understudy.errors import BadInputError
from understudy.sources import log_dirs_json

_WEIGHT_HEADINGS: Final = (["topic", "weight"], ["topic", "partition", "weight"])
_LOG_DIRS: Final = (
    "brokers ARRAY<STRUCT<logDirs: ARRAY<STRUCT<partitions: ARRAY<STRUCT<"
    "partition: STRING, size: BIGINT, isFuture: BOOLEAN>>>>>>"
)


def lines(spark: SparkSession, path: str) -> list[str]:
    return [row.value for row in spark.read.text(path).collect()]


def rates(given: Iterable[str], source: str) -> dict[int, float]:
    """A table of ``broker_id,rate`` with that heading."""
    rows = [(n, line.strip()) for n, line in enumerate(given, start=1) if line.strip()]
    problems = []
    if not rows or [part.strip() for part in rows[0][1].split(",")] != ["broker_id", "rate"]:
        problems.append("line 1: expected the heading broker_id,rate")
    found: dict[int, float] = {}
    for number, row in rows[1:]:
        broker, _, rate = (part.strip() for part in row.partition(","))
        try:
            found[int(broker)] = float(rate)
        except ValueError:
            problems.append(f"line {number}: expected the number of a broker and a probability")
            continue
        if not 0 <= found[int(broker)] <= 1:
            problems.append(f"line {number}: {rate} is not between 0 and 1")
    if problems:
        raise BadInputError(f"{source}: the rates are refused", problems)
    return found


def weights(spark: SparkSession, path: str) -> tuple[DataFrame, str]:
    """A table of weights, as large as it may be, and a digest of what it says.

    What ``kafka-log-dirs --describe`` prints will do as well: a partition weighs its bytes.
    """
    first = spark.read.text(path).limit(1).collect()
    if first and log_dirs_json.recognise(first[0].value):
        typed, key = _bytes(spark, path), ["topic", "partition"]
    else:
        typed, key = _listed(spark, path)
    bad = "topic IS NULL OR weight IS NULL OR isnan(weight) OR weight < 0"
    if "partition" in key:
        bad += " OR partition IS NULL"
    wrong = typed.where(bad).limit(20).collect()
    twice = typed.groupBy(*key).count().where("count > 1").limit(20).collect()
    problems = [f"{row.topic}: {row.said!r} is not a weight" for row in wrong]
    problems += [f"{'-'.join(map(str, row[:-1]))} is listed {row[-1]} times" for row in twice]
    if problems:
        raise BadInputError(f"{path}: the weights are refused", problems)
    said = ", ".join([*key, "weight"])
    digest = typed.agg(F.expr(f"concat(count(1), ':', bit_xor(xxhash64({said})))")).first()
    return typed.drop("said"), "" if digest is None else str(digest[0])


def _listed(spark: SparkSession, path: str) -> tuple[DataFrame, list[str]]:
    """A CSV of weights, and its columns that say whose they are."""
    given = spark.read.option("header", value=True).csv(path)
    if given.columns not in _WEIGHT_HEADINGS:
        expected = " or ".join(",".join(heading) for heading in _WEIGHT_HEADINGS)
        raise BadInputError(
            f"{path}: expected the heading {expected}, or what kafka-log-dirs --describe prints"
        )
    key = given.columns[:-1]
    typed = given.selectExpr(
        "topic",
        *(["try_cast(partition AS INT) AS partition"] if "partition" in key else []),
        "try_cast(weight AS DOUBLE) AS weight",
        "weight AS said",
    )
    return typed, key


def _bytes(spark: SparkSession, path: str) -> DataFrame:
    """The size of each partition: that of its largest replica, without those being moved in."""
    printed = spark.read.text(path).where("value LIKE '{%'")
    found = printed.select(F.from_json("value", _LOG_DIRS).alias("said"))
    if found.where("said.brokers IS NOT NULL").isEmpty():
        raise BadInputError(f"{path}: the text holds no whole JSON object of kafka-log-dirs")
    return (
        found.selectExpr("explode(said.brokers.logDirs) AS dirs")
        .selectExpr("inline(flatten(dirs.partitions))")
        .where("NOT coalesce(isFuture, false)")
        .selectExpr(
            r"regexp_extract(partition, '^(.*)-([0-9]+)$', 1) AS topic",
            r"try_cast(regexp_extract(partition, '^(.*)-([0-9]+)$', 2) AS INT) AS partition",
            "size",
        )
        .groupBy("topic", "partition")
        .agg(F.expr("CAST(max(size) AS DOUBLE) AS weight"), F.expr("max(size) AS said"))
    )
