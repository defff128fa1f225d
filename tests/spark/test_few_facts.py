"""What is known of a few rows in this process is what Spark tells of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from clusters import Document
from histories import quiet_history, random_history, recorded
from understudy import sources
from understudy.controller.kraft.partitions import LOST, UNASSIGNED
from understudy.frames import collected, small_frame
from understudy.questions.audit import audit, facts, few_facts, ledger
from understudy.questions.audit.few_facts import Looked, View
from understudy.questions.history import answer, few
from understudy.snapshot import Snapshots

Row = dict[str, Any]
HISTORIES = 40
REAL = ("zk-2.8", "zk-1.0", "kraft-4.3")
UNCLEAN = "unclean.leader.election.enable"
SAID = (" true", "TRUE", "true ", "false")


def odd(dice: Random, doc: Document) -> Document:
    """With settings on every level and said in odd ways, and lost directories."""
    said = {UNCLEAN: dice.choice(SAID), "min.insync.replicas": dice.choice((" 2", "3", "1 "))}
    some = {name: value for name, value in said.items() if dice.random() < 0.5}
    for place in (doc, *doc["topics"], *doc["brokers"]):
        if dice.random() < 0.3:
            place["configs"] = {**place.get("configs", {}), **some}
    is_kraft = doc.get("mode") == "kraft"
    brokers = doc["brokers"] if is_kraft else ()
    for broker in brokers:
        broker["log_dirs"] = dice.choice([["a"], ["a", "b"], []])
    for part in (part for topic in doc["topics"] for part in topic["partitions"]):
        if dice.random() < 0.2:
            named = [dice.choice(("a", "b", LOST, UNASSIGNED)) for _ in part["replicas"]]
            lost = [dice.choice(part["replicas"])]
            part.update({"directories": named} if is_kraft else {"offline_dirs": lost})
    return doc | {"release": dice.choice(("3.9", "3.8"))} if is_kraft else doc


def histories() -> Iterator[list[Document]]:
    dice = Random(51)
    for n in range(HISTORIES):
        make = dice.choice((random_history, quiet_history))
        yield [odd(dice, doc) for doc in make(dice, f"c{n:02}", 4)]
    for name in REAL:
        docs = recorded(name)
        begin = dice.randrange(len(docs) - 3)
        yield docs[begin : begin + 4]


@pytest.fixture(scope="module")
def snapshots(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Snapshots]:
    path = tmp_path_factory.mktemp("few") / "all.jsonl"
    docs = [doc for history in histories() for doc in history]
    path.write_text("".join(json.dumps(doc) + "\n" for doc in docs), encoding="utf-8")
    found = sources.read(spark, [str(path)])
    assert found.quarantine.count() == 0, found.quarantine.first()
    yield found
    found.close()


@pytest.fixture(scope="module")
def todo(snapshots: Snapshots) -> list[ledger.History]:
    """The last snapshot of each history, with the two before it."""
    return [
        replace(each, asked=each.complete[-1:], needed=each.complete[-3:-1])
        for each in ledger.histories(audit.stored(snapshots.snapshots), [])
    ]


@pytest.fixture(scope="module")
def looked(spark: SparkSession, snapshots: Snapshots, todo: list[ledger.History]) -> list[Looked]:
    there = few.moments(collected(spark, {name: getattr(snapshots, name) for name in few.TABLES}))
    found = []
    for each in todo:
        place = next(
            dict(zip(facts.PLACES.names, row, strict=True)) for row in audit.places_of(each)
        )
        now, before, earlier = (
            View(there[seen.key], place["number"] - back)
            for back, seen in enumerate(reversed(each.complete[-3:]))
        )
        found.append(Looked(place, now, before, earlier, {}))
    return found


@pytest.fixture(scope="module")
def told(snapshots: Snapshots, todo: list[ledger.History]) -> Iterator[answer.History]:
    listed = [row for each in todo for row in audit.listed(each)]
    with closing(answer.told(snapshots, listed)) as history:
        yield history


def by_key(df: DataFrame, schema: T.StructType) -> list[str]:
    rows = (row.asDict(recursive=True) for row in df.select(*schema.names).collect())
    return sorted(map(str, rows))


def at_hand(spark: SparkSession, rows: Iterator[Row], schema: T.StructType) -> list[str]:
    values = [[row.get(name) for name in schema.names] for row in rows]
    return by_key(small_frame(spark, map(pruned(schema), values), schema), schema)


def pruned(schema: T.StructType) -> Any:  # noqa: ANN401 - rows are of any shape
    """What rows remember of others, no more than the schema says."""

    def value(field: T.StructField, given: Any) -> Any:  # noqa: ANN401
        if given is None or not isinstance(field.dataType, T.StructType):
            return given
        return {each.name: given[each.name] for each in field.dataType}

    return lambda row: [value(field, given) for field, given in zip(schema, row, strict=True)]


Told = tuple[list[str], list[str]]


@pytest.fixture(scope="module")
def both(
    spark: SparkSession,
    snapshots: Snapshots,
    todo: list[ledger.History],
    looked: list[Looked],
    told: answer.History,
) -> Callable[[str], Told]:
    """What both say of a subject."""
    places = audit.places(spark, todo)
    changes, divergences = (
        [row.asDict(recursive=True) for row in table.collect()]
        for table in (told.changes, told.divergences)
    )
    here: Mapping[str, tuple[Iterator[Row], T.StructType]] = {
        "partition": (few_facts.partitions(looked, changes), few_facts.PARTITIONS),
        "change": (few_facts.unexplained(looked, divergences), few_facts.CHANGES),
        "broker": (few_facts.brokers(looked), few_facts.BROKERS),
        "snapshot": (few_facts.whole(looked), few_facts.SNAPSHOTS),
    }
    by_spark = {
        "partition": lambda: facts.partitions(snapshots, places, told.changes, looks_back=True),
        "change": lambda: facts.unexplained(told.divergences, places),
        "broker": lambda: facts.brokers(snapshots, places, facts.load(snapshots, places)),
        "snapshot": lambda: facts.whole(snapshots, places),
    }

    def of(subject: str) -> Told:
        rows, schema = here[subject]
        return at_hand(spark, rows, schema), by_key(by_spark[subject](), schema)

    return of


@pytest.mark.parametrize("subject", ["partition", "change", "broker", "snapshot"])
def test_facts_are_the_same(both: Callable[[str], Told], subject: str) -> None:
    here, by_spark = both(subject)
    assert len(by_spark) > HISTORIES / 2
    assert here == by_spark
