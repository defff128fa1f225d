"""What differs between Kafka releases and inter-broker protocol versions, as numbers.

A version is one comparable integer: 3.2-IV0 is 3_02_00_00, and a plain 3.2 is the newest of its
line, 3_02_00_99. Gates are thresholds on that integer.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_PATTERN: Final = r"^(\d+)\.(\d+)(?:\.(\d+))?(?:-IV(\d+))?$"
_NEWEST: Final = 99

RELEASE_2_5: Final = 2_05_00_00
RELEASE_2_6: Final = 2_06_00_00
RELEASE_2_7: Final = 2_07_00_00
RELEASE_3_1: Final = 3_01_00_00
RELEASE_3_2: Final = 3_02_00_00
RELEASE_3_3: Final = 3_03_00_00
RELEASE_3_4: Final = 3_04_00_00

PROTOCOL_2_6: Final = 2_06_00_00
PROTOCOL_2_7_IV2: Final = 2_07_00_02  # leaders ask the controller to change an ISR
PROTOCOL_2_8: Final = 2_08_00_00  # topics have ids
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


def level_sql(version: str) -> str:
    """:func:`level` of a column, as SQL text; null for what is no version."""
    pattern = _PATTERN.replace("\\", "\\\\")

    def part(group: int, missing: int) -> str:
        digits = f"regexp_extract({version}, '{pattern}', {group})"
        return f"IF({digits} = '', {missing}, CAST({digits} AS INT))"

    return (
        f"IF({version} RLIKE '{pattern}', {part(1, 0)} * 1000000 + {part(2, 0)} * 10000"
        f" + {part(3, 0)} * 100 + {part(4, _NEWEST)}, NULL)"
    )


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


def request_version_sql(request: int, protocol: str) -> str:
    """The version of one kind of request (its place in RequestVersions), as SQL text."""
    cases = " ".join(
        f"WHEN {protocol} >= {since} THEN {versions[request]}"
        for since, versions in _VERSIONS_SINCE
    )
    return f"CASE {cases} END"
