"""The interpreters over DataFrames: scenarios of any events in one sorted Arrow pass.

Only the partitions a scenario can touch travel to Python. They are found by keys, so that the work
follows what is touched, not scenarios times partitions: every partition has a key for each broker
it is on, for its topic, for itself and for being in trouble; a scenario has the keys of its scope.
The untouched partitions' state rows are those of a settled controller and need no Python.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from understudy.controller.journal import drop_unchanged
from understudy.controller.kraft.interpreter import FIRST_REPLICAS
from understudy.controller.kraft.partitions import MIGRATING
from understudy.controller.profiles import DECISIVE_SETTINGS, KRAFT, PROFILES, ZK_LEGACY
from understudy.controller.snapshot_rows import SnapshotRows
from understudy.controller.states import OFFLINE_REPLICA, ONLINE_PARTITION, ONLINE_REPLICA
from understudy.controller.words import NO_LEADER, UNCHANGED
from understudy.controller.zk.interpreter import resume
from understudy.frames import Tables, compiled_apart, kept
from understudy.garbage import rarely_collected
from understudy.names import PARTITION_KEY, SCENARIO_KEY, SNAPSHOT_KEY, TOPIC_KEY
from understudy.schemas import PARTITION_STATES, PARTITIONS, REPLAY_TABLES, REPLICA_STATES
from understudy.sql import NO_IDS, struct, text

if TYPE_CHECKING:
    import pyarrow as pa

_BATCH_ROWS: Final = 10_000
_NUMBER: Final = f"xxhash64({', '.join(SNAPSHOT_KEY)})"
_PARTITION_COLUMNS: Final = tuple(n for n in PARTITIONS.names if n not in SNAPSHOT_KEY)
_TABLE: Final = "table_name"

Key = tuple[str, str, str]
Rows = dict[str, list[tuple[Any, ...]]]


class Interpreted(NamedTuple):
    """What scenarios gave, not yet computed, and what is kept in memory meanwhile."""

    tables: Tables
    held: DataFrame


def tables(
    *,
    snapshots: DataFrame,
    brokers: DataFrame,
    topics: DataFrame,
    partitions: DataFrame,
    configs: DataFrame,
    scenarios: DataFrame,
    scopes: DataFrame,
    profiles: Collection[str],
    many: int,
    rows: int | None,
    changed_only: bool,
) -> Interpreted:
    """Every output table of *scenarios*.

    *snapshots* has, beside its own columns, the ``profile`` each is replayed under; *scenarios*
    the ``number`` of its events in *scopes*, and ``resumed``: not null for a failover of which only
    the second half is wanted. One that is taken ``natively`` wants no partition that ``is_plain``.
    *profiles* are those there are, and so *many* the scenarios; *rows* is about how many
    all tables have, where that is known.
    """
    known = _known(snapshots, brokers, topics, configs)
    scoped = _with_scope_keys(scenarios, known, scopes)
    keyed = _with_touch_keys(partitions, known)
    feed = (
        _headers(scoped, known)
        .unionAll(_touched(keyed, scoped, configs, has_kraft=KRAFT.name in profiles))
        .repartition(*SCENARIO_KEY)
        .sortWithinPartitions(*SCENARIO_KEY, "part.topic", "part.partition")
    )
    done = kept(feed.mapInArrow(_replay_batches, _OUTPUT), scenarios=many, rows=rows)
    found = Tables({name: partial(_table, done, name) for name in REPLAY_TABLES})
    if changed_only:
        return Interpreted(found, done)
    settled = {"partition_states": _settled_partitions, "replica_states": _settled_replicas}

    def with_untouched(name: str, table: DataFrame) -> DataFrame:
        if name not in settled:
            return table
        return table.unionAll(settled[name](_untouched(keyed, scoped)))

    return Interpreted(found.each(with_untouched), done)


def tables_of_few(
    given: Mapping[str, pa.Table], scenarios: pa.Table, *, changed_only: bool
) -> dict[str, pa.Table]:
    """Every output table of *scenarios* over a few small snapshots, replayed right here.

    *given* are the tables snapshots (with ``profile``), brokers, topics, partitions and configs.
    Each scenario is given its whole snapshot: to find what it can touch would take longer.
    """
    every = {name: _by_snapshot(table) for name, table in given.items()}
    output = _Output()
    batches: list[pa.RecordBatch] = []
    with rarely_collected():
        for row in sorted(scenarios.to_pylist(), key=itemgetter(*SCENARIO_KEY)):
            of_snapshot = tuple(row[name] for name in SNAPSHOT_KEY)
            own = {name: rows.get(of_snapshot, []) for name, rows in every.items()}
            header = {**_header_of(own), "events": row["events"], "resumed": None}
            found = _replayed(header, _partitions_of(own))
            if changed_only:
                drop_unchanged(found)
            batches += output.add(tuple(row[name] for name in SCENARIO_KEY), found)
        batches += output.flush()
    return {name: _gathered(batches, name) for name in REPLAY_TABLES}


# --- What a scenario can touch, as keys -----------------------------------------------------------

_EVERY: Final = "'every partition'"
_IN_TROUBLE: Final = "'in trouble'"
_UNFINISHED: Final = "'being reassigned or deleted'"
_FIRST: Final = "'first of its topic'"


def _broker_key(broker: str) -> str:
    return f"xxhash64(cluster_number, 'broker', {broker})"


def _topic_key(topic: str) -> str:
    return f"xxhash64(cluster_number, 'topic', {topic})"


def _partition_key(topic: str, partition: str) -> str:
    return f"xxhash64(cluster_number, 'partition', {topic}, {partition})"


SCOPES: Final = T.StructType(
    [
        T.StructField("number", T.IntegerType()),
        T.StructField("profile", T.StringType()),
        T.StructField("everything", T.BooleanType()),
        T.StructField("first_partitions", T.BooleanType()),
        T.StructField("on_brokers", T.ArrayType(T.IntegerType())),
        T.StructField("of_topics", T.ArrayType(T.StringType())),
        T.StructField(
            "named",
            T.ArrayType(
                T.StructType(
                    [
                        T.StructField("topic", T.StringType()),
                        T.StructField("partition", T.IntegerType()),
                    ]
                )
            ),
        ),
    ]
)


def scope_rows(
    events: Sequence[Sequence[str]], profiles: Iterable[str]
) -> Iterator[tuple[Any, ...]]:
    """What each list of events can touch under each profile, as rows of SCOPES."""
    for profile in profiles:
        for number, texts in enumerate(events):
            scope = PROFILES[profile].scope_of([json.loads(each) for each in texts])
            named = [{"topic": topic, "partition": n} for topic, n in sorted(scope.partitions)]
            yield (
                number,
                profile,
                scope.everything,
                scope.first_partitions,
                sorted(scope.brokers),
                sorted(scope.topics),
                named,
            )


def _with_scope_keys(scenarios: DataFrame, known: DataFrame, scopes: DataFrame) -> DataFrame:
    """Scenarios with ``keys``, what they can touch."""
    keys = f"""CASE
      WHEN resumed IS NOT NULL THEN array(xxhash64(cluster_number, {_UNFINISHED}))
      WHEN everything THEN array(xxhash64(cluster_number, {_EVERY}))
      ELSE concat(
        array(xxhash64(cluster_number, {_IN_TROUBLE})),
        IF(first_partitions, array(xxhash64(cluster_number, {_FIRST})), array()),
        transform(on_brokers, b -> {_broker_key("b")}),
        transform(of_topics, t -> {_topic_key("t")}),
        transform(named, p -> {_partition_key("p.topic", "p.partition")})) END"""
    about = known.selectExpr(*SNAPSHOT_KEY, "cluster_number", "snapshot.profile")
    return (
        scenarios.join(about.hint("broadcast"), on=list(SNAPSHOT_KEY))
        .join(scopes.hint("broadcast"), on=["number", "profile"])
        .selectExpr(
            *(*SCENARIO_KEY, "events", "resumed", "natively", "profile", "everything"),
            f"{keys} AS keys",
        )
    )


def _with_touch_keys(partitions: DataFrame, known: DataFrame) -> DataFrame:
    """Partitions with the keys they answer to (Scope.touches, always_touched of each profile)."""
    is_kraft = f"profile = {text(KRAFT.name)}"
    unfinished = "size(adding) + size(removing) > 0 OR array_contains(queued_topics, topic)"
    in_trouble = f"""IF({is_kraft}, coalesce(leader, {NO_LEADER}) = {NO_LEADER},
        NOT has_state OR NOT array_contains(live, leader)
        OR array_contains(offline_dirs, leader) OR {unfinished})"""
    # It shows that there is a topic; ZooKeeper mode has a list of them.
    is_first = f"{is_kraft} AND partition = 0"
    # Recorded ISRs may name brokers that are no replicas, and those leave them all the same.
    on = f"""array_distinct(concat(
        replicas, array(leader), coalesce(isr, {NO_IDS}), coalesce(elr, {NO_IDS})))"""
    keys = f"""concat(
        array(
          xxhash64(cluster_number, {_EVERY}),
          {_topic_key("topic")},
          {_partition_key("topic", "partition")},
          IF({in_trouble}, xxhash64(cluster_number, {_IN_TROUBLE}), NULL),
          IF({unfinished}, xxhash64(cluster_number, {_UNFINISHED}), NULL),
          IF({is_first}, xxhash64(cluster_number, {_FIRST}), NULL)),
        transform({on}, b -> {_broker_key("b")}))"""
    about = known.selectExpr(
        *(*SNAPSHOT_KEY, "cluster_number", "live", "queued_topics"),
        *("snapshot.profile", "snapshot.elr_enabled"),
    )
    return partitions.join(about.hint("broadcast"), on=list(SNAPSHOT_KEY)).selectExpr(
        *PARTITIONS.names, "live", "elr_enabled", "is_plain", f"{keys} AS keys"
    )


def _touched(
    keyed: DataFrame, scenarios: DataFrame, configs: DataFrame, *, has_kraft: bool
) -> DataFrame:
    """A row for each partition a scenario may touch, once or more often."""
    wanted = scenarios.selectExpr("scenario", "natively", "explode(keys) AS key")
    found = (
        # Compiled as one step that is short enough, only those that are wanted become rows.
        compiled_apart(keyed)
        .selectExpr(*PARTITIONS.names, "is_plain", "explode(keys) AS key")
        .join(wanted.hint("broadcast"), on="key")
        .where("NOT (natively AND is_plain)")
        .transform(compiled_apart)
        .join(_topic_settings(configs), on=list(TOPIC_KEY), how="left")
    )
    found = (
        found.join(_first_replicas(keyed), on=list(TOPIC_KEY), how="left")
        if has_kraft
        else found.withColumn(FIRST_REPLICAS, F.lit(None).cast("int"))
    )
    partition = struct(**{name: name for name in (*_PARTITION_COLUMNS, "settings", FIRST_REPLICAS)})
    return found.selectExpr(
        *SCENARIO_KEY, f"CAST(NULL AS {_HEADER}) AS header", f"{partition} AS part"
    )


def _first_replicas(keyed: DataFrame) -> DataFrame:
    """What bounds the min ISR of topics, where it counts: with eligible leader replicas."""
    return keyed.where("partition = 0 AND elr_enabled").selectExpr(
        *TOPIC_KEY, f"size(replicas) AS {FIRST_REPLICAS}"
    )


# --- What a scenario knows ------------------------------------------------------------------------

_SETTING: Final = "STRUCT<scope: STRING, name: STRING, key: STRING, value: STRING>"
_BROKER: Final = (
    "STRUCT<broker_id: INT, alive: BOOLEAN, shutting_down: BOOLEAN, fenced: BOOLEAN,"
    " broker_epoch: BIGINT, rack: STRING, endpoints: STRING, log_dirs: ARRAY<STRING>>"
)
_SNAPSHOT: Final = (
    "STRUCT<profile: STRING, release: STRING, metadata_version: STRING, elr_enabled: BOOLEAN,"
    " controller_id: INT, controller_epoch: INT>"
)
# Of a failover whose start-up is replayed elsewhere: its steps and the order of its broker groups.
RESUMED: Final = "STRUCT<steps: INT, offline_order: ARRAY<INT>>"
_HEADER: Final = (
    f"STRUCT<snapshot: {_SNAPSHOT}, brokers: ARRAY<{_BROKER}>, settings: ARRAY<{_SETTING}>,"
    f" queued_topics: ARRAY<STRING>, events: ARRAY<STRING>, resumed: {RESUMED}>"
)


def _fields(struct_type: str) -> list[str]:
    return [field.split(":")[0] for field in struct_type[7:-1].split(", ")]


def _known(
    snapshots: DataFrame, brokers: DataFrame, topics: DataFrame, configs: DataFrame
) -> DataFrame:
    """One row per snapshot: what the whole cluster has in common. As small as its brokers."""
    broker = struct(**{name: name for name in _fields(_BROKER)})
    registered = brokers.groupBy(*SNAPSHOT_KEY).agg(
        F.expr(f"array_sort(collect_list({broker})) AS brokers"),
        F.expr(
            "collect_list(IF(alive AND NOT coalesce(shutting_down, false), broker_id, NULL))"
            " AS live"
        ),
    )
    queued = (
        topics.where("queued_for_deletion")
        .groupBy(*SNAPSHOT_KEY)
        .agg(F.expr("array_sort(collect_list(topic)) AS queued_topics"))
    )
    setting = struct(scope="scope", name="name", key="key", value="value")
    settings = (
        configs.where(f"key IN ({', '.join(map(text, DECISIVE_SETTINGS))}) AND scope != 'topic'")
        .groupBy(*SNAPSHOT_KEY)
        .agg(F.expr(f"array_sort(collect_list({setting})) AS settings"))
    )
    known = snapshots
    for side in (registered, queued, settings):
        known = known.join(side.hint("broadcast"), on=list(SNAPSHOT_KEY), how="left")
    return known.selectExpr(
        *SNAPSHOT_KEY,
        f"{_NUMBER} AS cluster_number",
        f"{struct(**{name: name for name in _fields(_SNAPSHOT)})} AS snapshot",
        *(
            f"coalesce({name}, array()) AS {name}"
            for name in ("brokers", "settings", "queued_topics", "live")
        ),
    )


def _topic_settings(configs: DataFrame) -> DataFrame:
    setting = struct(scope="scope", name="name", key="key", value="value")
    return (
        configs.where(f"key IN ({', '.join(map(text, DECISIVE_SETTINGS))}) AND scope = 'topic'")
        .groupBy(*SNAPSHOT_KEY, F.col("name").alias("topic"))
        .agg(F.expr(f"array_sort(collect_list({setting})) AS settings"))
    )


def _headers(scenarios: DataFrame, known: DataFrame) -> DataFrame:
    header = struct(
        **{
            name: name
            for name in ("snapshot", "brokers", "settings", "queued_topics", "events", "resumed")
        }
    )
    columns = ", ".join(
        f"{field.name}: {field.dataType.simpleString()}"
        for field in PARTITIONS
        if field.name in _PARTITION_COLUMNS
    )
    partition = f"STRUCT<{columns}, settings: ARRAY<{_SETTING}>, {FIRST_REPLICAS}: INT>"
    return scenarios.join(known.hint("broadcast"), on=list(SNAPSHOT_KEY)).selectExpr(
        *SCENARIO_KEY, f"{header} AS header", f"CAST(NULL AS {partition}) AS part"
    )


# --- Partitions nobody touches --------------------------------------------------------------------


def _untouched(keyed: DataFrame, scenarios: DataFrame) -> DataFrame:
    partly = scenarios.where("NOT everything AND resumed IS NULL").selectExpr(
        *SCENARIO_KEY, "profile", "keys AS scope_keys"
    )
    return keyed.join(partly.hint("broadcast"), on=list(SNAPSHOT_KEY)).where(
        "NOT coalesce(arrays_overlap(keys, scope_keys), false)"
    )


def _settled_partitions(untouched: DataFrame) -> DataFrame:
    kraft, legacy = (f"profile = {text(each.name)}" for each in (KRAFT, ZK_LEGACY))
    state = f"IF({kraft}, NULL, {text(ONLINE_PARTITION)})"
    recorded = (
        f"IF(size(directories) > 0, directories, transform(replicas, r -> {text(MIGRATING)}))"
    )
    values = {
        **{name: name for name in (*PARTITION_KEY, "replicas")},
        **{name: name for name in ("leader", "leader_epoch", "isr", "partition_epoch")},
        "controller_epoch": f"IF({kraft}, NULL, controller_epoch)",
        **{
            name: f"IF({kraft}, coalesce({name}, {NO_IDS}), NULL)"
            for name in ("elr", "last_known_elr")
        },
        "directories": f"IF({kraft}, {recorded}, NULL)",
        **{f"{name}_before": name for name in ("leader", "leader_epoch", "isr")},
        **{name: f"IF({legacy}, NULL, {name})" for name in ("adding", "removing", "recovery")},
        "state_before": state,
        "state_after": state,
        "outcome": text(UNCHANGED),
    }
    return _projected(untouched, PARTITION_STATES, values)


def _settled_replicas(untouched: DataFrame) -> DataFrame:
    is_online = "array_contains(live, replica) AND NOT array_contains(offline_dirs, replica)"
    state = f"IF({is_online}, {text(ONLINE_REPLICA)}, {text(OFFLINE_REPLICA)})"
    each = untouched.where(f"profile != {text(KRAFT.name)}").selectExpr(
        *PARTITION_KEY, "live", "offline_dirs", "explode(replicas) AS replica"
    )
    values = {
        **{name: name for name in (*PARTITION_KEY, "replica")},
        "state_before": state,
        "state_after": state,
    }
    return _projected(each, REPLICA_STATES, values)


def _projected(frame: DataFrame, schema: T.StructType, values: dict[str, str]) -> DataFrame:
    return frame.selectExpr(
        *(
            f"CAST({values.get(field.name, 'NULL')} AS {field.dataType.simpleString()})"
            f" AS {field.name}"
            for field in schema
        )
    )


# --- Whole snapshots as plain rows ----------------------------------------------------------------


def _by_snapshot(table: pa.Table) -> dict[tuple[str, ...], list[dict[str, Any]]]:
    found: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for row in table.to_pylist():
        found.setdefault(tuple(row[name] for name in SNAPSHOT_KEY), []).append(row)
    return found


def _header_of(given: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """As ``_headers`` has it."""
    return {
        "snapshot": given["snapshots"][0],
        "brokers": sorted(given["brokers"], key=itemgetter("broker_id")),
        "settings": [row for row in _decisive(given) if row["scope"] != "topic"],
        "queued_topics": sorted(
            row["topic"] for row in given["topics"] if row["queued_for_deletion"]
        ),
    }


def _partitions_of(
    given: dict[str, list[dict[str, Any]]],
) -> dict[tuple[str, int], dict[str, Any]]:
    """As ``_touched`` has them, of a scenario that touches every partition."""
    settings: dict[str, list[dict[str, Any]]] = {}
    for row in _decisive(given):
        if row["scope"] == "topic":
            settings.setdefault(row["name"], []).append(row)
    rows = sorted(given["partitions"], key=itemgetter("topic", "partition"))
    first = {row["topic"]: len(row["replicas"]) for row in rows if row["partition"] == 0}
    bounded = first if given["snapshots"][0]["elr_enabled"] else {}
    return {
        (topic, row["partition"]): {
            **row,
            "settings": settings.get(topic),
            FIRST_REPLICAS: bounded.get(topic),
        }
        for row in rows
        for topic in (row["topic"],)
    }


def _decisive(given: dict[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    rows = (row for row in given["configs"] if row["key"] in DECISIVE_SETTINGS)
    return sorted(rows, key=lambda row: (row["scope"], row["name"] or "", row["key"]))


def _own_columns(schema: T.StructType) -> list[str]:
    return _without_key(schema).names


def _gathered(batches: list[pa.RecordBatch], name: str) -> pa.Table:
    """The rows of one table, of those of all."""
    import pyarrow as pa  # noqa: PLC0415 - importing the package must not load it
    from pyspark.sql.pandas.types import to_arrow_schema  # noqa: PLC0415

    schema = to_arrow_schema(REPLAY_TABLES[name], timezone="UTC")
    own = [each for each in batches if each.column(_TABLE)[0].as_py() == name]
    if not own:
        return schema.empty_table()
    rows = pa.Table.from_batches(own).select([*SCENARIO_KEY, name]).combine_chunks()
    columns = [*(rows[key] for key in SCENARIO_KEY), *rows[name].chunk(0).flatten()]
    names = [*SCENARIO_KEY, *_own_columns(REPLAY_TABLES[name])]
    return pa.table(dict(zip(names, columns, strict=True))).select(schema.names)


# --- The pass: plain Python and pyarrow, on executors ---------------------------------------------


def _without_key(schema: T.StructType) -> T.StructType:
    return T.StructType([field for field in schema if field.name not in SCENARIO_KEY])


# One stream carries the rows of all tables: each row has a value in the column of its table.
_OUTPUT: Final = T.StructType(
    [
        *(T.StructField(name, T.StringType()) for name in (*SCENARIO_KEY, _TABLE)),
        *(T.StructField(name, _without_key(schema)) for name, schema in REPLAY_TABLES.items()),
    ]
)


def _table(done: DataFrame, name: str) -> DataFrame:
    return done.where(f"{_TABLE} = {text(name)}").select(*SCENARIO_KEY, f"{name}.*")


def _replay_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    with rarely_collected():
        output = _Output()
        for key, header, partitions in _scenarios(batches):
            yield from output.add(key, _replayed(header, partitions))
        yield from output.flush()


def _replayed(header: dict[str, Any], partitions: dict[tuple[str, int], dict[str, Any]]) -> Rows:
    rows = _snapshot_rows(header, partitions)
    events = [json.loads(event) for event in header["events"]]
    resumed = header["resumed"]
    if resumed is not None:
        return resume(rows, events[0], resumed["offline_order"], resumed["steps"])
    return PROFILES[header["snapshot"]["profile"]].replay(rows, events)


def _scenarios(
    batches: Iterator[pa.RecordBatch],
) -> Iterator[tuple[Key, dict[str, Any], dict[tuple[str, int], dict[str, Any]]]]:
    """Each scenario with its header and partitions; its rows come one after the other."""
    current: Key | None = None
    header: dict[str, Any] = {}
    partitions: dict[tuple[str, int], dict[str, Any]] = {}
    for row_key, row_header, part in chain.from_iterable(map(_rows, batches)):
        if row_key != current:
            if current is not None:
                yield current, header, partitions
            current, header, partitions = row_key, {}, {}
        if row_header is not None:
            header = row_header
        else:
            # One that several keys have found is there several times.
            partitions[part["topic"], part["partition"]] = part
    if current is not None:
        yield current, header, partitions


def _rows(batch: pa.RecordBatch) -> Iterator[tuple[Key, dict[str, Any] | None, dict[str, Any]]]:
    keys = zip(*(batch.column(name).to_pylist() for name in SCENARIO_KEY), strict=True)
    part = batch.column("part")
    names = [field.name for field in part.type]
    columns = zip(*(column.to_pylist() for column in part.flatten()), strict=True)
    headers = batch.column("header").to_pylist()
    for key, header, values in zip(keys, headers, columns, strict=True):
        yield key, header, dict(zip(names, values, strict=True))


def _snapshot_rows(
    header: dict[str, Any], partitions: dict[tuple[str, int], dict[str, Any]]
) -> SnapshotRows:
    queued = set(header["queued_topics"])
    settings = {row["topic"]: row["settings"] or () for row in partitions.values()}
    return SnapshotRows(
        snapshot=header["snapshot"],
        brokers=header["brokers"],
        topics=[
            {"topic": topic, "topic_id": None, "queued_for_deletion": topic in queued}
            for topic in sorted(settings.keys() | queued)
        ],
        partitions=list(partitions.values()),
        configs=[*header["settings"], *chain.from_iterable(settings.values())],
    )


class _Output:
    """Gathers the rows of many small scenarios into batches of one table each."""

    def __init__(self) -> None:
        from pyspark.sql.pandas.types import to_arrow_schema  # noqa: PLC0415 - executors only

        self._schema: pa.Schema = to_arrow_schema(_OUTPUT, timezone="UTC")
        self._rows: Rows = {name: [] for name in REPLAY_TABLES}
        self._keys: dict[str, list[Key]] = {name: [] for name in REPLAY_TABLES}

    def add(self, key: Key, found: Rows) -> Iterator[pa.RecordBatch]:
        for name, rows in found.items():
            self._rows[name] += rows
            self._keys[name] += [key] * len(rows)
            rows.clear()  # whoever made them may stay until garbage is collected
            if len(self._rows[name]) >= _BATCH_ROWS:
                yield from self._take(name)

    def flush(self) -> Iterator[pa.RecordBatch]:
        for name in REPLAY_TABLES:
            yield from self._take(name)

    def _take(self, name: str) -> Iterator[pa.RecordBatch]:
        rows, keys = self._rows[name], self._keys[name]
        self._rows[name], self._keys[name] = [], []
        for start in range(0, len(rows), _BATCH_ROWS):
            end = start + _BATCH_ROWS
            yield self._batch(name, keys[start:end], rows[start:end])

    def _batch(self, name: str, keys: list[Key], rows: list[tuple[Any, ...]]) -> pa.RecordBatch:
        import pyarrow as pa  # noqa: PLC0415 - executors only

        kind = self._schema.field(name).type
        columns = [
            pa.array(column, field.type)
            for field, column in zip(kind, zip(*rows, strict=True), strict=True)
        ]
        arrays = {field.name: pa.nulls(len(rows), field.type) for field in self._schema}
        for key, values in zip(SCENARIO_KEY, zip(*keys, strict=True), strict=True):
            arrays[key] = pa.array(values, pa.string())
        arrays[_TABLE] = pa.array([name] * len(rows), pa.string())
        arrays[name] = pa.StructArray.from_arrays(columns, fields=list(kind))
        return pa.RecordBatch.from_pydict(arrays, schema=self._schema)
