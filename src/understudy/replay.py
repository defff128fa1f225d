"""Replays scenarios over snapshots: which rules, which engine, and what has to be said about it.

The engine follows from the shape of a scenario, is chosen here and nowhere else, and never changes
a row. A single failover of profile ``zk`` runs in the native form over whole snapshots at once, and
only what the new controller then takes up again (reassignments, deletions) is interpreted.
Everything else, and what is small, goes through the interpreters, over the partitions it touches.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final, NamedTuple

from pyspark import inheritable_thread_target
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from understudy import scenarios
from understudy.controller import interpreted
from understudy.controller.native import engine as native
from understudy.controller.native import tables as native_tables
from understudy.controller.native.failover import Failover
from understudy.controller.native.sql import text
from understudy.controller.profiles import PROFILES, ZK
from understudy.controller.zk import FAILOVER
from understudy.errors import UsageError
from understudy.frames import small_frame
from understudy.names import SCENARIO_KEY, SNAPSHOT_KEY
from understudy.scenarios import Scenario
from understudy.schemas import QUARANTINE
from understudy.snapshot import Snapshots

# Partitions in all, over all scenarios: for so few the interpreter has answered before the native
# form is compiled.
SMALL = 20_000

_IS_FAILOVER: Final = (
    f"size(events) = 1 AND get_json_object(events[0], '$.type') = {text(FAILOVER)}"
)


@dataclass(frozen=True)
class Replay:
    """The tables of a replay, not yet written, and what a reader of them should know."""

    tables: dict[str, DataFrame]
    quarantine: DataFrame
    notes: list[str]
    replayed: int  # scenarios, counted over all snapshots
    held: tuple[DataFrame, ...]

    def close(self) -> None:
        for frame in self.held:
            frame.unpersist()


class _Survey(NamedTuple):
    """What is to be replayed, counted over all snapshots."""

    scenarios: int
    native: int  # those whose start-up runs in the native form
    interpreted: int  # those that are interpreted, whole or from the end of the start-up on
    rules: list[tuple[str, str]]  # profile and release

    @property
    def profiles(self) -> list[str]:
        return sorted({profile for profile, _ in self.rules})


def replay(
    snapshots: Snapshots,
    asked: Sequence[Scenario],
    *,
    profile: str | None = None,
    release: str | None = None,
    changed_only: bool = False,
) -> Replay:
    """Replay the scenarios *asked* over the snapshots they name.

    *profile* and *release* overrule what the snapshots say of themselves. The caller closes the
    result once its tables are written.
    """
    _check_rules(profile, release)
    spark = snapshots.snapshots.sparkSession
    snapshots = snapshots.with_defaults()
    judged = _judged(snapshots.snapshots, profile, release)
    accepted = judged.where("refusal IS NULL")
    resolved = scenarios.resolve(spark, asked, snapshots.snapshots).join(
        F.broadcast(accepted.select(*SNAPSHOT_KEY, "profile", "release")), on=list(SNAPSHOT_KEY)
    )
    failover: Failover | None = None
    facts: DataFrame | None = None
    tables: dict[str, DataFrame] = {}
    held: tuple[DataFrame, ...] = ()
    if any(map(_is_failover, asked)) and not _is_small(snapshots, asked):
        known = _native_facts(snapshots, accepted, resolved)
        facts = known.facts
        # The facts take a job over all partitions; the tables are put together meanwhile.
        with ThreadPoolExecutor(max_workers=1) as background:
            surveying = background.submit(
                inheritable_thread_target(spark)(_survey), resolved, facts
            )
            tables, failover = native.tables(snapshots.partitions, known)
            survey = surveying.result()
        held = (failover.touched, *known.held)
    else:
        survey = _survey(resolved, None)
    if survey.interpreted:
        others = interpreted.tables(
            snapshots=accepted,
            brokers=snapshots.brokers,
            topics=snapshots.topics,
            partitions=snapshots.partitions,
            configs=snapshots.configs,
            scenarios=_to_interpret(resolved, facts),
            scopes=_scopes(spark, asked, survey.profiles),
            changed_only=changed_only,
        )
        tables = _joined(tables, others.tables, failover) if survey.native else others.tables
        held = (others.held, *held)
    if changed_only:
        tables |= _only_changed(tables)
    refused = _refused(judged.where("refusal IS NOT NULL"), snapshots.provenance)
    return Replay(
        tables=tables,
        quarantine=snapshots.quarantine.unionAll(refused),
        notes=_notes(survey),
        replayed=survey.scenarios,
        held=held,
    )


# --- Which rules -------------------------------------------------------------------------------


def _check_rules(profile: str | None, release: str | None) -> None:
    if profile is not None and profile not in PROFILES:
        raise UsageError(f"profile {profile!r} is not one of {', '.join(PROFILES)}")
    if release is None:
        return
    wanted = [PROFILES[profile]] if profile is not None else PROFILES.values()
    if not any(each.covers(release) for each in wanted):
        spans = ", ".join(f"{each.name} ({each.span})" for each in wanted)
        raise UsageError(f"release {release} is outside {spans}")


def _judged(snapshots: DataFrame, profile: str | None, release: str | None) -> DataFrame:
    """The snapshots with the rules to use, and why a snapshot cannot be replayed, if it cannot."""

    def covered(name: str) -> str:
        return f"release RLIKE {text(PROFILES[name].releases.replace(chr(92), chr(92) * 2))}"

    fitting = " ".join(
        f"WHEN mode = {text(each.mode)} AND {covered(name)} THEN {text(name)}"
        for name, each in PROFILES.items()
    )
    spans = " or ".join(
        f"profile {each.name} ({each.span})"
        for each in PROFILES.values()
        if profile in (None, each.name)
    )
    chosen = (
        f"CASE {fitting} END"
        if profile is None
        else f"IF({covered(profile)}, {text(profile)}, NULL)"
    )
    refusal = f"""CASE
        WHEN release IS NULL THEN 'the release is unknown; --release names it'
        WHEN profile IS NULL THEN concat('release ', release, ' in mode ',
            coalesce(mode, 'unknown'), ' is outside ', {text(spans)}) END"""
    said = F.lit(release) if release is not None else F.col("release")
    return (
        snapshots.withColumn("release", said)
        .withColumn("profile", F.expr(chosen))
        .withColumn("refusal", F.expr(refusal))
    )


def _refused(judged: DataFrame, provenance: DataFrame) -> DataFrame:
    """Snapshots the replay cannot take, as rows of the quarantine."""
    return (
        judged.join(provenance, on=list(SNAPSHOT_KEY), how="left")
        .withColumn("problems", F.array("refusal"))
        .select(*QUARANTINE.names)
    )


# --- Which engine ------------------------------------------------------------------------------


def _is_failover(scenario: Scenario) -> bool:
    return [json.loads(event)["type"] for event in scenario.events] == [FAILOVER]


def _is_small(snapshots: Snapshots, asked: Sequence[Scenario]) -> bool:
    return SMALL > 0 and snapshots.partitions.count() * len(asked) <= SMALL


def _native_facts(snapshots: Snapshots, accepted: DataFrame, resolved: DataFrame) -> native.Known:
    """What the scenarios that run in the native form know."""
    known = native.failovers(
        snapshots=accepted,
        brokers=snapshots.brokers,
        topics=snapshots.topics,
        partitions=snapshots.partitions,
        configs=snapshots.configs,
        scenarios=resolved.where(_IS_FAILOVER).where(f"profile = {text(ZK.name)}"),
    )
    return known._replace(facts=known.facts.where("NOT is_odd"))


def _survey(resolved: DataFrame, native_facts: DataFrame | None) -> _Survey:
    """One small job, over the facts if there are any."""
    asked = resolved.select(*SCENARIO_KEY, "profile", "release")
    if native_facts is None:
        judged = asked.withColumn("resumes", F.lit(None).cast("boolean"))
    else:
        taken = F.broadcast(native_facts.select(*SCENARIO_KEY, "resumes"))
        judged = asked.join(taken, on=list(SCENARIO_KEY), how="left")
    counted = judged.agg(
        F.count(F.lit(1)).alias("scenarios"),
        F.count("resumes").alias("native"),
        F.count_if(F.coalesce("resumes", F.lit(True))).alias("interpreted"),
        F.sort_array(F.collect_set(F.struct("profile", "release"))).alias("rules"),
    ).first()
    if counted is None:  # an aggregate always has its row
        return _Survey(0, 0, 0, [])
    rules = [(rule.profile, rule.release) for rule in counted.rules]
    return _Survey(counted.scenarios, counted.native, counted.interpreted, rules)


def _to_interpret(resolved: DataFrame, native_facts: DataFrame | None) -> DataFrame:
    """The scenarios the native form does not take, and those it does not take to their end."""
    scenarios = resolved.drop("profile", "release")
    if native_facts is None:
        return scenarios.withColumn("resumed", F.expr(f"CAST(NULL AS {interpreted.RESUMED})"))
    started = native_facts.selectExpr(
        *SCENARIO_KEY, "resumes", "struct(f.steps, offline_order) AS resumed"
    )
    return (
        scenarios.join(F.broadcast(started), on=list(SCENARIO_KEY), how="left")
        .where("coalesce(resumes, true)")
        .drop("resumes")
    )


def _joined(
    tables: dict[str, DataFrame],
    others: dict[str, DataFrame],
    failover: Failover | None,
) -> dict[str, DataFrame]:
    joined = {name: table.unionAll(others[name]) for name, table in tables.items()}
    if failover is not None:
        writes = native_tables.metadata_writes(failover, others["metadata_writes"])
        joined["metadata_writes"] = writes
    return joined


def _scopes(spark: SparkSession, asked: Sequence[Scenario], profiles: Sequence[str]) -> DataFrame:
    rows = interpreted.scope_rows([each.events for each in asked], profiles)
    return small_frame(spark, rows, interpreted.SCOPES)


def _only_changed(tables: dict[str, DataFrame]) -> dict[str, DataFrame]:
    """The state tables without the partitions their scenario did not touch."""
    states = tables["partition_states"].where("outcome != 'unchanged'")
    replicas = tables["replica_states"]
    key = [*SCENARIO_KEY, "topic", "partition"]
    return {
        "partition_states": states,
        "replica_states": replicas.join(states.select(*key), on=key, how="left_semi").select(
            *replicas.columns
        ),
    }


def _notes(survey: _Survey) -> list[str]:
    """What a reader should know, in sentences."""
    unverified = sorted(
        {release for name, release in survey.rules if not PROFILES[name].is_verified(release)}
    )
    if not unverified:
        return []
    releases = ", ".join(unverified)
    return [f"unverified: release {releases} has not been compared with its published jars"]
