"""Writes KRaft metadata logs and checkpoints, for states no recorded cluster was ever in.

The encoding is Kafka's: on the records of a real log it gives the real log's bytes again (a test
holds it to that), so what it writes besides can be trusted.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterable, Sequence
from typing import Any

from understudy.sources import kraft_records as K
from understudy.sources.checksums import crc32c

Value = bool | int | str | list[Any] | None
API_KEYS = {schema.name: key for key, schema in K.SCHEMAS.items()}
CONTROL_TYPES = {"LEADER_CHANGE": 2, "SNAPSHOT_HEADER": 3, "SNAPSHOT_FOOTER": 4}
TIME = 1_700_000_000_000


def record(kind: str, version: int = 0, **data: Value) -> tuple[None, bytes]:
    """Key and value of a data record."""
    fields = K.SCHEMAS_BY_NAME[kind].at(version)
    head = unsigned_varint(1) + unsigned_varint(API_KEYS[kind]) + unsigned_varint(version)
    return None, head + _structure(fields, data)


def control(kind: str, **data: int) -> tuple[bytes, bytes]:
    """Key and value of a control record, without the voters that nobody reads."""
    key = struct.pack(">hh", 0, CONTROL_TYPES[kind])
    body = b""
    if kind == "LEADER_CHANGE":
        body = struct.pack(">i", data["leaderId"]) + b"\x01\x01"
    elif kind == "SNAPSHOT_HEADER":
        body = struct.pack(">q", data["lastContainedLogTimestamp"])
    return key, struct.pack(">h", 0) + body + b"\x00"


def batch(
    base: int,
    records: Sequence[tuple[bytes | None, bytes | None]],
    *,
    epoch: int = 1,
    time: int = TIME,
    attributes: int | None = None,
) -> bytes:
    """One batch; control records make a control batch."""
    body = b"".join(_record(delta, key, value) for delta, (key, value) in enumerate(records))
    flags = attributes
    if flags is None:
        flags = 0x20 if records and records[0][0] is not None else 0
    covered = struct.pack(
        ">hiqqqhii", flags, len(records) - 1, time, time, -1, -1, -1, len(records)
    )
    covered += body
    head = struct.pack(">iBI", epoch, 2, crc32c(covered))
    return struct.pack(">qi", base, len(head) + len(covered)) + head + covered


def log(
    *batches: Sequence[tuple[bytes | None, bytes | None]], base: int = 0, epoch: int = 1
) -> bytes:
    """Batches one after the other, the first at offset *base*, a second apart in time."""
    written = b""
    for place, records in enumerate(batches):
        written += batch(base, records, epoch=epoch, time=TIME + 1000 * place)
        base += len(records)
    return written


def checkpoint(
    *records: tuple[bytes | None, bytes | None], epoch: int = 1, footer: bool = True
) -> bytes:
    """A checkpoint: header, records, footer."""
    header = [control("SNAPSHOT_HEADER", lastContainedLogTimestamp=TIME)]
    ends = [[control("SNAPSHOT_FOOTER")]] if footer else []
    return log(header, *([records] if records else []), *ends, epoch=epoch)


def unsigned_varint(value: int) -> bytes:
    written = bytearray()
    while value > 0x7F:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    written.append(value)
    return bytes(written)


def varint(value: int) -> bytes:
    return unsigned_varint((value << 1) ^ (value >> 63))


def _record(delta: int, key: bytes | None, value: bytes | None) -> bytes:
    body = b"\x00" + varint(0) + varint(delta) + _bytes(key) + _bytes(value) + varint(0)
    return varint(len(body)) + body


def _bytes(value: bytes | None) -> bytes:
    return varint(-1) if value is None else varint(len(value)) + value


def _structure(fields: Iterable[K.Field], data: dict[str, Value]) -> bytes:
    fields = tuple(fields)
    plain = b"".join(_value(f.name, data[f.name]) for f in fields if f.tag is None)
    tagged = sorted((f for f in fields if f.tag is not None and f.name in data), key=_tag)
    written = plain + unsigned_varint(len(tagged))
    for each in tagged:
        value = _value(each.name, data[each.name])
        written += unsigned_varint(_tag(each)) + unsigned_varint(len(value)) + value
    return written


def _tag(field: K.Field) -> int:
    return -1 if field.tag is None else field.tag


_FIXED = {
    "partitionId": ">i",
    "brokerId": ">i",
    "controllerId": ">i",
    "leader": ">i",
    "leaderEpoch": ">i",
    "partitionEpoch": ">i",
    "id": ">i",
    "brokerEpoch": ">q",
    "epoch": ">q",
    "resourceType": ">b",
    "leaderRecoveryState": ">b",
    "inControlledShutdown": ">b",
    "fenced": ">b",
    "zkMigrationState": ">b",
    "featureLevel": ">h",
    "minSupportedVersion": ">h",
    "maxSupportedVersion": ">h",
    "securityProtocol": ">h",
    "port": ">H",
}
_STRUCTURES = {
    "endPoints": ("name", "host", "port", "securityProtocol"),
    "features": ("name", "minSupportedVersion", "maxSupportedVersion"),
}


def _value(name: str, value: Value) -> bytes:
    if isinstance(value, bool):
        return bytes([value])
    if name in _FIXED and isinstance(value, int):
        return struct.pack(_FIXED[name], value)
    if isinstance(value, str):
        if name in ("topicId", "incarnationId"):
            return uuid(value)
        text = value.encode()
        return unsigned_varint(len(text) + 1) + text
    if isinstance(value, list):
        return unsigned_varint(len(value) + 1) + b"".join(_item(name, each) for each in value)
    return unsigned_varint(0)


def _item(name: str, value: int | str | dict[str, Value]) -> bytes:
    if isinstance(value, str):
        return uuid(value)
    if isinstance(value, dict):
        return b"".join(_value(each, value[each]) for each in _STRUCTURES[name]) + b"\x00"
    return struct.pack(">i", value)


def uuid(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "==")
