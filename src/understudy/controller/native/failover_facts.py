"""What a failover knows about its cluster as a whole: one small row per scenario.

Settled here, before any partition is decided: who is live, which ids are not online, the order of
broker groups, and which machine calls have any input (and so the step numbers). The row is
broadcast to all partitions.
"""

from __future__ import annotations

from typing import Final

from understudy.controller.group_order import with_group_order
from understudy.controller.native.clusters import (
    LEADS_ANYHOW,
    MENTIONED_IDS,
    Role,
    TopicExceptions,
    ids_of,
    numbered_steps,
    plain_values,
    with_cluster,
)
from understudy.names import SCENARIO_KEY, SNAPSHOT_KEY
from understudy.sql import Rows


def failover_facts(
    snapshots: Rows,
    brokers: Rows,
    configs: Rows,
    scenarios: Rows,
    *,
    mentioned: Rows,
    exceptions: TopicExceptions,
) -> Rows:
    """One row per scenario that is a single failover.

    ``gone`` lists the brokers the event takes away; ``not_live`` and ``unreachable`` (not even
    shutting down) ids that partitions mention; ``offline_order`` the broker groups of the offline
    call in Kafka's order. ``f`` holds the plain values; a step in it is null when its call has no
    input, and ``f.steps`` counts them all. ``resumes``: there are reassignments or deletions to
    take up then. ``is_odd``: what is pending changes the start-up itself, by ending the new
    controller's term or by not being deleted after all.
    """
    about = scenarios.select(
        *SCENARIO_KEY,
        "from_json(get(events, 0), 'controller INT, dead ARRAY<INT>, forget BOOLEAN') AS event",
    ).join(snapshots, SNAPSHOT_KEY, broadcast=True)
    return (
        with_cluster(about, brokers, configs, mentioned=mentioned, exceptions=exceptions)
        .transform(_with_event)
        .transform(_with_broker_sets)
        .transform(_with_calls)
        .transform(with_group_order, "offline_order")
        .select(
            *SCENARIO_KEY,
            "release",
            "reassigning OR queued AS resumes",
            "newest_writer > epoch OR (queued AND NOT deletion_enabled) AS is_odd",
            "queued_topics",
            "forget",
            "gone",
            "not_live",
            "unreachable",
            "offline_order",
            f"{plain_values(**_STEPS)} AS f",
        )
    )


# The calls in order; the first sends an empty UpdateMetadata and has no input to lack.
_STEPS: Final = numbered_steps(
    step_first="true",
    step_online="any_online",
    step_offline="size(offline_order) > 0",
    step_partitions="any_tried",
)


def _with_event(known: Rows) -> Rows:
    """What the event changes: who is gone, who takes over, what is forgotten."""
    is_gone = "coalesce(array_contains(event.dead, {}), false)"
    changed = {
        "gone": "coalesce(event.dead, array())",
        "forget": "coalesce(event.forget, false)",
        "epoch": "controller_epoch + 1",
        "brokers": f"filter(registered, b -> NOT {is_gone.format('b.id')})",
        "same_controller": f"IF({is_gone.format('controller_id')}, NULL, controller_id)",
    }
    return known.select(
        "* EXCEPT (registered, controller_id)",
        *(f"{value} AS {name}" for name, value in changed.items()),
    )


def _with_broker_sets(known: Rows) -> Rows:
    staying = ids_of("filter(brokers, b -> forget OR NOT b.shutting_down)")
    return known.select(
        "*",
        f"array_except({MENTIONED_IDS}, {ids_of('brokers')}) AS unreachable",
        f"array_except({MENTIONED_IDS}, {staying}) AS not_live",
        "coalesce(event.controller, same_controller, get(brokers, 0).id) AS controller_id",
    )


def _with_calls(known: Rows) -> Rows:
    """Which of the three machine calls have input, and the brokers of the offline one."""
    is_live = "NOT array_contains(not_live, m.id)"
    with_dir = Role.ASSIGNED_DIR.of("m")
    online = f"{is_live} AND ({Role.ASSIGNED.of('m')} OR (forget AND {with_dir}))"
    offline = (
        f"(array_contains(not_live, m.id) AND {(Role.ASSIGNED | Role.ASSIGNED_DIR).of('m')})"
        f" OR (NOT forget AND {with_dir})"
    )
    # A partition without a record has a null leader and is always tried.
    tried = (
        f"({LEADS_ANYHOW.of('m')} AND (m.id IS NULL OR array_contains(not_live, m.id)))"
        f" OR (NOT forget AND {Role.LEADS_DIR.of('m')})"
    )
    return known.select(
        "*",
        f"coalesce(exists(mentioned, m -> {online}), false) AS any_online",
        f"coalesce(exists(mentioned, m -> {tried}), false) AS any_tried",
        f"transform(filter(mentioned, m -> {offline}), m -> m.id) AS offline_order",
    )
