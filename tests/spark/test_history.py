"""The pass over whole histories in Spark gives what plain Python gives, interval by interval.

One Spark action tells all the histories together; another takes some of them again, with their rows
in another order and other partitions.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import intervals
from clusters import Document
from told_histories import BURST, PAIRS, RECORDED, in_time
from understudy import scenarios, schemas, sources
from understudy.questions.history import answer
from understudy.snapshot import Snapshots

Key = tuple[str, str]
Told = dict[str, dict[Key, list[Any]]]

TABLES = {
    "events": schemas.EVENTS,
    "changes": schemas.CHANGES,
    "divergences": schemas.DIVERGENCES,
    "decisions": schemas.DECISIONS,
}
HISTORIES: dict[str, list[Document]] = {
    **{name: list(in_time(name, pair)) for name, pair in PAIRS.items()},
    **RECORDED,
    "burst": BURST,
}


def plain(table: DataFrame) -> dict[Key, list[Any]]:
    """Rows by snapshot, without its key, in an order of their own."""
    found: dict[Key, list[Any]] = {}
    for row in table.collect():
        cluster, snapshot_id, *values = row.asDict(recursive=True).values()
        found.setdefault((cluster, snapshot_id), []).append(values)
    return {key: sorted(rows, key=repr) for key, rows in found.items()}


def expected(docs: list[Document]) -> Iterator[tuple[Key, dict[str, list[Any]]]]:
    for _, events, told_of in intervals.told([intervals.of_document(doc) for doc in docs]):
        compared = [found for _, found in told_of]
        for name, found in told_of:
            shown = answer.shown_by(found, events, compared)
            yield (
                (docs[0]["cluster"], name),
                {
                    "events": [[seq, *events[seq - 1]] for seq in shown],
                    "changes": [list(each) for each in found.changes],
                    "divergences": [list(each) for each in found.divergences],
                    "decisions": [["history", *row.values()] for row in found.decisions],
                },
            )


@cache
def all_expected() -> list[tuple[Key, dict[str, list[Any]]]]:
    return [each for docs in HISTORIES.values() for each in expected(docs)]


@pytest.fixture(scope="module")
def snapshots(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Snapshots]:
    path = tmp_path_factory.mktemp("history") / "all.jsonl"
    docs = [doc for told in HISTORIES.values() for doc in told]
    path.write_text("\n".join(map(json.dumps, docs)), encoding="utf-8")
    with closing(sources.read(spark, [str(path)])) as read:
        yield read


@pytest.fixture(scope="module", params=[None, 1], ids=["by Spark", "in this process"])
def told(request: pytest.FixtureRequest, snapshots: Snapshots) -> Told:
    with closing(answer.told(replace(snapshots, rows=request.param))) as found:
        frames = {name: getattr(found, name) for name in TABLES}
        for name, frame in frames.items():
            assert frame.schema.simpleString() == TABLES[name].simpleString()
        return {name: plain(frame) for name, frame in frames.items()}


@pytest.mark.parametrize("name", TABLES)
def test_the_pass_tells_what_plain_python_tells(told: Told, name: str) -> None:
    wanted = {key: sorted(tables[name], key=repr) for key, tables in all_expected() if tables[name]}
    assert told[name] == wanted


def test_events_are_numbered_canonical_and_say_why(told: Told) -> None:
    for rows in map(sorted, told["events"].values()):
        # Of a burst a snapshot has those that it shows something of, under their numbers.
        assert len({seq for seq, *_ in rows}) == len(rows)
        written = [json.loads(event) for _, _, event, _ in rows]
        assert [event["type"] for event in written] == [event_type for _, event_type, *_ in rows]
        document = json.dumps({"scenario": "derived", "events": written}).encode()
        (scenario,) = scenarios.parse(document, "derived")
        assert scenario.events == tuple(event for _, _, event, _ in rows)
        assert all(evidence for *_, evidence in rows)


def test_neither_order_nor_partitions_nor_other_clusters_matter(
    snapshots: Snapshots, told: Told
) -> None:
    chosen = sorted(PAIRS)[::3]

    def shuffled(table: DataFrame) -> DataFrame:
        return table.where(F.col("cluster").isin(chosen)).repartition(3).orderBy(F.rand(seed=1))

    tables: Any = {name: shuffled(table) for name, table in snapshots.tables().items()}
    again = plain(answer.events(replace(snapshots, **tables)))
    assert again == {key: rows for key, rows in told["events"].items() if key[0] in chosen}
