"""The four leader elections, in plain Python.

Each takes ordered replica lists and sets, and returns who leads, or None when nobody may. "First"
is always by assignment order, never by ISR order; the ISR keeps its own order
(PartitionLeaderElectionAlgorithms and Election, Kafka 2.4 to 3.9). ``elections_sql`` holds the same
four as SQL functions.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from understudy.controller.records import Ids


class Elected(NamedTuple):
    leader: int
    isr: Ids
    clean: bool


def elect_offline_leader(
    replicas: Ids, isr: Ids, online: Collection[int], *, unclean: bool
) -> Elected | None:
    """Elect for a partition without an online leader.

    An online ISR member outside the assignment cannot lead, and yet it forbids an unclean election.
    """
    live_isr = tuple(r for r in isr if r in online)
    for replica in replicas:
        if replica in live_isr:
            return Elected(replica, live_isr, clean=True)
    if unclean and not live_isr:
        for replica in replicas:
            if replica in online:
                return Elected(replica, (replica,), clean=False)
    return None


def elect_reassigned_leader(target: Ids, isr: Ids, online: Collection[int]) -> Elected | None:
    """Elect among the replicas a reassignment ends with; the ISR stays as it is."""
    for replica in target:
        if replica in online and replica in isr:
            return Elected(replica, isr, clean=True)
    return None


def elect_preferred_leader(replicas: Ids, isr: Ids, online: Collection[int]) -> Elected | None:
    """Elect the first assigned replica or nobody; the ISR stays as it is."""
    return elect_reassigned_leader(replicas[:1], isr, online)


def elect_controlled_shutdown_leader(
    replicas: Ids, isr: Ids, online: Collection[int], shutting_down: Collection[int]
) -> Elected | None:
    """Elect someone who stays; *online* here counts brokers that are shutting down as online.

    Every shutting-down broker leaves the ISR, whether or not it is the one that asked.
    """
    for replica in replicas:
        if replica in online and replica in isr and replica not in shutting_down:
            return Elected(replica, tuple(r for r in isr if r not in shutting_down), clean=True)
    return None
