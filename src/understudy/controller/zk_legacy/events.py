"""Profile ``zk-legacy`` (Kafka 0.9 to 1.0): each event as its sequence of machine calls.

An event is one short function, named in ``EVENTS`` beside the part of the cluster it can touch.
What Kafka would throw out of an event's handler ends the event there, and what was done by then
stays. Partitions are taken by topic, then partition, wherever Kafka's own order is an accident of
hashing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import partial
from typing import Final

from understudy.controller import scope
from understudy.controller.records import Ids, Replica, TopicPartition, named_partition
from understudy.controller.scope import ALL, EVERYTHING, Event, EventType, Scope
from understudy.controller.states import (
    NEW_PARTITION,
    NEW_REPLICA,
    OFFLINE_PARTITION,
    OFFLINE_REPLICA,
    ONLINE_PARTITION,
    ONLINE_REPLICA,
)
from understudy.controller.words import (
    BROKER_NOT_AVAILABLE,
    NOT_CONTROLLER,
    UNCLEAN_SETTING,
    UNKNOWN_SERVER_ERROR,
    UNSUPPORTED_VERSION,
)
from understudy.controller.zk_legacy.context import Endpoints, KafkaError, LegacyContext
from understudy.controller.zk_legacy.deletion import LegacyTopicDeletion
from understudy.controller.zk_legacy.journal import LegacyJournal
from understudy.controller.zk_legacy.partition_machine import LegacyPartitionStateMachine
from understudy.controller.zk_legacy.reassignment import LegacyReassignment
from understudy.controller.zk_legacy.replica_machine import LegacyReplicaStateMachine
from understudy.controller.zk_legacy.request_batch import LegacyRequestBatch
from understudy.controller.zk_legacy.selectors import (
    select_controlled_shutdown_leader,
    select_preferred_leader,
)

FAILOVER: Final = "controller_failover"
DEFAULT_IMBALANCE_PERCENTAGE: Final = 10


class LegacyController:
    """A controller of Kafka 0.9 to 1.0, driven by events."""

    def __init__(self, context: LegacyContext, journal: LegacyJournal) -> None:
        self.context = context
        self.journal = journal
        self.replicas = LegacyReplicaStateMachine(context, journal)
        self.partitions = LegacyPartitionStateMachine(context, journal)
        self.deletion = LegacyTopicDeletion(
            context,
            journal,
            replicas=self.replicas,
            partitions=self.partitions,
            send_metadata=self.send_metadata,
        )
        self.reassignment = LegacyReassignment(
            context,
            journal,
            replicas=self.replicas,
            partitions=self.partitions,
            deletion=self.deletion,
            send_metadata=self.send_metadata,
        )
        self._has_resigned = False

    def settle(self) -> None:
        """The state of a controller that runs for a while and has nothing in progress."""
        load_topics(self.context)
        self.context.reassigning = dict(self.context.zookeeper.reassignments)
        self.deletion.load()
        self.replicas.initialize_states(not_online=OFFLINE_REPLICA)
        self.partitions.initialize_states()

    def process(self, event: Event) -> None:
        kind = event["type"]
        self.journal.begin_event(kind)
        if self._has_resigned and kind != FAILOVER:
            self.journal.event_result(None, NOT_CONTROLLER)
            return
        self._has_resigned = False
        try:
            if kind in EVENTS:
                EVENTS[kind].run(self, event)
            else:
                cannot_be_done(self, event)
            self.deletion.run_thread()
        except KafkaError:
            self.journal.event_result(None, UNKNOWN_SERVER_ERROR)
            self._has_resigned = kind == FAILOVER

    def send_metadata(self, partitions: Collection[TopicPartition] = ()) -> None:
        """A batch of the controller's own; without partitions it tells everybody everything."""
        batch = LegacyRequestBatch(self.context, self.journal)
        batch.add_metadata(partitions)
        batch.send()


def cannot_be_done(controller: LegacyController, _event: Event) -> None:
    """Say that this release has no such thing."""
    controller.journal.event_result(None, UNSUPPORTED_VERSION)


# --- A new controller --------------------------------------------------------------------------


def controller_failover(controller: LegacyController, event: Event) -> None:
    """A new controller loads its context, starts both machines and resumes what is pending.

    Nobody leaves an ISR while the replica machine starts, so a partition that lost its leader
    rises by one epoch only.
    """
    context = controller.context
    _take_over(context, event)
    load_topics(context)
    controller.reassignment.load()
    controller.deletion.load()
    if context.rules.metadata_first:
        controller.send_metadata()
    controller.replicas.start_up()
    controller.partitions.start_up()
    for tp, target in sorted(context.reassigning.items()):
        controller.reassignment.initiate(tp, target)
    if not context.rules.metadata_first:
        controller.send_metadata()
    controller.deletion.resume()


def _take_over(context: LegacyContext, event: Event) -> None:
    dead = event.get("dead") or ()
    for broker in dead:
        context.live.pop(broker, None)
    if event.get("forget"):
        context.shutting_down.clear()
        context.offline_dirs.clear()
    context.shutting_down &= context.live.keys()
    if event.get("controller") is not None:
        context.controller_id = event["controller"]
    elif context.controller_id in dead:
        context.controller_id = min(context.live, default=context.controller_id)
    context.epoch += 1


def load_topics(context: LegacyContext) -> None:
    """Everything the controller knows of topics, read from ZooKeeper."""
    zookeeper = context.zookeeper
    context.topics = set(zookeeper.topics)
    context.watched_topics = set(zookeeper.topics)
    context.assignments = {
        (topic, partition): replicas
        for topic, partitions in sorted(zookeeper.topics.items())
        for partition, replicas in sorted(partitions.items())
    }
    context.leadership = {
        tp: zookeeper.states[tp] for tp in context.assignments if tp in zookeeper.states
    }
    context.partition_states.clear()
    context.replica_states.clear()


# --- Brokers -----------------------------------------------------------------------------------


def broker_change(controller: LegacyController, event: Event) -> None:
    """Only which ids are registered counts: a broker with a new epoch is not noticed."""
    _registered(controller, {int(broker) for broker in event["live"]})


def broker_failure(controller: LegacyController, event: Event) -> None:
    _registered(controller, controller.context.live.keys() - event["brokers"])


def broker_startup(controller: LegacyController, event: Event) -> None:
    _registered(controller, controller.context.live.keys() | event["brokers"])


def _registered(controller: LegacyController, current: Collection[int]) -> None:
    """Dead brokers are gone already when the new ones are welcomed."""
    context = controller.context
    before = context.live
    context.live = {
        broker: context.known_brokers.get(broker, Endpoints()) for broker in sorted(current)
    }
    new = sorted(context.live.keys() - before)
    dead = sorted(before.keys() - context.live)
    if new:
        _on_broker_startup(controller, new)
    if dead:
        _on_broker_failure(controller, dead)


def _on_broker_startup(controller: LegacyController, new: list[int]) -> None:
    context = controller.context
    for broker in new:
        context.offline_dirs.pop(broker, None)
    controller.send_metadata()
    on_new = context.replicas_on(new)
    controller.replicas.handle_state_changes(on_new, ONLINE_REPLICA)
    controller.partitions.trigger_online_partition_state_change()
    moving_there = [tp for tp, target in context.reassigning.items() if set(target) & set(new)]
    for tp in sorted(moving_there):
        controller.reassignment.advance(tp)
    controller.deletion.resume_topics(tp[0] for tp, _ in on_new)


def _on_broker_failure(controller: LegacyController, dead: list[int]) -> None:
    context = controller.context
    for broker in dead:
        context.offline_dirs.pop(broker, None)
    context.shutting_down.difference_update(dead)
    _on_replicas_offline(controller, context.replicas_on(dead), dead)


def _on_replicas_offline(
    controller: LegacyController, replicas: Iterable[Replica], dead: Collection[int] = ()
) -> None:
    """Elections first, so that a dead leader has usually left the ISR before it is removed."""
    context = controller.context
    replicas = list(replicas)
    leaderless = [
        tp
        for tp, record in context.leadership.items()
        if not context.is_queued(tp)
        and (
            not context.is_online(record.leader, tp)
            if context.rules.offline_leader_by_liveness
            else record.leader in dead
        )
    ]
    controller.partitions.handle_state_changes(leaderless, OFFLINE_PARTITION)
    controller.partitions.trigger_online_partition_state_change()
    kept = [replica for replica in replicas if not context.is_queued(replica[0])]
    controller.replicas.handle_state_changes(kept, OFFLINE_REPLICA)
    controller.deletion.fail(replica for replica in replicas if context.is_queued(replica[0]))
    if not leaderless:
        controller.send_metadata()


def log_dir_failure(controller: LegacyController, event: Event) -> None:
    """The controller asks the broker about all its replicas, and the answer tells it."""
    context, broker = controller.context, event["broker"]
    if not context.rules.log_dirs:
        cannot_be_done(controller, event)
        return
    batch = controller.replicas.handle_state_changes(context.replicas_on([broker]), ONLINE_REPLICA)
    asked = set() if batch is None else batch.asked(broker)
    if not asked:
        return
    offline = context.offline_dirs.setdefault(broker, set())
    fresh = asked & {named_partition(name) for name in event["partitions"]} - offline
    offline |= fresh
    if fresh:
        _on_replicas_offline(controller, [(tp, broker) for tp in sorted(fresh)])


def controlled_shutdown(controller: LegacyController, event: Event) -> None:
    """Leadership moves away and the broker leaves ISRs, partition by partition, queued or not."""
    context, broker = controller.context, event["broker"]
    if broker not in context.live:
        controller.journal.event_result(None, BROKER_NOT_AVAILABLE)
        return
    context.shutting_down.add(broker)
    for tp, replicas in sorted(context.assignments.items()):
        record = context.leadership.get(tp)
        if record is None or len(replicas) == 1 or broker not in replicas:
            continue
        if record.leader == broker:
            controller.partitions.handle_state_changes(
                [tp], ONLINE_PARTITION, select_controlled_shutdown_leader
            )
        else:
            batch = LegacyRequestBatch(context, controller.journal)
            batch.add_stop_replica(broker, tp, delete=False)
            batch.send()
            controller.replicas.handle_state_changes([(tp, broker)], OFFLINE_REPLICA)
    led = sorted(tp for tp, record in context.leadership.items() if record.leader == broker)
    for tp in [tp for tp in led if len(context.assigned(tp)) > 1]:
        controller.journal.event_result(tp, None)


# --- Topics and partitions ---------------------------------------------------------------------


def topic_change(controller: LegacyController, event: Event) -> None:
    """A topic that vanished loses its assignment only: record and states stay behind."""
    context, zookeeper = controller.context, controller.context.zookeeper
    for topic in event.get("removed") or ():
        zookeeper.remove_topic(topic)
    for topic, partitions in (event.get("topics") or {}).items():
        zookeeper.topics.setdefault(topic, _assignment(partitions))
    new = zookeeper.topics.keys() - context.topics
    vanished = context.topics - zookeeper.topics.keys()
    context.topics = set(zookeeper.topics)
    context.assignments = {
        tp: replicas for tp, replicas in context.assignments.items() if tp[0] not in vanished
    }
    context.watched_topics |= new
    added = {
        (topic, partition): replicas
        for topic in new
        for partition, replicas in zookeeper.topics[topic].items()
    }
    _on_new_partitions(controller, added)


def partition_change(controller: LegacyController, event: Event) -> None:
    context, topic = controller.context, event["topic"]
    listed = context.zookeeper.topics.get(topic)
    if listed is None:
        return
    for partition, replicas in _assignment(event["partitions"]).items():
        listed.setdefault(partition, replicas)
    added = {
        (topic, partition): replicas
        for partition, replicas in listed.items()
        if (topic, partition) not in context.assignments
    }
    if topic not in context.queued_topics:
        _on_new_partitions(controller, added)


def _on_new_partitions(controller: LegacyController, added: Mapping[TopicPartition, Ids]) -> None:
    """Replicas on dead brokers end as online ones, too."""
    controller.context.assignments.update(added)
    replicas = [(tp, broker) for tp, brokers in sorted(added.items()) for broker in brokers]
    controller.partitions.handle_state_changes(added, NEW_PARTITION)
    controller.replicas.handle_state_changes(replicas, NEW_REPLICA)
    controller.partitions.handle_state_changes(added, ONLINE_PARTITION)
    controller.replicas.handle_state_changes(replicas, ONLINE_REPLICA)


def reassign(controller: LegacyController, event: Event) -> None:
    """Each partition is put into the znode and handled on its own; nothing is answered."""
    for name, target in event["partitions"].items():
        controller.reassignment.request(named_partition(name), tuple(target))


def isr_change(controller: LegacyController, event: Event) -> None:
    tp = named_partition(event["partition"])
    znode = controller.context.zookeeper.states.get(tp)
    if znode is not None and controller.context.is_online_or_shutting_down(znode.leader, tp):
        _report_isrs(controller, {tp: tuple(event["isr"])})


def catch_up(controller: LegacyController, event: Event) -> None:
    """Leaders in ascending order, each with all its partitions in one report."""
    context = controller.context
    reports: dict[int, dict[TopicPartition, Ids]] = {}
    for tp, replicas in sorted(context.assignments.items()):
        znode = context.zookeeper.states.get(tp)
        if znode is None or context.is_queued(tp) or not context.is_online(znode.leader, tp):
            continue
        joining = tuple(
            broker
            for broker in dict.fromkeys(event["brokers"])
            if broker in replicas and broker not in znode.isr and context.is_online(broker, tp)
        )
        if joining:
            reports.setdefault(znode.leader, {})[tp] = (*znode.isr, *joining)
    for leader in sorted(reports):
        _report_isrs(controller, reports[leader])


def _report_isrs(controller: LegacyController, isrs: Mapping[TopicPartition, Ids]) -> None:
    """A leader writes the state znodes itself, then tells the controller about all of them."""
    context = controller.context
    states = context.zookeeper.states
    for tp, isr in isrs.items():
        states[tp] = states[tp]._replace(isr=isr, partition_epoch=states[tp].partition_epoch + 1)
    for tp in sorted(isrs):
        controller.reassignment.isr_changed(tp)
    context.leadership.update({tp: states[tp] for tp in isrs if tp in states})
    controller.send_metadata(isrs)


# --- Elections ---------------------------------------------------------------------------------


def preferred_election(controller: LegacyController, event: Event) -> None:
    context = controller.context
    asked = event["partitions"]
    named = context.zookeeper.states if asked == ALL else map(named_partition, asked)
    partitions = sorted({tp for tp in named if not context.is_queued(tp)})
    _elect_preferred(controller, partitions)


def unclean_enabled(controller: LegacyController, event: Event) -> None:
    """A topic's setting counts from its next election on; the broker's own needs a restart."""
    if event.get("topic") is None:
        cannot_be_done(controller, event)
    else:
        controller.context.settings.set_for_topic(UNCLEAN_SETTING, event["topic"], value=True)


def auto_rebalance(controller: LegacyController, event: Event) -> None:
    """One election after the other, and none at all while a reassignment is in flight."""
    context = controller.context
    percentage = event.get("percentage")
    allowed = (DEFAULT_IMBALANCE_PERCENTAGE if percentage is None else percentage) / 100
    by_preferred: dict[int, list[TopicPartition]] = {}
    for tp, replicas in sorted(context.assignments.items()):
        if not context.is_queued(tp):
            if not replicas:
                raise KafkaError("a partition has no first replica")
            by_preferred.setdefault(replicas[0], []).append(tp)
    imbalanced = []
    for broker, group in by_preferred.items():
        elsewhere = [
            tp
            for tp in group
            if tp in context.leadership and context.leadership[tp].leader != broker
        ]
        if len(elsewhere) / len(group) > allowed:
            imbalanced += [tp for tp in elsewhere if context.is_online(broker, tp)]
    for tp in sorted(imbalanced):
        if not context.reassigning and tp[0] in context.topics:
            _elect_preferred(controller, [tp])


def _elect_preferred(controller: LegacyController, partitions: Collection[TopicPartition]) -> None:
    """Kafka looks at the outcome afterwards, and stumbles over partitions that have none."""
    context = controller.context
    controller.partitions.handle_state_changes(
        partitions, ONLINE_PARTITION, select_preferred_leader
    )
    if any(tp not in context.leadership or not context.assigned(tp) for tp in partitions):
        raise KafkaError("a partition has no leader or no first replica")


# --- Deletion ----------------------------------------------------------------------------------


def delete_topics(controller: LegacyController, event: Event) -> None:
    """All requests in ZooKeeper are looked at, old ones too.

    A reassignment in flight halts the deletion of topics that were queued before, not of new ones.
    """
    context = controller.context
    requests = context.zookeeper.delete_requests
    requests.update(event["topics"])
    requests &= context.topics
    if not context.deletes_topics:
        requests.clear()
    elif requests:
        controller.deletion.mark_ineligible(tp[0] for tp in context.reassigning)
        controller.deletion.enqueue(sorted(requests))


def stop_replica_response(controller: LegacyController, event: Event) -> None:
    """Every partition was asked for in a request of its own, and is an answer of its own."""
    for name in event["partitions"]:
        replica = (named_partition(name), event["broker"])
        if replica not in controller.deletion.asked:
            continue
        if event.get("error"):
            controller.deletion.fail([replica])
        else:
            controller.deletion.complete([replica])


def _assignment(partitions: Mapping[str, Iterable[int]]) -> dict[int, Ids]:
    return {int(partition): tuple(replicas) for partition, replicas in partitions.items()}


# --- What an event can touch -------------------------------------------------------------------


def _topics_of_its_partitions(event: Event) -> Scope:
    """A topic's znode is written as a whole."""
    return Scope(topics=frozenset(named_partition(name)[0] for name in event["partitions"]))


# Brokers that come or go make the controller tell everybody about every partition.
EVENTS: Final[dict[str, EventType[LegacyController]]] = {
    FAILOVER: EventType(controller_failover, scope.everything),
    "broker_change": EventType(broker_change, scope.everything),
    "broker_failure": EventType(broker_failure, scope.everything),
    "broker_startup": EventType(broker_startup, scope.everything),
    "log_dir_failure": EventType(log_dir_failure, scope.everything),
    "controlled_shutdown": EventType(controlled_shutdown, scope.its_broker),
    "topic_change": EventType(topic_change, scope.its_topics),
    "partition_change": EventType(partition_change, scope.its_topic),
    "reassign": EventType(reassign, _topics_of_its_partitions),
    "isr_change": EventType(isr_change, scope.its_partition),
    "catch_up": EventType(catch_up, scope.its_brokers),
    "preferred_election": EventType(
        preferred_election, scope.all_or(EVERYTHING, scope.its_partitions)
    ),
    "auto_rebalance": EventType(auto_rebalance, scope.everything),
    "delete_topics": EventType(delete_topics, scope.its_topics),
    "stop_replica_response": EventType(stop_replica_response, scope.its_partitions),
    "unclean_enabled": EventType(unclean_enabled, scope.nothing_else),
}

scope_of: Final = partial(scope.of_events, EVENTS)
