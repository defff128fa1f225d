"""A replay as a whole: what it refuses, what it says, and what must not change its rows."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from chispa import assert_df_equality
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from clusters import Document, cluster, partition, random_cluster
from native_replay import replay_documents
from understudy import scenarios, sources
from understudy.controller.interpreted import Interpreted
from understudy.controller.interpreted import tables as interpreted_tables
from understudy.errors import UsageError
from understudy.replay import Replay, replay
from understudy.scenarios import FAILOVER
from understudy.schemas import REPLAY_TABLES, SNAPSHOT_TABLES
from understudy.snapshot import Snapshots

HEALTHY = partition([1, 2, 3], (1, 4, [1, 2, 3]))
LEADERLESS = partition([4, 5], (4, 2, [4]), number=1)


def read(spark: SparkSession, folder: Path, *docs: Document) -> Snapshots:
    path = folder / "snapshots.jsonl"
    path.write_text("\n".join(map(json.dumps, docs)), encoding="utf-8")
    return sources.read(spark, [str(path)])


def named(doc: Document, name: str, **changes: Any) -> Document:  # noqa: ANN401
    return {**doc, "cluster": name, **changes}


@pytest.fixture
def small(spark: SparkSession, tmp_path: Path) -> Snapshots:
    doc = cluster({"a": [HEALTHY, LEADERLESS]}, live=[1, 2, 3])
    return read(spark, tmp_path, doc)


@pytest.mark.usefixtures("native")
def test_every_table_has_its_schema(small: Snapshots) -> None:
    decided = replay(small, [FAILOVER])
    assert set(decided.tables) == set(REPLAY_TABLES)
    for name, table in decided.tables.items():
        actual = [(f.name, f.dataType.simpleString()) for f in table.schema]
        assert actual == [(f.name, f.dataType.simpleString()) for f in REPLAY_TABLES[name]]
    decided.close()


def test_a_release_of_no_profile_is_quarantined_and_the_rest_replayed(
    spark: SparkSession, tmp_path: Path
) -> None:
    doc = cluster({"a": [HEALTHY]}, live=[1, 2, 3])
    between = named(doc, "between", release="2.0", metadata_version="2.0")
    future = named(doc, "future", mode="kraft", release="9.0", metadata_version="9.0")
    decided = replay(read(spark, tmp_path, doc, between, future), [FAILOVER])
    problems = {row.cluster: row.problems[0] for row in decided.quarantine.collect()}
    profiles = "profile zk (2.4 to 3.9) or profile zk-legacy (0.9 to 1.0)"
    assert problems["between"].startswith(f"release 2.0 in mode zk is outside {profiles}")
    assert problems["future"].startswith("release 9.0 in mode kraft is outside")
    assert {row.cluster for row in decided.tables["partition_states"].collect()} == {"c"}
    assert decided.replayed == 1
    decided.close()


def test_every_snapshot_is_replayed_under_its_own_profile(
    spark: SparkSession, tmp_path: Path
) -> None:
    doc = cluster({"a": [HEALTHY]}, live=[1, 2, 3])
    old = named(doc, "old", release="1.0", metadata_version="1.0")
    new = named(doc, "new", mode="kraft", release="4.0", metadata_version="4.0-IV3")
    decided = replay(read(spark, tmp_path, doc, old, new), [FAILOVER])
    states = {row.cluster: row for row in decided.tables["partition_states"].collect()}
    assert (states["c"].state_after, states["c"].adding) == ("OnlinePartition", [])
    assert (states["old"].state_after, states["old"].adding) == ("OnlinePartition", None)
    assert (states["new"].state_after, states["new"].elr) == (None, [])
    assert decided.replayed == 3
    decided.close()


def test_unknown_facts_take_the_harmless_default(spark: SparkSession, tmp_path: Path) -> None:
    snapshots = read(spark, tmp_path, cluster({"a": [HEALTHY, LEADERLESS]}, live=[1, 2, 3]))
    unknown = {name: F.lit(None).cast("array<int>") for name in ("offline_dirs", "adding")}
    partly = replace(
        snapshots,
        partitions=snapshots.partitions.withColumns(unknown),
        brokers=snapshots.brokers.withColumn("shutting_down", F.lit(None).cast("boolean")),
    )
    asked = [FAILOVER, _scenario({"type": "broker_failure", "brokers": [1]})]
    known, unsure = replay(snapshots, asked), replay(partly, asked)
    for name in ("partition_states", "requests"):
        assert_df_equality(
            known.tables[name], unsure.tables[name], ignore_nullable=True, ignore_row_order=True
        )
    known.close()
    unsure.close()


def _scenario(*events: dict[str, Any]) -> scenarios.Scenario:
    line = json.dumps({"scenario": "x", "events": list(events)})
    return scenarios.parse(line.encode(), "scenarios.json")[0]


@pytest.mark.usefixtures("native")
def test_a_small_failover_is_interpreted_to_the_same_rows(
    small: Snapshots, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[int] = []

    def interpreting(**given: Any) -> Interpreted:  # noqa: ANN401
        taken.append(given["many"])
        return interpreted_tables(**given)

    monkeypatch.setattr("understudy.controller.interpreted.tables", interpreting)
    native = replay(small, [FAILOVER])
    assert not taken
    monkeypatch.setattr("understudy.replay.SMALL", 2)
    interpreted = replay(small, [FAILOVER])
    assert taken == [1]
    for name, table in native.tables.items():
        assert_df_equality(
            table, interpreted.tables[name], ignore_nullable=True, ignore_row_order=True
        )
    native.close()
    interpreted.close()


def test_notes_say_what_a_reader_should_know(spark: SparkSession, tmp_path: Path) -> None:
    doc = cluster({"a": [HEALTHY]}, live=[1, 2, 3])
    decided = replay(read(spark, tmp_path, {**doc, "release": "3.5"}), [FAILOVER])
    assert decided.notes == [
        "unverified: release 3.5 has not been compared with its published jars"
    ]
    decided.close()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"profile": "raft"}, "profile 'raft' is not one of zk, zk-legacy, kraft"),
        (
            {"release": "2.3"},
            "release 2.3 is outside zk (2.4 to 3.9), zk-legacy (0.9 to 1.0), kraft",
        ),
        ({"profile": "zk", "release": "4.0"}, "release 4.0 is outside zk (2.4 to 3.9)"),
        ({"release": "new"}, "release new is outside"),
    ],
)
def test_settings_that_make_no_sense_are_refused(
    small: Snapshots, settings: dict[str, str], message: str
) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        replay(small, [FAILOVER], **settings)  # type: ignore[arg-type]


@pytest.mark.usefixtures("native")
def test_the_release_caps_the_protocol(small: Snapshots) -> None:
    def versions(release: str) -> set[tuple[str, int]]:
        decided = replay(small, [FAILOVER], release=release)
        rows = decided.tables["requests"].select("request", "version").distinct().collect()
        decided.close()
        return {(row.request, row.version) for row in rows}

    assert ("LEADER_AND_ISR", 7) in versions("3.9")
    assert ("LEADER_AND_ISR", 5) in versions("2.8")
    assert ("UPDATE_METADATA", 6) in versions("2.4")


@pytest.mark.parametrize("events", [[], [{"type": "catch_up", "brokers": [9]}]])
def test_changed_only_leaves_out_what_was_not_touched(
    small: Snapshots, events: list[dict[str, Any]]
) -> None:
    asked = _scenario({"type": "controller_failover"}, *events)
    decided = replay(small, [asked], changed_only=True)
    states = decided.tables["partition_states"].collect()
    assert [(row.topic, row.partition, row.outcome) for row in states] == [("a", 1, "offline")]
    replicas = decided.tables["replica_states"].collect()
    assert {(row.topic, row.partition) for row in replicas} == {("a", 1)}
    decided.close()


@pytest.mark.usefixtures("native")
def test_a_snapshot_without_topics_or_brokers_is_replayed(
    spark: SparkSession, tmp_path: Path
) -> None:
    empty = {"cluster": "c", "snapshot_id": "s1", "brokers": [], "topics": []}
    lonely = {"cluster": "d", "snapshot_id": "s1", "brokers": [{"id": 7}], "topics": []}
    found = replay_documents(spark, tmp_path, [empty, lonely])
    assert found["c"]["requests"] == []
    assert [row[3:5] for row in found["d"]["requests"]] == [("UPDATE_METADATA", 7)]


@pytest.mark.usefixtures("native", "unsettled")
@pytest.mark.parametrize(
    ("tables", "clusters"),
    [
        (("partition_states", "metadata_writes", "requests"), 10),
        pytest.param(tuple(REPLAY_TABLES), 100, marks=pytest.mark.slow),
    ],
)
def test_partitioning_of_the_input_does_not_change_a_row(
    spark: SparkSession, tmp_path: Path, tables: tuple[str, ...], clusters: int
) -> None:
    rng = Random(3)
    snapshots = read(spark, tmp_path, *(random_cluster(rng, f"c{n}") for n in range(clusters)))
    whole = replay(snapshots, [FAILOVER])
    scattered = _replay_scattered(snapshots)
    for name in tables:
        keys = REPLAY_TABLES[name].names
        assert_df_equality(
            whole.tables[name].orderBy(*keys),
            scattered.tables[name].select(*keys).orderBy(*keys),
            ignore_nullable=True,
        )
    whole.close()
    scattered.close()


def _replay_scattered(snapshots: Snapshots) -> Replay:
    def scatter(table: DataFrame) -> DataFrame:
        return table.repartition(3).sortWithinPartitions(*table.columns[::-1])

    scattered = {name: scatter(table) for name, table in snapshots.tables().items()}
    return replay(replace(snapshots, **scattered), [FAILOVER])  # type: ignore[arg-type]


@pytest.mark.usefixtures("native", "unsettled")
def test_the_plan_does_not_grow_with_brokers_snapshots_scenarios_or_events(
    spark: SparkSession, tmp_path: Path
) -> None:
    def plans(
        folder: str, brokers: int = 5, snapshots: int = 2, asked: Sequence[scenarios.Scenario] = ()
    ) -> dict[str, int]:
        live = range(1, brokers)
        doc = cluster({"a": [HEALTHY, partition([brokers, 1], (brokers, 1, [brokers]), number=1)]},
                      live=live)  # fmt: skip
        (tmp_path / folder).mkdir()
        docs = [named(doc, f"c{n}") for n in range(snapshots)]
        decided = replay(read(spark, tmp_path / folder, *docs), asked or [FAILOVER])
        sizes = {name: _nodes(table) for name, table in decided.tables.items()}
        decided.close()
        return sizes

    one = plans("few")
    assert plans("many", brokers=150, snapshots=60) == one
    failure = {"type": "broker_failure", "brokers": [1]}

    def failures(count: int, events: int) -> list[scenarios.Scenario]:
        one = _scenario(*[failure] * events)
        return [replace(one, scenario=f"s{n}") for n in range(count)]

    single = plans("one-failure", asked=failures(1, 1))
    assert plans("many-failures", asked=failures(50, 1)) == single
    sequence = plans("one-sequence", asked=failures(1, 2))
    assert plans("many-sequences", asked=failures(50, 8)) == sequence


def _nodes(table: DataFrame) -> int:
    plan = table._jdf.queryExecution().optimizedPlan()  # noqa: SLF001
    return len(plan.treeString().splitlines())


def test_every_column_of_every_table_is_accounted_for() -> None:
    """A guard: a new column has to be thought of here, in the documentation and in every engine."""
    documented = (Path(__file__).parents[2] / "docs" / "tables.md").read_text(encoding="utf-8")
    for name, schema in {**SNAPSHOT_TABLES, **REPLAY_TABLES}.items():
        section = documented.split(f"### `{name}`")[1].split("\n### ")[0]
        missing = [column for column in schema.names if f"`{column}`" not in section]
        assert not missing, (name, missing)


def test_replay_can_be_closed_twice(small: Snapshots) -> None:
    decided: Replay = replay(small, [FAILOVER])
    decided.close()
    decided.close()
