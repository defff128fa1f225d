"""Every pair of brokers failing together, without replaying half a million scenarios.

Two brokers that share no partition do together what each does alone. So the counts of a pair are
those of an event that takes nobody, plus what each broker adds alone, plus a correction over
the partitions that both are in: work that follows partitions and their replicas, not pairs.

What a failure makes of one partition stands in :func:`_outcome`: the ``broker_failure`` of a
settled controller in closed form, and of a ZooKeeper-mode controller's own broker the
``controller_failover``. It depends on how many members of each list are left, so that a broker is
no more than its part in each of them, and two brokers are the sum. Who leads afterwards and what is
sent is not in it: the columns about requests and skew are null.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from understudy.controller.profiles import KRAFT
from understudy.frames import compiled_apart, small_frame, unfolded
from understudy.names import SNAPSHOT_KEY
from understudy.questions.availability import INTERNAL_TOPICS
from understudy.questions.units import PAIR
from understudy.questions.what_if.before import STATUSES
from understudy.questions.what_if.impact import judged
from understudy.schemas import IMPACT, RISKS
from understudy.snapshot import Snapshots
from understudy.sql import NO_IDS, struct, text

_INTERNAL: Final = {f"internal_{n}": topic for n, topic in enumerate(INTERNAL_TOPICS)}
_ADDED: Final = ("partitions", "unclean", "leaders_moved", *RISKS, "newly_at_min_isr", *_INTERNAL)
_COUNTS: Final = (*STATUSES, *_ADDED)
_FLAVOUR: Final = (*SNAPSHOT_KEY, "new_controller")

# An outcome is one number: each of the counts is a digit, and sums and differences of up to four
# outcomes never carry over when two are added to each digit.
_DIGIT: Final = 4  # bits
_TWO_EACH: Final = sum(2 << (_DIGIT * n) for n in range(len(_COUNTS)))
_LISTS: Final = ("isr", "kept_anew", "members", "standing", "clean", "eligible")


def impact_of_pairs(snapshots: Snapshots, partitions: DataFrame) -> DataFrame:
    """Rows of ``impact`` for every two live brokers of every snapshot, named ``pair:3,7``.

    *partitions* are those of the snapshots as they stand before.
    """
    known = snapshots.with_defaults().snapshots.selectExpr(
        *SNAPSHOT_KEY,
        "controller_id",
        f"mode != {text(KRAFT.mode)} AND controller_id IS NOT NULL AS has_controller",
        "complete",
    )
    shaped = (
        partitions.join(F.broadcast(known), on=list(SNAPSHOT_KEY), how="inner")
        .transform(_with_shape)
        .transform(compiled_apart)
        .transform(_in_flavours)
    )
    shapes = F.broadcast(_judged_shapes(shaped.select("shape").distinct()))
    changes = shaped.join(shapes, on="shape", how="inner")
    # As many rows as brokers, and joined with the pairs three times.
    alone = _summed(_alone(changes), *SNAPSHOT_KEY, "flavour", "b").transform(_in_both)
    alone = small_frame(alone.sparkSession, alone.collect(), alone.schema)
    together = _summed(_together(changes), *_FLAVOUR, "a", "b")
    live = snapshots.brokers.where("alive AND NOT coalesce(shutting_down, false)")
    return _put_together(_pairs(live, known), alone, together, _before(partitions))


# --- Partitions and the sets of their brokers that fail -----------------------------------------


def _with_shape(partitions: DataFrame) -> DataFrame:
    """``shape``: all that an outcome depends on, who the brokers are not being part of it.

    That is how long each list is, and the part of each broker in them, a bit for each. A cluster
    has many partitions and few shapes. A new controller takes every replica that is not online out
    of the ISRs (``kept_anew``). Only there do the two flavours of an event differ.
    """
    lists = {
        "isr": f"coalesce(isr, {NO_IDS})",
        "kept_anew": f"filter(coalesce(isr, {NO_IDS}), r -> array_contains(online_isr, r)"
        " OR NOT array_contains(replicas, r))",
        "members": "online_isr",
        "standing": "online_replicas",
        "clean": "filter(online_isr, r -> array_contains(online_replicas, r))",
        "eligible": "online_elr",
    }
    listed = partitions.selectExpr(
        *(*SNAPSHOT_KEY, "topic", "is_kraft", "has_controller", "controller_id", "has_state"),
        *("min_isr", "leader", "was_led", "was_acks_all_blocked", "ids"),
        "size(replicas) AS replication",
        "coalesce(unclean_allowed, false) AS may_be_unclean",
        *(f"{ids} AS {name}" for name, ids in lists.items()),
    )
    bits = " + ".join(
        f"IF(array_contains({name}, i), {1 << place}, 0)" for place, name in enumerate(_LISTS, 1)
    )
    known = ("is_kraft", "has_state", "min_isr", "was_led", "was_acks_all_blocked", "replication")
    shape = struct(
        **{name: name for name in (*known, "may_be_unclean")},
        internal=f"array_position(array({', '.join(map(text, INTERNAL_TOPICS))}), topic)",
        whole=struct(**{name: f"size({name})" for name in _LISTS}),
        parts=f"transform(ids, i -> IF(coalesce(leader = i, false), 1, 0) + {bits})",
    )
    return compiled_apart(listed).selectExpr(
        *(*SNAPSHOT_KEY, "has_controller", "controller_id", "ids", f"{shape} AS shape"),
        "IF(has_controller AND size(isr) != size(kept_anew), array(false, true), array(NULL))"
        " AS flavours",
    )


def _in_flavours(shaped: DataFrame) -> DataFrame:
    """``flavour``: whether a new controller looks; null where that makes no difference."""
    kept = ("has_controller", "controller_id", "ids")
    return shaped.selectExpr(
        *SNAPSHOT_KEY, *kept, "shape AS plain", "explode_outer(flavours) AS flavour"
    ).selectExpr(*SNAPSHOT_KEY, *kept, "flavour", "struct(plain.*, flavour) AS shape")


def _judged_shapes(shapes: DataFrame) -> DataFrame:
    """The few shapes with what each broker, and each two of them, change by failing.

    ``alone``: what nobody's failure gives comes first. ``together``: beyond what each of the two
    does; ``n`` and ``m`` are their places.
    """
    part = struct(
        leads="p & 1 = 1",
        **{name: f"shiftright(p, {place}) & 1" for place, name in enumerate(_LISTS, 1)},
    )
    nobody = struct(leads="false", **dict.fromkeys(_LISTS, "0"))
    # Everybody with nobody, nobody being the first; then everybody with everybody after them.
    pair = struct(x="x", y="y", n="n", m="IF(n = 0, m, n + m + 1)")
    later = "slice(parts, IF(n = 0, 1, n + 2), size(parts))"
    pairs = f"flatten(transform(parts, (x, n) -> transform({later}, (y, m) -> {pair})))"
    first = "get(outcomes, 0)"
    both = f"get(outcomes, p.n) + get(outcomes, p.m) - {first}"
    change = struct(n="p.n - 1", m="p.m - 1", change=f"get(outcomes, i) - ({both}) + {_TWO_EACH}L")
    return (
        shapes.selectExpr("shape", "shape.*")
        .selectExpr("*", f"concat(array({nobody}), transform(parts, p -> {part})) AS all_parts")
        .drop("parts")
        .withColumnRenamed("all_parts", "parts")
        .selectExpr("*", f"{pairs} AS pairs")
        .transform(_with_outcomes)
        .selectExpr(
            "shape",
            f"transform(slice(outcomes, 1, size(parts)), (o, n) -> o - IF(n = 0, 0L, {first})"
            f" + {_TWO_EACH}L) AS alone",
            f"filter(transform(pairs, (p, i) -> {change}), c -> c.n >= 0) AS together",
        )
    )


def _alone(changes: DataFrame) -> DataFrame:
    """What nobody's failure gives (``b`` null), and what *b* changes by itself."""
    kept = (*SNAPSHOT_KEY, "flavour")
    rows = unfolded(changes, "alone", *kept, "ids")
    return rows.selectExpr(*kept, "get(ids, place - 1) AS b", "item AS change")


def _in_both(sums: DataFrame) -> DataFrame:
    """What is so in either flavour, added to what is so in one."""
    each = "explode_outer(IF(flavour IS NULL, array(false, true), array(flavour)))"
    return (
        sums.selectExpr("*", f"{each} AS new_controller")
        .groupBy(*_FLAVOUR, "b")
        .agg(*(F.expr(f"sum({name}) AS {name}") for name in _COUNTS))
    )


def _together(changes: DataFrame) -> DataFrame:
    """What *a* and *b* change together beyond what each of them does."""
    takes_controller = "has_controller AND coalesce(controller_id IN (a, b), false)"
    kept = (*SNAPSHOT_KEY, "flavour", "has_controller", "controller_id")
    return (
        unfolded(changes, "together", *kept, "ids")
        .selectExpr(*kept, "get(ids, item.n) AS a", "get(ids, item.m) AS b", "item.change")
        .selectExpr(*kept, "a", "b", "change", f"{takes_controller} AS new_controller")
        .where("coalesce(flavour = new_controller, true)")
    )


def _with_outcomes(shapes: DataFrame) -> DataFrame:
    """``outcomes``: for each of ``pairs``, what is left when both fail, as one number.

    ZooKeeper (onBrokerFailure): a leader that is online stays, and the failed leave the ISR; else
    the first online replica in sync leads, and only those online stay in the ISR; else, where no
    member is online and it is allowed, any online replica; new partitions are tried as well.
    KRaft (handleBrokerFenced): only partitions with a failed broker in the ISR are looked at; the
    ELR leads when the ISR is empty.
    """
    left = struct(
        stays="was_led AND NOT p.x.leads AND NOT p.y.leads",
        is_seen="NOT is_kraft OR p.x.isr + p.y.isr > 0",
        touched="p.n > 0 OR p.m > 0",
        **{name: f"whole.{name} - p.x.{name} - p.y.{name}" for name in _LISTS},
    )
    in_sync = """CASE
        WHEN NOT has_state THEN nullif(l.standing, 0)
        WHEN l.stays AND NOT l.is_seen THEN whole.isr
        WHEN l.stays THEN greatest(IF(flavour, l.kept_anew, l.isr), 1)
        WHEN NOT l.is_seen THEN NULL
        WHEN l.clean > 0 THEN IF(is_kraft, l.isr, l.members)
        WHEN is_kraft AND l.isr = 0 AND l.eligible > 0 THEN 1
        WHEN may_be_unclean AND l.standing > 0 AND (is_kraft OR l.members = 0) THEN 1 END"""
    eligible = "(is_kraft AND l.isr = 0 AND l.eligible > 0)"
    is_unclean = f"has_state AND NOT l.stays AND l.is_seen AND l.clean = 0 AND NOT {eligible}"
    seen = struct(in_sync=in_sync, stays="l.stays", touched="l.touched", unclean=is_unclean)
    for name, made in (
        ("lefts", f"transform(pairs, p -> {left})"),
        ("seen", f"transform(lefts, l -> {seen})"),
        ("outcomes", f"transform(seen, o -> {_digits()})"),
    ):
        shapes = shapes.selectExpr("*", f"{made} AS {name}")
    return shapes


def _digits() -> str:
    """The same definitions as for replayed scenarios, over ``in_sync``: null is nobody leads."""
    offline = "has_state AND o.in_sync IS NULL"
    blocked = f"({offline} OR coalesce(o.in_sync < min_isr, false))"
    conditions = {
        "offline": offline,
        "under_min_isr": "o.in_sync < min_isr",
        "at_min_isr": "o.in_sync = min_isr",
        "acks_all_blocked": blocked,
        "never_led": "NOT has_state AND o.in_sync IS NULL",
        "partitions": "o.touched",
        "unclean": "o.unclean AND o.in_sync IS NOT NULL",
        "leaders_moved": "was_led AND o.in_sync IS NOT NULL AND NOT o.stays",
        "rf1_offline": f"was_led AND replication = 1 AND {offline}",
        "unavailable": f"was_led AND {offline}",
        "full_acks_produce_unavailable": f"was_led AND NOT was_acks_all_blocked AND {blocked}",
        "acks1_data_loss": "was_led AND NOT o.stays",
        "newly_at_min_isr": "was_led AND o.in_sync = min_isr AND whole.isr > min_isr",
    }
    at_risk = f"was_led AND (NOT o.stays OR {offline} OR (NOT was_acks_all_blocked AND {blocked}))"
    conditions |= {
        name: f"internal = {place} AND {at_risk}" for place, name in enumerate(_INTERNAL, 1)
    }
    places = {name: 1 << (_DIGIT * place) for place, name in enumerate(_COUNTS)}
    return " + ".join(f"IF({conditions[name]}, {places[name]}L, 0L)" for name in _COUNTS)


def _summed(changes: DataFrame, *key: str) -> DataFrame:
    """The counts; of each change there are many, so that it is taken apart once."""

    def of(place: int) -> str:
        return f"sum(times * ((shiftright(change, {_DIGIT * place}) & 15) - 2))"

    counted = changes.groupBy(*key, "change").agg(F.expr("count(1) AS times"))
    return counted.groupBy(*key).agg(
        *(F.expr(f"{of(place)} AS {name}") for place, name in enumerate(_COUNTS))
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
            "has_controller AND coalesce(controller_id IN (a, b), false) AS new_controller",
            "a",
            "b",
            f"concat({text(PAIR)}, ':', a, ',', b) AS scenario",
            "array(a, b) AS brokers",
        )
    )


def _put_together(
    pairs: DataFrame, alone: DataFrame, together: DataFrame, before: DataFrame
) -> DataFrame:
    def part(sums: DataFrame, name: str, *keys: str) -> DataFrame:
        return sums.selectExpr(
            *_FLAVOUR, *keys, *(f"{count} AS {name}_{count}" for count in _COUNTS)
        )

    def joined(count: str) -> str:
        parts = ("nobody", "one", "other", "both")
        return " + ".join(f"coalesce({each}_{count}, 0)" for each in parts)

    nobody, single = alone.where("b IS NULL"), alone.where("b IS NOT NULL")
    rows = (
        pairs.join(F.broadcast(before), on=list(SNAPSHOT_KEY), how="left")
        .join(F.broadcast(part(nobody, "nobody")), on=list(_FLAVOUR), how="left")
        .join(F.broadcast(part(single, "one", "b AS a")), on=[*_FLAVOUR, "a"], how="left")
        .join(F.broadcast(part(single, "other", "b")), on=[*_FLAVOUR, "b"], how="left")
        .join(part(together, "both", "a", "b"), on=[*_FLAVOUR, "a", "b"], how="left")
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
