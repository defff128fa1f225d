"""What the verbs share that answer yes or no: their words, and what they know of one snapshot."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from understudy.errors import EXIT_CANNOT_DECIDE, EXIT_DONE, EXIT_FAILS, BadInputError

if TYPE_CHECKING:
    from understudy.snapshot import Snapshots

YES: Final = "yes"
NO: Final = "no"
CANNOT_DECIDE: Final = "cannot-decide"
EXIT_CODES: Final = {YES: EXIT_DONE, NO: EXIT_FAILS, CANNOT_DECIDE: EXIT_CANNOT_DECIDE}


def broker_id(text: str) -> int:
    if not (text.isascii() and text.isdecimal()):
        raise argparse.ArgumentTypeError(f"{text!r} is not the number of a broker")
    return int(text)


def ignore_unsavable_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--ignore-unsavable",
        action="store_true",
        help="partitions with as many replicas as min ISR or fewer, which any stop of theirs "
        "blocks, do not count",
    )


@dataclass(frozen=True)
class Cluster:
    """What one snapshot says of itself and its brokers."""

    cluster: str
    snapshot_id: str
    taken_at: datetime | None
    is_complete: bool
    controller: int | None  # its broker, in ZooKeeper mode
    registered: frozenset[int]
    live: frozenset[int]
    known: frozenset[int]

    def why_undecided(self, max_age: timedelta | None, now: datetime) -> str | None:
        if not self.is_complete:
            return "the snapshot is not complete: what it lacks could block"
        if max_age is None:
            return None
        if self.taken_at is None:
            return "the snapshot does not say when it was taken"
        if now - self.taken_at > max_age:
            return f"the snapshot is from {self.taken_at.isoformat()}, which is too long ago"
        return None


def cluster_of(snapshots: Snapshots) -> Cluster:
    from understudy.controller.profiles import ZK

    rows = {
        name: each.to_pylist() for name, each in snapshots.small("snapshots", "brokers").items()
    }
    if not rows["snapshots"]:  # one() has just found it
        raise BadInputError("there is no such snapshot")
    (row,), brokers = rows["snapshots"], rows["brokers"]
    taken_at = row["taken_at"]
    return Cluster(
        row["cluster"],
        row["snapshot_id"],
        None if taken_at is None else taken_at.astimezone(UTC),
        is_complete=bool(row["complete"]),
        controller=row["controller_id"] if row["mode"] == ZK.mode else None,
        registered=frozenset(b["broker_id"] for b in brokers if b["alive"]),
        live=frozenset(b["broker_id"] for b in brokers if b["alive"] and not b["shutting_down"]),
        known=frozenset(b["broker_id"] for b in brokers),
    )
