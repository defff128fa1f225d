"""Which partitions stand in the way of stopping some brokers at once, replayed over columns.

The same rows as those of ``ok_to_stop.blocking``, which does not replay anything: here the
controller of the columnar form loses the brokers, and what it makes of each partition is judged as
any failure is (``what_if.in_columns``). Every task judges the partitions it has read, so only those
on the brokers are held, and nothing is planned but one pass.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from understudy import cluster_facts
from understudy.controller.columnar.feed import COLUMNS
from understudy.controller.profiles import ZK
from understudy.questions.availability import INTERNAL_TOPICS, min_isr_by_topic
from understudy.questions.cut_sets.cuts import FULL_ACKS, UNAVAILABLE
from understudy.schemas import BOOLEAN, INT, STRING
from understudy.snapshot import Snapshots

if TYPE_CHECKING:
    import pyarrow as pa

    from understudy.questions.what_if.in_columns import Before

BLOCKING: Final = T.StructType(
    [
        T.StructField("topic", STRING),
        T.StructField("partition", INT),
        T.StructField("risk", STRING),
        T.StructField("unsavable", BOOLEAN),
        T.StructField("internal", BOOLEAN),
    ]
)
_STOP: Final = "stop"


class Stop(NamedTuple):
    """What is known of a cluster, and of which brokers it is."""

    known: Mapping[str, Any]
    min_isr: Mapping[str | None, int]
    brokers: tuple[int, ...]


def stop(snapshots: Snapshots, brokers: Collection[int]) -> Stop | None:
    """The stop of these *brokers* of a single snapshot; None where it has no columnar form."""
    small = snapshots.small("snapshots", "brokers", "topics", "configs")
    (snapshot,) = small.pop("snapshots").to_pylist()
    release = snapshot["release"]
    if snapshot["mode"] != ZK.mode or release is None or not ZK.covers(release):
        return None
    # As Snapshots.with_defaults() has it.
    defaults = {
        "metadata_version": snapshot["metadata_version"] or release,
        "controller_epoch": snapshot["controller_epoch"] or 0,
    }
    rows = (table.to_pylist() for table in cluster_facts.deciding(**small).values())
    known = cluster_facts.known({**snapshot, **defaults}, *rows)
    min_isr = min_isr_by_topic(known["configs"], snapshot["controller_id"])
    return Stop(known, min_isr, tuple(sorted(brokers)))


def blocking(snapshots: Snapshots, asked: Stop) -> DataFrame:
    """The partitions of the snapshot that the stop would cost."""
    named = ", ".join(map(str, asked.brokers))
    touched = snapshots.with_defaults().partitions.where(
        f"has_state AND (leader IN ({named}) OR arrays_overlap(replicas, array({named})))"
    )
    return touched.select(*COLUMNS).mapInArrow(partial(judge, asked), BLOCKING)


def judge(asked: Stop, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    # Arrays are for those who work with them.
    import pyarrow as pa  # noqa: PLC0415

    from understudy.controller.columnar.cluster import Cluster  # noqa: PLC0415
    from understudy.controller.columnar.scenario import replay  # noqa: PLC0415
    from understudy.questions.what_if.in_columns import Answer, Before  # noqa: PLC0415
    from understudy.questions.what_if.one_pass import About  # noqa: PLC0415

    rows = [*batches]
    if not rows:
        return
    cluster = Cluster(asked.known, pa.Table.from_batches(rows))
    before = Before(cluster, asked.min_isr)
    about = {_STOP: About(asked.brokers, asked.brokers, ())}
    told: list[pa.RecordBatch] = []
    answer = Answer(
        before, ("", ""), about, lambda _, changed: told.append(changed), {"impact_partitions"}
    )
    event = {"type": "broker_failure", "brokers": list(asked.brokers)}
    scenarios = [(_STOP, [event])]
    states = {"partition_states"}
    replay(cluster, ("", ""), scenarios, answer.take, changed_only=True, wanted=states)
    yield from (_at_risk(before, changed) for changed in told)


def _at_risk(before: Before, changed: pa.RecordBatch) -> pa.RecordBatch:
    """Those of the *changed* partitions whose change is in the way, with the worse risk."""
    import numpy as np  # noqa: PLC0415 - executors only
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.compute as pc  # noqa: PLC0415

    from understudy.controller.columnar.arrays import NOBODY, count_of  # noqa: PLC0415

    of, risks = pc.list_parent_indices(changed["risks"]), pc.list_flatten(changed["risks"])
    rows = np.asarray(of)

    def has(risk: str) -> Any:  # noqa: ANN401 - flags by row
        found = np.zeros(changed.num_rows, dtype=bool)
        found[rows[np.asarray(pc.equal(risks, risk))]] = True
        return found

    unavailable = has(UNAVAILABLE)
    is_shown = unavailable | has(FULL_ACKS)
    row = before.rows_of(changed["topic"], changed["partition"])
    replicas = count_of(before.cluster.replicas.take(row, axis=0) != NOBODY)
    topics = changed["topic"].cast(pa.string())
    columns = [
        topics,
        changed["partition"],
        pc.if_else(pa.array(unavailable), UNAVAILABLE, FULL_ACKS),
        pa.array(replicas <= before.min_isr[row]),
        pc.is_in(topics, pa.array(INTERNAL_TOPICS)),
    ]
    return pa.record_batch(columns, names=BLOCKING.names).filter(pa.array(is_shown))
