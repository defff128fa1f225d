"""The four leader elections as SQL functions that Catalyst inlines.

``register(spark)`` makes them callable by name in that session, from ``spark.sql`` and from
``F.call_function``. Each returns ``STRUCT<leader, isr, clean>``, or NULL when nobody may lead.
*online* lists the brokers whose replica of this partition is online.

Spark pastes a function's arguments wherever its body names them, so pass plain columns, not long
expressions, and never call one inside a lambda.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import SparkSession

_ELECTED: Final = "STRUCT<leader: INT, isr: ARRAY<INT>, clean: BOOLEAN>"


def _elected(leader: str, isr: str, *, clean: bool) -> str:
    return (
        f"named_struct('leader', {leader}, 'isr', {isr}, 'clean', {'true' if clean else 'false'})"
    )


_FIRST_ONLINE: Final = "get(filter(replicas, r -> array_contains(online, r)), 0)"
_FIRST_IN_SYNC: Final = (
    "get(filter(replicas, r -> array_contains(isr, r) AND array_contains(online, r)), 0)"
)
_FIRST_STAYING: Final = (
    "get(filter(replicas, r -> array_contains(isr, r) AND array_contains(online, r)"
    " AND NOT array_contains(shutting_down, r)), 0)"
)
_LIVE_ISR: Final = "filter(isr, r -> array_contains(online, r))"

FUNCTIONS: Final[dict[str, tuple[str, str]]] = {
    "elect_offline_leader": (
        "replicas ARRAY<INT>, isr ARRAY<INT>, online ARRAY<INT>, unclean BOOLEAN",
        f"""CASE
            WHEN {_FIRST_IN_SYNC} IS NOT NULL
              THEN {_elected(_FIRST_IN_SYNC, _LIVE_ISR, clean=True)}
            WHEN unclean AND NOT arrays_overlap(isr, online) AND {_FIRST_ONLINE} IS NOT NULL
              THEN {_elected(_FIRST_ONLINE, f"array({_FIRST_ONLINE})", clean=False)}
            END""",
    ),
    "elect_reassigned_leader": (
        "replicas ARRAY<INT>, isr ARRAY<INT>, online ARRAY<INT>",
        f"""CASE WHEN {_FIRST_IN_SYNC} IS NOT NULL
            THEN {_elected(_FIRST_IN_SYNC, "isr", clean=True)} END""",
    ),
    "elect_preferred_leader": (
        "replicas ARRAY<INT>, isr ARRAY<INT>, online ARRAY<INT>",
        f"""CASE WHEN array_contains(isr, get(replicas, 0))
              AND array_contains(online, get(replicas, 0))
            THEN {_elected("get(replicas, 0)", "isr", clean=True)} END""",
    ),
    "elect_controlled_shutdown_leader": (
        "replicas ARRAY<INT>, isr ARRAY<INT>, online ARRAY<INT>, shutting_down ARRAY<INT>",
        f"""CASE WHEN {_FIRST_STAYING} IS NOT NULL
            THEN {
            _elected(
                _FIRST_STAYING,
                "filter(isr, r -> NOT array_contains(shutting_down, r))",
                clean=True,
            )
        } END""",
    ),
}


def register(spark: SparkSession) -> None:
    """Define the elections in *spark*'s session; doing it again changes nothing."""
    for name, (parameters, body) in FUNCTIONS.items():
        if not spark.catalog.functionExists(name):
            spark.sql(
                f"CREATE TEMPORARY FUNCTION {name}({parameters}) RETURNS {_ELECTED} RETURN {body}"
            )
