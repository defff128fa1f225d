"""What the partitions of a single snapshot are judged by, from rows that are at hand.

Spark would read and group these few rows in several jobs, one after the other, before it looks at
the first partition. Here they are leaves of its plan of a few rows, however many brokers and topics
there are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from understudy.names import SNAPSHOT_KEY
from understudy.schemas import BOOLEAN, IDS, INT, SNAPSHOTS, STRING, STRINGS
from understudy.snapshot import Snapshots

if TYPE_CHECKING:
    import pyarrow as pa

RULING: Final = ("mode", "release", "controller_id")
_FEW_BYTES: Final = 500_000
"""Rows of a plan travel with a task; Spark warns of larger ones."""
_TABLES: Final = ("snapshots", "brokers", "topics", "configs")


def _list_of(**fields: T.DataType) -> T.ArrayType:
    return T.ArrayType(T.StructType([T.StructField(name, kind) for name, kind in fields.items()]))


_LOG_DIRS: Final = _list_of(id=INT, log_dirs=STRINGS)
_SETTINGS: Final = _list_of(key=STRING, scope=STRING, name=STRING, value=STRING)
_KNOWN: Final = T.StructType(
    [
        T.StructField("ids", IDS),
        T.StructField("log_dirs", _LOG_DIRS),
        T.StructField("settings", _SETTINGS),
    ]
)


class Facts(NamedTuple):
    """What is known of a snapshot."""

    mode: str
    known: DataFrame
    """Its key and ``RULING``, the ``ids`` and ``log_dirs`` of its live brokers and, of brokers or
    of all, the wanted ``settings``."""
    topics: DataFrame | None
    """Topics that are ``queued`` for deletion or say something themselves, each setting as text;
    None where these are many."""


def facts(snapshots: Snapshots, wanted: Mapping[str, str]) -> Facts | None:
    """Of the only snapshot there is; *wanted* are settings. None where Spark has to be asked."""
    key = snapshots.key
    rows = {} if key is None else {name: snapshots.at_hand(name, key) for name in _TABLES}
    found = {name: table for name, table in rows.items() if table is not None}
    if len(found) < len(_TABLES) or found["snapshots"].num_rows != 1:
        return None
    known = _known(found["brokers"], found["configs"], wanted)
    if known.nbytes > _FEW_BYTES:
        return None
    (snapshot,) = found["snapshots"].to_pylist()
    spark = snapshots.snapshots.sparkSession
    topics = _topics(found["topics"], found["configs"], wanted)
    # What is the same in all rows is said after a step that Spark does not take by itself: it
    # would become a value like others, and leave nothing out of the plan.
    said = {
        name: F.lit(snapshot[name]).cast(SNAPSHOTS[name].dataType)
        for name in (*SNAPSHOT_KEY, *RULING)
    }
    return Facts(
        snapshot["mode"],
        spark.createDataFrame(known, _KNOWN).coalesce(1).withColumns(said),
        None if topics is None else _of_each_topic(spark, topics, said),
    )


def _known(brokers: pa.Table, configs: pa.Table, wanted: Mapping[str, str]) -> pa.Table:
    import pyarrow as pa  # noqa: PLC0415 - importing the package must not load it
    import pyarrow.compute as pc  # noqa: PLC0415

    is_leaving = pc.fill_null(brokers["shutting_down"], False)
    live = brokers.filter(pc.and_(brokers["alive"], pc.invert(is_leaving)))
    with_dirs = live.filter(pc.greater(pc.list_value_length(live["log_dirs"]), 0))
    dirs = with_dirs.select(["broker_id", "log_dirs"]).rename_columns(["id", "log_dirs"])
    is_wanted = pc.is_in(configs["key"], pa.array([*wanted.values()]))
    settings = configs.filter(pc.and_(is_wanted, pc.not_equal(configs["scope"], "topic")))
    lists = {
        "ids": live["broker_id"],
        "log_dirs": dirs.to_struct_array(),
        "settings": settings.select(["key", "scope", "name", "value"]).to_struct_array(),
    }
    return pa.table({name: _as_one(items.combine_chunks()) for name, items in lists.items()})


def _as_one(items: pa.Array) -> pa.ListArray:
    import pyarrow as pa  # noqa: PLC0415 - importing the package must not load it

    return pa.ListArray.from_arrays(pa.array([0, len(items)], pa.int32()), items)


def _topics(topics: pa.Table, configs: pa.Table, wanted: Mapping[str, str]) -> pa.Table | None:
    """The names of topics that say the same; None where they are many or one says two things."""
    import pyarrow as pa  # noqa: PLC0415 - importing the package must not load it
    import pyarrow.compute as pc  # noqa: PLC0415

    queued = topics.filter(topics["queued_for_deletion"])["topic"]
    own = configs.filter(pc.equal(configs["scope"], "topic"))
    said = {name: own.filter(pc.equal(own["key"], key)) for name, key in wanted.items()}
    names = [rows["name"] for rows in said.values()]
    if any(len(pc.unique(each)) < len(each) for each in names):
        return None
    every = pc.unique(
        pa.chunked_array([chunk for each in (queued, *names) for chunk in each.chunks], pa.string())
    )
    if every.nbytes > _FEW_BYTES:
        return None
    values = {
        name: rows["value"].take(pc.index_in(every, rows["name"])) for name, rows in said.items()
    }
    by_topic = pa.table({"topics": every, "queued": pc.is_in(every, queued), **values})
    alike = by_topic.group_by(["queued", *wanted]).aggregate([("topics", "list")])
    # Of no rows at all there would be no chunk, which Spark does not take.
    return pa.concat_tables([alike.schema.empty_table(), alike]).rename_columns(
        {"topics_list": "topics"}
    )


def _of_each_topic(spark: SparkSession, topics: pa.Table, said: Mapping[str, Column]) -> DataFrame:
    names = [name for name in topics.column_names if name != "topics"]
    kinds = {**dict.fromkeys(names, STRING), "queued": BOOLEAN, "topics": STRINGS}
    schema = T.StructType([T.StructField(name, kinds[name]) for name in topics.column_names])
    alike = spark.createDataFrame(topics, schema).coalesce(1)
    key = {name: said[name] for name in SNAPSHOT_KEY}
    return alike.selectExpr(*names, "explode(topics) AS topic").withColumns(key)
