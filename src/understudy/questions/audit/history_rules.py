"""Rules that look at what happened from one snapshot to the next.

``before`` is the partition (or broker) in the snapshot before, ``earlier`` in the one before that;
each is null where that snapshot lacks it. ``seconds`` and ``earlier_seconds`` are how long ago they
were taken. Snapshots that are not complete are passed over.
"""

from __future__ import annotations

from typing import Final

from understudy.questions.audit.rule import ERROR, INFO, WARNING, Rule, ids, jira, kip, sentence

_GREW: Final = "leader_epoch > before.leader_epoch"

# A replay of what happened tells most. From 3.2 on the record itself says that its leader recovers
# from an unclean election, until the ISR changes. Else: a replica joins the ISR when its leader
# asks for it, and that moves the partition epoch only. So where both moved alike, every write was
# the controller's, and a leader that was not in the ISR before cannot have been in it when it was
# elected. The exception is the last replica of a reassignment, which KRaft lets join and lead with
# one write (KAFKA-19212).
_ONLY_THE_CONTROLLER_WROTE: Final = (
    "(partition_epoch - before.partition_epoch <= leader_epoch - before.leader_epoch"
    " AND NOT arrays_overlap(isr, before.isr) AND NOT array_contains(before.adding, leader))"
)
# Without a leader nobody can ask, so the first election after that is one from the ISR as it was.
_FIRST_AFTER_NONE: Final = "(before.leader < 0 AND leader_epoch = before.leader_epoch + 1)"
_RECOVERS: Final = "(recovery = 1 AND NOT (before.recovery <=> 1))"
_WAS_ELIGIBLE: Final = (
    "(array_contains(before.isr, leader) OR coalesce(array_contains(before.elr, leader), false))"
)

# Without topic ids a topic that was deleted and created again shows by epochs that begin again.
_BEGAN_AGAIN: Final = "(leader_epoch <= 1 AND partition_epoch < before.partition_epoch)"

PARTITIONS: Final = (
    Rule(
        "unclean-election",
        ERROR,
        "partition",
        "A replica that was not in sync became leader: records that only others had are lost.",
        jira(4623),
        f"leader >= 0 AND {_GREW}"
        f" AND (is_unclean OR {_RECOVERS} OR (NOT {_WAS_ELIGIBLE}"
        f" AND ({_ONLY_THE_CONTROLLER_WROTE} OR {_FIRST_AFTER_NONE})))",
        sentence(
            "leader %s was not in the ISR %s; leader epoch %s to %s",
            *("leader", ids("before.isr"), "before.leader_epoch", "leader_epoch"),
        ),
        broker="leader",
        lookback=1,
    ),
    Rule(
        "leader-epoch-regression",
        ERROR,
        "partition",
        "The leader epoch went back: metadata was restored, or two controllers wrote.",
        jira(6082),
        f"leader_epoch < before.leader_epoch AND NOT {_BEGAN_AGAIN}",
        sentence("leader epoch %s to %s", "before.leader_epoch", "leader_epoch"),
        lookback=1,
    ),
    Rule(
        "partition-epoch-regression",
        ERROR,
        "partition",
        "The partition epoch went back: metadata was restored from an older state.",
        jira(14154),
        f"partition_epoch < before.partition_epoch AND NOT {_BEGAN_AGAIN}",
        sentence("partition epoch %s to %s", "before.partition_epoch", "partition_epoch"),
        lookback=1,
    ),
    Rule(
        "zombie-controller",
        ERROR,
        "partition",
        "A controller that had lost its office wrote: an election under an older controller epoch.",
        jira(6082),
        f"NOT is_kraft AND ((controller_epoch < before.controller_epoch AND NOT {_BEGAN_AGAIN})"
        f" OR ({_GREW} AND controller_epoch < before_controller_epoch))",
        sentence(
            "written under controller epoch %s, after %s",
            *("controller_epoch", "greatest(before.controller_epoch, before_controller_epoch)"),
        ),
        lookback=1,
    ),
    Rule(
        "failure-during-failover",
        ERROR,
        "partition",
        "A dead broker still leads one snapshot later: no controller noticed its death.",
        jira(18138),
        "leader >= 0 AND array_contains(dead_isr, leader) AND leader = before.leader"
        " AND leader_epoch = before.leader_epoch AND array_contains(before.dead_isr, leader)"
        " AND seconds >= {seconds}",
        sentence("broker %s is dead and leads since %s seconds", "leader", "seconds"),
        broker="leader",
        lookback=1,
        parameters={"seconds": 10},
    ),
    Rule(
        "stale-isr-after-failover",
        WARNING,
        "partition",
        "A dead follower stays in the ISR one snapshot later: its removal was missed.",
        jira(3143),
        "is_led AND size(array_intersect(dead_isr, before.dead_isr)) > 0 AND seconds >= {seconds}",
        sentence(
            "dead %s in ISR %s since %s seconds; controller epoch %s to %s",
            ids("array_intersect(dead_isr, before.dead_isr)"),
            ids("isr"),
            *("seconds", "before_controller_epoch", "now_controller_epoch"),
        ),
        broker="array_intersect(dead_isr, before.dead_isr)[0]",
        lookback=1,
        parameters={"seconds": 10},
    ),
    Rule(
        "drain-two-pods",
        WARNING,
        "partition",
        "A broker was stopped while the partition had no in-sync replica to spare.",
        "https://github.com/strimzi/strimzi-kafka-operator/issues/3749",
        "size(before.isr) = before.min_isr AND size(before.isr) < size(before.replicas)"
        " AND before.is_led AND NOT (is_led AND size(isr) >= min_isr)"
        " AND exists(before.isr, r -> NOT array_contains(before.idle_isr, r)"
        " AND array_contains(idle_replicas, r))",
        sentence(
            "ISR was %s with min ISR %s, and broker %s went",
            ids("before.isr"),
            "before.min_isr",
            ids("array_intersect(before.isr, idle_replicas)"),
        ),
        broker="array_intersect(before.isr, idle_replicas)[0]",
        lookback=1,
    ),
    Rule(
        "fast-double-failover",
        INFO,
        "partition",
        "Two leader changes in quick succession: before 2.1 followers could truncate wrongly.",
        kip("279:+Fix+log+divergence+between+leader+and+follower+after+fast+leader+fail+over"),
        "leader >= 0 AND before.leader >= 0 AND earlier.leader >= 0 AND leader != before.leader"
        " AND before.leader != earlier.leader AND earlier_seconds <= {seconds}",
        sentence(
            "leaders %s, %s and %s within %s seconds",
            *("earlier.leader", "before.leader", "leader", "earlier_seconds"),
        ),
        broker="leader",
        lookback=2,
        parameters={"seconds": 30},
    ),
    Rule(
        "stuck-under-replicated",
        WARNING,
        "partition",
        "Every replica is online, yet the ISR does not grow: a leader or follower is stuck.",
        jira(14154),
        "is_led AND size(isr) < size(replicas) AND size(idle_replicas) = 0"
        " AND size(before.idle_replicas) = 0 AND size(earlier.idle_replicas) = 0"
        " AND size(offline_dirs) = 0"
        " AND size(before.offline_dirs) = 0 AND size(earlier.offline_dirs) = 0"
        " AND partition_epoch = before.partition_epoch"
        " AND before.partition_epoch = earlier.partition_epoch"
        " AND replicas = earlier.replicas AND earlier_seconds >= {seconds}",
        sentence("ISR %s of %s since %s seconds", ids("isr"), ids("replicas"), "earlier_seconds"),
        lookback=2,
        parameters={"seconds": 60},
    ),
)

BROKERS: Final = (
    Rule(
        "bounced-broker",
        INFO,
        "broker",
        "The broker restarted between two snapshots: same id, higher epoch, never seen absent.",
        kip("380:+Detect+outdated+control+requests+and+bounced+brokers+using+broker+generation"),
        "alive AND before.alive AND broker_epoch > before.broker_epoch",
        sentence("broker epoch %s to %s", "before.broker_epoch", "broker_epoch"),
        broker="broker_id",
        lookback=1,
    ),
    Rule(
        "broker-epoch-regression",
        ERROR,
        "broker",
        "The broker epoch went back: metadata was restored, or a stale broker registered.",
        jira(9839),
        "broker_epoch < before.broker_epoch",
        sentence("broker epoch %s to %s", "before.broker_epoch", "broker_epoch"),
        broker="broker_id",
        lookback=1,
    ),
    Rule(
        "overloaded-controller-fences-live",
        WARNING,
        "broker",
        "Several brokers were fenced and came back without a restart: heartbeats were late.",
        jira(15019),
        "alive AND returned AND returned_together >= {brokers}",
        sentence(
            "%s brokers were fenced and back in %s seconds", "returned_together", "earlier_seconds"
        ),
        broker="broker_id",
        lookback=2,
        parameters={"brokers": 2},
    ),
)

SNAPSHOTS: Final = (
    Rule(
        "controller-epoch-regression",
        ERROR,
        "snapshot",
        "The controller epoch went back: an old controller is in office again.",
        jira(6082),
        "now_controller_epoch < before_controller_epoch",
        sentence("controller epoch %s to %s", "before_controller_epoch", "now_controller_epoch"),
        broker="IF(controller_id >= 0, controller_id, NULL)",
        lookback=1,
    ),
)

CHANGES: Final = (
    Rule(
        "unexplained-change",
        WARNING,
        "change",
        "The record is not what the controller makes of the events that led to it.",
        jira(15021),
        "size(differences) > 0",
        sentence("%s", "array_join(differences, ', ')"),
        lookback=1,
    ),
)

HISTORY_RULES: Final = (*PARTITIONS, *CHANGES, *BROKERS, *SNAPSHOTS)
