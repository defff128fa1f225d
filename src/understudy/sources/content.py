"""What one snapshot says, as plain rows in one canonical order, and the digest of it.

Every form of input ends here, whatever it looked like: the rows are sorted by their keys and
defaults are filled in, so two files that say the same thing give the same digest. Plain Python:
this runs on executors, and nothing in it knows of Spark.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any, Final

# Column orders of the rows below: those of understudy.schemas without the snapshot's key.
SNAPSHOT_COLUMNS: Final = (
    "taken_at",  # microseconds since 1970 in UTC
    "mode",
    "source_form",
    "release",
    "metadata_version",
    "elr_enabled",
    "controller_id",
    "controller_epoch",
    "complete",
    "content_digest",
)
BROKER_COLUMNS: Final = (
    "broker_id",
    "alive",
    "shutting_down",
    "fenced",
    "broker_epoch",
    "rack",
    "endpoints",
    "log_dirs",
)
TOPIC_COLUMNS: Final = ("topic", "topic_id", "queued_for_deletion")
PARTITION_COLUMNS: Final = (
    "topic",
    "partition",
    "replicas",
    "adding",
    "removing",
    "offline_dirs",
    "has_state",
    "leader",
    "leader_epoch",
    "isr",
    "partition_epoch",
    "controller_epoch",
    "recovery",
    "elr",
    "last_known_elr",
    "directories",
)
CONFIG_COLUMNS: Final = ("scope", "name", "key", "value")

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Content:
    """One snapshot: a row about itself and the rows of its tables, sorted by their keys."""

    cluster: str
    snapshot_id: str
    snapshot: Row
    brokers: list[Row]
    topics: list[Row]
    partitions: list[Row]
    configs: list[Row]


@dataclass(frozen=True, slots=True)
class Parsed:
    """One document of a file: its content, or everything that is wrong with it."""

    position: str
    cluster: str | None
    snapshot_id: str | None
    problems: tuple[str, ...]
    content: Content | None


def canonical(
    key: tuple[str, str],
    *,
    taken_at: int | None,
    mode: str | None,
    source_form: str,
    release: str | None,
    metadata_version: str | None,
    elr_enabled: bool | None,
    controller: tuple[int | None, int | None],
    complete: bool,
    brokers: list[Row],
    topics: list[Row],
    partitions: list[Row],
    configs: list[Row],
) -> Content:
    """Sort the rows and sign them; the form they came in is no part of what they say."""
    brokers.sort(key=lambda row: row[0])
    topics.sort(key=lambda row: row[0])
    partitions.sort(key=lambda row: row[:2])
    configs.sort(key=lambda row: (row[0], row[1] or "", row[2]))
    said = (taken_at, mode, release, metadata_version, elr_enabled, *controller, complete)
    digest = hashlib.sha256(
        json.dumps([key, said, brokers, topics, partitions, configs], separators=(",", ":")).encode(
            "ascii"
        )
    ).hexdigest()
    snapshot = (
        taken_at,
        mode,
        source_form,
        release,
        metadata_version,
        elr_enabled,
        *controller,
        complete,
        digest,
    )
    return Content(*key, snapshot, brokers, topics, partitions, configs)
