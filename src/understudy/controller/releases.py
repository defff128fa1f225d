"""What differs between Kafka releases and inter-broker protocol versions, as numbers.

A version is one comparable integer: 3.2-IV0 is 3_02_00_00, and a plain 3.2 is the newest of its
line, 3_02_00_99. Gates are thresholds on that integer.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from pyspark.sql import Column
from pyspark.sql import functions as F

_PATTERN: Final = r"^(\d+)\.(\d+)(?:\.(\d+))?(?:-IV(\d+))?$"
_NEWEST: Final = 99

PROTOCOL_2_6: Final = 2_06_00_00
PROTOCOL_3_2: Final = 3_02_00_00

# Releases held equal to the published jars; the others of a profile follow the rules.
VERIFIED_RELEASES: Final = ("2.8", "3.9")
OLDEST_ZK: Final = "2.4"
NEWEST_ZK: Final = "3.9"


def level(version: str) -> int:
    """The comparable integer of a release or protocol version."""
    match = re.match(_PATTERN, version)
    if match is None:
        raise ValueError(f"{version!r} is not a version")
    major, minor, patch, iv = match.groups()
    return _level(int(major), int(minor), int(patch or 0), _NEWEST if iv is None else int(iv))


def _level(major: int, minor: int, patch: int, iv: int) -> int:
    return major * 1_00_00_00 + minor * 1_00_00 + patch * 1_00 + iv


def is_verified(release: str) -> bool:
    """Whether the replay of this release is held equal to its published jar."""
    return any(release == v or release.startswith(f"{v}.") for v in VERIFIED_RELEASES)


def level_column(version: Column) -> Column:
    """:func:`level` as an expression."""

    def part(group: int, missing: int) -> Column:
        text = F.regexp_extract(version, _PATTERN, group)
        return F.when(text == "", F.lit(missing)).otherwise(text.try_cast("int"))

    return (
        part(1, 0) * 1_00_00_00 + part(2, 0) * 1_00_00 + part(3, 0) * 1_00 + part(4, _NEWEST)
    ).cast("int")


OLDEST_LEVEL: Final = _level(2, 4, 0, 0)
NEWEST_LEVEL: Final = _level(3, 9, 99, _NEWEST)


class RequestVersions(NamedTuple):
    leader_and_isr: int
    update_metadata: int
    stop_replica: int


# Protocol from which on these request versions are used (ControllerChannelManager, 3.9).
_VERSIONS_SINCE: Final[tuple[tuple[int, RequestVersions], ...]] = (
    (3_04_00_00, RequestVersions(7, 8, 4)),
    (3_02_00_00, RequestVersions(6, 7, 3)),
    (2_08_00_01, RequestVersions(5, 7, 3)),
    (2_06_00_00, RequestVersions(4, 6, 3)),
    (2_04_00_01, RequestVersions(4, 6, 2)),
    (2_04_00_00, RequestVersions(3, 5, 1)),
    (2_02_00_00, RequestVersions(2, 5, 1)),
    (1_00_00_00, RequestVersions(1, 4, 0)),
    (10_02_00, RequestVersions(0, 3, 0)),
    (10_00_01, RequestVersions(0, 2, 0)),
    (0, RequestVersions(0, 1, 0)),
)


def request_versions(protocol: int) -> RequestVersions:
    return next(versions for since, versions in _VERSIONS_SINCE if protocol >= since)


def request_version_columns(protocol: Column) -> RequestVersionColumns:
    def pick(index: int) -> Column:
        chosen = F.lit(_VERSIONS_SINCE[-1][1][index])
        for since, versions in reversed(_VERSIONS_SINCE[:-1]):
            chosen = F.when(protocol >= since, F.lit(versions[index])).otherwise(chosen)
        return chosen

    return RequestVersionColumns(pick(0), pick(1), pick(2))


class RequestVersionColumns(NamedTuple):
    leader_and_isr: Column
    update_metadata: Column
    stop_replica: Column
