"""The deletion of topics by the legacy controller, from the request to the last znode.

A partition stays online until its topic is gone: only then do its states change
(TopicDeletionManager, Kafka 0.9 to 1.0). Topics are taken by name where Kafka's order is a hash.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from understudy.controller.records import Replica, TopicPartition
from understudy.controller.states import (
    DELETION_INELIGIBLE,
    DELETION_STARTED,
    DELETION_SUCCESSFUL,
    NON_EXISTENT_PARTITION,
    NON_EXISTENT_REPLICA,
    OFFLINE_PARTITION,
    OFFLINE_REPLICA,
)
from understudy.controller.zk_legacy.context import KafkaError, LegacyContext
from understudy.controller.zk_legacy.journal import LegacyJournal
from understudy.controller.zk_legacy.order import picked_states
from understudy.controller.zk_legacy.partition_machine import LegacyPartitionStateMachine
from understudy.controller.zk_legacy.replica_machine import LegacyReplicaStateMachine


class LegacyTopicDeletion:
    def __init__(
        self,
        context: LegacyContext,
        journal: LegacyJournal,
        *,
        replicas: LegacyReplicaStateMachine,
        partitions: LegacyPartitionStateMachine,
        send_metadata: Callable[[Collection[TopicPartition]], None],
    ) -> None:
        self._context = context
        self._journal = journal
        self._replicas = replicas
        self._partitions = partitions
        self._send_metadata = send_metadata
        self._woken = False
        self.asked: set[Replica] = set()
        """Replicas this controller told their brokers to delete with their topic."""

    def load(self) -> None:
        """What a new controller takes over: requests, and who stands in their way."""
        context = self._context
        self.asked.clear()
        context.queued_topics.clear()
        context.queued_partitions.clear()
        context.ineligible_topics.clear()
        if not context.deletes_topics:
            context.zookeeper.delete_requests.clear()
            return
        self._queue(context.zookeeper.delete_requests)
        not_online = {
            tp[0]
            for tp, replicas in context.assignments.items()
            if any(not context.is_online(r, tp) for r in replicas)
        }
        moving = {tp[0] for tp in context.reassigning}
        self.mark_ineligible(not_online | moving)

    def _queue(self, topics: Collection[str]) -> None:
        self._context.queued_topics.update(topics)
        for topic in topics:
            self._context.queued_partitions.update(self._context.partitions_of(topic))

    def enqueue(self, topics: Collection[str]) -> None:
        self._queue(topics)
        self.resume()

    def mark_ineligible(self, topics: Iterable[str]) -> None:
        self._context.ineligible_topics |= self._context.queued_topics.intersection(topics)

    def resume_topics(self, topics: Iterable[str]) -> None:
        resumed = self._context.queued_topics.intersection(topics)
        if resumed:
            self._context.ineligible_topics -= resumed
            self.resume()

    def fail(self, replicas: Iterable[Replica]) -> None:
        """These replicas were not deleted: their topics wait."""
        failed = self._of_queued_topics(replicas)
        if failed:
            self._replicas.handle_state_changes(failed, DELETION_INELIGIBLE)
            self.mark_ineligible(tp[0] for tp, _ in failed)
            self.resume()

    def complete(self, replicas: Iterable[Replica]) -> None:
        self._replicas.handle_state_changes(self._of_queued_topics(replicas), DELETION_SUCCESSFUL)
        self.resume()

    def _of_queued_topics(self, replicas: Iterable[Replica]) -> list[Replica]:
        return [(tp, broker) for tp, broker in replicas if self._context.is_queued(tp)]

    def resume(self) -> None:
        """Go on with every queued topic, at once or, in old releases, after the event."""
        if not self._context.deletes_topics:
            return
        if self._context.rules.deletion_thread:
            self._woken = True
        else:
            self._resume_deletions()

    def run_thread(self) -> None:
        """What the deletion thread does once the event that woke it is over."""
        if self._woken:
            self._woken = False
            self._resume_deletions()

    def _resume_deletions(self) -> None:
        for topic in sorted(self._context.queued_topics):
            states = [self._state(replica) for replica in self._context.replicas_of(topic)]
            if all(state == DELETION_SUCCESSFUL for state in states):
                self._complete_topic(topic)
            elif DELETION_STARTED not in states:
                failed = self._in_state(topic, DELETION_INELIGIBLE)
                self._replicas.handle_state_changes(failed, OFFLINE_REPLICA)
            if self._is_eligible(topic):
                self._start(topic)

    def _state(self, replica: Replica) -> str:
        state = self._context.replica_states.get(replica)
        if state is None:
            raise KafkaError("a replica has no state")
        return state

    def _in_state(self, topic: str, wanted: str) -> list[Replica]:
        """Over all states, also of replicas that are no longer assigned."""
        states = self._context.replica_states
        found = (r for r, state in states.items() if r[0][0] == topic and state == wanted)
        return picked_states(found, out_of=len(states))

    def _is_eligible(self, topic: str) -> bool:
        context = self._context
        if topic not in context.queued_topics or topic in context.ineligible_topics:
            return False
        return all(self._state(r) != DELETION_STARTED for r in context.replicas_of(topic))

    def _start(self, topic: str) -> None:
        """Kafka's onTopicDeletion: brokers hear of it, then all living replicas stop and go."""
        partitions = self._context.partitions_of(topic)
        self._send_metadata(partitions)
        alive = [r for r in self._context.live_replicas() if r[0][0] == topic]
        dead = [r for r in self._context.replicas_of(topic) if r not in alive]
        deleted = self._in_state(topic, DELETION_SUCCESSFUL)
        leaving = [r for r in alive if r not in deleted]
        self._replicas.handle_state_changes(dead, DELETION_INELIGIBLE)
        self._replicas.handle_state_changes(leaving, OFFLINE_REPLICA)
        self._replicas.handle_state_changes(leaving, DELETION_STARTED)
        self.asked.update(r for r in leaving if self._state(r) == DELETION_STARTED)
        if dead:
            self.mark_ineligible([topic])

    def _complete_topic(self, topic: str) -> None:
        context = self._context
        if topic not in context.watched_topics:
            raise KafkaError(f"topic {topic} is not watched")
        context.watched_topics.remove(topic)
        deleted = self._in_state(topic, DELETION_SUCCESSFUL)
        self._replicas.handle_state_changes(deleted, NON_EXISTENT_REPLICA)
        partitions = context.partitions_of(topic)
        self._partitions.handle_state_changes(partitions, OFFLINE_PARTITION)
        self._partitions.handle_state_changes(partitions, NON_EXISTENT_PARTITION)
        context.queued_topics.discard(topic)
        context.queued_partitions = {tp for tp in context.queued_partitions if tp[0] != topic}
        if topic in context.zookeeper.topics:
            context.zookeeper.remove_topic(topic)
            self._journal.topic_deleted(topic)
        context.zookeeper.delete_requests.discard(topic)
        context.settings.forget_topic(topic)
        for tp in partitions:
            del context.assignments[tp]
        for tp in [tp for tp in context.leadership if tp[0] == topic]:
            del context.leadership[tp]
        context.topics.discard(topic)
