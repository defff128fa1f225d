"""ZooKeeper's ``log.<zxid>``: every transaction, in order, each with its own checksum.

A log is written ahead and in place: files are filled with zeros in advance, and a server that dies
leaves a last record that is torn. That is a normal end. Anything unreadable with a good record
after it is not.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from understudy.errors import BadInputError
from understudy.sources.zookeeper.jute import INT, Cursor, refuse

MAGIC: Final = b"ZKLG"
VERSION: Final = 2
NAME: Final = re.compile(r"log\.([0-9a-f]{1,16})", re.ASCII)

_FILE_HEADER: Final = struct.Struct(">4siq")
_RECORD_HEADER: Final = struct.Struct(">qi")
_END_OF_RECORD: Final = b"B"
_HEADER: Final = struct.Struct(">qiqqi")
_DIGEST: Final = struct.Struct(">iq")

FIRST_TIME_AT: Final = _FILE_HEADER.size + _RECORD_HEADER.size + struct.calcsize(">qiq")
"""Where a file has the time of its first transaction."""

_CREATE, _DELETE, _SET_DATA, _SET_ACL, _CHECK, _MULTI = 1, 2, 5, 7, 13, 14
_CREATE2, _RECONFIG, _CREATE_CONTAINER, _DELETE_CONTAINER, _CREATE_TTL = 15, 16, 19, 20, 21
_ERROR, _CREATE_SESSION, _CLOSE_SESSION = -1, -10, -11
_CREATES: Final = frozenset((_CREATE, _CREATE2))
_DELETES: Final = frozenset((_DELETE, _DELETE_CONTAINER))
_SETS: Final = frozenset((_SET_DATA, _RECONFIG))

_CONTAINER_OWNER: Final = -(2**63)
_TTL_OWNER: Final = -(2**56)  # 0xFF in the top byte, the time to live below it


@dataclass(frozen=True, slots=True)
class Create:
    """A new znode; *owner* is the session of an ephemeral one, else 0."""

    path: bytes
    data: bytes | None
    owner: int
    parent_cversion: int


@dataclass(frozen=True, slots=True)
class SetData:
    """New data, and the version the znode has from now on."""

    path: bytes
    data: bytes | None
    version: int


@dataclass(frozen=True, slots=True)
class SetAcl:
    """New access rights, of which only the counter matters here."""

    path: bytes
    version: int


@dataclass(frozen=True, slots=True)
class Delete:
    """A znode that goes."""

    path: bytes


@dataclass(frozen=True, slots=True)
class CloseSession:
    """All ephemeral znodes of the session go; None where the record does not list them."""

    paths: tuple[bytes, ...] | None


Operation = Create | SetData | SetAcl | Delete | CloseSession


@dataclass(frozen=True, slots=True)
class Transaction:
    """One record of a log: what it does to the tree, which may be nothing."""

    zxid: int
    time: int
    """Milliseconds since 1970."""
    session: int
    operations: tuple[Operation, ...]
    digest: tuple[int, int] | None
    """Version and value of the sum over all znodes after it (3.6 and newer)."""
    position: int
    """Where the record begins in its file."""


def first_zxid_of(name: str) -> int | None:
    """The zxid in a log's file name: that of its first transaction."""
    found = NAME.fullmatch(name.rpartition("/")[2])
    return int(found[1], 16) if found else None


def is_log(name: str) -> bool:
    """Whether a transaction log is called so."""
    return first_zxid_of(name) is not None


def read(data: bytes) -> Iterator[Transaction]:
    """The transactions in the bytes of one file; raises :class:`BadInputError` for a defect."""
    _check_header(data)
    end = len(data.rstrip(b"\0"))
    at = _FILE_HEADER.size
    last = -1
    while at < end:
        record = _record(data, at)
        if record is None:
            _check_is_tail(data, at, end)
            return
        transaction = _transaction(record, at)
        if transaction.zxid <= last:
            raise refuse(at, f"transaction 0x{transaction.zxid:x} follows 0x{last:x}")
        last = transaction.zxid
        yield transaction
        at += _RECORD_HEADER.size + len(record) + len(_END_OF_RECORD)


def _check_header(data: bytes) -> None:
    if not data.startswith(MAGIC):
        raise refuse(0, "this is no ZooKeeper transaction log: it does not begin with ZKLG")
    if len(data) < _FILE_HEADER.size:
        raise refuse(len(data), "the log is truncated: it ends inside its header")
    _, version, _ = _FILE_HEADER.unpack_from(data)
    if version != VERSION:
        raise refuse(len(MAGIC), f"version {version} of ZooKeeper's logs is not known")


def _record(data: bytes, at: int) -> bytes | None:
    """The record at a place, or None if there is no whole and good one."""
    start = at + _RECORD_HEADER.size
    if start > len(data):
        return None
    checksum, size = _RECORD_HEADER.unpack_from(data, at)
    if not 0 < size < len(data) - start:
        return None
    record = data[start : start + size]
    if data[start + size : start + size + 1] != _END_OF_RECORD or zlib.adler32(record) != checksum:
        return None
    return record


def _check_is_tail(data: bytes, at: int, end: int) -> None:
    """Refuse an unreadable record unless nothing good comes after it.

    A checksum is a long of which only the lower half is used, so the end of one record and the
    beginning of the next look like no other bytes.
    """
    seam = _END_OF_RECORD + bytes(INT.size)
    found = data.find(seam, at, end)
    while found != -1:
        if _record(data, found + len(_END_OF_RECORD)) is not None:
            raise refuse(
                at,
                "the record is not what its checksum says, and good records follow"
                f" at byte {found + len(_END_OF_RECORD):,}",
            )
        found = data.find(seam, found + 1, end)


def _transaction(record: bytes, at: int) -> Transaction:
    cursor = Cursor(record, base=at + _RECORD_HEADER.size)
    session, _, zxid, time, kind = cursor.unpack(_HEADER)
    operations = _operations(cursor, kind, session)
    digest: tuple[int, int] | None = None
    if cursor.left == _DIGEST.size:
        version, value = cursor.unpack(_DIGEST)
        digest = version, value
    if cursor.left:
        raise cursor.refuse(f"transaction 0x{zxid:x} has {cursor.left:,} bytes too many")
    return Transaction(zxid, time, session, operations, digest, at)


def _operations(cursor: Cursor, kind: int, session: int) -> tuple[Operation, ...]:
    if kind == _MULTI:
        return _multi(cursor, session)
    if kind in (_ERROR, _CREATE_SESSION):
        cursor.integer()
        return ()
    if kind == _CLOSE_SESSION:
        return (_close_session(cursor),)
    return _operation(cursor, kind, session)


def _multi(cursor: Cursor, session: int) -> tuple[Operation, ...]:
    """Several operations that happen together, or, if one of them failed, not at all."""
    operations: list[Operation] = []
    failed = False
    for _ in range(cursor.count()):
        kind = cursor.integer()
        body = cursor.buffer() or b""
        failed = failed or kind == _ERROR
        if not failed:
            inner = Cursor(body, base=cursor.base + cursor.at - len(body))
            operations += _operation(inner, kind, session)
    return () if failed else tuple(operations)


def _operation(cursor: Cursor, kind: int, session: int) -> tuple[Operation, ...]:
    if kind in _SETS:
        return (SetData(_path(cursor), cursor.buffer(), cursor.integer()),)
    if kind == _CHECK:
        _path(cursor)
        cursor.integer()
        return ()
    if kind in _CREATES:
        return (_create(cursor, session),)
    if kind in _DELETES:
        return (Delete(_path(cursor)),)
    if kind == _SET_ACL:
        path = _path(cursor)
        cursor.acl()
        return (SetAcl(path, cursor.integer()),)
    if kind in (_CREATE_CONTAINER, _CREATE_TTL):
        path, data = _path(cursor), cursor.buffer()
        cursor.acl()
        children = cursor.integer()
        owner = _CONTAINER_OWNER if kind == _CREATE_CONTAINER else _TTL_OWNER | cursor.long()
        return (Create(path, data, owner, children),)
    raise cursor.refuse(f"transactions of type {kind} are not known")


def _create(cursor: Cursor, session: int) -> Create:
    path, data = _path(cursor), cursor.buffer()
    cursor.acl()
    ephemeral = cursor.boolean()
    # Before 3.4 a record ended here.
    children = cursor.integer() if cursor.left >= INT.size else -1
    return Create(path, data, session if ephemeral else 0, children)


def _close_session(cursor: Cursor) -> CloseSession:
    """The paths to remove, which only ZooKeeper 3.6 and newer list, unless told not to."""
    start = cursor.at
    if not cursor.left:
        return CloseSession(None)
    try:
        paths = tuple(_path(cursor) for _ in range(cursor.count()))
        if cursor.left in (0, _DIGEST.size):
            return CloseSession(paths)
    except BadInputError:
        pass  # then the bytes are a digest, which is judged next
    cursor.at = start
    return CloseSession(None)


def _path(cursor: Cursor) -> bytes:
    found = cursor.buffer()
    if found is None or not found.startswith(b"/"):
        raise cursor.refuse("a path does not begin with /")
    return b"" if found == b"/" else found
