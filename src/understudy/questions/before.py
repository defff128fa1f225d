"""The partitions as they stand before anything happens, judged once for whatever is asked."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame

from understudy.names import SNAPSHOT_KEY
from understudy.questions.availability import (
    blocks_full_acks,
    counted,
    is_at_min_isr,
    is_offline,
    is_online,
    is_under_min_isr,
)
from understudy.snapshot import Snapshots
from understudy.sql import NO_IDS

PARTITION: Final = (*SNAPSHOT_KEY, "topic", "partition")
STATUSES: Final = ("offline", "under_min_isr", "at_min_isr", "acks_all_blocked", "never_led")
_IS: Final = {
    "offline": is_offline(),
    "under_min_isr": is_under_min_isr(),
    "at_min_isr": is_at_min_isr(),
    "acks_all_blocked": blocks_full_acks(),
    "never_led": "NOT has_state",
}


def before(snapshots: Snapshots) -> DataFrame:
    """One row per partition that counts; the caller keeps it in memory.

    ``was_led``: it has a leader that is online; ``was_…`` for each of the STATUSES; ``online_…``:
    those of a list that are online; ``ids``: every broker it names, once, ascending.
    """
    sides = f"coalesce(isr, {NO_IDS}), IF(leader >= 0, array(leader), {NO_IDS})"
    return counted(snapshots).selectExpr(
        *PARTITION,
        *("replicas", "has_state", "leader", "isr", "min_isr", "unclean_allowed"),
        f"(has_state AND {is_online('leader')}) AS was_led",
        *(f"{condition} AS was_{name}" for name, condition in _IS.items()),
        *(
            f"filter(coalesce({ids}, {NO_IDS}), r -> {is_online('r')}) AS online_{ids}"
            for ids in ("replicas", "isr", "elr")
        ),
        f"array_sort(array_distinct(concat(replicas, {sides}))) AS ids",
    )
