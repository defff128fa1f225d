"""ZooKeeper's files, read in parallel into the canonical tables.

Spark lists and brings the files, so any path it can read will do. A snapshot file or a dump is
parsed by itself; a data directory by one task, file after file in their order, so that its memory
is bounded by the tree and the largest file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from understudy import schemas
from understudy.errors import BadInputError, UsageError
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
from understudy.sources.local_paths import nothing_found, plain
from understudy.sources.zookeeper import forms, history
from understudy.sources.zookeeper.history import Asked, Plan
from understudy.sources.zookeeper.txnlog import FIRST_TIME_AT, is_log

if TYPE_CHECKING:
    import pyarrow as pa

_LONG_BYTES: Final = 8

_PLACES: Final = T.StructType(
    [
        T.StructField("task", schemas.INT),
        T.StructField("place", schemas.INT),
        T.StructField("directory", schemas.STRING),
        T.StructField("settled_by", schemas.LONG),
        T.StructField("problem", schemas.STRING),
        T.StructField("path", schemas.STRING),
    ]
)


def read(spark: SparkSession, paths: Sequence[str], form: str, wanted: Asked) -> Part:
    """The snapshots in these files and directories of one of ``forms.FORMS``."""
    if form == forms.DATA_DIRECTORY:
        return part_of(paths, _from_directories(spark, paths, wanted))
    if wanted.every_change or wanted.zxid is not None or wanted.time is not None:
        raise UsageError(
            f"--at and --every-change are for data directories; a file of form {form} is one"
            " instant"
        )
    parse_each = partial(_parse_files, form=form, wanted=wanted, reading=uuid4().hex)
    found = files(spark, paths, also_hidden=ALSO_HIDDEN)
    return part_of(paths, found.mapInArrow(parse_each, DOCUMENTS))


def _from_directories(spark: SparkSession, paths: Sequence[str], wanted: Asked) -> DataFrame:
    listed = files(spark, paths, also_hidden=ALSO_HIDDEN).select("path").distinct().collect()
    directories = forms.directories(row.path for row in listed)
    if not directories:
        raise nothing_found(
            f"{path}: there is no snapshot.<zxid> and no log.<zxid>" for path in paths
        )
    starts = {} if wanted.time is None else _log_starts(spark, directories)
    plans = {
        directory: history.plan(names, wanted, {name: starts.get(names[name], 0) for name in names})
        for directory, names in directories.items()
    }
    places = small_frame(spark, _places(directories, plans), _PLACES)
    needed = [directories[each][name] for each in plans for name in plans[each].names]
    ordered = (
        _with_content(spark, places, needed)
        .repartitionById(len(directories), F.col("task"))
        .sortWithinPartitions("task", "place")
    )
    parse_each = partial(_parse_directories, wanted=wanted, reading=uuid4().hex)
    return ordered.mapInArrow(parse_each, DOCUMENTS)


def _load(spark: SparkSession, paths: Sequence[str]) -> DataFrame:
    """Exactly these files, whatever characters their names have."""
    return files(spark, [literally(path) for path in paths], also_hidden=ALSO_HIDDEN)


def _log_starts(
    spark: SparkSession, directories: Mapping[str, Mapping[str, str]]
) -> dict[str, int]:
    """By path of a log, the time of its first transaction."""
    logs = [path for names in directories.values() for name, path in names.items() if is_log(name)]
    if not logs:
        return {}
    written = F.hex(F.substring("content", FIRST_TIME_AT + 1, _LONG_BYTES))
    time = F.conv(written, 16, 10).cast("decimal(20)").alias("time")
    return {
        row.path: int(row.time or 0) for row in _load(spark, logs).select("path", time).collect()
    }


def _places(
    directories: Mapping[str, Mapping[str, str]], plans: Mapping[str, Plan]
) -> list[tuple[Any, ...]]:
    """Where every file that is needed stands in the order of reading."""
    places: list[tuple[Any, ...]] = []
    for task, (directory, chosen) in enumerate(plans.items()):
        whose = (directory, chosen.settled_by, chosen.problem)
        if chosen.problem is not None:
            places.append((task, 0, *whose, None))
        for place, name in enumerate(chosen.names):
            places.append((task, place, *whose, directories[directory][name]))
    return places


def _with_content(spark: SparkSession, places: DataFrame, needed: Sequence[str]) -> DataFrame:
    empty = F.lit(None).cast("binary").alias("content")
    refused = places.where("path IS NULL").select(*_PLACES.names, empty)
    if not needed:
        return refused
    read = _load(spark, needed).join(F.broadcast(places), "path")
    return read.select(*_PLACES.names, "content").unionAll(refused)


# --- On the executors --------------------------------------------------------------------------


def _parse_files(
    batches: Iterator[pa.RecordBatch],
    form: str,
    wanted: Asked,
    reading: str,  # noqa: ARG001 - see documents.read
) -> Iterator[pa.RecordBatch]:
    from understudy.sources import rows  # noqa: PLC0415 - the driver needs no pyarrow for this

    yield from rows.batches(_parsed_files(batches, form, wanted))


def _parsed_files(
    batches: Iterator[pa.RecordBatch], form: str, wanted: Asked
) -> Iterator[tuple[str, str, Iterator[Parsed]]]:
    for batch in batches:
        for path, content in zip(batch.column(0), batch.column(1), strict=True):
            source = plain(path.as_py())
            name = source.rpartition("/")[2]
            if form == forms.SNAPSHOT and (is_log(name) or name in forms.BESIDE_SNAPSHOTS):
                continue
            data = content.as_py()
            if data is None:
                refused = Parsed("byte 0", None, None, (_too_large(name),), None)
                yield source, f"too large: {source}", iter((refused,))
            else:
                digest = _digest(wanted)
                digest.update(data)
                yield source, digest.hexdigest(), forms.parse(data, name, form, wanted)


def _digest(wanted: Asked) -> Any:  # noqa: ANN401 - hashlib names no type
    """A digest to go on with: the same bytes asked otherwise are other snapshots."""
    return hashlib.sha256(repr(wanted).encode())


def _too_large(name: str) -> str:
    return f"{name}: the file is larger than {MAX_FILE_BYTES:,} bytes"


def _parse_directories(
    batches: Iterator[pa.RecordBatch],
    wanted: Asked,
    reading: str,  # noqa: ARG001 - see documents.read
) -> Iterator[pa.RecordBatch]:
    from understudy.sources import rows  # noqa: PLC0415 - the driver needs no pyarrow for this

    yield from rows.batches(_parsed_directories(batches, wanted))


def _parsed_directories(
    batches: Iterator[pa.RecordBatch], wanted: Asked
) -> Iterator[tuple[str, str, Iterator[Parsed]]]:
    """Every directory's snapshots, with the digest of all bytes that were read until then."""
    rows = (row for batch in batches for row in zip(*batch.columns, strict=True))
    for _, group in groupby(rows, key=lambda row: row[0].as_py()):
        first = next(group)
        directory, settled_by, problem = (scalar.as_py() for scalar in first[2:5])
        source = plain(directory)
        if problem is not None:
            refused = Parsed("directory", wanted.naming.cluster, None, (problem,), None)
            yield source, hashlib.sha256(problem.encode()).hexdigest(), iter((refused,))
            continue
        read_so_far = _digest(wanted)
        contents = _contents(chain((first,), group), read_so_far)  # noqa: B031 - one row was taken
        snapshots = (
            (read_so_far.hexdigest(), parsed)
            for parsed in history.read(contents, wanted, settled_by)
        )
        for digest, same in groupby(snapshots, key=itemgetter(0)):
            yield source, digest, (parsed for _, parsed in same)


def _contents(rows: Iterable[Sequence[pa.Scalar]], digest: Any) -> Iterator[tuple[str, bytes]]:  # noqa: ANN401 - hashlib names no type
    for row in rows:
        name = row[5].as_py().rpartition("/")[2]
        data = row[6].as_py()
        if data is None:
            raise BadInputError(_too_large(name))
        digest.update(hashlib.sha256(data).digest())
        yield name, data
