"""The partitions as they stand before anything happens, judged once for whatever is asked."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame

from understudy.frames import compiled_apart
from understudy.names import SNAPSHOT_KEY
from understudy.questions.availability import counted, is_online
from understudy.snapshot import Snapshots
from understudy.sql import NO_IDS

NUMBER: Final = "number"  # of a scenario over one snapshot
PARTITION: Final = (*SNAPSHOT_KEY, "topic", "partition")
STATUSES: Final = ("offline", "under_min_isr", "at_min_isr", "acks_all_blocked", "never_led")
_IS: Final = {
    "offline": "has_state AND NOT was_led",
    "under_min_isr": "was_led AND size(isr) < min_isr",
    "at_min_isr": "was_led AND size(isr) = min_isr",
    "acks_all_blocked": "has_state AND NOT (was_led AND size(isr) >= min_isr)",
    "never_led": "NOT has_state",
}


def before(snapshots: Snapshots) -> DataFrame:
    """One row per partition that counts; the caller keeps it in memory.

    ``was_led``: it has a leader that is online; ``was_…`` for each of the STATUSES; ``online_…``:
    those of a list that are online; ``ids``: every broker it names, once, ascending.
    """
    sides = f"coalesce(isr, {NO_IDS}), IF(leader >= 0, array(leader), {NO_IDS})"
    known = ("replicas", "has_state", "leader", "isr", "min_isr", "unclean_allowed", "is_kraft")
    all_online = "size(down) = 0 AND size(offline_dirs) = 0"

    def online(ids: str) -> str:
        listed = f"coalesce({ids}, {NO_IDS})"
        return f"IF({all_online}, {listed}, filter({listed}, r -> {is_online('r')}))"

    lists = {f"online_{ids}": online(ids) for ids in ("replicas", "isr", "elr")}
    # sort_array is compiled, unlike array_sort.
    lists["ids"] = f"sort_array(array_distinct(concat(replicas, {sides})))"
    return (
        compiled_apart(counted(snapshots))
        .selectExpr(
            *(*PARTITION, *known),
            f"has_state AND {is_online('leader')} AS was_led",
            *(f"{ids} AS {name}" for name, ids in lists.items()),
        )
        .selectExpr(
            *(*PARTITION, *known, "was_led"),
            *(f"{condition} AS was_{name}" for name, condition in _IS.items()),
            *lists,
        )
    )
