"""Several sources as one set of snapshots: each snapshot once, contradictions set aside.

A snapshot met twice with the same content is one. Met with different content none of them can be
trusted, so all of them go to quarantine, each naming the others.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Final, NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from understudy import schemas
from understudy.frames import FEW_ROWS, settled
from understudy.names import SNAPSHOT_KEY
from understudy.snapshot import Key, Sizes, Snapshots, not_at_hand, unknown_sizes
from understudy.sources.local_paths import NO_FILE_THERE, nothing_found

if TYPE_CHECKING:
    import pyarrow as pa

SOURCE: Final = "_source"
POSITION: Final = "_position"
FILE_DIGEST: Final = "_file_digest"
ROWS: Final = "_rows"
ORIGIN: Final = (SOURCE, POSITION)

_OTHERS_NAMED: Final = 3


@dataclass(frozen=True)
class Part:
    """What one kind of source gave; every row knows by SOURCE and POSITION where it stood."""

    paths: tuple[str, ...]
    index: DataFrame
    """One row per piece of a document or stored snapshot: key, content_digest (once, and null if
    refused), SOURCE, POSITION, FILE_DIGEST (once per file), ROWS (of a store, unknown)."""
    tables: dict[str, DataFrame]
    once: Callable[[], dict[str, DataFrame]]
    """The tables again, for when the same file was given by two paths."""
    digest: str = ""
    held: tuple[DataFrame, ...] = ()
    sizes: Callable[[], Sizes | None] = unknown_sizes
    nothing_refused: bool = False
    at_hand: Callable[[str, Key], pa.Table | None] = not_at_hand
    is_distinct: bool = False
    """Whether each snapshot is known to be there once."""


def combine(parts: Sequence[Part], *, settles_few: bool = False) -> Snapshots:
    """The snapshots of all *parts*, with one small job to see what they have in common.

    With *settles_few* the tables of a few small documents are computed at once: all that is asked
    of them is planned sooner then, and nothing has to be kept.
    """
    held = [frame for part in parts for frame in part.held]
    if len(parts) == 1 and parts[0].is_distinct:
        (part,) = parts
        return Snapshots(
            **_conformed(part.tables),
            input_digest=input_digest([f"store {part.digest}"]),
            held=part.held,
            rows=None,
            sizes=part.sizes,
            nothing_refused=part.nothing_refused,
            at_hand=part.at_hand,
            key=None,
        )
    index = reduce(DataFrame.unionByName, (part.index for part in parts))
    summary = _summary(index)
    for part in parts:
        if not part.digest and not summary.files:
            raise nothing_found(f"{path}: {NO_FILE_THERE}" for path in part.paths)
    repeated = summary.files_read != summary.files
    tables = _union([part.once() if repeated else part.tables for part in parts])
    has_copies = summary.snapshots_read != summary.snapshots
    if has_copies:
        copies = _copies(index).coalesce(1).persist()  # small, and joined to every table
        held.append(copies)
        tables = _without_copies(tables, copies)
    tables = _conformed(tables)
    rows = None
    if settles_few and summary.rows is not None and summary.rows <= FEW_ROWS:
        rows = summary.rows
        tables = {name: settled(table) for name, table in tables.items()}
        for frame in held:
            frame.unpersist()
        held = []
    digest = input_digest(
        [f"store {part.digest}" if part.digest else summary.digest for part in parts]
    )
    return Snapshots(
        **tables,
        input_digest=digest,
        held=tuple(held),
        rows=rows,
        sizes=parts[0].sizes if len(parts) == 1 else unknown_sizes,
        nothing_refused=all(part.nothing_refused for part in parts) and not has_copies,
        at_hand=parts[0].at_hand if len(parts) == 1 and not has_copies else not_at_hand,
        key=None,
    )


class _Summary(NamedTuple):
    """What was read, and whether anything of it was there twice."""

    files_read: int
    files: int
    digest: str
    snapshots_read: int
    snapshots: int
    rows: int | None


def _summary(index: DataFrame) -> _Summary:
    """Of documents and snapshots, which are few beside what is in them."""
    rows = index.toArrow().to_pylist()
    read = [(row[SOURCE], row[FILE_DIGEST]) for row in rows if row[FILE_DIGEST] is not None]
    files = set(read)
    good = [row for row in rows if row["content_digest"] is not None]
    counts = [row[ROWS] for row in rows]
    return _Summary(
        files_read=len(read),
        files=len(files),
        digest=digest_of_files(digest for _, digest in files),
        snapshots_read=len(good),
        snapshots=len({tuple(row[name] for name in SNAPSHOT_KEY) for row in good}),
        rows=None if None in counts else sum(counts),
    )


def _conformed(tables: dict[str, DataFrame]) -> dict[str, DataFrame]:
    told = {**schemas.SNAPSHOT_TABLES, "quarantine": schemas.QUARANTINE}
    return {name: schemas.conform(tables[name], schema) for name, schema in told.items()}


def digest_of_files(digests: Iterable[str]) -> str:
    """As the summary of an index says it of the digests of all files."""
    return hashlib.sha256(",".join(sorted(digests)).encode()).hexdigest()


def input_digest(digests: Iterable[str]) -> str:
    """Of all that was read: stores, and the files of documents."""
    return hashlib.sha256("\n".join(sorted(digests)).encode()).hexdigest()


def _union(parts: Sequence[dict[str, DataFrame]]) -> dict[str, DataFrame]:
    names = [*schemas.SNAPSHOT_TABLES, "quarantine"]
    return {
        name: reduce(DataFrame.unionByName, (part[name] for part in parts if name in part))
        for name in names
    }


def _copies(index: DataFrame) -> DataFrame:
    """Per snapshot every place it was read from, in a fixed order."""
    place = F.struct(SOURCE, F.length(POSITION).alias("width"), POSITION, F.col("content_digest"))
    return (
        index.where("content_digest IS NOT NULL")
        .groupBy(*SNAPSHOT_KEY)
        .agg(F.array_sort(F.collect_set(place)).alias("copies"))
        .withColumn("contradicts", F.size(F.array_distinct("copies.content_digest")) > 1)
    )


def _without_copies(tables: dict[str, DataFrame], copies: DataFrame) -> dict[str, DataFrame]:
    chosen = F.broadcast(
        copies.where("NOT contradicts").select(
            *SNAPSHOT_KEY, *(F.col("copies")[0][column].alias(column) for column in ORIGIN)
        )
    )
    kept = {
        name: tables[name].join(chosen, [*ORIGIN, *SNAPSHOT_KEY], "left_semi")
        for name in schemas.SNAPSHOT_TABLES
    }
    contradictions = (
        copies.where("contradicts")
        .select(*SNAPSHOT_KEY, "copies", F.explode("copies").alias("own"))
        .select(
            *(F.col("own")[column].alias(column) for column in ORIGIN),
            F.col("own")[SOURCE].alias("source"),
            F.col("own")[POSITION].alias("position"),
            *SNAPSHOT_KEY,
            F.array(_contradiction(F.col("copies"), F.col("own"))).alias("problems"),
        )
    )
    return {**kept, "quarantine": tables["quarantine"].unionByName(contradictions)}


def _contradiction(copies: Column, own: Column) -> Column:
    others = F.filter(copies, lambda each: each["content_digest"] != own["content_digest"])
    named = F.transform(
        F.slice(others, 1, _OTHERS_NAMED),
        lambda each: F.concat(each[SOURCE], F.lit(", "), each[POSITION]),
    )
    more = F.size(others) - F.lit(_OTHERS_NAMED)
    rest = F.when(more > 0, F.format_string(" and %d more", more)).otherwise("")
    return F.concat(
        F.lit("snapshot "),
        F.col("snapshot_id"),
        F.lit(" of cluster "),
        F.col("cluster"),
        F.lit(" has other content in "),
        F.array_join(named, "; "),
        rest,
    )
