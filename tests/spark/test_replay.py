"""A replay as a whole: what it refuses, what it says, and what must not change its rows."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from chispa import assert_df_equality
from pyspark.sql import DataFrame, SparkSession

from clusters import Document, cluster, partition, random_cluster
from native_replay import replay_documents
from understudy import scenarios, sources
from understudy.errors import BadInputError, UsageError
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


def test_every_table_has_its_schema(small: Snapshots) -> None:
    decided = replay(small, [FAILOVER])
    assert set(decided.tables) == set(REPLAY_TABLES)
    for name, table in decided.tables.items():
        actual = [(f.name, f.dataType.simpleString()) for f in table.schema]
        assert actual == [(f.name, f.dataType.simpleString()) for f in REPLAY_TABLES[name]]
    decided.close()


def test_a_release_outside_the_profile_is_quarantined_and_the_rest_replayed(
    spark: SparkSession, tmp_path: Path
) -> None:
    doc = cluster({"a": [HEALTHY]}, live=[1, 2, 3])
    bad = named(doc, "old", release="2.0", metadata_version="2.0")
    kraft = named(doc, "new", mode="kraft", release="4.0", metadata_version="4.0")
    decided = replay(read(spark, tmp_path, doc, bad, kraft), [FAILOVER])
    problems = {row.cluster: row.problems[0] for row in decided.quarantine.collect()}
    assert problems["old"] == "release 2.0 is outside profile zk (2.4 to 3.9)"
    assert problems["new"] == "mode kraft is not replayed by profile zk"
    assert {row.cluster for row in decided.tables["partition_states"].collect()} == {"c"}
    assert decided.replayed == 1
    decided.close()


def test_notes_say_what_a_reader_should_know(spark: SparkSession, tmp_path: Path) -> None:
    moving = {**partition([1, 2, 3], (1, 4, [1, 2])), "adding": [3]}
    doc = cluster({"a": [moving], "b": [HEALTHY]}, live=[1, 2, 3], queued=["b"])
    decided = replay(read(spark, tmp_path, {**doc, "release": "3.5"}), [FAILOVER])
    assert [note.split(";")[0] for note in decided.notes[:2]] == [
        "partitions with a reassignment in flight: 1",
        "partitions of topics queued for deletion: 1",
    ]
    assert decided.notes[2].startswith("unverified: release 3.5")
    decided.close()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"profile": "raft"}, "profile 'raft' is not one of zk"),
        ({"release": "2.3"}, "release 2.3 is outside profile zk (2.4 to 3.9)"),
        ({"release": "new"}, "'new' is not a version"),
    ],
)
def test_settings_that_make_no_sense_are_refused(
    small: Snapshots, settings: dict[str, str], message: str
) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        replay(small, [FAILOVER], **settings)  # type: ignore[arg-type]


def test_the_release_caps_the_protocol(small: Snapshots) -> None:
    def versions(release: str) -> set[tuple[str, int]]:
        decided = replay(small, [FAILOVER], release=release)
        rows = decided.tables["requests"].select("request", "version").distinct().collect()
        decided.close()
        return {(row.request, row.version) for row in rows}

    assert ("LEADER_AND_ISR", 7) in versions("3.9")
    assert ("LEADER_AND_ISR", 5) in versions("2.8")
    assert ("UPDATE_METADATA", 6) in versions("2.4")


def test_events_that_cannot_be_replayed_yet_are_named(small: Snapshots) -> None:
    line = b'{"scenario": "x", "events": [{"type": "broker_failure", "brokers": [1]}]}'
    with pytest.raises(BadInputError, match="scenario x: broker_failure"):
        replay(small, scenarios.parse(line, "scenarios.json"))


def test_changed_only_leaves_out_what_was_not_touched(small: Snapshots) -> None:
    decided = replay(small, [FAILOVER], changed_only=True)
    states = decided.tables["partition_states"].collect()
    assert [(row.topic, row.partition, row.outcome) for row in states] == [("a", 1, "offline")]
    replicas = decided.tables["replica_states"].collect()
    assert {(row.topic, row.partition) for row in replicas} == {("a", 1)}
    decided.close()


def test_a_snapshot_without_topics_or_brokers_is_replayed(
    spark: SparkSession, tmp_path: Path
) -> None:
    empty = {"cluster": "c", "snapshot_id": "s1", "brokers": [], "topics": []}
    lonely = {"cluster": "d", "snapshot_id": "s1", "brokers": [{"id": 7}], "topics": []}
    found = replay_documents(spark, tmp_path, [empty, lonely])
    assert found["c"]["requests"] == []
    assert [row[3:5] for row in found["d"]["requests"]] == [("UPDATE_METADATA", 7)]


def test_partitioning_of_the_input_does_not_change_a_row(
    spark: SparkSession, tmp_path: Path
) -> None:
    rng = Random(3)
    snapshots = read(spark, tmp_path, *(random_cluster(rng, f"c{n}") for n in range(40)))
    whole = replay(snapshots, [FAILOVER])
    scattered = _replay_scattered(snapshots)
    for name, table in whole.tables.items():
        keys = REPLAY_TABLES[name].names
        assert_df_equality(
            table.orderBy(*keys),
            scattered.tables[name].select(*keys).orderBy(*keys),
            ignore_nullable=True,
        )
    whole.close()
    scattered.close()


def _replay_scattered(snapshots: Snapshots) -> Replay:
    def scatter(table: DataFrame) -> DataFrame:
        return table.repartition(7).sortWithinPartitions(*table.columns[::-1])

    scattered = {name: scatter(table) for name, table in snapshots.tables().items()}
    return replay(replace(snapshots, **scattered), [FAILOVER])  # type: ignore[arg-type]


def test_the_plan_does_not_grow_with_brokers_or_snapshots(
    spark: SparkSession, tmp_path: Path
) -> None:
    def plans(folder: str, brokers: int, snapshots: int) -> dict[str, int]:
        live = range(1, brokers)
        doc = cluster({"a": [HEALTHY, partition([brokers, 1], (brokers, 1, [brokers]), number=1)]},
                      live=live)  # fmt: skip
        (tmp_path / folder).mkdir()
        docs = [named(doc, f"c{n}") for n in range(snapshots)]
        decided = replay(read(spark, tmp_path / folder, *docs), [FAILOVER])
        sizes = {name: _nodes(table) for name, table in decided.tables.items()}
        decided.close()
        return sizes

    one = plans("few", brokers=5, snapshots=2)
    assert plans("many-brokers", brokers=150, snapshots=2) == one
    assert plans("many-snapshots", brokers=5, snapshots=60) == one


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
