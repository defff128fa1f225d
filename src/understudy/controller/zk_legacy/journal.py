"""The journal of a legacy controller: columns that came with later releases stay null.

Its records have no recovery state, and its assignments neither adding nor removing replicas.
"""

from __future__ import annotations

from understudy.controller.journal import Journal
from understudy.controller.records import Ids, LeaderAndIsr, TopicPartition
from understudy.controller.words import ASSIGNMENT_WRITE, STATE_WRITE


class LegacyJournal(Journal):
    def state_written(self, tp: TopicPartition, record: LeaderAndIsr) -> None:
        self._written(STATE_WRITE, *tp, *record[:5], *(None,) * 4)

    def replicas_written(self, tp: TopicPartition, replicas: Ids) -> None:
        self._written(ASSIGNMENT_WRITE, *tp, *(None,) * 6, replicas, None, None)
