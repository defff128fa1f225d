"""The znodes, and what a transaction does to them.

As ZooKeeper's own DataTree does it, down to the counters that no Kafka reader needs: they are part
of the digest that ZooKeeper (3.6 and newer) writes beside every transaction, and comparing it
proves that a snapshot and the logs after it belong together.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable
from typing import Final, NamedTuple

from understudy.sources.zookeeper.txnlog import (
    CloseSession,
    Create,
    Delete,
    Operation,
    SetAcl,
    SetData,
    Transaction,
)

STAT: Final = struct.Struct(">qqqqiiiqq")
"""czxid, mzxid, ctime, mtime, version, cversion, aversion, ephemeralOwner, pzxid."""

Node = tuple[bytes | None, bytes]
"""The data, and the stat packed as ZooKeeper's files have it; empty where a form has none."""
Nodes = dict[bytes, Node]
"""By path; the root's is empty."""

_OWNER: Final = slice(44, 52)
_NOBODY: Final = bytes(8)
_DIGEST_STAT: Final = struct.Struct(">qqqqqiiiq")
_RESERVED: Final = b"/zookeeper"
_BELOW_RESERVED: Final = b"/zookeeper/"
_NEW_NODE_COUNTERS: Final = (0, 0, 0)

DIGEST_MASK: Final = 2**64 - 1
DIGEST_VERSION: Final = 2
"""The one way of computing digests that ZooKeeper has used so far."""


class Digest(NamedTuple):
    """The sum of all znodes after a transaction, as ZooKeeper wrote it down."""

    zxid: int
    version: int
    value: int


class Stat(NamedTuple):
    """What ZooKeeper counts of a znode."""

    czxid: int
    mzxid: int
    ctime: int
    mtime: int
    version: int
    cversion: int
    aversion: int
    ephemeral_owner: int
    pzxid: int


def stat_of(node: Node) -> Stat | None:
    """The stat of a znode, or None where the form it came in has none."""
    return Stat._make(STAT.unpack(node[1])) if node[1] else None


def latest(nodes: Nodes) -> tuple[int, int]:
    """The largest zxid and the newest time that any znode shows."""
    zxid = time = 0
    unpack = STAT.unpack
    for _, packed in nodes.values():
        if packed:
            czxid, mzxid, ctime, mtime, _, _, _, _, pzxid = unpack(packed)
            zxid = max(zxid, czxid, mzxid, pzxid)
            time = max(time, ctime, mtime)
    return zxid, time


def empty_nodes() -> Nodes:
    """The tree of a ZooKeeper that has never seen a transaction."""
    nothing = STAT.pack(*(0,) * 9)
    return {
        b"": (b"", nothing),
        _RESERVED: (b"", nothing),
        _BELOW_RESERVED + b"quota": (b"", nothing),
    }


def is_reserved(path: bytes) -> bool:
    """Whether a znode is ZooKeeper's own: it changes those without transactions, too."""
    return path.startswith(_BELOW_RESERVED)


class Tree:
    """A tree that transactions are applied to, in their order."""

    def __init__(self, nodes: Nodes) -> None:
        self.nodes = nodes
        self._owned: dict[bytes, set[bytes]] = {}
        for path, (_, stat) in nodes.items():
            if stat[_OWNER] != _NOBODY:
                self._owned.setdefault(stat[_OWNER], set()).add(path)
        self._digest: int | None = None

    def apply(self, transaction: Transaction) -> list[bytes]:
        """Apply it; return the paths for which the tree was not as the transaction found it.

        There are none, unless the tree began as a fuzzy snapshot that already holds a part of this
        transaction or of later ones. ZooKeeper passes over these, and so does this.
        """
        surprising: list[bytes] = []
        for operation in transaction.operations:
            surprising += self._apply(operation, transaction)
        return surprising

    def _apply(self, operation: Operation, by: Transaction) -> Iterable[bytes]:
        if isinstance(operation, SetData):
            return self._set_data(operation, by)
        if isinstance(operation, Create):
            return self._create(operation, by)
        if isinstance(operation, Delete):
            return self._delete(operation.path, by)
        if isinstance(operation, SetAcl):
            return self._set_acl(operation)
        return self._close_session(operation, by)

    def _create(self, operation: Create, by: Transaction) -> Iterable[bytes]:
        path = operation.path
        parent = path.rpartition(b"/")[0]
        above = self.nodes.get(parent)
        if above is None:
            return (path,)
        data, packed = above
        stat = Stat._make(STAT.unpack(packed))
        children = operation.parent_cversion
        if children == -1:
            children = stat.cversion + 1
        if children > stat.cversion:
            self._put(parent, data, stat._replace(cversion=children, pzxid=by.zxid))
        if path in self.nodes:
            return (path,)
        owner = operation.owner
        new = Stat(by.zxid, by.zxid, by.time, by.time, *_NEW_NODE_COUNTERS, owner, by.zxid)
        self._put(path, operation.data, new)
        if owner:
            self._owned.setdefault(struct.pack(">q", owner), set()).add(path)
        return ()

    def _set_data(self, operation: SetData, by: Transaction) -> Iterable[bytes]:
        node = self.nodes.get(operation.path)
        if node is None:
            return (operation.path,)
        stat = Stat._make(STAT.unpack(node[1]))
        changed = stat._replace(mzxid=by.zxid, mtime=by.time, version=operation.version)
        self._put(operation.path, operation.data, changed)
        return ()

    def _set_acl(self, operation: SetAcl) -> Iterable[bytes]:
        node = self.nodes.get(operation.path)
        if node is None:
            return (operation.path,)
        stat = Stat._make(STAT.unpack(node[1]))
        self._put(operation.path, node[0], stat._replace(aversion=operation.version))
        return ()

    def _delete(self, path: bytes, by: Transaction) -> Iterable[bytes]:
        node = self.nodes.pop(path, None)
        if node is None:
            return (path,)
        if self._digest is not None:
            self._digest -= _node_digest(path, *node)
        owner = node[1][_OWNER]
        if owner != _NOBODY:
            self._owned[owner].discard(path)
        parent = path.rpartition(b"/")[0]
        above = self.nodes.get(parent)
        if above is None:
            return (path,)
        stat = Stat._make(STAT.unpack(above[1]))
        if by.zxid > stat.pzxid:
            self._put(parent, above[0], stat._replace(pzxid=by.zxid))
        return ()

    def _close_session(self, operation: CloseSession, by: Transaction) -> Iterable[bytes]:
        """Remove what the session owns, or what the transaction lists of that."""
        owned = self._owned.get(struct.pack(">q", by.session), set())
        for path in sorted(owned if operation.paths is None else operation.paths):
            self._delete(path, by)
        return ()

    def _put(self, path: bytes, data: bytes | None, stat: Stat) -> None:
        packed = STAT.pack(*stat)
        if self._digest is not None:
            old = self.nodes.get(path)
            if old is not None:
                self._digest -= _node_digest(path, *old)
            self._digest += _node_digest(path, data, packed)
        self.nodes[path] = (data, packed)

    def digest(self) -> int:
        """Its :func:`tree_digest`, counted once and kept up to date from then on."""
        if self._digest is None:
            self._digest = tree_digest(self.nodes)
        self._digest &= DIGEST_MASK
        return self._digest


def tree_digest(nodes: Nodes) -> int:
    """The sum over all znodes, as ZooKeeper's DigestCalculator adds it up."""
    return sum(_node_digest(path, *node) for path, node in nodes.items()) & DIGEST_MASK


def _node_digest(path: bytes, data: bytes | None, packed: bytes) -> int:
    """The CRC-32 of path, data and stat; what is below ``/zookeeper`` does not count."""
    if path.startswith(_BELOW_RESERVED):
        return 0
    czxid, mzxid, ctime, mtime, version, cversion, aversion, owner, pzxid = STAT.unpack(packed)
    stat = _DIGEST_STAT.pack(czxid, mzxid, pzxid, ctime, mtime, version, cversion, aversion, owner)
    return zlib.crc32(stat, zlib.crc32(data or b"", zlib.crc32(path)))
