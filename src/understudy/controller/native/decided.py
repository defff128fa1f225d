"""What an event decides for the partitions it touches, in steps that several events share.

Each step adds columns to one row per scenario and partition. An event puts them together in the
order of its own machine calls, and every output table reads the result (``tables``, ``requests``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from understudy.controller.native.electing import Election
from understudy.controller.records import LeaderAndIsr
from understudy.controller.states import OFFLINE_REPLICA, ONLINE_REPLICA
from understudy.controller.words import NO_LEADER
from understudy.names import PARTITION_KEY
from understudy.sql import Rows, struct, text

RECORD: Final = LeaderAndIsr._fields


class Starting(NamedTuple):
    """Who starts, and what they are told: all that has a leader, touched or not."""

    brokers: Rows  # number, broker_id and broker_epoch
    partitions: Rows  # settled ones, of every cluster


class Decided(NamedTuple):
    """One kind of event over the partitions of its scenarios, and what is particular to it.

    The frames have one row per scenario and partition. *touched* has, beside what the steps below
    add, ``state_before`` and ``state_after``, ``tried`` (for a leader) and ``new``, the cached
    record at the end, null where the partition never had a leader.
    """

    event_type: str
    kept: Rows  # what the touched are made from, to be kept while tables are
    touched: Rows
    changed_only: bool  # state rows only of what changed
    facts: Rows  # one row per scenario
    told_nothing: Rows  # number and step of every UpdateMetadata that may have no partition
    replica_before: str  # the state of ``replica``, as SQL text
    replica_after: str
    election: Election
    transitions: tuple[Callable[[Decided], Rows], ...]
    writes: tuple[Callable[[Decided], Rows], ...]
    healthy: Rows | None = None  # their record is sent again, and nothing changes
    untouched: Rows | None = None  # they are only there, as ``online`` and ``replicas`` say
    is_shown: str = "true"  # whether one of the touched has state rows, as SQL text
    is_answered: str | None = None  # whether it answers for a touched partition, as SQL text
    starting: Starting | None = None

    @property
    def event(self) -> dict[str, str]:
        return {"event": "1", "event_type": text(self.event_type)}


def replica_state(online: str) -> str:
    """The state of ``replica``, where those *online* are; both are SQL text."""
    is_online = f"array_contains({online}, replica)"
    return f"IF({is_online}, {text(ONLINE_REPLICA)}, {text(OFFLINE_REPLICA)})"


CARRIED: Final = (
    *PARTITION_KEY,
    "replicas",
    "adding",
    "removing",
    "offline_dirs",
    "queued",
    "unclean_topic",
    "f",
)


def with_liveness(known: Rows, *also: str) -> Rows:
    """Who is online; ``old`` is the snapshot's record, null if there never was a leader.

    Kafka refuses to touch a *superseded* record, one that a later controller has written.
    """
    record = struct(**{name: name for name in RECORD})
    not_online = "array_union(not_live, offline_dirs)"
    return known.select(
        *CARRIED,
        *also,
        f"{not_online} AS not_online",
        f"IF(has_state, {record}, NULL) AS old",
        "has_state AND controller_epoch > f.epoch AS superseded",
        f"array_except(replicas, {not_online}) AS online",
        "array_except(replicas, unreachable) AS reachable",
    )


def kept_apart(known: Rows, facts: Rows) -> tuple[Rows, Rows]:
    """The touched partitions as they are to be kept, and as they are read.

    The plain values ``f`` of their scenario are the same few over and over: as columns they take up
    next to nothing, as a struct more than a whole record.
    """
    names = facts.select("f.*").frame().columns
    kept = known.select("* EXCEPT (f)", *(f"f.{name} AS f_{name}" for name in names)).apart()
    flat = ", ".join(f"f_{name}" for name in names)
    return kept, kept.select(
        f"* EXCEPT ({flat})", f"{struct(**{name: f'f_{name}' for name in names})} AS f"
    )


_NO_REMOVALS: Final = (
    "CAST(array() AS ARRAY<STRUCT<replica: INT, position: INT, stop_epoch: INT, wrote: BOOLEAN,"
    " leader: INT, leader_epoch: INT, isr: ARRAY<INT>, partition_epoch: INT, recovery: INT>>)"
)


def with_removals(known: Rows, record: str, after: str) -> Rows:
    """Fold the replicas ``removed`` into one record after the other (removeReplicasFromIsr).

    Each of ``removals`` is one of them and the record it left behind; *after* is what *record* has
    become in the end. The last ISR member is retained, but the epochs rise all the same; a replica
    outside the ISR changes nothing and is not written.
    """
    in_isr = "array_contains(record.isr, replica)"
    bump = f"CAST({in_isr} AS INT)"
    left = {
        "leader": f"IF({in_isr} AND record.leader = replica, {NO_LEADER}, record.leader)",
        "leader_epoch": f"record.leader_epoch + {bump}",
        "isr": "IF(size(record.isr) = 1, record.isr, array_remove(record.isr, replica))",
        "partition_epoch": f"record.partition_epoch + {bump}",
        "recovery": "record.recovery",
    }
    removal = struct(
        replica="replica",
        position="CAST(array_position(offline_order, replica) AS INT)",
        stop_epoch="record.leader_epoch",
        wrote=in_isr,
        **left,
    )
    start = struct(**{name: f"{record}.{name}" for name in left}, done=_NO_REMOVALS)
    step = struct(**left, done=f"concat(record.done, array({removal}))")
    fold = f"aggregate(removed, {start}, (record, replica) -> {step}, record -> record.done)"
    last = "get(removals, size(removals) - 1)"
    in_the_end = struct(
        **{name: "f.epoch" if name == "controller_epoch" else f"{last}.{name}" for name in RECORD}
    )
    return known.select(
        "*",
        f"IF({record} IS NULL OR superseded OR size(removed) = 0, {_NO_REMOVALS}, {fold})"
        " AS removals",
    ).select("*", f"IF(size(removals) = 0, {record}, {in_the_end}) AS {after}")
