"""What a native replay knows of each cluster as a whole: one small row per snapshot.

Everything that crosses partitions is settled here and in the facts of each scenario, before any
partition is decided. A row's size follows the number of brokers, never the number of partitions.

Membership is tested against the few ids that are *not* live rather than the many that are. The ids
come from the partitions themselves, since a replica may sit on a broker that nobody lists.
"""

from __future__ import annotations

from enum import IntFlag
from typing import Final, NamedTuple

from understudy.controller import releases, request_sizes
from understudy.controller.words import DELETION_SETTING, UNCLEAN_SETTING
from understudy.names import SCENARIO_KEY, SNAPSHOT_KEY, TOPIC_KEY
from understudy.sql import NO_IDS, Rows, struct

_IS_TRUE: Final = "lower(trim(value)) = 'true'"
# A reassignment cannot go on where a later controller wrote the record, or nobody did.
_NO_WRITER: Final = 2**31 - 1
# Stand for the keys of snapshots, scenarios and topics where millions of rows are grouped by them
# or looked up.
CLUSTER_NUMBER: Final = f"xxhash64({', '.join(SNAPSHOT_KEY)})"
SCENARIO_NUMBER: Final = f"xxhash64({', '.join(SCENARIO_KEY)})"
_TOPIC_KEY_NUMBER: Final = f"xxhash64({', '.join(TOPIC_KEY)})"


def about_cluster(partitions: Rows, known: Rows) -> Rows:
    """Each of the *partitions* beside what is *known* of its cluster, by ``cluster_number``.

    Every partition goes through this: to look up a number is much less work than two names.
    """
    numbered = partitions.select("*", f"{CLUSTER_NUMBER} AS cluster_number")
    return numbered.join(known, ("cluster_number",), broadcast=True)


class TopicExceptions(NamedTuple):
    """The few topics that are queued for deletion or override the unclean setting."""

    topics: Rows
    few_queued: bool  # in every snapshot

    def mark_queued(self, partitions: Rows) -> Rows:
        """Partitions with ``queued``, null where their topic is not queued for deletion."""
        queued = self.topics.where("queued").select(
            f"{_TOPIC_KEY_NUMBER} AS topic_number", "queued"
        )
        numbered = partitions.select("*", f"{_TOPIC_KEY_NUMBER} AS topic_number")
        return numbered.join(queued, ("topic_number",), "LEFT", broadcast=True)

    def find_queued(self, partitions: Rows) -> tuple[Rows, str]:
        """Partitions, and how to tell there that a topic is queued, beside ``queued_topics``."""
        if self.few_queued:
            return partitions, "array_contains(queued_topics, topic)"
        return self.mark_queued(partitions), "queued IS NOT NULL"

    @property
    def overrides(self) -> Rows:
        return self.topics.select(*TOPIC_KEY, "unclean_topic")


def topic_exceptions(topics: Rows, configs: Rows) -> Rows:
    """The few topics that are queued for deletion or override the unclean setting."""
    queued = topics.where("queued_for_deletion").select(
        *TOPIC_KEY, "true AS queued", "CAST(NULL AS BOOLEAN) AS unclean_topic"
    )
    overrides = configs.where(f"scope = 'topic' AND key = '{UNCLEAN_SETTING}'").select(
        *SNAPSHOT_KEY, "name AS topic", "CAST(NULL AS BOOLEAN)", f"{_IS_TRUE} AS unclean_topic"
    )
    return queued.union(overrides).grouped(
        TOPIC_KEY, "max(queued) AS queued", "max(unclean_topic) AS unclean_topic"
    )


class Role(IntFlag):
    """What a broker is to some partition of its cluster.

    Those with a directory are of replicas whose log directory is offline, which a controller may
    not know about. Nobody looks for a leader of a topic queued for deletion.
    """

    ASSIGNED = 1
    ASSIGNED_DIR = 2
    LEADS = 4  # of a partition that is not queued; the leader where there is no record is null
    LEADS_DIR = 8
    KEPT = 16  # assigned, and not queued
    DELETING = 32  # assigned, and queued
    LEADS_OTHERS = 64  # kept, led, and not the only replica
    FOLLOWS = 128  # kept, led by another one
    REASSIGNING = 256  # assigned, and being reassigned

    def of(self, mention: str) -> str:
        """Whether *mention* has one of these roles, as SQL text."""
        return f"({mention}.roles & {self.value}) != 0"


LEADS_ANYHOW: Final = Role.LEADS | Role.LEADS_DIR


def mentions(partitions: Rows, exceptions: TopicExceptions) -> Rows:
    """Per snapshot, every broker id its partitions name, and in which roles.

    One pass over the partitions; what comes out is as small as the list of brokers.
    """
    strangers = f"filter(coalesce(isr, {NO_IDS}), r -> NOT array_contains(replicas, r))"
    shared = f"IF(item = leader, {Role.LEADS_OTHERS.value}, {Role.FOLLOWS.value})"
    as_replica = f"""IF(is_dir, {Role.ASSIGNED_DIR.value}, {Role.ASSIGNED.value})
        | IF(tried, {Role.KEPT.value} | IF(has_state AND assigned > 1, {shared}, 0),
             {Role.DELETING.value})
        | IF(reassigning, {Role.REASSIGNING.value}, 0)"""
    as_leader = f"IF(is_dir, {Role.LEADS_DIR.value}, {Role.LEADS.value})"
    roles = f"""CASE
        WHEN place < assigned THEN {as_replica}
        WHEN place = assigned AND tried THEN {as_leader}
        ELSE 0 END"""
    named = (
        exceptions.mark_queued(partitions)
        .unfolded(
            f"concat(replicas, array(leader), {strangers})",
            f"{CLUSTER_NUMBER} AS number",
            "size(replicas) AS assigned",
            "queued IS NULL AS tried",
            "size(adding) + size(removing) > 0 AS reassigning",
            f"IF(has_state, controller_epoch, {_NO_WRITER}) AS writer",
            "has_state",
            "leader",
            "IF(size(offline_dirs) > 0, offline_dirs, NULL) AS offline_dirs",
        )
        .select("*", "coalesce(array_contains(offline_dirs, item), false) AS is_dir")
    )
    by_id = named.grouped(
        ("number", "item"),
        f"bit_or({roles}) AS roles",
        "max(IF(reassigning, writer, NULL)) AS writer",
    )
    return by_id.grouped(
        ("number",),
        "array_sort(collect_list(struct(item AS id, roles))) AS mentioned",
        f"(bit_or(roles) & {Role.REASSIGNING.value}) != 0 AS reassigning",
        f"(bit_or(roles) & {Role.DELETING.value}) != 0 AS queued",
        "max(writer) AS newest_writer",
    )


def with_cluster(
    rows: Rows,
    brokers: Rows,
    configs: Rows,
    *,
    mentioned: Rows,
    exceptions: TopicExceptions,
) -> Rows:
    """*rows* of snapshots, or of their scenarios, with what is known of each cluster.

    All sides have a row per snapshot, so they are broadcast: a shuffle would cost more.
    """
    per_snapshot = (
        _registered(brokers),
        _queued_topics(exceptions),
        _unclean_levels(configs),
        _deletion_off(configs),
    )
    known = rows.select("*", f"{CLUSTER_NUMBER} AS number")
    known = known.join(mentioned, ("number",), "LEFT", broadcast=True)
    for side in per_snapshot:
        known = known.join(side, SNAPSHOT_KEY, "LEFT", broadcast=True)
    missing = {
        "registered": "array()",
        "away": "array()",
        "highest_epoch": "0",
        "mentioned": "array()",
        "queued_topics": "array()",
        "reassigning": "false",
        "queued": "false",
        "newest_writer": "0",
        "deletion_enabled": "true",
    }
    return known.select(
        f"* EXCEPT (number, {', '.join(missing)})",
        "number AS cluster_number",
        *(f"coalesce({name}, {value}) AS {name}" for name, value in missing.items()),
        # Brokers cannot speak a protocol newer than the release they run.
        f"least({releases.level_sql('metadata_version')}, {releases.level_sql('release')})"
        " AS protocol",
    )


def ids_of(brokers: str) -> str:
    return f"transform({brokers}, b -> b.id)"


MENTIONED_IDS: Final = "filter(transform(mentioned, m -> m.id), i -> i IS NOT NULL)"


def plain_values(**own: str) -> str:
    """The values every partition of a scenario needs, in one struct, and the event's *own*.

    ``brokers`` are those that get requests.
    """
    of_broker = "get(filter(unclean_brokers, b -> b.id = controller_id), 0).is_on"
    lai, um, sr = (releases.request_version_sql(i, "protocol") for i in range(3))
    described = (
        "aggregate(brokers, 0, (total, b) -> total"
        f" + coalesce(length(b.endpoints), {request_sizes.UNKNOWN_ENDPOINTS})"
        " + coalesce(length(b.rack), 0))"
    )
    return struct(
        number=SCENARIO_NUMBER,
        cluster_number="cluster_number",
        controller_id="controller_id",
        epoch="epoch",
        has_receivers="size(brokers) > 0",
        live_brokers="size(brokers)",
        described_brokers=described,
        has_recovery=f"protocol >= {releases.PROTOCOL_3_2}",
        leader_and_isr_version=lai,
        update_metadata_version=um,
        stop_replica_version=sr,
        unclean=f"coalesce({of_broker}, unclean_cluster, unclean_static, false)",
        unclean_level=f"CASE WHEN {of_broker} IS NOT NULL THEN 'broker'"
        " WHEN unclean_cluster IS NOT NULL THEN 'cluster'"
        " WHEN unclean_static IS NOT NULL THEN 'static' END",
        **own,
    )


def numbered_steps(**is_taken: str) -> dict[str, str]:
    """Steps in the order they come; one that is not taken is null and does not count."""
    numbers: dict[str, str] = {}
    before = "0"
    for name, taken in is_taken.items():
        numbers[name] = f"IF({taken}, 1 + {before}, NULL)"
        before += f" + CAST({taken} AS INT)"
    return {**numbers, "steps": before}


def _queued_topics(exceptions: TopicExceptions) -> Rows:
    """Per snapshot, the topics queued for deletion, as long as that is a short list."""
    return exceptions.topics.where("queued" if exceptions.few_queued else "false").grouped(
        SNAPSHOT_KEY, "collect_list(topic) AS queued_topics"
    )


def _registered(brokers: Rows) -> Rows:
    """Per snapshot, the brokers that have a session, shutting down or not, and those that have not.

    ``highest_epoch`` is that of all of them.
    """
    broker = struct(
        id="broker_id",
        epoch="broker_epoch",
        shutting_down="coalesce(shutting_down, false)",
        endpoints="endpoints",
        rack="rack",
    )
    return brokers.grouped(
        SNAPSHOT_KEY,
        f"array_sort(collect_list(IF(alive, {broker}, NULL))) AS registered",
        f"array_sort(collect_list(IF(alive, NULL, {broker}))) AS away",
        "coalesce(max(broker_epoch), 0) AS highest_epoch",
    )


def _unclean_levels(configs: Rows) -> Rows:
    """Per snapshot, the unclean setting of the cluster, the properties file and each broker."""
    by_broker = "struct(CAST(name AS INT) AS id, is_on)"
    return (
        configs.where(f"key = '{UNCLEAN_SETTING}' AND scope != 'topic'")
        .select(*SNAPSHOT_KEY, "scope", "name", f"{_IS_TRUE} AS is_on")
        .grouped(
            SNAPSHOT_KEY,
            "max(IF(scope = 'cluster', is_on, NULL)) AS unclean_cluster",
            "max(IF(scope = 'static', is_on, NULL)) AS unclean_static",
            f"collect_list(IF(scope = 'broker', {by_broker}, NULL)) AS unclean_brokers",
        )
    )


def _deletion_off(configs: Rows) -> Rows:
    """The snapshots whose controller would forget about queued topics instead of deleting them."""
    off = f"scope = 'static' AND key = '{DELETION_SETTING}' AND lower(trim(value)) = 'false'"
    return configs.where(off).grouped(SNAPSHOT_KEY, "false AS deletion_enabled")
