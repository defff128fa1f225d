"""The engines over DataFrames give, row for row, what the interpreters give one snapshot at a time.

The interpreters themselves are held to Kafka's answers without Spark.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Collection, Mapping
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession

import kafka_answers
import kraft_answers
import legacy_answers
from clusters import Document, random_cluster, rows_of
from conformance import kraft_cases
from native_replay import Rows, plain, replay_cases
from random_events import random_event
from understudy import replay as replaying
from understudy.controller.columnar import feed as columnar
from understudy.controller.native import engine as native_engine
from understudy.controller.native import fence
from understudy.controller.profiles import PROFILES
from understudy.controller.words import UNCHANGED
from understudy.names import SCENARIO_KEY
from understudy.schemas import PARTITION_STATES, REPLAY_TABLES

FEW, MANY = 100, 2_000  # random clusters in one run
# What ends a failure that told nobody anything differs between these.
RELEASES = ("2.4", "2.8", "3.0", "3.1", "3.9")
KRAFT_RELEASES = ("kraft-3.9", "4.0", "4.3")
OLDER_KRAFT = ("3.5", "3.7")
OUTCOME = PARTITION_STATES.names.index("outcome") - len(SCENARIO_KEY)


EVERY_PROFILE = (*kafka_answers.EVENT_SUITES, *legacy_answers.SUITES, *kraft_answers.SUITES)


class Case(NamedTuple):
    snapshot: Document
    events: list[Document]


def recorded(*suites: str) -> list[Case]:
    """Every case of these suites, its cluster named after the suite too."""
    return [
        Case({**case.snapshot, "cluster": f"{suite} {case.snapshot['cluster']}"}, events)
        for suite in suites
        for case in legacy_answers.cases(suite)
        for events in [case.scenario["events"]]
    ]


@pytest.mark.parametrize(
    ("every", "small"),
    [
        (8, sys.maxsize),
        pytest.param(1, replaying.SMALL, marks=pytest.mark.slow),
    ],
)
@pytest.mark.usefixtures("unsettled")
def test_recorded_scenarios_of_every_profile_in_one_run(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, every: int, small: int
) -> None:
    """The short run takes all through the interpreters: both forms side by side take long."""
    monkeypatch.setattr(replaying, "SMALL", small)
    assert differences(spark, tmp_path, recorded(*EVERY_PROFILE)[::every]) == []


@pytest.mark.parametrize("changed_only", [False, True])
def test_recorded_scenarios_of_every_profile_in_this_process(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, changed_only: bool
) -> None:
    monkeypatch.setattr(replaying, "SMALL", sys.maxsize)
    monkeypatch.setattr("understudy.controller.interpreted.tables", pytest.fail)
    cases = recorded(*EVERY_PROFILE)[::30]
    assert differences(spark, tmp_path, cases, changed_only=changed_only) == []


@pytest.mark.parametrize("every", [5, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.usefixtures("native")
def test_recorded_failovers(spark: SparkSession, tmp_path: Path, every: int) -> None:
    assert differences(spark, tmp_path, recorded(*kafka_answers.SUITES)[::every]) == []


@pytest.mark.parametrize(
    ("clusters", "changed_only", "tables"),
    [
        (FEW, False, tuple(REPLAY_TABLES)),
        # The others have nothing to do with what is shown of states.
        (FEW, True, ("partition_states", "replica_states")),
        pytest.param(MANY, False, tuple(REPLAY_TABLES), marks=pytest.mark.slow),
        pytest.param(MANY, True, tuple(REPLAY_TABLES), marks=pytest.mark.slow),
    ],
)
@settings(
    max_examples=1,
    deadline=None,
    phases=[Phase.generate],  # a batch is its own best example; the failing cluster is named
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(seed=st.integers(0, 2**32))
@pytest.mark.usefixtures("native")
def test_single_events_of_random_clusters(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    seed: int,
    clusters: int,
    *,
    changed_only: bool,
    tables: tuple[str, ...],
) -> None:
    """Every kind of event with a native form twice over each cluster, all in one plan."""
    taken: list[native_engine.Known] = []

    def watched(*given: Any, **named: Any) -> native_engine.Known:  # noqa: ANN401
        taken.append(known(*given, **named))
        return taken[-1]

    known = native_engine.known
    monkeypatch.setattr(native_engine, "known", watched)
    cases = single_events(Random(seed), clusters)
    found = differences(spark, tmp_path, cases, changed_only=changed_only, tables=tables)
    assert not found, min(found, key=lambda each: len(str(each)))
    natively = {kind: facts.frame().count() for kind, facts in taken[0].facts.items()}
    assert natively.keys() == set(native_engine.KINDS)
    assert min(natively.values()) > clusters / 2, natively


def single_events(rng: Random, clusters: int) -> list[Case]:
    docs = [random_cluster(rng, f"c{n:04}") for n in range(clusters)]
    for doc in docs:
        doc["release"] = rng.choice(RELEASES)
    return [
        Case(doc, [random_event(rng, doc, kind)])
        for doc in docs
        for kind in (*native_engine.KINDS, *native_engine.KINDS)
    ]


@pytest.mark.parametrize(
    ("clusters", "changed_only"),
    [
        (FEW // 4, False),
        pytest.param(MANY, False, marks=pytest.mark.slow),
        pytest.param(MANY, True, marks=pytest.mark.slow),
    ],
)
@pytest.mark.usefixtures("native")
def test_fences_of_random_kraft_clusters(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    clusters: int,
    *,
    changed_only: bool,
) -> None:
    """Each broker by itself, one that nobody registered, and all together, in one plan."""
    taken: list[fence.Fenced] = []

    def watched(**given: Any) -> fence.Fenced:  # noqa: ANN401 - whatever it is given
        taken.append(fenced(**given))
        return taken[-1]

    fenced = fence.fenced
    monkeypatch.setattr(fence, "fenced", watched)
    cases = fences(Random(f"fences {clusters} {changed_only}"), clusters)
    found = differences(spark, tmp_path, cases, changed_only=changed_only)
    assert not found, min(found, key=lambda each: len(str(each)))
    native = taken[0].touched.frame()
    assert native.where("leaves").count() > clusters
    assert native.where("moves").count() > clusters / 2


def fences(rng: Random, clusters: int) -> list[Case]:
    cases = []
    for number in range(clusters):
        release = rng.choice(KRAFT_RELEASES)
        doc = kraft_cases.draw(rng.randrange(2**32), release, number, ["fence"])["snapshot"]
        if rng.random() < 2 / 3:
            heal(rng, doc)
        if release == "kraft-3.9":
            doc["release"] = rng.choice(("3.9", *OLDER_KRAFT))
        brokers = [broker["id"] for broker in doc["brokers"]]
        kind = rng.choice(fence.KINDS)
        asked = [*([broker] for broker in brokers), [max(brokers, default=0) + 1], brokers]
        cases += [Case(doc, [{"type": kind, "brokers": each}]) for each in asked]
    return cases


def heal(rng: Random, doc: Document) -> None:
    """Everybody who is active is in sync, and nothing else goes on."""
    away = {b["id"] for b in doc["brokers"] if b.get("fenced") or b.get("shutting_down")}
    active = {broker["id"] for broker in doc["brokers"]} - away
    for each in (each for topic in doc["topics"] for each in topic["partitions"]):
        isr = [replica for replica in each["replicas"] if replica in active]
        if each.get("state") and isr:
            each.pop("adding", None)
            each.pop("removing", None)
            state = each["state"]
            state |= {"isr": rng.sample(isr, len(isr)), "leader": rng.choice(isr)}
            state.pop("elr", None)
            state.pop("last_known_elr", None)


def differences(
    spark: SparkSession,
    folder: Path,
    cases: list[Case],
    *,
    changed_only: bool = False,
    tables: Collection[str] = REPLAY_TABLES,
) -> list[tuple[Any, ...]]:
    found = replay_cases(spark, folder, cases, changed_only=changed_only, tables=tables)
    return [
        (case, table, *different)
        for case, ours in zip(cases, found, strict=True)
        for table, rows in reference(case, changed_only=changed_only).items()
        if table in tables
        for different in _different(ours[table], rows)
    ]


def reference(case: Case, *, changed_only: bool) -> Rows:
    rows = rows_of(case.snapshot)
    mode, release = rows.snapshot["mode"], rows.snapshot["release"]
    profile = next(p for p in PROFILES.values() if p.mode == mode and p.covers(release))
    replayed = profile.replay(rows, case.events)
    if not changed_only:
        return replayed
    changed = [row for row in replayed["partition_states"] if row[OUTCOME] != UNCHANGED]
    keys = {row[:2] for row in changed}
    replicas = [row for row in replayed["replica_states"] if row[:2] in keys]
    return {**replayed, "partition_states": changed, "replica_states": replicas}


def _different(ours: list[Any], theirs: list[Any]) -> list[tuple[list[Any], list[Any]]]:
    mine, reference_rows = Counter(ours), Counter(map(plain, theirs))
    if mine == reference_rows:
        return []
    return [(list((mine - reference_rows).elements()), list((reference_rows - mine).elements()))]


@pytest.mark.parametrize("changed_only", [False, True])
@pytest.mark.usefixtures("in_columns")
def test_brokers_that_come_and_go_in_columns(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    changed_only: bool,
) -> None:
    """Several tasks for the scenarios of a snapshot; the interpreter would say the same alone."""
    taken: list[int] = []

    def watched(
        partitions: DataFrame,
        asked: Mapping[Any, columnar.Asked],
        **named: Any,  # noqa: ANN401
    ) -> columnar.LaidOut:
        taken.append(sum(len(each.scenarios) for each in asked.values()))
        return laid_out(partitions, asked, **named)

    laid_out = columnar.laid_out
    monkeypatch.setattr(columnar, "laid_out", watched)
    monkeypatch.setattr(columnar, "_SCENARIOS_TO_A_TASK", 1)
    rng = Random(f"columns {changed_only}")
    docs = [random_cluster(rng, f"c{number:04}") for number in range(FEW // 2)]
    cases = [Case(doc, [random_event(rng, doc, kind)]) for doc in docs for kind in columnar.KINDS]
    for doc in docs:
        kinds = rng.choices(columnar.KINDS[1:], k=rng.randint(2, 4))
        cases.append(Case(doc, [random_event(rng, doc, kind) for kind in kinds]))
    assert differences(spark, tmp_path, cases, changed_only=changed_only) == []
    assert sum(taken) > len(cases) / 2  # some clusters have no partitions
