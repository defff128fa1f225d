"""How events look for leaders: the elections over touched partitions, and what is said of them."""

from __future__ import annotations

from typing import Final, NamedTuple

from understudy.controller.states import NEW_PARTITION, OFFLINE_PARTITION
from understudy.controller.words import (
    CONTROLLED_SHUTDOWN_STRATEGY,
    FIRST_IN_SYNC,
    FIRST_ONLINE_NEW,
    FIRST_ONLINE_UNCLEAN,
    INITIALIZE_STRATEGY,
    LATER_CONTROLLER,
    NO_REPLICA_ONLINE,
    NONE_STAYING_IN_SYNC,
    OFFLINE_STRATEGY,
    RECOVERED,
    RECOVERING,
    STAYING_IN_SYNC,
    STRANGER_IN_ISR,
    UNCLEAN_OFF,
)
from understudy.sql import NO_IDS, Rows, null, struct, text


class Election(NamedTuple):
    """What the tables say of partitions that were ``tried``, as SQL text."""

    from_state: str
    strategy: str
    unclean_allowed_by: str
    why: str  # null where nobody tried


# --- For partitions without an online leader ---------------------------------------------------

OFFLINE_ELECTION: Final = Election(
    from_state=f"IF(old IS NULL, {text(NEW_PARTITION)}, {text(OFFLINE_PARTITION)})",
    strategy=f"IF(old IS NULL, {text(INITIALIZE_STRATEGY)}, {text(OFFLINE_STRATEGY)})",
    unclean_allowed_by="""IF(old IS NOT NULL AND NOT superseded AND NOT member_online
        AND unclean_allowed, IF(unclean_topic IS NOT NULL, 'topic', f.unclean_level), NULL)""",
    why=f"""CASE
        WHEN NOT tried THEN NULL
        WHEN superseded THEN {text(LATER_CONTROLLER)}
        WHEN initialized THEN {text(FIRST_ONLINE_NEW)}
        WHEN elected_cleanly THEN {text(FIRST_IN_SYNC)}
        WHEN elected_cleanly IS NOT NULL THEN {text(FIRST_ONLINE_UNCLEAN)}
        WHEN size(online) = 0 THEN {text(NO_REPLICA_ONLINE)}
        WHEN member_online THEN {text(STRANGER_IN_ISR)}
        ELSE {text(UNCLEAN_OFF)} END""",
)


def with_election(known: Rows, record: str) -> Rows:
    """Try for a leader of every partition that is ``tried``, from its *record*.

    ``risen`` is the record after it, and *record* itself where nobody was ``led``;
    ``elected_cleanly`` is null where nobody was elected. One without a record is ``initialized``:
    all online replicas are in sync, and the first of them leads.
    """
    elected = "elect_offline_leader(replicas, isr_at_election, online_known, unclean_allowed)"
    isr = f"coalesce({record}.isr, {NO_IDS})"
    first = struct(
        leader="get(online, 0)",
        leader_epoch="0",
        isr="online",
        partition_epoch="0",
        controller_epoch="f.epoch",
        recovery=str(RECOVERED),
    )
    recovery = f"IF(NOT elected.clean AND f.has_recovery, {RECOVERING}, {record}.recovery)"
    return (
        known.select(
            "*",
            f"array_except(array_union(replicas, {isr}), not_online) AS online_known",
            f"{isr} AS isr_at_election",
            "coalesce(unclean_topic, f.unclean) AS unclean_allowed",
        )
        .select(
            "*",
            f"IF(tried AND old IS NOT NULL AND NOT superseded, {elected}, NULL) AS elected",
            "tried AND old IS NULL AND size(online) > 0 AS initialized",
        )
        .select(
            "*",
            f"CASE WHEN initialized THEN {first}"
            f" WHEN elected IS NOT NULL THEN {_after_election(record, recovery)}"
            f" ELSE {record} END AS risen",
            "initialized OR elected IS NOT NULL AS led",
            "elected.clean AS elected_cleanly",
            "arrays_overlap(isr_at_election, online_known) AS member_online",
        )
        .drop("not_online", "elected", "isr_at_election", "online_known")
    )


def _after_election(record: str, recovery: str) -> str:
    return struct(
        leader="elected.leader",
        leader_epoch=f"{record}.leader_epoch + 1",
        isr="elected.isr",
        partition_epoch=f"{record}.partition_epoch + 1",
        controller_epoch="f.epoch",
        recovery=recovery,
    )


# --- For partitions whose leader is shutting down ----------------------------------------------

SHUTDOWN_ELECTION: Final = Election(
    from_state="state_before",
    strategy=text(CONTROLLED_SHUTDOWN_STRATEGY),
    unclean_allowed_by=null("STRING"),
    why=f"""CASE
        WHEN NOT tried THEN NULL
        WHEN superseded THEN {text(LATER_CONTROLLER)}
        WHEN led THEN {text(STAYING_IN_SYNC)}
        ELSE {text(NONE_STAYING_IN_SYNC)} END""",
)


def with_shutdown_election(known: Rows) -> Rows:
    """Move leadership to somebody who stays, for every partition that is ``tried``.

    ``online_or_leaving`` counts the brokers that are shutting down as online.
    """
    elected = "elect_controlled_shutdown_leader(replicas, old.isr, online_or_leaving, leaving)"
    return (
        known.select(
            "*",
            f"IF(tried AND NOT superseded, {elected}, NULL) AS elected",
            "false AS initialized",
        )
        .select(
            "*",
            f"IF(elected IS NULL, old, {_after_election('old', 'old.recovery')}) AS risen",
            "elected IS NOT NULL AS led",
            "elected.clean AS elected_cleanly",
        )
        .drop("elected")
    )
