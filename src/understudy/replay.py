"""Replays scenarios over snapshots: which rules, which engine, and what has to be said about it.

The engine follows from the shape of a scenario, is chosen here and nowhere else, and never changes
a row. Failovers and failures of profile ``zk``, alone or in sequence, run over whole columns, a
snapshot at a time. Of more snapshots, or larger ones, than that is for, a single failover, broker
failure, start-up or controlled shutdown runs in the native form, over all of them at once; what a
new controller then takes up again (reassignments, deletions), failures that halt deletions,
start-ups that let either go on and restarts are interpreted. So is a single broker fenced in KRaft,
but for its plain partitions. Everything else goes through the interpreters, over the partitions it
touches; so does what is small, and a few small documents in this very process, each scenario over
all of them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from understudy import cluster_facts, scenarios
from understudy.controller import interpreted
from understudy.controller.columnar import feed as columnar
from understudy.controller.native import engine as native
from understudy.controller.native import fence as fencing
from understudy.controller.profiles import DECISIVE_SETTINGS, KRAFT, PROFILES, ZK
from understudy.errors import UsageError
from understudy.frames import (
    SOME_OF_EACH,
    Tables,
    arrow_rows,
    at_hand,
    collected,
    settled,
    small_frame,
)
from understudy.names import SCENARIO_KEY, SNAPSHOT_KEY
from understudy.scenarios import Scenario
from understudy.schemas import QUARANTINE, REPLAY_TABLES
from understudy.snapshot import Snapshots
from understudy.sql import text

if TYPE_CHECKING:
    import pyarrow as pa

# Partitions in all, over all scenarios: for so few the interpreter has answered before the native
# form is compiled.
SMALL = 20_000
_REPLAYED: Final = ("brokers", "topics", "partitions", "configs")


@dataclass(frozen=True)
class Replay:
    """The tables of a replay, not yet written, and what a reader of them should know."""

    tables: Tables
    refused: Tables  # the quarantine
    notes: list[str]
    replayed: int  # scenarios, counted over all snapshots
    held: tuple[DataFrame, ...]
    accepted: DataFrame  # the keys of the snapshots that can be replayed
    in_columns: columnar.LaidOut | None = None  # all of it, where the columnar form takes all

    @property
    def quarantine(self) -> DataFrame:
        return self.refused["quarantine"]

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
    for_few_tables: bool = False,
) -> Replay:
    """Replay the scenarios *asked* over the snapshots they name.

    *profile* and *release* overrule what the snapshots say of themselves. *for_few_tables*: only
    two or three are going to be read, each once; then the native form decides anew for each what it
    needs, which takes less than keeping all that is decided. The caller closes the result once its
    tables are written.
    """
    _check_rules(profile, release)
    spark = snapshots.snapshots.sparkSession
    snapshots = snapshots.with_defaults()
    judged = _judged(snapshots.snapshots, profile, release)
    every = judged.toArrow()
    judged = settled(judged, every)
    accepted = judged.where("refusal IS NULL")
    found = _matched(asked, every)
    if snapshots.rows is not None and snapshots.rows * len(asked) <= SMALL:
        return _replayed_here(snapshots, judged, every, found, changed_only=changed_only)
    laid_out, rest = _in_columns(snapshots, every, found, changed_only=changed_only)
    told = None if laid_out is None else laid_out.tables()
    held: tuple[DataFrame, ...] = ()
    if rest.num_rows or told is None:
        left = [asked[number] for number in sorted(set(rest["number"].to_pylist()))]
        others, held = _others(
            _Left(snapshots, accepted, asked, left, rest, spark.createDataFrame(rest, _MATCHED)),
            changed_only=changed_only,
            for_few_tables=for_few_tables,
        )
        told = others if told is None else told.followed_by(others)
    refused = _quarantine(snapshots, judged, every)
    replayed = _told(judged, refused, told, _survey(found), held)
    return replayed if rest.num_rows else replace(replayed, in_columns=laid_out)


_MATCHED: Final = T.StructType(
    [
        *(T.StructField(name, T.StringType()) for name in SCENARIO_KEY),
        T.StructField("events", T.ArrayType(T.StringType())),
        T.StructField("number", T.IntegerType()),
        T.StructField("profile", T.StringType()),
        T.StructField("release", T.StringType()),
    ]
)


def _matched(asked: Sequence[Scenario], judged: pa.Table) -> pa.Table:
    """Each scenario beside each snapshot it is about and that can be replayed, and the rules."""
    rules = {(row["cluster"], row["snapshot_id"]): row for row in judged.to_pylist()}
    rows = (
        (
            *key,
            asked[number].scenario,
            asked[number].events,
            number,
            rule["profile"],
            rule["release"],
        )
        for key, number in scenarios.resolve(asked, rules)
        for rule in [rules[key]]
        if rule["refusal"] is None
    )
    return arrow_rows(rows, _MATCHED)


def _in_columns(
    snapshots: Snapshots, judged: pa.Table, found: pa.Table, *, changed_only: bool
) -> tuple[columnar.LaidOut | None, pa.Table]:
    """The scenarios that the columnar form takes, if any, and the other ones."""
    import pyarrow as pa  # noqa: PLC0415 - importing the package must not load it

    rows = found.to_pylist()
    kinds = [{json.loads(event)["type"] for event in row["events"]} for row in rows]
    fits = [
        row["profile"] == ZK.name and kind <= set(columnar.KINDS)
        for row, kind in zip(rows, kinds, strict=True)
    ]
    places = [(row["cluster"], row["snapshot_id"]) for row in rows]
    keys = {key for key, fit in zip(places, fits, strict=True) if fit}
    if not 0 < len(keys) <= columnar.SNAPSHOTS_AT_ONCE:
        return None, found
    known, sizes = _known(snapshots, judged, keys)
    fitting = {key for key in keys if 0 < sizes.get(key, 0) <= columnar.PARTITIONS_AT_ONCE}
    taken: dict[tuple[str, str], list[tuple[str, list[str]]]] = {}
    is_left = []
    for row, key, fit in zip(rows, places, fits, strict=True):
        is_left.append(not fit or key not in fitting)
        if not is_left[-1]:
            taken.setdefault(key, []).append((row["scenario"], row["events"]))
    if not taken:
        return None, found
    asked = {key: columnar.Asked(known[key], sizes[key], each) for key, each in taken.items()}
    made = columnar.laid_out(snapshots.partitions, asked, changed_only=changed_only)
    return made, found.filter(pa.array(is_left))


def _known(
    snapshots: Snapshots, judged: pa.Table, keys: set[tuple[str, str]]
) -> tuple[dict[tuple[str, str], dict[str, Any]], Mapping[tuple[str, str], int]]:
    """What each of a few clusters has in common, and how many partitions it has."""
    tables = {"snapshots": judged, **_small(snapshots, keys)}
    sizes = snapshots.sizes()
    if sizes is None or not keys <= sizes.keys():
        counted = snapshots.partitions.groupBy(*SNAPSHOT_KEY).count()
        sizes = {(row["cluster"], row["snapshot_id"]): row["count"] for row in counted.collect()}
    rows: dict[str, dict[tuple[str, str], list[dict[str, Any]]]] = {name: {} for name in tables}
    for name, table in tables.items():
        for row in table.to_pylist():
            rows[name].setdefault((row["cluster"], row["snapshot_id"]), []).append(row)
    beside = ("brokers", "topics", "configs")
    known = {
        key: cluster_facts.known(
            rows["snapshots"][key][0], *(rows[name].get(key, []) for name in beside)
        )
        for key in keys
    }
    return known, sizes


def _small(snapshots: Snapshots, keys: set[tuple[str, str]]) -> dict[str, pa.Table]:
    """Their brokers, the topics queued for deletion and the settings that decide anything."""
    if len(keys) == 1:
        (key,) = keys
        brokers, topics, configs = (
            snapshots.at_hand(name, key) for name in ("brokers", "topics", "configs")
        )
        if brokers is not None and topics is not None and configs is not None:
            return cluster_facts.deciding(brokers, topics, configs)
    decisive = ", ".join(map(text, DECISIVE_SETTINGS))
    wanted = {
        "brokers": snapshots.brokers,
        "topics": snapshots.topics.where("queued_for_deletion"),
        "configs": snapshots.configs.where(f"key IN ({decisive})"),
    }
    return collected(snapshots.snapshots.sparkSession, wanted)


class _Left(NamedTuple):
    """What the columnar form did not take."""

    snapshots: Snapshots
    accepted: DataFrame
    asked: Sequence[Scenario]  # all there were, by number
    left: Sequence[Scenario]
    found: pa.Table
    resolved: DataFrame


def _others(
    given: _Left, *, changed_only: bool, for_few_tables: bool
) -> tuple[Tables, tuple[DataFrame, ...]]:
    """The tables of the other forms, and what is kept for them."""
    snapshots, accepted, resolved = given.snapshots, given.accepted, given.resolved
    spark = accepted.sparkSession
    kinds, fences = _native_kinds(given.left), _has_fences(given.left)
    done: native.Native | None = None
    taken: DataFrame | None = None
    tables = Tables({})
    held: tuple[DataFrame, ...] = ()
    survey = _survey(given.found)
    is_large = bool(kinds or fences) and not _is_small(snapshots, given.left)
    if kinds and is_large:
        known = _native_facts(kinds, snapshots, accepted, resolved)
        taken = known.taken()
        survey = _survey(given.found, taken)
        done = native.tables(
            snapshots.partitions, snapshots.brokers, known, changed_only=changed_only
        )
        tables = done.tables
    if survey.interpreted:
        fenced = None
        if fences and is_large and KRAFT.name in survey.profiles:
            fenced = _fenced(snapshots, accepted, resolved, changed_only=changed_only)
        others = interpreted.tables(
            snapshots=accepted,
            brokers=snapshots.brokers,
            topics=snapshots.topics,
            partitions=_none_plain(snapshots.partitions) if fenced is None else fenced.partitions,
            configs=snapshots.configs,
            scenarios=_marked(_to_interpret(resolved, taken), fenced),
            scopes=_scopes(spark, given.asked, survey.profiles),
            profiles=survey.profiles,
            many=survey.interpreted,
            rows=snapshots.at_most(survey.interpreted * SOME_OF_EACH),
            changed_only=changed_only,
        )
        told = _only_changed(others.tables) if changed_only else others.tables
        if fenced is not None:
            told = fenced.beside(told)
        tables = told if done is None or not survey.native else done.followed_by(told)
        keeping = () if fenced is None or for_few_tables else fenced.keep(survey.scenarios)
        held = (others.held, *keeping)
    if done is not None and not for_few_tables:
        held = (*done.keep(survey.scenarios), *held)
    return tables, held


def _replayed_here(
    snapshots: Snapshots,
    judged: DataFrame,
    every: pa.Table,
    found: pa.Table,
    *,
    changed_only: bool,
) -> Replay:
    """Replay what is small in this process: it is done before Spark has planned anything."""
    given = {
        "snapshots": judged.where("refusal IS NULL"),
        **{name: getattr(snapshots, name) for name in _REPLAYED},
    }
    rows = {name: table.toArrow() for name, table in given.items()}
    decided = interpreted.tables_of_few(rows, found, changed_only=changed_only)
    tables = at_hand(judged.sparkSession, decided, REPLAY_TABLES)
    refused = _quarantine(snapshots, judged, every)
    return _told(judged, refused, tables, _survey(found))


def _told(
    judged: DataFrame,
    refused: Tables,
    tables: Tables,
    survey: _Survey,
    held: tuple[DataFrame, ...] = (),
) -> Replay:
    return Replay(
        tables=tables,
        refused=refused,
        notes=_notes(survey),
        replayed=survey.scenarios,
        held=held,
        accepted=judged.where("refusal IS NULL").select(*SNAPSHOT_KEY),
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


def _quarantine(snapshots: Snapshots, judged: DataFrame, every: pa.Table) -> Tables:
    """What was refused on the way, and snapshots the replay cannot take; *every* one is judged."""
    refused = judged.where("refusal IS NOT NULL")
    if snapshots.nothing_refused and every["refusal"].null_count == every.num_rows:
        nothing = arrow_rows([], QUARANTINE)
        return Tables({"quarantine": lambda: snapshots.quarantine}, at_hand={"quarantine": nothing})
    rows = (
        refused.join(snapshots.provenance, on=list(SNAPSHOT_KEY), how="left")
        .withColumn("problems", F.array("refusal"))
        .select(*QUARANTINE.names)
    )
    return Tables({"quarantine": lambda: snapshots.quarantine.unionAll(rows)})


# --- Which engine ------------------------------------------------------------------------------


def _native_kinds(asked: Sequence[Scenario]) -> tuple[str, ...]:
    """The kinds of single events among the scenarios that have a native form."""
    single = {json.loads(each.events[0])["type"] for each in asked if len(each.events) == 1}
    return tuple(kind for kind in native.KINDS if kind in single)


def _has_fences(asked: Sequence[Scenario]) -> bool:
    """Whether a scenario is that one broker is fenced, or fails, which is the same in KRaft."""
    single = (json.loads(each.events[0]) for each in asked if len(each.events) == 1)
    return any(e["type"] in fencing.KINDS and len(e["brokers"]) == 1 for e in single)


def _is_small(snapshots: Snapshots, asked: Sequence[Scenario]) -> bool:
    return SMALL > 0 and snapshots.partitions.count() * len(asked) <= SMALL


def _native_facts(
    kinds: Sequence[str], snapshots: Snapshots, accepted: DataFrame, resolved: DataFrame
) -> native.Known:
    """What the scenarios that run in the native form know."""
    return native.known(
        kinds,
        snapshots=accepted,
        brokers=snapshots.brokers,
        topics=snapshots.topics,
        partitions=snapshots.partitions,
        configs=snapshots.configs,
        scenarios=resolved.where(f"profile = {text(ZK.name)}"),
    )


def _fenced(
    snapshots: Snapshots, accepted: DataFrame, resolved: DataFrame, *, changed_only: bool
) -> fencing.Fenced:
    """What fences do to the plain partitions of KRaft snapshots."""
    kraft = f"profile = {text(KRAFT.name)}"
    own = accepted.where(kraft)
    combined = own.select(
        "release", "metadata_version", F.coalesce("elr_enabled", F.lit(False))
    ).distinct()
    ruled = fencing.rules_of(
        (release, version, elr) for release, version, elr in combined.collect()
    )
    return fencing.fenced(
        snapshots=own,
        brokers=snapshots.brokers,
        topics=snapshots.topics,
        partitions=snapshots.partitions,
        configs=snapshots.configs,
        scenarios=resolved.where(kraft),
        rules=small_frame(own.sparkSession, ruled, fencing.RULES),
        changed_only=changed_only,
    )


def _none_plain(partitions: DataFrame) -> DataFrame:
    return partitions.withColumn("is_plain", F.lit(False))


def _marked(scenarios: DataFrame, fenced: fencing.Fenced | None) -> DataFrame:
    """The scenarios with ``natively``: whether their plain partitions are taken."""
    if fenced is None:
        return scenarios.withColumn("natively", F.lit(False))
    taken = F.broadcast(fenced.taken.withColumn("natively", F.lit(True)))
    joined = scenarios.join(taken, on=list(SCENARIO_KEY), how="left")
    return joined.withColumn("natively", F.coalesce("natively", F.lit(False)))


def _survey(asked: pa.Table, taken: DataFrame | None = None) -> _Survey:
    """What there is of each, and of what the native form has *taken*, if it has."""
    rows = () if taken is None else taken.select(*SCENARIO_KEY, "resumes").toArrow().to_pylist()
    resumes = {tuple(row[name] for name in SCENARIO_KEY): row["resumes"] for row in rows}
    keys = zip(*(asked[name].to_pylist() for name in SCENARIO_KEY), strict=True)
    rules = zip(asked["profile"].to_pylist(), asked["release"].to_pylist(), strict=True)
    return _Survey(
        scenarios=asked.num_rows,
        native=len(resumes),
        interpreted=sum(resumes.get(key, True) for key in keys),
        rules=sorted(set(rules)),
    )


def _to_interpret(resolved: DataFrame, taken: DataFrame | None) -> DataFrame:
    """The scenarios the native form does not take, and those it does not take to their end."""
    scenarios = resolved.drop("profile", "release")
    if taken is None:
        return scenarios.withColumn("resumed", F.expr(f"CAST(NULL AS {interpreted.RESUMED})"))
    return (
        scenarios.join(F.broadcast(taken), on=list(SCENARIO_KEY), how="left")
        .where("coalesce(resumes, true)")
        .drop("resumes")
    )


def _scopes(spark: SparkSession, asked: Sequence[Scenario], profiles: Sequence[str]) -> DataFrame:
    rows = interpreted.scope_rows([each.events for each in asked], profiles)
    return small_frame(spark, rows, interpreted.SCOPES)


def _only_changed(tables: Tables) -> Tables:
    """The tables, those of states without the partitions their scenario did not touch."""
    key = [*SCENARIO_KEY, "topic", "partition"]

    def partition_states() -> DataFrame:
        return tables["partition_states"].where("outcome != 'unchanged'")

    def replica_states() -> DataFrame:
        replicas, changed = tables["replica_states"], partition_states().select(*key)
        return replicas.join(changed, on=key, how="left_semi").select(*replicas.columns)

    both = (partition_states, replica_states)
    return tables.beside(Tables({table.__name__: table for table in both}))


def _notes(survey: _Survey) -> list[str]:
    """What a reader should know, in sentences."""
    unverified = sorted(
        {release for name, release in survey.rules if not PROFILES[name].is_verified(release)}
    )
    if not unverified:
        return []
    releases = ", ".join(unverified)
    return [f"unverified: release {releases} has not been compared with its published jars"]
