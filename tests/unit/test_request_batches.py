"""One batch of control requests by itself, where no event leads."""

from __future__ import annotations

import pytest

from understudy.controller import releases
from understudy.controller.journal import Journal
from understudy.controller.records import Assignment, LeaderAndIsr
from understudy.controller.words import LEADER_AND_ISR, STOP_REPLICA, UPDATE_METADATA
from understudy.controller.zk.context import Broker, ControllerContext
from understudy.controller.zk.request_batch import RequestBatch

A, B = ("a", 0), ("b", 0)
RECORD = LeaderAndIsr(1, 4, (1, 2), 10, 1, 0)
NEWEST = releases.level("3.9")


def context(protocol: int = NEWEST) -> ControllerContext:
    known = ControllerContext(
        release=NEWEST,
        protocol=protocol,
        controller_id=1,
        epoch=5,
        live={broker: Broker(broker, 100 + broker) for broker in (1, 2)},
        assignments={tp: Assignment((1, 2)) for tp in (A, B)},
    )
    known.leadership.update(dict.fromkeys((A, B), RECORD))
    return known


def sent(journal: Journal) -> list[tuple[str, int]]:
    """(request, broker), in order."""
    return [(row[3], row[4]) for row in journal.requests]


def test_e33_nothing_of_a_batch_that_was_not_sent_is_left_to_the_next() -> None:
    """Kafka keeps it, and its machine is stuck; in a replay no request fails to be sent."""
    known, journal = context(), Journal()
    lost = RequestBatch(known, journal)
    lost.add_leader_and_isr([1, 2], A, RECORD, is_new=True)
    lost.add_stop_replica([2], A, delete=True)
    batch = RequestBatch(known, journal)
    batch.add_leader_and_isr([1], B, RECORD, is_new=False)
    batch.send()
    told_to_all = [(UPDATE_METADATA, broker) for broker in (1, 2)]
    assert sent(journal) == [(LEADER_AND_ISR, 1), *told_to_all]
    assert {row[4] for row in journal.request_partitions} == {"b"}


@pytest.mark.parametrize(
    ("protocol", "requests"),
    [("2.5", [(2, 1), (2, 1)]), ("2.6", [(2, 2)])],
)
def test_until_protocol_2_6_a_request_either_stops_or_deletes(
    protocol: str, requests: list[tuple[int, int]]
) -> None:
    """(broker, partitions) of each stop request."""
    journal = Journal()
    batch = RequestBatch(context(releases.level(protocol)), journal)
    batch.add_stop_replica([2], A, delete=False)
    batch.add_stop_replica([2], B, delete=True)
    batch.send()
    stops = [row for row in journal.requests if row[3] == STOP_REPLICA]
    assert [(row[4], row[9]) for row in stops] == requests
