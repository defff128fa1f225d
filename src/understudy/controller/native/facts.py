"""What a failover knows about its cluster as a whole: one small row per scenario.

Everything that crosses partitions is settled here, before any partition is decided: who is live,
which ids are not online, the order of broker groups, which machine calls have any input (and so
the step numbers), the unclean default and the request versions. The row is broadcast to all
partitions; its size follows the number of brokers, never the number of partitions.

Membership is tested against the few ids that are *not* live rather than the many that are. The ids
come from the partitions themselves, since a replica may sit on a broker that nobody lists.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from understudy.controller import releases
from understudy.controller.group_order import with_group_order
from understudy.controller.native.sql import NO_IDS, struct
from understudy.controller.words import DELETION_SETTING, UNCLEAN_SETTING
from understudy.names import SCENARIO_KEY, SNAPSHOT_KEY, TOPIC_KEY

_IS_TRUE: Final = "lower(trim(value)) = 'true'"
# A reassignment cannot go on where a later controller wrote the record, or nobody did.
_NO_WRITER: Final = 2**31 - 1
# Stands for a snapshot's key where millions of rows are grouped by it.
_SNAPSHOT_NUMBER: Final = f"xxhash64({', '.join(SNAPSHOT_KEY)})"


class TopicExceptions(NamedTuple):
    """The few topics that are queued for deletion or override the unclean setting."""

    topics: DataFrame
    few_queued: bool  # in every snapshot

    def mark_queued(self, partitions: DataFrame) -> DataFrame:
        """Partitions with ``queued``, null where their topic is not queued for deletion."""
        queued = self.topics.selectExpr(*TOPIC_KEY, "queued").where("queued")
        return partitions.join(F.broadcast(queued), on=list(TOPIC_KEY), how="left")


def topic_exceptions(topics: DataFrame, configs: DataFrame) -> DataFrame:
    """The few topics that are queued for deletion or override the unclean setting."""
    queued = topics.where("queued_for_deletion").selectExpr(
        *TOPIC_KEY, "true AS queued", "CAST(NULL AS BOOLEAN) AS unclean_topic"
    )
    overrides = configs.where(f"scope = 'topic' AND key = '{UNCLEAN_SETTING}'").selectExpr(
        *SNAPSHOT_KEY, "name AS topic", "CAST(NULL AS BOOLEAN)", f"{_IS_TRUE} AS unclean_topic"
    )
    return (
        queued.unionAll(overrides)
        .groupBy(*TOPIC_KEY)
        .agg(F.expr("max(queued) AS queued"), F.expr("max(unclean_topic) AS unclean_topic"))
    )


def mentions(partitions: DataFrame, exceptions: TopicExceptions) -> DataFrame:
    """Per snapshot, every broker id its partitions name, and in which roles.

    One pass over the partitions; what comes out is as small as the list of brokers. ``*_dir`` roles
    are those of replicas whose log directory is offline, which a controller may not know about. The
    leader of a partition without a record is null.
    """
    strangers = f"filter(coalesce(isr, {NO_IDS}), r -> NOT array_contains(replicas, r))"
    named = (
        exceptions.mark_queued(partitions)
        .selectExpr(
            f"{_SNAPSHOT_NUMBER} AS number",
            "size(replicas) AS assigned",
            "queued IS NULL AS tried",
            "size(adding) + size(removing) > 0 AS reassigning",
            f"IF(has_state, controller_epoch, {_NO_WRITER}) AS writer",
            "offline_dirs",
            f"posexplode(concat(replicas, array(leader), {strangers})) AS (position, id)",
        )
        .selectExpr(
            "number",
            "id",
            "position < assigned AS assigned",
            "position = assigned AND tried AS leads",
            "coalesce(array_contains(offline_dirs, id), false) AS dir",
            "position = 0 AND reassigning AS reassigning",
            "IF(reassigning, writer, NULL) AS writer",
            "position = 0 AND NOT tried AS queued",
        )
    )
    by_id = named.groupBy("number", "id").agg(
        F.expr("max(assigned AND NOT dir) AS assigned"),
        F.expr("max(assigned AND dir) AS assigned_dir"),
        F.expr("max(leads AND NOT dir) AS leads"),
        F.expr("max(leads AND dir) AS leads_dir"),
        F.expr("count_if(reassigning) AS reassigning"),
        F.expr("count_if(queued) AS queued"),
        F.expr("max(writer) AS writer"),
    )
    roles = "struct(id, assigned, assigned_dir, leads, leads_dir)"
    return by_id.groupBy("number").agg(
        F.expr(f"array_sort(collect_list({roles})) AS mentioned"),
        F.expr("sum(reassigning) AS reassigning"),
        F.expr("sum(queued) AS queued"),
        F.expr("max(writer) AS newest_writer"),
    )


def failover_facts(
    snapshots: DataFrame,
    brokers: DataFrame,
    configs: DataFrame,
    scenarios: DataFrame,
    *,
    mentioned: DataFrame,
    exceptions: TopicExceptions,
) -> DataFrame:
    """One row per scenario that is a single failover.

    ``not_live`` and ``unreachable`` (not even shutting down) list ids that partitions mention;
    ``offline_order`` the broker groups of the offline call in Kafka's order; ``brokers`` who is
    registered. ``f`` holds the plain values; a step in it is null when its call has no input, and
    ``f.steps`` counts them all. ``resumes``: there are reassignments or deletions to take up then.
    ``is_odd``: what is pending changes the start-up itself, by ending the new controller's term or
    by not being deleted after all.

    All sides have a row per snapshot, so they are broadcast: a shuffle would cost more.
    """
    return (
        scenarios.selectExpr(
            *SCENARIO_KEY,
            "from_json(get(events, 0), 'controller INT, dead ARRAY<INT>, forget BOOLEAN') AS event",
        )
        .join(snapshots.hint("broadcast"), on=list(SNAPSHOT_KEY), how="inner")
        .join(_registered(brokers).hint("broadcast"), on=list(SNAPSHOT_KEY), how="left")
        .withColumn("number", F.expr(_SNAPSHOT_NUMBER))
        .join(mentioned.hint("broadcast"), on="number", how="left")
        .join(_queued_topics(exceptions).hint("broadcast"), on=list(SNAPSHOT_KEY), how="left")
        .join(_unclean_levels(configs).hint("broadcast"), on=list(SNAPSHOT_KEY), how="left")
        .join(_deletion_off(configs).hint("broadcast"), on=list(SNAPSHOT_KEY), how="left")
        .transform(_with_event)
        .transform(_with_broker_sets)
        .transform(_with_calls)
        .transform(with_group_order, "offline_order")
        .selectExpr(
            *SCENARIO_KEY,
            "release",
            "reassigning > 0 OR queued > 0 AS resumes",
            "newest_writer > epoch OR (queued > 0 AND NOT deletion_enabled) AS is_odd",
            "queued_topics",
            "forget",
            "brokers",
            "not_live",
            "unreachable",
            "offline_order",
            f"{_plain_values()} AS f",
        )
    )


def _queued_topics(exceptions: TopicExceptions) -> DataFrame:
    """Per snapshot, the topics queued for deletion, as long as that is a short list."""
    return (
        exceptions.topics.where("queued")
        .where("true" if exceptions.few_queued else "false")
        .groupBy(*SNAPSHOT_KEY)
        .agg(F.expr("collect_list(topic) AS queued_topics"))
    )


def _registered(brokers: DataFrame) -> DataFrame:
    """Per snapshot, the brokers that have a session, shutting down or not."""
    broker = struct(
        id="broker_id",
        epoch="broker_epoch",
        shutting_down="coalesce(shutting_down, false)",
        endpoints="endpoints",
        rack="rack",
    )
    return (
        brokers.where("alive")
        .groupBy(*SNAPSHOT_KEY)
        .agg(F.expr(f"array_sort(collect_list({broker})) AS registered"))
    )


def _unclean_levels(configs: DataFrame) -> DataFrame:
    """Per snapshot, the unclean setting of the cluster, the properties file and each broker."""
    by_broker = "struct(CAST(name AS INT) AS id, is_on)"
    return (
        configs.where(f"key = '{UNCLEAN_SETTING}' AND scope != 'topic'")
        .selectExpr(*SNAPSHOT_KEY, "scope", "name", f"{_IS_TRUE} AS is_on")
        .groupBy(*SNAPSHOT_KEY)
        .agg(
            F.expr("max(IF(scope = 'cluster', is_on, NULL)) AS unclean_cluster"),
            F.expr("max(IF(scope = 'static', is_on, NULL)) AS unclean_static"),
            F.expr(f"collect_list(IF(scope = 'broker', {by_broker}, NULL)) AS unclean_brokers"),
        )
    )


def _deletion_off(configs: DataFrame) -> DataFrame:
    """The snapshots whose controller would forget about queued topics instead of deleting them."""
    off = f"scope = 'static' AND key = '{DELETION_SETTING}' AND lower(trim(value)) = 'false'"
    return (
        configs.where(off).selectExpr(*SNAPSHOT_KEY, "false AS deletion_enabled").dropDuplicates()
    )


def _with_event(known: DataFrame) -> DataFrame:
    """What the event changes: who is gone, who takes over, what is forgotten."""
    protocols = f"{releases.level_sql('metadata_version')}, {releases.level_sql('release')}"
    return known.selectExpr(
        *SCENARIO_KEY,
        "release",
        "coalesce(reassigning, 0) AS reassigning",
        "coalesce(queued, 0) AS queued",
        "coalesce(newest_writer, 0) AS newest_writer",
        "coalesce(deletion_enabled, true) AS deletion_enabled",
        "coalesce(queued_topics, array()) AS queued_topics",
        "coalesce(event.forget, false) AS forget",
        "event.controller AS named_controller",
        "IF(coalesce(array_contains(event.dead, controller_id), false), NULL, controller_id)"
        " AS same_controller",
        "controller_epoch + 1 AS epoch",
        # Brokers cannot speak a protocol newer than the release they run.
        f"least({protocols}) AS protocol",
        "filter(coalesce(registered, array()),"
        " b -> NOT coalesce(array_contains(event.dead, b.id), false)) AS brokers",
        "coalesce(mentioned, array()) AS mentioned",
        "unclean_cluster",
        "unclean_static",
        "unclean_brokers",
    )


def _with_broker_sets(known: DataFrame) -> DataFrame:
    ids = "filter(transform(mentioned, m -> m.id), i -> i IS NOT NULL)"
    staying = "transform(filter(brokers, b -> forget OR NOT b.shutting_down), b -> b.id)"
    return known.selectExpr(
        "*",
        f"array_except({ids}, transform(brokers, b -> b.id)) AS unreachable",
        f"array_except({ids}, {staying}) AS not_live",
        "coalesce(named_controller, same_controller, get(brokers, 0).id) AS controller_id",
    )


def _with_calls(known: DataFrame) -> DataFrame:
    """Which of the three machine calls have input, and the brokers of the offline one."""
    live = "NOT array_contains(not_live, m.id)"
    online = f"{live} AND (m.assigned OR (forget AND m.assigned_dir))"
    offline = (
        "(array_contains(not_live, m.id) AND (m.assigned OR m.assigned_dir))"
        " OR (NOT forget AND m.assigned_dir)"
    )
    # A partition without a record has a null leader and is always tried.
    tried = (
        "((m.leads OR m.leads_dir) AND (m.id IS NULL OR array_contains(not_live, m.id)))"
        " OR (NOT forget AND m.leads_dir)"
    )
    return known.selectExpr(
        "*",
        f"coalesce(exists(mentioned, m -> {online}), false) AS any_online",
        f"coalesce(exists(mentioned, m -> {tried}), false) AS any_tried",
        f"transform(filter(mentioned, m -> {offline}), m -> m.id) AS offline_order",
    )


def _plain_values() -> str:
    """The values every partition needs, in one struct.

    Step 1 is the empty UpdateMetadata; the calls follow in order, and those with input count.
    """
    online = "CAST(any_online AS INT)"
    any_offline = "size(offline_order) > 0"
    of_broker = "get(filter(unclean_brokers, b -> b.id = controller_id), 0).is_on"
    lai, um, sr = (releases.request_version_sql(i, "protocol") for i in range(3))
    return struct(
        # Stands for the scenario's key where millions of rows are grouped by it.
        number=f"xxhash64({', '.join(SCENARIO_KEY)})",
        controller_id="controller_id",
        epoch="epoch",
        has_receivers="size(brokers) > 0",
        has_recovery=f"protocol >= {releases.PROTOCOL_3_2}",
        leader_and_isr_version=lai,
        update_metadata_version=um,
        stop_replica_version=sr,
        step_online="IF(any_online, 2, NULL)",
        step_offline=f"IF({any_offline}, {online} + 2, NULL)",
        step_partitions=f"IF(any_tried, {online} + CAST({any_offline} AS INT) + 2, NULL)",
        steps=f"1 + {online} + CAST({any_offline} AS INT) + CAST(any_tried AS INT)",
        unclean=f"coalesce({of_broker}, unclean_cluster, unclean_static, false)",
        unclean_level=f"CASE WHEN {of_broker} IS NOT NULL THEN 'broker'"
        " WHEN unclean_cluster IS NOT NULL THEN 'cluster'"
        " WHEN unclean_static IS NOT NULL THEN 'static' END",
    )
