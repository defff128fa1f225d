"""An audit from snapshots to a published run: judge what is new, keep what holds.

A run reads the ledger of the audits before it under the same rules, judges the snapshots that are
not in it, or no longer as they have to be, and publishes their findings with a ledger of all. What
readers then see is what one audit of everything would have shown, whatever came when.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from datetime import datetime
from functools import reduce
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from understudy import publish, schemas, sources, superseding
from understudy.frames import small_frame
from understudy.names import SNAPSHOT_KEY
from understudy.progress import Progress
from understudy.questions.audit import audit, carrying, exposure, ledger
from understudy.questions.audit.ledger import History, Key, Seen
from understudy.questions.audit.rule_set import RuleSet
from understudy.report.tables import amount
from understudy.snapshot import Snapshots
from understudy.sources import store

JOB: Final = "audit"

FAILS: Final = "fails"
CANNOT_DECIDE: Final = "cannot-decide"
WARNINGS: Final = "warnings"
HOLDS: Final = "holds"

_KEYS: Final = T.StructType([T.StructField(name, schemas.STRING) for name in SNAPSHOT_KEY])
_OWNERS: Final = T.StructType([*_KEYS.fields, T.StructField("run_id", schemas.STRING)])


@dataclass(frozen=True)
class Asked:
    """What an audit is asked: which rules, and of which time (microseconds since 1970)."""

    rules: RuleSet = field(default_factory=RuleSet)
    since: int | None = None
    until: int | None = None

    def fingerprint(self) -> str:
        """What findings depend on beside the snapshots: the rules, and the code that judges."""
        return publish.digest({"code": publish.code_version(), **self.rules.settings()})


@dataclass(frozen=True)
class Standing:
    """What holds for the snapshots that were asked about."""

    snapshots: int
    incomplete: int
    errors: int
    warnings: int
    infos: int
    silenced: int

    @property
    def verdict(self) -> str:
        if self.errors:
            return FAILS
        if self.incomplete or not self.snapshots:
            return CANNOT_DECIDE
        return WARNINGS if self.warnings else HOLDS


@dataclass(frozen=True)
class Done:
    """What an audit did; without a run where there was nothing to judge."""

    run_id: str | None
    judged: int
    clusters: Sequence[str]
    row_counts: Mapping[str, int]
    standing: Standing


@dataclass(frozen=True)
class Given:
    """The snapshots there are. Documents are read whole; of stores, first what they hold."""

    paths: Sequence[str]
    stored: Sequence[Seen]
    read: Snapshots | None

    @property
    def clusters(self) -> list[str]:
        return sorted({seen.cluster for seen in self.stored})

    def close(self) -> None:
        if self.read is not None:
            self.read.close()


def look(spark: SparkSession, paths: Sequence[str]) -> Given:
    """What snapshots there are in *paths*; the caller closes the result."""
    stores, others = store.divide(spark, paths)
    if not others:
        index = [publish.read(spark, path, "snapshots") for path in stores]
        stored = [seen for frame in index for seen in audit.stored(frame)]
        if len({seen.key for seen in stored}) == len(set(stored)):
            return Given(paths, list(dict.fromkeys(stored)), None)
    # Documents have to be parsed anyway, and contradictions to be told.
    found = sources.read(spark, paths)
    try:
        return Given(paths, audit.stored(found.snapshots), found)
    except BaseException:
        found.close()
        raise


def run(
    spark: SparkSession,
    given: Given,
    out: str,
    asked: Asked,
    *,
    now: datetime,
    force: bool = False,
    progress: Progress | None = None,
) -> Done:
    """Judge what of *given* is not judged yet, and publish it to *out*."""
    rules = asked.fingerprint()
    known = _known(spark, out, rules)
    entries = [] if known is None else audit.entries(known)
    todo = ledger.histories(
        given.stored, entries, since=asked.since, until=asked.until, again=force
    )
    if not todo:
        return Done(None, 0, given.clusters, {}, _standing(known, given.clusters, asked))
    started = publish.Run.start(JOB, input_digest=_digest(todo), config_digest=rules, now=now)
    tell = progress.table if progress is not None else None
    judged = sum(len(history.asked) for history in todo)
    if progress is not None:
        progress.doing(
            f"judging {amount(judged, 'snapshot')}", tables=6 if given.read is None else 7
        )
    counts, up = _judge(spark, given, out, started, todo=todo, rules=asked.rules, tell=tell)
    found = publish.read_runs(spark, out, "findings", [started.run_id])
    tables = {
        "exposure": _exposure(spark, out, todo, known, found),
        "audited": audit.audited(
            spark, todo, run_id=started.run_id, rules=rules, known=known, findings=found, up=up
        ),
    }
    counts |= publish.write(spark, out, started, tables, on_table=tell)
    written = publish.read_runs(spark, out, "audited", [started.run_id])
    standing = _standing(_with(known, written), given.clusters, asked)
    publish.commit(spark, out, started, counts, verdict=standing.verdict)
    return Done(started.run_id, judged, given.clusters, counts, standing)


# --- Steps ---------------------------------------------------------------------------------------


def _judge(
    spark: SparkSession,
    given: Given,
    out: str,
    run: publish.Run,
    *,
    todo: Sequence[History],
    rules: RuleSet,
    tell: Callable[[str], None] | None,
) -> tuple[dict[str, int], dict[Key, int]]:
    """Write what is found in the snapshots that are asked for, and what of documents is refused.

    The rows of each table, and by snapshot how many brokers are alive.
    """
    keys = [seen.key for history in todo for seen in (*history.asked, *history.needed)]
    if given.read is None:
        snapshots = needed = sources.read(spark, given.paths, only=keys)
    else:
        snapshots, needed = given.read, given.read.only(small_frame(spark, keys, _KEYS))
    try:
        refused = {} if given.read is None else {"quarantine": given.read.quarantine}
        with ExitStack() as held:
            tables = [
                held.enter_context(closing(found)).tables
                for found in _judged(spark, needed, out, todo, rules)
            ]
            of_all = {
                name: reduce(DataFrame.unionAll, (each[name] for each in tables))
                for name in tables[0]
            }
            counts = publish.write(spark, out, run, {**of_all, **refused}, on_table=tell)
        return counts, audit.brokers_up(needed)
    finally:
        if given.read is None:
            snapshots.close()


def _judged(
    spark: SparkSession, needed: Snapshots, out: str, todo: Sequence[History], rules: RuleSet
) -> Iterator[audit.Judged]:
    """What is found: where little changed by a look at that, in all other clusters by all rules."""
    carried = carrying.carried(spark, needed, todo, rules)
    if carried is not None:
        owners = carried.owners()
        before = publish.read_runs(
            spark, out, superseding.FINDINGS, sorted({run for *_, run in owners})
        )
        held = F.broadcast(small_frame(spark, owners, _OWNERS))
        known = before.join(held, on=[*SNAPSHOT_KEY, "run_id"], how="left_semi")
        rest = carried.rest(rules, known)
        yield audit.judged(spark, carried.snapshots, carried.todo, rules, rest)
        todo = [history for history in todo if history not in carried.todo]
    if todo:
        yield audit.judged(spark, needed, todo, rules)


def _known(spark: SparkSession, out: str, rules: str) -> DataFrame | None:
    """The ledger of the audits before under these *rules*; null if there is none."""
    if not publish.is_store(spark, out):
        return None
    runs = publish.runs_with(spark, out, superseding.LEDGER)
    ledgers = publish.read_runs(spark, out, superseding.LEDGER, runs)
    return superseding.newest(ledgers.where(F.col("rules") == rules)) if runs else None


def _digest(todo: Iterable[History]) -> str:
    return publish.digest(
        {
            history.cluster: [
                [seen.snapshot_id, seen.digest, *history.previous[seen.snapshot_id]]
                for seen in history.asked
            ]
            for history in todo
        }
    )


def _exposure(
    spark: SparkSession,
    out: str,
    todo: Sequence[History],
    known: DataFrame | None,
    found: DataFrame,
) -> DataFrame:
    """Intervals carried on where all is new; put together from all findings where it is not."""
    numbered = exposure.numbers(spark, todo)
    stretches = exposure.found_in(found, numbered)
    continued = [history.cluster for history in todo if history.is_continued]
    rebuilt = [entry for history in todo if not history.is_continued for entry in history.kept]
    if known is not None and continued:
        last = known.where(F.col("cluster").isin(continued)).select("cluster", "run_id").distinct()
        runs = sorted({row.run_id for row in last.collect()})
        before = publish.read_runs(spark, out, "exposure", runs)
        held = before.join(F.broadcast(last), on=["cluster", "run_id"], how="left_semi")
        stretches = stretches.unionByName(exposure.known_from(held, numbered))
    if rebuilt:
        runs = sorted({entry.run for entry in rebuilt})
        owners = [(*entry.seen.key, entry.run) for entry in rebuilt]
        kept = F.broadcast(small_frame(spark, owners, _OWNERS))
        before = publish.read_runs(spark, out, "findings", runs).join(
            kept, on=[*SNAPSHOT_KEY, "run_id"], how="left_semi"
        )
        stretches = stretches.unionByName(exposure.found_in(before, numbered))
    return exposure.exposure(stretches, numbered)


def _with(known: DataFrame | None, written: DataFrame) -> DataFrame:
    """The ledger that will hold: as written now, and as known for all other clusters."""
    if known is None:
        return written
    touched = F.broadcast(written.select("cluster").distinct())
    return known.join(touched, on="cluster", how="left_anti").unionByName(written)


def _standing(audited: DataFrame | None, clusters: Sequence[str], asked: Asked) -> Standing:
    if audited is None:
        return Standing(0, 0, 0, 0, 0, 0)
    rows = in_range(audited.where(F.col("cluster").isin(list(clusters))), asked)
    row = rows.agg(
        F.count(F.lit(1)),
        F.count_if(~F.col("complete")),
        *(
            F.coalesce(F.sum(name), F.lit(0))
            for name in ("errors", "warnings", "infos", "silenced")
        ),
    ).first()
    return Standing(*(row or ()))


def in_range(rows: DataFrame, asked: Asked) -> DataFrame:
    """The rows about the time that was asked about; an unknown time is in every range."""
    taken = F.unix_micros("taken_at")
    if asked.since is not None:
        rows = rows.where(taken.isNull() | (taken >= asked.since))
    if asked.until is not None:
        rows = rows.where(taken.isNull() | (taken < asked.until))
    return rows
