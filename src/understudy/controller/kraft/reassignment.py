"""Reassignments: how one starts, when it is complete, and what a cancel goes back to.

Unlike the ZooKeeper controller, the quorum controller takes the difference against the merged
replica list, so a reassignment on top of another keeps the abandoned replicas until the end.
"""

from __future__ import annotations

from typing import NamedTuple

from understudy.controller.kraft.partitions import Partition
from understudy.controller.kraft.releases import Rules
from understudy.controller.records import Ids, minus


class Reassignment(NamedTuple):
    """A partition's replica list with those joining and leaving, and the ISR wanted with it."""

    replicas: Ids
    adding: Ids
    removing: Ids
    isr: Ids


def started(partition: Partition, target: Ids) -> Reassignment:
    """The lists once a reassignment to *target* begins; nobody joins or leaves the ISR yet.

    Where nobody joins (or leaves), the joining (leaving) of the reassignment before stay listed.
    """
    removing = tuple(sorted(set(partition.replicas) - set(target)))
    adding = tuple(sorted(set(target) - set(partition.replicas)))
    return Reassignment(
        (*target, *removing),
        adding or partition.adding,
        removing or partition.removing,
        partition.isr,
    )


def target_size(partition: Partition) -> int:
    """How many replicas the partition has once nothing is being reassigned."""
    return len({*partition.replicas, *partition.adding} - set(partition.removing))


def reverted(partition: Partition) -> tuple[Reassignment, bool]:
    """The lists after a cancel, and whether it takes an unclean election.

    The original order of the replicas is lost. An ISR of joining replicas only is replaced by the
    first replica that stays.
    """
    replicas = minus(partition.replicas, partition.adding)
    isr = minus(partition.isr, partition.adding)
    return Reassignment(replicas, (), (), isr or replicas[:1]), not isr


def completed(wanted: Reassignment, rules: Rules) -> Reassignment:
    """The lists with the reassignment finished, if it may be; otherwise unchanged."""
    if not (wanted.adding or wanted.removing):
        return wanted
    isr = tuple(r for r in wanted.isr if r not in wanted.removing)
    replicas = tuple(r for r in wanted.replicas if r not in wanted.removing)
    if _is_complete(wanted, isr, replicas, rules):
        return Reassignment(replicas, (), (), isr)
    return wanted


def _is_complete(wanted: Reassignment, isr: Ids, replicas: Ids, rules: Rules) -> bool:
    in_sync = set(isr)
    if rules.completes_with_added_only:
        if wanted.removing and not isr:
            return False
        return bool(replicas) and in_sync.issuperset(wanted.adding)
    if not (isr and replicas):
        return False
    if not rules.completes_with_added_unless_shrinking:
        return in_sync.issuperset(replicas)
    if len(wanted.adding) < len(wanted.removing) and not in_sync.issuperset(replicas):
        return False
    return in_sync.issuperset(wanted.adding)
