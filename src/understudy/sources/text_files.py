"""Files with the texts of Kafka's tools, read in parallel into the canonical tables.

Spark brings the bytes, so any path it can read will do; the texts of one directory meet in one
task, those that add to others first, and are then read one after the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby, islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from understudy import schemas
from understudy.errors import BadInputError
from understudy.sources import text_forms
from understudy.sources.combine import Part
from understudy.sources.content import Parsed
from understudy.sources.documents import (
    ALSO_HIDDEN,
    DOCUMENTS,
    files,
    part_of,
    unmarked,
)
from understudy.sources.kraft_directory import Asked
from understudy.sources.kraft_files import digest
from understudy.sources.local_paths import plain
from understudy.sources.state_change_log import decisions

if TYPE_CHECKING:
    import pyarrow as pa

_RANKED: Final = T.StructType(
    [
        T.StructField("directory", schemas.STRING),
        T.StructField("rank", schemas.INT),
        T.StructField("path", schemas.STRING),
        T.StructField("content", T.BinaryType()),
    ]
)

RECORDED: Final = T.StructType(
    [
        T.StructField("source", schemas.STRING),
        T.StructField("line", schemas.INT),
        T.StructField("time", schemas.TIMESTAMP),
        T.StructField("controller_id", schemas.INT),
        T.StructField("controller_epoch", schemas.INT),
        T.StructField("kind", schemas.STRING),
        T.StructField("topic", schemas.STRING),
        T.StructField("partition", schemas.INT),
        T.StructField("replica", schemas.INT),
        T.StructField("from_state", schemas.STRING),
        T.StructField("to_state", schemas.STRING),
        T.StructField("result", schemas.STRING),
        T.StructField("leader", schemas.INT),
        T.StructField("leader_epoch", schemas.INT),
        T.StructField("isr", schemas.IDS),
        T.StructField("partition_epoch", schemas.INT),
        T.StructField("recovery", schemas.INT),
        T.StructField("record_epoch", schemas.INT),
        T.StructField("replicas", schemas.IDS),
    ]
)
"""The columns of :func:`recorded`: those of :class:`state_change_log.Recorded`."""

REFUSED: Final = "refused"
"""The ``kind`` of a row for a log that cannot be read; its ``result`` says why."""
_RECORDED_ROWS: Final = 10_000


def read(spark: SparkSession, paths: Sequence[str], wanted: Asked, form: str | None = None) -> Part:
    """The snapshots in these texts; with *form* only in those of that form."""
    ranked = (
        unmarked(files(spark, paths, ALSO_HIDDEN), paths)
        .mapInArrow(_rank, _RANKED)
        .repartition("directory")
        .sortWithinPartitions("directory", "rank", "path")
    )
    parse_each = partial(_parse, wanted=wanted, form=form, reading=uuid4().hex)
    return part_of(paths, ranked.mapInArrow(parse_each, DOCUMENTS))


def recorded(spark: SparkSession, paths: Sequence[str]) -> DataFrame:
    """Every decision in these state-change logs, plain or gzip."""
    return files(spark, paths).mapInArrow(_recorded, RECORDED)


def _rank(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa  # noqa: PLC0415 - the driver needs no pyarrow for this

    for batch in batches:
        paths = batch.column(0).to_pylist()
        heads = (
            content.as_buffer()[: text_forms.HEAD_BYTES].to_pybytes() if content.is_valid else b""
            for content in batch.column(1)
        )
        yield pa.RecordBatch.from_arrays(
            [
                pa.array([path.rpartition("/")[0] for path in paths], pa.string()),
                pa.array([text_forms.rank(head) for head in heads], pa.int32()),
                batch.column(0),
                batch.column(1),
            ],
            names=_RANKED.names,
        )


def _parse(
    batches: Iterator[pa.RecordBatch],
    wanted: Asked,
    form: str | None,
    reading: str,  # noqa: ARG001 - see documents.read
) -> Iterator[pa.RecordBatch]:
    from understudy.sources import rows  # noqa: PLC0415 - the driver needs no pyarrow for this

    yield from rows.batches(_parsed(batches, wanted, form))


def _parsed(
    batches: Iterator[pa.RecordBatch], wanted: Asked, form: str | None
) -> Iterator[tuple[str, str, Iterator[Parsed]]]:
    rows = (
        (directory.as_py(), path.as_py(), content)
        for batch in batches
        for directory, _, path, content in zip(*batch.columns, strict=True)
    )
    for _, group in groupby(rows, key=itemgetter(0)):
        for path, parsed in text_forms.snapshots(_contents(group), wanted, form):
            yield plain(path), digest(parsed), iter((parsed,))


def _contents(group: Iterable[tuple[str, str, pa.Scalar]]) -> Iterator[tuple[str, bytes | None]]:
    return ((path, content.as_py()) for _, path, content in group)


def _recorded(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa  # noqa: PLC0415
    from pyspark.sql.pandas.types import to_arrow_schema  # noqa: PLC0415

    schema = to_arrow_schema(RECORDED, timezone="UTC")
    for batch in batches:
        for path, content in zip(*batch.columns, strict=True):
            rows = _recorded_rows(plain(path.as_py()), content.as_py())
            while some := list(islice(rows, _RECORDED_ROWS)):
                yield pa.RecordBatch.from_pylist(some, schema=schema)


def _recorded_rows(source: str, data: bytes | None) -> Iterator[dict[str, Any]]:
    """The decisions of one log; a log that cannot be read is one row that says why."""
    try:
        if data is None:
            raise BadInputError("the file is too large; compress it or split it")  # noqa: TRY301
        for row in decisions(text_forms.plain_text(data).splitlines()):
            yield {"source": source, **row._asdict(), "time": row.time * 1000}
    except BadInputError as error:
        yield {"source": source, "kind": REFUSED, "result": str(error)}
