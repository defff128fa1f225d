"""Brokers come and go, and their log directories: each event as operations of the controller."""

from __future__ import annotations

from collections.abc import Iterable

from understudy.controller.kraft.brokers import Registration, are_registrable, in_kafka_order
from understudy.controller.kraft.change import Asked
from understudy.controller.kraft.cluster import Cluster
from understudy.controller.kraft.controller import Controller, unsupported
from understudy.controller.kraft.errors import RefusedError
from understudy.controller.kraft.operation import Operation
from understudy.controller.kraft.records import (
    BrokerRegistered,
    BrokerUnregistered,
    directories_left,
    entering_controlled_shutdown,
    fencing,
)
from understudy.controller.kraft.words import (
    BROKER_ID_NOT_REGISTERED,
    DUPLICATE_BROKER_REGISTRATION,
    INVALID_REGISTRATION,
    NOT_LEADER_OR_FOLLOWER,
    STALE_BROKER_EPOCH,
    UNKNOWN_TOPIC_ID,
)
from understudy.controller.records import TopicPartition, named_partition
from understudy.controller.scope import Event
from understudy.controller.words import (
    UNKNOWN_SERVER_ERROR,
    UNKNOWN_TOPIC_OR_PARTITION,
    UNSUPPORTED_VERSION,
)


def fence(controller: Controller, event: Event) -> None:
    for broker_id in event["brokers"]:
        broker = controller.cluster.brokers.get(broker_id)
        if broker is None:
            controller.journal.refused(UNKNOWN_SERVER_ERROR, broker_id)
        else:
            _fence(controller, broker)


def broker_failure(controller: Controller, event: Event) -> None:
    """Sessions end, one after the other: each is fenced seeing the one before."""
    for broker_id in event["brokers"]:
        broker = controller.cluster.brokers.get(broker_id)
        if broker is not None and not broker.fenced:
            _fence(controller, broker)


def unfence(controller: Controller, event: Event) -> None:
    for broker_id in event["brokers"]:
        broker = controller.cluster.brokers.get(broker_id)
        if broker is None:
            controller.journal.refused(STALE_BROKER_EPOCH, broker_id)
        elif broker.fenced:
            unfence_broker(controller, broker)


def controlled_shutdown(controller: Controller, event: Event) -> None:
    broker = controller.cluster.brokers.get(event["broker"])
    if broker is None:
        controller.journal.refused(STALE_BROKER_EPOCH, event["broker"])
        return
    operation = controller.operation()
    _want_shutdown(controller.cluster, operation, broker)
    operation.commit()


def unregister(controller: Controller, event: Event) -> None:
    """The broker leaves ISRs and leadership; the replica lists keep its id."""
    cluster = controller.cluster
    for broker_id in event["brokers"]:
        broker = cluster.brokers.get(broker_id)
        if broker is None:
            controller.journal.refused(BROKER_ID_NOT_REGISTERED, broker_id)
            continue
        operation = controller.operation()
        operation.update_leaders(cluster.by_isr.of(broker_id), leaving=broker_id)
        if cluster.rules.looks_into_elr:
            operation.update_leaders(cluster.by_elr.of(broker_id), leaving=broker_id)
        operation.write(BrokerUnregistered(broker_id, broker.epoch))
        controller.commit_request(operation, broker_id)


def broker_startup(controller: Controller, event: Event) -> None:
    """A new incarnation registers, and its heartbeat unfences it, unless it stays fenced."""
    epochs = event.get("epochs") or [None] * len(event["brokers"])
    log_dirs = event.get("log_dirs") or {}
    for broker_id, epoch in zip(event["brokers"], epochs, strict=True):
        error = register(
            controller,
            broker_id,
            epoch,
            log_dirs.get(str(broker_id)),
            is_clean=bool(event.get("clean")),
        )
        if error is not None:
            controller.journal.refused(error, broker_id)
        elif not event.get("fenced"):
            unfence_broker(controller, controller.cluster.brokers[broker_id])


def log_dir_failure(controller: Controller, event: Event) -> None:
    """A heartbeat with offline directories; what it says of the broker itself comes first."""
    cluster = controller.cluster
    if "dirs" not in event:
        unsupported(controller, event)
        return
    broker = cluster.brokers.get(event["broker"])
    if broker is None:
        controller.journal.refused(STALE_BROKER_EPOCH, event["broker"])
        return
    operation = controller.operation()
    if broker.shutting_down and not broker.fenced:
        _want_shutdown(cluster, operation, broker)
    if cluster.rules.has_directories:
        _lose_directories(cluster, operation, broker, event["dirs"])
    operation.commit()


def assign_dirs(controller: Controller, event: Event) -> None:
    """Replicas of a broker are in these directories; one that is offline costs the ISR place."""
    cluster, journal = controller.cluster, controller.journal
    if not cluster.rules.has_directories:
        journal.refused(UNSUPPORTED_VERSION)
        return
    broker = cluster.brokers.get(event["broker"])
    if broker is None:
        journal.refused(STALE_BROKER_EPOCH)
        return
    operation = controller.operation()
    in_offline_directory = []
    errors = {}
    for name, directory in event["partitions"].items():
        tp = named_partition(name)
        error = _assign_directory(cluster, operation, broker, tp, directory)
        if error is not None:
            errors[tp] = error
        elif not broker.has_online(directory):
            in_offline_directory.append(tp)
    operation.update_leaders(in_offline_directory, leaving=broker.broker_id)
    operation.commit()
    for tp, error in errors.items():
        journal.answer(tp, error, broker.broker_id)


def _fence(controller: Controller, broker: Registration) -> None:
    operation = controller.operation()
    _fence_in(controller.cluster, operation, broker)
    operation.commit()


def _fence_in(cluster: Cluster, operation: Operation, broker: Registration) -> None:
    operation.update_leaders(cluster.by_isr.of(broker.broker_id), leaving=broker.broker_id)
    operation.write(fencing(broker, cluster.rules, fenced=True))


def unfence_broker(controller: Controller, broker: Registration) -> None:
    cluster = controller.cluster
    operation = controller.operation()
    operation.write(fencing(broker, cluster.rules, fenced=False))
    operation.update_leaders(sorted(cluster.leaderless), returning=broker.broker_id)
    operation.commit()


def _want_shutdown(cluster: Cluster, operation: Operation, broker: Registration) -> None:
    """A heartbeat that wants to shut down (BrokerHeartbeatManager.calculateNextBrokerState).

    Every active broker has passed the shutdown's offset, so only leaderships hold it up.
    """
    broker_id = broker.broker_id
    if broker.fenced or not cluster.leads_something(broker_id):
        _fence_in(cluster, operation, broker)
    elif broker_id not in cluster.followed_shutdowns:
        cluster.followed_shutdowns.add(broker_id)
        if cluster.rules.records_controlled_shutdown and not broker.shutting_down:
            operation.write(entering_controlled_shutdown(broker))
        operation.update_leaders(cluster.by_isr.of(broker_id), leaving=broker_id)


def register(
    controller: Controller,
    broker_id: int,
    epoch: int | None,
    log_dirs: list[str] | None,
    *,
    is_clean: bool,
) -> str | None:
    """Register a new incarnation of a broker; Kafka's error, or None when it is accepted."""
    cluster = controller.cluster
    known = cluster.brokers.get(broker_id)
    if known is not None and not known.fenced:
        return DUPLICATE_BROKER_REGISTRATION
    directories: Iterable[str] = ()
    if cluster.rules.has_directories:
        directories = (known.directories if known else ()) if log_dirs is None else log_dirs
        if not are_registrable(tuple(directories), broker_id, cluster.brokers.values()):
            return INVALID_REGISTRATION
    operation = controller.operation()
    if cluster.rules.registration_cleans_isr:
        if cluster.rules.elr and not (is_clean and known is not None):
            for index in (cluster.by_isr, cluster.by_elr):
                operation.update_leaders(index.of(broker_id), unclean_shutdown=broker_id)
        else:
            operation.update_leaders(cluster.by_isr.of(broker_id), leaving=broker_id)
    operation.write(
        BrokerRegistered(
            Registration(
                broker_id,
                cluster.newest_broker_epoch + 1 if epoch is None else epoch,
                fenced=True,
                shutting_down=False,
                rack=known.rack if known else None,
                directories=in_kafka_order(directories),
            )
        )
    )
    operation.commit()
    return None


def _lose_directories(
    cluster: Cluster, operation: Operation, broker: Registration, offline: list[str]
) -> None:
    lost = [d for d in offline if d in broker.directories]
    if not cluster.directories_left_behind.isdisjoint(lost):
        raise RefusedError(UNKNOWN_SERVER_ERROR)  # Kafka looks for the partition that is gone
    for directory in lost:
        operation.update_leaders(cluster.by_directory.of(directory), leaving=broker.broker_id)
    if lost:
        online = tuple(d for d in broker.directories if d not in lost)
        operation.write(directories_left(broker, online))


def _assign_directory(
    cluster: Cluster, operation: Operation, broker: Registration, tp: TopicPartition, directory: str
) -> str | None:
    if tp[0] not in cluster.topics:
        return UNKNOWN_TOPIC_ID
    partition = cluster.get(tp)
    if partition is None:
        return UNKNOWN_TOPIC_OR_PARTITION
    if broker.broker_id not in partition.replicas:
        return NOT_LEADER_OR_FOLLOWER
    operation.change(
        tp,
        partition,
        Asked(directory=(broker.broker_id, directory)),
        keep_elr=cluster.rules.keeps_elr_on_directory_assignment,
    )
    return None
