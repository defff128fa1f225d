"""Every pair of brokers failing together, without replaying half a million scenarios.

Two brokers that share no partition do together what each does alone. So the counts of a pair are
those of an event that takes nobody, plus what each broker adds alone, plus a correction over
the partitions that both are in: work that follows partitions and their replicas, not pairs.

What a failure makes of one partition stands in :func:`_with_outcome`: the ``broker_failure`` of a
settled controller in closed form, and of a ZooKeeper-mode controller's own broker the
``controller_failover``. Who leads afterwards and what is sent is not in it: the columns about
requests and skew are null.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from understudy.controller.profiles import KRAFT
from understudy.names import SNAPSHOT_KEY
from understudy.questions.availability import INTERNAL_TOPICS
from understudy.questions.before import STATUSES
from understudy.questions.impact import judged
from understudy.questions.units import PAIR
from understudy.schemas import IMPACT, RISKS
from understudy.snapshot import Snapshots
from understudy.sql import NO_IDS, struct, text

_INTERNAL: Final = {f"internal_{n}": topic for n, topic in enumerate(INTERNAL_TOPICS)}
_ADDED: Final = ("partitions", "unclean", "leaders_moved", *RISKS, "newly_at_min_isr", *_INTERNAL)
_COUNTS: Final = (*STATUSES, *_ADDED)
_FLAVOUR: Final = (*SNAPSHOT_KEY, "new_controller")


def impact_of_pairs(snapshots: Snapshots, partitions: DataFrame) -> DataFrame:
    """Rows of ``impact`` for every two live brokers of every snapshot, named ``pair:3,7``.

    *partitions* are those of the snapshots as they stand before.
    """
    known = snapshots.with_defaults().snapshots.selectExpr(
        *SNAPSHOT_KEY, f"mode = {text(KRAFT.mode)} AS is_kraft", "controller_id", "complete"
    )
    alone = _subsets(_facts(partitions, known))
    sums = (
        alone.transform(_with_outcome)
        .groupBy(*_FLAVOUR, "a", "b")
        .agg(*(F.expr(f"sum(sign * CAST({name} AS INT)) AS {name}") for name in _COUNTS))
    )
    live = snapshots.brokers.where("alive AND NOT coalesce(shutting_down, false)")
    return _put_together(_pairs(live, known), sums, _before(partitions))


# --- Partitions and the sets of their brokers that fail -----------------------------------------


def _facts(partitions: DataFrame, known: DataFrame) -> DataFrame:
    """What an outcome depends on."""
    return partitions.join(F.broadcast(known), on=list(SNAPSHOT_KEY), how="inner").selectExpr(
        *(*SNAPSHOT_KEY, "topic", "is_kraft", "controller_id", "has_state", "leader", "min_isr"),
        *("was_led", "was_acks_all_blocked", "online_isr", "online_replicas", "online_elr", "ids"),
        "size(replicas) AS replication",
        "coalesce(unclean_allowed, false) AS may_be_unclean",
        f"coalesce(isr, {NO_IDS}) AS isr",
        # A new controller takes every replica that is not online out of the ISRs.
        f"filter(coalesce(isr, {NO_IDS}), r -> array_contains(online_isr, r)"
        " OR NOT array_contains(replicas, r)) AS isr_of_new_controller",
    )


def _subsets(facts: DataFrame) -> DataFrame:
    """A row for each set of at most two brokers of a partition, in either flavour that occurs.

    ``a`` and ``b`` say which sum a row belongs to and ``sign`` how: what nobody's failure gives
    counts for the cluster; what *a* changes by itself for *a*; what *a* and *b* change together
    beyond what each of them does for the pair.
    """

    def row(a: str, b: str, failed: str, sign: int) -> str:
        return struct(
            a=f"CAST({a} AS INT)",
            b=f"CAST({b} AS INT)",
            failed=failed,
            sign=str(sign),
        )

    nobody = row("NULL", "NULL", NO_IDS, 1)
    single = f"array({row('i', 'NULL', 'array(i)', 1)}, {row('i', 'NULL', NO_IDS, -1)})"
    pair = ", ".join(
        (
            row("i", "j", "array(i, j)", 1),
            row("i", "j", "array(i)", -1),
            row("i", "j", "array(j)", -1),
            row("i", "j", NO_IDS, 1),
        )
    )
    singles = f"flatten(transform(ids, i -> {single}))"
    pairs = (
        "flatten(flatten(transform(ids, (i, n) ->"
        f" transform(slice(ids, n + 2, size(ids)), j -> array({pair})))))"
    )
    flavours = "IF(is_kraft OR controller_id IS NULL, array(false), array(false, true))"
    takes_controller = "coalesce(controller_id IN (a, b), false)"
    return (
        facts.selectExpr("*", f"inline(concat(array({nobody}), {singles}, {pairs}))")
        .selectExpr("*", f"explode({flavours}) AS new_controller")
        # A pair has one flavour; what one broker does is needed in both.
        .where(f"b IS NULL OR new_controller = ({takes_controller} AND NOT is_kraft)")
    )


def _with_outcome(rows: DataFrame) -> DataFrame:
    """How many are in sync with a leader once ``failed`` are gone; null where nobody leads.

    ZooKeeper (onBrokerFailure): a leader that is online stays, and the failed leave the ISR; else
    the first online replica in sync leads, and only those online stay in the ISR; else, where no
    member is online and it is allowed, any online replica; new partitions are tried as well.
    KRaft (handleBrokerFenced): only partitions with a failed broker in the ISR are looked at; the
    ELR leads when the ISR is empty.
    """

    def left(ids: str) -> str:
        return f"filter({ids}, r -> NOT array_contains(failed, r))"

    is_seen = "(NOT is_kraft OR arrays_overlap(isr, failed))"
    return (
        rows.selectExpr(
            "*",
            "was_led AND NOT array_contains(failed, leader) AS stays",
            f"{is_seen} AS is_seen",
            f"{left('online_isr')} AS members",
            f"{left('online_replicas')} AS standing",
            f"size({left('isr')}) AS recorded",
            f"size({left('isr_of_new_controller')}) AS recorded_anew",
            f"size({left('online_elr')}) > 0 AS is_eligible",
        )
        .selectExpr(
            "*",
            "arrays_overlap(members, standing) AS is_clean",
            "may_be_unclean AND size(standing) > 0 AND (is_kraft OR size(members) = 0)"
            " AS is_unclean",
        )
        .withColumn(
            "in_sync",
            F.expr("""CASE
              WHEN NOT has_state THEN nullif(size(standing), 0)
              WHEN stays AND NOT is_seen THEN size(isr)
              WHEN stays THEN greatest(IF(new_controller, recorded_anew, recorded), 1)
              WHEN NOT is_seen THEN NULL
              WHEN is_clean THEN IF(is_kraft, recorded, size(members))
              WHEN is_kraft AND recorded = 0 AND is_eligible THEN 1
              WHEN is_unclean THEN 1 END"""),
        )
        .transform(_with_counts)
    )


def _with_counts(rows: DataFrame) -> DataFrame:
    """The same definitions as for replayed scenarios, over ``in_sync``: null is nobody leads."""
    eligible = "(is_kraft AND recorded = 0 AND is_eligible)"
    return (
        rows.withColumns(
            {
                "led": F.expr("in_sync IS NOT NULL"),
                "touched": F.expr("arrays_overlap(ids, failed)"),
            }
        )
        .selectExpr(
            *SNAPSHOT_KEY,
            *("new_controller", "a", "b", "sign", "topic", "led", "was_led", "replication"),
            "was_acks_all_blocked",
            "touched AS partitions",
            "has_state AND NOT led AS offline",
            "led AND in_sync < min_isr AS under_min_isr",
            "led AND in_sync = min_isr AS at_min_isr",
            "(has_state AND NOT led) OR (led AND in_sync < min_isr) AS acks_all_blocked",
            "NOT has_state AND NOT led AS never_led",
            "was_led AND led AND NOT stays AS leaders_moved",
            f"has_state AND led AND NOT stays AND is_seen AND NOT is_clean AND NOT {eligible}"
            " AS unclean",
            "led AND in_sync = min_isr AND was_led AND size(isr) > min_isr AS newly_at_min_isr",
            "was_led AND NOT stays AS acks1_data_loss",
        )
        .withColumns(
            {
                "rf1_offline": F.expr("offline AND was_led AND replication = 1"),
                "unavailable": F.expr("offline AND was_led"),
                "full_acks_produce_unavailable": F.expr(
                    "acks_all_blocked AND was_led AND NOT was_acks_all_blocked"
                ),
            }
        )
        .withColumns(
            {
                name: F.expr(f"topic = {text(topic)} AND ({' OR '.join(RISKS)})")
                for name, topic in _INTERNAL.items()
            }
        )
    )


# --- Putting pairs together ----------------------------------------------------------------------


def _before(partitions: DataFrame) -> DataFrame:
    return partitions.groupBy(*SNAPSHOT_KEY).agg(
        F.expr("count(1) AS partitions_before"),
        *(F.expr(f"count_if(was_{name}) AS {name}_before") for name in STATUSES),
    )


def _pairs(live: DataFrame, known: DataFrame) -> DataFrame:
    ids = live.groupBy(*SNAPSHOT_KEY).agg(F.expr("array_sort(collect_set(broker_id)) AS ids"))
    return (
        known.join(F.broadcast(ids), on=list(SNAPSHOT_KEY), how="inner")
        .selectExpr("*", "posexplode(ids) AS (n, a)")
        .selectExpr("*", "explode(slice(ids, n + 2, size(ids))) AS b")
        .selectExpr(
            *SNAPSHOT_KEY,
            "complete",
            "NOT is_kraft AND coalesce(controller_id IN (a, b), false) AS new_controller",
            "a",
            "b",
            f"concat({text(PAIR)}, ':', a, ',', b) AS scenario",
            "array(a, b) AS brokers",
        )
    )


def _put_together(pairs: DataFrame, sums: DataFrame, before: DataFrame) -> DataFrame:
    def part(name: str, condition: str, *keys: str) -> DataFrame:
        return sums.where(condition).selectExpr(
            *_FLAVOUR, *keys, *(f"{count} AS {name}_{count}" for count in _COUNTS)
        )

    def joined(count: str) -> str:
        parts = ("nobody", "one", "other", "both")
        return " + ".join(f"coalesce({each}_{count}, 0)" for each in parts)

    alone = "a IS NOT NULL AND b IS NULL"
    rows = (
        pairs.join(F.broadcast(before), on=list(SNAPSHOT_KEY), how="left")
        .join(F.broadcast(part("nobody", "a IS NULL")), on=list(_FLAVOUR), how="left")
        .join(F.broadcast(part("one", alone, "a")), on=[*_FLAVOUR, "a"], how="left")
        .join(F.broadcast(part("other", alone, "a AS b")), on=[*_FLAVOUR, "b"], how="left")
        .join(part("both", "b IS NOT NULL", "a", "b"), on=[*_FLAVOUR, "a", "b"], how="left")
        .selectExpr(
            *(*SNAPSHOT_KEY, "scenario", "brokers", "complete"),
            "CAST(NULL AS BOOLEAN) AS quorum_survives",
            "CAST(NULL AS STRING) AS quorum_reason",
            *(
                f"coalesce({name}_before, 0L) AS {name}_before"
                for name in ("partitions", *STATUSES)
            ),
            *(f"{joined(count)} AS {count}" for count in _COUNTS),
        )
    )
    named = ", ".join(f"IF({name} > 0, {text(topic)}, NULL)" for name, topic in _INTERNAL.items())
    empty = {field.name: field.dataType for field in IMPACT if field.name not in rows.columns}
    unknown = {name: kind for name, kind in empty.items() if name not in ("verdict", "reason")}
    return judged(
        rows.withColumns(
            {name: F.lit(None).cast(kind) for name, kind in unknown.items()}
            | {"internal_topics": F.expr(f"array_sort(array_compact(array({named})))")}
        )
    )
