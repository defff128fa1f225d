"""Directories of KRaft metadata, read in parallel into the canonical tables.

Spark lists and brings the files, so any path it can read will do; one task puts one directory
together, file after file in their order, so that its memory is bounded by the largest file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from understudy import schemas
from understudy.errors import BadInputError
from understudy.frames import small_frame
from understudy.sources.combine import Part
from understudy.sources.content import Parsed
from understudy.sources.documents import (
    ALSO_HIDDEN,
    DOCUMENTS,
    MAX_FILE_BYTES,
    files,
    literally,
    part_of,
)
from understudy.sources.kraft_directory import (
    META_PROPERTIES,
    Asked,
    is_file,
    plan,
    snapshots,
)
from understudy.sources.local_paths import nothing_found, plain

if TYPE_CHECKING:
    import pyarrow as pa

_PLACES: Final = T.StructType(
    [
        T.StructField("path", schemas.STRING),
        T.StructField("directory", schemas.STRING),
        T.StructField("place", schemas.INT),
    ]
)


def read(spark: SparkSession, paths: Sequence[str], wanted: Asked) -> Part:
    """The snapshots in these metadata directories, or in single files of them.

    A directory above them will do: the ``__cluster_metadata-0`` below are found.
    """
    found = files(spark, paths, also_hidden=ALSO_HIDDEN)
    listed = [row.path for row in found.select("path").distinct().collect()]
    needed = places(listed, wanted)
    if not needed:
        raise nothing_found(f"{path}: there is no log segment and no checkpoint" for path in paths)
    ordered = (
        files(spark, sorted({literally(path) for path, _, _ in needed}))
        .join(F.broadcast(small_frame(spark, needed, _PLACES)), "path")
        .repartition(len({directory for _, directory, _ in needed}), "directory")
        .sortWithinPartitions("directory", "place")
        .select("directory", "path", "content")
    )
    parse_each = partial(_parse, wanted=wanted, reading=uuid4().hex)
    return part_of(paths, ordered.mapInArrow(parse_each, DOCUMENTS))


def places(listed: Iterable[str], wanted: Asked) -> list[tuple[str, str, int]]:
    """Every file that is needed, with its directory and its place in the order of reading."""
    names: dict[str, dict[str, str]] = {}
    for path in listed:
        directory, _, name = path.rpartition("/")
        names.setdefault(directory, {})[name] = path
    found = []
    for directory, of in names.items():
        if not any(map(is_file, of)):
            continue
        above = names.get(directory.rpartition("/")[0], {}).get(META_PROPERTIES)
        if above:
            of.setdefault(META_PROPERTIES, above)
        found += [(of[name], directory, place) for place, name in enumerate(plan(of, wanted))]
    return found


def _parse(
    batches: Iterator[pa.RecordBatch],
    wanted: Asked,
    reading: str,  # noqa: ARG001 - see documents.read
) -> Iterator[pa.RecordBatch]:
    from understudy.sources import rows  # noqa: PLC0415 - the driver needs no pyarrow for this

    yield from rows.batches(_parsed(batches, wanted))


def _parsed(
    batches: Iterator[pa.RecordBatch], wanted: Asked
) -> Iterator[tuple[str, str, Iterator[Parsed]]]:
    rows = (
        (directory.as_py(), path.as_py(), content)
        for batch in batches
        for directory, path, content in zip(*batch.columns, strict=True)
    )
    for directory, group in groupby(rows, key=itemgetter(0)):
        source = plain(directory)
        for parsed in snapshots(_contents(group), wanted):
            yield source, digest(parsed), iter((parsed,))


def _contents(group: Iterable[tuple[str, str, pa.Scalar]]) -> Iterator[tuple[str, bytes]]:
    for _, path, content in group:
        name = path.rpartition("/")[2]
        data = content.as_py()
        if data is None:
            raise BadInputError(f"{name}: the file is larger than {MAX_FILE_BYTES:,} bytes")
        yield name, data


def digest(parsed: Parsed) -> str:
    """What stands for the bytes a snapshot was read from: its content, or why it was refused."""
    if parsed.content is not None:
        return str(parsed.content.snapshot[-1])
    return hashlib.sha256("\n".join(parsed.problems).encode()).hexdigest()
