"""What of one more snapshot has to be looked at, where hardly anything happened.

Of a cluster whose brokers and settings are as they were, a partition that is as it was, in sync
with brokers that are all there, is found in the condition it was found in a snapshot earlier. So
what was found then is carried on, and only the partitions *in question* are judged: those that are
not as they were, and those that a rule could find something new about all the same.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pyspark.sql import DataFrame, SparkSession

from understudy import schemas
from understudy.controller.profiles import KRAFT
from understudy.frames import FEW_ROWS, arrow_conform, collected
from understudy.names import SNAPSHOT_KEY
from understudy.questions.audit import sifting
from understudy.questions.audit.audit import listed, places_of
from understudy.questions.audit.facts import LOAD, PLACES
from understudy.questions.audit.few_facts import Load, Looked, View
from understudy.questions.audit.findings import few_findings, silenced
from understudy.questions.audit.ledger import History, Seen
from understudy.questions.audit.rule import LOOKBACK
from understudy.questions.audit.rule_set import RuleSet
from understudy.questions.audit.sifting import BEFORE, NOW, Cluster
from understudy.questions.history import few
from understudy.questions.history.answer import told_of
from understudy.snapshot import Key, Snapshots
from understudy.superseding import HISTORY

if TYPE_CHECKING:
    import pyarrow as pa

_OWNER: Final = (*SNAPSHOT_KEY, "run_id")
_NEVER_THE_SAME: Final = ("snapshot_id", "taken_at", "content_digest")


class Next(NamedTuple):
    """The snapshot that what was found a snapshot earlier holds on in."""

    snapshot_id: str
    taken_at: int | None


@dataclass(frozen=True)
class Carried:
    """What is left to be judged of *todo*, and what stands for all else."""

    todo: Sequence[History]
    there: Mapping[Key, few.Moment]
    """The snapshots, with the partitions in question and what belongs to these."""
    load_of_rest: Mapping[str, Load]
    """By cluster, what brokers hold and lead of all other partitions."""
    followed_in_rest: Mapping[Key, AbstractSet[int]]
    """Who is in sync with somebody else about one of these."""
    in_question: pa.Table
    """Cluster, topic and partition."""

    def judged(self, spark: SparkSession, rules: RuleSet, found: pa.Table) -> dict[str, pa.Table]:
        """The tables of an audit; *found* has what was found a snapshot earlier, with its run."""
        import pyarrow as pa  # noqa: PLC0415 - importing the package must not load it

        tables = self._in_question(spark, rules)
        every = pa.concat_tables([tables["findings"], self._holds_on(rules)(found)])
        if rules.silences:
            frame = spark.createDataFrame(every, schemas.FINDINGS)
            every = arrow_conform(silenced(frame, rules.silences).toArrow(), schemas.FINDINGS)
        return {**tables, "findings": every}

    def frames(self, spark: SparkSession, rules: RuleSet, found: DataFrame) -> dict[str, DataFrame]:
        """The same where it may be much."""
        tables = {
            name: spark.createDataFrame(rows, schemas.TABLES[name])
            for name, rows in self._in_question(spark, rules).items()
        }
        standing = found.mapInArrow(partial(_each, self._holds_on(rules)), schemas.FINDINGS)
        every = silenced(tables["findings"].unionAll(standing), rules.silences)
        return {**tables, "findings": schemas.conform(every, schemas.FINDINGS)}

    def _in_question(self, spark: SparkSession, rules: RuleSet) -> dict[str, pa.Table]:
        history = [row for each in self.todo for row in listed(each)]
        asked = {seen.key for each in self.todo for seen in each.asked}
        bursts = few.bursts(self.there, history, self.followed_in_rest)
        told = {name: rows for name, rows in told_of(bursts, asked).items() if name in HISTORY}
        return {"findings": few_findings(spark, [*self._looked()], told, rules), **told}

    def _holds_on(self, rules: RuleSet) -> Callable[[pa.Table], pa.Table]:
        """Of what was found a snapshot earlier, what holds on of all other partitions.

        Rules that look back are no part of it: whatever they find is in question.
        """
        lasting = [rule.name for rule in rules.about("partition") if not rule.lookback]
        following = dict(zip(self.owners(), self._next().values(), strict=True))
        return partial(_holding_on, following, lasting, self.in_question)

    def _looked(self) -> Iterator[Looked]:
        for history in self.todo:
            places = (dict(zip(PLACES.names, row, strict=True)) for row in places_of(history))
            (place,) = (row for row in places if row["is_asked"])
            number = place["number"]
            now, before, earlier = (
                View(self.there[seen.key], number - back)
                for back, seen in enumerate(_compared(history))
            )
            yield Looked(place, now, before, earlier, self.load_of_rest.get(history.cluster, {}))

    def brokers_up(self) -> dict[Key, int]:
        """Of each snapshot that is asked for, how many brokers are alive."""
        return {
            seen.key: sum(bool(row["alive"]) for row in self.there[seen.key].brokers.values())
            for each in self.todo
            for seen in each.asked
        }

    def _next(self) -> dict[Key, Next]:
        pairs = (_compared(each)[:2] for each in self.todo)
        return {before.key: Next(now.snapshot_id, now.taken_at) for now, before in pairs}

    @property
    def is_little(self) -> bool:
        """Whether few rows can be found."""
        kept = {entry.seen.key: entry.counts.total for each in self.todo for entry in each.kept}
        return sum(kept[key] for key in self._next()) <= FEW_ROWS

    def owners(self) -> list[tuple[str, str, str]]:
        """Cluster, snapshot and run of what was found a snapshot earlier."""
        runs = {entry.seen.key: entry.run for each in self.todo for entry in each.kept}
        return [(*key, runs[key]) for key in self._next()]


def carried(there: Snapshots, todo: Sequence[History]) -> Carried | None:
    """Of the histories whose newest snapshot differs little from the one before; *there* has both.

    None where there are none, or where more is in question than this process should hold.
    """
    going_on = {each.cluster: each for each in todo if _goes_on(each)}
    if not going_on:
        return None
    spark = there.snapshots.sparkSession
    known = collected(spark, {name: getattr(there, name) for name in ("snapshots", "brokers")})
    alike = {name: each for name, each in going_on.items() if _are_alike(each, known)}
    if not alike:
        return None
    clusters = {name: _cluster(each, known) for name, each in alike.items()}
    sides = {seen.key: side for each in alike.values() for side, seen in enumerate(_compared(each))}
    found = sifting.sifted(there, sides, clusters).limit(FEW_ROWS + 1).toArrow()
    if found.num_rows > FEW_ROWS:
        return None
    restless = _restless(sifting.rows_of("configs", found))
    calm = [each for name, each in alike.items() if name not in restless]
    if not calm:
        return None
    of_topics = {name: _of_each(sifting.rows_of(name, found), calm) for name in sifting.TABLES}
    counted = sifting.rows_of(sifting.COUNTED, found).to_pylist()
    followed = _followed(counted)
    return Carried(
        todo=calm,
        there=few.moments({**known, **of_topics}),
        load_of_rest=_load(counted),
        followed_in_rest={each.asked[0].key: followed[each.cluster] for each in calm},
        in_question=of_topics["partitions"].select(["cluster", "topic", "partition"]),
    )


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
    return rows.append_column("snapshot_id", named).drop_columns("side").filter(named.is_valid())


def _load(counted: Iterable[Mapping[str, Any]]) -> dict[str, Load]:
    """By cluster and broker: of partitions that are in sync all others follow a leader."""
    load: defaultdict[str, defaultdict[int, Counter[str]]]
    load = defaultdict(lambda: defaultdict(Counter))
    for row in counted:
        followed = row["held"] - row["leaders"]
        of_broker = {name: row[name] for name in LOAD if name in row}
        found = load[row["cluster"]][row["broker_id"]]
        found.update(of_broker, followed=followed, followed_in_sync=followed)
    return {**load}


def _followed(counted: Iterable[Mapping[str, Any]]) -> defaultdict[str, set[int]]:
    """By cluster, who is in sync with somebody else."""
    followed = defaultdict[str, set[int]](set)
    for row in counted:
        if row["accompanied"]:
            followed[row["cluster"]].add(row["broker_id"])
    return followed


# --- What holds on -------------------------------------------------------------------------------


def _each(
    change: Callable[[pa.Table], pa.Table], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa  # noqa: PLC0415 - executors only

    for batch in batches:
        yield from change(pa.Table.from_batches([batch])).to_batches()


def _holding_on(
    following: Mapping[tuple[str, str, str], Next],
    lasting: Collection[str],
    in_question: pa.Table,
    found: pa.Table,
) -> pa.Table:
    """Of what was *found*, the rows that are true of the *following* snapshots, too.

    Those are given by cluster, snapshot and run of what was found.
    """
    import pyarrow as pa  # noqa: PLC0415 - importing the package must not load it
    import pyarrow.compute as pc  # noqa: PLC0415

    named = {
        **dict(zip(_OWNER, map(list, zip(*following, strict=True)), strict=True)),
        "next_id": [each.snapshot_id for each in following.values()],
        "next_at": pa.array([each.taken_at for each in following.values()], pa.int64()),
    }
    held = found.filter(pc.is_in(found["rule"], pa.array(lasting, pa.string())))
    # Without threads rows come out in the order they had: the same again gives the same bytes.
    held = held.join(pa.table(named), list(_OWNER), join_type="inner", use_threads=False)
    key = ["cluster", "topic", "partition"]
    held = held.join(in_question, key, join_type="left anti", use_threads=False)
    at = held["next_at"].cast(pa.timestamp("us", tz="UTC"))
    columns = {"snapshot_id": held["next_id"], "taken_at": at}
    for name, values in columns.items():
        held = held.set_column(held.column_names.index(name), name, values)
    return arrow_conform(held, schemas.FINDINGS)
