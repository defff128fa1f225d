"""The quorum controllers of KRaft mode: Kafka 4.3, 4.2, 4.1, 4.0 and 3.9 answer for them."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from conformance import kraft_cases, kraft_comparing, kraft_mutations
from conformance.families import Family

FAMILY: Final = Family(
    name="kraft",
    oracle=Path(__file__).parent / "kraft_oracle",
    events=tuple(kraft_cases.EVENTS),
    # A failover of the controller writes nothing in KRaft: the failure of brokers takes its place.
    single=(kraft_cases.BROKER_FAILURE,),
    draw=kraft_cases.draw,
    interpreted=kraft_comparing.interpreted,
    differences=kraft_comparing.differences,
    mutations=kraft_mutations.MUTATIONS,
)
