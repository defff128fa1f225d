"""ZooKeeper's ``snapshot.<zxid>``: the whole tree, sealed by checksums.

The layout is the same since 3.4: a header, the sessions, the access rights, the znodes, a seal;
3.6 adds a digest with its seal, 3.9 the last zxid with its seal, and either may be switched off. A
file that does not end in its seal is not half read.

A snapshot is *fuzzy*: written while transactions go on. Its name says which of them are surely in
it; :attr:`Snapshot.fuzzy_until` is the last one of which anything may be.
"""

from __future__ import annotations

import re
import struct
import zlib
from dataclasses import dataclass
from typing import Final

from understudy.sources.zookeeper.compression import uncompressed
from understudy.sources.zookeeper.jute import INT, LONG, Cursor, refuse
from understudy.sources.zookeeper.tree import (
    DIGEST_MASK,
    DIGEST_VERSION,
    STAT,
    Digest,
    Nodes,
    latest,
    tree_digest,
)

MAGIC: Final = b"ZKSN"
VERSION: Final = 2
NAME: Final = re.compile(r"snapshot\.([0-9a-f]{1,16})(?:\.gz|\.snappy)?", re.ASCII)

_HEADER: Final = struct.Struct(">4siq")
_SESSION: Final = struct.Struct(">qi")
_END: Final = b"/"
_SEALED_END: Final = INT.pack(len(_END)) + _END
_SEAL_BYTES: Final = LONG.size + len(_SEALED_END)
_ACL_AND_STAT: Final = LONG.size + STAT.size
_TRUNCATED: Final = "the snapshot is truncated: it ends inside a znode"
_OLDEST_NUMERIC_DIGEST: Final = 2


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A tree as a snapshot file holds it."""

    nodes: Nodes
    zxid: int
    """The last transaction that is surely in it."""
    fuzzy_until: int
    """No transaction after this one has left anything in it, as far as the file can tell."""
    bounded: bool
    """Whether the file says so; else a later deletion may have left no trace."""
    exact: bool
    """Whether nothing speaks against it being the tree of one instant. A digest proves it."""
    newest_time: int
    """Milliseconds: the time of the newest change that a znode still shows."""


def zxid_of(name: str) -> int | None:
    """The zxid in a snapshot's file name."""
    found = NAME.fullmatch(name.rpartition("/")[2])
    return int(found[1], 16) if found else None


def read(data: bytes, name: str, *, max_uncompressed_bytes: int) -> Snapshot:
    """The snapshot in the bytes of one file; raises :class:`BadInputError` for any defect."""
    plain = uncompressed(data, max_uncompressed_bytes)
    cursor = Cursor(plain)
    _read_header(cursor)
    for _ in range(cursor.count()):
        cursor.unpack(_SESSION)
    for _ in range(cursor.count()):
        cursor.long()
        cursor.acl()
    nodes = _read_nodes(cursor)
    _check_seal(cursor)
    digest, last_zxid = _read_trailers(cursor)
    return _judged(nodes, zxid_of(name), digest, last_zxid)


def _judged(
    nodes: Nodes, named: int | None, digest: Digest | None, last_zxid: int | None
) -> Snapshot:
    """How much of which transactions is in the tree, by its name, its trailers and its znodes."""
    newest_zxid, newest_time = latest(nodes)
    known = [each for each in (named, last_zxid) if each is not None]
    if digest is not None and digest.zxid and digest.version == DIGEST_VERSION:
        if tree_digest(nodes) == digest.value & DIGEST_MASK:
            zxid = digest.zxid
            return Snapshot(nodes, zxid, zxid, bounded=True, exact=True, newest_time=newest_time)
        # A transaction is applied before the digest beside the tree moves on to it.
        bound = max(newest_zxid, digest.zxid + 1, *known)
        zxid = min(known, default=digest.zxid)
        return Snapshot(nodes, zxid, bound, bounded=True, exact=False, newest_time=newest_time)
    return Snapshot(
        nodes,
        zxid=min(known, default=0),
        fuzzy_until=max(newest_zxid, *known, 0),
        bounded=last_zxid is not None,
        exact=bool(known) and newest_zxid <= min(known),
        newest_time=newest_time,
    )


def _read_header(cursor: Cursor) -> None:
    head = cursor.data[: _HEADER.size]
    if not head.startswith(MAGIC):
        raise refuse(
            0,
            "this is no ZooKeeper snapshot: it does not begin with ZKSN"
            " (what ZooKeeper wrote before it had a directory version-2 is not read)",
        )
    _, version, _ = cursor.unpack(_HEADER)
    if version != VERSION:
        raise refuse(len(MAGIC), f"version {version} of ZooKeeper's snapshots is not known")


def _read_nodes(cursor: Cursor) -> Nodes:
    """The znodes up to the path that ends them. The root's own path is empty.

    The hot loop of a large file, so it works on the bytes itself. A slice that reaches beyond the
    end comes out short without a word; the next number then cannot be read, or the end is passed.
    """
    data, at = cursor.data, cursor.at
    nodes: Nodes = {}
    length = INT.unpack_from
    start = at
    try:
        while True:
            start = at
            (size,) = length(data, at)
            at += INT.size + size
            path = data[at - size : at]
            if path == _END:
                break
            (filled,) = length(data, at)
            if size < 0 or filled < -1:
                raise refuse(start, "a znode has a negative length")
            at += INT.size
            content = None
            if filled >= 0:
                content = data[at : at + filled]
                at += filled
            stat_at = at + LONG.size
            at += _ACL_AND_STAT
            nodes[path] = (content, data[stat_at:at])
    except struct.error:
        # The znode before may have been the one that was cut.
        raise refuse(min(start, len(data)), _TRUNCATED) from None
    if at > len(data):
        raise refuse(min(start, len(data)), _TRUNCATED)
    cursor.at = at
    return nodes


def _check_seal(cursor: Cursor) -> None:
    """A seal is the Adler-32 of every byte before it, and the path that ends a tree."""
    covered = cursor.at
    if cursor.left < _SEAL_BYTES:
        raise refuse(covered, "the snapshot is truncated: its checksum is missing")
    said = cursor.long()
    found = zlib.adler32(memoryview(cursor.data)[:covered])
    if said != found:
        raise refuse(
            covered, f"the checksum says 0x{said & 2**64 - 1:x}, the bytes before it 0x{found:x}"
        )
    if cursor.take(len(_SEALED_END)) != _SEALED_END:
        raise refuse(covered + LONG.size, "the checksum is not followed by the end of the tree")


def _read_trailers(cursor: Cursor) -> tuple[Digest | None, int | None]:
    """What follows the tree: a digest and the last zxid, either of which may be missing.

    Only its length tells a lone zxid from a digest.
    """
    digest: Digest | None = None
    last_zxid: int | None = None
    if cursor.left > LONG.size + _SEAL_BYTES:
        digest = _read_digest(cursor)
        _check_seal(cursor)
    if cursor.left:
        last_zxid = cursor.long()
        _check_seal(cursor)
    if cursor.left:
        raise cursor.refuse(f"{cursor.left:,} bytes follow after the end of the snapshot")
    return digest, last_zxid


def _read_digest(cursor: Cursor) -> Digest:
    zxid, version = cursor.long(), cursor.integer()
    if version >= _OLDEST_NUMERIC_DIGEST:
        return Digest(zxid, version, cursor.long())
    written = cursor.buffer() or b""
    try:
        return Digest(zxid, version, int(written, 16))
    except ValueError:
        raise cursor.refuse("the digest is no number") from None
