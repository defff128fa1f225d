"""What happened to topics and partitions between two snapshots, as facts."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame

from understudy.controller.native.sql import NO_IDS, null
from understudy.questions.history_facts import (
    BEFORE_FAILOVER,
    Place,
    fact,
    ids,
    listing,
    of_broker,
    stated,
    when,
)

_NAME: Final = "concat(topic, '-', partition)"
_QUOTED: Final = f"""concat('"', {_NAME}, '"')"""
_OF_PARTITION: Final = {"topic": "topic", "nth": "partition"}


def topic_facts(topic_changes: DataFrame) -> DataFrame:
    return stated(
        topic_changes,
        when(
            "before IS NOT NULL AND NOT was_queued"
            " AND (after IS NULL OR is_recreated OR is_queued)",
            fact(
                "delete_topics",
                Place.DELETION,
                **listing("delete_topics", "topics"),
                item="""concat('"', topic, '"')""",
                topic="topic",
                said="concat('topic ', topic, ' was there and is ', CASE"
                " WHEN after IS NULL THEN 'gone'"
                " WHEN is_recreated THEN 'another one with a new id'"
                " ELSE 'queued for deletion' END)",
            ),
        ),
    )


def partition_facts(changed: DataFrame) -> DataFrame:
    return stated(
        changed,
        *_creations(),
        _deletion_answers(),
        *_reassignments(),
        *_departures(),
        *_lingering(),
        *_before_the_failover(),
        _order_of_failures(),
        _assignments(),
        _isr_changes(),
        *_elections(),
    )


def _creations() -> tuple[str, str]:
    place = f"""CASE
        WHEN place_shift < 0 THEN {Place.CREATION + BEFORE_FAILOVER}
        WHEN elections > 0 AND arrays_overlap(after.replicas, concat(gone, bounced))
            THEN {Place.CREATION + BEFORE_FAILOVER}
        WHEN is_recreated OR (by_leaders <= 0 AND arrays_overlap(isr, started))
            THEN {int(Place.LATE_CREATION)}
        ELSE {int(Place.CREATION)} END"""
    said = f"concat({_NAME}, ' was not there and has replicas ', {ids('after.replicas')})"
    # What is being added was not there when the partition was made.
    first = f"filter(after.replicas, r -> NOT array_contains(coalesce(after.adding, {NO_IDS}), r))"
    made = {
        "item": f"""concat('"', partition, '": ', {ids(first)})""",
        "said": said,
        **_OF_PARTITION,
    }
    return (
        when(
            "is_new AND is_new_topic",
            fact(
                "topic_change",
                place,
                head="""concat('{"topics": {"', topic, '": {')""",
                tail="""'}}, "type": "topic_change"}'""",
                **made,
            ),
        ),
        when(
            "is_new AND NOT is_new_topic",
            fact(
                "partition_change",
                place,
                head="""'{"partitions": {'""",
                tail="""concat('}, "topic": "', topic, '", "type": "partition_change"}')""",
                **made,
            ),
        ),
    )


def _deletion_answers() -> str:
    answer = fact(
        "stop_replica_response",
        Place.DELETION_ANSWER,
        **of_broker("stop_replica_response", "r"),
        rank="r",
        item=_QUOTED,
        said=f"concat({_NAME}, ' had a replica on broker ', r, ' and is gone')",
        **_OF_PARTITION,
    )
    return _for_each("IF(after IS NULL AND NOT is_kraft, before.replicas, NULL)", answer)


def _reassignments() -> tuple[str, str]:
    was = "concat({}, IF(was_pending, concat(' on the way to ', {}), ''))".format(
        ids("before.replicas"), ids("old_target")
    )
    now = "concat({}, IF(is_pending, concat(' on the way to ', {}), ''))".format(
        ids("after.replicas"), ids("target")
    )
    said = (
        f"concat({_NAME}, ' had replicas ', {was}, ' and has ', {now},"
        " IF(is_repeated, ', and the controller wrote its record anew as it was', ''))"
    )
    return (
        when(
            "is_reassigned OR is_repeated",
            fact(
                "reassign",
                f"{int(Place.REASSIGNMENT)} + place_shift",
                **listing("reassign", "partitions", "{", "}"),
                item=f"concat({_QUOTED}, ': ', {ids('target')})",
                said=said,
                **_OF_PARTITION,
            ),
        ),
        when(
            "is_cancelled",
            fact(
                "cancel_reassignment",
                f"{int(Place.CANCELLATION)} + place_shift",
                **listing("cancel_reassignment", "partitions"),
                item=_QUOTED,
                said=said,
                **_OF_PARTITION,
            ),
        ),
    )


def _departures() -> tuple[str, str]:
    """Brokers the controller took out of ISRs although they never went away."""
    taken_out = (
        f"concat({_NAME}, ' had ISR ', {ids('old_isr')}, ' and has ', {ids('isr')},"
        " IF(array_contains(failed_dirs, r), concat(', and its log directory on broker ', r,"
        " ' is offline'), concat(', by the controller, though broker ', r, ' never went away')))"
    )
    dir_failure = fact(
        "log_dir_failure",
        f"{int(Place.LOG_DIR)} + place_shift",
        **of_broker("log_dir_failure", "r"),
        rank="r",
        item=_QUOTED,
        said=taken_out,
        **_OF_PARTITION,
    )
    shutdown = _shutdown(
        f"{int(Place.SHUTDOWN)} + place_shift",
        "concat('the controller took broker ', r, ' out of every ISR with other members, though"
        " it never went away')",
    )
    return (
        _for_each("IF(is_kraft, NULL, dirless)", dir_failure),
        _for_each("IF(is_kraft, NULL, departed)", shutdown),
    )


def _before_the_failover() -> tuple[str, str]:
    """Brokers that are gone, and whose partitions the controller before still moved.

    Nobody outlives the own failure, so where that was the controller itself it had shut down.
    """
    moved = (
        "place_shift < 0 AND is_kept AND elections > 0 AND leader <> old_leader"
        " AND array_contains(concat(gone, bounced), old_leader)"
    )
    itself = "coalesce(old_leader = old_controller_id, false)"
    said = (
        "concat('broker ', old_leader, ' was alive and is gone or registered anew, and the"
        " controller of epoch ', old_controller_epoch, ' still moved what it led')"
    )
    failure = fact(
        "broker_failure",
        f"{int(Place.FAILURE)} + place_shift",
        **listing("broker_failure", "brokers"),
        item="CAST(old_leader AS STRING)",
        nth="old_leader",
        said=said,
    )
    shutdown = _shutdown(f"{int(Place.SHUTDOWN)} + place_shift", said, "old_leader")
    return when(f"{moved} AND NOT {itself}", failure), when(f"{moved} AND {itself}", shutdown)


def _order_of_failures() -> str:
    """The quorum fences one broker after the other, and leader epochs tell which came first.

    When a leader is gone and so is the first who could follow it, a leader epoch that rose twice
    says that the follower led for a while.
    """
    heir = "get(filter(before.replicas, r -> r <> old_leader AND array_contains(old_isr, r)), 0)"
    follows = "IF(elections > 1, 1, -1)"

    def vote(broker: str, weight: str) -> str:
        return fact(
            "broker_failure",
            Place.FAILURE,
            **listing("broker_failure", "brokers"),
            item=f"CAST({broker} AS STRING)",
            weight=weight,
            said=null("STRING"),
        )

    return when(
        "is_kraft AND is_kept AND elections > 0 AND array_contains(gone, old_leader)"
        f" AND array_contains(gone, {heir})",
        vote(heir, follows),
        vote("old_leader", f"-{follows}"),
    )


def _assignments() -> str:
    assignment = fact(
        "assign_dirs",
        Place.DIR_ASSIGNMENT,
        head="""concat('{"broker": ', d.replicas, ', "partitions": {')""",
        tail="""'}, "type": "assign_dirs"}'""",
        rank="d.replicas",
        item=f"""concat({_QUOTED}, ': "', d.directories, '"')""",
        said=f"concat('the replica of ', {_NAME}, ' on broker ', d.replicas, ' is now in directory"
        " ', d.directories)",
        **_OF_PARTITION,
    )
    return f"transform(assigned, d -> {assignment})"


def _isr_changes() -> str:
    # Of a broker that is gone, leaders were faster than the controller.
    place = f"""IF(n = 0 AND elections = 0
        AND arrays_overlap(filter(old_isr, m -> NOT array_contains(r, m)), concat(gone, bounced)),
        {int(Place.ISR_BEFORE_FAILURE)}, {int(Place.ISR)}) + place_shift"""
    return f"transform(reports, (r, n) -> {_report(place, 'r', 'n')})"


def _report(place: str, isr: str, rank: str) -> str:
    by_leaders = "IF(by_leaders = 1, ' change', ' changes'), ' by leaders'"
    return fact(
        "isr_change",
        place,
        head=f"""concat('{{"isr": ', {ids(isr)}, ', "partition": ', {_QUOTED},
            ', "type": "isr_change"}}')""",
        rank=rank,
        said=f"concat({_NAME}, ' had ISR ', {ids('old_isr')}, ' and has ', {ids('isr')},"
        f" coalesce(concat(', after ', by_leaders, {by_leaders}), ''))",
        **_OF_PARTITION,
    )


def _lingering() -> tuple[str, str]:
    """Brokers that fetched on after their controlled shutdown, and were taken out twice."""
    shutdown = _shutdown(
        Place.SHUTDOWN_BEFORE_FAILURE,
        "concat('the controller took broker ', r, ' out of ISRs twice before it was gone, and"
        " leaders let it in between')",
    )
    rejoined = "concat(filter(old_isr, r -> NOT array_contains(rejoined, r)), rejoined)"
    return (
        _for_each("rejoined", shutdown),
        when("size(rejoined) = 1", _report(str(int(Place.ISR_BEFORE_FAILURE)), rejoined, "0")),
    )


def _shutdown(place: Place | str, said: str, broker: str = "r") -> str:
    return fact(
        "controlled_shutdown",
        place,
        head=f"""concat('{{"broker": ', {broker}, ', "type": "controlled_shutdown"}}')""",
        rank=f"2L * {broker}",
        said=said,
    )


def _elections() -> tuple[str, str]:
    led = (
        f"concat({_NAME}, ' was led by ', old_leader, ' with ISR ', {ids('old_isr')},"
        " ' and leader epoch ', coalesce(before.leader_epoch, 'unknown'),"
        " ', and is led by ', leader, ' with leader epoch ', after.leader_epoch, {})"
    )
    return (
        when(
            "is_preferred",
            fact(
                "preferred_election",
                f"{int(Place.PREFERRED_ELECTION)} + place_shift",
                **listing("preferred_election", "partitions"),
                item=_QUOTED,
                said=led.format("concat(', its first replica, though ', heir, ' could lead')"),
                **_OF_PARTITION,
            ),
        ),
        when(
            "is_unclean_election",
            fact(
                "unclean_election",
                f"{int(Place.UNCLEAN_ELECTION)} + place_shift",
                **listing("unclean_election", "partitions"),
                item=_QUOTED,
                said=led.format("', which was not in sync'"),
                **_OF_PARTITION,
            ),
        ),
    )


def _for_each(brokers: str, fact_of_r: str) -> str:
    return f"transform(coalesce({brokers}, {NO_IDS}), r -> {fact_of_r})"
