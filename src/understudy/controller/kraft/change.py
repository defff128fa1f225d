"""Builds the change of one partition: the one place every decision about a partition goes through.

Whatever happened, the quorum controller asks for a change (another ISR, another replica list, an
election) and this decides what the PartitionChangeRecord says, or that there is none. Only what
changes is in the record.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, NamedTuple

from understudy.controller.kraft import elections
from understudy.controller.kraft.elections import Ballot, Elected, WhyNot
from understudy.controller.kraft.partitions import Fields, Partition
from understudy.controller.kraft.reassignment import Reassignment, completed
from understudy.controller.kraft.releases import Rules
from understudy.controller.kraft.words import ONLINE_ELECTION
from understudy.controller.records import Ids
from understudy.controller.words import NO_LEADER, RECOVERING


@dataclass(frozen=True)
class Asked:
    """What is asked of a partition; None = as it is."""

    election: str = ONLINE_ELECTION
    unclean_allowed_by: str | None = None
    isr: Ids | None = None
    lists: Reassignment | None = None  # replica lists, and the ISR with them
    recovery: int | None = None
    directory: tuple[int, str] | None = None  # of one replica
    unclean_shutdown: int | None = None  # a broker that may have lost what it had


@dataclass(frozen=True)
class Surroundings:
    """What the change of a partition depends on besides the partition itself."""

    rules: Rules
    elr: bool  # whether eligible leader replicas are kept in this change
    min_isr: int
    why_not: WhyNot
    default_directory: Callable[[int], str]


class Built(NamedTuple):
    change: Fields  # empty: there is nothing to record
    ballot: Ballot
    elected: Elected


def build(partition: Partition, asked: Asked, around: Surroundings) -> Built:
    """The change of *partition*, and the election that was part of finding it."""
    target = completed(_wanted(partition, asked), around.rules)
    elr = _target_elr(partition, target.isr, asked.unclean_shutdown, around)
    ballot = _ballot(partition, asked.election, target, elr, around)
    elected = elections.elect(ballot)

    change: dict[str, Any] = {}
    isr = target.isr
    if elected.leader != partition.leader:
        _put_leader(change, partition, elected, around.rules)
        if elected.leader in elr:
            isr = (elected.leader,)
            elr = tuple(r for r in elr if r != elected.leader)
    if "leader" not in change and not _holds_all(target.replicas, partition.replicas):
        change["leader"] = partition.leader
    is_unclean = "isr" in change
    if is_unclean or not around.elr:
        elr = ()
    _put(change, "elr", elr, partition.elr)
    # Only with eligible leader replicas may an ISR be empty: otherwise its last member stays.
    if not is_unclean and (isr or around.elr):
        _put(change, "isr", isr, partition.isr)
    if "leader" not in change and _bumps_for_shrink(partition, change, isr, around.rules):
        change["leader"] = partition.leader
    if around.elr:
        _remember_last_leader(change, partition, around.rules)
    _put_assignment(change, partition, target, asked.directory, around)
    if asked.recovery is not None and asked.recovery != partition.recovery:
        change["recovery"] = asked.recovery
    return Built(change, ballot, elected)


def _wanted(partition: Partition, asked: Asked) -> Reassignment:
    if asked.lists is not None:
        return asked.lists
    isr = partition.isr if asked.isr is None else asked.isr
    return Reassignment(partition.replicas, partition.adding, partition.removing, isr)


def _ballot(
    partition: Partition, kind: str, target: Reassignment, elr: Ids, around: Surroundings
) -> Ballot:
    only_one_known = around.elr and len(partition.last_known_elr) == 1
    return Ballot(
        kind=kind,
        replicas=target.replicas,
        isr=target.isr,
        elr=elr,
        leader=partition.leader,
        last_known=partition.last_known_elr[0] if only_one_known else None,
        last_known_must_be_active=around.rules.last_known_leader_must_be_active,
        why_not=around.why_not,
    )


def _target_elr(
    partition: Partition, isr: Ids, unclean_shutdown: int | None, around: Surroundings
) -> Ids:
    """The eligible leader replicas before the election (KIP-966)."""
    if not around.elr:
        return partition.elr
    if len(isr) >= around.min_isr:
        return ()
    left = in_hash_set_order((*partition.elr, *partition.isr))
    return tuple(r for r in left if r not in isr and r != unclean_shutdown)


def in_hash_set_order(ids: Ids) -> Ids:
    """Distinct ids in the order a java.util.HashSet gives them, which is how an ELR is stored."""
    distinct = tuple(dict.fromkeys(ids))
    slots = 16
    while len(distinct) > slots * 3 // 4:
        slots *= 2
    return tuple(sorted(distinct, key=lambda i: (i ^ i >> 16) & (slots - 1)))


def _put_leader(
    change: dict[str, Any], partition: Partition, elected: Elected, rules: Rules
) -> None:
    """After an unclean election the new leader is alone in the ISR, and has to recover."""
    change["leader"] = elected.leader
    if elected.clean is False:
        change["isr"] = (elected.leader,)
        if partition.recovery != RECOVERING and rules.records_recovery:
            change["recovery"] = RECOVERING


def _holds_all(holder: Collection[int], members: Collection[int]) -> bool:
    return set(holder).issuperset(members)


def _bumps_for_shrink(partition: Partition, change: dict[str, Any], isr: Ids, rules: Rules) -> bool:
    """KAFKA-15021: below 3.6-IV0 the leader epoch rises when somebody leaves the ISR."""
    if not rules.bumps_leader_epoch_on_shrink:
        return False
    if rules.shrink_counts_unwritten_isr:
        return not _holds_all(isr, partition.isr)
    return "isr" in change and not _holds_all(change["isr"], partition.isr)


def _remember_last_leader(change: dict[str, Any], partition: Partition, rules: Rules) -> None:
    """Keep the last leader of a leaderless partition in the last known ELR."""
    known = partition.last_known_elr
    leader = change.get("leader")
    if rules.remembers_leader_when_leaderless:
        loses_leader = leader == NO_LEADER and not known
        has_leader = leader is not None and leader != NO_LEADER
    else:
        loses_leader = change.get("isr") == () and known != (partition.leader,)
        has_leader = (partition.leader if leader is None else leader) != NO_LEADER
    if loses_leader:
        change["last_known_elr"] = (partition.leader,)
    elif has_leader and known:
        change["last_known_elr"] = ()


def _put_assignment(
    change: dict[str, Any],
    partition: Partition,
    target: Reassignment,
    assigned: tuple[int, str] | None,
    around: Surroundings,
) -> None:
    moves = assigned is not None or target.replicas != partition.replicas
    if moves and around.rules.has_directories:
        known = partition.directory_of
        if assigned is not None:
            known[assigned[0]] = assigned[1]
        directories = tuple(
            known[r] if r in known else around.default_directory(r) for r in target.replicas
        )
        _put(change, "directories", directories, partition.directories)
    _put(change, "replicas", target.replicas, partition.replicas)
    _put(change, "removing", target.removing, partition.removing)
    _put(change, "adding", target.adding, partition.adding)


def _put(change: dict[str, Any], field: str, wanted: object, current: object) -> None:
    if wanted != current:
        change[field] = wanted
