"""Both state machines over one context, and the batches the controller sends on its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from understudy.controller.journal import Journal
from understudy.controller.records import TopicPartition
from understudy.controller.words import UNKNOWN_SERVER_ERROR
from understudy.controller.zk.context import ControllerContext, EventAbortedError
from understudy.controller.zk.partition_machine import PartitionStateMachine
from understudy.controller.zk.replica_machine import ReplicaStateMachine
from understudy.controller.zk.request_batch import RequestBatch


class Machines:
    def __init__(self, context: ControllerContext, journal: Journal) -> None:
        self.context = context
        self.journal = journal
        self.replicas = ReplicaStateMachine(context, journal)
        self.partitions = PartitionStateMachine(context, journal)

    def handle(self, event: Callable[[], None]) -> bool:
        """Run one event of Kafka's queue; whether it got to its end.

        One that is aborted says so, and the next one goes on.
        """
        try:
            event()
        except EventAbortedError:
            self.journal.event_result(None, UNKNOWN_SERVER_ERROR)
            return False
        return True

    def send_metadata(
        self, partitions: Iterable[TopicPartition] = (), brokers: Iterable[int] | None = None
    ) -> None:
        """UpdateMetadata about *partitions*, possibly none, to *brokers* (default: everybody)."""
        batch = RequestBatch(self.context, self.journal)
        batch.add_metadata(*partitions, brokers=brokers)
        batch.send()

    def stop_replicas(self, broker: int, partitions: Iterable[TopicPartition]) -> None:
        """StopReplica without deletion, to one broker."""
        batch = RequestBatch(self.context, self.journal)
        for tp in partitions:
            batch.add_stop_replica([broker], tp, delete=False)
        batch.send()
