"""The records of KRaft's metadata log: their fields by type and version, decoded from bytes.

A decoded record looks as ``kafka-dump-log`` prints it: the type in upper snake case, the fields
under the schema's names in lower camel case, a tagged field only where it was written. So the log
and its dump end in the same records. Plain Python: this runs on executors.
"""

from __future__ import annotations

import struct
from binascii import b2a_base64
from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from typing import Any, Final, NamedTuple

from understudy.errors import BadInputError
from understudy.sources.record_batches import Batch, Malformed, Raw, records, unsigned_varint

FRAME_VERSION: Final = 1

Data = dict[str, Any]
Reader = Callable[[bytes, int], tuple[Any, int]]


class Record(NamedTuple):
    """One record of the metadata log."""

    offset: int
    time: int
    type: str
    version: int
    data: Data


# --- Primitive types ---------------------------------------------------------------------------


def _fixed(form: str) -> Reader:
    unpack, size = struct.Struct(form).unpack_from, struct.calcsize(form)

    def read(data: bytes, at: int) -> tuple[Any, int]:
        return unpack(data, at)[0], at + size

    return read


def _uuid(data: bytes, at: int) -> tuple[str, int]:
    return uuid_text(data[at : at + 16]), at + 16


@lru_cache(maxsize=1 << 16)  # a few topics and directories, named over and over
def uuid_text(value: bytes) -> str:
    """Kafka's text of an id: base64url without padding."""
    if len(value) != 16:  # noqa: PLR2004
        raise Malformed("it ends too early")
    return b2a_base64(value, newline=False)[:22].translate(_URL_SAFE).decode("ascii")


_URL_SAFE: Final = bytes.maketrans(b"+/", b"-_")


def _uuids(data: bytes, at: int) -> tuple[list[str] | None, int]:
    count, at = unsigned_varint(data, at)
    if count == 0:
        return None, at
    end = at + 16 * (count - 1)
    if end > len(data):
        raise Malformed("it ends too early")
    return [uuid_text(data[each : each + 16]) for each in range(at, end, 16)], end


def _slice(data: bytes, at: int, size: int) -> bytes:
    found = data[at : at + size]
    if len(found) != size:
        raise Malformed("it ends too early")
    return found


def _text(data: bytes, at: int) -> tuple[str | None, int]:
    length, at = unsigned_varint(data, at)
    if length == 0:
        return None, at
    return _slice(data, at, length - 1).decode("utf-8"), at + length - 1


@cache
def _int32s_of(count: int) -> Callable[[bytes, int], tuple[Any, ...]]:
    return struct.Struct(f">{count}i").unpack_from


def _int32s(data: bytes, at: int) -> tuple[list[int] | None, int]:
    if data[at] == 1:  # one less
        return [], at + 1
    count, at = unsigned_varint(data, at)
    if count == 0:
        return None, at
    end = at + 4 * (count - 1)
    if end > len(data):
        raise Malformed("it ends too early")
    return list(_int32s_of(count - 1)(data, at)), end


def _array(item: Reader) -> Reader:
    def read(data: bytes, at: int) -> tuple[list[Any] | None, int]:
        count, at = unsigned_varint(data, at)
        if count == 0:
            return None, at
        found = []
        for _ in range(count - 1):  # an overlong count runs out of bytes at once
            each, at = item(data, at)
            found.append(each)
        return found, at

    return read


class Field(NamedTuple):
    name: str
    read: Reader
    since: int = 0
    tag: int | None = None


def _structure(fields: tuple[Field, ...]) -> Reader:
    """A flexible structure: its fields in order, then the tagged ones."""
    plain = tuple((field.name, field.read) for field in fields if field.tag is None)
    tagged = {field.tag: (field.name, field.read) for field in fields if field.tag is not None}

    def read(data: bytes, at: int) -> tuple[Data, int]:
        found: Data = {}
        for name, of in plain:
            found[name], at = of(data, at)
        count, at = unsigned_varint(data, at)
        if not count:
            return found, at
        for _ in range(count):
            tag, at = unsigned_varint(data, at)
            size, at = unsigned_varint(data, at)
            end = at + size
            if end > len(data):
                raise Malformed("it ends too early")
            if tag in tagged:
                name, of = tagged[tag]
                found[name], at = of(data, at)
                if at != end:
                    raise Malformed(f"the field {name} has another length than it says")
            at = end
        return found, at

    return read


_int8, _int16, _int32, _int64 = _fixed(">b"), _fixed(">h"), _fixed(">i"), _fixed(">q")
_uint16, _bool = _fixed(">H"), _fixed(">?")

_END_POINT: Final = (
    Field("name", _text),
    Field("host", _text),
    Field("port", _uint16),
    Field("securityProtocol", _int16),
)
_FEATURE: Final = (
    Field("name", _text),
    Field("minSupportedVersion", _int16),
    Field("maxSupportedVersion", _int16),
)
_end_points, _features = _array(_structure(_END_POINT)), _array(_structure(_FEATURE))


# --- The same fields as JSON, which is how a dump has them ---------------------------------------


def _is_int(bits: int, *, signed: bool = True) -> Callable[[Any], bool]:
    low, high = (-(1 << (bits - 1)), 1 << (bits - 1)) if signed else (0, 1 << bits)
    return lambda value: type(value) is int and low <= value < high


def _is_text(value: Any) -> bool:  # noqa: ANN401 - whatever stood in the JSON
    return value is None or isinstance(value, str)


def _are(check: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or (isinstance(value, list) and all(map(check, value)))


def _is_structure(fields: tuple[Field, ...]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, dict) and wrong_field(fields, value) is None


def _is_uuid(value: Any) -> bool:  # noqa: ANN401
    return isinstance(value, str)


def wrong_field(fields: tuple[Field, ...], data: Data) -> str | None:
    """The first field that is missing or has no value of its type."""
    for field in fields:
        if field.name in data:
            if not _CHECKS[field.read](data[field.name]):
                return field.name
        elif field.tag is None:
            return field.name
    return None


_CHECKS: Final[Mapping[Reader, Callable[[Any], bool]]] = {
    _int8: _is_int(8),
    _int16: _is_int(16),
    _int32: _is_int(32),
    _int64: _is_int(64),
    _uint16: _is_int(16, signed=False),
    _bool: lambda value: isinstance(value, bool),
    _text: _is_text,
    _uuid: _is_uuid,
    _uuids: _are(_is_uuid),
    _int32s: _are(_is_int(32)),
    _end_points: _are(_is_structure(_END_POINT)),
    _features: _are(_is_structure(_FEATURE)),
}


# --- Messages ----------------------------------------------------------------------------------


class Schema(NamedTuple):
    """A type of record: its name, the newest version known, and its fields in wire order."""

    name: str
    newest: int
    fields: tuple[Field, ...]

    def at(self, version: int) -> tuple[Field, ...]:
        return tuple(field for field in self.fields if version >= field.since)


SCHEMAS: Final[Mapping[int, Schema]] = {
    0: Schema(
        "REGISTER_BROKER_RECORD",
        4,
        (
            Field("brokerId", _int32),
            Field("isMigratingZkBroker", _bool, since=2),
            Field("incarnationId", _uuid),
            Field("brokerEpoch", _int64),
            Field("endPoints", _end_points),
            Field("features", _features),
            Field("rack", _text),
            Field("fenced", _bool),
            Field("inControlledShutdown", _bool, since=1),
            Field("logDirs", _uuids, since=3, tag=0),
            Field("cordonedLogDirs", _uuids, since=4, tag=1),
        ),
    ),
    1: Schema(
        "UNREGISTER_BROKER_RECORD", 0, (Field("brokerId", _int32), Field("brokerEpoch", _int64))
    ),
    2: Schema("TOPIC_RECORD", 0, (Field("name", _text), Field("topicId", _uuid))),
    3: Schema(
        "PARTITION_RECORD",
        2,
        (
            Field("partitionId", _int32),
            Field("topicId", _uuid),
            Field("replicas", _int32s),
            Field("isr", _int32s),
            Field("removingReplicas", _int32s),
            Field("addingReplicas", _int32s),
            Field("leader", _int32),
            Field("leaderRecoveryState", _int8, tag=0),
            Field("leaderEpoch", _int32),
            Field("partitionEpoch", _int32),
            Field("directories", _uuids, since=1),
            Field("eligibleLeaderReplicas", _int32s, since=2, tag=1),
            Field("lastKnownElr", _int32s, since=2, tag=2),
        ),
    ),
    4: Schema(
        "CONFIG_RECORD",
        0,
        (
            Field("resourceType", _int8),
            Field("resourceName", _text),
            Field("name", _text),
            Field("value", _text),
        ),
    ),
    5: Schema(
        "PARTITION_CHANGE_RECORD",
        2,
        (
            Field("partitionId", _int32),
            Field("topicId", _uuid),
            Field("isr", _int32s, tag=0),
            Field("leader", _int32, tag=1),
            Field("replicas", _int32s, tag=2),
            Field("removingReplicas", _int32s, tag=3),
            Field("addingReplicas", _int32s, tag=4),
            Field("leaderRecoveryState", _int8, tag=5),
            Field("eligibleLeaderReplicas", _int32s, since=2, tag=6),
            Field("lastKnownElr", _int32s, since=2, tag=7),
            Field("directories", _uuids, since=1, tag=8),
        ),
    ),
    7: Schema("FENCE_BROKER_RECORD", 0, (Field("id", _int32), Field("epoch", _int64))),
    8: Schema("UNFENCE_BROKER_RECORD", 0, (Field("id", _int32), Field("epoch", _int64))),
    9: Schema("REMOVE_TOPIC_RECORD", 0, (Field("topicId", _uuid),)),
    12: Schema("FEATURE_LEVEL_RECORD", 0, (Field("name", _text), Field("featureLevel", _int16))),
    17: Schema(
        "BROKER_REGISTRATION_CHANGE_RECORD",
        3,
        (
            Field("brokerId", _int32),
            Field("brokerEpoch", _int64),
            Field("fenced", _int8, tag=0),
            Field("inControlledShutdown", _int8, since=1, tag=1),
            Field("logDirs", _uuids, since=2, tag=2),
            Field("cordonedLogDirs", _uuids, since=3, tag=3),
        ),
    ),
    20: Schema("NO_OP_RECORD", 0, ()),
    21: Schema("ZK_MIGRATION_STATE_RECORD", 0, (Field("zkMigrationState", _int8),)),
    23: Schema("BEGIN_TRANSACTION_RECORD", 0, (Field("name", _text, tag=0),)),
    24: Schema("END_TRANSACTION_RECORD", 0, ()),
    25: Schema("ABORT_TRANSACTION_RECORD", 0, (Field("reason", _text, tag=0),)),
    27: Schema(
        "REGISTER_CONTROLLER_RECORD",
        0,
        (
            Field("controllerId", _int32),
            Field("incarnationId", _uuid),
            Field("zkMigrationReady", _bool),
            Field("endPoints", _end_points),
            Field("features", _features),
        ),
    ),
    28: Schema("CLEAR_ELR_RECORD", 0, (Field("topicName", _text),)),
}

# Known by name and passed over: no decision depends on them, and some hold secrets.
PASSED_OVER: Final[Mapping[int, str]] = {
    10: "DELEGATION_TOKEN_RECORD",
    11: "USER_SCRAM_CREDENTIAL_RECORD",
    14: "CLIENT_QUOTA_RECORD",
    15: "PRODUCER_IDS_RECORD",
    18: "ACCESS_CONTROL_ENTRY_RECORD",
    19: "REMOVE_ACCESS_CONTROL_ENTRY_RECORD",
    22: "REMOVE_USER_SCRAM_CREDENTIAL_RECORD",
    26: "REMOVE_DELEGATION_TOKEN_RECORD",
    29: "UNREGISTER_CONTROLLER_RECORD",
}

SCHEMAS_BY_NAME: Final[Mapping[str, Schema]] = {schema.name: schema for schema in SCHEMAS.values()}
PASSED_OVER_NAMES: Final = frozenset(PASSED_OVER.values())

LEADER_CHANGE: Final = "LEADER_CHANGE"
SNAPSHOT_HEADER: Final = "SNAPSHOT_HEADER"
SNAPSHOT_FOOTER: Final = "SNAPSHOT_FOOTER"
UNREAD_CONTROL: Final = "CONTROL"  # some control record: a dump can leave out which

# Of the voters and of KRaft's own version nothing is asked, so they are named and not decoded.
_CONTROL: Final[Mapping[int, Schema]] = {
    2: Schema(LEADER_CHANGE, 1, (Field("version", _int16), Field("leaderId", _int32))),
    3: Schema(
        SNAPSHOT_HEADER, 0, (Field("version", _int16), Field("lastContainedLogTimestamp", _int64))
    ),
    4: Schema(SNAPSHOT_FOOTER, 0, (Field("version", _int16),)),
    5: Schema("KRAFT_VERSION", 0, (Field("version", _int16),)),
    6: Schema("KRAFT_VOTERS", 0, (Field("version", _int16),)),
}
_CONTROL_KEY: Final = struct.Struct(">hh")


_HEAD_BYTES: Final = 3  # known types and versions are numbers of one byte
_MOST_HEAD_BYTES: Final = 30


def decode(data: bytes, batch: Batch, name: str) -> list[Record]:
    """The records of one batch of the file *name*, decoded."""
    of = _control_record if batch.control else _data_record
    found = []
    for raw in records(data, batch, name):
        try:
            found.append(of(raw))
        except Malformed as error:
            why = str(error)
        except UnicodeDecodeError:
            why = "a text in it is not UTF-8"
        except (ValueError, IndexError, struct.error):
            why = "it ends too early"
        else:
            continue
        raise BadInputError(
            f"{name}, byte {batch.position}: the record at offset {raw.offset} "
            f"cannot be decoded: {why}"
        )
    return found


def _data_record(raw: Raw) -> Record:
    value = raw.value
    if value is None:
        raise Malformed("it has no value")
    head = value[:_HEAD_BYTES]
    kind, version, read, at = _head(head if head.isascii() else value[:_MOST_HEAD_BYTES])
    if read is None:
        return Record(raw.offset, raw.time, kind, version, {})
    data, at = read(value, at)
    if at != len(value):
        raise Malformed(f"{len(value) - at} bytes are left over")
    return Record(raw.offset, raw.time, kind, version, data)


@lru_cache(maxsize=1 << 10)  # there are a handful of them
def _head(value: bytes) -> tuple[str, int, Reader | None, int]:
    """The type and version a record begins with, and how and from where on to read it."""
    frame, at = unsigned_varint(value, 0)
    if frame != FRAME_VERSION:
        raise Malformed(f"its frame version is {frame}, not {FRAME_VERSION}")
    api_key, at = unsigned_varint(value, at)
    version, at = unsigned_varint(value, at)
    if api_key in PASSED_OVER:
        return PASSED_OVER[api_key], version, None, at
    check_known(api_key, version)
    return SCHEMAS[api_key].name, version, _structure(SCHEMAS[api_key].at(version)), at


def check_known(api_key: int, version: int) -> None:
    if api_key not in SCHEMAS:
        raise Malformed(f"record type {api_key} is not known, so what it changes is not either")
    schema = SCHEMAS[api_key]
    if version > schema.newest:
        raise Malformed(f"version {version} of {schema.name} is not known, only to {schema.newest}")


def _control_record(raw: Raw) -> Record:
    if raw.key is None or raw.value is None:
        raise Malformed("a control record has a key and a value")
    _, kind = _CONTROL_KEY.unpack_from(raw.key)
    if kind not in _CONTROL:
        raise Malformed(f"control record type {kind} does not belong into this log")
    schema = _CONTROL[kind]
    data: Data = {}
    at = 0
    for field in schema.fields:
        data[field.name], at = field.read(raw.value, at)
    return Record(raw.offset, raw.time, schema.name, data.pop("version"), data)


def from_json(offset: int, time: int, payload: Data) -> Record:
    """A record as a dump prints it; raises Malformed for what is none."""
    kind, version, data = payload.get("type"), payload.get("version"), payload.get("data")
    if type(version) is not int or not isinstance(data, dict):
        raise Malformed("the payload has no version or no data")
    if kind in PASSED_OVER_NAMES:
        return Record(offset, time, str(kind), version, {})
    schema = SCHEMAS_BY_NAME.get(str(kind))
    if schema is None or not 0 <= version <= schema.newest:
        raise Malformed(f"version {version} of record type {kind} is not known")
    if "lastKnownELR" in data:  # 3.7's spelling
        data["lastKnownElr"] = data.pop("lastKnownELR")
    wrong = wrong_field(schema.at(version), data)
    if wrong:
        raise Malformed(f"the field {wrong} of {schema.name} is missing or of another type")
    return Record(offset, time, schema.name, version, data)
