"""Controlled shutdowns decided for many scenarios at once, over the partitions they touch.

The steps follow Kafka's doControlledShutdown: leadership moves to brokers that stay, follower
replicas are told to stop, then they leave the ISR. The answer is what the broker still leads.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from understudy.controller.native import bodies, running, tables
from understudy.controller.native.clusters import Role, ids_of, numbered_steps, plain_values
from understudy.controller.native.decided import (
    Decided,
    kept_apart,
    with_liveness,
    with_removals,
)
from understudy.controller.native.electing import SHUTDOWN_ELECTION, with_shutdown_election
from understudy.controller.states import ONLINE_PARTITION
from understudy.controller.zk.events import CONTROLLED_SHUTDOWN
from understudy.names import SCENARIO_KEY, SNAPSHOT_KEY
from understudy.sql import NO_IDS, Rows, text

# --- What a shutdown knows: one small row per scenario -----------------------------------------


def shutdown_facts(clusters: Rows, scenarios: Rows) -> Rows:
    """One row per scenario that is a single controlled shutdown.

    The broker is ``struck`` but not ``gone``: it still gets requests. ``is_odd``: nobody knows it.
    """
    about = scenarios.select(
        *SCENARIO_KEY, "from_json(get(events, 0), 'broker INT').broker AS broker"
    )
    return (
        about.join(clusters, SNAPSHOT_KEY, broadcast=True)
        .select("* EXCEPT (registered)", "registered AS brokers")
        .select(
            "*",
            f"NOT array_contains({ids_of('brokers')}, broker) AS is_unknown",
            f"{_any(Role.LEADS_OTHERS)} AS any_led",
            f"{_any(Role.FOLLOWS)} AS any_followed",
            "array(broker) AS struck",
            f"{NO_IDS} AS gone",
            "array(broker) AS offline_order",
        )
        .select(
            *SCENARIO_KEY,
            "is_unknown OR (queued AND NOT deletion_enabled) AS is_odd",
            "struck",
            "gone",
            "offline_order",
            f"{plain_values(broker='broker', **_STEPS)} AS f",
        )
    )


def _any(role: Role) -> str:
    return f"exists(mentioned, m -> coalesce(m.id = broker, false) AND {role.of('m')})"


# Kafka sends the batch of stops even where there is nothing in it.
_STEPS: Final = numbered_steps(
    step_partitions="any_led", step_stop="true", step_offline="any_followed"
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
            "array_except(array_union(replicas, coalesce(isr, array())),"
            " array_union(unreachable, offline_dirs)) AS online_or_leaving",
            "array_except(not_live, unreachable) AS leaving",
        )
        .drop("not_online")
        .transform(_with_shared)
        .transform(with_shutdown_election)
        .transform(with_removals, "risen", "new")
        .transform(_with_end)
        .transform(bodies.of_shutdown),
        facts,
    )
    return Decided(
        event_type=CONTROLLED_SHUTDOWN,
        untouched=None if changed_only else running.untouched_partitions(settled, facts),
        kept=kept,
        touched=touched,
        changed_only=changed_only,
        facts=facts,
        told_nothing=facts.where("false").select("f.number", "f.step_stop AS step"),
        replica_before=running.REPLICA_BEFORE,
        replica_after=running.REPLICA_AFTER,
        election=SHUTDOWN_ELECTION,
        is_answered="new.leader = f.broker AND size(replicas) > 1 AND NOT queued",
        transitions=(
            tables.gets_a_leader,
            partial(tables.goes_offline, from_state=running.REPLICA_BEFORE),
        ),
        writes=(tables.records_with_leaders, tables.shrunk_records),
    )


def _with_shared(known: Rows) -> Rows:
    """The partitions others have replicas of: ``tried`` if the broker leads, else it stops."""
    is_shared = """old IS NOT NULL AND size(replicas) > 1 AND NOT queued
        AND array_contains(replicas, f.broker)"""
    return known.select(
        "*",
        f"coalesce({is_shared} AND old.leader = f.broker, false) AS tried",
        f"IF(coalesce({is_shared} AND old.leader != f.broker, false), offline_order, {NO_IDS})"
        " AS removed",
    )


def _with_end(known: Rows) -> Rows:
    return known.select(
        "*", f"IF(led, {text(ONLINE_PARTITION)}, state_before) AS state_after"
    ).drop("offline_order", "leaving")
