"""Which kind of ZooKeeper file this is, and the snapshots in a file that stands alone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from understudy.errors import BadInputError
from understudy.sources.content import Parsed
from understudy.sources.zookeeper import dumps, history, snapshots, txnlog
from understudy.sources.zookeeper.compression import SNAPPY_MAGIC, uncompressed_head
from understudy.sources.zookeeper.history import Asked
from understudy.sources.zookeeper.kafka import Instant, Reader

DATA_DIRECTORY: Final = history.FORM
SNAPSHOT: Final = "zk-snapshot"
DUMP: Final = "zk-dump"
FORMS: Final = (DATA_DIRECTORY, SNAPSHOT, DUMP)

BESIDE_SNAPSHOTS: Final = frozenset(("acceptedEpoch", "currentEpoch", "myid"))
"""Small files ZooKeeper keeps in a data directory, which say nothing of the tree."""

HEAD_BYTES: Final = 4096
"""So much of a file is enough to recognise it by."""

_SNAPPY_LITERAL: Final = 64
_KAZOO_NODE: Final = re.compile(rb'\s*\[?\s*\{[^{}]*"path"\s*:\s*"/')
_KAZOO_DUMP: Final = re.compile(rb'\s*\{[^{}\[\]]*"nodes"\s*:\s*\[\s*\{\s*"path"\s*:\s*"/')
_ZK_SHELL: Final = re.compile(rb'\s*\{\s*"/[^"]*"\s*:\s*\{[^}]*"(?:content|acls)"\s*:')
_BURRY: Final = (b".burrymeta", b"/content")


def recognise(head: bytes, name: str) -> str | None:
    """The form of the file that begins with *head*, or None if it is none of ZooKeeper's.

    A transaction log is a part of a data directory, and so is a snapshot that lies beside one.
    """
    inner = uncompressed_head(head, HEAD_BYTES)
    if inner.startswith(txnlog.MAGIC):
        return DATA_DIRECTORY
    if inner.startswith(snapshots.MAGIC):
        return SNAPSHOT
    if head.startswith(SNAPPY_MAGIC):
        held = snapshots.MAGIC in head[:_SNAPPY_LITERAL] or snapshots.zxid_of(name) is not None
        return SNAPSHOT if held else None
    if _is_dump(inner):
        return DUMP
    return None


def _is_dump(head: bytes) -> bool:
    if head.startswith(dumps.ZIP_MAGIC):
        return any(mark in head for mark in _BURRY)
    text = head.removeprefix(b"\xef\xbb\xbf")
    return text.startswith(dumps.FORMATTER_HEAD) or any(
        form.match(text) for form in (_KAZOO_DUMP, _KAZOO_NODE, _ZK_SHELL)
    )


def is_file(name: str) -> bool:
    """Whether a snapshot or a transaction log is called so."""
    return snapshots.zxid_of(name) is not None or txnlog.is_log(name)


def directories(paths: Iterable[str]) -> dict[str, dict[str, str]]:
    """The paths of ZooKeeper's files by directory and name.

    ZooKeeper may keep its logs elsewhere (dataLogDir): one directory with nothing but snapshots
    and one with nothing but logs are one.
    """
    found: dict[str, dict[str, str]] = {}
    for path in sorted(paths):
        directory, _, name = path.rpartition("/")
        if is_file(name):
            found.setdefault(directory, {})[name] = path
    only_snapshots = [each for each in found if not any(map(txnlog.is_log, found[each]))]
    only_logs = [each for each in found if all(map(txnlog.is_log, found[each]))]
    if len(only_snapshots) == len(only_logs) == 1:
        found[only_snapshots[0]] |= found.pop(only_logs[0])
    return found


def parse(data: bytes, name: str, form: str, wanted: Asked) -> Iterator[Parsed]:
    """The snapshots in the bytes of one file; never raises for what they say."""
    reader = Reader(wanted.naming)
    try:
        if form == SNAPSHOT:
            yield from _snapshot(data, name, reader, wanted)
        else:
            yield from _dumps(data, reader, wanted)
    except BadInputError as error:
        yield Parsed("byte 0", wanted.naming.cluster, None, (str(error),), None)


def _snapshot(data: bytes, name: str, reader: Reader, wanted: Asked) -> Iterator[Parsed]:
    found = snapshots.read(data, name, max_uncompressed_bytes=wanted.max_uncompressed_bytes)
    instant = Instant(
        snapshot_id=f"snapshot-0x{found.zxid:x}",
        taken_at=found.newest_time * 1000 or None,
        source_form=SNAPSHOT,
        position=f"zxid 0x{found.zxid:x}",
        exact=found.exact,
    )
    yield from reader.read(found.nodes, instant)


def _dumps(data: bytes, reader: Reader, wanted: Asked) -> Iterator[Parsed]:
    for found in dumps.read(data, max_uncompressed_bytes=wanted.max_uncompressed_bytes):
        if found.problems:
            yield Parsed(found.position, wanted.naming.cluster, None, found.problems, None)
            continue
        instant = Instant(
            snapshot_id=f"dump-{found.identity}",
            taken_at=found.taken_at,
            source_form=DUMP,
            position=found.position,
            exact=found.exact,
        )
        yield from reader.read(found.nodes, instant)
