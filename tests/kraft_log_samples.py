"""The recorded metadata directories under ``tests/data/kraft-log``."""

from __future__ import annotations

import tarfile
from pathlib import Path

DATA = Path(__file__).parent / "data" / "kraft-log"
RUNS = {"kraft-4.3": "node1", "kraft-3.9": "node103"}

Files = dict[str, bytes]


def files_of(run: str) -> Files:
    """The files of a recorded ``__cluster_metadata-0`` and those above it, by name."""
    with tarfile.open(DATA / run / f"{RUNS[run]}.tar.gz") as archive:
        return {
            Path(member.name).name: found.read()
            for member in archive
            if (found := archive.extractfile(member))
        }
