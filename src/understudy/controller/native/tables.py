"""The output tables of a native replay: projections of what was decided.

Each table is the rows of the touched partitions, which say what was decided, and of a running
controller's others, which follow from their record alone; those that a failover leaves as they are
have a pass of their own (``sent_again``). No table reads another. Requests are next door, in
``requests``.
"""

from __future__ import annotations

from functools import reduce

from understudy.controller.native import outcomes
from understudy.controller.native.decided import RECORD, Decided, replica_state
from understudy.controller.states import (
    OFFLINE_PARTITION,
    OFFLINE_REPLICA,
    ONLINE_PARTITION,
    ONLINE_REPLICA,
)
from understudy.controller.words import (
    BROKER_DOWN,
    CHOSEN,
    FAILED,
    LOG_DIR_OFFLINE,
    NOT_IN_ISR,
    NOT_TRIED,
    OK,
    PARTITION_MACHINE,
    REPLICA_MACHINE,
    SHUTTING_DOWN,
    STATE_CHANGE_FAILED,
    STATE_WRITE,
    UNCHANGED,
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
from understudy.sql import Rows, nothing, select, text


def partition_states(decided: Decided) -> Rows:
    same = {name: name for name in ("replicas", "adding", "removing")}
    before = ("leader", "leader_epoch", "isr")
    touched = select(
        _shown(decided),
        PARTITION_STATES,
        state_before="state_before",
        state_after="state_after",
        outcome="outcome",
        reason=outcomes.reason(decided.election.why),
        **same,
        **{f"{name}_before": f"old.{name}" for name in before},
        **{name: f"new.{name}" for name in RECORD},
    )
    untouched = _untouched(decided)
    if untouched is None:
        return touched
    settled = select(
        untouched,
        PARTITION_STATES,
        state_before=text(ONLINE_PARTITION),
        state_after=text(ONLINE_PARTITION),
        outcome=text(UNCHANGED),
        **same,
        **{f"{name}_before": name for name in before},
        **{name: name for name in RECORD},
    )
    return settled.union(touched)


def _shown(decided: Decided) -> Rows:
    """The touched partitions that have state rows."""
    shown = decided.touched.where(decided.is_shown).select("*", f"{outcomes.OUTCOME} AS outcome")
    return shown.where(f"outcome != {text(UNCHANGED)}") if decided.changed_only else shown


def _untouched(decided: Decided) -> Rows | None:
    """The other partitions of a running controller, where they have state rows."""
    return None if decided.changed_only else decided.untouched


def replica_states(decided: Decided) -> Rows:
    settled = replica_state("online_before")
    kinds = [(_shown(decided), decided.replica_before, decided.replica_after)]
    untouched = _untouched(decided)
    if untouched is not None:
        kinds.append((untouched, settled, settled))
    return reduce(
        Rows.union,
        (
            select(
                partitions.select("*", "explode(replicas) AS replica"),
                REPLICA_STATES,
                replica="replica",
                state_before=before,
                state_after=after,
            )
            for partitions, before, after in kinds
        ),
    )


def transitions(decided: Decided) -> Rows:
    return reduce(Rows.union, (each(decided) for each in decided.transitions))


def goes_online(decided: Decided, replicas: str, *, from_state: str) -> Rows:
    """*replicas* of the touched partitions; both are SQL text."""
    return select(
        decided.touched.select(
            *PARTITION_KEY, "f.step_online AS step", f"explode({replicas}) AS replica"
        ),
        TRANSITIONS,
        **decided.event,
        step="step",
        machine=text(REPLICA_MACHINE),
        replica="replica",
        from_state=from_state,
        to_state=text(ONLINE_REPLICA),
        result=text(OK),
    )


def loses_its_leader(decided: Decided) -> Rows:
    return select(
        decided.touched.where("leaderless"),
        TRANSITIONS,
        **decided.event,
        step="f.step_leaderless",
        machine=text(PARTITION_MACHINE),
        from_state="state_before",
        to_state=text(OFFLINE_PARTITION),
        result=text(OK),
    )


def goes_offline(decided: Decided, *, from_state: str) -> Rows:
    """The replicas ``removed``; *from_state* is SQL text."""
    return select(
        decided.touched.select("*", "posexplode(removed) AS (index, replica)"),
        TRANSITIONS,
        **decided.event,
        step="f.step_offline",
        machine=text(REPLICA_MACHINE),
        replica="replica",
        from_state=from_state,
        to_state=text(OFFLINE_REPLICA),
        result=f"IF(superseded, {text(FAILED)}, {text(OK)})",
        error=f"IF(superseded, {text(STATE_CHANGE_FAILED)}, NULL)",
        **{name: f"get(removals, index).{name}" for name in ("leader", "isr", "leader_epoch")},
    )


def gets_a_leader(decided: Decided) -> Rows:
    return select(
        decided.touched.where("tried"),
        TRANSITIONS,
        **decided.event,
        step="f.step_partitions",
        machine=text(PARTITION_MACHINE),
        from_state=decided.election.from_state,
        to_state=text(ONLINE_PARTITION),
        result=f"IF(led, {text(OK)}, {text(FAILED)})",
        error=f"IF(led, NULL, {text(STATE_CHANGE_FAILED)})",
        **{name: f"IF(led, risen.{name}, NULL)" for name in ("leader", "isr", "leader_epoch")},
    )


def metadata_writes(decided: Decided, later: Rows | None = None) -> Rows:
    """The writes of the machine calls, and behind them those of *later* steps in their order."""
    writes = select(
        reduce(Rows.union, (each(decided) for each in decided.writes)),
        METADATA_WRITES,
        **decided.event,
        kind=text(STATE_WRITE),
        **{name: name for name in ("seq", "step", *RECORD)},
    )
    in_order = (  # nullable, as every column is
        f"nullif(row_number() OVER (PARTITION BY {', '.join(SCENARIO_KEY)}"
        " ORDER BY step, seq, topic, partition), 0)"
    )
    every = writes if later is None else writes.union(later)
    return every.select(
        *(f"{in_order} AS seq" if name == "seq" else name for name in METADATA_WRITES.names)
    )


def shrunk_records(decided: Decided) -> Rows:
    return (
        decided.touched.where("size(removals) > 0")
        .select(*PARTITION_KEY, "f", "explode(removals) AS r")
        .where("r.wrote")
        .select(
            *PARTITION_KEY,
            "f.step_offline AS step",
            "r.position AS seq",
            *(
                f"{'f.epoch' if name == 'controller_epoch' else f'r.{name}'} AS {name}"
                for name in RECORD
            ),
        )
    )


def records_with_leaders(decided: Decided) -> Rows:
    return decided.touched.where("led").select(
        *PARTITION_KEY,
        "f.step_partitions AS step",
        "IF(initialized, 0, 1) AS seq",  # first leaders are written before any election
        *(f"risen.{name}" for name in RECORD),
    )


def decisions(decided: Decided) -> Rows:
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
    tried = decided.touched.where("tried").select(
        "*",
        "IF(led, risen.leader, NULL) AS chosen",
        "IF(initialized, true, elected_cleanly) AS clean",
    )
    return select(
        tried,
        DECISIONS,
        **decided.event,
        step="f.step_partitions",
        strategy=decided.election.strategy,
        candidates=f"IF(superseded, array(), {candidates})",
        chosen="chosen",
        clean="clean",
        unclean_allowed_by=decided.election.unclean_allowed_by,
        reason=decided.election.why,
    )


def event_results(decided: Decided) -> Rows:
    if decided.is_answered is None:
        return nothing(decided.facts, EVENT_RESULTS)
    answered = decided.touched.where(decided.is_answered)
    return select(answered, EVENT_RESULTS, **decided.event)


def broker_states(decided: Decided) -> Rows:
    """Registrations are the quorum controller's."""
    return nothing(decided.facts, BROKER_STATES)
