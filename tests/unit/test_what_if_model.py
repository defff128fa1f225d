"""The second opinion on failures agrees with the controllers, partition by partition.

Spark's answers are held to the opinion elsewhere; a mistake in either would show here or there.
"""

from __future__ import annotations

from itertools import combinations
from random import Random

import pytest

import failure_model as model
from clusters import Document, rows_of
from understudy.controller.profiles import KRAFT, ZK
from understudy.schemas import PARTITION_STATES

CLUSTERS = 100
_AT = {name: place for place, name in enumerate(PARTITION_STATES.names[3:])}


@pytest.mark.parametrize("seed", range(2))
def test_every_failure_of_up_to_two_brokers(seed: int) -> None:
    rng = Random(seed)
    for number in range(CLUSTERS):
        doc = model.random_cluster(rng, f"c{number}")
        live = sorted(model.live_brokers(doc))
        for failed in (*combinations(live, 1), *combinations(live, 2)):
            replayed = _replayed(doc, list(failed))
            for _, after in model.fail(doc, failed):
                leader, isr, outcome = replayed[after.topic, after.number]
                assert (leader in (None, -1) or leader in failed) == (
                    after.leader in (None, -1) or after.leader in failed
                ), (doc, failed, after)
                if after.leader is not None and after.leader in set(live) - set(failed):
                    assert (leader, sorted(isr)) == (after.leader, sorted(after.isr)), (doc, failed)
                assert (outcome == "elected_unclean") == after.elected_unclean, (doc, failed, after)


def _replayed(
    doc: Document, failed: list[int]
) -> dict[tuple[str, int], tuple[int | None, tuple[int, ...], str]]:
    profile = KRAFT if doc["mode"] == "kraft" else ZK
    takes_controller = profile is ZK and doc["controller"]["id"] in failed
    event = (
        {"type": "controller_failover", "dead": failed}
        if takes_controller
        else {"type": "broker_failure", "brokers": failed}
    )
    states = profile.replay(rows_of(doc), [event])["partition_states"]
    return {
        (row[0], row[1]): (row[_AT["leader"]], row[_AT["isr"]] or (), row[_AT["outcome"]])
        for row in states
    }
