"""From history to events: what led from one snapshot of a cluster to the next.

The events are those its controller must have met, in the words of a scenario, so that a replay of
the earlier snapshot with them can be held against the later one. Order is not recorded; it is the
one that explains most (:class:`~understudy.questions.history_facts.Place`).
"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from understudy import schemas
from understudy.questions import history_brokers as of_brokers
from understudy.questions import history_partition_facts as facts_of_partitions
from understudy.questions import history_partitions as of_partitions
from understudy.questions.history_facts import gathered
from understudy.questions.history_steps import STEP_KEY, numbered
from understudy.snapshot import Snapshots


def events(snapshots: Snapshots) -> DataFrame:
    """The table ``events``: one row per event between two successive snapshots of a cluster."""
    numbers = numbered(snapshots.snapshots)
    brokers = of_brokers.broker_steps(snapshots.brokers, snapshots.partitions, numbers)
    known = of_brokers.intervals(brokers, snapshots.configs, numbers)
    topics = of_partitions.topic_steps(snapshots.topics, numbers)
    partitions = of_partitions.partition_changes(
        snapshots.partitions, topics, snapshots.configs, known, numbers
    )
    facts = (
        of_brokers.failover_facts(known),
        of_brokers.broker_facts(brokers, known),
        of_brokers.setting_facts(snapshots.configs, topics, numbers),
        facts_of_partitions.topic_facts(topics),
        facts_of_partitions.partition_facts(partitions),
    )
    found = gathered(reduce(DataFrame.unionByName, facts))
    named = found.join(F.broadcast(numbers.select(*STEP_KEY, "snapshot_id")), list(STEP_KEY))
    return schemas.conform(named, schemas.EVENTS)
