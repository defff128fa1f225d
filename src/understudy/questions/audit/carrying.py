"""What of one more snapshot has to be looked at, where hardly anything happened.

Of a cluster whose brokers and settings are as they were, a partition that is as it was, in sync
with brokers that are all there, is found in the condition it was found in a snapshot earlier. So
what was found then is carried on, and only the partitions *in question* are judged: those that are
not as they were, and those that a rule could find something new about all the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from understudy import schemas
from understudy.controller.profiles import KRAFT
from understudy.frames import FEW_ROWS, collected, small_frame
from understudy.names import SNAPSHOT_KEY
from understudy.questions.audit import sifting
from understudy.questions.audit.audit import Rest
from understudy.questions.audit.ledger import History, Seen
from understudy.questions.audit.rule import LOOKBACK
from understudy.questions.audit.rule_set import RuleSet
from understudy.questions.audit.sifting import BEFORE, NOW, Cluster
from understudy.snapshot import Snapshots

if TYPE_CHECKING:
    import pyarrow as pa

_KEY: Final = ("cluster", "topic", "partition")
_NEVER_THE_SAME: Final = ("snapshot_id", "taken_at", "content_digest")
_COUNTED: Final = T.StructType(
    [
        *(T.StructField(name, schemas.STRING) for name in SNAPSHOT_KEY),
        T.StructField("broker_id", schemas.INT),
        *(T.StructField(name, schemas.LONG) for name in sifting.COUNTS),
    ]
)
# Of partitions that are in sync no leader is alone, and all others follow.
_LOAD: Final = (
    *("held", "leaders", "preferred", "preferred_led", "shared_led", "0L AS alone"),
    *("held - leaders AS followed", "held - leaders AS followed_in_sync"),
)


@dataclass(frozen=True)
class Carried:
    """What is left to be judged of *todo*, and what stands for all else."""

    todo: Sequence[History]
    snapshots: Snapshots
    """The partitions in question and what belongs to them; all the snapshots and brokers."""
    counted: DataFrame
    """What brokers hold and lead of all other partitions."""

    def rest(self, rules: RuleSet, found: DataFrame) -> Rest:
        """What is known of all other partitions, of which that was *found* a snapshot earlier."""
        kept = {entry.seen.key: entry.counts.total for each in self.todo for entry in each.kept}
        rows = sum(kept[before.key] for _, before, _ in map(_compared, self.todo))
        return Rest(
            followed=self.counted.where("accompanied > 0").select(*SNAPSHOT_KEY, "broker_id"),
            load=self.counted.selectExpr(*SNAPSHOT_KEY, "broker_id", *_LOAD),
            standing=[self._standing(rules, found)],
            is_little=rows + (self.snapshots.rows or 0) <= FEW_ROWS,
        )

    def _standing(self, rules: RuleSet, found: DataFrame) -> DataFrame:
        """What was *found* and holds on, in the columns of what is broken.

        Rules that look back are no part of it: whatever they find is in question.
        """
        pairs = [
            (*before.key, now.snapshot_id, now.taken_at)
            for now, before, _ in map(_compared, self.todo)
        ]
        names = ("cluster", "snapshot_id", "now", "micros")
        kinds = (schemas.STRING, schemas.STRING, schemas.STRING, schemas.LONG)
        of_next = T.StructType([T.StructField(*each) for each in zip(names, kinds, strict=True)])
        lasting = [rule.name for rule in rules.about("partition") if not rule.lookback]
        in_question = self.snapshots.partitions.select(*_KEY).distinct()
        return (
            found.where(F.col("rule").isin(lasting))
            .join(F.broadcast(small_frame(found.sparkSession, pairs, of_next)), [*SNAPSHOT_KEY])
            .join(F.broadcast(in_question), list(_KEY), "left_anti")
            .selectExpr(
                *("cluster", "now AS snapshot_id", "timestamp_micros(micros) AS taken_at"),
                *("CAST(NULL AS INT) AS number", "rule", "severity", "0 AS lookback"),
                *("topic", "partition", "broker_id", "evidence"),
            )
        )

    def owners(self) -> list[tuple[str, str, str]]:
        """Cluster, snapshot and run of what was found a snapshot earlier."""
        runs = {entry.seen.key: entry.run for each in self.todo for entry in each.kept}
        return [(*before.key, runs[before.key]) for _, before, _ in map(_compared, self.todo)]


def carried(spark: SparkSession, there: Snapshots, todo: Sequence[History]) -> Carried | None:
    """Of the histories whose newest snapshot differs little from the one before; *there* has both.

    None where there are none, or where more is in question than this process should hold.
    """
    going_on = {each.cluster: each for each in todo if _goes_on(each)}
    if not going_on:
        return None
    places = _placed(spark, going_on.values())
    near = there if len(going_on) == len(todo) else there.only(places)
    known = collected(spark, {"snapshots": near.snapshots, "brokers": near.brokers})
    alike = {name: each for name, each in going_on.items() if _are_alike(each, known)}
    if not alike:
        return None
    clusters = {name: _cluster(each, known) for name, each in alike.items()}
    looked_at = places if len(alike) == len(going_on) else _placed(spark, alike.values())
    found = sifting.sifted(near, looked_at, clusters).limit(FEW_ROWS + 1).toArrow()
    if found.num_rows > FEW_ROWS:
        return None
    restless = _restless(sifting.rows_of("configs", found))
    calm = [each for name, each in alike.items() if name not in restless]
    if not calm:
        return None
    of_topics = {name: _of_each(sifting.rows_of(name, found), calm) for name in sifting.TABLES}
    local: dict[str, Any] = {
        name: _local(getattr(near, name), rows) for name, rows in {**known, **of_topics}.items()
    }
    in_question = replace(near, **local, rows=of_topics["partitions"].num_rows)
    counted = _counted(spark, calm, sifting.rows_of(sifting.COUNTED, found))
    return Carried(calm, in_question, counted)


def _goes_on(history: History) -> bool:
    """One more snapshot, right after others that are judged."""
    if not (history.is_continued and len(history.asked) == 1 and history.asked[0].complete):
        return False
    before = [seen for seen in history.complete if seen.order < history.asked[0].order]
    return (
        len(before) >= LOOKBACK
        and {seen.key for seen in history.needed} == {seen.key for seen in before[-LOOKBACK:]}
        and before[-1].key in {entry.seen.key for entry in history.kept}
    )


def _compared(history: History) -> tuple[Seen, Seen, Seen]:
    """The snapshot that is asked for, and the two before it."""
    earlier, before = sorted(history.needed, key=lambda seen: seen.order)
    return history.asked[0], before, earlier


def _placed(spark: SparkSession, todo: Iterable[History]) -> DataFrame:
    rows = [(*seen.key, side) for each in todo for side, seen in enumerate(_compared(each))]
    return small_frame(spark, rows, sifting.PLACES)


# --- What is not as it was -----------------------------------------------------------------------


def _are_alike(history: History, known: Mapping[str, pa.Table]) -> bool:
    """Whether brokers, and what is said of all the cluster, are as they were a snapshot earlier."""
    now, before = (
        [_said(rows, seen) for rows in known.values()] for seen in _compared(history)[:2]
    )
    return now == before


def _said(rows: pa.Table, seen: Seen) -> Counter[str]:
    """What the rows of a snapshot say, whatever it is called."""
    same = _of(seen, rows).drop_columns([n for n in _NEVER_THE_SAME if n in rows.column_names])
    return Counter(map(str, same.to_pylist()))


def _cluster(history: History, known: Mapping[str, pa.Table]) -> Cluster:
    now = history.asked[0]
    brokers = _of(now, known["brokers"]).to_pylist()
    return Cluster(
        is_kraft=now.mode == KRAFT.mode,
        steady=frozenset(
            row["broker_id"] for row in brokers if row["alive"] and not row["shutting_down"]
        ),
        directories=frozenset(
            (row["broker_id"], directory) for row in brokers for directory in row["log_dirs"] or ()
        ),
    )


def _of(seen: Seen, rows: pa.Table) -> pa.Table:
    """Those of *rows* that are about one snapshot."""
    import pyarrow.compute as pc  # noqa: PLC0415 - importing the package must not load it

    is_its = (
        pc.equal(rows[name], value) for name, value in zip(SNAPSHOT_KEY, seen.key, strict=True)
    )
    return rows.filter(pc.and_(*is_its))


def _restless(settings: pa.Table) -> set[str]:
    """The clusters that have other settings now, of more than a topic."""
    more = Counter[tuple[str | None, ...]]()
    for row in settings.to_pylist():
        if row["scope"] != "topic" and row["side"] in (NOW, BEFORE):
            said = (row[name] for name in ("cluster", "scope", "name", "key", "value"))
            more[tuple(said)] += 1 if row["side"] == NOW else -1
    return {said[0] or "" for said, times in more.items() if times}


def _local(frame: DataFrame, rows: pa.Table) -> DataFrame:
    """In one task: what is so little is joined and grouped without a shuffle."""
    return frame.sparkSession.createDataFrame(rows.select(frame.columns), frame.schema).coalesce(1)


def _of_each(rows: pa.Table, calm: Iterable[History]) -> pa.Table:
    """The rows of the calm clusters, each with its snapshot for its side."""
    import pyarrow as pa  # noqa: PLC0415 - as above

    names = {
        (history.cluster, side): seen.snapshot_id
        for history in calm
        for side, seen in enumerate(_compared(history))
    }
    sides = zip(rows["cluster"].to_pylist(), rows["side"].to_pylist(), strict=True)
    named = pa.array([names.get(each) for each in sides], pa.string())
    return rows.append_column("snapshot_id", named).filter(named.is_valid())


def _counted(spark: SparkSession, calm: Iterable[History], rows: pa.Table) -> DataFrame:
    now = {history.cluster: history.asked[0].snapshot_id for history in calm}
    told = [{"snapshot_id": now.get(row["cluster"]), **row} for row in rows.to_pylist()]
    given = [[row[name] for name in _COUNTED.names] for row in told if row["snapshot_id"]]
    return small_frame(spark, given, _COUNTED).coalesce(1)
