"""The only readers: every form of input ends in the canonical tables of :class:`Snapshots`."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import SparkSession

from understudy.errors import UsageError
from understudy.snapshot import Snapshots
from understudy.sources import documents, store
from understudy.sources.combine import combine


def read(spark: SparkSession, paths: Sequence[str]) -> Snapshots:
    """The snapshots in *paths*: stores, and files, directories or globs of documents, mixed.

    The caller closes the result.
    """
    if not paths:
        raise UsageError("no path to read snapshots from was given")
    given = list(dict.fromkeys(paths))
    stores = [path for path in given if store.is_store(spark, path)]
    others = [path for path in given if path not in stores]
    parts = [store.read(spark, path) for path in stores]
    if others:
        parts.append(documents.read(spark, others))
    return combine(parts)
