"""One row per scenario: counts before and after, what gets worse, and a verdict."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from understudy.names import SCENARIO_KEY, SNAPSHOT_KEY
from understudy.questions.what_if.before import NUMBER, STATUSES
from understudy.schemas import IMPACT, RISKS, conform
from understudy.sql import text

SAFE: Final = "safe"
WARNINGS: Final = "warnings"
UNSAFE: Final = "unsafe"
CANNOT_DECIDE: Final = "cannot-decide"
WORST_FIRST: Final = (UNSAFE, CANNOT_DECIDE, WARNINGS, SAFE)

INCOMPLETE: Final = "the snapshot does not say everything, so nothing can be called safe"
_REFERRED: Final = (*STATUSES, *RISKS, "unclean", "leaders_moved", "verdict")
ADDED: Final = ("unclean", "leaders_moved", *RISKS, "newly_at_min_isr")


def summed(changes: DataFrame) -> DataFrame:
    """Per scenario, what its changed partitions add to the counts of the snapshot."""
    more = (
        f"sum(CAST({name} AS INT) - CAST(was_{name} AS INT)) AS more_{name}" for name in STATUSES
    )
    return changes.groupBy(NUMBER).agg(
        *map(F.expr, more),
        *(F.expr(f"count_if(array_contains(risks, {text(risk)})) AS {risk}") for risk in RISKS),
        *(
            F.expr(f"count_if({name}) AS {name}")
            for name in ("unclean", "leaders_moved", "newly_at_min_isr")
        ),
        F.expr(
            "array_sort(collect_set(IF(is_internal AND size(risks) > 0, topic, NULL)))"
            " AS internal_topics"
        ),
    )


def brokers_summed(brokers: DataFrame) -> DataFrame:
    """Per scenario, how uneven the load is, and who is sent the most.

    Skew is that of the broker with the most over the mean of the live ones: 1 is even.
    """

    def skew(count: str, live: str) -> str:
        of = f"FILTER (WHERE {live})"
        return f"try_divide(max({count}) {of}, avg({count}) {of})"

    requests = "leader_and_isr_requests + update_metadata_requests + stop_replica_requests"
    sent = "leader_and_isr_bytes + update_metadata_bytes + stop_replica_bytes"
    # Of several that are sent as much, the one with the smallest id.
    busiest = f"IF({sent} > 0, struct({sent}, -broker_id AS id), NULL)"
    return (
        brokers.groupBy(NUMBER)
        .agg(
            F.expr(f"{skew('leaders_before', 'live_before')} AS leader_skew_before"),
            F.expr(f"{skew('leaders', 'live')} AS leader_skew"),
            F.expr(f"{skew('replicas', 'live_before')} AS replica_skew_before"),
            F.expr(f"{skew('replicas', 'live')} AS replica_skew"),
            F.expr(f"sum({requests}) AS requests"),
            F.expr(f"max({busiest}) AS busiest"),
        )
        .selectExpr("*", "-busiest.id AS busiest_broker", "busiest.col1 AS busiest_bytes")
    )


def impact(
    cases: DataFrame,
    totals: DataFrame,
    touched: DataFrame,
    changed: DataFrame,
    brokers: DataFrame,
) -> DataFrame:
    """The table. *changed* and *brokers* are summed; *touched* counts partitions."""
    rows = (
        cases.join(F.broadcast(totals), on=list(SNAPSHOT_KEY), how="left")
        .join(touched, on=NUMBER, how="left")
        .join(changed, on=NUMBER, how="left")
        .join(brokers, on=NUMBER, how="left")
    )
    return judged(
        # A scenario that changes nothing, and a snapshot without partitions, have no sums.
        rows.fillna(
            0,
            ["partitions", "partitions_before", *ADDED]
            + [name for each in STATUSES for name in (f"{each}_before", f"more_{each}")],
        )
        .withColumns({each: F.expr(f"{each}_before + more_{each}") for each in STATUSES})
        .withColumn("internal_topics", F.expr("coalesce(internal_topics, array())"))
    )


def judged(rows: DataFrame) -> DataFrame:
    """The rows of impact with their verdict and the reason for it.

    They carry ``complete``, and ``quorum_survives`` and ``quorum_reason`` where voters fail.
    """
    verdict = f"""CASE
        WHEN NOT coalesce(complete, true) THEN {text(CANNOT_DECIDE)}
        WHEN unavailable > 0 OR full_acks_produce_unavailable > 0 OR coalesce(unclean, 0) > 0
          OR NOT coalesce(quorum_survives, true) THEN {text(UNSAFE)}
        WHEN quorum_reason IS NOT NULL AND quorum_survives IS NULL THEN {text(CANNOT_DECIDE)}
        WHEN newly_at_min_isr > 0 THEN {text(WARNINGS)}
        ELSE {text(SAFE)} END"""
    return conform(
        rows.withColumn("verdict", F.expr(verdict)).withColumn("reason", F.expr(_reason())), IMPACT
    )


def _reason() -> str:
    def said(count: str, one: str, many: str) -> str:
        told = f"concat({count}, IF({count} = 1, {text(one)}, {text(many)}))"
        return f"IF({count} > 0, {told}, NULL)"

    internal = "concat('internal: ', array_join(internal_topics, ', '))"
    found_again = "(offline_before - offline)"
    parts = (
        f"IF(coalesce(complete, true), NULL, {text(INCOMPLETE)})",
        said("unavailable", " partition loses its leader", " partitions lose their leader"),
        said(
            "full_acks_produce_unavailable",
            " partition refuses acks=all",
            " partitions refuse acks=all",
        ),
        said("unclean", " is led out of sync", " are led out of sync"),
        said("newly_at_min_isr", " has no replica left to spare", " have no replica left to spare"),
        said(found_again, " partition is led again", " partitions are led again"),
        "quorum_reason",
        f"IF(size(internal_topics) > 0, {internal}, NULL)",
    )
    return f"nullif(concat_ws('; ', {', '.join(parts)}), '')"


def with_reference(answer: DataFrame, reference: DataFrame) -> DataFrame:
    """The impact with that of the same scenarios elsewhere beside it, as ``reference_*``."""
    other = reference.selectExpr(*SCENARIO_KEY, *(f"{n} AS reference_{n}" for n in _REFERRED))
    return answer.join(other, on=list(SCENARIO_KEY), how="left")
