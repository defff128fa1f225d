"""What differs between KRaft releases and between metadata versions, as one set of rules.

Some rules follow the metadata version, which the log records, others the software release of the
active controller, which it does not. A release X.Y is its newest patch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from understudy.controller import releases

# Metadata versions by name; the level is the place in this list, counted from 1.
_METADATA_VERSIONS: Final = (
    "3.0-IV1", "3.1-IV0", "3.2-IV0", "3.3-IV0", "3.3-IV1", "3.3-IV2", "3.3-IV3", "3.4-IV0",
    "3.5-IV0", "3.5-IV1", "3.5-IV2", "3.6-IV0", "3.6-IV1", "3.6-IV2", "3.7-IV0", "3.7-IV1",
    "3.7-IV2", "3.7-IV3", "3.7-IV4", "3.8-IV0", "3.9-IV0", "4.0-IV0", "4.0-IV1", "4.0-IV2",
    "4.0-IV3", "4.1-IV0", "4.1-IV1", "4.2-IV0", "4.2-IV1", "4.3-IV0",
)  # fmt: skip
_LEVELS: Final = tuple(
    (releases.level(name), level) for level, name in enumerate(_METADATA_VERSIONS, 1)
)

_RECOVERY_STATE: Final = 3
_REGISTRATION_CHANGES: Final = 6
_CONTROLLED_SHUTDOWN_STATE: Final = 7
_ZK_MIGRATION: Final = 8
_NO_BUMP_ON_SHRINK: Final = 12
_DIRECTORIES: Final = 17
_ELIGIBLE_LEADER_REPLICAS: Final = 23
_CORDONED_DIRECTORIES: Final = 30

_NEWEST_PATCH: Final = 99

OLDEST_KRAFT: Final = "3.3"
NEWEST_KRAFT: Final = "4.3"
# Releases held equal to the published jars; the others follow the rules.
VERIFIED_KRAFT: Final = ("3.9", "4.0", "4.1", "4.2", "4.3")


def metadata_level(version: str, release: str) -> int:
    """The level of a metadata version; no controller uses a newer one than its release knows."""
    wanted = min(releases.level(version), releases.level(release))
    return max((level for known, level in _LEVELS if known <= wanted), default=1)


def release_number(release: str) -> tuple[int, int, int]:
    """A release as comparable numbers: 4.1 is (4, 1, 99), 4.1.0 is (4, 1, 0)."""
    major, minor, *patch = map(int, release.split("."))
    return major, minor, patch[0] if patch else _NEWEST_PATCH


@dataclass(frozen=True)
class Rules:
    """The rules of one release at one metadata version, with the ELR feature on or off."""

    release: tuple[int, int, int]
    level: int
    elr: bool

    @staticmethod
    def of(release: str, metadata_version: str, *, elr_enabled: bool) -> Rules:
        level = metadata_level(metadata_version, release)
        elr = elr_enabled and level >= _ELIGIBLE_LEADER_REPLICAS
        return Rules(release_number(release), level, elr)

    # --- by metadata version ---

    @property
    def records_recovery(self) -> bool:
        return self.level >= _RECOVERY_STATE

    @property
    def has_registration_changes(self) -> bool:
        """Whether fencing is a BrokerRegistrationChangeRecord and not a record of its own."""
        return self.level >= _REGISTRATION_CHANGES

    @property
    def records_controlled_shutdown(self) -> bool:
        return self.level >= _CONTROLLED_SHUTDOWN_STATE

    @property
    def bumps_leader_epoch_on_shrink(self) -> bool:
        return self.level < _NO_BUMP_ON_SHRINK

    @property
    def has_directories(self) -> bool:
        return self.level >= _DIRECTORIES

    @property
    def partition_record_version(self) -> int:
        """The version of PartitionRecord and of PartitionChangeRecord."""
        return sum(self.level >= since for since in (_DIRECTORIES, _ELIGIBLE_LEADER_REPLICAS))

    @property
    def register_broker_version(self) -> int:
        since = (
            _CONTROLLED_SHUTDOWN_STATE,
            _ZK_MIGRATION,
            _DIRECTORIES,
            _CORDONED_DIRECTORIES,
        )
        return sum(self.level >= each for each in since)

    # --- by release ---

    @property
    def honours_unclean_setting(self) -> bool:
        """KAFKA-12670: before, the setting was read as false in KRaft."""
        return self.release >= (3, 9, 0)

    @property
    def has_unclean_task(self) -> bool:
        return self.release >= (3, 9, 0)

    @property
    def shrink_counts_unwritten_isr(self) -> bool:
        """KAFKA-16624: an ISR that would be empty is not written, and yet counted as a shrink."""
        return self.release < (3, 8, 0)

    @property
    def checks_directories(self) -> bool:
        return self.release >= (3, 7, 0)

    @property
    def looks_into_elr(self) -> bool:
        """Whether the partitions that have a broker in their ELR are known."""
        return self.release >= (3, 8, 0)

    @property
    def completes_with_added_only(self) -> bool:
        """A reassignment is complete once the added replicas are in sync."""
        return self.release < (3, 8, 0)

    @property
    def completes_with_added_unless_shrinking(self) -> bool:
        """KAFKA-19975: the whole target must be in sync only where more leave than join."""
        return self.release >= (4, 3, 0)

    @property
    def registration_cleans_isr(self) -> bool:
        return self.release >= (4, 0, 0)

    @property
    def last_known_leader_must_be_active(self) -> bool:
        """KAFKA-19522: 4.0 elects it even where it is fenced."""
        return self.release >= (4, 1, 0)

    @property
    def remembers_leader_when_leaderless(self) -> bool:
        """From 4.1.1 on the last known leader is set with the leader, before that with the ISR."""
        return self.release >= (4, 1, 1)

    @property
    def keeps_elr_on_directory_assignment(self) -> bool:
        return self.release >= (4, 3, 0)

    @property
    def checks_broker_epochs(self) -> bool:
        return self.release >= (3, 5, 0)

    @property
    def checks_replication_factor(self) -> bool:
        """KIP-860: a reassignment may ask that the number of replicas stay."""
        return self.release >= (4, 1, 0)

    @property
    def limits_requests(self) -> bool:
        """KAFKA-14996: a user's request may not write more than one batch of the log holds."""
        return self.release >= (3, 5, 0)

    @property
    def limits_new_partitions(self) -> bool:
        """The same, asked before anything is looked at."""
        return self.release >= (3, 9, 0)
