"""What partitions still do for their clients: is there a leader, and may ``acks=all`` go on.

Every question about availability starts from :func:`counted` and judges with the expressions below,
so that a count means the same in all of them:

- counted are the partitions of topics that are not queued for deletion;
- one that never had a leader (``NOT has_state``) is told apart from all others;
- *offline* is one whose leader, if any, is not online; *under* and *at* min ISR is one that is
  not offline and whose ISR is smaller than, or as large as, ``min_isr``;
- a broker is *live* when it is registered, not fenced and not shutting down, and a replica *online*
  when its broker is live and its log directory is not known to be offline.

The expressions are SQL text over the columns of :func:`counted`.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from understudy.controller.kraft.partitions import LOST, MIGRATING, UNASSIGNED
from understudy.controller.kraft.words import DEFAULT_MIN_ISR, MIN_ISR_SETTING
from understudy.controller.profiles import KRAFT
from understudy.controller.words import UNCLEAN_SETTING
from understudy.names import SNAPSHOT_KEY, TOPIC_KEY
from understudy.schemas import PARTITIONS
from understudy.snapshot import Snapshots
from understudy.sql import NO_IDS, struct, text

INTERNAL_TOPICS: Final = ("__consumer_offsets", "__transaction_state", "__share_group_state")
"""Consumers and transactions stand still while these do; every answer names them."""

# Live brokers lie in buckets by their id, as in a hash table: whether one of a thousand brokers is
# live takes a look at a handful of ids, for each of millions of replicas.
_BUCKETS: Final = 256
_LEVELS: Final = ("broker", "cluster", "static")  # below the topic's own; the first that says wins

_IS_KRAFT: Final = f"mode = {text(KRAFT.mode)}"
_UNCLEAN_BY_DEFAULT: Final = r"release RLIKE '^0\\.(9|10)(\\.|$)'"
# KAFKA-12670: until 3.8 the quorum controller takes the setting for false.
_UNCLEAN_IS_READ: Final = rf"(NOT ({_IS_KRAFT}) OR release RLIKE '^(3\\.9|[4-9]\\.)')"


# --- Expressions ---------------------------------------------------------------------------------


def is_live(broker: str) -> str:
    bucket = f"get(live, pmod({broker}, {_BUCKETS}))"
    return f"coalesce(exists({bucket}, b -> b.id = {broker}), false)"


def is_online(broker: str) -> str:
    """Kafka's isReplicaOnline, and in KRaft an active broker with that directory online."""
    return f"({is_live(broker)} AND NOT coalesce(array_contains(offline_dirs, {broker}), false))"


def is_offline(leader: str = "leader") -> str:
    return f"(has_state AND NOT {is_online(leader)})"


def is_under_min_isr(leader: str = "leader", isr: str = "isr") -> str:
    return f"(has_state AND {is_online(leader)} AND size({isr}) < min_isr)"


def is_at_min_isr(leader: str = "leader", isr: str = "isr") -> str:
    return f"(has_state AND {is_online(leader)} AND size({isr}) = min_isr)"


def is_internal(topic: str = "topic") -> str:
    return f"{topic} IN ({', '.join(map(text, INTERNAL_TOPICS))})"


def blocks_full_acks(leader: str = "leader", isr: str = "isr") -> str:
    """Producers with ``acks=all`` are refused: offline, or under min ISR."""
    return f"(has_state AND NOT ({is_online(leader)} AND size({isr}) >= min_isr))"


# --- The partitions that count -------------------------------------------------------------------


def counted(snapshots: Snapshots) -> DataFrame:
    """The partitions of topics not queued for deletion, with what they are judged by.

    Beside the columns of ``partitions`` (unknown lists empty, ``offline_dirs`` also from the
    directories of KRaft) these: ``min_isr``, in KRaft the effective one; ``unclean_allowed``;
    ``live``, the buckets :func:`is_live` looks into.
    """
    snapshots = snapshots.with_defaults()
    known = (
        snapshots.snapshots.select(*SNAPSHOT_KEY, "mode", "release")
        .join(F.broadcast(live_brokers(snapshots.brokers)), on=list(SNAPSHOT_KEY), how="left")
        .join(F.broadcast(_defaults(snapshots)), on=list(SNAPSHOT_KEY), how="left")
    )
    bounds = F.broadcast(_uneven_topics(snapshots))
    return (
        snapshots.partitions.join(F.broadcast(known), on=list(SNAPSHOT_KEY), how="inner")
        # Without a hint: there may be as many of these as topics in a long history.
        .join(_topic_settings(snapshots), on=list(TOPIC_KEY), how="left")
        .where("queued IS NULL")
        .join(bounds, on=list(TOPIC_KEY), how="left")
        .selectExpr(
            *(name for name in PARTITIONS.names if name != "offline_dirs"),
            f"{_offline_dirs()} AS offline_dirs",
            f"{_min_isr()} AS min_isr",
            f"{_unclean_allowed()} AS unclean_allowed",
            "live",
        )
        .select(*PARTITIONS.names, "min_isr", "unclean_allowed", "live")
    )


def live_brokers(brokers: DataFrame) -> DataFrame:
    """Per snapshot ``live``, the buckets that :func:`is_live` looks into."""
    broker = struct(id="broker_id", log_dirs="log_dirs")
    in_bucket = f"filter(brokers, b -> pmod(b.id, {_BUCKETS}) = n)"
    return (
        brokers.where("alive AND NOT coalesce(shutting_down, false)")
        .groupBy(*SNAPSHOT_KEY)
        .agg(F.expr(f"collect_list({broker}) AS brokers"))
        .selectExpr(
            *SNAPSHOT_KEY, f"transform(sequence(0, {_BUCKETS - 1}), n -> {in_bucket}) AS live"
        )
    )


def _offline_dirs() -> str:
    """Of KRaft the directories are known, and which of them each broker has online.

    (Kafka's DirectoryId.isOnline. A snapshot of KRaft has no ``offline_dirs`` of its own.)
    """
    directory = "get(directories, i)"
    elsewhere = (
        f"exists(get(live, pmod(r, {_BUCKETS})), b -> b.id = r AND size(b.log_dirs) > 0"
        f" AND NOT array_contains(b.log_dirs, {directory}))"
    )
    is_lost = (
        f"{directory} NOT IN ({text(UNASSIGNED)}, {text(MIGRATING)})"
        f" AND ({directory} = {text(LOST)} OR {elsewhere})"
    )
    lost = f"filter(replicas, (r, i) -> coalesce({is_lost}, false))"
    return (
        f"IF(size(directories) > 0, array_union(offline_dirs, {lost}),"
        f" coalesce(offline_dirs, {NO_IDS}))"
    )


# --- Settings ------------------------------------------------------------------------------------


def _min_isr() -> str:
    """KRaft: never more than partition 0 has replicas (effective min ISR)."""
    wanted = f"coalesce(topic_min_isr, default_min_isr, {DEFAULT_MIN_ISR})"
    first = "IF(is_uneven, first_replicas, size(replicas))"
    return f"IF({_IS_KRAFT}, least({wanted}, {first}), {wanted})"


def _unclean_allowed() -> str:
    said = "coalesce(topic_unclean, default_unclean)"
    # The quorum controller reads it as it stands, the others without the blanks around it.
    is_on = f"lower(IF({_IS_KRAFT}, {said}, trim({said}))) = 'true'"
    return f"{_UNCLEAN_IS_READ} AND coalesce({is_on}, {_UNCLEAN_BY_DEFAULT})"


def _value_of(key: str) -> str:
    return "try_cast(trim(value) AS INT)" if key == MIN_ISR_SETTING else "value"


def _defaults(snapshots: Snapshots) -> DataFrame:
    """Per snapshot, what holds for topics that say nothing themselves.

    The broker's level is that of the controller's own broker.
    """
    controllers = F.broadcast(snapshots.snapshots.select(*SNAPSHOT_KEY, "controller_id"))
    rank = f"array_position(array({', '.join(map(text, _LEVELS))}), scope)"

    def first_said(key: str) -> str:
        return f"min_by({_value_of(key)}, {rank}) FILTER (WHERE key = {text(key)})"

    return (
        snapshots.configs.where(
            f"key IN ({text(MIN_ISR_SETTING)}, {text(UNCLEAN_SETTING)}) AND scope != 'topic'"
        )
        .join(controllers, on=list(SNAPSHOT_KEY), how="inner")
        .where("scope != 'broker' OR name = CAST(controller_id AS STRING)")
        .groupBy(*SNAPSHOT_KEY)
        .agg(
            F.expr(f"{first_said(MIN_ISR_SETTING)} AS default_min_isr"),
            F.expr(f"{first_said(UNCLEAN_SETTING)} AS default_unclean"),
        )
    )


def _topic_settings(snapshots: Snapshots) -> DataFrame:
    """Topics that are queued for deletion or have settings of their own."""
    nothing = ("CAST(NULL AS INT) AS topic_min_isr", "CAST(NULL AS STRING) AS topic_unclean")
    queued = snapshots.topics.where("queued_for_deletion").selectExpr(
        *TOPIC_KEY, "true AS queued", *nothing
    )

    def if_about(key: str) -> str:
        return f"IF(key = {text(key)}, {_value_of(key)}, NULL)"

    said = snapshots.configs.where(
        f"key IN ({text(MIN_ISR_SETTING)}, {text(UNCLEAN_SETTING)}) AND scope = 'topic'"
    ).selectExpr(
        *SNAPSHOT_KEY,
        "name AS topic",
        "CAST(NULL AS BOOLEAN) AS queued",
        f"{if_about(MIN_ISR_SETTING)} AS topic_min_isr",
        f"{if_about(UNCLEAN_SETTING)} AS topic_unclean",
    )
    return (
        queued.unionAll(said)
        .groupBy(*TOPIC_KEY)
        .agg(
            *(
                F.expr(f"max({name}) AS {name}")
                for name in ("queued", "topic_min_isr", "topic_unclean")
            )
        )
    )


def _uneven_topics(snapshots: Snapshots) -> DataFrame:
    """The few topics of KRaft whose partitions do not all have as many replicas as partition 0.

    Where there is no KRaft snapshot nothing is read: the join is seen to be empty.
    """
    kraft = F.broadcast(snapshots.snapshots.where(_IS_KRAFT).select(*SNAPSHOT_KEY))
    return (
        snapshots.partitions.join(kraft, on=list(SNAPSHOT_KEY), how="inner")
        .groupBy(*TOPIC_KEY)
        .agg(
            F.expr("min(size(replicas)) AS fewest"),
            F.expr("max(size(replicas)) AS most"),
            F.expr("max(IF(partition = 0, size(replicas), NULL)) AS first_replicas"),
        )
        .where("fewest != most OR first_replicas IS NULL")
        .selectExpr(*TOPIC_KEY, "true AS is_uneven", "first_replicas")
    )
