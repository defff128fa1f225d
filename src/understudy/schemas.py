"""Every table the product reads or writes: its columns, their order and their types, once.

Names and meanings are a contract with other programs. Null means unknown, never false or empty;
lists keep their order; a leader of -1 is "no leader". Every column is nullable, because Parquet
readers drop NOT NULL anyway and a promise nobody keeps is worse than none.

Schemas are built as objects: ``StructType.fromDDL`` would need a live session at import.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from understudy.errors import SchemaMismatchError

SCHEMA_VERSION: Final = 1

INT: Final = T.IntegerType()
LONG: Final = T.LongType()
STRING: Final = T.StringType()
BOOLEAN: Final = T.BooleanType()
DOUBLE: Final = T.DoubleType()
TIMESTAMP: Final = T.TimestampType()
IDS: Final = T.ArrayType(INT, containsNull=True)
STRINGS: Final = T.ArrayType(STRING, containsNull=True)


def _table(**columns: T.DataType) -> T.StructType:
    return T.StructType(
        [T.StructField(name, kind, nullable=True) for name, kind in columns.items()]
    )


_SNAPSHOT_KEY: Final[dict[str, T.DataType]] = {"cluster": STRING, "snapshot_id": STRING}
_REPLAY_KEY: Final[dict[str, T.DataType]] = {**_SNAPSHOT_KEY, "scenario": STRING}
_PARTITION: Final[dict[str, T.DataType]] = {"topic": STRING, "partition": INT}
_EVENT: Final[dict[str, T.DataType]] = {"step": INT, "event": INT, "event_type": STRING}

# --- Canonical snapshot tables: what a controller could know at one instant ------------------

SNAPSHOTS: Final = _table(
    **_SNAPSHOT_KEY,
    taken_at=TIMESTAMP,
    mode=STRING,
    source_form=STRING,
    release=STRING,
    metadata_version=STRING,
    elr_enabled=BOOLEAN,
    controller_id=INT,
    controller_epoch=INT,
    complete=BOOLEAN,
    content_digest=STRING,  # of the canonical content: the same snapshot again, or another one
)

BROKERS: Final = _table(
    **_SNAPSHOT_KEY,
    broker_id=INT,
    alive=BOOLEAN,
    shutting_down=BOOLEAN,
    fenced=BOOLEAN,
    broker_epoch=LONG,
    rack=STRING,
    endpoints=STRING,
    log_dirs=STRINGS,
)

TOPICS: Final = _table(**_SNAPSHOT_KEY, topic=STRING, topic_id=STRING, queued_for_deletion=BOOLEAN)

PARTITIONS: Final = _table(
    **_SNAPSHOT_KEY,
    **_PARTITION,
    replicas=IDS,
    adding=IDS,
    removing=IDS,
    offline_dirs=IDS,  # brokers whose log directory of this replica is offline
    has_state=BOOLEAN,  # false: the partition never had a leader
    leader=INT,
    leader_epoch=INT,
    isr=IDS,
    partition_epoch=INT,
    controller_epoch=INT,
    recovery=INT,
    elr=IDS,
    last_known_elr=IDS,
    directories=STRINGS,
)

CONFIGS: Final = _table(
    **_SNAPSHOT_KEY,
    scope=STRING,  # topic, broker, cluster (dynamic default) or static (properties file)
    name=STRING,  # topic name or broker id; null for cluster and static
    key=STRING,
    value=STRING,
)

PROVENANCE: Final = _table(**_SNAPSHOT_KEY, source=STRING, position=STRING)

QUARANTINE: Final = _table(
    source=STRING, position=STRING, cluster=STRING, snapshot_id=STRING, problems=STRINGS
)

SNAPSHOT_TABLES: Final[dict[str, T.StructType]] = {
    "snapshots": SNAPSHOTS,
    "brokers": BROKERS,
    "topics": TOPICS,
    "partitions": PARTITIONS,
    "configs": CONFIGS,
    "provenance": PROVENANCE,
}

# --- What a replay writes --------------------------------------------------------------------

# Only the quorum controller has these; elsewhere they are null, and stand last.
_KRAFT_PARTITION: Final[dict[str, T.DataType]] = {
    "elr": IDS,
    "last_known_elr": IDS,
    "directories": STRINGS,
}
_BROKER_REGISTRATION: Final[dict[str, T.DataType]] = {
    "broker_id": INT,
    "broker_epoch": LONG,
    "fenced": BOOLEAN,
    "shutting_down": BOOLEAN,
    "rack": STRING,
    "log_dirs": STRINGS,
}

PARTITION_STATES: Final = _table(
    **_REPLAY_KEY,
    **_PARTITION,
    state_before=STRING,
    state_after=STRING,
    replicas=IDS,
    adding=IDS,
    removing=IDS,
    leader_before=INT,
    leader=INT,
    leader_epoch_before=INT,
    leader_epoch=INT,
    isr_before=IDS,
    isr=IDS,
    partition_epoch=INT,
    controller_epoch=INT,
    recovery=INT,
    outcome=STRING,
    reason=STRING,
    **_KRAFT_PARTITION,
)

REPLICA_STATES: Final = _table(
    **_REPLAY_KEY, **_PARTITION, replica=INT, state_before=STRING, state_after=STRING
)

TRANSITIONS: Final = _table(
    **_REPLAY_KEY,
    **_EVENT,
    machine=STRING,
    **_PARTITION,
    replica=INT,
    from_state=STRING,
    to_state=STRING,
    result=STRING,
    error=STRING,
    leader=INT,
    isr=IDS,
    leader_epoch=INT,
)

METADATA_WRITES: Final = _table(
    **_REPLAY_KEY,
    seq=INT,
    **_EVENT,
    kind=STRING,
    **_PARTITION,
    leader=INT,
    leader_epoch=INT,
    isr=IDS,
    partition_epoch=INT,
    controller_epoch=INT,
    recovery=INT,
    replicas=IDS,
    adding=IDS,
    removing=IDS,
    record=STRING,
    version=INT,
    changed=STRINGS,  # names of the fields the record carries
    **_KRAFT_PARTITION,
    **_BROKER_REGISTRATION,
)

REQUESTS: Final = _table(
    **_REPLAY_KEY,
    **_EVENT,
    request=STRING,
    broker_id=INT,
    broker_epoch=LONG,
    controller_id=INT,
    controller_epoch=INT,
    version=INT,
    partition_count=LONG,
    bytes=LONG,
)

REQUEST_PARTITIONS: Final = _table(
    **_REPLAY_KEY,
    **_EVENT,
    request=STRING,
    **_PARTITION,
    recipients=IDS,  # null for UPDATE_METADATA: every receiver of that step
    leader=INT,
    leader_epoch=INT,
    isr=IDS,
    partition_epoch=INT,
    controller_epoch=INT,
    replicas=IDS,
    adding=IDS,
    removing=IDS,
    offline_replicas=IDS,
    is_new=BOOLEAN,
    delete_partition=BOOLEAN,
    recovery=INT,
)

CANDIDATE: Final = _table(replica=INT, verdict=STRING)

DECISIONS: Final = _table(
    **_REPLAY_KEY,
    **_EVENT,
    **_PARTITION,
    strategy=STRING,
    candidates=T.ArrayType(CANDIDATE, containsNull=True),
    chosen=INT,
    clean=BOOLEAN,
    unclean_allowed_by=STRING,
    reason=STRING,
)

EVENT_RESULTS: Final = _table(
    **_REPLAY_KEY, event=INT, event_type=STRING, **_PARTITION, error=STRING, broker_id=INT
)

BROKER_STATES: Final = _table(**_REPLAY_KEY, **_BROKER_REGISTRATION)

REPLAY_TABLES: Final[dict[str, T.StructType]] = {
    "partition_states": PARTITION_STATES,
    "replica_states": REPLICA_STATES,
    "transitions": TRANSITIONS,
    "metadata_writes": METADATA_WRITES,
    "requests": REQUESTS,
    "request_partitions": REQUEST_PARTITIONS,
    "decisions": DECISIONS,
    "event_results": EVENT_RESULTS,
    "broker_states": BROKER_STATES,
}

# --- What the questions answer ---------------------------------------------------------------

_COUNTS: Final = (
    "partitions",
    "offline",
    "under_min_isr",
    "at_min_isr",
    "acks_all_blocked",
    "never_led",
)
RISKS: Final = (
    "rf1_offline",
    "unavailable",
    "full_acks_produce_unavailable",
    "acks1_data_loss",
)
_SENT: Final[dict[str, T.DataType]] = {
    f"{request}_{what}": LONG
    for what in ("requests", "bytes")
    for request in ("leader_and_isr", "update_metadata", "stop_replica")
}

IMPACT: Final = _table(
    **_REPLAY_KEY,
    brokers=IDS,  # the failed ones, ascending
    **{name: LONG for count in _COUNTS for name in (count, f"{count}_before")},
    unclean=LONG,
    leaders_moved=LONG,
    leader_skew_before=DOUBLE,
    leader_skew=DOUBLE,
    replica_skew_before=DOUBLE,
    replica_skew=DOUBLE,
    requests=LONG,
    busiest_broker=INT,
    busiest_bytes=LONG,
    verdict=STRING,
    reason=STRING,
    **dict.fromkeys(RISKS, LONG),
    newly_at_min_isr=LONG,
    internal_topics=STRINGS,  # those of them a risk comes true for
)

IMPACT_PARTITIONS: Final = _table(
    **_REPLAY_KEY,
    **_PARTITION,
    leader_before=INT,
    leader=INT,
    isr_before=IDS,
    isr=IDS,
    state_before=STRING,
    state_after=STRING,
    min_isr=INT,
    risks=STRINGS,
    reason=STRING,
)

IMPACT_BROKERS: Final = _table(
    **_REPLAY_KEY,
    broker_id=INT,
    rack=STRING,
    leaders_before=LONG,
    leaders=LONG,
    replicas=LONG,
    followers_before=LONG,
    followers=LONG,
    **_SENT,
)

CUT_SETS: Final = _table(
    **_SNAPSHOT_KEY,
    risk=STRING,
    k=INT,
    brokers=IDS,
    partitions=LONG,  # those for which this very set is minimal
    topics=LONG,
    weight=DOUBLE,
    units=STRINGS,  # racks or the like where these were asked for; k counts them
)

TOPIC_CUT_SETS: Final = _table(
    **_SNAPSHOT_KEY,
    topic=STRING,
    risk=STRING,
    k=INT,
    brokers=IDS,
    partitions=LONG,
    weight=DOUBLE,
    units=STRINGS,
)

CUT_TOTALS: Final = _table(
    **_SNAPSHOT_KEY,
    risk=STRING,
    brokers=LONG,  # that can be lost
    partitions=LONG,
    already=LONG,  # of these, the ones the risk has come true for
    sets=LONG,  # minimal ones of every size
    smallest=INT,
    expected_partitions=DOUBLE,
    expected_weight=DOUBLE,
    any_low=DOUBLE,
    any_high=DOUBLE,
)

RESTART_ROUNDS: Final = _table(
    **_SNAPSHOT_KEY,
    round=INT,
    brokers=IDS,
    partitions=LONG,  # those with an in-sync replica on these brokers
    at_min_isr=LONG,  # of these, the ones with nothing to spare while the round is down
    spare=INT,  # what the tightest one has to spare; it follows
    **_PARTITION,
    in_sync=INT,
    min_isr=INT,
    down=INT,  # of its in-sync replicas
)

RESTART_MOVES: Final = _table(
    **_SNAPSHOT_KEY,
    **_PARTITION,
    from_broker=INT,
    to_broker=INT,
    replicas=IDS,  # after the move
)

RECOVERY: Final = _table(
    **_SNAPSHOT_KEY,
    **_PARTITION,
    brokers=IDS,  # any one of which gives a clean leader
    unclean_choice=INT,
    records_at_risk_reason=STRING,
    condition=STRING,  # on which they do; null: none
)

EVENTS: Final = _table(
    **_SNAPSHOT_KEY,  # the later of the two snapshots
    seq=INT,
    event_type=STRING,
    event=STRING,  # the scenario event as JSON text
    evidence=STRING,
)

FINDINGS: Final = _table(
    **_SNAPSHOT_KEY,
    taken_at=TIMESTAMP,
    rule=STRING,
    severity=STRING,
    **_PARTITION,
    broker_id=INT,
    evidence=STRING,
    silenced=STRING,  # the reason it is not counted; null: it counts
    rack=STRING,  # of the broker
)

CHANGES: Final = _table(
    **_SNAPSHOT_KEY,  # the later of the two snapshots
    **_PARTITION,
    field=STRING,
    before=STRING,
    recorded=STRING,
    reason=STRING,
    events=IDS,  # the seq of the events that made the change
)

DIVERGENCES: Final = _table(
    **_SNAPSHOT_KEY,  # the later of the two snapshots
    **_PARTITION,
    field=STRING,
    predicted=STRING,
    recorded=STRING,
    reason=STRING,
)

DIFFERENCES: Final = _table(
    **_REPLAY_KEY,
    **_PARTITION,
    field=STRING,
    controller_a=STRING,
    value_a=STRING,
    controller_b=STRING,
    value_b=STRING,
    rule=STRING,  # that makes the difference
    event=INT,  # after which the two differ for the first time
    event_type=STRING,
)

EXPOSURE: Final = _table(
    cluster=STRING,
    **_PARTITION,
    rule=STRING,
    since=TIMESTAMP,
    until=TIMESTAMP,  # null: still so in the newest snapshot
    snapshots=LONG,
    first_snapshot=STRING,
    last_snapshot=STRING,
    broker_id=INT,  # of a condition of a broker, which has no partition
)

# Which snapshots are judged, and in which run what was found stands: the newest run that lists a
# cluster says what holds for it.
AUDITED: Final = _table(
    **_SNAPSHOT_KEY,
    taken_at=TIMESTAMP,
    controller_epoch=INT,
    complete=BOOLEAN,
    content_digest=STRING,
    # Content digests of the snapshots it was judged with, the nearest first; one of all the others
    # of a burst together.
    previous=STRINGS,
    rules=STRING,
    findings_run=STRING,
    errors=LONG,
    warnings=LONG,
    infos=LONG,
    silenced=LONG,
    brokers_up=LONG,  # null where the snapshot is not complete
)

QUESTION_TABLES: Final[dict[str, T.StructType]] = {
    "impact": IMPACT,
    "impact_partitions": IMPACT_PARTITIONS,
    "impact_brokers": IMPACT_BROKERS,
    "cut_sets": CUT_SETS,
    "topic_cut_sets": TOPIC_CUT_SETS,
    "cut_totals": CUT_TOTALS,
    "recovery": RECOVERY,
    "restart_rounds": RESTART_ROUNDS,
    "restart_moves": RESTART_MOVES,
    "events": EVENTS,
    "findings": FINDINGS,
    "changes": CHANGES,
    "divergences": DIVERGENCES,
    "differences": DIFFERENCES,
    "exposure": EXPOSURE,
    "audited": AUDITED,
}

# --- Publishing ------------------------------------------------------------------------------

RUNS: Final = _table(
    run_id=STRING,
    job=STRING,
    code_version=STRING,
    schema_version=INT,
    input_digest=STRING,
    config_digest=STRING,
    spark_version=STRING,
    started=TIMESTAMP,
    ended=TIMESTAMP,
    row_counts=T.MapType(STRING, LONG, valueContainsNull=True),
    verdict=STRING,
)


TABLES: Final[dict[str, T.StructType]] = {
    **SNAPSHOT_TABLES,
    **REPLAY_TABLES,
    **QUESTION_TABLES,
    "quarantine": QUARANTINE,
}


def conform(df: DataFrame, schema: T.StructType) -> DataFrame:
    """Project *df* onto *schema*, or raise naming every column that differs."""
    actual = {field.name: field.dataType.simpleString() for field in df.schema}
    wrong = [
        f"{field.name}: expected {field.dataType.simpleString()}, "
        f"found {actual.get(field.name, 'nothing')}"
        for field in schema
        if actual.get(field.name) != field.dataType.simpleString()
    ]
    if wrong:
        raise SchemaMismatchError("a table does not have the columns it should", wrong)
    # As text: of every column that select() is given Spark makes an object first, in several calls.
    return df if df.columns == schema.names else df.selectExpr(*schema.names)
