"""What would happen if: the impact of failures on clients, by scenario, partition and broker.

Who leads and who is in sync afterwards is what the controller decides when the scenario is
replayed; nothing is decided here. The counts of a scenario are those of its snapshot plus what
changes in the partitions it changes, so that the work follows what is touched.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from understudy import replay as replaying
from understudy.controller.columnar.feed import Key
from understudy.controller.profiles import PROFILES
from understudy.controller.states import NEW_PARTITION, OFFLINE_PARTITION, ONLINE_PARTITION
from understudy.controller.words import DELETED, ELECTED_UNCLEAN
from understudy.frames import SOME_OF_EACH, Tables, kept, small_frame
from understudy.names import PARTITION_KEY, SCENARIO_KEY, SNAPSHOT_KEY
from understudy.questions import units
from understudy.questions.availability import is_internal
from understudy.questions.known_clusters import known_clusters
from understudy.questions.units import PAIR, Cluster
from understudy.questions.what_if import impact as impacts
from understudy.questions.what_if import impact_brokers
from understudy.questions.what_if.before import NUMBER, PARTITION, STATUSES, before
from understudy.questions.what_if.failures import Asked, Case, cases, how_many
from understudy.questions.what_if.one_pass import About, one_pass
from understudy.questions.what_if.pair_failures import impact_of_pairs
from understudy.schemas import (
    BOOLEAN,
    IDS,
    IMPACT,
    IMPACT_BROKERS,
    IMPACT_PARTITIONS,
    LONG,
    RISKS,
    STRING,
    conform,
)
from understudy.snapshot import Snapshots
from understudy.sql import text

_SCHEMAS: Final = {
    "impact": IMPACT,
    "impact_partitions": IMPACT_PARTITIONS,
    "impact_brokers": IMPACT_BROKERS,
}
_CASES: Final = T.StructType(
    [
        *(T.StructField(name, STRING) for name in SCENARIO_KEY),
        T.StructField(NUMBER, LONG),
        *(T.StructField(name, IDS) for name in ("brokers", "gone", "back")),
        T.StructField("quorum_survives", BOOLEAN),
        T.StructField("quorum_reason", STRING),
    ]
)


@dataclass(frozen=True)
class WhatIf:
    """The tables of an answer, not yet computed, and what a reader of them should know."""

    answered: Tables
    quarantine: DataFrame
    notes: list[str]
    replayed: int  # scenarios, counted over all snapshots
    held: tuple[DataFrame, ...] = ()

    @property
    def impact(self) -> DataFrame:
        return self.answered["impact"]

    @property
    def impact_partitions(self) -> DataFrame:
        return self.answered["impact_partitions"]

    @property
    def impact_brokers(self) -> DataFrame:
        return self.answered["impact_brokers"]

    def tables(self) -> Tables:
        return self.answered

    def close(self) -> None:
        """Let go of what is held in memory."""
        for frame in self.held:
            frame.unpersist()


def what_if(
    snapshots: Snapshots,
    failures: Asked | Sequence[str],
    *,
    reference: Snapshots | None = None,
    profile: str | None = None,
    release: str | None = None,
    on_begin: Callable[[int, int], None] | None = None,
) -> WhatIf:
    """Let *failures* happen to the snapshots, each from how things stand there.

    *failures* are units such as ``broker:7`` or ``broker:7,rack:b``, each text a scenario, or all
    that can be asked. With a *reference*, snapshots of the same keys, impact has columns
    ``reference_*``: the same failures there. *on_begin* is told how many snapshots and scenarios
    over them there are before they are judged. The caller closes the result.
    """
    asked = failures if isinstance(failures, Asked) else Asked(tuple(map(units.parse, failures)))
    found = _answer(snapshots, asked, profile, release, on_begin)
    if reference is None:
        return found
    other = _answer(reference, asked, profile, release)
    compared = {"impact": impacts.with_reference(found.impact, other.impact)}
    return replace(found, answered=found.answered.beside(compared), held=(*found.held, *other.held))


def _answer(
    snapshots: Snapshots,
    asked: Asked,
    profile: str | None,
    release: str | None,
    on_begin: Callable[[int, int], None] | None = None,
) -> WhatIf:
    ruled = _under(snapshots, profile, release)
    clusters = known_clusters(ruled, assigned=bool(asked.restored))
    wanted = cases(asked, clusters)
    if on_begin is not None:
        on_begin(len(clusters), how_many(asked, wanted, clusters))
    replay = replaying.replay(
        snapshots,
        [case.scenario for case in wanted],
        profile=profile,
        release=release,
        changed_only=True,
        for_few_tables=True,
    )
    ruled = ruled.only(replay.accepted)
    numbered = _numbered(wanted, clusters)
    about = _case_frame(numbered, ruled)
    none_beside = dict.fromkeys(_SCHEMAS, _nothing)
    held = replay.held
    if replay.in_columns is None or PAIR in asked.every:
        partitions = kept(before(ruled), rows=ruled.rows)
        held = (partitions, *held)
    if replay.in_columns is None:
        several = any(len(case.brokers) > 1 for case in wanted)
        told, more = _tables(ruled, replay, about, partitions, several=several)
        tables, held = Tables({}).beside(told), (*more, *held)
    else:
        made = one_pass(replay.in_columns, _by_snapshot(numbered), about)
        tables = Tables(none_beside, [made])
    if PAIR in asked.every:
        named = {units.group_name(group) for group in asked.together if group[0].kind == PAIR}
        pairs = impact_of_pairs(ruled, partitions).where(~F.col("scenario").isin(sorted(named)))
        tables = tables.followed_by(Tables({**none_beside, "impact": lambda: pairs}))
    return WhatIf(tables, replay.quarantine, replay.notes, replay.replayed, held)


def _nothing() -> None:
    """No rows beside those of a pass."""


def _tables(
    snapshots: Snapshots,
    replay: replaying.Replay,
    about: DataFrame,
    partitions: DataFrame,
    *,
    several: bool,
) -> tuple[dict[str, DataFrame], tuple[DataFrame, ...]]:
    """The tables of replayed scenarios, and what is kept in memory for them.

    *several*: some scenarios are about more than one broker.
    """
    if not replay.replayed:
        spark = partitions.sparkSession
        return {name: small_frame(spark, [], schema) for name, schema in _SCHEMAS.items()}, ()
    changes = kept(
        _changes(replay.tables["partition_states"], partitions, about),
        scenarios=replay.replayed,
        rows=snapshots.at_most(replay.replayed),
    )
    parts = kept(impact_brokers.parts(partitions), rows=snapshots.at_most(SOME_OF_EACH))
    sent = impact_brokers.sent(replay.tables["requests"], about)
    brokers = kept(
        impact_brokers.impact_brokers(snapshots, about, parts, changes, sent),
        rows=snapshots.at_most(replay.replayed),
    )
    tables = {
        "impact": impacts.impact(
            about,
            impact_brokers.totals(parts),
            impact_brokers.touched(partitions, parts, about, several=several),
            impacts.summed(changes),
            impacts.brokers_summed(brokers),
        ),
        "impact_partitions": conform(changes, IMPACT_PARTITIONS),
        "impact_brokers": impact_brokers.table(brokers),
    }
    return tables, (changes, parts, brokers)


def _under(snapshots: Snapshots, profile: str | None, release: str | None) -> Snapshots:
    """The snapshots as the rules see them that the caller asks for."""
    rows = snapshots.snapshots
    if profile in PROFILES:
        rows = rows.withColumn("mode", F.lit(PROFILES[profile].mode))
    if release is not None:
        rows = rows.withColumn("release", F.lit(release))
    return replace(snapshots, snapshots=rows)


class _Numbered(NamedTuple):
    """A case over one of the snapshots it is about, with a number of its own."""

    key: Key
    case: Case
    number: int


def _numbered(wanted: Sequence[Case], clusters: Sequence[Cluster]) -> list[_Numbered]:
    pairs = ((key, case) for case in wanted for key in _snapshots_of(case, clusters))
    return [_Numbered(key, case, number) for number, (key, case) in enumerate(pairs)]


def _by_snapshot(numbered: Sequence[_Numbered]) -> dict[Key, dict[str, About]]:
    found: dict[Key, dict[str, About]] = {}
    for key, case, _ in numbered:
        about = About(case.brokers, case.gone, case.back)
        found.setdefault(key, {})[case.scenario.scenario] = about
    return found


def _case_frame(numbered: Sequence[_Numbered], snapshots: Snapshots) -> DataFrame:
    """The cases beside the snapshots they are about, with ``complete``.

    There are as many rows as scenarios times partitions they change, and times brokers: those are
    brought together by the number, not by three names.
    """
    rows = [
        (
            *key,
            case.scenario.scenario,
            number,
            list(case.brokers),
            list(case.gone),
            list(case.back),
            *(case.quorum or (None, None)),
        )
        for key, case, number in numbered
    ]
    given = small_frame(snapshots.snapshots.sparkSession, rows, _CASES)
    known = snapshots.snapshots.select(*SNAPSHOT_KEY, "complete")
    return given.join(F.broadcast(known), on=list(SNAPSHOT_KEY), how="inner")


def _snapshots_of(case: Case, clusters: Sequence[Cluster]) -> list[tuple[str, str]]:
    """The keys a scenario names, or those of every snapshot that fits what it names."""
    cluster, snapshot_id = case.scenario.cluster, case.scenario.snapshot_id
    if cluster is not None and snapshot_id is not None:
        return [(cluster, snapshot_id)]
    return [
        (each.cluster, each.snapshot_id)
        for each in clusters
        if cluster in (None, each.cluster) and snapshot_id in (None, each.snapshot_id)
    ]


# --- Partitions ----------------------------------------------------------------------------------


def _changes(states: DataFrame, partitions: DataFrame, about: DataFrame) -> DataFrame:
    """The partitions that scenarios change, judged before and after, with the risks that come true.

    *states* are what the controller made of them.
    """
    as_it_was = partitions.selectExpr(
        *PARTITION,
        *(f"{name} AS {name}_before" for name in ("replicas", "leader", "isr")),
        *("min_isr", "was_led", *(f"was_{name}" for name in STATUSES)),
    )
    after = states.select(
        *PARTITION_KEY,
        *("replicas", "leader", "isr", "state_before", "state_after", "outcome", "reason"),
    )
    return (
        after.join(as_it_was, on=list(PARTITION), how="inner")
        .join(F.broadcast(about), on=list(SCENARIO_KEY), how="inner")
        .transform(_with_states)
        .where(_IS_CHANGED)
        .transform(_with_statuses)
        .selectExpr("*", f"{_risks()} AS risks", f"{is_internal()} AS is_internal")
        # What else is known of the scenario is the same for all it changes.
        .drop(*(name for name in about.columns if name not in (*SCENARIO_KEY, NUMBER)))
    )


_IS_CHANGED: Final = (
    " OR ".join(f"{name} IS DISTINCT FROM {name}_before" for name in ("replicas", "leader", "isr"))
    + " OR state_after IS DISTINCT FROM state_before"
)


def _with_states(rows: DataFrame) -> DataFrame:
    """A failover does not know the state before; it is that of a settled controller."""
    settled = (
        f"CASE WHEN was_led THEN {text(ONLINE_PARTITION)}"
        f" WHEN was_never_led THEN {text(NEW_PARTITION)} ELSE {text(OFFLINE_PARTITION)} END"
    )
    return rows.withColumn(
        "state_before",
        F.expr(f"IF(state_after IS NULL, state_before, coalesce(state_before, {settled}))"),
    )


def _with_statuses(rows: DataFrame) -> DataFrame:
    """What each partition is afterwards.

    The partition machine of ZooKeeper knows who is online; a quorum controller has no such states
    and takes the leadership from whoever is not.
    """
    is_led = f"IF(state_after IS NULL, leader >= 0, state_after = {text(ONLINE_PARTITION)})"
    return (
        rows.withColumn(
            "led",
            F.expr(f"coalesce({is_led} AND NOT array_contains(gone, leader), false)"),
        )
        .withColumn("is_gone", F.expr(f"outcome = {text(DELETED)}"))
        .selectExpr(
            "*",
            "NOT is_gone AND leader IS NULL AS never_led",
            "leader IS NOT NULL AND NOT led AS offline",
            "led AND size(isr) < min_isr AS under_min_isr",
            "led AND size(isr) = min_isr AS at_min_isr",
            "leader IS NOT NULL AND NOT (led AND size(isr) >= min_isr) AS acks_all_blocked",
            "was_led AND led AND leader != leader_before AS leaders_moved",
            f"outcome = {text(ELECTED_UNCLEAN)} AS unclean",
            "led AND size(isr) = min_isr AND was_led AND size(isr_before) > min_isr"
            " AS newly_at_min_isr",
        )
    )


def _risks() -> str:
    """Those of the named risks that come true, and were not so before."""
    lost_leader = "was_led AND array_contains(brokers, leader_before)"
    conditions = {
        "rf1_offline": "offline AND was_led AND size(replicas_before) = 1",
        "unavailable": "offline AND was_led",
        "full_acks_produce_unavailable": "acks_all_blocked AND was_led AND NOT was_under_min_isr",
        "acks1_data_loss": f"{lost_leader} AND NOT (led AND leader = leader_before)",
    }
    each = ", ".join(f"IF({conditions[risk]}, {text(risk)}, NULL)" for risk in RISKS)
    return f"array_compact(array({each}))"
