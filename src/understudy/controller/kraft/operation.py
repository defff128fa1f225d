"""One operation of the quorum controller: everything it decides sees the same state before.

An operation collects the records it wants to write; committing it replays them, in order.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import groupby
from typing import Final

from understudy.controller.kraft import elections
from understudy.controller.kraft.change import Asked, Built, Surroundings, build
from understudy.controller.kraft.cluster import Cluster
from understudy.controller.kraft.elections import WhyNot
from understudy.controller.kraft.journal import Decision, KraftJournal
from understudy.controller.kraft.partitions import Fields, Partition
from understudy.controller.kraft.records import PartitionChanged, Record
from understudy.controller.kraft.words import LEAVING, UNCLEAN_ELECTION
from understudy.controller.records import TopicPartition
from understudy.controller.words import NO_LEADER

MAX_RECORDS: Final = 10_000
"""More records than this in one request of a user are refused (MAX_RECORDS_PER_USER_OP)."""


class Operation:
    def __init__(self, cluster: Cluster, journal: KraftJournal) -> None:
        self._cluster = cluster
        self._journal = journal
        self.records: list[Record] = []
        self._decisions: list[Decision] = []

    @property
    def is_too_large(self) -> bool:
        return len(self.records) > MAX_RECORDS

    def write(self, record: Record) -> None:
        self.records.append(record)

    def change(
        self,
        tp: TopicPartition,
        partition: Partition,
        asked: Asked,
        *,
        why_not: WhyNot | None = None,
        keep_elr: bool = True,
    ) -> Fields:
        """Ask for a change of one partition; what its record will say, empty when there is none."""
        cluster = self._cluster
        built = build(
            partition,
            asked,
            Surroundings(
                rules=cluster.rules,
                elr=cluster.rules.elr and keep_elr,
                min_isr=cluster.effective_min_isr(tp[0]) if cluster.rules.elr else 0,
                why_not=why_not or (lambda b: cluster.why_may_not_lead(b, partition)),
                default_directory=cluster.default_directory,
            ),
        )
        self._tell(tp, built, asked)
        if built.change:
            self.write(PartitionChanged(tp, built.change))
        return built.change

    def as_topic_allows(self, topic: str, asked: Asked) -> Asked:
        """The same, with an unclean election as last resort where the topic allows one."""
        allowed_by = self._cluster.unclean_allowed_by(topic)
        if allowed_by is None:
            return asked
        return replace(asked, election=UNCLEAN_ELECTION, unclean_allowed_by=allowed_by)

    def update_leaders(
        self,
        partitions: Iterable[TopicPartition],
        *,
        leaving: int | None = None,
        returning: int | None = None,
        unclean_shutdown: int | None = None,
    ) -> None:
        """Take a broker out of ISRs and leadership, or see what one that returns can lead.

        The broker's registration is not changed yet, so the event overrules it: who leaves is no
        acceptable leader, who returns is an active one (generateLeaderAndIsrUpdates).
        """
        cluster = self._cluster
        # An election of 4.0 can put "no leader" into an ISR; the next update takes it out again.
        gone = {leaving, unclean_shutdown, NO_LEADER}
        for tp in partitions:
            partition = cluster.topics[tp[0]][tp[1]]

            def why_not(broker_id: int, partition: Partition = partition) -> str | None:
                if broker_id in gone:
                    return LEAVING
                if broker_id == returning:
                    return cluster.why_not_in_online_directory(broker_id, partition)
                return cluster.why_may_not_lead(broker_id, partition)

            asked = Asked(
                isr=tuple(r for r in partition.isr if r not in gone),
                unclean_shutdown=unclean_shutdown,
            )
            self.change(tp, partition, self.as_topic_allows(tp[0], asked), why_not=why_not)

    def commit(self) -> None:
        for decision in self._decisions:
            self._journal.decision(decision)
        for record in _in_log_order(self.records):
            self._journal.written(record.replay(self._cluster))

    def _tell(self, tp: TopicPartition, built: Built, asked: Asked) -> None:
        ballot, elected = built.ballot, built.elected
        if not elections.is_worth_telling(ballot, elected):
            return
        leader = None if elected.leader == NO_LEADER else elected.leader
        self._decisions.append(
            Decision(
                tp,
                ballot.kind,
                elections.candidates(ballot, elected),
                chosen=leader,
                clean=None if leader is None else elected.clean,
                unclean_allowed_by=asked.unclean_allowed_by,
                reason=elections.reason(ballot, elected),
            )
        )


def _in_log_order(records: list[Record]) -> Iterable[Record]:
    """Kafka's order over partitions is that of a hash table: here it is by topic and partition."""
    for is_change, run in groupby(records, key=lambda record: isinstance(record, PartitionChanged)):
        if is_change:
            changes = [record for record in run if isinstance(record, PartitionChanged)]
            yield from sorted(changes, key=lambda record: record.tp)
        else:
            yield from run
