"""What an interpreter is given of a snapshot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

CanonicalRow = Mapping[str, Any]


class SnapshotRows(NamedTuple):
    """One snapshot as plain rows of the canonical tables."""

    snapshot: CanonicalRow
    brokers: Sequence[CanonicalRow]
    topics: Sequence[CanonicalRow]
    partitions: Sequence[CanonicalRow]
    configs: Sequence[CanonicalRow]
