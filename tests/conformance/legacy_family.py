"""The controllers of Kafka 0.9 to 1.0, one partition at a time: Kafka 1.0 answers for them."""

from __future__ import annotations

from typing import Final

from conformance import cases, legacy_cases, legacy_comparing, legacy_mutations, zk_family
from conformance.families import Family

FAMILY: Final = Family(
    name="zk-legacy",
    oracle=zk_family.FAMILY.oracle,
    events=legacy_cases.EVENTS,
    single=(cases.FAILOVER,),
    draw=legacy_cases.draw,
    interpreted=legacy_comparing.interpreted,
    differences=legacy_comparing.differences,
    mutations=legacy_mutations.MUTATIONS,
)
