"""The plain reading of a failure, which other tests rest on, is what the controller does."""

from __future__ import annotations

from random import Random

import pytest

from failing_clusters import Fate, Judge, failing_cluster, failure, replayed, subsets


@pytest.mark.parametrize("seed", range(80))
def test_the_plain_reading_is_what_the_controller_does(seed: int) -> None:
    doc = failing_cluster(Random(seed), "c")
    judge = Judge(doc)
    for failed in subsets(judge.registered):
        after = replayed(doc, failure(failed))
        for tp, (topic, partition) in judge.partitions.items():
            if judge.before(tp).offline:
                continue
            leader, isr, _ = after[tp]
            offline = leader not in judge.online(partition) - set(failed)
            blocked = offline or len(isr) < judge.min_isr(topic)
            assert judge.after(tp, failed) == Fate(offline, blocked), (doc, tp, failed)
