"""Topic deletion, from the request to the last trace (TopicDeletionManager, Kafka 2.4 to 3.9).

A queued topic is started once: its partitions cease to exist and its live replicas are told to
stop, then to delete. A dead replica or a reassignment halts it (ineligible) until something
resumes it. When every replica has answered, the topic goes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from understudy.controller import releases
from understudy.controller.records import Replica
from understudy.controller.states import (
    DELETION_INELIGIBLE,
    DELETION_STARTED,
    DELETION_SUCCESSFUL,
    NON_EXISTENT_PARTITION,
    NON_EXISTENT_REPLICA,
    OFFLINE_PARTITION,
    OFFLINE_REPLICA,
)
from understudy.controller.zk.machines import Machines


class TopicDeletion:
    def __init__(self, machines: Machines) -> None:
        self._machines = machines
        self._context = machines.context

    def request(self, topics: Iterable[str]) -> None:
        """The delete-topics znode changed: it now also names *topics* (processTopicDeletion)."""
        context = self._context
        requests = context.deletion_requests | set(topics)
        context.deletion_requests = requests & context.topics
        if not context.deletion_enabled:
            context.deletion_requests = set()
        if not context.deletion_requests:
            return
        # Before they are queued, so that a first request is not halted by a reassignment.
        reassigned = {topic for topic, _ in context.reassigning}
        self.halt(context.deletion_requests & reassigned)
        context.queued_topics |= context.deletion_requests
        self.resume()

    def halt(self, topics: Iterable[str]) -> None:
        """Kafka's markTopicIneligibleForDeletion: of topics that are not queued, nothing."""
        self._context.deletion_ineligible |= self._context.queued_topics.intersection(topics)

    def resume_for(self, topics: Iterable[str]) -> None:
        """What halted these topics is over (resumeDeletionForTopics)."""
        resumed = self._context.queued_topics.intersection(topics)
        if resumed:
            self._context.deletion_ineligible -= resumed
            self.resume()

    def fail(self, replicas: Iterable[Replica]) -> None:
        """These replicas cannot be deleted now (failReplicaDeletion)."""
        failed = self._queued(replicas)
        if failed:
            self._machines.replicas.handle_state_changes(failed, DELETION_INELIGIBLE)
            self.halt(topic for (topic, _), _ in failed)
            self.resume()

    def complete(self, replicas: Iterable[Replica]) -> None:
        """These replicas are deleted (completeReplicaDeletion)."""
        done = self._queued(replicas)
        self._machines.replicas.handle_state_changes(done, DELETION_SUCCESSFUL)
        self.resume()

    def resume(self) -> None:
        """Finish, retry and start what can be (resumeDeletions)."""
        queued = sorted(self._context.queued_topics)
        # Until 2.4 each topic went all the way before the next one.
        together = self._context.release >= releases.RELEASE_2_5
        for topics in [queued] if together else [[topic] for topic in queued]:
            to_retry, to_delete = self._sort_out(topics)
            self._retry(to_retry)
            self._delete(to_delete)

    def _sort_out(self, topics: Iterable[str]) -> tuple[list[str], list[str]]:
        """Finish the topics whose replicas are all gone; of the rest, what to retry and start."""
        context = self._context
        to_retry, to_delete = [], []
        for topic in topics:
            states = context.replica_states_of(topic)
            if all(state == DELETION_SUCCESSFUL for state in states.values()):
                self._finish(topic, list(states))
                continue
            if DELETION_STARTED in states.values():
                continue
            if DELETION_INELIGIBLE in states.values():
                to_retry.append(topic)
            if topic not in context.deletion_ineligible:
                to_delete.append(topic)
        return to_retry, to_delete

    def _retry(self, topics: Iterable[str]) -> None:
        failed = [
            replica
            for topic in topics
            for replica, state in self._context.replica_states_of(topic).items()
            if state == DELETION_INELIGIBLE
        ]
        self._machines.replicas.handle_state_changes(failed, OFFLINE_REPLICA)

    def _delete(self, topics: Collection[str]) -> None:
        """Kafka's onTopicDeletion."""
        if not topics:
            return
        context, machines = self._context, self._machines
        unseen = [topic for topic in topics if topic not in context.deletion_started]
        if unseen:
            partitions = [tp for topic in unseen for tp in context.partitions_of(topic)]
            machines.partitions.handle_state_changes(partitions, OFFLINE_PARTITION)
            machines.partitions.handle_state_changes(partitions, NON_EXISTENT_PARTITION)
            context.deletion_started.update(unseen)
        machines.send_metadata(tp for topic in topics for tp in context.partitions_of(topic))
        self._delete_replicas(topics)

    def _delete_replicas(self, topics: Iterable[str]) -> None:
        """Kafka's onPartitionDeletion: the dead ones halt it, the live ones stop, then delete."""
        context, machines = self._context, self._machines
        dead: list[Replica] = []
        alive: list[Replica] = []
        for topic in topics:
            for replica, state in context.replica_states_of(topic).items():
                tp, broker = replica
                if not context.is_online(broker, tp):
                    dead.append(replica)
                elif state != DELETION_SUCCESSFUL:
                    alive.append(replica)
        machines.replicas.handle_state_changes(dead, DELETION_INELIGIBLE)
        machines.replicas.handle_state_changes(alive, OFFLINE_REPLICA)
        machines.replicas.handle_state_changes(alive, DELETION_STARTED)
        self.halt(topic for (topic, _), _ in dead)

    def _finish(self, topic: str, replicas: list[Replica]) -> None:
        """Kafka's completeDeleteTopic."""
        context = self._context
        self._machines.replicas.handle_state_changes(replicas, NON_EXISTENT_REPLICA)
        for tp in context.partitions_of(topic):
            context.znodes.pop(tp, None)
        if topic in context.topics:  # it may have vanished before
            self._machines.journal.topic_deleted(topic)
        context.deletion_requests.discard(topic)
        context.queued_topics.discard(topic)
        context.deletion_started.discard(topic)
        context.remove_topic(topic)

    def _queued(self, replicas: Iterable[Replica]) -> list[Replica]:
        return [replica for replica in replicas if self._context.is_queued(replica[0])]
