"""Dumps of a ZooKeeper tree: texts and archives that other tools have made of it.

- ``SnapshotFormatter -d`` (``zkSnapShotToolkit.sh -d``): everything but milliseconds, and how
  fuzzy the snapshot was that it printed;
- JSON lines, one znode each, ``{"path", "data_b64", "stat"}``, as a few lines of kazoo write them,
  or one line per dump, ``{"time", "zxid", "nodes": [...]}``: everything;
- zk-shell's ``cp zk://… json://…`` and burry's zip: paths and data, without what ZooKeeper counts.
"""

from __future__ import annotations

import binascii
import hashlib
import io
import json
import re
import struct
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from understudy.errors import BadInputError
from understudy.sources import document
from understudy.sources.zookeeper.compression import uncompressed
from understudy.sources.zookeeper.kafka import may_change_kafka
from understudy.sources.zookeeper.tree import STAT, Nodes, latest

FORMATTER_HEAD: Final = b"ZNode Details (count="
ZIP_MAGIC: Final = b"PK\x03\x04"

_COUNT: Final = re.compile(rb"ZNode Details \(count=(\d{1,10})\):\r?\n")
_BLOCK_END: Final = b"----"
_SESSIONS: Final = b"Session Details"
_LAST_ZXID: Final = re.compile(rb"^Last zxid: 0x([0-9a-f]{1,16})\s*$", re.MULTILINE)
_MONTHS: Final = "JanFebMarAprMayJunJulAugSepOctNovDec"
_JAVA_DATE: Final = re.compile(
    rb"[A-Z][a-z]{2} ([A-Z][a-z]{2}) (\d\d) (\d\d):(\d\d):(\d\d) (?:UTC|GMT) (\d{4})"
)

_NODE_KEYS: Final = ("path", "nodes")
_STAT_KEYS: Final = (
    "czxid",
    "mzxid",
    "ctime",
    "mtime",
    "version",
    "cversion",
    "aversion",
    "ephemeralOwner",
    "pzxid",
)
# The order of kazoo's ZnodeStat, which JSON writes as a list.
_KAZOO_STAT: Final = (*_STAT_KEYS[:8], "dataLength", "numChildren", "pzxid")

_BURRY_CONTENT: Final = "content"
_BURRY_META: Final = ".burrymeta"
_BURRY_COLON: Final = "BURRY_ESC_COLON"
_ID_DIGITS: Final = 12


@dataclass(frozen=True, slots=True)
class Dump:
    """One tree out of a dump, or what is wrong with it."""

    nodes: Nodes
    position: str
    identity: str
    """The last zxid where the dump knows one, else a digest of what it holds."""
    taken_at: int | None
    """Microseconds since 1970."""
    exact: bool
    """Whether nothing speaks against all of it being of one instant."""
    problems: tuple[str, ...] = ()


def read(data: bytes, *, max_uncompressed_bytes: int) -> Iterator[Dump]:
    """The trees in the bytes of one file; raises :class:`BadInputError` for any defect."""
    if data.startswith(ZIP_MAGIC):
        yield _burry(data, max_uncompressed_bytes)
        return
    plain = uncompressed(data, max_uncompressed_bytes)
    if plain.startswith(FORMATTER_HEAD):
        yield _formatter(plain)
    else:
        yield from _json(plain)


def _refused(position: str, problems: tuple[str, ...]) -> Dump:
    return Dump({}, position, "", None, exact=False, problems=problems)


def _identity(nodes: Nodes, zxid: int | None) -> str:
    newest, _ = latest(nodes)
    if zxid or newest:
        return f"0x{zxid or newest:x}"
    held = hashlib.sha256()
    for path in sorted(nodes):
        content = nodes[path][0] or b""
        held.update(b"%d %s %d %s\n" % (len(path), path, len(content), content))
    return held.hexdigest()[:_ID_DIGITS]


# --- SnapshotFormatter -------------------------------------------------------------------------


def _formatter(plain: bytes) -> Dump:
    """Blocks between lines of dashes: the path, then a line for each number, then the data."""
    found = _COUNT.match(plain)
    if found is None:
        raise BadInputError("line 1: the number of znodes is missing")
    promised = int(found[1]) - 1  # ZooKeeper counts its root twice, as "" and as "/"
    body, sessions, trailer = plain[found.end() :].replace(b"\r\n", b"\n").partition(_SESSIONS)
    nodes: Nodes = {}
    newest = (0, b"")
    line = 2
    for block in body.split(_BLOCK_END + b"\n"):
        if block.strip():
            path, node, change = _formatted(block, line)
            nodes[path] = node
            newest = max(newest, change)
        line += block.count(b"\n") + 1
    if len(nodes) != promised or not sessions:
        raise BadInputError(
            f"line {line}: the text is truncated: it promises {promised:,} znodes and has"
            f" {len(nodes):,}" + ("" if sessions else ", and no list of sessions follows")
        )
    last = _LAST_ZXID.search(trailer)
    zxid = int(last[1], 16) if last else None
    return Dump(
        nodes=nodes,
        position="line 1",
        identity=_identity(nodes, zxid),
        taken_at=_java_time(newest[1]),
        exact=False,  # what was printed may be a fuzzy snapshot, and this cannot tell
    )


def _formatted(
    block: bytes, line: int
) -> tuple[bytes, tuple[bytes | None, bytes], tuple[int, bytes]]:
    """Path, node, and the zxid and time of its newest change."""
    path, *rest = block.rstrip(b"\n").split(b"\n")
    said = {}
    for each in rest:
        key, _, value = each.strip().partition(b" = ")
        said[key] = value
    if b"data" not in said and b"data =" not in said:
        raise BadInputError(
            f"line {line}: the text has no data; write it again with SnapshotFormatter -d,"
            " which ZooKeeper 3.6 and newer have"
        )
    try:
        czxid, mzxid, pzxid, owner = (
            int(said[key], 16) for key in (b"cZxid", b"mZxid", b"pZxid", b"ephemeralOwner")
        )
        version, cversion, aversion = (
            int(said[key]) for key in (b"dataVersion", b"cversion", b"aclVersion")
        )
        owner -= (owner >> 63) << 64
        stat = STAT.pack(czxid, mzxid, 0, 0, version, cversion, aversion, owner, pzxid)
        data = binascii.a2b_base64(said.get(b"data", b""), strict_mode=True)
    except (KeyError, ValueError, struct.error) as error:
        what = f"{error.args[0].decode()} is missing" if isinstance(error, KeyError) else str(error)
        raise BadInputError(f"line {line}: the znode is not readable: {what}") from error
    root = path == b"/"
    if not path.startswith(b"/"):
        raise BadInputError(f"line {line}: a path does not begin with /")
    return b"" if root else path, (data, stat), (mzxid, said.get(b"mtime", b""))


def _java_time(written: bytes) -> int | None:
    """Only UTC is certain: the other zones' abbreviations mean several."""
    found = _JAVA_DATE.fullmatch(written)
    if found is None:
        return None
    month = _MONTHS.find(found[1].decode()) // 3 + 1
    day, hour, minute, second, year = (int(found[group]) for group in range(2, 7))
    try:
        moment = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        return None
    return int(moment.timestamp()) * 1_000_000


# --- JSON: kazoo, zk-shell ---------------------------------------------------------------------


def _json(plain: bytes) -> Iterator[Dump]:
    """A file is one dump whose lines are znodes, or a dump on every line, or one large object."""
    collected = _Collected("line 1")
    for line, (value, problem) in document.load(plain, _NODE_KEYS):
        position = f"line {line}"
        if problem is not None:
            collected.problems.append(f"{position}: {problem}")
        elif isinstance(value, dict) and type(value.get("nodes")) is list:
            own = _Collected(position)
            for node in value["nodes"]:
                own.add(node, position)
            yield own.dump(value.get("zxid"), value.get("time"))
        elif isinstance(value, list):
            for node in value:
                collected.add(node, position)
        elif isinstance(value, dict) and value and all(key.startswith("/") for key in value):
            for path, node in value.items():
                collected.add_zk_shell(path, node, position)
        else:
            collected.add(value, position)
    if collected.nodes or collected.problems:
        yield collected.dump(None, None)


class _Collected:
    """The znodes of one dump as they are met."""

    def __init__(self, position: str) -> None:
        self.position = position
        self.nodes: Nodes = {}
        self.problems: list[str] = []
        self.children: dict[bytes, int] = {}

    def add(self, node: Any, position: str) -> None:  # noqa: ANN401 - any JSON
        if not isinstance(node, dict) or type(node.get("path")) is not str:
            self.problems.append(f'{position}: a znode is an object with "path"')
            return
        stat = node.get("stat")
        data = node.get("data_b64")
        try:
            content = _content(data) if "data_b64" in node else _text(node.get("data"))
            packed = b"" if stat is None else _stat(stat)
        except ValueError as error:
            self.problems.append(f"{position}: {document.shown(node['path'])}: {error}")
            return
        path = self._put(node["path"], content, packed, position)
        if isinstance(stat, dict) and type(stat.get("numChildren")) is int:
            self.children[path] = stat["numChildren"]

    def add_zk_shell(self, path: str, node: Any, position: str) -> None:  # noqa: ANN401
        try:
            if not isinstance(node, dict):
                raise ValueError("expected an object")  # noqa: TRY004, TRY301
            self._put(path, _content(node.get("content")), b"", position)
        except ValueError as error:
            self.problems.append(f"{position}: {document.shown(path)}: {error}")

    def _put(self, path: str, content: bytes | None, packed: bytes, position: str) -> bytes:
        written = path.encode("utf-8", "surrogatepass")
        key = b"" if written == b"/" else written
        if key and not key.startswith(b"/"):
            self.problems.append(
                f"{position}: the path {document.shown(path)} does not begin with /"
            )
        if key in self.nodes:
            self.problems.append(f"{position}: {document.shown(path)} is there twice")
        self.nodes[key] = (content, packed)
        return key

    def dump(self, zxid: Any, time: Any) -> Dump:  # noqa: ANN401 - any JSON
        if self.problems:
            return _refused(self.position, tuple(self.problems[: document.MAX_PROBLEMS]))
        known_zxid = zxid if type(zxid) is int and zxid > 0 else None
        _, newest_time = latest(self.nodes)
        taken_at = newest_time * 1000 or None
        if type(time) in (int, float) and 0 < time < 2**40:
            taken_at = int(time * 1_000_000)
        return Dump(
            nodes=self.nodes,
            position=self.position,
            identity=_identity(self.nodes, known_zxid),
            taken_at=taken_at,
            exact=self._has_all_children(),
        )

    def _has_all_children(self) -> bool:
        """Whether Kafka's znodes have as many children as they say.

        A dump is read znode by znode; where the tree changed meanwhile, or a part of it was left
        out, the numbers do not agree.
        """
        found = Counter(path.rpartition(b"/")[0] for path in self.nodes if path)
        return all(
            found[path] == children
            for path, children in self.children.items()
            if may_change_kafka(path)
        )


def _content(data: Any) -> bytes | None:  # noqa: ANN401 - any JSON
    if data is None:
        return None
    if type(data) is not str or not data.isascii():
        raise ValueError(f"the data is no Base64: {document.shown(data)}")
    try:
        return binascii.a2b_base64(data, strict_mode=True)
    except binascii.Error as error:
        raise ValueError(f"the data is no Base64: {error}") from error


def _text(data: Any) -> bytes | None:  # noqa: ANN401 - any JSON
    if data is None or type(data) is str:
        return None if data is None else data.encode("utf-8", "surrogatepass")
    raise ValueError(f"the data is no text: {document.shown(data)}")


def _stat(stat: Any) -> bytes:  # noqa: ANN401 - any JSON
    if isinstance(stat, list) and len(stat) == len(_KAZOO_STAT):
        return _stat(dict(zip(_KAZOO_STAT, stat, strict=True)))
    if not isinstance(stat, dict):
        raise ValueError(f"the stat is no object: {document.shown(stat)}")  # noqa: TRY004
    numbers = [stat.get(key) for key in _STAT_KEYS]
    wrong = [
        key for key, number in zip(_STAT_KEYS, numbers, strict=True) if type(number) is not int
    ]
    if wrong:
        raise ValueError(f"the stat has no number {', '.join(wrong)}")
    try:
        return STAT.pack(*numbers)
    except struct.error as error:
        raise ValueError("a number of the stat is too large") from error


# --- burry -------------------------------------------------------------------------------------


def _burry(data: bytes, limit: int) -> Dump:
    """A directory for each znode, with its data in a file called ``content``."""
    nodes: Nodes = {b"": (None, b"")}
    meta: dict[str, Any] = {}
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = archive.infolist()
            if sum(entry.file_size for entry in entries) > limit:
                raise BadInputError(f"the file is larger than {limit:,} bytes when uncompressed")
            for entry in entries:
                steps = entry.filename.replace(_BURRY_COLON, ":").strip("/").split("/")
                if steps[-1] == _BURRY_META:
                    meta = json.loads(archive.read(entry))
                elif steps[-1] == _BURRY_CONTENT and not entry.is_dir():
                    _put_with_parents(nodes, steps[:-1], archive.read(entry))
                elif entry.is_dir():
                    _put_with_parents(nodes, steps, None)
    except (
        zipfile.BadZipFile,
        zlib.error,
        struct.error,
        EOFError,
        NotImplementedError,
        OSError,
        RuntimeError,
        ValueError,
    ) as error:
        raise BadInputError(f"the zip archive cannot be read: {error}") from error
    date = meta.get("snapshot-date") if isinstance(meta, dict) else None
    return Dump(
        nodes=nodes,
        position="archive",
        identity=_identity(nodes, None),
        taken_at=_iso_time(date),
        exact=False,
    )


def _put_with_parents(nodes: Nodes, steps: list[str], content: bytes | None) -> None:
    path = b""
    for step in steps:
        path += b"/" + step.encode("utf-8", "surrogatepass")
        nodes.setdefault(path, (None, b""))
    if content is not None:
        nodes[path] = (content, b"")


def _iso_time(written: Any) -> int | None:  # noqa: ANN401 - any JSON
    if type(written) is not str:
        return None
    try:
        moment = datetime.fromisoformat(written)
    except ValueError:
        return None
    return int(moment.timestamp() * 1_000_000) if moment.tzinfo else None
