"""What is let through of snapshots of which hardly anything changed, against a plain definition."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from understudy.columns import codes, differs
from understudy.frames import arrow_schema_of
from understudy.questions.audit import sifting
from understudy.questions.audit.sifting import BEFORE, COUNTED, EARLIER, NOW, Cluster

Row = dict[str, Any]
SIDES = (NOW, BEFORE, EARLIER)
CLUSTERS = {
    "kraft": Cluster(True, frozenset({1, 2, 3}), frozenset({(1, "a"), (2, "a"), (3, "b")})),
    "zk": Cluster(False, frozenset({1, 2, 3, 4}), frozenset()),
}
QUIET: Row = {
    "replicas": [1, 2, 3],
    "adding": [],
    "removing": None,
    "offline_dirs": [],
    "has_state": True,
    "leader": 1,
    "leader_epoch": 4,
    "isr": [2, 1, 3],
    "partition_epoch": 9,
    "controller_epoch": None,
    "recovery": 0,
    "elr": None,
    "last_known_elr": None,
    "directories": None,
}
ODD: list[Row] = [
    {"isr": [1, 2]},
    {"isr": [1, 1, 2]},
    {"replicas": [1, 2, 4], "isr": [1, 2, 4]},
    {"replicas": [1], "isr": [1]},
    {"replicas": [1, 2, 9], "isr": [1, 2, 9]},
    {"leader": 2, "leader_epoch": 5},
    {"leader": 4},
    {"leader": -1},
    {"adding": [4]},
    {"offline_dirs": [2]},
    {"has_state": False, "leader": None, "isr": None},
    {"directories": ["a", "a", "b"]},
    {"directories": ["b", "a", "b"]},
    {"elr": [2], "last_known_elr": []},
    {"elr": [], "last_known_elr": [2]},
]


def random_rows(dice: Random) -> list[Row]:
    """Three snapshots of two clusters, in which something changes here and there."""
    rows: list[Row] = []
    for cluster in CLUSTERS:
        for topic in map(str, range(12)):
            base = {
                n: QUIET | (dice.choice(ODD) if dice.random() < 0.2 else {})
                for n in range(dice.randint(1, 4))
            }
            is_named, is_queued = dice.random() < 0.5, dice.random() < 0.1
            for side in SIDES:
                of = {"cluster": cluster, "topic": topic, "side": side}
                has_changed = dice.random() < 0.05
                queued = {"queued_for_deletion": is_queued, "topic_id": f"{has_changed}"}
                rows.append(of | queued | {"table_name": "topics"})
                if is_named:
                    setting = {"scope": "topic", "name": topic, "key": "k", "value": "v"}
                    rows.append(of | setting | {"table_name": "configs"})
                for n, record in base.items():
                    seen = record | (dice.choice(ODD) if dice.random() < 0.03 else {})
                    if dice.random() > 0.02:
                        rows.append(of | seen | {"partition": n, "table_name": "partitions"})
        default = {"scope": "cluster", "key": "k", "value": "v", "table_name": "configs"}
        rows += [default | {"cluster": cluster, "side": side} for side in SIDES]
    dice.shuffle(rows)
    return rows


def is_plain(cluster: Cluster, row: Row) -> bool:
    replicas, leader = row["replicas"], row["leader"]
    directories = zip(replicas, row["directories"] or (), strict=False)
    return (
        not (cluster.is_kraft and row["partition"] == 0)
        and bool(row["has_state"])
        and leader in replicas
        and sorted(replicas) == sorted(row["isr"])
        and len(set(replicas)) == len(replicas)
        and cluster.steady >= set(replicas)
        and not (row["adding"] or row["removing"] or row["offline_dirs"])
        and cluster.directories >= set(directories)
    )


def by_hand(rows: list[Row]) -> tuple[Counter[str], Counter[tuple[Any, ...]]]:
    """The rows that come through, and what is counted of the others."""
    of_topic: dict[tuple[str, str | None], list[Row]] = defaultdict(list)
    for row in rows:
        of_topic[row["cluster"], row.get("topic")].append(row)
    through, counted = Counter[str](), Counter[tuple[Any, ...]]()
    for (name, topic), together in of_topic.items():
        cluster = CLUSTERS[name]
        records: dict[int, dict[int, Row]] = defaultdict(dict)
        said: dict[int, Counter[str]] = defaultdict(Counter)
        for row in together:
            if row["table_name"] == "partitions":
                records[row["partition"]][row["side"]] = row
            else:
                said[row["side"]][text({**row, "side": 0})] += 1
        is_whole = topic is not None and (
            said[NOW] != said[BEFORE] or any(row.get("queued_for_deletion") for row in together)
        )
        for n, sides in records.items():
            sizes = [len(sides[s]["replicas"]) if s in sides else 0 for s in (NOW, BEFORE)]
            if n == 0 and cluster.is_kraft:
                is_whole |= sizes[0] != sizes[1]
            is_whole |= (NOW in sides) != (BEFORE in sides)
        is_any = is_whole or topic is None
        for sides in records.values():
            different = {text({**row, "side": 0}) for row in sides.values()}
            is_steady = len(sides) == len(SIDES) and len(different) == 1
            if is_whole or not is_steady or not is_plain(cluster, sides[NOW]):
                through.update(map(text, sides.values()))
                is_any = True
            else:
                count(name, sides[NOW], counted)
        if is_any:
            through.update(text(row) for row in together if row["table_name"] != "partitions")
    return through, counted


def count(cluster: str, row: Row, counted: Counter[tuple[Any, ...]]) -> None:
    replicas, leader = row["replicas"], row["leader"]
    for broker in replicas:
        is_leader, is_first = broker == leader, broker == replicas[0]
        counted[cluster, broker, "held"] += 1
        counted[cluster, broker, "leaders"] += is_leader
        counted[cluster, broker, "preferred"] += is_first
        counted[cluster, broker, "preferred_led"] += is_first and is_leader
        counted[cluster, broker, "shared_led"] += is_leader and len(replicas) > 1
        counted[cluster, broker, "accompanied"] += len(replicas) > 1


def text(row: Row) -> str:
    return str(sorted((name, value) for name, value in row.items() if value is not None))


def sifted(rows: list[Row]) -> pa.Table:
    def batches() -> Iterator[pa.RecordBatch]:
        schema = arrow_schema_of(sifting._ROWS)  # noqa: SLF001
        yield from pa.Table.from_pylist(rows, schema=schema).to_batches(max_chunksize=50)

    return pa.Table.from_batches(sifting._sift(CLUSTERS, batches()))  # noqa: SLF001


@pytest.mark.parametrize("seed", range(20))
def test_what_comes_through_is_what_is_in_question(seed: int) -> None:
    rows = random_rows(Random(seed))
    expected, counts = by_hand(rows)
    found = sifted(rows)
    through = Counter[str]()
    for name in sifting.TABLES:
        for row in sifting.rows_of(name, found).to_pylist():
            of_topic = {"topic": row["name"]} if row.get("scope") == "topic" else {}
            through[text({**row, **of_topic, "table_name": name})] += 1
    assert through == expected
    assert expected.total() < len(rows)
    told = Counter[tuple[Any, ...]]()
    for row in sifting.rows_of(COUNTED, found).to_pylist():
        for name in sifting.COUNTS:
            told[row["cluster"], row["broker_id"], name] += row[name]
    assert told == counts


def test_rows_of_some_tables_alone_are_sifted_too() -> None:
    rows = random_rows(Random(1))
    for name in sifting.TABLES:
        assert sifted([row for row in rows if row["table_name"] != name]).num_rows
    assert list(sifting._sift(CLUSTERS, iter(()))) == []  # noqa: SLF001


def test_equal_values_have_equal_codes() -> None:
    lists = [[1, 2], [3], None, [], [1], [2, 3], [1, 2], [], None]
    words = [None if each is None else [str(n) for n in each] for each in lists]
    for values in (lists, words, [str(each) for each in lists]):
        column = pa.chunked_array([pa.array(values[:4]), pa.array(values[4:])])
        found = codes(column).tolist()
        for value, code in zip(values, found, strict=True):
            assert [code == each for each in found] == [value == each for each in values]
            assert (code == -1) == (value is None)
    ones = codes(pa.chunked_array([pa.array([1, 1, 2, 2])]))
    others = codes(pa.chunked_array([pa.array(["a", "b", "b", "b"])]))
    assert differs([ones, others]).tolist() == [True, True, True, False]
