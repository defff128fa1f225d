"""The table ``findings``: every rule that a snapshot, a broker or a partition breaks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from understudy import schemas
from understudy.frames import arrow_schema_of, small_frame
from understudy.names import SNAPSHOT_KEY
from understudy.questions.audit import facts, few_facts
from understudy.questions.audit.few_facts import Looked
from understudy.questions.audit.rule import SUBJECTS, Rule, Subject
from understudy.questions.audit.rule_set import RuleSet, Silence
from understudy.questions.history.answer import History
from understudy.snapshot import Snapshots
from understudy.sql import null, text

if TYPE_CHECKING:
    import pyarrow as pa

_LOAD_COLUMNS: Final = (*facts.LOAD, "all_leaders")

_OF_PARTITIONS: Final[tuple[Subject, ...]] = ("partition", "change")
_BROKER_KEY: Final = (*SNAPSHOT_KEY, "broker_id")

_SILENCE: Final = T.StructType(
    [
        T.StructField("rule", schemas.STRING),
        T.StructField("cluster", schemas.STRING),
        T.StructField("topic", schemas.STRING),
        T.StructField("partition", schemas.INT),
        T.StructField("broker", schemas.INT),
        T.StructField("until", schemas.TIMESTAMP),
        T.StructField("reason", schemas.STRING),
    ]
)
_SILENCES: Final = T.StructType([T.StructField("silences", T.ArrayType(_SILENCE))])


def findings(snapshots: Snapshots, places: DataFrame, told: History, rules: RuleSet) -> DataFrame:
    """What the asked snapshots of *places* break; *snapshots* also has those looked back at."""

    def rows_of(subject: Subject, chosen: Sequence[Rule]) -> DataFrame:
        if subject == "partition":
            looks_back = any(rule.lookback for rule in chosen)
            return facts.partitions(snapshots, places, told.changes, looks_back=looks_back)
        if subject == "change":
            return facts.unexplained(told.divergences, places)
        if subject == "broker":
            load = facts.load(snapshots, places) if _looks_at_load(rules) else None
            return facts.brokers(snapshots, places, load)
        return facts.whole(snapshots, places)

    found = _all_broken(rules, rows_of)
    if found is None:
        return small_frame(places.sparkSession, [], schemas.FINDINGS)
    if any(rule.lookback for subject in _OF_PARTITIONS for rule in rules.about(subject)):
        found = _without_renewed(found, facts.renewed_topics(snapshots, places))
    racks = snapshots.brokers.where("rack IS NOT NULL").select(*_BROKER_KEY, "rack")
    with_racks = silenced(found, rules.silences).join(racks, on=list(_BROKER_KEY), how="left")
    return schemas.conform(with_racks, schemas.FINDINGS)


def few_findings(
    spark: SparkSession, looked: Sequence[Looked], told: Mapping[str, pa.Table], rules: RuleSet
) -> pa.Table:
    """What these snapshots break in what is in question of them, silenced or not."""
    import pyarrow as pa  # noqa: PLC0415 - importing the package must not load it

    def rows_of(subject: Subject, _chosen: Sequence[Rule]) -> DataFrame:
        rows, schema = _facts_at_hand(subject, looked, told)
        table = pa.Table.from_pylist([*rows], schema=arrow_schema_of(schema))
        return spark.createDataFrame(table, schema)

    found = _all_broken(rules, rows_of)
    rows = [] if found is None else found.toArrow().to_pylist()
    renewed = few_facts.renewed_topics(looked)
    rack_of = {
        (*each.key, broker): row["rack"]
        for each in looked
        for broker, row in each.now.moment.brokers.items()
    }
    held = [
        row | {"rack": rack_of.get((row["cluster"], row["snapshot_id"], row["broker_id"]))}
        for row in rows
        if not any(
            (row["cluster"], row["snapshot_id"], row["topic"], far) in renewed
            for far in range(1, row["lookback"] + 1)
        )
    ]
    return pa.Table.from_pylist(held, schema=arrow_schema_of(schemas.FINDINGS))


def _facts_at_hand(
    subject: Subject, looked: Sequence[Looked], told: Mapping[str, pa.Table]
) -> tuple[Iterable[dict[str, Any]], T.StructType]:
    if subject == "partition":
        changes = told["changes"].to_pylist()
        return few_facts.partitions(looked, changes), few_facts.PARTITIONS
    if subject == "change":
        divergences = told["divergences"].to_pylist()
        return few_facts.unexplained(looked, divergences), few_facts.CHANGES
    if subject == "broker":
        return few_facts.brokers(looked), few_facts.BROKERS
    return few_facts.whole(looked), few_facts.SNAPSHOTS


def _looks_at_load(rules: RuleSet) -> bool:
    return any(name in rule.when for rule in rules.about("broker") for name in _LOAD_COLUMNS)


def _all_broken(
    rules: RuleSet, rows_of: Callable[[Subject, Sequence[Rule]], DataFrame]
) -> DataFrame | None:
    broken = [
        _broken(rows_of(subject, chosen), subject, chosen)
        for subject in SUBJECTS
        if (chosen := rules.about(subject))
    ]
    return reduce(DataFrame.unionByName, broken) if broken else None


def _broken(rows: DataFrame, subject: Subject, rules: Sequence[Rule]) -> DataFrame:
    """One row per rule broken; what is said about it is put together for those rows only."""
    named = ", ".join(f"IF({rule.condition()}, {text(rule.name)}, NULL)" for rule in rules)
    violated = rows.selectExpr("*", f"array_compact(array({named})) AS _broken").where(
        "size(_broken) > 0"
    )
    each = violated.withColumn("rule", F.explode("_broken"))

    def by_rule(values: dict[str, str]) -> str:
        cases = " ".join(f"WHEN {text(name)} THEN {value}" for name, value in values.items())
        return f"CASE rule {cases} END"

    of_partition = subject in _OF_PARTITIONS
    return each.selectExpr(
        *("cluster", "snapshot_id", "taken_at", "number", "rule"),
        f"{by_rule({rule.name: text(rule.severity) for rule in rules})} AS severity",
        f"{by_rule({rule.name: str(rule.lookback) for rule in rules})} AS lookback",
        f"{'topic' if of_partition else null('STRING')} AS topic",
        f"{'partition' if of_partition else null('INT')} AS partition",
        f"{by_rule({rule.name: rule.broker for rule in rules})} AS broker_id",
        f"{by_rule({rule.name: rule.told() for rule in rules})} AS evidence",
    )


def _without_renewed(found: DataFrame, renewed: DataFrame) -> DataFrame:
    """Leave out what was found by looking back past the re-creation of a topic."""
    gone = F.broadcast(renewed.select("cluster", "topic", "number", F.col("lookback").alias("far")))
    same = [found[name] == gone[name] for name in ("cluster", "topic", "number")]
    return found.join(gone, [*same, found["lookback"] >= gone["far"]], "left_anti")


def silenced(found: DataFrame, silences: Sequence[Silence]) -> DataFrame:
    """Findings with the reason they are silenced for, if they are; nothing is left out."""
    found = found.drop("silenced")
    if not silences:
        return found.withColumn("silenced", F.expr(null("STRING")))
    rows = [{name: getattr(silence, name) for name in _SILENCE.names} for silence in silences]
    # One row that holds them all: the plan does not grow with their number.
    given = F.broadcast(small_frame(found.sparkSession, [(rows,)], _SILENCES))
    fits = " AND ".join(
        [
            *(f"(s.{name} IS NULL OR s.{name} <=> f.{name})" for name in ("rule", "cluster")),
            "(s.topic IS NULL OR coalesce(f.topic RLIKE concat('^(?:', s.topic, ')$'), false))",
            "(s.partition IS NULL OR s.partition <=> f.partition)",
            "(s.broker IS NULL OR s.broker <=> f.broker_id)",
            "coalesce(f.taken_at < s.until, false)",
        ]
    )
    reason = f"get(filter(silences, s -> {fits}), 0).reason"
    return found.alias("f").crossJoin(given).select("f.*", F.expr(reason).alias("silenced"))
