"""Broker registrations: who is active, and which log directories are online."""

from __future__ import annotations

import base64
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Final

from understudy.controller.kraft.partitions import LOST, MIGRATING, UNASSIGNED, Directories

_RESERVED_IDS: Final = 100


@dataclass(frozen=True)
class Registration:
    """A broker as registered; the registration outlives the process and the controller."""

    broker_id: int
    epoch: int
    fenced: bool
    shutting_down: bool
    rack: str | None
    directories: Directories  # the online ones, in Kafka's order; empty = none recorded

    @property
    def is_active(self) -> bool:
        return not (self.fenced or self.shutting_down)

    def has_online(self, directory: str) -> bool:
        """Kafka's DirectoryId.isOnline."""
        if directory in (UNASSIGNED, MIGRATING):
            return True
        if directory == LOST:
            return False
        return not self.directories or directory in self.directories


def default_directory(registration: Registration | None) -> str:
    """The directory of a new replica on this broker."""
    if registration is None:
        return UNASSIGNED
    if not registration.directories:
        return MIGRATING
    return registration.directories[0] if len(registration.directories) == 1 else UNASSIGNED


def in_kafka_order(directories: Iterable[str]) -> Directories:
    """Directory ids as Kafka's Uuid compares them: two signed 64-bit numbers."""
    return tuple(sorted(directories, key=_as_numbers))


def is_reserved(directory: str) -> bool:
    high, low = _as_numbers(directory)
    return high == 0 and 0 <= low < _RESERVED_IDS


def are_registrable(
    directories: Collection[str], owner: int, others: Iterable[Registration]
) -> bool:
    """Whether a broker may register with these directories."""
    if not directories or len(set(directories)) < len(directories):
        return False
    taken = {d for other in others if other.broker_id != owner for d in other.directories}
    return not any(is_reserved(d) or d in taken for d in directories)


def _as_numbers(directory: str) -> tuple[int, int]:
    """The id's two halves; a text that is no id at all stands behind every id."""
    try:
        data = base64.urlsafe_b64decode(directory + "=" * (-len(directory) % 4))
    except ValueError:
        data = b""
    if len(data) != 16:  # noqa: PLR2004 - the bytes of a UUID
        return (2**63, 0)
    return (
        int.from_bytes(data[:8], "big", signed=True),
        int.from_bytes(data[8:], "big", signed=True),
    )
