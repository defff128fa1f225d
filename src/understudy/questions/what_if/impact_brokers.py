"""The part of each broker: what it leads and follows, before and after, and what it is sent."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from understudy.controller.profiles import KRAFT
from understudy.names import SCENARIO_KEY, SNAPSHOT_KEY
from understudy.questions.what_if.before import NUMBER, STATUSES
from understudy.schemas import IMPACT_BROKERS, conform
from understudy.snapshot import Snapshots
from understudy.sql import NO_IDS, struct, text

REQUESTS: Final = ("leader_and_isr", "update_metadata", "stop_replica")
_ROLES: Final = ("leaders", "followers", "replicas", "mentions")
# A broker in a scenario, as one number: what is compared and sorted by the million.
_PART: Final = "part"
_PART_OF: Final = f"(shiftleft({NUMBER}, 32) | broker_id) AS {_PART}"


def parts(partitions: DataFrame) -> DataFrame:
    """Per snapshot and broker id that a partition names, its part in all partitions.

    One pass over the partitions. Beside ``leaders``, ``followers`` (in-sync ones of partitions that
    are led), ``replicas`` and ``mentions`` stand ``partitions`` and each of the STATUSES: counted
    at one broker of each partition, so that their sums are those of the cluster. The id is null
    where a partition names none.
    """
    return (
        partitions.selectExpr(
            *SNAPSHOT_KEY,
            "replicas",
            "isr",
            "IF(was_led, leader, NULL) AS led_by",
            *(f"was_{name} AS {name}" for name in STATUSES),
            "posexplode_outer(ids) AS (place, broker_id)",
        )
        .selectExpr(
            *SNAPSHOT_KEY,
            "broker_id",
            "coalesce(led_by = broker_id, false) AS leaders",
            "coalesce(led_by != broker_id AND array_contains(isr, broker_id), false) AS followers",
            "coalesce(array_contains(replicas, broker_id), false) AS replicas",
            "broker_id IS NOT NULL AS mentions",
            "coalesce(place, 0) = 0 AS partitions",
            *(f"{name} AND coalesce(place, 0) = 0 AS {name}" for name in STATUSES),
        )
        .groupBy(*SNAPSHOT_KEY, "broker_id")
        .agg(
            *(F.expr(f"count_if({name}) AS {name}") for name in (*_ROLES, "partitions", *STATUSES))
        )
    )


def totals(by_broker: DataFrame) -> DataFrame:
    """Per snapshot, the counts of all its partitions; *by_broker* as :func:`parts` gives them."""
    return by_broker.groupBy(*SNAPSHOT_KEY).agg(
        *(F.expr(f"sum({name}) AS {name}_before") for name in ("partitions", *STATUSES))
    )


def touched(
    partitions: DataFrame, by_broker: DataFrame, about: DataFrame, *, several: bool
) -> DataFrame:
    """Per scenario, how many partitions name one of its brokers.

    *several*: some scenarios are about more than one.
    """
    wanted = about.selectExpr(*SNAPSHOT_KEY, NUMBER, "brokers", "explode(brokers) AS broker_id")
    if not several:  # the sums per broker are at hand
        return (
            by_broker.select(*SNAPSHOT_KEY, "broker_id", "mentions")
            .join(F.broadcast(wanted), on=[*SNAPSHOT_KEY, "broker_id"], how="inner")
            .selectExpr(NUMBER, "mentions AS partitions")
        )
    return (
        partitions.selectExpr(*SNAPSHOT_KEY, "ids", "explode(ids) AS broker_id")
        .join(F.broadcast(wanted), on=[*SNAPSHOT_KEY, "broker_id"], how="inner")
        # Counted at the first of its brokers that the scenario is about.
        .where("broker_id = get(filter(ids, i -> array_contains(brokers, i)), 0)")
        .groupBy(NUMBER)
        .agg(F.expr("count(1) AS partitions"))
    )


def sent(requests: DataFrame, about: DataFrame) -> DataFrame:
    """Per scenario and broker, the requests and bytes of each type."""
    numbers = F.broadcast(about.select(*SCENARIO_KEY, NUMBER))

    def of(request: str) -> str:
        return f"request = {text(request.upper())}"

    return (
        requests.join(numbers, on=list(SCENARIO_KEY), how="inner")
        .selectExpr(_PART_OF, "request", "bytes")
        .groupBy(_PART)
        .agg(
            *(F.expr(f"count_if({of(each)}) AS {each}_requests") for each in REQUESTS),
            *(F.expr(f"sum(IF({of(each)}, bytes, 0)) AS {each}_bytes") for each in REQUESTS),
        )
    )


def impact_brokers(
    snapshots: Snapshots,
    cases: DataFrame,
    by_broker: DataFrame,
    changes: DataFrame,
    sent: DataFrame,
) -> DataFrame:
    """The table, and ``live_before`` and ``live``: whether the broker is, before and after.

    *by_broker* are their parts before and *changes* the judged partitions. A quorum controller
    sends no such requests at all, which is not the same as sending none.
    """
    listed = snapshots.brokers.selectExpr(
        *SNAPSHOT_KEY, "broker_id", "rack", "alive AND NOT coalesce(shutting_down, false) AS alive"
    )
    named = by_broker.where("broker_id IS NOT NULL").select(*SNAPSHOT_KEY, "broker_id", *_ROLES)
    all_brokers = listed.join(named, on=[*SNAPSHOT_KEY, "broker_id"], how="full").join(
        F.broadcast(snapshots.snapshots.select(*SNAPSHOT_KEY, "mode")),
        on=list(SNAPSHOT_KEY),
        how="inner",
    )
    is_kraft = f"mode = {text(KRAFT.mode)}"
    asked = cases.select(*SCENARIO_KEY, NUMBER, "gone", "back")
    was_live = "coalesce(alive, false)"
    return (
        all_brokers.join(F.broadcast(asked), on=list(SNAPSHOT_KEY), how="inner")
        .selectExpr("*", _PART_OF)
        .join(_moves(changes), on=_PART, how="left")
        .join(sent, on=_PART, how="left")
        .selectExpr(
            *(*SCENARIO_KEY, NUMBER, "broker_id"),
            "rack",
            "coalesce(leaders, 0) AS leaders_before",
            "coalesce(leaders, 0) + coalesce(more_leaders, 0) AS leaders",
            "coalesce(replicas, 0) AS replicas",
            "coalesce(followers, 0) AS followers_before",
            "coalesce(followers, 0) + coalesce(more_followers, 0) AS followers",
            *(
                f"IF({is_kraft}, NULL, coalesce({each}_{what}, 0)) AS {each}_{what}"
                for what in ("requests", "bytes")
                for each in REQUESTS
            ),
            f"{was_live} AS live_before",
            f"({was_live} OR array_contains(back, broker_id))"
            " AND NOT array_contains(gone, broker_id) AS live",
        )
    )


def table(rows: DataFrame) -> DataFrame:
    """The columns that are written."""
    return conform(rows, IMPACT_BROKERS)


def _moves(changes: DataFrame) -> DataFrame:
    """Per scenario and broker, how many partitions more or less it leads and follows."""

    def each(ids: str, leaders: int, followers: int) -> str:
        one = struct(broker_id="b", leaders=str(leaders), followers=str(followers))
        return f"transform({ids}, b -> {one})"

    led_before = f"IF(was_led, array(leader_before), {NO_IDS})"
    led = f"IF(led, array(leader), {NO_IDS})"
    followed_before = f"IF(was_led, array_except(isr_before, array(leader_before)), {NO_IDS})"
    followed = f"IF(led, array_except(isr, array(leader)), {NO_IDS})"
    moves = ", ".join(
        (
            each(f"array_except({led_before}, {led})", -1, 0),
            each(f"array_except({led}, {led_before})", 1, 0),
            each(f"array_except({followed_before}, {followed})", 0, -1),
            each(f"array_except({followed}, {followed_before})", 0, 1),
        )
    )
    return (
        changes.selectExpr(NUMBER, f"inline(concat({moves}))")
        .selectExpr(_PART_OF, "leaders", "followers")
        .groupBy(_PART)
        .agg(
            F.expr("sum(leaders) AS more_leaders"),
            F.expr("sum(followers) AS more_followers"),
        )
    )
