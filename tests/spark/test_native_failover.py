"""The native form against Kafka's answers and, on random clusters, against the interpreter."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from clusters import random_cluster, random_failover, rows_of
from kafka_answers import SUITES, cases, comparable, named, per_receiver
from native_replay import Rows, plain, replay_documents
from understudy.controller import interpreter

CLUSTERS_PER_EXAMPLE = 1_000


@pytest.mark.parametrize("suite", SUITES)
def test_every_failover_equals_kafka(spark: SparkSession, tmp_path: Path, suite: str) -> None:
    with_recovery = not suite.startswith("zk-2.8")  # 2.8 knows no recovery state
    asked = cases(suite)
    answers = replay_documents(
        spark, tmp_path, [c.snapshot for c in asked], [c.scenario["events"] for c in asked]
    )
    different = []
    for case in asked:
        rows = answers[case.snapshot["cluster"]]
        ours = per_receiver({table: named(table, found) for table, found in rows.items()})
        if comparable(ours, with_recovery=with_recovery) != comparable(
            case.answer, with_recovery=with_recovery
        ):
            different.append(case.snapshot["cluster"])
    assert different == []


@settings(
    max_examples=3,
    deadline=None,
    phases=[Phase.generate],  # a batch is its own best example; the failing cluster is named
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(seed=st.integers(0, 2**32))
def test_native_and_interpreter_agree_on_every_table(
    spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    rng = Random(seed)
    docs = [random_cluster(rng, f"c{n:04}") for n in range(CLUSTERS_PER_EXAMPLE)]
    events = [[random_failover(rng, doc)] for doc in docs]
    native = replay_documents(spark, tmp_path, docs, events)
    differences = [
        (doc, asked, table, ours, theirs)
        for doc, asked in zip(docs, events, strict=True)
        for table, ours, theirs in _differences(doc, asked, native[doc["cluster"]])
    ]
    assert not differences, min(differences, key=lambda d: len(str(d[0])))


def _differences(
    doc: dict[str, Any], events: list[dict[str, Any]], native: Rows
) -> list[tuple[str, list[str], list[str]]]:
    found = []
    for table, rows in interpreter.replay(rows_of(doc), events).items():
        reference = sorted(map(repr, map(plain, rows)))
        ours = sorted(map(repr, native[table]))
        if ours != reference:
            found.append((
                table,
                [row for row in ours if row not in reference],
                [row for row in reference if row not in ours],
            ))  # fmt: skip
    return found
