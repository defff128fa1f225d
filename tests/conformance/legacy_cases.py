"""Random clusters of Kafka 1.0 and what happens to them, out of the cases of later controllers.

A case is drawn as for ZooKeeper mode and then made one that 1.0 can have. What nobody could ask
for, a reassignment to no broker or twice to the same, is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any, Final

from conformance import cases
from conformance.cases import FAILOVER

Document = dict[str, Any]

EVENTS: Final = tuple(cases.EVENTS)
"""Also those that 1.0 cannot do, which it says."""

_DRAWN_AS: Final = "2.8"
_PROTOCOLS: Final = (
    "1.0", "1.0", "1.0", "0.11.0", "0.10.2", "0.10.1", "0.10.0", "0.9.0",
)  # fmt: skip
_MOST_DELETED: Final = 4  # Kafka walks up to four topics in the order they are queued in


def draw(seed: int, release: str, number: int, events: Sequence[str]) -> Document:
    """Case *number*: a snapshot and a scenario made of events of these types."""
    case = cases.draw(seed, _DRAWN_AS, number, events)
    rng = Random(f"{seed}:{release}:{number}:legacy")
    snapshot = case["snapshot"]
    snapshot["release"] = release
    snapshot.pop("metadata_version", None)
    if rng.random() < 0.8:
        snapshot["metadata_version"] = rng.choice(_PROTOCOLS)
    for topic in snapshot["topics"]:
        topic.pop("id", None)
        for partition in topic["partitions"]:
            partition.get("state", {}).pop("recovery", None)
    case["scenario"]["events"] = _possible(case)
    return case


def _possible(case: Document) -> list[Document]:
    """The events, without what no tool would have asked 1.0 for; never none."""
    queued = {t["name"] for t in case["snapshot"]["topics"] if t.get("queued_for_deletion")}
    kept = []
    for event in case["scenario"]["events"]:
        if event["type"] == "reassign":
            event["partitions"] = {
                partition: target
                for partition, target in event["partitions"].items()
                if target and -1 not in target and len(set(target)) == len(target)
            }
            if not event["partitions"]:
                continue
        if event["type"] == "delete_topics":
            if len(queued | set(event["topics"])) > _MOST_DELETED:
                continue
            queued |= set(event["topics"])
        kept.append(event)
    return kept or [{"type": FAILOVER}]
