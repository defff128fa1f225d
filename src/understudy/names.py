"""Keys that more than one module joins by, written once."""

from __future__ import annotations

from typing import Final

SNAPSHOT_KEY: Final = ("cluster", "snapshot_id")
TOPIC_KEY: Final = (*SNAPSHOT_KEY, "topic")
SCENARIO_KEY: Final = (*SNAPSHOT_KEY, "scenario")
PARTITION_KEY: Final = (*SCENARIO_KEY, "topic", "partition")
