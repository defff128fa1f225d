"""An audit, put together: what is to be judged, the findings, and the ledger that tells of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from understudy import schemas, superseding
from understudy.controller.profiles import KRAFT
from understudy.frames import arrow_rows, small_frame
from understudy.moments import micros
from understudy.names import SNAPSHOT_KEY
from understudy.questions.audit import facts, ledger
from understudy.questions.audit import findings as finding
from understudy.questions.audit.ledger import Counts, Entry, Seen
from understudy.questions.audit.rule import ERROR, INFO, WARNING
from understudy.questions.audit.rule_set import RuleSet
from understudy.questions.history.answer import History, told
from understudy.questions.history.steps import Listed
from understudy.snapshot import Snapshots

if TYPE_CHECKING:
    import pyarrow as pa

_MICROS: Final = 1_000_000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_KINDS: Final = ("severity", "is_silenced")
_COUNTED: Final = {ERROR: "errors", WARNING: "warnings", INFO: "infos"}
_COUNTS: Final = tuple(field.name for field in fields(Counts))


# --- The ledger as tables ------------------------------------------------------------------------


def stored(snapshots: DataFrame) -> list[Seen]:
    """The rows of a table ``snapshots`` as the ledger knows them."""
    rows = snapshots.selectExpr(
        *SNAPSHOT_KEY,
        "unix_micros(taken_at)",
        "controller_epoch",
        "coalesce(complete, true)",
        "coalesce(content_digest, snapshot_id)",
        *("mode", "source_form", "controller_id"),
    )
    return [Seen(*row) for row in rows.distinct().collect()]


def entries(audited: pa.Table) -> list[Entry]:
    """The rows of a table ``audited`` as the ledger knows them."""
    return [
        Entry(
            seen=Seen(
                row["cluster"],
                row["snapshot_id"],
                micros(row["taken_at"]),
                row["controller_epoch"],
                row["complete"] is not False,
                row["content_digest"],
            ),
            previous=tuple(row["previous"]),
            run=row["findings_run"],
            counts=Counts(*(row[name] or 0 for name in _COUNTS)),
            brokers_up=row["brokers_up"],
        )
        for row in audited.to_pylist()
    ]


def audited(entries: Iterable[Entry], rules: str) -> pa.Table:
    """The table ``audited`` of these."""
    rows = [
        (
            *entry.seen.key,
            _time(entry.seen.taken_at),
            *(entry.seen.controller_epoch, entry.seen.complete, entry.seen.digest),
            *(list(entry.previous), rules, entry.run, *astuple(entry.counts), entry.brokers_up),
        )
        for entry in entries
    ]
    return arrow_rows(rows, schemas.AUDITED)


def counts(findings: DataFrame) -> dict[ledger.Key, Counts]:
    """How many findings there are about each snapshot."""
    kinds = (*SNAPSHOT_KEY, "severity", "silenced IS NOT NULL AS is_silenced")
    found = findings.selectExpr(*kinds).groupBy(*SNAPSHOT_KEY, *_KINDS).count()
    return _summed(found.toArrow())


def counts_of(findings: pa.Table) -> dict[ledger.Key, Counts]:
    """The same of rows at hand."""
    known = findings.append_column("is_silenced", findings["silenced"].is_valid())
    groups = known.group_by([*SNAPSHOT_KEY, *_KINDS]).aggregate([([], "count_all")])
    return _summed(groups.rename_columns({"count_all": "count"}))


def _summed(groups: pa.Table) -> dict[ledger.Key, Counts]:
    found = defaultdict[ledger.Key, Counts](Counts)
    for row in groups.to_pylist():
        kind = "silenced" if row["is_silenced"] else _COUNTED.get(row["severity"])
        if kind is not None:
            found[row["cluster"], row["snapshot_id"]] += Counts(**{kind: row["count"]})
    return found


def _time(micros: int | None) -> datetime | None:
    return None if micros is None else _EPOCH + timedelta(microseconds=micros)


# --- Judging -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Judged:
    """What is found in the snapshots that were asked for; the caller closes it."""

    tables: Mapping[str, DataFrame]
    history: History

    def close(self) -> None:
        self.history.close()


def judged(
    spark: SparkSession, snapshots: Snapshots, todo: Sequence[ledger.History], rules: RuleSet
) -> Judged:
    """What the snapshots that *todo* asks for break, and how each came from the one before."""
    where = places(spark, todo)
    asked = {seen.key for each in todo for seen in each.asked}
    history = told(snapshots, [row for each in todo for row in listed(each)], asked)
    of_history = {name: getattr(history, name) for name in superseding.HISTORY}
    found = finding.findings(snapshots, where, history, rules)
    return Judged({"findings": found, **of_history}, history)


def places(spark: SparkSession, todo: Iterable[ledger.History]) -> DataFrame:
    """Where each snapshot stands in the history of its cluster."""
    return small_frame(spark, [row for each in todo for row in places_of(each)], facts.PLACES)


def brokers_up(snapshots: Snapshots) -> dict[ledger.Key, int]:
    """Of each snapshot that knows its brokers, how many are alive."""
    alive = snapshots.brokers.groupBy(*SNAPSHOT_KEY).agg(F.count_if("alive").alias("up"))
    complete = snapshots.snapshots.where("coalesce(complete, true)").select(*SNAPSHOT_KEY)
    rows = complete.join(alive, on=list(SNAPSHOT_KEY), how="left")
    found = rows.select(*SNAPSHOT_KEY, F.expr("coalesce(up, 0) AS up")).collect()
    return {(row.cluster, row.snapshot_id): row.up for row in found}


def listed(todo: ledger.History) -> list[Listed]:
    """The bursts that are asked about, and the snapshot before each."""
    keys = {seen.key for seen in (*todo.asked, *todo.needed)}
    there = [seen for seen in todo.complete if seen.key in keys]
    burst_of = [todo.bursts[seen.snapshot_id] for seen in there]
    asked = {todo.bursts.get(seen.snapshot_id) for seen in todo.asked}
    return [
        Listed(*seen.key, seen.controller_id, seen.controller_epoch, burst)
        for seen, burst, following in zip(there, burst_of, [*burst_of[1:], None], strict=True)
        if burst in asked or (following is not None and following in asked)
    ]


def places_of(todo: ledger.History) -> list[tuple[Any, ...]]:
    number = {seen.snapshot_id: n for n, seen in enumerate(todo.complete)}
    asked = {seen.key for seen in todo.asked}

    def row(seen: Seen) -> tuple[Any, ...]:
        n = number.get(seen.snapshot_id)
        before, earlier = (
            todo.complete[n - back] if n is not None and n >= back else None for back in (1, 2)
        )
        return (
            *seen.key,
            None if n is None else n + 1,
            seen.key in asked,
            _time(seen.taken_at),
            seen.mode == KRAFT.mode,
            seen.source_form,
            seen.complete,
            seen.controller_id,
            seen.controller_epoch,
            None if before is None else before.controller_epoch,
            _seconds(before, seen),
            _seconds(earlier, seen),
        )

    return [row(seen) for seen in (*todo.asked, *todo.needed)]


def _seconds(before: Seen | None, seen: Seen) -> int | None:
    if before is None or before.taken_at is None or seen.taken_at is None:
        return None
    return (seen.taken_at - before.taken_at) // _MICROS
