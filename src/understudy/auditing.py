"""An audit from snapshots to a published run: judge what is new, keep what holds.

A run reads the ledger of the audits before it under the same rules, judges the snapshots that are
not in it, or no longer as they have to be, and publishes their findings with a ledger of all. What
readers then see is what one audit of everything would have shown, whatever came when.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, field
from datetime import datetime
from functools import reduce
from typing import TYPE_CHECKING, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from understudy import publish, schemas, sources, superseding
from understudy.frames import FEW_ROWS, at_hand, small_frame
from understudy.names import SNAPSHOT_KEY
from understudy.progress import Progress
from understudy.questions.audit import audit, carrying, exposure, ledger
from understudy.questions.audit.carrying import Carried
from understudy.questions.audit.ledger import Counts, Entry, History, Key, Seen, Span
from understudy.questions.audit.rule_set import RuleSet
from understudy.report.tables import amount
from understudy.snapshot import Snapshots
from understudy.sources import store

if TYPE_CHECKING:
    import pyarrow as pa

JOB: Final = "audit"

FAILS: Final = "fails"
CANNOT_DECIDE: Final = "cannot-decide"
WARNINGS: Final = "warnings"
HOLDS: Final = "holds"

_KEYS: Final = T.StructType([T.StructField(name, schemas.STRING) for name in SNAPSHOT_KEY])
_OWNERS: Final = T.StructType([*_KEYS.fields, T.StructField("run_id", schemas.STRING)])
_LEDGERS: Final = T.StructType(
    [T.StructField(name, schemas.STRING) for name in ("cluster", "run_id")]
)


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
    todo = ledger.histories(
        given.stored, known.entries, since=asked.since, until=asked.until, again=force
    )
    if not todo:
        standing = _standing(known.entries, given.clusters, asked)
        return Done(None, 0, given.clusters, {}, standing)
    started = publish.Run.start(JOB, input_digest=_digest(todo), config_digest=rules, now=now)
    tell = progress.table if progress is not None else None
    judged = sum(len(history.asked) for history in todo)
    if progress is not None:
        progress.doing(
            f"judging {amount(judged, 'snapshot')}", tables=6 if given.read is None else 7
        )
    found = _judge(spark, given, out, started, todo=todo, rules=asked.rules, tell=tell)
    entries = _entries(todo, started.run_id, found.counts, found.brokers_up)
    few = {**found.few, "audited": audit.audited(entries, rules)}
    many = {}
    stretches = _stretches(spark, out, started, todo=todo, known=known, found=found)
    numbered = exposure.numbers(todo)
    if isinstance(stretches, DataFrame):
        many["exposure"] = exposure.exposure(stretches, numbered)
    else:
        few["exposure"] = exposure.joined(stretches, numbered)
    tables = at_hand(spark, few, schemas.TABLES).beside(many)
    counts = {**found.written, **publish.write(spark, out, started, tables, on_table=tell)}
    touched = {history.cluster for history in todo}
    others = [entry for entry in known.entries if entry.seen.cluster not in touched]
    standing = _standing([*others, *entries], given.clusters, asked)
    publish.commit(spark, out, started, counts, verdict=standing.verdict)
    return Done(started.run_id, judged, given.clusters, counts, standing)


# --- Steps ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Known:
    """What the newest ledgers say."""

    entries: Sequence[Entry] = ()
    ledgers: Mapping[str, str] = field(default_factory=dict)
    """By cluster, the run that wrote it."""


@dataclass(frozen=True)
class _Found:
    """What is found in the snapshots that are asked for."""

    counts: Mapping[Key, Counts]
    brokers_up: Mapping[Key, int]
    written: Mapping[str, int]
    """How many rows of each table are written already."""
    few: Mapping[str, pa.Table] = field(default_factory=dict)
    """The rows of those that are still to be written."""


@dataclass(frozen=True)
class _Work:
    """What is to be judged, with what, and where it is published."""

    spark: SparkSession
    out: str
    run: publish.Run
    todo: Sequence[History]
    rules: RuleSet
    needed: Snapshots
    refused: Mapping[str, DataFrame]
    tell: Callable[[str], None] | None

    def written(self, tables: Mapping[str, DataFrame]) -> dict[str, int]:
        every = {**tables, **self.refused}
        return publish.write(self.spark, self.out, self.run, every, on_table=self.tell)


def _judge(
    spark: SparkSession,
    given: Given,
    out: str,
    run: publish.Run,
    *,
    todo: Sequence[History],
    rules: RuleSet,
    tell: Callable[[str], None] | None,
) -> _Found:
    """Write what is found, and what of documents is refused; what is little is kept for later."""
    keys = [seen.key for history in todo for seen in (*history.asked, *history.needed)]
    if given.read is None:
        needed = sources.read(spark, given.paths, only=keys)
    else:
        needed = given.read.only(small_frame(spark, keys, _KEYS))
    refused = {} if given.read is None else {"quarantine": given.read.quarantine}
    work = _Work(spark, out, run, todo, rules, needed, refused, tell)
    try:
        carried = carrying.carried(needed, todo)
        if carried is None or not carried.is_little or len(carried.todo) < len(todo):
            return _found_by_spark(work, carried)
        return _found_here(work, carried)
    finally:
        if given.read is None:
            needed.close()


def _found_here(work: _Work, carried: Carried) -> _Found:
    """Little changed anywhere, and what holds on is little, too."""
    owners = carried.owners()
    runs = sorted({run for *_, run in owners})
    before = publish.rows_at_hand(work.spark, work.out, superseding.FINDINGS, runs)
    if before is None:
        before = _owned(work.spark, work.out, owners).toArrow()
    tables = carried.judged(work.spark, work.rules, before)
    written = work.written({}) if work.refused else {}
    return _Found(audit.counts_of(tables["findings"]), carried.brokers_up(), written, tables)


def _found_by_spark(work: _Work, carried: Carried | None) -> _Found:
    """Where little changed only that is judged, in all other clusters everything."""
    spark, todo = work.spark, work.todo
    found: list[Mapping[str, DataFrame]] = []
    up: dict[Key, int] = {}
    if carried is not None:
        before = _owned(spark, work.out, carried.owners())
        found.append(carried.frames(spark, work.rules, before))
        up |= carried.brokers_up()
        todo = [history for history in todo if history not in carried.todo]
    with ExitStack() as held:
        if todo:
            judged = audit.judged(spark, work.needed, todo, work.rules)
            found.append(held.enter_context(closing(judged)).tables)
            up |= audit.brokers_up(work.needed)
        written = work.written(
            {name: reduce(DataFrame.unionAll, (each[name] for each in found)) for name in found[0]}
        )
    findings = publish.read_runs(spark, work.out, superseding.FINDINGS, [work.run.run_id])
    return _Found(audit.counts(findings), up, written)


def _owned(spark: SparkSession, out: str, owners: Sequence[tuple[str, str, str]]) -> DataFrame:
    """What these runs found in these snapshots."""
    runs = sorted({run for *_, run in owners})
    held = F.broadcast(small_frame(spark, owners, _OWNERS))
    found = publish.read_runs(spark, out, superseding.FINDINGS, runs)
    return found.join(held, on=_OWNERS.names, how="left_semi").select(*found.columns)


def _known(spark: SparkSession, out: str, rules: str) -> _Known:
    """What the audits before have under these *rules*."""
    import pyarrow.compute as pc  # noqa: PLC0415 - importing the package must not load it

    runs = publish.runs_with(spark, out, superseding.LEDGER) if publish.is_store(spark, out) else []
    if not runs:
        return _Known()
    rows = publish.rows_at_hand(spark, out, superseding.LEDGER, runs)
    if rows is None:
        every = publish.read_runs(spark, out, superseding.LEDGER, runs)
        rows = superseding.newest(every.where(F.col("rules") == rules)).toArrow()
    else:
        rows = superseding.newest_of(rows.filter(pc.equal(rows["rules"], rules)))
    ledgers = dict(zip(rows["cluster"].to_pylist(), rows["run_id"].to_pylist(), strict=True))
    return _Known(audit.entries(rows), ledgers)


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


def _stretches(
    spark: SparkSession,
    out: str,
    run: publish.Run,
    *,
    todo: Sequence[History],
    known: _Known,
    found: _Found,
) -> DataFrame | pa.Table:
    """Intervals to be carried on where all is new, and findings of all snapshots where it is not.

    With those that are *found* now. Where there are few they are at hand.
    """
    last = [
        (history.cluster, known.ledgers[history.cluster])
        for history in todo
        if history.is_continued
    ]
    runs = sorted({run_id for _, run_id in last})
    findings = found.few.get("findings")
    if findings is not None and len(last) == len(todo):
        before = publish.rows_at_hand(spark, out, superseding.EXPOSURE, runs)
        if before is not None and before.num_rows + findings.num_rows <= FEW_ROWS:
            return exposure.carried_on(before, last, findings)
    if findings is not None:
        stretches = exposure.found_in(spark.createDataFrame(findings, schemas.FINDINGS))
    else:
        written = publish.read_runs(spark, out, superseding.FINDINGS, [run.run_id])
        stretches = exposure.found_in(written)
    if last:
        before = publish.read_runs(spark, out, superseding.EXPOSURE, runs)
        kept = F.broadcast(small_frame(spark, last, _LEDGERS))
        held = before.join(kept, on=_LEDGERS.names, how="left_semi")
        stretches = stretches.unionByName(exposure.known_from(held))
    rebuilt = [entry for history in todo if not history.is_continued for entry in history.kept]
    if rebuilt:
        held = _owned(spark, out, [(*entry.seen.key, entry.run) for entry in rebuilt])
        stretches = stretches.unionByName(exposure.found_in(held))
    first = stretches.limit(FEW_ROWS + 1).toArrow()
    return stretches if first.num_rows > FEW_ROWS else first


def _entries(
    todo: Iterable[History], run: str, counts: Mapping[Key, Counts], brokers_up: Mapping[Key, int]
) -> list[Entry]:
    """The ledger of these histories after this *run*: what is kept, and what is judged now."""
    entries = [entry for each in todo for entry in each.kept]
    for each in todo:
        entries += [
            Entry(
                seen=seen,
                previous=each.previous[seen.snapshot_id],
                run=run,
                counts=counts.get(seen.key, Counts()),
                brokers_up=brokers_up.get(seen.key),
            )
            for seen in each.asked
        ]
    return entries


def _standing(entries: Iterable[Entry], clusters: Collection[str], asked: Asked) -> Standing:
    span = Span(asked.since, asked.until)
    there = [entry for entry in entries if entry.seen.cluster in clusters and span.has(entry.seen)]
    incomplete = sum(not entry.seen.complete for entry in there)
    found = sum((entry.counts for entry in there), Counts())
    return Standing(len(there), incomplete, **asdict(found))


def in_range(rows: DataFrame, asked: Asked) -> DataFrame:
    """The rows about the time that was asked about; an unknown time is in every range."""
    taken = F.unix_micros("taken_at")
    if asked.since is not None:
        rows = rows.where(taken.isNull() | (taken >= asked.since))
    if asked.until is not None:
        rows = rows.where(taken.isNull() | (taken < asked.until))
    return rows
