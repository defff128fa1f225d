"""The partitions that a failover leaves as they are, in every table, as whole columns.

Nearly all are: their record is sent again, and their rows follow from it alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any, Final

from understudy.columns import Pass, Told, gathered, rows_of
from understudy.controller.native.decided import RECORD
from understudy.controller.states import ONLINE_PARTITION, ONLINE_REPLICA
from understudy.controller.words import (
    LEADER_AND_ISR,
    OK,
    REPLICA_MACHINE,
    UNCHANGED,
    UPDATE_METADATA,
)
from understudy.controller.zk.events import FAILOVER
from understudy.names import PARTITION_KEY, SCENARIO_KEY
from understudy.sql import Rows

if TYPE_CHECKING:
    import pyarrow as pa

_ASSIGNMENT: Final = ("replicas", "adding", "removing")
_PARTITIONS_AT_ONCE: Final = 65_536
_EVENT: Final = {"event": 1, "event_type": FAILOVER}


def sent_again(healthy: Rows, *, with_states: bool) -> Pass:
    """Every table's rows of the *healthy* partitions, those of states only where they are shown."""
    rows = healthy.select(
        *PARTITION_KEY, *_ASSIGNMENT, *RECORD, "f.step_online AS step", "f.has_recovery"
    )
    names = frozenset(_TABLES if with_states else _TABLES.keys() - _STATES)
    return Pass(rows.frame(), names, tell)


def tell(batches: Iterator[pa.RecordBatch], wanted: Collection[str]) -> Told:
    for batch in gathered(batches, _PARTITIONS_AT_ONCE):
        given = _columns(batch)
        for name in wanted:
            for rows in _TABLES[name](given, batch.num_rows):
                yield name, rows


Columns = dict[str, Any]


def _columns(batch: pa.RecordBatch) -> Columns:
    """The columns by name; of words, each is there once."""
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    words = (*SCENARIO_KEY, "topic")
    return columns | {name: columns[name].dictionary_encode() for name in words}


def _partition_states(given: Columns, count: int) -> Iterator[pa.RecordBatch]:
    before = {f"{name}_before": given[name] for name in ("leader", "leader_epoch", "isr")}
    after = {"state_after": ONLINE_PARTITION, "outcome": UNCHANGED}
    yield rows_of("partition_states", count, {**given, **before, **after})


def _replica_states(given: Columns, _count: int) -> Iterator[pa.RecordBatch]:
    each = _each_replica(given)
    count = len(each["replica"])
    yield rows_of("replica_states", count, {**each, "state_after": ONLINE_REPLICA})


def _transitions(given: Columns, _count: int) -> Iterator[pa.RecordBatch]:
    each = _each_replica(given)
    told = {
        "machine": REPLICA_MACHINE,
        "from_state": ONLINE_REPLICA,
        "to_state": ONLINE_REPLICA,
        "result": OK,
    }
    yield rows_of("transitions", len(each["replica"]), {**each, **_EVENT, **told})


def _request_partitions(given: Columns, count: int) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa  # noqa: PLC0415 - executors only
    import pyarrow.compute as pc  # noqa: PLC0415

    nothing = pa.scalar(None, pa.int32())
    to_replicas = {
        "request": LEADER_AND_ISR,
        "recipients": _ascending(given["replicas"]),
        "is_new": False,
        "recovery": pc.if_else(given["has_recovery"], given["recovery"], nothing),
    }
    yield rows_of("request_partitions", count, {**given, **_EVENT, **to_replicas})
    nobody = pa.ListArray.from_arrays(
        pa.repeat(pa.scalar(0, pa.int32()), count + 1), pa.array([], pa.int32())
    )
    to_all = dict.fromkeys(("adding", "removing", "recovery")) | {
        "request": UPDATE_METADATA,
        "offline_replicas": nobody,
    }
    yield rows_of("request_partitions", count, {**given, **_EVENT, **to_all})


def _each_replica(given: Columns) -> Columns:
    """A row for each replica."""
    import pyarrow.compute as pc  # noqa: PLC0415 - executors only

    place = pc.list_parent_indices(given["replicas"])
    repeated = (*PARTITION_KEY, "step")
    return {
        **{name: given[name].take(place) for name in repeated},
        "replica": given["replicas"].flatten(),
    }


def _ascending(lists: pa.ListArray) -> pa.ListArray:
    """The same lists of ids, each sorted."""
    import numpy as np  # noqa: PLC0415 - executors only
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.compute as pc  # noqa: PLC0415

    place = np.asarray(pc.list_parent_indices(lists))
    in_order = np.sort(place << 32 | np.asarray(lists.flatten())) & 0xFFFFFFFF
    offsets = np.concatenate([[0], np.cumsum(np.asarray(pc.list_value_length(lists)))])
    return pa.ListArray.from_arrays(
        pa.array(offsets, pa.int32()), pa.array(in_order.astype(np.int32))
    )


_TABLES: Final = {
    "partition_states": _partition_states,
    "replica_states": _replica_states,
    "transitions": _transitions,
    "request_partitions": _request_partitions,
}
_STATES: Final = {"partition_states", "replica_states"}
