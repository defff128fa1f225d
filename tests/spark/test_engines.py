"""The engines over DataFrames give, row for row, what the interpreters give one snapshot at a time.

The interpreters themselves are held to Kafka's answers without Spark.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

import kafka_answers
import kraft_answers
import legacy_answers
from clusters import Document, random_cluster, random_failover, rows_of
from native_replay import Rows, plain, replay_documents
from understudy.controller.profiles import PROFILES

CLUSTERS_PER_EXAMPLE = 1_000


class Case(NamedTuple):
    snapshot: Document
    events: list[Document]

    @property
    def cluster(self) -> str:
        return str(self.snapshot["cluster"])


def recorded(*suites: str) -> list[Case]:
    """Every case of these suites, its cluster named after the suite too."""
    return [
        Case({**case.snapshot, "cluster": f"{suite} {case.snapshot['cluster']}"}, events)
        for suite in suites
        for case in legacy_answers.cases(suite)
        for events in [case.scenario["events"]]
    ]


def test_every_recorded_scenario_of_every_profile_in_one_run(
    spark: SparkSession, tmp_path: Path
) -> None:
    suites = (*kafka_answers.EVENT_SUITES, *legacy_answers.SUITES, *kraft_answers.SUITES)
    assert differences(spark, tmp_path, recorded(*suites)) == []


@pytest.mark.usefixtures("native")
def test_every_recorded_failover(spark: SparkSession, tmp_path: Path) -> None:
    assert differences(spark, tmp_path, recorded(*kafka_answers.SUITES)) == []


@settings(
    max_examples=2,
    deadline=None,
    phases=[Phase.generate],  # a batch is its own best example; the failing cluster is named
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(seed=st.integers(0, 2**32))
@pytest.mark.usefixtures("native")
def test_failovers_of_random_clusters(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    rng = Random(seed)
    docs = [random_cluster(rng, f"c{n:04}") for n in range(CLUSTERS_PER_EXAMPLE)]
    cases = [Case(doc, [random_failover(rng, doc)]) for doc in docs]
    found = differences(spark, tmp_path, cases)
    assert not found, min(found, key=lambda each: len(str(each)))


def differences(spark: SparkSession, folder: Path, cases: list[Case]) -> list[tuple[Any, ...]]:
    ours = replay_documents(spark, folder, [c.snapshot for c in cases], [c.events for c in cases])
    return [
        (case, table, *different)
        for case in cases
        for table, rows in reference(case).items()
        for different in _different(ours[case.cluster][table], rows)
    ]


def reference(case: Case) -> Rows:
    rows = rows_of(case.snapshot)
    mode, release = rows.snapshot["mode"], rows.snapshot["release"]
    profile = next(p for p in PROFILES.values() if p.mode == mode and p.covers(release))
    return profile.replay(rows, case.events)


def _different(ours: list[Any], theirs: list[Any]) -> list[tuple[list[Any], list[Any]]]:
    mine, reference_rows = Counter(ours), Counter(map(plain, theirs))
    if mine == reference_rows:
        return []
    return [(list((mine - reference_rows).elements()), list((reference_rows - mine).elements()))]
