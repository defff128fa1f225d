"""What a family of controllers brings to be held against Kafka: oracle, cases and comparison.

The releases that can be asked, each with its family, are listed in ``conformance.RELEASES``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from conformance.comparing import Difference
from conformance.mutations import Mutation
from kafka_answers import Row

Document = dict[str, Any]
Tables = dict[str, list[Row]]


class Family(NamedTuple):
    """Controllers that answer the same kinds of cases."""

    name: str
    oracle: Path
    """The Maven project with one module ``kafka-RELEASE`` for each release."""
    events: Sequence[str]
    """Every event that is drawn: ``--events all``."""
    single: Sequence[str]
    """What ``--events failover`` stands for, one event to a case."""
    draw: Callable[[int, str, int, Sequence[str]], Document]
    """Seed, release, number and events -> a case."""
    interpreted: Callable[[Document], Tables]
    """A case -> the tables of the pure interpreter."""
    differences: Callable[[Document, Document, Tables], list[Difference]]
    """A case, Kafka's answer and a replay's tables -> where they differ."""
    mutations: Sequence[Mutation]
    """Rules to break, each of which some case must catch."""
    in_columns: Callable[[Document], Tables] | None = None
    """A case -> the tables of the columnar form, where there is one."""
