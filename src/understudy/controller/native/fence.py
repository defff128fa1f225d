"""One broker fenced in KRaft, decided for many scenarios at once, over the partitions it is on.

Taken are the *plain* partitions, nearly all of a healthy cluster: led from within an ISR of several
members who may all lead, and nothing else going on. The fenced broker leaves the ISR, and where it
led, the first replica in sync takes over. All other partitions of a scenario (a last ISR member, a
reassignment, eligible leader replicas in use) and the records of brokers are interpreted.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from understudy.buckets import found, in_buckets
from understudy.controller.kraft.events import BROKER_FAILURE, FENCE
from understudy.controller.kraft.partitions import LOST, MIGRATING, UNASSIGNED
from understudy.controller.kraft.releases import Rules
from understudy.controller.kraft.words import (
    DEFAULT_MIN_ISR,
    FENCED,
    LEAVING,
    MEMBERS_LEFT,
    MIN_ISR_SETTING,
    NOT_REGISTERED,
    ONLINE_ELECTION,
    PARTITION_CHANGE_RECORD,
    RECORD_WRITE,
    UNCLEAN_ELECTION,
)
from understudy.controller.native.clusters import CLUSTER_NUMBER
from understudy.controller.words import (
    CHOSEN,
    ELECTED,
    FIRST_IN_SYNC,
    ISR_SHRUNK,
    LOG_DIR_OFFLINE,
    NOT_IN_ISR,
    NOT_TRIED,
    SHUTTING_DOWN,
    UNCHANGED,
    UNCLEAN_SETTING,
)
from understudy.frames import Tables
from understudy.names import SCENARIO_KEY, SNAPSHOT_KEY, TOPIC_KEY
from understudy.schemas import DECISIONS, METADATA_WRITES, PARTITION_STATES, PARTITIONS
from understudy.sql import NO_IDS, Rows, null, select, struct, text

KINDS: Final = (FENCE, BROKER_FAILURE)

_RULED_BY: Final = ("release", "metadata_version", "elr_enabled")
RULES: Final = T.StructType(
    [
        T.StructField("release", T.StringType()),
        T.StructField("metadata_version", T.StringType()),
        T.StructField("elr_enabled", T.BooleanType()),
        T.StructField("keeps_elr", T.BooleanType()),
        T.StructField("bumps", T.BooleanType()),  # the leader epoch, when an ISR shrinks
        T.StructField("reads_unclean", T.BooleanType()),
        T.StructField("checks_directories", T.BooleanType()),
        T.StructField("record_version", T.IntegerType()),
    ]
)


def rules_of(ruled: Iterable[tuple[str, str, bool]]) -> list[tuple[Any, ...]]:
    """A row of RULES for each release, metadata version and ELR feature."""
    found = []
    for release, version, elr in ruled:
        rules = Rules.of(release, version, elr_enabled=elr)
        found.append(
            (
                *(release, version, elr, rules.elr, rules.bumps_leader_epoch_on_shrink),
                *(rules.honours_unclean_setting, rules.checks_directories),
                rules.partition_record_version,
            )
        )
    return found


class Fenced(NamedTuple):
    """What fences do to plain partitions, not yet computed, and what is left to others."""

    partitions: DataFrame  # all, with ``is_plain``
    taken: DataFrame  # the keys of the scenarios
    touched: Rows  # one row per scenario and plain partition on its broker
    changed_only: bool

    def keep(self, scenarios: int) -> tuple[DataFrame, ...]:
        """Keep what all tables of so many scenarios are made from."""
        return (self.touched.keep(scenarios),)

    def beside(self, others: Tables) -> Tables:
        """The tables of *others*, which were given everything but plain partitions."""

        def partition_states() -> DataFrame:
            own = _partition_states(self.touched, changed_only=self.changed_only)
            return others["partition_states"].unionAll(own.frame())

        def decisions() -> DataFrame:
            return others["decisions"].unionAll(_decisions(self.touched).frame())

        def metadata_writes() -> DataFrame:
            theirs = Rows.of(others["metadata_writes"])
            return _in_log_order(theirs, Rows.of(self.taken), self.touched).frame()

        both = (partition_states, decisions, metadata_writes)
        return others.beside(Tables({table.__name__: table for table in both}))


def fenced(
    *,
    snapshots: DataFrame,
    brokers: DataFrame,
    topics: DataFrame,
    partitions: DataFrame,
    configs: DataFrame,
    scenarios: DataFrame,
    rules: DataFrame,
    changed_only: bool,
) -> Fenced:
    """Decide every scenario that is one broker fenced; *snapshots* are those of KRaft.

    *rules* has a row of RULES for each of them.
    """
    clusters = _clusters(*map(Rows.of, (snapshots, brokers, configs, rules)))
    for left_out in (_deleting(Rows.of(topics)), _beyond_kafka(Rows.of(partitions))):
        clusters = clusters.join(left_out, SNAPSHOT_KEY, "LEFT ANTI")
    clusters = clusters.apart()
    judged = _judged(Rows.of(partitions), clusters, Rows.of(configs))
    facts = _facts(Rows.of(scenarios), Rows.of(brokers), clusters).apart()
    return Fenced(
        partitions=judged.select(*PARTITIONS.names, "is_plain").compiled_apart().frame(),
        taken=facts.select(*SCENARIO_KEY).frame(),
        touched=_touched(judged, facts).apart(),
        changed_only=changed_only,
    )


# --- What is known of clusters and scenarios: small ----------------------------------------------


def _deleting(topics: Rows) -> Rows:
    return topics.where("queued_for_deletion").select(*SNAPSHOT_KEY)


def _beyond_kafka(partitions: Rows) -> Rows:
    """Where the last leader is no replica Kafka may fail, and then nothing at all is written."""
    return partitions.where(
        f"""(leader >= 0 AND NOT array_contains(replicas, leader))
        OR size(array_except(coalesce(last_known_elr, {NO_IDS}), replicas)) > 0"""
    ).select(*SNAPSHOT_KEY)


def _clusters(snapshots: Rows, brokers: Rows, configs: Rows, rules: Rows) -> Rows:
    """One row per snapshot."""
    broker = struct(
        id="broker_id",
        live="coalesce(alive, false) AND NOT coalesce(shutting_down, false)",
        why_not=f"CASE WHEN fenced THEN {text(FENCED)}"
        f" WHEN shutting_down THEN {text(SHUTTING_DOWN)} END",
        log_dirs="coalesce(log_dirs, CAST(array() AS ARRAY<STRING>))",
    )
    registered = brokers.grouped(SNAPSHOT_KEY, f"collect_list({broker}) AS listed").select(
        *SNAPSHOT_KEY, f"{in_buckets('listed', 'b.id')} AS brokers"
    )
    about = snapshots.select(
        *(*SNAPSHOT_KEY, "controller_id", "release", "metadata_version"),
        "coalesce(elr_enabled, false) AS elr_enabled",
    )
    return (
        about.join(rules, _RULED_BY, broadcast=True)
        .join(registered, SNAPSHOT_KEY, broadcast=True)
        .join(_settings(configs, about), SNAPSHOT_KEY, "LEFT", broadcast=True)
        .select("*", f"{CLUSTER_NUMBER} AS cluster_number")
    )


_LEVELS: Final = ("broker", "cluster", "static")
_SETTINGS: Final = {"unclean": UNCLEAN_SETTING, "min_isr": MIN_ISR_SETTING}


def _settings(configs: Rows, snapshots: Rows) -> Rows:
    """Per snapshot, each setting at each level; the broker's is the active controller's own."""
    here = "scope != 'broker' OR try_cast(name AS INT) = controller_id"
    return (
        configs.join(snapshots.select(*SNAPSHOT_KEY, "controller_id"), SNAPSHOT_KEY, broadcast=True)
        .where(here)
        .grouped(
            SNAPSHOT_KEY,
            *(
                f"max(IF(key = {text(key)} AND scope = {text(level)}, value, NULL))"
                f" AS {name}_{level}"
                for name, key in _SETTINGS.items()
                for level in _LEVELS
            ),
        )
    )


def _facts(scenarios: Rows, brokers: Rows, clusters: Rows) -> Rows:
    """One row per scenario: the broker, which is registered and not fenced so far."""
    kinds = ", ".join(map(text, KINDS))
    active = brokers.where("NOT coalesce(fenced, false)").select(
        *SNAPSHOT_KEY, "broker_id AS broker"
    )
    return (
        scenarios.where("size(events) = 1")
        .select(
            *SCENARIO_KEY,
            "get_json_object(events[0], '$.type') AS event_type",
            "from_json(events[0], 'brokers ARRAY<INT>').brokers AS named",
        )
        .where(f"event_type IN ({kinds}) AND size(named) = 1")
        .select(*SCENARIO_KEY, "event_type", "named[0] AS broker")
        .join(active, (*SNAPSHOT_KEY, "broker"))
        .join(clusters.select(*SNAPSHOT_KEY, "cluster_number"), SNAPSHOT_KEY)
    )


# --- Partitions ----------------------------------------------------------------------------------


def _judged(partitions: Rows, clusters: Rows, configs: Rows) -> Rows:
    """Partitions with ``is_plain``, and why each of their replicas may not lead (null: it may)."""
    overrides = configs.where("scope = 'topic'").grouped(
        (*SNAPSHOT_KEY, "name"),
        *(
            f"max(IF(key = {text(key)}, value, NULL)) AS {name}_topic"
            for name, key in _SETTINGS.items()
        ),
    )
    renamed = overrides.select(
        *SNAPSHOT_KEY, "name AS topic", *(f"{name}_topic" for name in _SETTINGS)
    )
    known = clusters.select(
        *(*SNAPSHOT_KEY, "cluster_number", "brokers"),
        *RULES.names[len(_RULED_BY) :],
        *(f"{name}_{level}" for name in _SETTINGS for level in _LEVELS),
    )
    return (
        partitions.join(known, SNAPSHOT_KEY, "LEFT", broadcast=True)
        .join(renamed, TOPIC_KEY, "LEFT")
        .select(
            *PARTITIONS.names,
            *("cluster_number", "bumps", "record_version", "keeps_elr", "checks_directories"),
            f"{found('brokers', 'leader')}.live AS leader_lives",
            f"transform(replicas, r -> {found('brokers', 'r')}) AS hosts",
            f"{_UNCLEAN_ALLOWED_BY} AS unclean_allowed_by",
            f"try_cast({_effective('min_isr')} AS INT) AS min_isr",
        )
        .compiled_apart()
        .select(
            "* EXCEPT (checks_directories, hosts)",
            f"transform(hosts, (host, i) -> {_WHY_NOT}) AS why_not",
        )
        .select("*", f"coalesce({_IS_PLAIN}, false) AS is_plain")
    )


def _effective(setting: str) -> str:
    levels = ", ".join(f"{setting}_{level}" for level in ("topic", *_LEVELS))
    return f"coalesce({levels}, {text(str(DEFAULT_MIN_ISR))})"


_DIRECTORY: Final = "get(directories, i)"
_WHY_NOT: Final = f"""CASE
    WHEN host IS NULL THEN {text(NOT_REGISTERED)}
    WHEN host.why_not IS NOT NULL THEN host.why_not
    WHEN checks_directories AND {_DIRECTORY} IS NOT NULL
      AND {_DIRECTORY} NOT IN ({text(UNASSIGNED)}, {text(MIGRATING)})
      AND ({_DIRECTORY} = {text(LOST)} OR (size(host.log_dirs) > 0
        AND NOT array_contains(host.log_dirs, {_DIRECTORY})))
      THEN {text(LOG_DIR_OFFLINE)} END"""

# The most specific level that says anything decides; Kafka reads the value as it stands.
_UNCLEAN_ALLOWED_BY: Final = " ".join(
    [
        "CASE WHEN NOT reads_unclean THEN NULL",
        *(
            f"WHEN unclean_{level} IS NOT NULL"
            f" THEN IF(lower(unclean_{level}) = 'true', {text(level)}, NULL)"
            for level in ("topic", *_LEVELS)
        ),
        "END",
    ]
)

_IS_PLAIN: Final = f"""has_state AND size(adding) + size(removing) = 0
    AND size(coalesce(elr, {NO_IDS})) + size(coalesce(last_known_elr, {NO_IDS})) = 0
    AND size(isr) > 1 AND size(array_distinct(isr)) = size(isr)
    AND size(array_distinct(replicas)) = size(replicas)
    AND array_contains(isr, leader) AND leader_lives AND NOT array_contains(offline_dirs, leader)
    AND forall(isr, m -> array_contains(replicas, m)
      AND get(why_not, CAST(array_position(replicas, m) AS INT) - 1) IS NULL)
    AND (NOT keeps_elr OR size(isr) > min_isr)"""


def _touched(judged: Rows, facts: Rows) -> Rows:
    """A row for each scenario and plain partition that its broker has a replica of."""
    striking = facts.select(
        "scenario", "event_type", "broker", "xxhash64(cluster_number, broker) AS host_key"
    )
    recorded = f"transform(replicas, r -> {text(MIGRATING)})"
    return (
        judged.where("is_plain")
        .compiled_apart()
        .select("*", "explode(replicas) AS host")
        .select("*", "xxhash64(cluster_number, host) AS host_key")
        .join(striking, ("host_key",), broadcast=True)
        .select(
            *(*SCENARIO_KEY, "topic", "partition", "replicas", "leader", "leader_epoch", "isr"),
            *("partition_epoch", "recovery", "event_type", "broker", "bumps", "record_version"),
            *("why_not", "unclean_allowed_by"),
            f"IF(size(directories) > 0, directories, {recorded}) AS directories",
            "array_contains(isr, broker) AS leaves",
            "leader = broker AS moves",
            "array_remove(isr, broker) AS isr_after",
        )
        .compiled_apart()
        .select(
            "*",
            "IF(moves, get(filter(replicas, r -> array_contains(isr_after, r)), 0), leader)"
            " AS leader_after",
            "leader_epoch + CAST(moves OR (leaves AND bumps) AS INT) AS leader_epoch_after",
            "partition_epoch + CAST(leaves AS INT) AS partition_epoch_after",
        )
    )


# --- Tables --------------------------------------------------------------------------------------

_EVENT: Final = {"event": "1", "event_type": "event_type"}
_AFTER: Final = {
    **{name: f"{name}_after" for name in ("leader", "leader_epoch", "isr", "partition_epoch")},
    **{name: name for name in ("recovery", "replicas", "directories")},
    **dict.fromkeys(("adding", "removing", "elr", "last_known_elr"), NO_IDS),
}


def _partition_states(touched: Rows, *, changed_only: bool) -> Rows:
    return select(
        touched.where("leaves") if changed_only else touched,
        PARTITION_STATES,
        **_AFTER,
        **{f"{name}_before": name for name in ("leader", "leader_epoch", "isr")},
        outcome=f"CASE WHEN moves THEN {text(ELECTED)} WHEN leaves THEN {text(ISR_SHRUNK)}"
        f" ELSE {text(UNCHANGED)} END",
        reason=f"CASE WHEN moves THEN {text(FIRST_IN_SYNC)}"
        f" WHEN leaves THEN {text(MEMBERS_LEFT)} END",
    )


def _in_log_order(others: Rows, taken: Rows, touched: Rows) -> Rows:
    """Records by topic and partition, behind them those of brokers; others keep their order."""
    own = select(
        touched.where("leaves"),
        METADATA_WRITES,
        **_EVENT,
        **_AFTER,
        kind=text(RECORD_WRITE),
        record=text(PARTITION_CHANGE_RECORD),
        version="record_version",
        changed="CASE WHEN moves THEN array('leader', 'isr')"
        " WHEN bumps THEN array('isr', 'leader') ELSE array('isr') END",
    )
    columns = [name for name in METADATA_WRITES.names if name != "seq"]
    in_order = (
        f"row_number() OVER (PARTITION BY {', '.join(SCENARIO_KEY)}"
        " ORDER BY seq, broker_id IS NOT NULL, topic, partition)"
    )
    mixed = others.join(taken.select("*", "true AS is_mine"), SCENARIO_KEY, "LEFT", broadcast=True)
    rest = mixed.select(
        *SCENARIO_KEY,
        "IF(is_mine, NULL, seq) AS seq",
        *(name for name in columns if name not in SCENARIO_KEY),
    )
    return own.union(rest).select(
        *(
            f"nullif({in_order}, 0) AS seq" if name == "seq" else name
            for name in METADATA_WRITES.names
        )
    )


def _decisions(touched: Rows) -> Rows:
    verdict = f"""CASE
        WHEN r = leader_after THEN {text(CHOSEN)}
        WHEN array_position(replicas, r) > array_position(replicas, leader_after)
          THEN {text(NOT_TRIED)}
        ELSE coalesce(get(why_not, CAST(array_position(replicas, r) AS INT) - 1),
          {text(NOT_IN_ISR)}) END"""
    others = (
        "transform(filter(replicas, r -> r != broker),"
        f" r -> struct(r AS replica, {verdict} AS verdict))"
    )
    candidates = f"concat(array(struct(broker AS replica, {text(LEAVING)} AS verdict)), {others})"
    return select(
        touched.where("moves"),
        DECISIONS,
        **_EVENT,
        step=null("INT"),
        strategy=f"IF(unclean_allowed_by IS NULL, {text(ONLINE_ELECTION)},"
        f" {text(UNCLEAN_ELECTION)})",
        candidates=candidates,
        chosen="leader_after",
        clean="true",
        unclean_allowed_by="unclean_allowed_by",
        reason=text(FIRST_IN_SYNC),
    )
