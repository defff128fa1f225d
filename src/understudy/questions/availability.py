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

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from understudy.buckets import bucket, firsts, in_buckets, is_among
from understudy.controller.kraft.partitions import LOST, MIGRATING, UNASSIGNED
from understudy.controller.kraft.words import DEFAULT_MIN_ISR, MIN_ISR_SETTING
from understudy.controller.profiles import KRAFT
from understudy.controller.words import UNCLEAN_SETTING
from understudy.names import SNAPSHOT_KEY, TOPIC_KEY
from understudy.questions import facts_at_hand
from understudy.schemas import PARTITIONS
from understudy.snapshot import Snapshots
from understudy.sql import NO_IDS, struct, text

INTERNAL_TOPICS: Final = ("__consumer_offsets", "__transaction_state", "__share_group_state")
"""Consumers and transactions stand still while these do; every answer names them."""

_TOO_LARGE: Final = 2**31
_LEVELS: Final = ("cluster", "static")  # below the broker's own; the first that says wins

_IS_KRAFT: Final = f"mode = {text(KRAFT.mode)}"
_RELEASES_UNCLEAN: Final = r"^0\.(9|10)(\.|$)"
_UNCLEAN_BY_DEFAULT: Final = f"release RLIKE r'{_RELEASES_UNCLEAN}'"
# KAFKA-12670: until 3.8 the quorum controller takes the setting for false.
_RELEASES_THAT_READ_UNCLEAN: Final = r"^(3\.9|[4-9]\.)"
_UNCLEAN_IS_READ: Final = f"(NOT ({_IS_KRAFT}) OR release RLIKE r'{_RELEASES_THAT_READ_UNCLEAN}')"


# --- Expressions ---------------------------------------------------------------------------------


def is_live(broker: str) -> str:
    """Of a broker that the partition names."""
    return f"coalesce({broker} >= 0 AND NOT array_contains(down, {broker}), false)"


def is_online(broker: str) -> str:
    """Kafka's isReplicaOnline, and in KRaft an active broker with that directory online."""
    return f"({is_live(broker)} AND NOT coalesce(array_contains(offline_dirs, {broker}), false))"


def is_offline(leader: str = "leader") -> str:
    return f"(has_state AND NOT {is_online(leader)})"


def is_internal(topic: str = "topic") -> str:
    return f"{topic} IN ({', '.join(map(text, INTERNAL_TOPICS))})"


# --- The partitions that count -------------------------------------------------------------------


def counted(snapshots: Snapshots, among: str = "true") -> DataFrame:
    """The partitions of topics not queued for deletion, with what they are judged by.

    Beside the columns of ``partitions`` (unknown lists empty, ``offline_dirs`` also from the
    directories of KRaft) these: ``is_kraft``; ``min_isr``, in KRaft the effective one;
    ``unclean_allowed``; ``down``, those brokers a partition names that are not live. *among* is a
    condition on the columns of ``partitions``: the others are not looked at any further.
    """
    at_hand = facts_at_hand.facts(snapshots, _SETTINGS)
    snapshots = snapshots.with_defaults()
    known, topics = (None, None) if at_hand is None else at_hand[1:]
    known = _facts(snapshots) if known is None else known
    topics = _topic_settings(snapshots) if topics is None else _read(topics)
    of_snapshots = ("is_kraft", "unclean_is_read", "unclean_by_default")
    known = known.selectExpr(
        *SNAPSHOT_KEY,
        f"{_IS_KRAFT} AS is_kraft",
        f"{_UNCLEAN_IS_READ} AS unclean_is_read",
        f"{_UNCLEAN_BY_DEFAULT} AS unclean_by_default",
        *(f"{_default(setting)} AS {setting}" for setting in _SETTINGS),
        *_LIVE,
    ).selectExpr("*", _FIRST_LIVE)
    partitions = (
        snapshots.partitions.where(among)
        .join(F.broadcast(known), on=list(SNAPSHOT_KEY), how="inner")
        # The brokers of a whole cluster go no further: next to every row they would be copied
        # by each step that is not compiled into one with the step before.
        .selectExpr(
            *(name for name in PARTITIONS.names if name != "offline_dirs"),
            *(*of_snapshots, *_SETTINGS),
            f"{_offline_dirs()} AS offline_dirs",
            f"{named_down()} AS down",
        )
        .join(topics, on=list(TOPIC_KEY), how="left")
        .where("NOT coalesce(queued, false)")
    )
    first_replicas = "size(replicas)"
    if at_hand is None or at_hand.mode == KRAFT.mode:
        bounds = F.broadcast(_uneven_topics(snapshots))
        partitions = partitions.join(bounds, on=list(TOPIC_KEY), how="left")
        first_replicas = "IF(is_uneven, first_replicas, size(replicas))"
    return partitions.selectExpr(
        *PARTITIONS.names,
        "is_kraft",
        f"{_min_isr(first_replicas)} AS min_isr",
        f"{_unclean_allowed()} AS unclean_allowed",
        "down",
    )


def live_brokers(brokers: DataFrame) -> DataFrame:
    """Per snapshot what :func:`named_down` looks into, and ``dirs`` of live brokers."""
    return _listed(brokers).selectExpr(*SNAPSHOT_KEY, *_LIVE).selectExpr("*", _FIRST_LIVE)


_LIVE: Final = (
    f"{in_buckets('ids', 'b')} AS live",
    f"IF(size(log_dirs) > 0, {in_buckets('log_dirs', 'b.id')}, NULL) AS dirs",
)
_FIRST_LIVE: Final = f"{firsts('live')} AS first_live"


def _facts(snapshots: Snapshots) -> DataFrame:
    """As ``facts_at_hand.Facts.known``, of any snapshots."""
    return (
        snapshots.snapshots.select(*SNAPSHOT_KEY, *facts_at_hand.RULING)
        .join(F.broadcast(_listed(snapshots.brokers)), on=list(SNAPSHOT_KEY), how="left")
        .join(F.broadcast(_settings(snapshots.configs)), on=list(SNAPSHOT_KEY), how="left")
    )


def _listed(brokers: DataFrame) -> DataFrame:
    """Per snapshot the live brokers, and those of them whose log directories are known."""
    log_dirs = struct(id="broker_id", log_dirs="log_dirs")
    knows_dirs = "FILTER (WHERE size(log_dirs) > 0)"

    return (
        brokers.where("alive AND NOT coalesce(shutting_down, false)")
        .groupBy(*SNAPSHOT_KEY)
        .agg(
            F.expr("collect_list(broker_id) AS ids"),
            F.expr(f"collect_list({log_dirs}) {knows_dirs} AS log_dirs"),
        )
    )


def named_down() -> str:
    """Those brokers that a partition names and that are not live; next to nobody, mostly."""

    def is_known(broker: str) -> str:
        return is_among("live", "first_live", broker)

    others = {ids: f"coalesce({ids}, {NO_IDS})" for ids in ("isr", "elr", "last_known_elr")}
    all_live = f"forall(replicas, b -> {is_known('b')})"
    no_strangers = " AND ".join(
        (
            "(coalesce(leader, -1) < 0 OR array_contains(replicas, leader))",
            *(f"forall({ids}, b -> array_contains(replicas, b))" for ids in others.values()),
        )
    )
    everybody = f"concat(replicas, {', '.join(others.values())}, array(leader))"
    found = f"filter(array_distinct({everybody}), b -> b >= 0 AND NOT {is_known('b')})"
    # A condition makes no lists, and it is all that most partitions come to.
    return f"IF({all_live} AND {no_strangers}, {NO_IDS}, {found})"


def _offline_dirs() -> str:
    """Of KRaft the directories are known, and which of them each broker has online.

    (Kafka's DirectoryId.isOnline. A snapshot of KRaft has no ``offline_dirs`` of its own.)
    """
    directory = "get(directories, i)"
    elsewhere = (
        f"exists({bucket('dirs', 'r')}, b -> b.id = r"
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


_WANTED: Final = f"coalesce(topic_min_isr, min_isr, {DEFAULT_MIN_ISR})"


def _min_isr(first_replicas: str) -> str:
    """KRaft: never more than partition 0 has replicas (effective min ISR)."""
    return f"IF(is_kraft, least({_WANTED}, {first_replicas}), {_WANTED})"


def min_isr_by_topic(
    settings: Iterable[Mapping[str, Any]], controller_id: int | None
) -> dict[str | None, int]:
    """``min_isr`` of each topic that has its own, and of all others under None.

    Of one snapshot, from rows of ``configs``; that is not the effective one of KRaft.
    """
    own, default = _by_topic(settings, controller_id, MIN_ISR_SETTING, _whole_number)
    return {**own, None: DEFAULT_MIN_ISR if default is None else default}


def unclean_by_topic(
    settings: Iterable[Mapping[str, Any]], snapshot: Mapping[str, Any]
) -> dict[str | None, bool | None]:
    """The same of ``unclean_allowed``; unknown where it hangs on a release that is not known."""
    own, default = _by_topic(settings, snapshot["controller_id"], UNCLEAN_SETTING, _switch)
    is_kraft, release = snapshot["mode"] == KRAFT.mode, snapshot["release"]
    is_read = (
        None if release is None else re.search(_RELEASES_THAT_READ_UNCLEAN, release) is not None
    )
    by_default = None if release is None else re.search(_RELEASES_UNCLEAN, release) is not None
    least = _ON_AS_IT_STANDS if is_kraft else _ON_BUT_FOR_BLANKS

    def allowed(said: int | None) -> bool | None:
        is_on = by_default if said is None else said >= least
        if not is_kraft or is_on is False:
            return is_on
        return is_read and is_on if is_read is not None else None

    return {topic: allowed(said) for topic, said in {**own, None: default}.items()}


def _by_topic(
    settings: Iterable[Mapping[str, Any]],
    controller_id: int | None,
    key: str,
    read: Callable[[str | None], int | None],
) -> tuple[dict[str | None, int], int | None]:
    """What topics say themselves, and what holds for all others; see :func:`_default`."""
    said = {
        (row["scope"], row["name"]): read(row["value"]) for row in settings if row["key"] == key
    }
    of_broker = ("broker", str(controller_id))
    levels = [of_broker] if of_broker in said else [k for n in _LEVELS for k in said if k[0] == n]
    own = {
        name: value
        for (scope, name), value in said.items()
        if scope == "topic" and value is not None
    }
    return own, said[levels[0]] if levels else None


def _switch(value: str | None) -> int | None:
    if value is None:
        return None
    if value.lower() == "true":
        return _ON_AS_IT_STANDS
    return _ON_BUT_FOR_BLANKS if value.strip(" ").lower() == "true" else _OFF


def _whole_number(value: str | None) -> int | None:
    """As ``try_cast`` has it."""
    found = re.fullmatch(r"\s*([+-]?[0-9]+)\s*", value or "")
    number = int(found[1]) if found else None
    return number if number is not None and abs(number) < _TOO_LARGE else None


def _unclean_allowed() -> str:
    said = "coalesce(topic_unclean, unclean)"
    is_on = f"{said} >= IF(is_kraft, {_ON_AS_IT_STANDS}, {_ON_BUT_FOR_BLANKS})"
    return f"unclean_is_read AND coalesce({is_on}, unclean_by_default)"


# The quorum controller reads the setting as it stands, the others without the blanks around it.
_OFF, _ON_BUT_FOR_BLANKS, _ON_AS_IT_STANDS = 0, 1, 2
_SETTINGS: Final = {"min_isr": MIN_ISR_SETTING, "unclean": UNCLEAN_SETTING}


def _value(setting: str, value: str) -> str:
    """What the text *value* of a setting means; null where it means nothing."""
    if setting == "min_isr":
        return f"try_cast(trim({value}) AS INT)"
    return f"""CASE WHEN lower({value}) = 'true' THEN {_ON_AS_IT_STANDS}
        WHEN lower(trim({value})) = 'true' THEN {_ON_BUT_FOR_BLANKS}
        WHEN {value} IS NOT NULL THEN {_OFF} END"""


def _settings(configs: DataFrame) -> DataFrame:
    """Per snapshot, what is said for topics that say nothing themselves."""
    keys = ", ".join(map(text, _SETTINGS.values()))
    each = struct(key="key", scope="scope", name="name", value="value")
    return (
        configs.where(f"key IN ({keys}) AND scope != 'topic'")
        .groupBy(*SNAPSHOT_KEY)
        .agg(F.expr(f"collect_list({each}) AS settings"))
    )


def _default(setting: str) -> str:
    """What holds for topics that say nothing themselves.

    The broker's level is that of the controller's own broker.
    """
    levels = ["s.scope = 'broker' AND s.name = CAST(controller_id AS STRING)"]
    levels += [f"s.scope = {text(level)}" for level in _LEVELS]
    key = text(_SETTINGS[setting])
    said = ", ".join(f"filter(settings, s -> s.key = {key} AND {level})" for level in levels)
    return _value(setting, f"get(concat({said}), 0).value")


def _read(topics: DataFrame) -> DataFrame:
    """Settings of topics by what they mean."""
    means = (f"{_value(setting, setting)} AS topic_{setting}" for setting in _SETTINGS)
    return F.broadcast(topics.selectExpr(*TOPIC_KEY, "queued", *means))


def _topic_settings(snapshots: Snapshots) -> DataFrame:
    """Topics that are queued for deletion or have settings of their own.

    Without a hint: there may be as many of these as topics in a long history.
    """
    nothing = (f"CAST(NULL AS INT) AS topic_{setting}" for setting in _SETTINGS)
    queued = snapshots.topics.where("queued_for_deletion").selectExpr(
        *TOPIC_KEY, "true AS queued", *nothing
    )
    names = ("queued", *(f"topic_{setting}" for setting in _SETTINGS))
    return (
        queued.unionAll(_own_settings(snapshots.configs))
        .groupBy(*TOPIC_KEY)
        .agg(*(F.expr(f"max({name}) AS {name}") for name in names))
    )


def _own_settings(configs: DataFrame) -> DataFrame:
    """What topics say themselves, a row per setting."""
    keys = ", ".join(map(text, _SETTINGS.values()))
    values = (
        f"IF(key = {text(key)}, {_value(setting, 'value')}, NULL) AS topic_{setting}"
        for setting, key in _SETTINGS.items()
    )
    return configs.where(f"key IN ({keys}) AND scope = 'topic'").selectExpr(
        *SNAPSHOT_KEY, "name AS topic", "CAST(NULL AS BOOLEAN) AS queued", *values
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
