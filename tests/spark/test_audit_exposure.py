"""Intervals of conditions, against a plain walk over the snapshots; carried on or all at once."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from random import Random
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from understudy import schemas
from understudy.frames import small_frame
from understudy.questions.audit import exposure
from understudy.questions.audit.exposure import CONDITIONS
from understudy.questions.audit.ledger import Entry, History, Seen, histories

CLUSTERS = 25
RULES = [*CONDITIONS[:2], "unclean-election"]
SUBJECTS = [("t", 0, 7), ("t", 1, None), (None, None, 1), (None, None, 2), (None, None, None)]
MICROS = 60_000_000

Row = tuple[Any, ...]


def random_findings(dice: Random, stored: list[Seen]) -> list[Row]:
    """Conditions that come and go; of partitions, the broker they are about may change."""
    rows: list[Row] = []
    for topic, partition, broker in SUBJECTS:
        for rule in RULES:
            holds = False
            for seen in stored:
                holds = holds if dice.random() < 0.6 else not holds
                if holds:
                    about = dice.choice([broker, 9]) if topic else broker
                    silenced = "reason" if dice.random() < 0.1 else None
                    rows.append(
                        (*seen.key, None, rule, "info", topic, partition, about, "", silenced, None)
                    )
    return rows


def by_hand(rows: list[Row], stored: list[Seen]) -> Iterator[Row]:
    complete = [seen for seen in stored if seen.complete]
    told = {
        (row[5], row[6], None if row[5] else row[7], row[3], row[1])
        for row in rows
        if row[9] is None and row[3] in CONDITIONS
    }
    for subject in sorted({key[:4] for key in told}, key=str):
        walk = [(seen, (*subject, seen.snapshot_id) in told) for seen in complete]
        place = 0
        for holds, stretch in groupby(walk, key=lambda step: step[1]):
            length = len(list(stretch))
            if holds:
                first, last = complete[place], complete[place + length - 1]
                after = complete[place + length] if place + length < len(complete) else None
                yield (
                    *(first.cluster, *subject),
                    *(first.taken_at, after.taken_at if after else None, length),
                    *(first.snapshot_id, last.snapshot_id),
                )
            place += length


def collected(df: DataFrame) -> list[Row]:
    rows = df.select(
        *("cluster", "topic", "partition", "broker_id", "rule"),
        F.unix_micros("since"),
        F.unix_micros("until"),
        *("snapshots", "first_snapshot", "last_snapshot"),
    )
    return sorted((tuple(row) for row in rows.collect()), key=str)


def clusters() -> tuple[list[list[Seen]], list[list[Row]]]:
    dice = Random(11)
    stored = [
        [
            Seen(f"c{n}", f"s{k:02}", k * MICROS, 1, dice.random() < 0.9, f"d{k}")
            for k in range(dice.randint(1, 9))
        ]
        for n in range(CLUSTERS)
    ]
    return stored, [random_findings(dice, each) for each in stored]


def frame(spark: SparkSession, rows: list[Row]) -> DataFrame:
    return small_frame(spark, rows, schemas.FINDINGS)


def whole(spark: SparkSession, rows: list[Row], todo: list[History]) -> DataFrame:
    numbered = exposure.numbers(todo)
    return exposure.exposure(exposure.found_in(frame(spark, rows)), numbered)


def test_all_at_once_and_carried_on_both_come_out_as_by_hand(spark: SparkSession) -> None:
    stored, rows = clusters()
    expected = sorted(
        (row for each, found in zip(stored, rows, strict=True) for row in by_hand(found, each)),
        key=str,
    )
    every = [row for found in rows for row in found]
    todo = histories([seen for each in stored for seen in each], [])
    assert collected(whole(spark, every, todo)) == expected

    # The same in two runs: what the first knew, and the findings of the rest.
    dice = Random(12)
    early = [each[: dice.randint(1, len(each))] for each in stored]
    first_todo = histories([seen for each in early for seen in each], [])
    known = {seen.key for each in early for seen in each}
    first = whole(spark, [row for row in every if row[:2] in known], first_todo)
    entries = [
        Entry(seen, history.previous[seen.snapshot_id], "run")
        for history in first_todo
        for seen in history.asked
    ]
    rest = histories([seen for each in stored for seen in each], entries)
    assert rest
    assert all(history.is_continued for history in rest)
    numbered = exposure.numbers(rest)
    new = frame(spark, [row for row in every if row[:2] not in known])
    stretches = exposure.found_in(new).unionByName(exposure.known_from(first))
    touched = {history.cluster for history in rest}
    carried = collected(exposure.exposure(stretches, numbered))
    assert carried == [row for row in expected if row[0] in touched]
