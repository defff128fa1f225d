"""Rules of the legacy controller, broken one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Final

from conformance.mutations import Mutation
from understudy.controller import elections, releases
from understudy.controller.records import Ids, LeaderAndIsr, TopicPartition
from understudy.controller.zk_legacy import reassignment as legacy_reassignment
from understudy.controller.zk_legacy import releases as legacy_releases
from understudy.controller.zk_legacy.context import LegacyContext
from understudy.controller.zk_legacy.deletion import LegacyTopicDeletion
from understudy.controller.zk_legacy.reassignment import LegacyReassignment
from understudy.controller.zk_legacy.replica_machine import LegacyReplicaStateMachine
from understudy.controller.zk_legacy.request_batch import LegacyRequestBatch


def _rule_of_another_release(field: str) -> list[tuple[Any, str, Any]]:
    """The release follows a rule of its neighbours instead of its own."""

    def rules(release: str) -> legacy_releases.LegacyRules:
        own = _rules(release)
        return replace(own, **{field: not getattr(own, field)})

    return [(legacy_releases, "rules", rules)]


def _as_given(brokers: Iterable[int]) -> Ids:
    return tuple(dict.fromkeys(brokers))


def _cache_learns(
    reassignment: LegacyReassignment, tp: TopicPartition, receivers: Ids, replicas: Ids
) -> None:
    _bump_leader_epoch(reassignment, tp, receivers, replicas)
    context = reassignment._context  # noqa: SLF001
    context.leadership[tp] = context.zookeeper.states[tp]


def _nothing_is_done(reassignment: LegacyReassignment) -> None:
    context = reassignment._context  # noqa: SLF001
    context.reassigning = dict(context.zookeeper.reassignments)


def _done_or_not(reassignment: LegacyReassignment, tp: TopicPartition, target: Ids) -> None:
    context = reassignment._context  # noqa: SLF001
    if context.assignments.get(tp) == target:
        context.reassigning[tp] = target
        reassignment.advance(tp)
    else:
        _initiate(reassignment, tp, target)


def _always_unclean(_context: LegacyContext, _topic: str) -> str:
    return "topic"


def _last_member_stays(
    _machine: LegacyReplicaStateMachine, broker: int, _tp: TopicPartition, isr: Ids
) -> Ids:
    return tuple(r for r in isr if r != broker) or isr


def _online_whatever_the_directory(
    context: LegacyContext, broker: int, _tp: TopicPartition
) -> bool:
    return broker in context.live


def _live_while_shutting_down(context: LegacyContext, broker: int) -> bool:
    return broker in context.live


def _first_of_isr(
    _replicas: Ids, isr: Ids, online: Ids, *, unclean: bool
) -> elections.Elected | None:
    del unclean
    return elections.elect_reassigned_leader(isr, isr, online)


def _isr_keeps_those_who_leave(
    replicas: Ids, isr: Ids, online: Ids, shutting_down: set[int]
) -> elections.Elected | None:
    elected = _elect_shutdown(replicas, isr, online, shutting_down)
    return None if elected is None else elected._replace(isr=isr)


def _never_new(
    batch: LegacyRequestBatch,
    brokers: Iterable[int],
    tp: TopicPartition,
    record: LeaderAndIsr,
    replicas: Ids,
    *,
    is_new: bool = False,
) -> None:
    del is_new
    _add_leader_and_isr(batch, brokers, tp, record, replicas)


def _newest_versions(_protocol: int) -> releases.RequestVersions:
    return _request_versions(legacy_releases.level(legacy_releases.NEWEST))


def _nothing(*_: object, **__: object) -> None:
    return None


_rules: Final = legacy_releases.rules
_request_versions: Final = releases.request_versions
_elect_shutdown: Final = elections.elect_controlled_shutdown_leader
_initiate: Final = LegacyReassignment.initiate
_bump_leader_epoch: Final = LegacyReassignment._bump_leader_epoch  # noqa: SLF001
_add_leader_and_isr: Final[Callable[..., None]] = LegacyRequestBatch.add_leader_and_isr

MUTATIONS: Final = (
    Mutation(
        "leaders are found in assignment order, not ISR order",
        [(elections, "elect_offline_leader", _first_of_isr)],
    ),
    Mutation(
        "controlled shutdown takes those who leave out of the ISR",
        [(elections, "elect_controlled_shutdown_leader", _isr_keeps_those_who_leave)],
    ),
    Mutation(
        "unclean elections happen only where a setting allows them",
        [(LegacyContext, "unclean_allowed_by", _always_unclean)],
    ),
    Mutation(
        "with unclean election on, the last member leaves the ISR",
        [(LegacyReplicaStateMachine, "_isr_without", _last_member_stays)],
    ),
    Mutation(
        "a replica on an offline directory is not online",
        [(LegacyContext, "is_online_or_shutting_down", _online_whatever_the_directory)],
    ),
    Mutation(
        "a broker that is shutting down is not live",
        [(LegacyContext, "is_live", _live_while_shutting_down)],
    ),
    Mutation(
        "a united assignment of five or more is in hash order",
        [(legacy_reassignment, "broker_set", _as_given)],
    ),
    Mutation(
        "the epoch bump of a reassignment does not touch the cache",
        [(LegacyReassignment, "_bump_leader_epoch", _cache_learns)],
    ),
    Mutation(
        "an assignment that equals its target is taken for done",
        [
            (LegacyReassignment, "load", _nothing_is_done),
            (LegacyReassignment, "initiate", _done_or_not),
        ],
    ),
    Mutation(
        "a dead or moving replica halts the deletion of its topic",
        [(LegacyTopicDeletion, "mark_ineligible", _nothing)],
    ),
    Mutation(
        "a halted deletion is taken up again when a broker returns",
        [(LegacyTopicDeletion, "resume_topics", _nothing)],
    ),
    Mutation(
        "a partition's first leader-and-isr says that it is new",
        [(LegacyRequestBatch, "add_leader_and_isr", _never_new)],
    ),
    Mutation(
        "the protocol decides the versions of requests",
        [(releases, "request_versions", _newest_versions)],
    ),
    Mutation(
        "a failed broker marks every partition whose leader is not online",
        _rule_of_another_release("offline_leader_by_liveness"),
    ),
    Mutation(
        "a failover sends its metadata before the machines start",
        _rule_of_another_release("metadata_first"),
    ),
    Mutation(
        "stops without delete go in one request, be it empty",
        _rule_of_another_release("grouped_stops"),
    ),
    Mutation(
        "a controlled shutdown elects in assignment order",
        _rule_of_another_release("shutdown_elects_by_assignment"),
    ),
    Mutation("topics are deleted by default", _rule_of_another_release("delete_by_default")),
)
