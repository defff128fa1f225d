"""What a scenario ended in: the state rows of its partitions and replicas."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from understudy.controller.columnar.arrays import (
    NOBODY,
    Flags,
    Ints,
    any_of,
    in_slices,
    words,
)
from understudy.controller.columnar.state import (
    NONE,
    OF_TRANSITION,
    OFFLINE_NOW,
    PARTITION_STATES,
    REASONS,
    RECORD,
    REPLICA_STATES,
    WHY,
    Shown,
    State,
    picked,
)
from understudy.controller.words import (
    ELECTED,
    ELECTED_UNCLEAN,
    INITIALIZED,
    ISR_SHRUNK,
    NEVER_LED,
    NO_REPLICA_ONLINE,
    OFFLINE,
    QUEUED,
    RECORD_REFRESHED,
    SENT_AGAIN,
    SHRUNK,
    UNCHANGED,
)

_OUTCOMES: Final = (
    NEVER_LED,
    OFFLINE,
    INITIALIZED,
    ELECTED_UNCLEAN,
    ELECTED,
    ISR_SHRUNK,
    RECORD_REFRESHED,
    UNCHANGED,
)
_CODE: Final = {outcome: place for place, outcome in enumerate(_OUTCOMES)}


def tell_states(now: State, *, shown: Flags | None = None, changed_only: bool) -> None:
    """The state rows of the partitions that are *shown*."""
    every = np.arange(len(now.rows)) if shown is None else np.flatnonzero(shown)
    for at in in_slices(every):
        outcome, reason = _outcomes(now, at)
        wanted = outcome != _CODE[UNCHANGED]
        if changed_only and not wanted.all():
            _tell(now, at[wanted], outcome[wanted], reason[wanted])
        else:
            _tell(now, at, outcome, reason)


def _tell(now: State, at: Ints, outcome: Ints, reason: Ints) -> None:
    before = Shown(now, at, picked(now.start, at)).known(now.had_record[at])
    after = now.shown(at).known(now.has_record[at])
    now.told.add(
        "partition_states",
        now.rows[at],
        now.of[at],
        state_before=words(now.partition_states_before[at], PARTITION_STATES),
        state_after=words(now.partition_states[at], PARTITION_STATES),
        **now.cluster.assignment(now.rows[at]),
        **{f"{name}_before": before[name] for name in OF_TRANSITION},
        **after,
        outcome=words(outcome, _OUTCOMES),
        reason=words(reason, REASONS),
    )
    if not now.told.wants("replica_states"):
        return
    row, column = np.nonzero(now.replicas.take(at, axis=0) != NOBODY)
    of = at[row]
    now.told.add(
        "replica_states",
        now.rows[of],
        now.of[of],
        replica=pa.array(now.ids[now.replicas[of, column]], pa.int32()),
        state_before=words(now.replica_states_before[of, column], REPLICA_STATES),
        state_after=words(now.replica_states[of, column], REPLICA_STATES),
    )


def _outcomes(now: State, at: Ints) -> tuple[Ints, Ints]:
    """What became of each of these partitions, and why; the first that fits."""
    has, had, is_queued = now.has_record[at], now.had_record[at], now.is_queued[at]
    before, after = picked(now.start, at), now.taken(at)
    is_offline = now.partition_states[at] == OFFLINE_NOW
    same_isr = ~any_of(after["isr"] != before["isr"])
    same = same_isr.copy()
    for name in RECORD:
        if name != "isr":
            same &= after[name] == before[name]
    last, clean, elected = now.last_reason[at], now.last_clean[at], now.why_elected[at]
    cases = [
        (~has, NEVER_LED, np.where(is_queued, WHY[QUEUED], WHY[NO_REPLICA_ONLINE])),
        (is_offline, OFFLINE, np.where(is_queued, WHY[QUEUED], last)),
        (~had, INITIALIZED, elected),
        (clean == 0, ELECTED_UNCLEAN, elected),
        (clean == 1, ELECTED, elected),
        (~same_isr, ISR_SHRUNK, np.full(len(at), WHY[SHRUNK])),
        (~same, RECORD_REFRESHED, np.full(len(at), WHY[SENT_AGAIN])),
    ]
    conditions = [condition for condition, _, _ in cases]
    codes = [_CODE[word] for _, word, _ in cases]
    reasons = [reason for _, _, reason in cases]
    return (
        np.select(conditions, codes, _CODE[UNCHANGED]),
        np.select(conditions, reasons, NONE),
    )
