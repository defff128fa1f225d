"""A partition as the quorum controller holds it, and what a change record makes of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, TypeAlias

from understudy.controller.records import Ids
from understudy.controller.words import NO_LEADER, RECOVERED

Directories: TypeAlias = tuple[str, ...]
Fields: TypeAlias = Mapping[str, Any]
"""The fields a PartitionChangeRecord carries, by the names of Partition; absent = unchanged."""

# Reserved directory ids (org.apache.kafka.common.DirectoryId).
MIGRATING: Final = "AAAAAAAAAAAAAAAAAAAAAA"
UNASSIGNED: Final = "AAAAAAAAAAAAAAAAAAAAAQ"
LOST: Final = "AAAAAAAAAAAAAAAAAAAAAg"


class Partition(NamedTuple):
    replicas: Ids
    directories: Directories  # one for each replica
    isr: Ids
    leader: int = NO_LEADER
    leader_epoch: int = 0
    partition_epoch: int = 0
    recovery: int = RECOVERED
    adding: Ids = ()
    removing: Ids = ()
    elr: Ids = ()
    last_known_elr: Ids = ()

    @property
    def is_reassigning(self) -> bool:
        return bool(self.adding or self.removing)

    @property
    def preferred(self) -> int:
        return self.replicas[0] if self.replicas else NO_LEADER

    @property
    def directory_of(self) -> dict[int, str]:
        return dict(zip(self.replicas, self.directories, strict=True))

    def after(self, change: Fields) -> Partition:
        """The partition once *change* was replayed.

        The partition epoch always rises; the leader epoch rises with the leader field, even if it
        repeats the leader there is.
        """
        changed = self._replace(**change, partition_epoch=self.partition_epoch + 1)
        if "leader" in change:
            changed = changed._replace(leader_epoch=self.leader_epoch + 1)
        if "replicas" in change and "directories" not in change:
            known = self.directory_of
            directories = tuple(known.get(r, MIGRATING) for r in changed.replicas)
            changed = changed._replace(directories=directories)
        return changed
