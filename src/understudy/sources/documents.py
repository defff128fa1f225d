"""Files of snapshot documents, read in parallel into the canonical tables.

Spark brings the bytes, so any path it can read will do; the documents are parsed on the executors,
each file by itself, in one pass that is kept for the tables to be cut from.
"""

from __future__ import annotations

import fnmatch
import hashlib
import re
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit
from uuid import uuid4

from pyspark.errors import AnalysisException, IllegalArgumentException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from understudy import schemas
from understudy.errors import BadInputError
from understudy.session import runs_in_here
from understudy.sources.combine import FILE_DIGEST, ORIGIN, POSITION, ROWS, SOURCE, Part
from understudy.sources.content import Parsed
from understudy.sources.document import MAX_UNCOMPRESSED_BYTES, parse
from understudy.sources.local_paths import NO_SUCH_FILE, little_content, nothing_found, plain

if TYPE_CHECKING:
    import pyarrow as pa

ALSO_HIDDEN: Final = ("_*",)
"""Directories that a load looks into though Spark would not."""
MAX_FILE_BYTES: Final = 2**30
"""Spark hands a file over in one piece, and one value of it cannot pass 2 GiB."""

_COLON: Final = "Relative path in absolute URI"  # how Hadoop says that it stumbled over one
_NAMED: Final = 10
_PATTERN: Final = re.compile(r"[\\{}\[\]*?]")
_ESCAPED: Final = re.compile(r"\\.")
_KEY: Final = ("cluster", "snapshot_id")
_NESTED: Final = ("brokers", "topics", "partitions", "configs")


def _without_key(schema: T.StructType) -> T.StructType:
    return T.StructType([field for field in schema if field.name not in _KEY])


DOCUMENTS: Final = T.StructType(
    [
        T.StructField("source", schemas.STRING),
        T.StructField("position", schemas.STRING),
        T.StructField("part", schemas.INT),
        T.StructField("file_digest", schemas.STRING),
        T.StructField("cluster", schemas.STRING),
        T.StructField("snapshot_id", schemas.STRING),
        T.StructField("problems", schemas.STRINGS),
        T.StructField("snapshot", _without_key(schemas.SNAPSHOTS)),
        *(
            T.StructField(name, T.ArrayType(_without_key(schemas.SNAPSHOT_TABLES[name])))
            for name in _NESTED
        ),
    ]
)


def read(
    spark: SparkSession,
    paths: Sequence[str],
    *,
    max_uncompressed_bytes: int = MAX_UNCOMPRESSED_BYTES,
    also_hidden: Sequence[str] = (),
) -> Part:
    """The documents in these files, directories and globs.

    Every reading has a name of its own: Spark shares what is kept between equal plans, and would
    answer the second reading of a path from the first, though the file may have changed since.
    """
    parse_each = partial(_parse_files, limit=max_uncompressed_bytes, reading=uuid4().hex)
    found = unmarked(files(spark, paths, also_hidden), paths)
    return part_of(paths, found.mapInArrow(parse_each, DOCUMENTS))


def part_of_parsed(spark: SparkSession, source: str, parsed: Parsed) -> Part:
    """What one snapshot gives that was not read from a file."""
    import pyarrow as pa  # noqa: PLC0415 - importing the package must not load it

    from understudy.sources import rows  # noqa: PLC0415

    digest = parsed.content.snapshot[-1] if parsed.content else ""
    table = pa.Table.from_batches(rows.batches([(source, digest, [parsed])]))
    return part_of([source], spark.createDataFrame(table, DOCUMENTS))


def part_of(paths: Sequence[str], parsed: DataFrame) -> Part:
    """What *parsed*, a frame of the schema DOCUMENTS, gives; it is kept until it is closed."""
    names = {"source": SOURCE, "position": POSITION, "file_digest": FILE_DIGEST}
    documents = parsed.withColumnsRenamed(names).persist()
    return Part(
        paths=tuple(paths),
        index=documents.selectExpr(
            *_KEY,
            "IF(part = 0, snapshot.content_digest, NULL) AS content_digest",
            *(SOURCE, POSITION),
            f"IF(part = 0, {FILE_DIGEST}, NULL) AS {FILE_DIGEST}",
            f"{' + '.join(f'coalesce(size({name}), 0)' for name in _NESTED)} AS {ROWS}",
        ),
        tables=_tables(documents),
        once=lambda: _tables(documents.dropDuplicates([SOURCE, POSITION, "part"])),
        held=(documents,),
    )


def _tables(documents: DataFrame) -> dict[str, DataFrame]:
    origin = (SOURCE, POSITION, *_KEY)
    read_well = documents.where("snapshot IS NOT NULL")
    refused = documents.where("problems IS NOT NULL")
    named = (F.col(SOURCE).alias("source"), F.col(POSITION).alias("position"))
    return {
        "snapshots": read_well.select(*origin, "snapshot.*"),
        **{name: documents.select(*origin, F.inline(name)) for name in _NESTED},
        "provenance": read_well.select(*origin, *named),
        "quarantine": refused.select(*ORIGIN, *named, *_KEY, "problems"),
    }


def files(spark: SparkSession, paths: Sequence[str], also_hidden: Sequence[str] = ()) -> DataFrame:
    """The path and content of every file below *paths*; no content for one that is too large.

    *also_hidden* are patterns of names that are looked into though they begin with '_' or '.'.
    """
    found = _found(spark, paths, also_hidden)
    small = F.col("length") <= MAX_FILE_BYTES
    return (
        found.where(small)
        .select("path", "content")
        .unionAll(found.where(~small).select("path", F.lit(None).cast("binary")))
    )


def fetched(spark: SparkSession, path: str) -> list[tuple[str, bytes | None]]:
    """The name and content of every file of *path*, by name; no content for one too large.

    They are small, and come to the driver.
    """
    little = little_of_this_machine(spark, [path])
    if little is not None:
        return sorted(little.items())
    rows = files(spark, [path]).collect()
    return sorted((plain(row.path), row.content and bytes(row.content)) for row in rows)


def little_of_this_machine(spark: SparkSession, paths: Sequence[str]) -> dict[str, bytes] | None:
    """The content of every file below *paths*, if they are files of this machine, and little.

    Spark finds them, but is not asked to open them.
    """
    if not runs_in_here(spark):
        return None
    found = [urlsplit(name) for name in _found(spark, paths, ()).inputFiles()]
    if any(name.scheme != "file" for name in found):
        return None
    try:
        return little_content(sorted(unquote(name.path) for name in found))
    except OSError:  # whatever is the matter with a file, Spark says it
        return None


def unmarked(found: DataFrame, paths: Sequence[str]) -> DataFrame:
    """Without the marks that programs leave beside files (``_SUCCESS``), unless asked for."""
    return found if _hidden_names(paths) else found.where(~F.col("path").rlike("/_[^/]*$"))


def listed(spark: SparkSession, paths: Sequence[str], also_hidden: Sequence[str] = ()) -> DataFrame:
    """The path and length of every file below *paths*; none of them is opened."""
    return _found(spark, paths, also_hidden).select("path", "length")


def literally(path: str) -> str:
    """A path as Hadoop reads it when none of its characters is meant as a pattern."""
    return _PATTERN.sub(r"\\\g<0>", path)


def _found(spark: SparkSession, paths: Sequence[str], also_hidden: Sequence[str]) -> DataFrame:
    reader = spark.read.format("binaryFile").option("recursiveFileLookup", "true")
    hidden = [*_hidden_names(paths), *also_hidden]
    if hidden:
        # Spark passes over names that begin with '_' or '.', even when they are asked for.
        asked = "|".join(fnmatch.translate(name) for name in hidden)
        reader = reader.option("ignoredPathSegmentRegex", f"^(?!(?:{asked}))[._]")
    # A single path is looked at for the metadata of a streaming sink first, which leaves a stack
    # trace in the log if it is a pattern. Named twice it is not, and its files are still read once.
    named = [*paths, *paths] if len(paths) == 1 else list(paths)
    try:
        found = reader.load(named)
        _ = found.columns  # without a question Spark Connect does not look at the paths
    except AnalysisException as error:
        raise _missing(spark, paths, error) from error
    except IllegalArgumentException as error:
        if _COLON not in str(error):
            raise
        raise BadInputError(
            "Hadoop cannot look for a pattern where a name has a colon: rename it, or leave the"
            " characters []{}*? out of the path",
            [path for path in paths if _PATTERN.search(path)][:_NAMED],
        ) from None
    return found


def _missing(spark: SparkSession, paths: Sequence[str], error: AnalysisException) -> Exception:
    """The error for a path that matches nothing, naming all such paths; else *error* itself."""
    if error.getCondition() != "PATH_NOT_FOUND":
        return error
    absent = [path for path in paths if not _is_there(spark, path)]
    return nothing_found(f"{path}: {NO_SUCH_FILE}" for path in absent)


def _is_there(spark: SparkSession, path: str) -> bool:
    try:
        spark.read.format("binaryFile").load(path).isEmpty()
    except AnalysisException:
        return False
    return True


def _hidden_names(paths: Sequence[str]) -> list[str]:
    last = (path.rstrip("/").rpartition("/")[2] for path in paths)
    names = (_ESCAPED.sub("?", name) for name in last)
    return sorted({name for name in names if name.startswith(("_", "."))} - {".", ".."})


def _parse_files(
    batches: Iterator[pa.RecordBatch],
    limit: int,
    reading: str,  # noqa: ARG001 - see read
) -> Iterator[pa.RecordBatch]:
    from understudy.sources import rows  # noqa: PLC0415 - the driver needs no pyarrow for this

    yield from rows.batches(_parsed(batches, limit))


def _parsed(
    batches: Iterator[pa.RecordBatch], limit: int
) -> Iterator[tuple[str, str, Iterator[Parsed]]]:
    for batch in batches:
        for path, content in zip(batch.column(0), batch.column(1), strict=True):
            source, data = plain(path.as_py()), content.as_py()
            if data is None:
                yield source, f"too large: {source}", iter((_too_large(),))
            else:
                yield (
                    source,
                    hashlib.sha256(data).hexdigest(),
                    parse(data, max_uncompressed_bytes=limit),
                )


def _too_large() -> Parsed:
    problem = f"the file is larger than {MAX_FILE_BYTES:,} bytes; compress it or split it"
    return Parsed("line 1", None, None, (problem,), None)
