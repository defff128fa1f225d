"""Brokers that come, go and come back, and replicas that go offline.

(processBrokerChange and what it calls, KafkaController 2.4 to 3.9.)
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from understudy.controller import releases
from understudy.controller.records import Replica, TopicPartition
from understudy.controller.states import OFFLINE_PARTITION, OFFLINE_REPLICA, ONLINE_REPLICA
from understudy.controller.zk.context import Broker
from understudy.controller.zk.deletion import TopicDeletion
from understudy.controller.zk.machines import Machines
from understudy.controller.zk.reassignment import Reassignments


class BrokerChanges:
    def __init__(
        self, machines: Machines, reassignments: Reassignments, deletion: TopicDeletion
    ) -> None:
        self._machines = machines
        self._reassignments = reassignments
        self._deletion = deletion
        self._context = machines.context

    def process(self) -> None:
        """The registered brokers against the known ones (processBrokerChange).

        While new brokers start, the dead ones still count as live.
        """
        live, registered = self._context.live, self._context.registered
        new = {b: registered[b] for b in sorted(registered.keys() - live.keys())}
        dead = sorted(live.keys() - registered.keys())
        bounced = {
            b: registered[b]
            for b in sorted(registered.keys() & live.keys())
            if (registered[b].epoch or 0) > (live[b].epoch or 0)
        }
        if new:
            self._start(new)
        if bounced:
            self._fail(bounced)
            self._start(bounced)
        if dead:
            self._fail(dead)

    def _start(self, brokers: Mapping[int, Broker]) -> None:
        """Kafka's onBrokerStartup; a broker that was shutting down still is."""
        context, machines = self._context, self._machines
        known = [b for b in context.live if b not in brokers]
        context.live.update(brokers)
        for broker in brokers:
            context.offline_dirs.pop(broker, None)
        machines.send_metadata(brokers=known)
        machines.send_metadata(self._partitions_with_leaders(), brokers=brokers)
        replicas = context.replicas_on(brokers)
        machines.replicas.handle_state_changes(replicas, ONLINE_REPLICA)
        machines.partitions.trigger_online_partition_state_change()
        self._reassignments.resume(lambda assignment: any(b in brokers for b in assignment.target))
        self._deletion.resume_for([topic for (topic, _), _ in replicas])

    def _partitions_with_leaders(self) -> list[TopicPartition]:
        """What a new broker is told; until 2.6 also of topics being deleted."""
        context = self._context
        if context.release < releases.RELEASE_2_7:
            return list(context.leadership)
        return [tp for tp in context.leadership if not context.is_queued(tp)]

    def _fail(self, brokers: Collection[int]) -> None:
        """Kafka's onBrokerFailure."""
        context = self._context
        for broker in brokers:
            del context.live[broker]
            context.offline_dirs.pop(broker, None)
            context.shutting_down.discard(broker)
        self.replicas_go_offline(context.replicas_on(brokers))

    def replicas_go_offline(self, replicas: Collection[Replica]) -> None:
        """Kafka's onReplicasBecomeOffline: leaders first, cluster-wide, then the replicas."""
        context, machines = self._context, self._machines
        to_delete = [replica for replica in replicas if context.is_queued(replica[0])]
        to_keep = [replica for replica in replicas if not context.is_queued(replica[0])]
        leaderless = context.with_offline_leader()
        machines.partitions.handle_state_changes(leaderless, OFFLINE_PARTITION)
        results = machines.partitions.trigger_online_partition_state_change()
        machines.replicas.handle_state_changes(to_keep, OFFLINE_REPLICA)
        self._deletion.fail(to_delete)
        if context.release >= releases.RELEASE_3_1:
            nobody_was_told = not to_keep and all(results.values())
        else:
            nobody_was_told = not leaderless
        if nobody_was_told:
            machines.send_metadata()
