"""What the snapshots know that decides who fails together, brought to the driver.

One row per snapshot, as large as its list of brokers.
"""

from __future__ import annotations

import re
from typing import Final

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from understudy.names import SNAPSHOT_KEY
from understudy.questions.units import Broker, Cluster
from understudy.snapshot import Snapshots
from understudy.sql import NO_IDS, struct, text

_VOTERS_SETTING: Final = "controller.quorum.voters"
_VOTER: Final = re.compile(r"^\s*(\d+)@")


def known_clusters(snapshots: Snapshots, *, assigned: bool) -> list[Cluster]:
    """Every snapshot; with the ids its partitions name where *assigned* is true.

    Those take a pass over the partitions, and only who brings brokers back needs them: in ZooKeeper
    mode a dead broker is in no list.
    """
    snapshots = snapshots.with_defaults()
    broker = struct(
        id="broker_id", alive="alive AND NOT shutting_down", rack="rack", log_dirs="log_dirs"
    )
    listed = snapshots.brokers.groupBy(*SNAPSHOT_KEY).agg(
        F.expr(f"collect_list({broker}) AS brokers")
    )
    voters = (
        snapshots.configs.where(f"scope = 'static' AND key = {text(_VOTERS_SETTING)}")
        .groupBy(*SNAPSHOT_KEY)
        .agg(F.expr("max(value) AS voters"))
    )
    found = snapshots.snapshots.select(*SNAPSHOT_KEY, "mode", "controller_id")
    sides = [listed, voters, *([_assigned(snapshots.partitions)] if assigned else [])]
    for side in sides:
        found = found.join(F.broadcast(side), on=list(SNAPSHOT_KEY), how="left")
    return [_cluster(row) for row in found.orderBy(*SNAPSHOT_KEY).collect()]


def _assigned(partitions: DataFrame) -> DataFrame:
    ids = f"explode(concat(replicas, coalesce(isr, {NO_IDS}))) AS id"
    return (
        partitions.selectExpr(*SNAPSHOT_KEY, ids)
        .distinct()
        .groupBy(*SNAPSHOT_KEY)
        .agg(F.expr("collect_list(id) AS assigned"))
    )


def _cluster(row: Row) -> Cluster:
    known = row.asDict()
    return Cluster(
        row.cluster,
        row.snapshot_id,
        row.mode,
        row.controller_id,
        {
            each.id: Broker(bool(each.alive), each.rack, tuple(each.log_dirs or ()))
            for each in row.brokers or ()
        },
        frozenset(known.get("assigned") or ()),
        _voters(row.voters),
    )


def _voters(setting: str | None) -> frozenset[int] | None:
    """``1@host:9093,2@host:9093``; anything else does not say who they are."""
    parts = [_VOTER.match(part) for part in (setting or "").split(",")]
    ids = frozenset(int(part[1]) for part in parts if part)
    return ids if setting and len(ids) == len(parts) else None
