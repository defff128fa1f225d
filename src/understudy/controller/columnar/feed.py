"""The columnar form over DataFrames: one pass over the partitions of whole snapshots.

A task holds one snapshot at a time and replays scenarios over it one after the other, each over the
partitions it touches. Many scenarios over the same snapshot are several tasks' work. What is told
of them are the tables of a replay, or whatever else somebody makes of those in the same pass.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial, reduce
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from understudy.columns import HandOver, Pass, Told, beside
from understudy.controller.zk.events import (
    BROKER_FAILURE,
    BROKER_STARTUP,
    CONTROLLED_SHUTDOWN,
    FAILOVER,
)
from understudy.frames import Tables, small_frame
from understudy.names import SNAPSHOT_KEY
from understudy.schemas import PARTITIONS, REPLAY_TABLES

if TYPE_CHECKING:
    import pyarrow as pa

    from understudy.controller.columnar.cluster import Cluster

KINDS: Final = (FAILOVER, BROKER_FAILURE, BROKER_STARTUP, CONTROLLED_SHUTDOWN)

PARTITIONS_AT_ONCE = 6_000_000
"""A snapshot with more of them is more than a task should hold."""
SNAPSHOTS_AT_ONCE = 100
"""What is known of each, beside its partitions, travels with every task."""

_SCENARIOS_TO_A_TASK: Final = 50
_MOST_TASKS: Final = 8  # of one snapshot
_MOST_TASKS_IN_ALL: Final = 16  # they do one share after the other
_MOST_ROWS: Final = 3_000_000  # read for all tasks of one snapshot

Key = tuple[str, str]


class Asked(NamedTuple):
    """The scenarios of one snapshot, and what its whole cluster has in common."""

    known: Mapping[str, Any]
    partitions: int
    scenarios: Sequence[tuple[str, Sequence[str]]]  # name, and events as JSON


class Share(NamedTuple):
    """What one task does: some scenarios of one snapshot."""

    snapshot: Key
    scenarios: Sequence[tuple[str, Sequence[str]]]


class Work(NamedTuple):
    """What the tasks have to know, each of all shares."""

    known: Mapping[Key, Mapping[str, Any]]
    shares: Sequence[Share]
    changed_only: bool

    def each(self, batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[Share, Cluster]]:
        """The shares of a task, each with its snapshot; *batches* have the partitions of all."""
        # Arrays are for those who work with them: who only asks needs neither numpy nor Arrow.
        from understudy.controller.columnar.cluster import Cluster  # noqa: PLC0415

        for number, partitions in _by_number(batches):
            share = self.shares[number]
            cluster = Cluster(self.known[share.snapshot], partitions)
            del partitions  # the cluster has them in its own order
            yield share, cluster

    def replay(
        self, share: Share, cluster: Cluster, hand_over: HandOver, wanted: Collection[str]
    ) -> None:
        """Replay the scenarios of a share and hand over the rows of the tables *wanted*."""
        from understudy.controller.columnar.scenario import replay  # noqa: PLC0415

        asked = ((name, [json.loads(text) for text in texts]) for name, texts in share.scenarios)
        changed_only = self.changed_only
        replay(cluster, share.snapshot, asked, hand_over, changed_only=changed_only, wanted=wanted)


class LaidOut(NamedTuple):
    """What is asked, as work and the rows it is done on."""

    rows: DataFrame
    work: Work

    def tables(self) -> Tables:
        """Every output table of the replay."""
        made = Pass(self.rows, frozenset(REPLAY_TABLES), partial(_tell, self.work))
        return Tables({name: lambda: None for name in REPLAY_TABLES}, [made])


def laid_out(partitions: DataFrame, asked: Mapping[Key, Asked], *, changed_only: bool) -> LaidOut:
    shares: list[Share] = []
    numbers: list[tuple[str, str, list[int]]] = []
    for snapshot, each in asked.items():
        tasks = _tasks(len(each.scenarios), each.partitions)
        numbers.append((snapshot[0], snapshot[1], [*range(len(shares), len(shares) + tasks)]))
        shares += [Share(snapshot, each.scenarios[first::tasks]) for first in range(tasks)]
    known = {snapshot: each.known for snapshot, each in asked.items()}
    return LaidOut(_fed(partitions, numbers, len(shares)), Work(known, shares, changed_only))


def _tasks(scenarios: int, partitions: int) -> int:
    """A power of two, so that all of them have as much to do."""
    tasks = min(_MOST_TASKS, max(scenarios // _SCENARIOS_TO_A_TASK, 1))
    affordable = max(_MOST_ROWS // partitions, 2)
    return int(2 ** int(math.log2(min(tasks, affordable))))


_OF_THE_QUORUM: Final = ("elr", "last_known_elr", "directories")
COLUMNS: Final = [n for n in PARTITIONS.names if n not in (*SNAPSHOT_KEY, *_OF_THE_QUORUM)]
_NUMBERS: Final = T.StructType(
    [
        *(T.StructField(name, T.StringType()) for name in SNAPSHOT_KEY),
        T.StructField("numbers", T.ArrayType(T.IntegerType())),
    ]
)


def _fed(
    partitions: DataFrame, numbers: Sequence[tuple[str, str, list[int]]], shares: int
) -> DataFrame:
    """The partitions of each share, one share after the other."""
    if len(numbers) == 1:
        ((*key, own),) = numbers
        for name, value in zip(SNAPSHOT_KEY, key, strict=True):
            partitions = partitions.where(F.col(name) == value)
        # Each task reads all of them by itself: to deal them out would take longer.
        each = (F.lit(number).alias("number") for number in own)
        return reduce(
            DataFrame.unionAll, (partitions.select(one, *COLUMNS).coalesce(1) for one in each)
        )
    listed = F.broadcast(small_frame(partitions.sparkSession, numbers, _NUMBERS))
    rows = partitions.join(listed, on=list(SNAPSHOT_KEY)).select(
        F.explode("numbers").alias("number"), *COLUMNS
    )
    tasks = min(shares, _MOST_TASKS_IN_ALL)
    # By the number itself: by its hash, some tasks would have several shares and others none.
    return rows.repartitionById(tasks, F.expr(f"number % {tasks}")).sortWithinPartitions("number")


def _tell(work: Work, batches: Iterator[pa.RecordBatch], wanted: Collection[str]) -> Told:
    def tell(hand_over: HandOver) -> None:
        for share, cluster in work.each(batches):
            work.replay(share, cluster, hand_over, wanted)

    return beside(tell)


def _by_number(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, pa.Table]]:
    """The rows of each number; they come one after the other."""
    import numpy as np  # noqa: PLC0415

    held: list[pa.RecordBatch] = []
    current = -1
    for batch in batches:
        numbers = np.asarray(batch.column("number"))
        edges = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(numbers)]
        for start, end in pairwise(edges):
            if start == end:
                continue
            if held and numbers[start] != current:
                yield current, _gathered(held)
            current = int(numbers[start])
            held.append(batch.slice(start, end - start))
    if held:
        yield current, _gathered(held)


def _gathered(held: list[pa.RecordBatch]) -> pa.Table:
    """All that is held, and nobody holds it any longer."""
    import pyarrow as pa  # noqa: PLC0415

    rows = pa.Table.from_batches(held)
    held.clear()
    return rows
