"""Whatever operators have, read into the canonical tables: each path by its own reader."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from understudy import published, schemas
from understudy.errors import UsageError
from understudy.frames import small_frame
from understudy.snapshot import Snapshots
from understudy.sources import (
    document,
    documents,
    forms,
    kraft_directory,
    kraft_files,
    store,
    text_files,
    text_forms,
    zookeeper_files,
)
from understudy.sources.combine import Part, combine
from understudy.sources.forms import Found, Listed, Wanted
from understudy.sources.local_paths import nothing_found, plain
from understudy.sources.zookeeper import forms as zookeeper

if TYPE_CHECKING:
    import pyarrow as pa

_HEADS: Final = T.StructType(
    [
        T.StructField("path", schemas.STRING),
        T.StructField("form", schemas.STRING),
        T.StructField("digest", schemas.STRING),
    ]
)


def load(spark: SparkSession, paths: Sequence[str], wanted: Wanted) -> Snapshots:
    """The snapshots in *paths*: stores, and files and directories of any form, mixed.

    Files are recognised by content unless *wanted* names their form; what is of no form is in the
    quarantine. The caller closes the result.
    """
    wanted.check()
    stores, others = store.divide(spark, paths)
    others = _with_names_above(spark, others)
    if stores and wanted.form is not None:
        raise UsageError(f"--form {wanted.form}: {stores[0]} is a snapshot store, which needs none")
    parts = [store.read(spark, path) for path in stores]
    if others and wanted.form is not None:
        parts.append(_read(spark, others, wanted.form, wanted))
    elif others:
        parts += _recognised(spark, others, wanted)
    elif wanted.settings():
        raise UsageError("a snapshot store is loaded as it is: leave the options out")
    return combine(parts)


def _with_names_above(spark: SparkSession, paths: Sequence[str]) -> list[str]:
    """And the files that name the cluster of a metadata log, which lie above its directory."""
    above = filter(None, map(kraft_directory.names_above, paths))
    return [*dict.fromkeys([*paths, *(path for path in above if published.exists(spark, path))])]


def _recognised(spark: SparkSession, paths: Sequence[str], wanted: Wanted) -> list[Part]:
    listed = [
        Listed(row.path, row.length)
        for row in documents.listed(spark, paths, also_hidden=documents.ALSO_HIDDEN).collect()
    ]
    heads = _heads(spark, paths, listed)
    looked_at = {path: form for path, (form, _) in heads.items()}
    found = forms.sort_out(listed, looked_at, documents.MAX_FILE_BYTES)
    wanted.check_forms(form for form in found.forms if form != text_forms.BESIDE)
    digests = {path: digest for path, (_, digest) in heads.items()}
    parts = [
        _read(spark, _exactly(paths, listed, of_reader), reader, wanted)
        for reader, of_reader in _by_reader(found).items()
    ]
    if found.unknown:
        parts.append(_unknown(spark, found, digests))
    if not parts:
        raise nothing_found(f"{path}: there is nothing to load" for path in paths)
    return parts


def _heads(
    spark: SparkSession, paths: Sequence[str], listed: Sequence[Listed]
) -> dict[str, tuple[str | None, str]]:
    """By path, the form of every file that has to be looked at and a digest of its beginning."""
    chosen = forms.to_look_at(listed, documents.MAX_FILE_BYTES)
    if not chosen:
        return {}
    found = documents.files(
        spark, _exactly(paths, listed, chosen), also_hidden=documents.ALSO_HIDDEN
    )
    heads = found.select("path", F.substring("content", 1, forms.HEAD_BYTES).alias("head"))
    return {row.path: (row.form, row.digest) for row in heads.mapInArrow(_look, _HEADS).collect()}


def _look(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa  # noqa: PLC0415 - the driver needs no pyarrow for this

    for batch in batches:
        paths, heads = batch.column(0).to_pylist(), batch.column(1).to_pylist()
        found = [
            forms.recognise(head or b"", path.rpartition("/")[2])
            for path, head in zip(paths, heads, strict=True)
        ]
        digests = [hashlib.sha256(head or b"").hexdigest() for head in heads]
        columns = [batch.column(0), pa.array(found, pa.string()), pa.array(digests, pa.string())]
        yield pa.RecordBatch.from_arrays(columns, names=_HEADS.names)


def _exactly(
    given: Sequence[str], listed: Sequence[Listed], chosen: Sequence[str]
) -> Sequence[str]:
    """What names the *chosen* files: the paths *given* if that is all of them, being fewer.

    Readers differ in which hidden directories they look into, so those are named file by file.
    """
    if len(chosen) == len(listed) and not any("/_" in path for path in chosen):
        return given
    return [documents.literally(path) for path in chosen]


def _by_reader(found: Found) -> dict[str | None, list[str]]:
    """The paths each reader gets; null stands for the texts, which add to each other."""
    readers: dict[str | None, list[str]] = {}
    for form, paths in found.forms.items():
        is_text = form in text_forms.FORMS or form == text_forms.BESIDE
        readers.setdefault(None if is_text else form, []).extend(paths)
    return readers


def _read(spark: SparkSession, paths: Sequence[str], form: str | None, wanted: Wanted) -> Part:
    if form == forms.JSON:
        limit = wanted.max_uncompressed_bytes or document.MAX_UNCOMPRESSED_BYTES
        return documents.read(
            spark, paths, max_uncompressed_bytes=limit, also_hidden=documents.ALSO_HIDDEN
        )
    if form in zookeeper.FORMS:
        return zookeeper_files.read(spark, paths, form, wanted.of_zookeeper())
    if form == kraft_directory.FORM:
        return kraft_files.read(spark, paths, wanted.of_kafka())
    return text_files.read(spark, paths, wanted.of_kafka(), form)


def _unknown(spark: SparkSession, found: Found, digests: dict[str, str]) -> Part:
    """The files nobody reads, refused one by one."""
    schema = documents.DOCUMENTS
    rows = []
    for path, problem in found.unknown.items():
        known: dict[str, Any] = {
            "source": plain(path),
            "position": "byte 0",
            "part": 0,
            "file_digest": digests.get(path, problem),
            "problems": [problem],
        }
        rows.append([known.get(name) for name in schema.names])
    return documents.part_of(list(found.unknown), small_frame(spark, rows, schema))
