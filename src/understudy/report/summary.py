"""What a replay decided, in a screenful: gathered from its published tables, then told.

Only counts and the first few rows ever reach the driver. Every listing says how many there really
are. Each question to Spark is one job, and all of them run at the same time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from pyspark import inheritable_thread_target
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from understudy import publish
from understudy.names import SCENARIO_KEY
from understudy.report.tables import WIDTH, amount, cell, listed, size, table, wrapped

OUTCOMES: Final = {
    "elected": "got a new leader, in sync",
    "elected_unclean": "got a leader that was out of sync (records may be lost)",
    "initialized": "got their first leader",
    "isr_shrunk": "kept their leader, lost in-sync replicas",
    "isr_changed": "kept their leader, which reported other in-sync replicas",
    "record_refreshed": "kept leader and ISR, record written again",
    "epoch_raised": "kept leader and ISR, leader epoch raised",
    "reassigning": "are being reassigned",
    "reassigned": "have been reassigned",
    "deleting": "are being deleted",
    "deleted": "have been deleted",
    "resigned": "are not held: the new controller gave up",
    "offline": "are left without a leader",
    "never_led": "still wait for their first leader",
    "unchanged": "are as they were",
}
LEADERLESS: Final = ("offline", "never_led")
REQUESTS: Final = {
    "LEADER_AND_ISR": "LeaderAndIsr",
    "UPDATE_METADATA": "UpdateMetadata",
    "STOP_REPLICA": "StopReplica",
}

Told = dict[str, Any]


# --- Gathering ---------------------------------------------------------------------------------


def gather(
    spark: SparkSession,
    root: str,
    run_id: str,
    row_counts: Mapping[str, int],
    *,
    topic: str | None,
    limit: int,
) -> Told:
    """The facts of one published replay, ready for JSON; tables it did not write are left out."""

    def rows_of(name: str) -> DataFrame:
        rows = publish.read_runs(spark, root, name, [run_id])
        return (
            rows.where(F.col("topic").rlike(topic)) if topic and "topic" in rows.columns else rows
        )

    def ask(name: str) -> Told:
        return _QUESTIONS[name](rows_of(name), limit)

    answerable = [name for name in _QUESTIONS if name in row_counts]
    with ThreadPoolExecutor(max(1, len(answerable)), thread_name_prefix="summary") as pool:
        asked = [pool.submit(inheritable_thread_target(spark)(ask), name) for name in answerable]
        told: Told = {}
        for answer in asked:
            told |= answer.result()
    return told


def _states(states: DataFrame, limit: int) -> Told:
    """Outcomes over everything and for each replay, and who is left without a leader."""
    counted = {name: F.count_if(F.col("outcome") == name) for name in OUTCOMES}
    per_replay = states.groupBy(*SCENARIO_KEY).agg(
        F.count(F.lit(1)).alias("partitions"), *(c.alias(name) for name, c in counted.items())
    )
    totals, replays = _counted(
        per_replay,
        [F.desc(F.col("offline") + F.col("never_led")), *SCENARIO_KEY],
        limit,
        *(F.sum(name).alias(name) for name in ("partitions", *OUTCOMES)),
        *are_several(SCENARIO_KEY),
    )
    leaderless, first = _counted(
        states.where(F.col("outcome").isin(*LEADERLESS)).select(
            *SCENARIO_KEY, "topic", "partition", "outcome", "isr", "reason"
        ),
        [*SCENARIO_KEY, "topic", "partition"],
        limit,
    )
    return {
        "partitions": totals["partitions"] or 0,
        "outcomes": {name: totals[name] or 0 for name in OUTCOMES},
        "replays": {"count": totals["count"], "first": replays},
        "several": several_of(totals, SCENARIO_KEY),
        "leaderless": {"count": leaderless["count"], "first": first},
    }


def _elections(decisions: DataFrame, _: int) -> Told:
    led = F.coalesce(F.col("chosen") >= 0, F.lit(False))
    row = decisions.agg(
        F.count_if(led & F.col("clean")).alias("clean"),
        F.count_if(led & ~F.col("clean")).alias("unclean"),
        F.count_if(~led).alias("failed"),
    ).first()
    return {"elections": {} if row is None else row.asDict()}


def _requests(requests: DataFrame, limit: int) -> Told:
    of_kind = {name: F.count_if(F.col("request") == name) for name in REQUESTS}
    per_broker = requests.groupBy("broker_id").agg(
        *(c.alias(name.lower()) for name, c in of_kind.items()),
        F.sum("partition_count").alias("partitions"),
        F.sum("bytes").alias("bytes"),
    )
    sums = (*(name.lower() for name in REQUESTS), "partitions", "bytes")
    totals, first = _counted(
        per_broker,
        [F.desc("bytes"), "broker_id"],
        limit,
        *(F.sum(name).alias(name) for name in sums),
    )
    return {
        "requests": {name: totals[name] or 0 for name in sums}
        | {"brokers": {"count": totals["count"], "first": first}}
    }


def _writes(writes: DataFrame, _: int) -> Told:
    kinds = writes.groupBy("kind").count().orderBy("kind").collect()
    return {"writes": {row["kind"]: row["count"] for row in kinds}}


def _answers(results: DataFrame, limit: int) -> Told:
    errors = results.where("error IS NOT NULL")
    grouped = errors.groupBy("event_type", "error").agg(F.count(F.lit(1)).alias("rows"))
    totals, first = _counted(grouped, ["event_type", "error"], limit, F.sum("rows").alias("rows"))
    return {"errors": {"count": totals["rows"] or 0, "first": first}}


def quarantine(
    spark: SparkSession, root: str, run_id: str, row_counts: Mapping[str, int], *, limit: int
) -> Told:
    """How many snapshots were refused, and the first of them with what is wrong."""
    count = row_counts.get("quarantine", 0)
    if not count:
        return {"count": 0, "first": []}
    return {
        "count": count,
        "first": first_rows(
            publish.read_runs(spark, root, "quarantine", [run_id]).drop("run_id"),
            ["source", "position"],
            limit,
        )[1],
    }


def first_rows(
    rows: DataFrame, order: Sequence[Column | str], limit: int
) -> tuple[int, list[Told]]:
    """How many rows there are, and the first of them."""
    totals, first = _counted(rows, order, limit)
    return totals["count"], first


def _counted(
    rows: DataFrame, order: Sequence[Column | str], limit: int, *sums: Column
) -> tuple[Told, list[Told]]:
    """The first rows, and how many there are (with other *sums*) seen in the same pass."""
    seen = Observation()
    observed = rows.observe(seen, F.count(F.lit(1)).alias("count"), *sums)
    # A limit of zero would be optimised away, and the counts with it.
    first = observed.orderBy(*order).limit(max(limit, 1)).collect()
    return dict(seen.get), [row.asDict(recursive=True) for row in first[:limit]]


def are_several(names: Sequence[str]) -> list[Column]:
    """Of each column whether it has several values; what is shown of it may all be the same."""
    return [(F.min(name) != F.max(name)).alias(f"several_{name}") for name in names]


def several_of(totals: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    """The columns that tell rows apart: one that says the same everywhere says nothing."""
    return [name for name in names if totals.get(f"several_{name}")]


_QUESTIONS: Final[dict[str, Callable[[DataFrame, int], Told]]] = {
    "partition_states": _states,
    "decisions": _elections,
    "requests": _requests,
    "metadata_writes": _writes,
    "event_results": _answers,
}


# --- Telling -----------------------------------------------------------------------------------


def as_text(told: Told, *, topic: str | None = None) -> str:
    """The same facts for a person: a verdict line, then what is behind it."""
    blocks = [
        [_headline(told)],
        _told_outcomes(told, topic),
        _told_leaderless(told),
        _told_requests(told),
        _told_writes(told),
        _told_errors(told),
        _told_replays(told),
        told_notes(told),
        refusals(told.get("quarantine", {})),
        told_tables(told),
    ]
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def runs_text(told: Told) -> str:
    """The runs of a place, the newest first."""
    found = {"count": told["count"], "first": told["runs"]}
    rows = [
        (row["run_id"], row["job"], row["started"], row["verdict"], sum(row["row_counts"].values()))
        for row in told["runs"]
    ]
    lines = [*_told_kept_small(told), f"{listed(found, 'run')} in {told['root']}"]
    return "\n".join([*lines, *table(("run", "job", "started", "verdict", "rows"), rows)]) + "\n"


def _told_kept_small(told: Told) -> Iterator[str]:
    if "compacted" in told:
        into = told["compacted"]["into"]
        merged = amount(told["compacted"]["runs"], "run")
        yield f"Compacted {merged} into {into}" if into else "Nothing to compact"
    if "pruned" in told:
        gone = told["pruned"]
        yield f"{'To prune' if gone['dry_run'] else 'Pruned'}: {listed(gone, 'run')}"
        yield from (
            table(("run", "why"), [(row["run_id"], row["reason"]) for row in gone["first"]])
            if gone["first"]
            else ()
        )


def _headline(told: Told) -> str:
    if "outcomes" not in told:
        return f"Replayed: run {told['run_id']}"
    outcomes = told["outcomes"]
    replayed = amount(told["replays"]["count"], "scenario")
    parts = [
        amount(outcomes["elected"] + outcomes["initialized"], "clean election"),
        f"{outcomes['elected_unclean']:,} unclean",
        f"{told['leaderless']['count']:,} left without a leader",
    ]
    over = amount(told["partitions"], "partition")
    return f"Replayed {replayed} over {over}: {', '.join(parts)}."


def _told_outcomes(told: Told, topic: str | None) -> list[str]:
    lines = []
    if "outcomes" in told:
        rows = [(count, name, OUTCOMES[name]) for name, count in told["outcomes"].items() if count]
        lines += table(("partitions", "outcome", ""), rows)
    if elections := told.get("elections"):
        lines.append(
            f"  {amount(sum(elections.values()), 'election')} tried: {elections['clean']:,} clean, "
            f"{elections['unclean']:,} unclean, {elections['failed']:,} without a candidate"
        )
    heading = "What the controller decided" + (f" (topics matching {topic})" if topic else "")
    return [heading, *lines] if lines else []


def _told_leaderless(told: Told) -> list[str]:
    found = told.get("leaderless", {"count": 0})
    if not found["count"]:
        return []
    keys = told["several"]
    rows = [
        (
            f"{row['topic']}-{row['partition']}",
            *(row[key] for key in keys),
            row["reason"] or row["outcome"],
        )
        for row in found["first"]
    ]
    return [
        f"Without a leader: {listed(found, 'partition')}",
        *table(("partition", *keys, "why"), rows),
    ]


def _told_requests(told: Told) -> list[str]:
    if not (sent := told.get("requests")):
        return []
    count = sum(sent[name.lower()] for name in REQUESTS)
    if not count:
        return ["What each broker would be sent: nothing"]
    rows = [
        (
            row["broker_id"],
            *(row[name.lower()] for name in REQUESTS),
            row["partitions"],
            size(row["bytes"] or 0),
        )
        for row in sent["brokers"]["first"]
    ]
    volume = f"{amount(count, 'request')}, {size(sent['bytes'])}"
    return [
        f"What each broker would be sent: {volume}, to {listed(sent['brokers'], 'broker')}",
        *table(("broker", *REQUESTS.values(), "partitions", "size"), rows),
    ]


def _told_writes(told: Told) -> list[str]:
    if "writes" not in told:
        return []
    kinds = told["writes"]
    detail = ", ".join(f"{count:,} {kind}" for kind, count in kinds.items())
    return [f"Durable writes: {sum(kinds.values()):,}" + (f" ({detail})" if detail else "")]


def _told_errors(told: Told) -> list[str]:
    found = told.get("errors", {"count": 0})
    if not found["count"]:
        return []
    rows = [(row["event_type"], row["error"], row["rows"]) for row in found["first"]]
    return [
        f"Events that were answered with an error: {found['count']:,}",
        *table(("event", "error", "times"), rows),
    ]


def _told_replays(told: Told) -> list[str]:
    found = told.get("replays", {"count": 0})
    if found["count"] <= 1:
        return []
    shown = ("elected", "elected_unclean", "initialized", "isr_shrunk", "offline", "never_led")
    keys = told["several"]
    rows = [(*(row[key] for key in keys), *(row[name] for name in shown)) for row in found["first"]]
    headings = (
        *keys,
        *("elected", "unclean", "first", "shrunk", "offline", "never led"),
    )
    return [f"Each scenario: {listed(found, 'replay')}", *table(headings, rows)]


def told_notes(told: Told) -> list[str]:
    """What a reader should know, a paragraph each."""
    return [line for note in told["notes"] for line in wrapped(f"Note: {note}.")]


def refusals(found: Told) -> list[str]:
    """Lines about quarantined snapshots; none if there are none."""
    if not found.get("count"):
        return []
    return [f"Refused: {listed(found, 'snapshot')}", *_refused(found["first"])]


def _refused(rows: Sequence[Told]) -> Iterator[str]:
    for row in rows:
        yield f"  {_refused_one(row)}"
        for problem in row["problems"] or ():
            yield f"    - {problem}"


def refused_problems(rows: Sequence[Told]) -> Iterator[str]:
    """Every problem of quarantined snapshots, each with the place where it is."""
    for row in rows:
        for problem in row["problems"] or ():
            yield f"{_refused_one(row)}: {problem}"


def _refused_one(row: Told) -> str:
    who = "/".join(part for part in (row["cluster"], row["snapshot_id"]) if part)
    where = ", ".join(part for part in (row["source"], row["position"]) if part)
    return f"{where} ({who})" if who else where


def told_tables(told: Told) -> list[str]:
    """Where the tables are, and how many rows each has."""
    counts = ", ".join(f"{name} {cell(count)}" for name, count in told["tables"].items())
    return [
        f"Tables in {told['root']}, run={told['run_id']} (rows):",
        *("  " + line for line in wrapped(counts, WIDTH - 2)),
    ]
