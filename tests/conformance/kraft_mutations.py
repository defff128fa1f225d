"""Rules of the quorum controller to break: what releases disagree on, and what all agree on.

Some are rules of one release or one feature: all are caught only where several releases answer.
"""

from __future__ import annotations

from typing import Final

from conformance.mutations import Mutation
from understudy.controller.kraft import alter_partition as kraft_alter_partition
from understudy.controller.kraft import change as kraft_change
from understudy.controller.kraft import cluster as kraft_cluster
from understudy.controller.kraft import reassignment as kraft_reassignment
from understudy.controller.kraft import releases as kraft_releases
from understudy.controller.kraft import topic_events as kraft_topic_events
from understudy.controller.kraft.change import Surroundings
from understudy.controller.kraft.elections import Ballot, Elected
from understudy.controller.kraft.partitions import Partition
from understudy.controller.kraft.reassignment import Reassignment
from understudy.controller.kraft.releases import Rules
from understudy.controller.records import Ids

# --- The broken rules --------------------------------------------------------------------------


def _isr_order(ballot: Ballot) -> Ids:
    return (ballot.leader, *ballot.isr)


def _leader_does_not_stay(ballot: Ballot) -> Ids:
    return ballot.replicas


def _last_known_never_leads(_ballot: Ballot) -> bool:
    return False


def _elr_stays_eligible(ballot: Ballot) -> Ids:
    return (*ballot.isr, *ballot.elr)


def _always_allowed(*_: object) -> str:
    return "topic"


def _not_recovering(
    change: dict[str, object], _partition: Partition, elected: Elected, _rules: Rules
) -> None:
    change["leader"] = elected.leader
    if elected.clean is False:
        change["isr"] = (elected.leader,)


def _elr_forgets_the_one_before(
    partition: Partition, isr: Ids, unclean_shutdown: int | None, around: Surroundings
) -> Ids:
    return _target_elr(partition._replace(elr=()), isr, unclean_shutdown, around)


def _elr_keeps_who_lost_its_log(
    partition: Partition, isr: Ids, _unclean_shutdown: int | None, around: Surroundings
) -> Ids:
    return _target_elr(partition, isr, None, around)


def _as_given(ids: Ids) -> Ids:
    return tuple(dict.fromkeys(ids))


def _nothing(*_: object, **__: object) -> None:
    return None


def _never_complete(wanted: Reassignment, _rules: Rules) -> Reassignment:
    return wanted


def _removing_first(partition: Partition, target: Ids) -> Reassignment:
    begun = _started(partition, target)
    leaving = tuple(r for r in begun.replicas if r not in target)
    return begun._replace(replicas=(*leaving, *target))


def _cancel_empties_the_isr(partition: Partition) -> tuple[Reassignment, bool]:
    lists, _ = _reverted(partition)
    return lists, False


def _everybody_may(*_: object) -> bool:
    return False


def _topic_alone_decides(
    setting: kraft_cluster.Setting, topic: str, _controller: int | None
) -> tuple[str, str | None]:
    return _effective(setting, topic, None)


def _with_all_replicas(cluster: kraft_cluster.Cluster, topic: str) -> int:
    _, value = cluster.min_isr.effective(topic, cluster.controller_id)
    return 1 if value is None else int(value)


def _nothing_left_behind(cluster: kraft_cluster.Cluster, topic: str) -> None:
    _remove_topic(cluster, topic)
    cluster.directories_left_behind.clear()


_remove_topic = kraft_cluster.Cluster.remove_topic
_target_elr = kraft_change._target_elr  # noqa: SLF001 - the rule itself is what is broken
_started = kraft_reassignment.started
_reverted = kraft_reassignment.reverted
_effective = kraft_cluster.Setting.effective


def _other_way(rule: str) -> property:
    """A rule of some releases, for all the others instead."""
    asked = getattr(Rules, rule).fget

    def negated(rules: Rules) -> bool:
        return not asked(rules)

    return property(negated)


MUTATIONS: Final = (
    Mutation(
        "leaders are found in the order of the replicas, not of the ISR",
        [(Ballot, "order", property(_isr_order))],
    ),
    Mutation(
        "a leader that may lead stays",
        [(Ballot, "order", property(_leader_does_not_stay))],
    ),
    Mutation(
        "the ELR is eligible only where the ISR is empty",
        [(Ballot, "eligible", property(_elr_stays_eligible))],
    ),
    Mutation(
        "the last known leader leads where ISR and ELR are empty",
        [(Ballot, "last_known_leads", property(_last_known_never_leads))],
    ),
    Mutation(
        "unclean elections happen only where a setting allows them",
        [(kraft_cluster.Cluster, "unclean_allowed_by", _always_allowed)],
    ),
    Mutation(
        "the controller's own settings win over the cluster's",
        [(kraft_cluster.Setting, "effective", _topic_alone_decides)],
    ),
    Mutation(
        "an unclean leader is recovering",
        [(kraft_change, "_put_leader", _not_recovering)],
    ),
    Mutation(
        "who was eligible stays so until the ISR is large enough",
        [(kraft_change, "_target_elr", _elr_forgets_the_one_before)],
    ),
    Mutation(
        "who shut down uncleanly leaves the ELR",
        [(kraft_change, "_target_elr", _elr_keeps_who_lost_its_log)],
    ),
    Mutation(
        "an ELR is stored in the order of a hash set",
        [(kraft_change, "in_hash_set_order", _as_given)],
    ),
    Mutation(
        "min.insync.replicas is at most the size of partition 0",
        [(kraft_cluster.Cluster, "effective_min_isr", _with_all_replicas)],
    ),
    Mutation(
        "the last leader of a leaderless partition is remembered",
        [(kraft_change, "_remember_last_leader", _nothing)],
    ),
    Mutation(
        "from 4.1.1 on it is remembered with the leader, before with the ISR",
        [(Rules, "remembers_leader_when_leaderless", True)],
    ),
    Mutation(
        "4.0 elects a last known leader that is fenced",
        [(Rules, "last_known_leader_must_be_active", True)],
    ),
    Mutation(
        "below 3.6-IV0 the leader epoch rises when the ISR shrinks",
        [(kraft_releases, "_NO_BUMP_ON_SHRINK", 0)],
    ),
    Mutation(
        "directories are recorded from 3.7-IV2 on",
        [(kraft_releases, "_DIRECTORIES", 0)],
    ),
    Mutation(
        "from 4.3 on a reassignment that does not shrink waits for the added only",
        [(Rules, "completes_with_added_unless_shrinking", False)],
    ),
    Mutation(
        "from 4.3 on the ELR is kept when a directory is assigned",
        [
            (
                Rules,
                "keeps_elr_on_directory_assignment",
                _other_way("keeps_elr_on_directory_assignment"),
            )
        ],
    ),
    Mutation(
        "a registration takes the broker out of ISRs from 4.0 on",
        [(Rules, "registration_cleans_isr", _other_way("registration_cleans_isr"))],
    ),
    Mutation(
        "a reassignment completes once its replicas are in sync",
        [(kraft_change, "completed", _never_complete)],
    ),
    Mutation(
        "the target of a reassignment comes first",
        [(kraft_topic_events, "started", _removing_first)],
    ),
    Mutation(
        "a cancel that would empty the ISR needs unclean elections",
        [(kraft_topic_events, "reverted", _cancel_empties_the_isr)],
    ),
    Mutation(
        "only active brokers with their own epoch may enter the ISR",
        [(kraft_alter_partition, "_is_ineligible", _everybody_may)],
    ),
    Mutation(
        "a failed directory of a partition long deleted stops the controller",
        [(kraft_cluster.Cluster, "remove_topic", _nothing_left_behind)],
    ),
)
