"""Rules that look at one snapshot alone."""

from __future__ import annotations

from typing import Final

from understudy.questions.audit.rule import (
    ERROR,
    INFO,
    UNDECIDED,
    WARNING,
    Rule,
    github,
    ids,
    jira,
    kip,
    sentence,
)

_KAFKA_METRICS: Final = "https://kafka.apache.org/documentation/#monitoring"
_ISR_OF: Final = (ids("isr"), ids("replicas"))

# Replicas that are being added do not count until they are in: so does Kafka's own metric.
_WANTED_REPLICAS: Final = "size(array_except(replicas, adding))"

AVAILABILITY: Final = (
    Rule(
        "offline",
        ERROR,
        "partition",
        "No leader that is online: nobody can read or write (OfflinePartitionsCount).",
        _KAFKA_METRICS,
        "has_state AND NOT is_led",
        sentence("leader %s, ISR %s of %s", "leader", *_ISR_OF),
        broker="IF(leader >= 0, leader, NULL)",
        on_incomplete=True,
    ),
    Rule(
        "never-led",
        WARNING,
        "partition",
        "The partition exists, but never had a leader.",
        jira(6650),
        "NOT has_state",
        sentence("replicas %s", ids("replicas")),
    ),
    Rule(
        "under-min-isr",
        ERROR,
        "partition",
        "Fewer in-sync replicas than min.insync.replicas: acks=all is refused (UnderMinIsr).",
        kip("351:+Add+--under-min-isr+option+to+describe+topics+command"),
        "has_state AND is_led AND size(isr) < min_isr",
        sentence("ISR %s of %s, min ISR %s", *_ISR_OF, "min_isr"),
    ),
    Rule(
        "at-min-isr",
        INFO,
        "partition",
        "As many in-sync replicas as min.insync.replicas: one less and acks=all is refused.",
        kip("427:+Add+AtMinIsr+topic+partition+category+(new+metric+%26+TopicCommand+option)"),
        "has_state AND is_led AND size(isr) = min_isr",
        sentence("ISR %s of %s, min ISR %s", *_ISR_OF, "min_isr"),
    ),
    Rule(
        "under-replicated",
        WARNING,
        "partition",
        "Some replicas are not in sync (UnderReplicatedPartitions).",
        _KAFKA_METRICS,
        f"has_state AND is_led AND size(isr) < {_WANTED_REPLICAS}",
        sentence("ISR %s of %s, missing %s", *_ISR_OF, ids("array_except(replicas, isr)")),
        on_incomplete=True,
    ),
    Rule(
        "last-replica-standing",
        WARNING,
        "partition",
        "One of several replicas is in sync: if it crashes uncleanly, the others truncate to it.",
        kip("966:+Eligible+Leader+Replicas"),
        "has_state AND size(isr) = 1 AND size(replicas) > 1",
        sentence("only %s of %s is in sync", "isr[0]", ids("replicas")),
        broker="isr[0]",
        on_incomplete=True,
    ),
    Rule(
        "one-failure-from-offline",
        INFO,
        "partition",
        "A single broker is all that keeps the partition online.",
        kip("966:+Eligible+Leader+Replicas"),
        "has_state AND is_led AND size(isr) - size(idle_isr) = 1"
        " AND (NOT unclean_allowed OR size(replicas) - size(idle_replicas) = 1)",
        sentence("only %s of %s is in sync and online", "leader", ids("replicas")),
        broker="leader",
    ),
    Rule(
        "offline-log-dir",
        WARNING,
        "partition",
        "The log directory of a replica is offline.",
        jira(16157),
        "size(offline_dirs) > 0",
        sentence("on brokers %s", ids("offline_dirs")),
        broker="offline_dirs[0]",
        on_incomplete=True,
    ),
    Rule(
        "reassigning",
        INFO,
        "partition",
        "Replicas are being moved; the exposure says for how long.",
        kip("455:+Create+an+Administrative+API+for+Replica+Reassignment"),
        "size(adding) > 0 OR size(removing) > 0",
        sentence(
            "replicas %s, adding %s, removing %s", *map(ids, ("replicas", "adding", "removing"))
        ),
        on_incomplete=True,
    ),
)

INVARIANTS: Final = (
    Rule(
        "leader-not-in-isr",
        ERROR,
        "partition",
        "The leader is always in sync with itself: a record without it in the ISR is broken.",
        jira(3143),
        "has_state AND leader >= 0 AND NOT array_contains(isr, leader)",
        sentence("leader %s, ISR %s", "leader", ids("isr")),
        broker="leader",
        on_incomplete=True,
    ),
    Rule(
        "isr-outside-assignment",
        ERROR,
        "partition",
        "Only replicas of the partition can be in sync.",
        jira(9212),
        "has_state AND size(array_except(isr, replicas)) > 0",
        sentence("ISR %s, replicas %s", *_ISR_OF),
        broker="array_except(isr, replicas)[0]",
        on_incomplete=True,
    ),
    Rule(
        "duplicate-replicas",
        ERROR,
        "partition",
        "A broker is listed twice among the replicas or in the ISR.",
        jira(9212),
        "size(array_distinct(replicas)) < size(replicas) OR size(array_distinct(isr)) < size(isr)",
        sentence("replicas %s, ISR %s", ids("replicas"), ids("isr")),
        on_incomplete=True,
    ),
    Rule(
        "fenced-in-isr",
        ERROR,
        "partition",
        "A fenced broker, or one that is shutting down, may not be in the ISR of a led partition.",
        kip("841:+Fenced+replicas+should+not+be+allowed+to+join+the+ISR+in+KRaft"),
        "is_kraft AND has_state AND is_led AND size(idle_isr) > 0",
        sentence("ISR %s, fenced or shutting down %s", ids("isr"), ids("idle_isr")),
        broker="idle_isr[0]",
    ),
)

PLACEMENT: Final = (
    Rule(
        "rf-one",
        WARNING,
        "partition",
        "A single replica: any restart takes it offline, any lost disk loses it.",
        jira(15583),
        "size(replicas) = 1",
        sentence("only on broker %s", "replicas[0]"),
        broker="replicas[0]",
        on_incomplete=True,
    ),
    Rule(
        "rf-eq-minisr",
        WARNING,
        "partition",
        "As many replicas as min.insync.replicas: any restart blocks acks=all.",
        github("strimzi/strimzi-kafka-operator/issues/2964"),
        "size(replicas) > 1 AND size(replicas) = min_isr",
        sentence("replicas %s, min ISR %s", ids("replicas"), "min_isr"),
    ),
    Rule(
        "minisr-gt-rf",
        WARNING,
        "partition",
        "min.insync.replicas exceeds the replicas there are: acks=all can never succeed.",
        github("strimzi/strimzi-kafka-operator/issues/2964"),
        "size(replicas) < min_isr",
        sentence("replicas %s, min ISR %s", ids("replicas"), "min_isr"),
    ),
    Rule(
        "rack-blind",
        WARNING,
        "partition",
        "The replicas lie in fewer racks than they could: a rack takes more of them than it must.",
        github("pinterest/DoctorK/issues/115"),
        "size(replicas) > 1 AND racks_known AND rack_spread < least(size(replicas), rack_count)",
        sentence("replicas %s lie in %s of %s racks", ids("replicas"), "rack_spread", "rack_count"),
    ),
)

BROKERS: Final = (
    Rule(
        "broker-down",
        WARNING,
        "broker",
        "A broker that holds replicas is not alive; the exposure says since when.",
        _KAFKA_METRICS,
        "NOT alive AND held > 0",
        sentence("holds %s replicas", "held"),
        broker="broker_id",
    ),
    Rule(
        "leader-skew",
        WARNING,
        "broker",
        "The broker leads far more partitions than its share.",
        github("banzaicloud/koperator/issues/239"),
        "alive AND live_brokers > 1 AND leaders >= {at_least}"
        " AND leaders * live_brokers > {ratio} * all_leaders",
        sentence(
            "leads %s of %s partitions, one of %s live brokers",
            "leaders",
            "all_leaders",
            "live_brokers",
        ),
        broker="broker_id",
        parameters={"ratio": 2.0, "at_least": 20},
    ),
    Rule(
        "preferred-imbalance",
        INFO,
        "broker",
        "Too many partitions are not led by their preferred replica (PreferredReplicaImbalance).",
        jira(20708),
        "alive AND preferred > 0 AND (preferred - preferred_led) * 100 > {percent} * preferred",
        sentence("leads %s of the %s partitions that prefer it", "preferred_led", "preferred"),
        broker="broker_id",
        parameters={"percent": 10},
    ),
    Rule(
        "reciprocal-exclusion",
        ERROR,
        "broker",
        "A live broker is alone in every ISR it leads and in no ISR of others: it is cut off.",
        jira(2729),
        "alive AND shared_led >= {at_least} AND alone = shared_led"
        " AND followed >= {at_least} AND followed_in_sync = 0"
        # One that has just come back looks the same, until it has caught up.
        " AND stayed_for >= {catching_up}",
        sentence(
            "alone in the ISR of %s partitions it leads, out of the ISR of %s others",
            "alone",
            "followed",
        ),
        broker="broker_id",
        parameters={"at_least": 1, "catching_up": 30},
    ),
    Rule(
        "same-host-two-ids",
        ERROR,
        "broker",
        "Two broker ids have one address: one host joined twice, or a listener is wrong.",
        "https://status.rollbar.com/incidents/j8lv6pbks1j9",
        "alive AND same_endpoints > 1",
        sentence("%s brokers are at %s", "same_endpoints", "endpoints"),
        broker="broker_id",
        on_incomplete=True,
    ),
    Rule(
        "missing-rack",
        INFO,
        "broker",
        "Other brokers name their rack, this one does not: placement cannot be rack-aware.",
        github("DataDog/kafka-kit/issues/50"),
        "alive AND rack IS NULL AND rack_count > 0",
        sentence("%s racks are named", "rack_count"),
        broker="broker_id",
    ),
)

SNAPSHOTS: Final = (
    Rule(
        "controller-count",
        ERROR,
        "snapshot",
        "There is no active controller: nobody elects leaders.",
        _KAFKA_METRICS,
        "coalesce(controller_id, -1) < 0 OR (NOT is_kraft AND NOT is_controller_alive)",
        sentence("controller %s", "controller_id"),
        broker="IF(controller_id >= 0, controller_id, NULL)",
    ),
    Rule(
        "incomplete-snapshot",
        UNDECIDED,
        "snapshot",
        "The snapshot does not say all there is: what needs brokers or settings is not judged.",
        _KAFKA_METRICS,
        "NOT complete",
        sentence("taken from %s", "source_form"),
        on_incomplete=True,
    ),
)

STATE_RULES: Final = (*AVAILABILITY, *INVARIANTS, *PLACEMENT, *BROKERS, *SNAPSHOTS)
