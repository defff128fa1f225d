"""What differs between the releases of profile ``zk-legacy`` (Kafka 0.9 to 1.0).

Only 1.0 is held equal to its published jar; the older ones follow the rules. A 0.x release carries
one number more than later ones: 0.10.2.1 is the first patch of 0.10.2.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from understudy.controller import releases

OLDEST: Final = "0.9"
NEWEST: Final = "1.0"
VERIFIED: Final = ("1.0",)

_FOURTH_NUMBER: Final = re.compile(r"^(0\.\d+\.\d+)\.\d+$")


@dataclass(frozen=True)
class LegacyRules:
    """Each field names a rule that only some of the releases have."""

    log_dirs: bool
    """Replicas on offline log directories are not online; requests tell them, and new replicas."""
    offline_leader_by_liveness: bool
    """A failed broker marks all partitions whose leader is not online, not only those it led."""
    unclean_by_default: bool
    delete_by_default: bool
    deletion_thread: bool
    """Topic deletion runs in a thread of its own, after the event that woke it."""
    replicas_as_set: bool
    """Requests carry an assignment as a set."""
    metadata_first: bool
    """A failover sends its metadata before the machines start, not after."""
    grouped_stops: bool
    """Stops without delete go in one request, be it empty."""
    shutdown_elects_by_assignment: bool
    """A controlled shutdown moves leadership by assignment order and liveness, not ISR order."""


def level(release: str) -> int:
    """The comparable integer of a legacy release or protocol; patches of 0.x do not count."""
    patch = _FOURTH_NUMBER.match(release)
    return releases.level(patch.group(1) if patch else release)


def is_legacy(release: str) -> bool:
    """Whether *release* belongs to this profile."""
    return level(f"{OLDEST}-IV0") <= level(release) <= level(f"{NEWEST}.99")


def is_verified(release: str) -> bool:
    return any(release == known or release.startswith(f"{known}.") for known in VERIFIED)


def rules(release: str) -> LegacyRules:
    found = level(release)
    since_1_0 = found >= level("1.0-IV0")
    since_0_11 = found >= level("0.11-IV0")
    since_0_10_2 = found >= level("0.10.2-IV0")
    return LegacyRules(
        log_dirs=since_1_0,
        offline_leader_by_liveness=since_1_0,
        unclean_by_default=not since_0_11,
        delete_by_default=since_1_0,
        deletion_thread=not since_0_11,
        replicas_as_set=not since_0_11,
        metadata_first=since_0_10_2,
        grouped_stops=since_0_10_2,
        shutdown_elects_by_assignment=found >= level("0.10-IV0"),
    )
