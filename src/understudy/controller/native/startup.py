"""Broker start-ups decided for many scenarios at once, over the partitions they touch.

The steps follow Kafka's onBrokerStartup: the others are told that somebody is there, the brokers
that start are told everything, their replicas go online, and whatever has no leader is tried again.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from understudy.controller import releases
from understudy.controller.native import bodies, running, tables
from understudy.controller.native.clusters import Role, ids_of, numbered_steps, plain_values
from understudy.controller.native.decided import (
    Decided,
    Starting,
    kept_apart,
    replica_state,
    with_liveness,
)
from understudy.controller.native.electing import OFFLINE_ELECTION, with_election
from understudy.controller.states import OFFLINE_REPLICA, ONLINE_PARTITION
from understudy.controller.zk.events import BROKER_STARTUP
from understudy.names import SCENARIO_KEY, SNAPSHOT_KEY
from understudy.sql import NO_IDS, Rows, struct, text

# --- What a start-up knows: one small row per scenario -----------------------------------------


def startup_facts(clusters: Rows, scenarios: Rows) -> Rows:
    """One row per scenario that is a single broker start-up.

    The brokers that really start are ``struck``, and ``started`` has their epochs, too. ``is_odd``:
    a broker that is alive restarts, or reassignments or deletions go on that waited for a broker.
    """
    about = scenarios.select(
        *SCENARIO_KEY,
        "from_json(get(events, 0), 'brokers ARRAY<INT>, epochs ARRAY<BIGINT>') AS event",
    )
    seen = "get(filter(away, b -> b.id = s.id), 0)"
    starts = struct(
        id="s.id",
        epoch="s.epoch",
        shutting_down="false",
        endpoints=f"{seen}.endpoints",
        rack=f"{seen}.rack",
    )
    return (
        about.join(clusters, SNAPSHOT_KEY, broadcast=True)
        .select("*", f"{_REGISTRATIONS} AS registrations")
        .select(
            "*",
            f"exists(registrations, s -> exists(registered, b -> {_IS_ANEW})) AS is_bounced",
            f"filter(registrations, s -> NOT array_contains({ids_of('registered')}, s.id))"
            " AS started",
        )
        .select(
            "*",
            f"{ids_of('started')} AS struck",
            f"concat(registered, transform(started, s -> {starts})) AS brokers",
        )
        .select(
            "*",
            "size(struck) > 0 AS is_real",
            "filter(mentioned, m -> array_contains(struck, m.id)) AS starting",
        )
        .select(
            *SCENARIO_KEY,
            f"{_IS_ODD} AS is_odd",
            "struck",
            "started",
            f"{NO_IDS} AS gone",
            f"{plain_values(tells_queued=_TELLS_QUEUED, **_STEPS)} AS f",
        )
    )


# Brokers register one after the other; one without an epoch of its own gets the next one.
_EPOCH: Final = "coalesce(b.epoch, so_far.highest + 1)"
_FIRST: Final = struct(
    highest="highest_epoch", done="CAST(array() AS ARRAY<STRUCT<id: INT, epoch: BIGINT>>)"
)
_NEXT: Final = struct(
    highest=f"greatest(so_far.highest, {_EPOCH})",
    done=f"concat(so_far.done, array({struct(id='b.id', epoch=_EPOCH)}))",
)
_REGISTRATIONS: Final = f"""aggregate(
    transform(event.brokers, (id, i) -> {struct(id="id", epoch="get(event.epochs, i)")}),
    {_FIRST}, (so_far, b) -> {_NEXT}, so_far -> so_far.done)"""
_IS_ANEW: Final = "b.id = s.id AND s.epoch > coalesce(b.epoch, 0)"

_IS_ODD: Final = f"""is_bounced OR (queued AND NOT deletion_enabled)
    OR exists(starting, m -> {(Role.DELETING | Role.REASSIGNING).of("m")})"""

# Until 2.6 a new broker was told of topics being deleted, too.
_TELLS_QUEUED: Final = f"{releases.level_sql('release')} < {releases.RELEASE_2_7}"

_ANY_ASSIGNED: Final = f"exists(starting, m -> {(Role.ASSIGNED | Role.ASSIGNED_DIR).of('m')})"

_STEPS: Final = numbered_steps(
    step_known="is_real",
    step_told="is_real",
    step_online=_ANY_ASSIGNED,
    step_partitions="(is_real AND (leaderless OR never_led))",
)

# --- What it decides ---------------------------------------------------------------------------


def decide(settled: Rows, facts: Rows, *, changed_only: bool) -> Decided:
    """Decide the touched partitions of every scenario, which are kept.

    *facts* are small enough to broadcast.
    """
    kept, touched = kept_apart(
        running.touched_partitions(settled, facts, running.AFTER_RETURN, carried=("struck",))
        .transform(
            with_liveness,
            "online_before",
            "state_before",
            "array_intersect(replicas, struck) AS returning",
        )
        .transform(_with_tried)
        .transform(with_election, "old")
        .transform(_with_end)
        .transform(bodies.of_startup),
        facts,
    )
    known = facts.where("f.step_known IS NOT NULL").select("f.number", "f.step_known AS step")
    told = facts.where("f.step_told IS NOT NULL").select("f.number", "f.step_told AS step")
    brokers = facts.select("f.number AS number", "explode(started) AS s").select(
        "number", "s.id AS broker_id", "s.epoch AS broker_epoch"
    )
    return Decided(
        event_type=BROKER_STARTUP,
        untouched=None if changed_only else running.untouched_partitions(settled, facts),
        kept=kept,
        touched=touched,
        changed_only=changed_only,
        facts=facts,
        told_nothing=known.union(told),
        replica_before=running.REPLICA_BEFORE,
        replica_after=replica_state("online"),
        election=OFFLINE_ELECTION,
        transitions=(
            partial(tables.goes_online, replicas="returning", from_state=text(OFFLINE_REPLICA)),
            tables.gets_a_leader,
        ),
        writes=(tables.records_with_leaders,),
        starting=Starting(brokers, settled),
    )


def _with_tried(known: Rows) -> Rows:
    return known.select(
        "*",
        "f.step_partitions IS NOT NULL AND NOT queued"
        f" AND state_before != {text(ONLINE_PARTITION)} AS tried",
    )


def _with_end(known: Rows) -> Rows:
    return known.select(
        "*", f"IF(led, {text(ONLINE_PARTITION)}, state_before) AS state_after", "risen AS new"
    )
