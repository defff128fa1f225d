"""The controllers of ZooKeeper mode from 2.4 on: Kafka 3.9 and 2.8 answer for them."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from conformance import cases, comparing, zk_mutations
from conformance.comparing import Difference
from conformance.families import Document, Family, Tables


def _differences(_case: Document, answer: Document, tables: Tables) -> list[Difference]:
    return comparing.differences(answer, tables)


FAMILY: Final = Family(
    name="zk",
    oracle=Path(__file__).parent / "oracle",
    events=tuple(cases.EVENTS),
    single=(cases.FAILOVER,),
    draw=cases.draw,
    interpreted=comparing.interpreted,
    differences=_differences,
    mutations=zk_mutations.MUTATIONS,
    in_columns=comparing.in_columns,
)
