"""What a replayed quorum controller did, row by row, in the order it did it.

The rows are tuples in the column order of the output tables, without the leading keys (cluster,
snapshot, scenario). The quorum controller has no steps: its log is the order.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from understudy.controller.journal import Row
from understudy.controller.kraft.partitions import Partition
from understudy.controller.kraft.records import Shown
from understudy.controller.kraft.words import RECORD_WRITE
from understudy.controller.records import TopicPartition

_NOTHING: Final[Row] = (None,) * 3


def partition_columns(partition: Partition | None) -> tuple[Row, Row, Row, Row]:
    """Leadership, the rest of the record, the replica lists and what only KRaft has.

    Null where there is no partition; the quorum controller stores no controller epoch.
    """
    if partition is None:
        return _NOTHING, _NOTHING, _NOTHING, _NOTHING
    p = partition
    return (
        (p.leader, p.leader_epoch, p.isr),
        (p.partition_epoch, None, p.recovery),
        (p.replicas, p.adding, p.removing),
        (p.elr, p.last_known_elr, p.directories),
    )


class Decision(NamedTuple):
    """An election: who was tried, who was chosen and why."""

    tp: TopicPartition
    strategy: str
    candidates: tuple[tuple[int, str], ...]
    chosen: int | None
    clean: bool | None
    unclean_allowed_by: str | None
    reason: str


class KraftJournal:
    """Collects rows; knows the number of the current event."""

    def __init__(self) -> None:
        self.event = 0
        self.event_type = ""
        self.metadata_writes: list[Row] = []
        self.decisions: list[Row] = []
        self.last_election: dict[TopicPartition, tuple[bool | None, str]] = {}
        self._results: list[Row] = []

    def begin_event(self, event_type: str) -> None:
        self.event += 1
        self.event_type = event_type

    def written(self, shown: Shown) -> None:
        seq = len(self.metadata_writes) + 1
        leadership, epochs, lists, kraft = partition_columns(shown.partition)
        self.metadata_writes.append(
            (
                *(seq, None, self.event, self.event_type, RECORD_WRITE),
                *(shown.topic, shown.partition_number, *leadership, *epochs, *lists),
                *(shown.record, shown.version, shown.changed, *kraft),
                *(shown.broker_id, *shown.broker),
            )
        )

    def decision(self, decision: Decision) -> None:
        tp, *told = decision
        self.decisions.append((None, self.event, self.event_type, *tp, *told))
        self.last_election[tp] = (decision.clean, decision.reason)

    def answer(self, tp: TopicPartition, error: str | None, broker_id: int | None = None) -> None:
        """What an event answers for one partition; no error = done."""
        self._result(*tp, error, broker_id)

    def refused_topic(self, topic: str, error: str) -> None:
        self._result(topic, None, error, None)

    def refused(self, error: str, broker_id: int | None = None) -> None:
        """An operation refused as a whole."""
        self._result(None, None, error, broker_id)

    def _result(
        self, topic: str | None, partition: int | None, error: str | None, broker_id: int | None
    ) -> None:
        self._results.append((self.event, self.event_type, topic, partition, error, broker_id))

    @property
    def event_results(self) -> list[Row]:
        """By event, topic, partition and broker; null stands first."""

        def key(row: Row) -> Row:
            event, _, topic, partition, _, broker_id = row
            return (
                event,
                topic or "",
                -1 if partition is None else partition,
                -1 if broker_id is None else broker_id,
            )

        return sorted(self._results, key=key)
