"""Sets counted in columns, over several snapshots and tasks, against counting them one by one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import combinations
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from understudy.questions.cut_sets import counting

Row = dict[str, Any]
_SCHEMA = pa.schema(
    {
        "cluster": pa.string(),
        "snapshot_id": pa.string(),
        "topic": pa.int64(),
        "weight": pa.float64(),
        "whole": pa.int64(),
        "taken": pa.int32(),
        "offline_count": pa.int32(),
        "sets": pa.list_(pa.int64()),
        "wide_sets": pa.list_(pa.list_(pa.int32())),
    }
)


def partition(rng: Random) -> Row:
    """Its sets as numbers; those below 0 are told by their members."""
    about = {
        "cluster": rng.choice("ab"),
        "snapshot_id": rng.choice("st"),
        "topic": rng.randrange(5),
        "weight": float(rng.randrange(4)),
    }
    if rng.random() < 0.5:
        replicas = sorted(rng.sample([0, 1, 2, 3, 2**21 - 2], rng.randint(1, 3)))
        taken = rng.choice([0, 1, 2, 3, 2**31 - 1])
        return {**about, "whole": number(replicas), "taken": taken, "offline_count": 0}
    members = [rng.sample(range(6), rng.randint(4, 5)) for _ in range(rng.randint(0, 2))]
    wide = sorted({tuple(sorted(each)) for each in members})
    numbers = [
        *(-1 - hash(each) % 2**40 for each in wide),
        *rng.sample(range(9), rng.randint(0, 3)),
    ]
    beside: list[list[int]] | None = [*map(list, wide), *([1] for _ in numbers[len(wide) :])]
    if not wide and rng.random() < 0.5:
        beside = None
    return {
        **about,
        "taken": 0,
        "offline_count": rng.randint(0, len(numbers)),
        "sets": numbers,
        "wide_sets": beside,
    }


def number(brokers: Iterable[int]) -> int:
    """The digits of a set, each one more than an id."""
    digits = [broker + 1 for broker in brokers]
    return sum(digit << 21 * (2 - place) for place, digit in enumerate(digits))


def sets_of(row: Row, largest: int) -> Iterator[tuple[bool, int, tuple[int, ...] | None]]:
    if row.get("whole") is None:
        for place, each in enumerate(row["sets"]):
            wide = tuple(row["wide_sets"][place]) if each < 0 else None
            yield place < row["offline_count"], each, wide
        return
    digits = [row["whole"] >> 21 * n & 2**21 - 1 for n in (2, 1, 0)]
    replicas = [digit - 1 for digit in digits if digit]
    if len(replicas) <= largest:
        yield True, row["whole"], None
    taken = min(row["taken"], len(replicas))
    if 0 < taken <= largest:
        yield from ((False, number(each), None) for each in combinations(replicas, taken))


def one_by_one(rows: list[Row], largest: int) -> dict[tuple[Any, ...], tuple[int, int, float]]:
    found: dict[tuple[Any, ...], list[tuple[int, float]]] = defaultdict(list)
    for row in rows:
        for each in sets_of(row, largest):
            found[row["cluster"], row["snapshot_id"], *each].append((row["topic"], row["weight"]))
    return {
        key: (len(each), len({topic for topic, _ in each}), sum(weight for _, weight in each))
        for key, each in found.items()
    }


@pytest.mark.parametrize("at_once", [7, 10_000])
@pytest.mark.parametrize("partitions", [0, 1, 400])
@pytest.mark.parametrize("largest", [1, 2, 3])
def test_sets_are_counted_across_tasks(
    monkeypatch: pytest.MonkeyPatch, at_once: int, partitions: int, largest: int
) -> None:
    monkeypatch.setattr(counting, "_PARTITIONS_AT_ONCE", at_once)
    rng = Random(3)
    rows = [partition(rng) for _ in range(partitions)]
    tasks = [rows[: partitions // 3], rows[partitions // 3 :]]
    dealt = []
    for task in tasks:
        batches = [
            pa.RecordBatch.from_pylist(task[n : n + 5], _SCHEMA) for n in range(0, len(task), 5)
        ]
        dealt += list(counting._deal(largest, batches))  # noqa: SLF001 - without Spark in between
    shares = [share for batch in dealt for share in batch.to_pylist()]
    found = {}
    for number in range(2):
        own = [share for share in shares if share["share"] % 2 == number]
        batches = [pa.RecordBatch.from_pylist([share]) for share in own]
        for counted in counting._count(batches):  # noqa: SLF001
            for row in counted.to_pylist():
                wide = None if row["wide"] is None else tuple(row["wide"])
                key = (row["cluster"], row["snapshot_id"], row["is_offline"], row["packed"], wide)
                assert key not in found
                found[key] = (row["partitions"], row["topics"], row["weight"])
    assert found == one_by_one(rows, largest)
