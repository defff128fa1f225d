"""Replays scenarios over snapshots: which rules, which engine, and what has to be said about it.

The engine follows from the shape of a scenario, is chosen here and nowhere else, and never changes
a row. A single failover runs in the native form over whole snapshots at once.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

from pyspark import inheritable_thread_target
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from understudy import scenarios
from understudy.controller import native, releases
from understudy.errors import BadInputError, UsageError
from understudy.names import SCENARIO_KEY, SNAPSHOT_KEY
from understudy.scenarios import Scenario
from understudy.schemas import QUARANTINE
from understudy.snapshot import Snapshots

PROFILES: Final = ("zk",)
_FAILOVER: Final = "controller_failover"


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
    _check_profile(profile, release)
    _check_events(asked)
    spark = snapshots.snapshots.sparkSession
    judged = _with_refusal(snapshots.snapshots, profile, release)
    known = native.failovers(
        snapshots=judged.where("refusal IS NULL"),
        brokers=snapshots.brokers,
        topics=snapshots.topics,
        partitions=snapshots.partitions,
        configs=snapshots.configs,
        scenarios=scenarios.resolve(spark, asked, snapshots.snapshots),
    )
    # The facts take a job over all partitions; the tables are put together meanwhile.
    with ThreadPoolExecutor(max_workers=1) as background:
        noted = background.submit(inheritable_thread_target(spark)(_notes), known.facts)
        tables, touched = native.tables(snapshots.partitions, known)
        if changed_only:
            tables |= _only_changed(tables)
        replayed, notes = noted.result()
    refused = _refused(judged.where("refusal IS NOT NULL"), snapshots.provenance)
    return Replay(
        tables=tables,
        quarantine=snapshots.quarantine.unionAll(refused),
        notes=notes,
        replayed=replayed,
        held=(touched, *known.held),
    )


def _check_profile(profile: str | None, release: str | None) -> None:
    if profile is not None and profile not in PROFILES:
        raise UsageError(f"profile {profile!r} is not one of {', '.join(PROFILES)}")
    if release is not None:
        problem = _release_problem(release)
        if problem is not None:
            raise UsageError(problem)


def _release_problem(release: str) -> str | None:
    try:
        level = releases.level(release)
    except ValueError as error:
        return str(error)
    if releases.OLDEST_LEVEL <= level <= releases.NEWEST_LEVEL:
        return None
    return f"release {release} is outside profile zk ({releases.OLDEST_ZK} to {releases.NEWEST_ZK})"


def _with_refusal(snapshots: DataFrame, profile: str | None, release: str | None) -> DataFrame:
    """The snapshots with the rules to use, and why a snapshot cannot be replayed, if it cannot."""
    said = F.lit(release) if release is not None else F.col("release")
    level = F.expr(releases.level_sql("release"))
    outside = ~level.between(releases.OLDEST_LEVEL, releases.NEWEST_LEVEL)
    refusal = F.when(
        (F.col("mode") != "zk") & F.lit(profile is None),
        F.concat(F.lit("mode "), F.col("mode"), F.lit(" is not replayed by profile zk")),
    ).when(
        outside | F.col("release").isNull(),
        F.concat(
            F.lit("release "),
            F.coalesce("release", F.lit("unknown")),
            F.lit(f" is outside profile zk ({releases.OLDEST_ZK} to {releases.NEWEST_ZK})"),
        ),
    )
    return snapshots.withColumn("release", said).withColumn("refusal", refusal)


def _check_events(asked: Sequence[Scenario]) -> None:
    """Refuse, all at once, what no engine can replay."""
    kinds = {each.scenario: [json.loads(event)["type"] for event in each.events] for each in asked}
    unsupported = [
        f"scenario {name}: {', '.join(events) or 'no event'}"
        for name, events in kinds.items()
        if events != [_FAILOVER]
    ]
    if unsupported:
        raise BadInputError(f"a scenario can only be a single {_FAILOVER} so far", unsupported)


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


def _notes(facts: DataFrame) -> tuple[int, list[str]]:
    """What a reader should know, in sentences; one small job over the facts."""
    total = facts.agg(
        F.count(F.lit(1)).alias("scenarios"),
        F.coalesce(F.sum("reassigning"), F.lit(0)).alias("reassigning"),
        F.coalesce(F.sum("queued_partitions"), F.lit(0)).alias("queued"),
        F.sort_array(F.collect_set("release")).alias("releases"),
    ).first()
    if total is None:  # an aggregate always has its row
        return 0, []
    notes = []
    if total.reassigning:
        notes.append(
            f"partitions with a reassignment in flight: {total.reassigning}; "
            "the replay ends before the new controller resumes it"
        )
    if total.queued:
        notes.append(
            f"partitions of topics queued for deletion: {total.queued}; "
            "the replay ends before the new controller resumes deleting them"
        )
    unverified = [r for r in total.releases if not releases.is_verified(r)]
    if unverified:
        notes.append(
            f"unverified: release {', '.join(unverified)} follows the rules "
            "but has not been compared with its published jars"
        )
    return total.scenarios, notes


def _refused(judged: DataFrame, provenance: DataFrame) -> DataFrame:
    """Snapshots the replay cannot take, as rows of the quarantine."""
    return (
        judged.join(provenance, on=list(SNAPSHOT_KEY), how="left")
        .withColumn("problems", F.array("refusal"))
        .select(*QUARANTINE.names)
    )
