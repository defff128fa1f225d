"""The output tables of a native failover: projections of what ``failover`` decided.

Each table is the healthy partitions' rows, which follow from their record alone, and the touched
partitions' rows, which say what was decided. No table reads another. Requests are next door, in
``requests``.
"""

from __future__ import annotations

from functools import reduce
from typing import Final

from pyspark.sql import DataFrame

from understudy.controller.native.failover import RECORD, Failover
from understudy.controller.native.sql import select, text
from understudy.controller.states import (
    DELETION_INELIGIBLE,
    OFFLINE_PARTITION,
    OFFLINE_REPLICA,
    ONLINE_PARTITION,
    ONLINE_REPLICA,
)
from understudy.controller.words import (
    BROKER_DOWN,
    CHOSEN,
    ELECTED,
    ELECTED_UNCLEAN,
    FAILED,
    FIRST_IN_SYNC,
    FIRST_ONLINE_NEW,
    FIRST_ONLINE_UNCLEAN,
    INITIALIZE_STRATEGY,
    INITIALIZED,
    ISR_SHRUNK,
    LATER_CONTROLLER,
    LOG_DIR_OFFLINE,
    NEVER_LED,
    NO_REPLICA_ONLINE,
    NOT_IN_ISR,
    NOT_TRIED,
    OFFLINE,
    OFFLINE_STRATEGY,
    OK,
    PARTITION_MACHINE,
    QUEUED,
    RECORD_REFRESHED,
    REPLICA_MACHINE,
    SENT_AGAIN,
    SHRUNK,
    SHUTTING_DOWN,
    STATE_CHANGE_FAILED,
    STATE_WRITE,
    STRANGER_IN_ISR,
    UNCHANGED,
    UNCLEAN_OFF,
)
from understudy.names import PARTITION_KEY, SCENARIO_KEY
from understudy.schemas import (
    BROKER_STATES,
    DECISIONS,
    EVENT_RESULTS,
    METADATA_WRITES,
    PARTITION_STATES,
    REPLICA_STATES,
    TRANSITIONS,
)

# What the new controller takes up again after both machines have started is not decided here.
_FINISHED: Final = "NOT queued AND size(adding) + size(removing) = 0"

_ISR_MEMBER_ONLINE: Final = "arrays_overlap(shrunk_isr, online_known)"

# Why the partition machine decided as it did.
_WHY: Final = f"""CASE
    WHEN superseded THEN {text(LATER_CONTROLLER)}
    WHEN initialized THEN {text(FIRST_ONLINE_NEW)}
    WHEN elected.clean THEN {text(FIRST_IN_SYNC)}
    WHEN elected IS NOT NULL THEN {text(FIRST_ONLINE_UNCLEAN)}
    WHEN size(online) = 0 THEN {text(NO_REPLICA_ONLINE)}
    WHEN {_ISR_MEMBER_ONLINE} THEN {text(STRANGER_IN_ISR)}
    ELSE {text(UNCLEAN_OFF)} END"""

# What became of a touched partition: condition, in one word, in one sentence.
_OUTCOMES: Final = (
    ("new IS NULL AND queued", NEVER_LED, text(QUEUED)),
    ("new IS NULL", NEVER_LED, text(NO_REPLICA_ONLINE)),
    (f"NOT led AND state_at_start = {text(OFFLINE_PARTITION)} AND queued", OFFLINE, text(QUEUED)),
    (f"NOT led AND state_at_start = {text(OFFLINE_PARTITION)}", OFFLINE, _WHY),
    ("initialized", INITIALIZED, _WHY),
    ("elected.clean", ELECTED, _WHY),
    ("elected IS NOT NULL", ELECTED_UNCLEAN, _WHY),
    ("new.isr != old.isr", ISR_SHRUNK, text(SHRUNK)),
    ("new != old", RECORD_REFRESHED, text(SENT_AGAIN)),
)


def partition_states(failover: Failover) -> DataFrame:
    same = {name: name for name in ("replicas", "adding", "removing")}
    before = ("leader", "leader_epoch", "isr")
    words = " ".join(f"WHEN {condition} THEN {text(word)}" for condition, word, _ in _OUTCOMES)
    reasons = " ".join(f"WHEN {condition} THEN {reason}" for condition, _, reason in _OUTCOMES)
    healthy = select(
        failover.healthy,
        PARTITION_STATES,
        state_after=text(ONLINE_PARTITION),
        outcome=text(UNCHANGED),
        **same,
        **{f"{name}_before": name for name in before},
        **{name: name for name in RECORD},
    )
    touched = select(
        failover.touched.where(_FINISHED),
        PARTITION_STATES,
        state_after=f"IF(led, {text(ONLINE_PARTITION)}, state_at_start)",
        outcome=f"CASE {words} ELSE {text(UNCHANGED)} END",
        reason=f"CASE {reasons} END",
        **same,
        **{f"{name}_before": f"old.{name}" for name in before},
        **{name: f"new.{name}" for name in RECORD},
    )
    return healthy.unionAll(touched)


def replica_states(failover: Failover) -> DataFrame:
    healthy = failover.healthy.selectExpr(*PARTITION_KEY, "explode(replicas) AS replica")
    touched = failover.touched.where(_FINISHED).selectExpr(
        *PARTITION_KEY, "online", "superseded", "explode(replicas) AS replica"
    )
    not_online = f"IF(superseded, {text(DELETION_INELIGIBLE)}, {text(OFFLINE_REPLICA)})"
    state = f"IF(array_contains(online, replica), {text(ONLINE_REPLICA)}, {not_online})"
    return select(
        healthy, REPLICA_STATES, replica="replica", state_after=text(ONLINE_REPLICA)
    ).unionAll(select(touched, REPLICA_STATES, replica="replica", state_after=state))


def transitions(failover: Failover) -> DataFrame:
    stays_online = [
        select(
            partitions.selectExpr(
                *PARTITION_KEY, "f.step_online AS step", f"explode({replicas}) AS replica"
            ),
            TRANSITIONS,
            step="step",
            machine=text(REPLICA_MACHINE),
            replica="replica",
            from_state=text(ONLINE_REPLICA),
            to_state=text(ONLINE_REPLICA),
            result=text(OK),
        )
        for partitions, replicas in ((failover.healthy, "replicas"), (failover.touched, "online"))
    ]
    goes_offline = select(
        failover.touched.selectExpr(
            *PARTITION_KEY,
            "f.step_offline AS step",
            "superseded",
            "removals",
            "posexplode(removed) AS (index, replica)",
        ),
        TRANSITIONS,
        step="step",
        machine=text(REPLICA_MACHINE),
        replica="replica",
        from_state=text(DELETION_INELIGIBLE),
        to_state=text(OFFLINE_REPLICA),
        result=f"IF(superseded, {text(FAILED)}, {text(OK)})",
        error=f"IF(superseded, {text(STATE_CHANGE_FAILED)}, NULL)",
        **{name: f"get(removals, index).{name}" for name in ("leader", "isr", "leader_epoch")},
    )
    gets_a_leader = select(
        failover.touched.where("tried"),
        TRANSITIONS,
        step="f.step_partitions",
        machine=text(PARTITION_MACHINE),
        from_state="state_at_start",
        to_state=text(ONLINE_PARTITION),
        result=f"IF(led, {text(OK)}, {text(FAILED)})",
        error=f"IF(led, NULL, {text(STATE_CHANGE_FAILED)})",
        **{name: f"IF(led, new.{name}, NULL)" for name in ("leader", "isr", "leader_epoch")},
    )
    return reduce(DataFrame.unionAll, [*stays_online, goes_offline, gets_a_leader])


def metadata_writes(failover: Failover, later: DataFrame | None = None) -> DataFrame:
    """The writes of the start-up, and behind them those of *later* steps in their own order."""
    removals = (
        failover.touched.where("size(removals) > 0")
        .selectExpr(*PARTITION_KEY, "f", "old", "explode(removals) AS r")
        .where("r.wrote")
        .selectExpr(
            *PARTITION_KEY,
            "f.step_offline AS step",
            "r.position AS seq",
            "r.leader",
            "r.leader_epoch",
            "r.isr",
            "r.partition_epoch",
            "f.epoch AS controller_epoch",
            "old.recovery",
        )
    )
    leaders = failover.touched.where("led").selectExpr(
        *PARTITION_KEY,
        "f.step_partitions AS step",
        "IF(initialized, 0, 1) AS seq",  # first leaders are written before any election
        *(f"new.{name}" for name in RECORD),
    )
    writes = select(
        removals.unionAll(leaders),
        METADATA_WRITES,
        kind=text(STATE_WRITE),
        **{name: name for name in ("seq", "step", *RECORD)},
    )
    in_order = (
        f"row_number() OVER (PARTITION BY {', '.join(SCENARIO_KEY)}"
        " ORDER BY step, seq, topic, partition)"
    )
    every = writes if later is None else writes.unionAll(later)
    return every.selectExpr(
        *(f"{in_order} AS seq" if name == "seq" else name for name in METADATA_WRITES.names)
    )


def decisions(failover: Failover) -> DataFrame:
    why_not_online = f"""CASE
        WHEN array_contains(online, r) THEN {text(NOT_IN_ISR)}
        WHEN NOT array_contains(reachable, r) THEN {text(BROKER_DOWN)}
        WHEN array_contains(offline_dirs, r) THEN {text(LOG_DIR_OFFLINE)}
        ELSE {text(SHUTTING_DOWN)} END"""
    verdict = f"""CASE
        WHEN r = chosen THEN {text(CHOSEN)}
        WHEN clean AND i >= array_position(replicas, chosen) THEN {text(NOT_TRIED)}
        ELSE {why_not_online} END"""
    candidates = f"transform(replicas, (r, i) -> struct(r AS replica, {verdict} AS verdict))"
    no_clean_candidate = f"old IS NOT NULL AND NOT superseded AND NOT {_ISR_MEMBER_ONLINE}"
    tried = failover.touched.where("tried").selectExpr(
        "*",
        "IF(led, new.leader, NULL) AS chosen",
        "IF(initialized, true, elected.clean) AS clean",
    )
    return select(
        tried,
        DECISIONS,
        step="f.step_partitions",
        strategy=f"IF(old IS NULL, {text(INITIALIZE_STRATEGY)}, {text(OFFLINE_STRATEGY)})",
        candidates=f"IF(superseded, array(), {candidates})",
        chosen="chosen",
        clean="clean",
        unclean_allowed_by=f"IF({no_clean_candidate} AND unclean_allowed,"
        " IF(unclean_topic IS NOT NULL, 'topic', f.unclean_level), NULL)",
        reason=_WHY,
    )


def event_results(failover: Failover) -> DataFrame:
    """A failover answers nothing."""
    return select(failover.touched.where("false"), EVENT_RESULTS)


def broker_states(failover: Failover) -> DataFrame:
    """Registrations are the quorum controller's."""
    return select(failover.touched.where("false"), BROKER_STATES)
