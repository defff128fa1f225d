"""Profile ``zk`` (Kafka 2.4 to 3.9): each event as its sequence of machine calls.

An event is one short function. Adding one means writing it and naming it in ``EVENTS``, beside the
part of the cluster it can touch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Final

from understudy.controller import releases, scope
from understudy.controller.journal import Journal
from understudy.controller.records import Assignment, TopicPartition, named_partition
from understudy.controller.scope import ALL, EVERYTHING, NOTHING, Event, EventType
from understudy.controller.states import (
    NEW_PARTITION,
    NEW_REPLICA,
    OFFLINE_REPLICA,
    ONLINE_PARTITION,
    ONLINE_REPLICA,
)
from understudy.controller.words import (
    BROKER_NOT_AVAILABLE,
    ELECTION_NOT_NEEDED,
    ELIGIBLE_LEADERS_NOT_AVAILABLE,
    INVALID_TOPIC_EXCEPTION,
    NOT_CONTROLLER,
    PREFERRED_LEADER_NOT_AVAILABLE,
    UNKNOWN_TOPIC_OR_PARTITION,
    UNSUPPORTED_VERSION,
)
from understudy.controller.zk.broker_changes import BrokerChanges
from understudy.controller.zk.context import ControllerContext, EventAbortedError
from understudy.controller.zk.deletion import TopicDeletion
from understudy.controller.zk.isr_reports import IsrReports, caught_up
from understudy.controller.zk.machines import Machines
from understudy.controller.zk.partition_machine import Strategy
from understudy.controller.zk.reassignment import Reassignments
from understudy.controller.zk.rebalance import unbalanced

FAILOVER: Final = "controller_failover"
BROKER_FAILURE: Final = "broker_failure"
BROKER_STARTUP: Final = "broker_startup"
CONTROLLED_SHUTDOWN: Final = "controlled_shutdown"
_IMBALANCE_PERCENTAGE: Final = 10  # Kafka's leader.imbalance.per.broker.percentage


class ZkController(Machines):
    """A controller of the ZooKeeper era, driven by events."""

    def __init__(self, context: ControllerContext, journal: Journal) -> None:
        super().__init__(context, journal)
        self.deletion = TopicDeletion(self)
        self.reassignments = Reassignments(self, self.deletion)
        self.isr_reports = IsrReports(self, self.reassignments)
        self.brokers = BrokerChanges(self, self.reassignments, self.deletion)
        self._has_resigned = False

    def process(self, event: Event) -> None:
        kind = event["type"]
        self.journal.begin_event(kind)
        if kind not in EVENTS:
            self.journal.event_result(None, UNSUPPORTED_VERSION)
        elif self._has_resigned and kind != FAILOVER:
            self.journal.event_result(None, NOT_CONTROLLER)
        else:
            self._run(event)

    def _run(self, event: Event) -> None:
        """A failover that is aborted ends in resignation, any other event only ends."""
        self._has_resigned = False
        is_done = self.handle(partial(EVENTS[event["type"]].run, self, event))
        if not is_done and event["type"] == FAILOVER:
            self._has_resigned = True
            self.context.forget_everything()


# --- A new controller --------------------------------------------------------------------------


def controller_failover(controller: ZkController, event: Event) -> None:
    """A new controller loads its context, starts both machines and takes up what was pending.

    (onControllerFailover. Elections pending in ZooKeeper are in no snapshot.)
    """
    start_up(controller, event)
    take_up(controller)


def start_up(
    controller: ZkController, event: Event, offline_order: Sequence[int] | None = None
) -> None:
    """The first half of a failover, which is all of it where nothing was pending.

    The replica machine shrinks ISRs and takes leadership from replicas that are not online before
    the partition machine elects, so a partition that lost its leader rises by two epochs.
    """
    _load_context(controller.context, event)
    controller.send_metadata()
    controller.replicas.start_up(offline_order)
    controller.partitions.start_up()


def take_up(controller: ZkController) -> None:
    """The second half: reassignments and deletions that were pending."""
    controller.reassignments.resume(lambda _assignment: True)
    controller.deletion.resume()


def _load_context(context: ControllerContext, event: Event) -> None:
    dead = frozenset(event.get("dead") or ())
    for broker in dead:
        context.registered.pop(broker, None)
    if event.get("forget"):
        context.shutting_down.clear()
        context.offline_dirs.clear()
    context.epoch += 1
    context.load_from_zookeeper()
    context.shutting_down &= context.live.keys()
    context.controller_id = _new_controller(context, event.get("controller"), dead)
    _check_led_are_assigned(context)
    context.queue_requested_deletions()


def _new_controller(
    context: ControllerContext, named: int | None, dead: frozenset[int]
) -> int | None:
    """The broker that takes over: the named one, else the same again, else the smallest alive."""
    if named is not None:
        return named
    if context.controller_id not in dead:
        return context.controller_id
    return min(context.live, default=None)


def _check_led_are_assigned(context: ControllerContext) -> None:
    """From 2.7 on, remembering a leader looks at the first replica, and there has to be one."""
    if context.release >= releases.RELEASE_2_7:
        for tp in context.leadership:
            if not context.assignments[tp].replicas:
                raise EventAbortedError(tp)


# --- Brokers -----------------------------------------------------------------------------------


def broker_change(controller: ZkController, event: Event) -> None:
    context = controller.context
    live = {int(broker): epoch for broker, epoch in event["live"].items()}
    context.registered = {b: r for b, r in context.registered.items() if b in live}
    for broker, epoch in live.items():
        context.register(broker, epoch)
    controller.brokers.process()


def broker_failure(controller: ZkController, event: Event) -> None:
    for broker in event["brokers"]:
        controller.context.registered.pop(broker, None)
    controller.brokers.process()


def broker_startup(controller: ZkController, event: Event) -> None:
    """Of a broker that is alive, a restart that nobody saw."""
    context = controller.context
    brokers = event["brokers"]
    epochs = event.get("epochs") or [None] * len(brokers)
    for broker, epoch in zip(brokers, epochs, strict=True):
        context.register(broker, context.highest_broker_epoch + 1 if epoch is None else epoch)
    controller.brokers.process()


def log_dir_failure(controller: ZkController, event: Event) -> None:
    """A broker's notification, then its answer to the leader-and-isr request that follows.

    The answer names what was asked: a storage error for the failed ones and for those that were
    offline before, which so become OnlineReplica and stay offline.
    """
    if event.get("partitions") is None:  # directories have ids only in the quorum's world
        controller.journal.event_result(None, UNSUPPORTED_VERSION)
        return
    context, broker = controller.context, event["broker"]
    batch = controller.replicas.handle_state_changes(context.replicas_on([broker]), ONLINE_REPLICA)
    asked = [] if batch is None else batch.leader_and_isr_sent_to(broker)
    failed = {named_partition(name) for name in event["partitions"]}
    offline = context.offline_dirs.setdefault(broker, set())
    fresh = [tp for tp in asked if tp in failed and tp not in offline]
    if fresh:
        offline.update(fresh)
        controller.brokers.replicas_go_offline([(tp, broker) for tp in fresh])


def controlled_shutdown(controller: ZkController, event: Event) -> None:
    """Leadership moves away, follower replicas stop; the answer is what the broker still leads."""
    context, broker = controller.context, event["broker"]
    if broker not in context.live:
        controller.journal.event_result(None, BROKER_NOT_AVAILABLE)
        return
    context.shutting_down.add(broker)
    led: list[TopicPartition] = []
    followed: list[TopicPartition] = []
    for tp in context.partitions_on(broker):
        record = context.leadership.get(tp)
        if record is None or len(context.replicas(tp)) == 1 or context.is_queued(tp):
            continue
        (led if record.leader == broker else followed).append(tp)
    controller.partitions.handle_state_changes(led, ONLINE_PARTITION, Strategy.CONTROLLED_SHUTDOWN)
    controller.stop_replicas(broker, followed)
    controller.replicas.handle_state_changes([(tp, broker) for tp in followed], OFFLINE_REPLICA)
    for tp in context.led_by(broker):
        if len(context.replicas(tp)) > 1 and not context.is_queued(tp):
            controller.journal.event_result(tp, None)


# --- Topics and partitions ---------------------------------------------------------------------


def topic_change(controller: ZkController, event: Event) -> None:
    """Topics vanish from the listing, or appear in it; states of the vanished ones stay behind."""
    context = controller.context
    for topic in context.topics.intersection(event.get("removed") or ()):
        for tp in context.partitions_of(topic):
            context.znodes.pop(tp, None)
        context.remove_topic(topic)
    new: dict[TopicPartition, Assignment] = {}
    for topic, partitions in (event.get("topics") or {}).items():
        if topic not in context.topics:
            context.topics.add(topic)
            new |= _assignments(topic, partitions)
    _create_partitions(controller, new)


def partition_change(controller: ZkController, event: Event) -> None:
    """Partitions appear in a topic's znode; while the topic is queued they are taken out again."""
    context, topic = controller.context, event["topic"]
    if topic not in context.topics:
        return
    named = _assignments(topic, event["partitions"])
    new = {tp: each for tp, each in named.items() if not context.replicas(tp)}
    if not new:
        return
    if topic not in context.queued_topics:
        _create_partitions(controller, new)
        return
    for tp in context.restore_topic_znode(topic):
        controller.journal.assignment_written(tp, context.assignment(tp))


def _assignments(
    topic: str, partitions: Mapping[str, Iterable[int]]
) -> dict[TopicPartition, Assignment]:
    by_number = sorted((int(number), tuple(replicas)) for number, replicas in partitions.items())
    return {(topic, number): Assignment(replicas) for number, replicas in by_number}


def _create_partitions(
    controller: ZkController, assignments: Mapping[TopicPartition, Assignment]
) -> None:
    """Kafka's onNewPartitionCreation; replicas on dead brokers end as OnlineReplica too."""
    for tp, assignment in assignments.items():
        controller.context.add_partition(tp, assignment)
    replicas = controller.context.replicas_of(assignments)
    controller.partitions.handle_state_changes(assignments, NEW_PARTITION)
    controller.replicas.handle_state_changes(replicas, NEW_REPLICA)
    controller.partitions.handle_state_changes(assignments, ONLINE_PARTITION, Strategy.OFFLINE)
    controller.replicas.handle_state_changes(replicas, ONLINE_REPLICA)


def delete_topics(controller: ZkController, event: Event) -> None:
    controller.deletion.request(event["topics"])


def stop_replica_response(controller: ZkController, event: Event) -> None:
    """A broker's answer to being told to delete; one that was not asked says nothing."""
    context, broker = controller.context, event["broker"]
    replicas = [(named_partition(name), broker) for name in event["partitions"]]
    answered = [
        (tp, broker)
        for tp, broker in replicas
        if tp[0] in context.deletion_started and (tp, broker) in context.asked_to_delete
    ]
    if not answered:
        return
    if event.get("error") in {None, "NONE"}:
        controller.deletion.complete(answered)
    else:
        controller.deletion.fail(answered)


# --- Reassignments and ISRs --------------------------------------------------------------------


def reassign(controller: ZkController, event: Event) -> None:
    for name, target in event["partitions"].items():
        tp = named_partition(name)
        controller.journal.event_result(tp, controller.reassignments.request(tp, tuple(target)))


def cancel_reassignment(controller: ZkController, event: Event) -> None:
    for name in event["partitions"]:
        tp = named_partition(name)
        controller.journal.event_result(tp, controller.reassignments.request(tp, None))


def isr_change(controller: ZkController, event: Event) -> None:
    """A leader that is gone, or whose log directory is, reports nothing."""
    context, tp = controller.context, named_partition(event["partition"])
    record = context.leadership.get(tp)
    if record is not None and context.is_online_or_shutting_down(record.leader, tp):
        controller.isr_reports.receive({tp: tuple(event["isr"])})


def catch_up(controller: ZkController, event: Event) -> None:
    for report in caught_up(controller.context, tuple(event["brokers"])):
        controller.isr_reports.receive(report)


# --- Elections ---------------------------------------------------------------------------------


def preferred_election(controller: ZkController, event: Event) -> None:
    context = controller.context

    def is_needed(tp: TopicPartition) -> bool:
        return context.leadership[tp].leader != context.replicas(tp)[0]

    _elect(controller, event, is_needed, Strategy.PREFERRED, PREFERRED_LEADER_NOT_AVAILABLE)


def unclean_election(controller: ZkController, event: Event) -> None:
    """Needed where the leader's broker is gone; its log directory is not looked at."""
    context = controller.context

    def is_needed(tp: TopicPartition) -> bool:
        return not context.is_live(context.leadership[tp].leader)

    _elect(controller, event, is_needed, Strategy.OFFLINE, ELIGIBLE_LEADERS_NOT_AVAILABLE)


def _elect(
    controller: ZkController,
    event: Event,
    is_needed: Callable[[TopicPartition], bool],
    strategy: Strategy,
    failure: str,
) -> None:
    """Kafka's processReplicaLeaderElection, asked by an administrator."""
    context, journal = controller.context, controller.journal
    electable: list[TopicPartition] = []
    answers: dict[TopicPartition, str] = {}
    is_for_all = event["partitions"] == ALL
    for tp in _all_led(context) if is_for_all else map(named_partition, event["partitions"]):
        if tp not in context.assignments:
            answers[tp] = UNKNOWN_TOPIC_OR_PARTITION
        elif context.is_queued(tp):
            answers[tp] = INVALID_TOPIC_EXCEPTION
        elif tp not in context.leadership or not context.replicas(tp):
            raise EventAbortedError(tp)
        elif is_needed(tp):
            electable.append(tp)
        elif not is_for_all:  # the broker leaves these answers out
            answers[tp] = ELECTION_NOT_NEEDED
    results = controller.partitions.handle_state_changes(
        electable, ONLINE_PARTITION, strategy, allow_unclean=strategy is Strategy.OFFLINE
    )
    for tp, error in results.items():
        journal.event_result(tp, None if error is None else failure)
    for tp, answer in answers.items():
        journal.event_result(tp, answer)


def _all_led(context: ControllerContext) -> list[TopicPartition]:
    return [
        tp for tp in context.assignments if tp in context.leadership and not context.is_queued(tp)
    ]


def auto_rebalance(controller: ZkController, event: Event) -> None:
    percentage = event.get("percentage")
    for partitions in unbalanced(
        controller.context, _IMBALANCE_PERCENTAGE if percentage is None else percentage
    ):
        controller.partitions.handle_state_changes(partitions, ONLINE_PARTITION, Strategy.PREFERRED)


def unclean_enabled(controller: ZkController, event: Event) -> None:
    """Unclean election was switched on: what is offline or new is tried again."""
    unclean, topic = controller.context.unclean, event.get("topic")
    if topic is None:
        unclean.cluster = True
    else:
        unclean.by_topic[topic] = True
    controller.partitions.trigger_online_partition_state_change(topic)


# --- All of them -------------------------------------------------------------------------------


# A broker that starts is sent the metadata of the whole cluster.
EVENTS: Final[dict[str, EventType[ZkController]]] = {
    FAILOVER: EventType(controller_failover, scope.everything),
    "broker_change": EventType(broker_change, scope.everything),
    BROKER_FAILURE: EventType(broker_failure, scope.its_brokers),
    BROKER_STARTUP: EventType(broker_startup, scope.everything),
    "log_dir_failure": EventType(log_dir_failure, scope.its_broker),
    CONTROLLED_SHUTDOWN: EventType(controlled_shutdown, scope.its_broker),
    "topic_change": EventType(topic_change, scope.its_topics),
    "partition_change": EventType(partition_change, scope.its_topic),
    "delete_topics": EventType(delete_topics, scope.its_topics),
    "stop_replica_response": EventType(stop_replica_response, scope.its_partitions),
    "reassign": EventType(reassign, scope.its_partitions),
    "cancel_reassignment": EventType(cancel_reassignment, scope.its_partitions),
    "isr_change": EventType(isr_change, scope.its_partition),
    "catch_up": EventType(catch_up, scope.its_brokers),
    "preferred_election": EventType(
        preferred_election, scope.all_or(EVERYTHING, scope.its_partitions)
    ),
    "unclean_election": EventType(unclean_election, scope.all_or(NOTHING, scope.its_partitions)),
    "auto_rebalance": EventType(auto_rebalance, scope.everything),
    "unclean_enabled": EventType(unclean_enabled, scope.nothing_else),
}

scope_of: Final = partial(scope.of_events, EVENTS)
