"""The story of one partition: what it is, what made it so, and what one failure would make of it.

Frames in, frames out, each as small as the story. A failure does to a partition what it does
whatever other topics there are, so what comes next is replayed over its topic alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from understudy import replay as replaying
from understudy.controller.records import TopicPartition, named_partition
from understudy.errors import UsageError
from understudy.names import SNAPSHOT_KEY
from understudy.questions import availability
from understudy.questions.history.answer import History
from understudy.questions.history.order import NEWEST
from understudy.questions.known_clusters import known_clusters
from understudy.questions.units import BROKER, Unit
from understudy.questions.what_if import failures
from understudy.replay import Replay
from understudy.scenarios import partition_name
from understudy.schemas import TIMESTAMP
from understudy.snapshot import Snapshots
from understudy.sources.document import Problems
from understudy.sql import struct

INSTANT: Final = "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'"
_OF_PARTITIONS: Final = ("changes", "decisions", "divergences")
_TAKEN_AT: Final = f'date_format(taken_at, "{INSTANT}") AS taken_at'


def parse(written: str) -> TopicPartition:
    """``orders-17``; the last dash splits."""
    problems = Problems()
    partition_name(written, (), problems)
    if problems.all():
        raise UsageError(f"{written!r} is not a partition such as orders-0")
    return named_partition(written)


def of_partition(table: DataFrame, subject: TopicPartition) -> DataFrame:
    topic, partition = subject
    return table.where((F.col("topic") == topic) & (F.col("partition") == partition))


def with_times_as_text(table: DataFrame) -> DataFrame:
    """Collected as they are, times would turn into the local time of this machine."""
    times = [field.name for field in table.schema if field.dataType == TIMESTAMP]
    texts = {name: F.date_format(name, INSTANT) for name in times}
    return table.withColumns(texts) if texts else table


def of_topic(snapshots: Snapshots, topic: str) -> Snapshots:
    is_of_it = F.col("topic") == topic
    return replace(
        snapshots,
        topics=snapshots.topics.where(is_of_it),
        partitions=snapshots.partitions.where(is_of_it),
    )


# --- What it is --------------------------------------------------------------------------------


def present(one: Snapshots, subject: TopicPartition) -> DataFrame:
    """One row: the snapshot, the partition as it is there, and who could serve it.

    The partition's columns are null where it is not there.
    """
    broker = struct(
        broker_id="broker_id",
        alive="alive",
        shutting_down="coalesce(shutting_down, false)",
        rack="rack",
    )
    brokers = one.brokers.groupBy(*SNAPSHOT_KEY).agg(
        F.expr(f"array_sort(collect_list({broker})) AS brokers")
    )
    queued = one.topics.select(*SNAPSHOT_KEY, "queued_for_deletion")
    known = of_partition(one.partitions, subject).drop("controller_epoch")
    judged = of_partition(availability.counted(one), subject).select(
        *SNAPSHOT_KEY, "min_isr", "unclean_allowed"
    )
    found = one.snapshots.selectExpr(
        *SNAPSHOT_KEY, "mode", "release", "controller_id", "controller_epoch", _TAKEN_AT
    )
    for side in (known, queued, brokers, judged):
        found = found.join(F.broadcast(side), list(SNAPSHOT_KEY), "left")
    return found


# --- What made it so ---------------------------------------------------------------------------


def until(snapshots: Snapshots, one: Snapshots) -> Snapshots:
    """The snapshots of a cluster up to *one* of them; a snapshot without a time is the last."""
    last = one.snapshots.selectExpr("cluster", "taken_at AS last", f"{NEWEST} AS newest")
    return snapshots.only(
        snapshots.snapshots.join(F.broadcast(last), "cluster").where(
            f"last IS NULL OR taken_at < last OR (taken_at = last AND {NEWEST} <= newest)"
        )
    )


def past(history: History, snapshots: DataFrame, subject: TopicPartition) -> DataFrame:
    """One row for each snapshot in which something about the partition is new or not as expected.

    Columns: its key, taken_at, and lists of changes, events (those behind the changes), decisions
    and divergences. One look at the stream of all tables: joins of them would have Spark plan the
    whole pass once for each.
    """
    topic, partition = subject
    is_about_it = F.col("events").isNotNull()
    for name in _OF_PARTITIONS:
        of_it = (F.col(f"{name}.topic") == topic) & (F.col(f"{name}.partition") == partition)
        is_about_it |= F.coalesce(of_it, F.lit(False))
    found = (
        history.held.where(is_about_it)
        .groupBy(*SNAPSHOT_KEY)
        .agg(*(F.collect_list(name).alias(name) for name in ("events", *_OF_PARTITIONS)))
        .where("size(changes) > 0 OR size(divergences) > 0")
    )
    behind = "filter(events, e -> array_contains(flatten(changes.events), e.seq)) AS events"
    when = snapshots.selectExpr(*SNAPSHOT_KEY, _TAKEN_AT)
    return found.selectExpr(*SNAPSHOT_KEY, behind, *_OF_PARTITIONS).join(
        F.broadcast(when), list(SNAPSHOT_KEY)
    )


# --- What comes next ---------------------------------------------------------------------------


def ahead(one: Snapshots, brokers: Sequence[int]) -> Replay | None:
    """Each of these brokers fails, by itself, over the topic alone; the caller closes it."""
    if not brokers:
        return None
    asked = failures.Asked(together=tuple((Unit(BROKER, str(broker)),) for broker in brokers))
    cases = failures.cases(asked, known_clusters(one, assigned=False))
    return replaying.replay(one, [case.scenario for case in cases], changed_only=True)
