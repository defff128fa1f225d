"""Why controllers part over a partition: one rule for each way they do, the first that fits wins.

A rule is judged where the controllers part for the first time: until that event both had the
partition alike, so the difference is that event's, and all that follows follows from it. Conditions
are SQL over these columns of one partition and two controllers:

- ``event_type``: of the first event after which they differ, null when no write tells one;
- ``was``: the partition before that event, with ``leader``, ``isr`` (ascending), ``leader_epoch``,
  ``partition_epoch``, ``replicas``, ``adding``, ``removing`` and ``elr``; null what is not known;
- ``a`` and ``b``: the same after it;
- ``end_a`` and ``end_b``: the partition at the end of the scenario;
- ``refused_a``, ``refused_b``: the error with which a controller refused the event as a whole;
- ``mode_a``, ``mode_b``: ``zk`` or ``kraft``.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from understudy.controller.profiles import KRAFT
from understudy.controller.words import NO_LEADER, UNSUPPORTED_VERSION
from understudy.sql import text


class Rule(NamedTuple):
    name: str
    holds: str
    """A condition as SQL."""
    says: str


def _either(one: str, other: str) -> str:
    """*one* holds for one of the controllers and not for the other; ``x`` stands for the side."""
    sides = [template.replace("x.", f"{side}.") for template in (one, other) for side in "ab"]
    one_a, one_b, other_a, other_b = (f"coalesce({each}, false)" for each in sides)
    return f"(({one_a} AND {other_b}) OR ({one_b} AND {other_a}))"


def _event(*types: str) -> str:
    return f"event_type IN ({', '.join(map(text, types))})"


_LEADERLESS: Final = f"x.leader = {NO_LEADER}"
_LED: Final = f"x.leader > {NO_LEADER}"
_LED_FROM_ELR: Final = (
    f"{_LED} AND NOT array_contains(was.isr, x.leader) AND array_contains(was.elr, x.leader)"
)
_LED_FROM_OUTSIDE: Final = f"{_LED} AND NOT array_contains(was.isr, x.leader)"
_OTHERWISE: Final = f"NOT ({_LED_FROM_OUTSIDE})"
_SHRANK: Final = "size(a.isr) < size(was.isr)"
_SAME_LEADER: Final = "a.leader = b.leader"
_SAME_ISR: Final = "a.isr = b.isr"
_ONE_IS_KRAFT: Final = f"(mode_a = {text(KRAFT.mode)}) != (mode_b = {text(KRAFT.mode)})"
_BOTH_KRAFT: Final = f"mode_a = {text(KRAFT.mode)} AND mode_b = {text(KRAFT.mode)}"
_UNSUPPORTED: Final = text(UNSUPPORTED_VERSION)
_REQUESTED: Final = _event("reassign", "cancel_reassignment")
_REPORTED: Final = _event("isr_change", "catch_up")
_REASSIGNING: Final = "size(was.adding) + size(was.removing) > 0"

RULES: Final = (
    Rule(
        "unknown_event",
        f"(refused_a <=> {_UNSUPPORTED}) != (refused_b <=> {_UNSUPPORTED})",
        "The event exists for one of the controllers only",
    ),
    Rule(
        "refused",
        "(refused_a IS NULL) != (refused_b IS NULL)",
        "One controller refuses what the other carries out",
    ),
    Rule(
        "failover",
        _event("controller_failover"),
        "A ZooKeeper controller that takes over elects leaders and shrinks ISRs at once; a quorum"
        " controller reads its log and writes nothing",
    ),
    Rule(
        "deletion",
        "(end_a.leader IS NULL) != (end_b.leader IS NULL)",
        "ZooKeeper controllers queue a topic until its replicas are gone; a quorum controller"
        " deletes it at once",
    ),
    Rule(
        "reassignment",
        f"{_REQUESTED} AND {_ONE_IS_KRAFT}",
        "A ZooKeeper controller reassigns in several writes that raise the leader epoch; a quorum"
        " controller in one record that raises it only when somebody leaves",
    ),
    Rule(
        "reassignment_completion",
        f"a.replicas != b.replicas OR {_REQUESTED} OR ({_REPORTED} AND {_REASSIGNING})",
        "The controllers ask different replicas to be in sync before a reassignment is complete",
    ),
    Rule(
        "isr_emptied",
        f"{_SAME_LEADER} AND {_either('size(x.isr) = 0', 'size(x.isr) > 0')}",
        "With eligible leader replicas the last in-sync replica leaves the ISR for the ELR; without"
        " them it stays listed although it is gone",
    ),
    Rule(
        "eligible_leader",
        _either(_LED_FROM_ELR, f"NOT ({_LED_FROM_ELR})"),
        "With eligible leader replicas one that left the ISR in good order can lead without loss",
    ),
    Rule(
        "unclean_election",
        _either(_LED_FROM_OUTSIDE, _OTHERWISE),
        "One controller lets an out-of-sync replica lead and the other does not: the setting is"
        " read from 3.9 on in KRaft, and ELR knows a last leader to fall back on",
    ),
    Rule(
        "shutdown_of_the_last",
        f"{_event('controlled_shutdown')} AND {_either(_LEADERLESS, _LED)}",
        "At a controlled shutdown a ZooKeeper controller leaves the last in-sync replica in the"
        " lead until it is gone; a quorum controller takes the lead from it at once",
    ),
    Rule(
        "epoch_at_shrink",
        f"{_SAME_LEADER} AND {_SAME_ISR} AND {_SHRANK} AND a.leader_epoch != b.leader_epoch",
        "The leader epoch rises when the ISR shrinks in ZooKeeper mode and below metadata version"
        " 3.6-IV0; from there on it does not",
    ),
    Rule(
        "one_by_one",
        f"{_event('broker_failure', 'fence', 'broker_change')} AND {_ONE_IS_KRAFT}",
        "A ZooKeeper controller handles brokers that are lost together in one go; a quorum"
        " controller fences them one after the other, each seeing the one before",
    ),
    Rule(
        "preferred",
        _event("preferred_election", "auto_rebalance"),
        "ZooKeeper controllers rebalance a broker beyond its imbalance ratio and elect only the"
        " preferred replica; a quorum controller moves every leader back, or elects another one",
    ),
    Rule(
        "unclean_request",
        _event("unclean_election", "auto_unclean_election", "unclean_enabled"),
        "Unclean elections are asked for and carried out differently",
    ),
    Rule(
        "log_directories",
        _event("log_dir_failure", "assign_dirs"),
        "Quorum controllers know log directories from metadata version 3.7-IV2 on; ZooKeeper"
        " controllers learn of failed ones from answers of the broker",
    ),
    Rule(
        "registration",
        f"{_event('broker_startup', 'unfence', 'unregister')} AND {_BOTH_KRAFT}",
        "From 4.0 on a broker that registers again leaves the ISRs it was in, and an unclean stop"
        " costs it its place in the ELR",
    ),
    Rule(
        "return_of_brokers",
        _event("broker_startup", "unfence", "unregister"),
        "A broker that returns starts its replicas and elections in ZooKeeper mode; in KRaft only"
        " partitions without a leader are looked at",
    ),
    Rule(
        "isr_report",
        _REPORTED,
        "The controllers accept different reports of a leader on its ISR, or count them otherwise",
    ),
    Rule(
        "new_partitions",
        _event("topic_change", "partition_change", "delete_topics", "stop_replica_response"),
        "Topics and partitions come and go in other steps",
    ),
    Rule(
        "broker_loss",
        _event("broker_failure", "fence", "broker_change", "controlled_shutdown"),
        "The controllers take a lost broker out of leaderships and ISRs in other steps",
    ),
    Rule(
        "held_in_memory",
        "event_type IS NULL",
        "No write tells the controllers apart: one holds the partition otherwise in memory",
    ),
)

UNKNOWN: Final = "unknown"
SAYS: Final = {
    **{rule.name: rule.says for rule in RULES},
    UNKNOWN: "No rule that is known makes this difference",
}


def rule() -> str:
    """The name of the first rule that holds, as SQL."""
    cases = " ".join(f"WHEN {rule.holds} THEN {text(rule.name)}" for rule in RULES)
    return f"CASE {cases} ELSE {text(UNKNOWN)} END"
