"""Holds a replay of the quorum controller against Kafka's, by the rules of ``kraft_answers``."""

from __future__ import annotations

from collections import Counter
from typing import Any

import kraft_answers
from conformance.comparing import Difference
from conformance.families import Document, Tables

Rows = list[dict[str, Any]]


def interpreted(case: Document) -> Tables:
    """The tables of the pure interpreter, with the product's own parser in front."""
    return kraft_answers.replayed(case["snapshot"], case["scenario"]["events"])


def differences(case: Document, answer: Document, tables: Tables) -> list[Difference]:
    """Nothing when the replay did what Kafka did."""
    if not _is_possible(case["snapshot"]):
        return []
    kafka = kraft_answers.comparable(kraft_answers.answered(answer))
    ours = kraft_answers.comparable(tables)
    return [
        _difference(table, kafka[table], ours[table])
        for table in kafka
        if kafka[table] != ours[table]
    ]


def _is_possible(snapshot: Document) -> bool:
    """Partitions are numbered without gaps, which Kafka relies on; a smaller case keeps that."""
    return all(
        [partition["partition"] for partition in topic["partitions"]]
        == list(range(len(topic["partitions"])))
        for topic in snapshot["topics"]
    )


def _difference(table: str, kafka: Rows | Counter[Any], ours: Rows | Counter[Any]) -> Difference:
    """What is on one side only; rows in another order only are all shown."""
    of_kafka, of_ours = _counted(kafka), _counted(ours)
    only_kafka = list((of_kafka - of_ours).elements())
    only_ours = list((of_ours - of_kafka).elements())
    if not only_kafka and not only_ours:
        return Difference(table, list(of_kafka.elements()), list(of_ours.elements()))
    return Difference(table, only_kafka, only_ours)


def _counted(rows: Rows | Counter[Any]) -> Counter[Any]:
    if isinstance(rows, Counter):
        return rows
    return Counter(tuple(sorted(row.items())) for row in rows)
