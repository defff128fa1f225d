"""Holds a replay of the legacy controller against Kafka 1.0's, by the rules of ``legacy_answers``.

The oracle answers every case twice, the second time with each set of replicas walked the other way
round. Where that makes a difference, the case hangs on hashes: only what no order changes is
compared. Now and then an order changes even that (which replica stays in an ISR decides whether a
reassignment is complete); then the replay has to follow one of the two.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from clusters import rows_of
from conformance.comparing import Difference, as_answer, one_sided
from conformance.families import Document, Tables
from legacy_answers import entire, has_row_of_aborted_event, without_order
from understudy.controller.zk_legacy import interpreter as legacy_interpreter


def interpreted(case: Document) -> Tables:
    """The tables of the pure interpreter, with the product's own parser in front."""
    tables = legacy_interpreter.replay(rows_of(case["snapshot"]), case["scenario"]["events"])
    return as_answer(tables)


def differences(_case: Document, answer: Document, tables: Tables) -> list[Difference]:
    """Nothing when the replay did what Kafka did, in one of its orders where they matter."""
    if not hangs_on_order(answer):
        return _differences(answer, tables, entire)
    either = [_differences(each, tables, without_order) for each in (answer, answer["other_order"])]
    return min(either, key=len)


def _differences(
    answer: Document, tables: Tables, form: Callable[[Tables], dict[str, Any]]
) -> list[Difference]:
    aborted = answer["aborted"]
    if aborted:
        told = has_row_of_aborted_event(aborted, tables)
        return [] if told else [Difference("event_results", [(("aborted", aborted),)], [])]
    kafka, ours = form(answer), form(tables)
    return [
        one_sided(table, kafka[table], ours[table])
        for table in kafka
        if kafka[table] != ours[table]
    ]


def hangs_on_order(answer: Document) -> bool:
    other = answer.get("other_order")
    return other is not None and (
        other["aborted"] != answer["aborted"] or entire(other) != entire(answer)
    )
