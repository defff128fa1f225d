"""Broker failures decided for many scenarios at once, over the partitions they touch.

The steps follow Kafka's onReplicasBecomeOffline: the partition machine takes note of the lost
leaders, then elects, then the replica machine stops the lost replicas.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from understudy.controller import releases
from understudy.controller.group_order import with_group_order
from understudy.controller.native import bodies, running, tables
from understudy.controller.native.clusters import (
    LEADS_ANYHOW,
    Role,
    ids_of,
    numbered_steps,
    plain_values,
)
from understudy.controller.native.decided import (
    Decided,
    kept_apart,
    with_liveness,
    with_removals,
)
from understudy.controller.native.electing import OFFLINE_ELECTION, with_election
from understudy.controller.states import OFFLINE_PARTITION, ONLINE_PARTITION
from understudy.controller.zk.events import BROKER_FAILURE
from understudy.names import SCENARIO_KEY, SNAPSHOT_KEY
from understudy.sql import Rows, text

# --- What a failure knows: one small row per scenario ------------------------------------------


def failure_facts(clusters: Rows, scenarios: Rows) -> Rows:
    """One row per scenario that is a single broker failure.

    ``gone`` lists the brokers that really fail; ``offline_order`` the broker groups of the offline
    call in Kafka's order. ``f`` holds the plain values; a step in it is null when its call has no
    input. ``is_odd``: the failure halts deletions, or what it sends hangs on how elections end.
    """
    about = scenarios.select(
        *SCENARIO_KEY, "from_json(get(events, 0), 'brokers ARRAY<INT>') AS event"
    )
    fails = "array_contains(event.brokers, b.id)"
    return (
        about.join(clusters, SNAPSHOT_KEY, broadcast=True)
        .select(
            "*",
            f"{ids_of(f'filter(registered, b -> {fails})')} AS gone",
            f"filter(registered, b -> NOT {fails}) AS brokers",
        )
        .select("*", "filter(mentioned, m -> array_contains(gone, m.id)) AS failing")
        .select(
            "*",
            "size(gone) > 0 AS is_real",
            f"leaderless OR exists(failing, m -> {LEADS_ANYHOW.of('m')}) AS any_leaderless",
            f"exists(failing, m -> {Role.DELETING.of('m')}) AS halts_deletion",
            f"transform(filter(failing, m -> {Role.KEPT.of('m')}), m -> m.id) AS offline_order",
            f"{releases.level_sql('release')} >= {releases.RELEASE_3_1} AS minds_answers",
        )
        .transform(with_group_order, "offline_order")
        .select(
            *SCENARIO_KEY,
            f"{_IS_ODD} AS is_odd",
            "gone AS struck",
            "gone",
            "offline_order",
            f"{plain_values(**_STEPS)} AS f",
        )
    )


_IS_ODD: Final = """(queued AND NOT deletion_enabled) OR halts_deletion
    OR (is_real AND minds_answers AND any_leaderless AND size(offline_order) = 0)"""

# An empty UpdateMetadata ends a failure that told nobody anything: from 3.1 on, one that stopped no
# replica and elected nobody; before, one that took no leader away.
_NOBODY_WAS_TOLD: Final = "NOT any_leaderless AND (NOT minds_answers OR size(offline_order) = 0)"

_STEPS: Final = numbered_steps(
    step_leaderless="(is_real AND any_leaderless)",
    step_partitions="(is_real AND (any_leaderless OR never_led))",
    step_offline="(is_real AND size(offline_order) > 0)",
    step_last=f"(is_real AND {_NOBODY_WAS_TOLD})",
)

# --- What it decides ---------------------------------------------------------------------------


def decide(settled: Rows, facts: Rows, *, changed_only: bool) -> Decided:
    """Decide the touched partitions of every scenario, which are kept.

    *facts* are small enough to broadcast.
    """
    kept, touched = kept_apart(
        running.touched_partitions(settled, facts, running.AFTER_LOSS, carried=("offline_order",))
        .transform(
            with_liveness,
            "offline_order",
            "online_before",
            "state_before",
            "array_intersect(offline_order, replicas) AS removed",
        )
        .transform(_with_tried)
        .transform(with_election, "old")
        .transform(with_removals, "risen", "new")
        .transform(_with_end)
        .transform(bodies.of_failure),
        facts,
    )
    last = facts.where("f.step_last IS NOT NULL").select("f.number", "f.step_last AS step")
    return Decided(
        event_type=BROKER_FAILURE,
        untouched=None if changed_only else running.untouched_partitions(settled, facts),
        kept=kept,
        touched=touched,
        changed_only=changed_only,
        facts=facts,
        told_nothing=last.union(bodies.of_never_led(touched, "risen")),
        replica_before=running.REPLICA_BEFORE,
        replica_after=running.REPLICA_AFTER,
        election=OFFLINE_ELECTION,
        transitions=(
            tables.loses_its_leader,
            tables.gets_a_leader,
            partial(tables.goes_offline, from_state=running.REPLICA_BEFORE),
        ),
        writes=(tables.records_with_leaders, tables.shrunk_records),
    )


def _with_tried(known: Rows) -> Rows:
    """``leaderless``: its leader is lost now or was lost before."""
    return known.select(
        "*",
        "f.step_leaderless IS NOT NULL AND old IS NOT NULL AND NOT queued"
        " AND array_contains(not_online, old.leader) AS leaderless",
    ).select(
        "*",
        "leaderless OR (f.step_partitions IS NOT NULL AND old IS NULL AND NOT queued) AS tried",
    )


def _with_end(known: Rows) -> Rows:
    state = f"""CASE
        WHEN led THEN {text(ONLINE_PARTITION)}
        WHEN leaderless THEN {text(OFFLINE_PARTITION)}
        ELSE state_before END"""
    return known.select("*", f"{state} AS state_after").drop("offline_order")
