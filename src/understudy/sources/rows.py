"""Parsed documents as Arrow batches: how they travel from the Python workers into Spark.

One row is one document, with its tables nested; a long document goes on in further rows, because
Spark handles many small rows well and one row of a hundred megabytes badly. Plain Python and
pyarrow: this runs on executors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, Final

import pyarrow as pa

from understudy.garbage import rarely_collected
from understudy.sources import content as C
from understudy.sources.content import Parsed

LIST_ROWS: Final = 20_000
"""So many rows of one nested table go into one row, and about so many into one batch."""
BATCH_ROWS: Final = 1_000

_INT = pa.int32()
_STRING = pa.string()
_IDS = pa.list_(pa.int32())
_STRINGS = pa.list_(pa.string())

_TYPES: Final[dict[str, pa.DataType]] = {
    "taken_at": pa.timestamp("us", tz="UTC"),
    "elr_enabled": pa.bool_(),
    "controller_id": _INT,
    "controller_epoch": _INT,
    "complete": pa.bool_(),
    "broker_id": _INT,
    "alive": pa.bool_(),
    "shutting_down": pa.bool_(),
    "fenced": pa.bool_(),
    "broker_epoch": pa.int64(),
    "log_dirs": _STRINGS,
    "queued_for_deletion": pa.bool_(),
    "partition": _INT,
    "replicas": _IDS,
    "adding": _IDS,
    "removing": _IDS,
    "offline_dirs": _IDS,
    "has_state": pa.bool_(),
    "leader": _INT,
    "leader_epoch": _INT,
    "isr": _IDS,
    "partition_epoch": _INT,
    "recovery": _INT,
    "elr": _IDS,
    "last_known_elr": _IDS,
    "directories": _STRINGS,
    "problems": _STRINGS,
}
"""The Arrow type of every column that is no string."""

_KEY: Final = ("cluster", "snapshot_id")
_LISTS: Final = {
    "brokers": C.BROKER_COLUMNS,
    "topics": C.TOPIC_COLUMNS,
    "partitions": C.PARTITION_COLUMNS,
    "configs": C.CONFIG_COLUMNS,
}


def batches(files: Iterable[tuple[str, str, Iterable[Parsed]]]) -> Iterator[pa.RecordBatch]:
    """Batches of the documents of *files*: (source, digest of the bytes, documents) each."""
    rows: list[tuple[Any, ...]] = []
    weight = 0
    with rarely_collected():
        for row in chain.from_iterable(_rows(*file) for file in files):
            rows.append(row)
            weight += len(row[-2])
            if len(rows) >= BATCH_ROWS or weight >= LIST_ROWS:
                yield _batch(rows)
                rows, weight = [], 0
        if rows:
            yield _batch(rows)


def _rows(source: str, digest: str, documents: Iterable[Parsed]) -> Iterator[tuple[Any, ...]]:
    """The file's digest stands on its first row only."""
    mark: str | None = digest
    for parsed in documents:
        for part, (snapshot, lists) in enumerate(_parts(parsed)):
            key = (parsed.cluster, parsed.snapshot_id)
            problems = list(parsed.problems) or None
            yield (source, parsed.position, part, mark, *key, problems, snapshot, *lists)
            mark = None


def _parts(parsed: Parsed) -> Iterator[tuple[C.Row | None, list[list[C.Row]]]]:
    content = parsed.content
    if content is None:
        yield None, [[], [], [], []]
        return
    lists = [content.brokers, content.topics, content.partitions, content.configs]
    yield content.snapshot, [rows[:LIST_ROWS] for rows in lists]
    for start in range(LIST_ROWS, max(map(len, lists)), LIST_ROWS):
        yield None, [rows[start : start + LIST_ROWS] for rows in lists]


def table_of(name: str, source: str, parsed: Parsed) -> Iterator[pa.RecordBatch]:
    """The rows of one canonical table, or of the quarantine, that one document gives."""
    key = (parsed.cluster, parsed.snapshot_id)
    content = parsed.content
    columns: tuple[str, ...]
    rows: list[C.Row]
    if name == "quarantine":
        columns = ("source", "position", *_KEY, "problems")
        rows = [(source, parsed.position, *key, list(parsed.problems))] if parsed.problems else []
    elif name == "provenance":
        columns = (*_KEY, "source", "position")
        rows = [(*key, source, parsed.position)] if content else []
    elif name == "snapshots":
        columns = (*_KEY, *C.SNAPSHOT_COLUMNS)
        rows = [(*key, *content.snapshot)] if content else []
    else:
        columns = (*_KEY, *_LISTS[name])
        rows = [(*key, *row) for row in getattr(content, name)] if content else []
    for start in range(0, len(rows), LIST_ROWS):
        some = _structs(columns, rows[start : start + LIST_ROWS])
        yield pa.RecordBatch.from_struct_array(some)


def _batch(rows: Sequence[tuple[Any, ...]]) -> pa.RecordBatch:
    source, position, part, digest, cluster, snapshot_id, problems, snapshot, *lists = zip(
        *rows, strict=True
    )
    nothing = (None,) * len(C.SNAPSHOT_COLUMNS)
    columns = {
        "source": pa.array(source, _STRING),
        "position": pa.array(position, _STRING),
        "part": pa.array(part, _INT),
        "file_digest": pa.array(digest, _STRING),
        "cluster": pa.array(cluster, _STRING),
        "snapshot_id": pa.array(snapshot_id, _STRING),
        "problems": pa.array(problems, _STRINGS),
        "snapshot": _structs(
            C.SNAPSHOT_COLUMNS,
            [nothing if each is None else each for each in snapshot],
            missing=[each is None for each in snapshot],
        ),
        **{name: _nested(_LISTS[name], column) for name, column in zip(_LISTS, lists, strict=True)},
    }
    return pa.RecordBatch.from_pydict(columns)


def _nested(names: tuple[str, ...], column: Sequence[list[C.Row]]) -> pa.ListArray:
    offsets = [0]
    for rows in column:
        offsets.append(offsets[-1] + len(rows))
    rows = list(chain.from_iterable(column))
    return pa.ListArray.from_arrays(pa.array(offsets, _INT), _structs(names, rows))


def _structs(
    names: tuple[str, ...], rows: Sequence[C.Row], missing: list[bool] | None = None
) -> pa.StructArray:
    columns = zip(*rows, strict=True) if rows else ([] for _ in names)
    arrays = [
        pa.array(column, _TYPES.get(name, _STRING))
        for name, column in zip(names, columns, strict=True)
    ]
    fields = [pa.field(name, _TYPES.get(name, _STRING)) for name in names]
    mask = None if missing is None else pa.array(missing, pa.bool_())
    return pa.StructArray.from_arrays(arrays, fields=fields, mask=mask)
