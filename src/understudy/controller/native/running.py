"""Clusters and partitions as running controllers hold them while no event is in progress.

An event touches the partitions of the brokers it strikes. Those in trouble, without a record or
with a leader that is not online, count as touched too: Kafka tries them again whenever a broker
comes or goes. Partitions are found by their brokers, so that the work follows what is touched, not
scenarios times partitions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from understudy.controller.native.clusters import (
    LEADS_ANYHOW,
    MENTIONED_IDS,
    Role,
    TopicExceptions,
    about_cluster,
    ids_of,
)
from understudy.controller.native.decided import replica_state
from understudy.controller.states import (
    NEW_PARTITION,
    OFFLINE_PARTITION,
    OFFLINE_REPLICA,
    ONLINE_PARTITION,
)
from understudy.names import SCENARIO_KEY, SNAPSHOT_KEY, TOPIC_KEY
from understudy.schemas import PARTITIONS
from understudy.sql import Rows, text

# The state of ``replica`` before the event, and after it if all it can do is to go offline.
REPLICA_BEFORE: Final = replica_state("online_before")
REPLICA_AFTER: Final = (
    f"IF(array_contains(removed, replica) AND NOT superseded,"
    f" {text(OFFLINE_REPLICA)}, {REPLICA_BEFORE})"
)

_IN_TROUBLE: Final = f"state_before != {text(ONLINE_PARTITION)}"
_NOBODY: Final = "array(CAST(NULL AS INT))"  # in place of the brokers of those in trouble
_HOST_KEY: Final = "xxhash64(cluster_number, host)"


def settled_clusters(clusters: Rows) -> Rows:
    """One row per snapshot.

    ``not_live`` and ``unreachable`` (not even shutting down) list ids that partitions mention;
    ``leaderless`` and ``never_led`` say whether there are partitions to be tried again.
    """
    is_leaderless = f"""m.id IS NOT NULL AND {LEADS_ANYHOW.of("m")}
        AND (array_contains(not_live, m.id) OR {Role.LEADS_DIR.of("m")})"""
    staying = ids_of("filter(registered, b -> NOT b.shutting_down)")
    return clusters.select(
        "*",
        "controller_epoch AS epoch",
        f"array_except({MENTIONED_IDS}, {ids_of('registered')}) AS unreachable",
        f"array_except({MENTIONED_IDS}, {staying}) AS not_live",
    ).select(
        "*",
        f"exists(mentioned, m -> {is_leaderless}) AS leaderless",
        f"exists(mentioned, m -> m.id IS NULL AND {LEADS_ANYHOW.of('m')}) AS never_led",
    )


def settled_partitions(partitions: Rows, clusters: Rows, exceptions: TopicExceptions) -> Rows:
    """Partitions with their state, and the brokers that can touch them."""
    marked, queued = exceptions.find_queued(partitions)
    about = clusters.select("cluster_number", "queued_topics", "not_live", "unreachable")
    state = f"""CASE
        WHEN NOT has_state THEN {text(NEW_PARTITION)}
        WHEN array_contains(not_live, leader) OR array_contains(offline_dirs, leader)
          THEN {text(OFFLINE_PARTITION)}
        ELSE {text(ONLINE_PARTITION)} END"""
    return (
        about_cluster(marked, about)
        .join(exceptions.overrides, TOPIC_KEY, "LEFT")
        .select(
            *PARTITIONS.names,
            "unclean_topic",
            "cluster_number",
            "not_live AS not_live_before",
            "unreachable AS unreachable_before",
            f"{queued} AS queued",
            f"{state} AS state_before",
            "array_except(replicas, array_union(not_live, offline_dirs)) AS online_before",
            "array_union(replicas, array(leader)) AS hosts",
        )
    )


class Liveness(NamedTuple):
    """What an event makes of the ids that are not live, unreachable, or on offline directories.

    As SQL text, over what they were before and the facts of the scenario.
    """

    not_live: str
    unreachable: str
    offline_dirs: str


# The struck are not live any more, and those of them that are ``gone`` cannot be reached either.
AFTER_LOSS: Final = Liveness(
    not_live="concat(not_live_before, struck)",
    unreachable="concat(unreachable_before, gone)",
    offline_dirs="offline_dirs",
)
# The struck are back, with all of their directories as far as the controller knows.
AFTER_RETURN: Final = Liveness(
    not_live="array_except(not_live_before, struck)",
    unreachable="array_except(unreachable_before, struck)",
    offline_dirs="array_except(offline_dirs, struck)",
)


def touched_partitions(
    settled: Rows, facts: Rows, after: Liveness, *, carried: Sequence[str]
) -> Rows:
    """A row for each scenario and partition it touches.

    Of each scenario, *facts* say which brokers are ``struck``, and what is *carried* along.
    """
    about = tuple(dict.fromkeys(("scenario", "struck", "gone", *carried, "f")))
    striking = facts.select(
        *about, "f.cluster_number", f"explode(concat(struck, {_NOBODY})) AS host"
    ).select(*about, f"{_HOST_KEY} AS host_key")
    return (
        settled.select("*", f"explode(IF({_IN_TROUBLE}, {_NOBODY}, hosts)) AS host")
        .select("*", f"{_HOST_KEY} AS host_key")
        .join(striking, ("host_key",), broadcast=True)
        # One that several brokers have found is taken once.
        .where(f"{_IN_TROUBLE} OR host = get(array_intersect(hosts, struck), 0)")
        .select(
            *SCENARIO_KEY,
            *(name for name in PARTITIONS.names if name not in {*SNAPSHOT_KEY, *after._fields}),
            *("unclean_topic", "queued", "state_before", "online_before"),
            *(f"{value} AS {name}" for name, value in after._asdict().items()),
            *carried,
            "f",
        )
        .compiled_apart()  # what decides them is long, and finding them has to be compiled
    )


def untouched_partitions(settled: Rows, facts: Rows) -> Rows:
    """A row for each scenario and partition it does not touch."""
    striking = facts.select(*SCENARIO_KEY, "struck")
    return settled.join(striking, SNAPSHOT_KEY, broadcast=True).where(
        f"NOT ({_IN_TROUBLE}) AND NOT arrays_overlap(hosts, struck)"
    )
