"""An audit, put together: what is to be judged, the findings, and the ledger that tells of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from understudy import schemas, superseding
from understudy.controller.profiles import KRAFT
from understudy.frames import small_frame
from understudy.names import SNAPSHOT_KEY
from understudy.questions.audit import facts, ledger
from understudy.questions.audit import findings as finding
from understudy.questions.audit.ledger import Entry, Key, Seen
from understudy.questions.audit.rule import ERROR, INFO, WARNING
from understudy.questions.audit.rule_set import RuleSet
from understudy.questions.history.answer import History, told
from understudy.questions.history.steps import Listed
from understudy.snapshot import Snapshots

_MICROS: Final = 1_000_000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_JUDGED: Final = T.StructType(
    [
        *(T.StructField(name, schemas.STRING) for name in SNAPSHOT_KEY),
        T.StructField("micros", schemas.LONG),
        T.StructField("controller_epoch", schemas.INT),
        T.StructField("complete", schemas.BOOLEAN),
        T.StructField("content_digest", schemas.STRING),
        T.StructField("previous", schemas.STRINGS),
        T.StructField("findings_run", schemas.STRING),
        T.StructField("brokers_up", schemas.LONG),
    ]
)


# --- The ledger as tables ------------------------------------------------------------------------


def stored(snapshots: DataFrame) -> list[Seen]:
    """The rows of a table ``snapshots`` as the ledger knows them."""
    digest = _seen("coalesce(content_digest, snapshot_id)")
    rows = snapshots.selectExpr(*digest, "mode", "source_form", "controller_id")
    return [Seen(*row) for row in rows.distinct().collect()]


def entries(audited: DataFrame) -> list[Entry]:
    """The rows of a table ``audited`` as the ledger knows them."""
    rows = audited.selectExpr(*_seen("content_digest"), "previous", "findings_run").collect()
    return [Entry(Seen(*row[:6]), tuple(row[6]), row[7]) for row in rows]


def _seen(digest: str) -> tuple[str, ...]:
    return (
        *SNAPSHOT_KEY,
        "unix_micros(taken_at)",
        "controller_epoch",
        "coalesce(complete, true)",
        digest,
    )


def audited(
    spark: SparkSession,
    histories: Iterable[ledger.History],
    *,
    run_id: str,
    rules: str,
    known: DataFrame | None,
    findings: DataFrame,
    up: Mapping[Key, int],
) -> DataFrame:
    """The table ``audited`` after this run: what is kept as it was, and what is judged now."""
    rows = []
    kept = []
    for each in histories:
        kept += [(*entry.seen.key, entry.run) for entry in each.kept]
        rows += [
            (*_row(seen, each.previous[seen.snapshot_id]), run_id, up.get(seen.key))
            for seen in each.asked
        ]
    counts = findings.groupBy(*SNAPSHOT_KEY).agg(
        *(
            F.expr(f"count_if(silenced IS NULL AND severity = '{severity}') AS {name}")
            for name, severity in (("errors", ERROR), ("warnings", WARNING), ("infos", INFO))
        ),
        F.expr("count(silenced) AS silenced"),
    )
    judged = (
        small_frame(spark, rows, _JUDGED)
        .join(counts, on=list(SNAPSHOT_KEY), how="left")
        .selectExpr(
            *SNAPSHOT_KEY,
            "timestamp_micros(micros) AS taken_at",
            *("controller_epoch", "complete", "content_digest", "previous"),
            *("findings_run", "brokers_up"),
            *(f"coalesce({n}, 0) AS {n}" for n in ("errors", "warnings", "infos", "silenced")),
        )
        .withColumn("rules", F.lit(rules))
    )
    now = schemas.conform(judged, schemas.AUDITED)
    if known is None or not kept:
        return now
    key = T.StructType(_JUDGED.fields[:2])
    remaining = F.broadcast(small_frame(spark, [row[:2] for row in kept], key))
    return schemas.conform(
        known.join(remaining, on=list(SNAPSHOT_KEY), how="left_semi"), schemas.AUDITED
    ).unionByName(now)


def _row(seen: Seen, previous: Sequence[str]) -> tuple[Any, ...]:
    return (
        *seen.key,
        seen.taken_at,
        seen.controller_epoch,
        seen.complete,
        seen.digest,
        list(previous),
    )


# --- Judging -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Judged:
    """What is found in the snapshots that were asked for; the caller closes it."""

    tables: Mapping[str, DataFrame]
    history: History

    def close(self) -> None:
        self.history.close()


@dataclass(frozen=True)
class Rest:
    """What is known of the partitions that are not in question, or of all."""

    followed: DataFrame | None = None
    load: DataFrame | None = None
    standing: Sequence[DataFrame] = ()


def judged(
    spark: SparkSession,
    snapshots: Snapshots,
    todo: Sequence[ledger.History],
    rules: RuleSet,
    rest: Rest | None = None,
) -> Judged:
    """What the snapshots that *todo* asks for break, and how each came from the one before.

    Where *snapshots* only has the partitions in question, *rest* tells of the others.
    """
    rest = rest or Rest()
    where = places(spark, todo)
    history = told(snapshots, [row for each in todo for row in _listed(each)], rest.followed)
    asked = F.broadcast(where.where("is_asked").select(*SNAPSHOT_KEY))
    of_history = {
        name: getattr(history, name).join(asked, on=list(SNAPSHOT_KEY), how="left_semi")
        for name in superseding.HISTORY
    }
    found = finding.findings(
        snapshots, where, history, rules, load=rest.load, standing=rest.standing
    )
    return Judged({"findings": found, **of_history}, history)


def places(spark: SparkSession, todo: Iterable[ledger.History]) -> DataFrame:
    """Where each snapshot stands in the history of its cluster."""
    return small_frame(spark, [row for each in todo for row in _places(each)], facts.PLACES)


def brokers_up(snapshots: Snapshots) -> dict[Key, int]:
    """By snapshot that knows its brokers, how many are alive."""
    alive = snapshots.brokers.groupBy(*SNAPSHOT_KEY).agg(F.count_if("alive").alias("up"))
    complete = snapshots.snapshots.where("coalesce(complete, true)").select(*SNAPSHOT_KEY)
    rows = complete.join(alive, on=list(SNAPSHOT_KEY), how="left").collect()
    return {(row.cluster, row.snapshot_id): row.up or 0 for row in rows}


def _listed(todo: ledger.History) -> list[Listed]:
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


def _places(todo: ledger.History) -> list[tuple[Any, ...]]:
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
            None if seen.taken_at is None else _EPOCH + timedelta(microseconds=seen.taken_at),
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
