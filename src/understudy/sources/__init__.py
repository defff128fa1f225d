"""The only readers: every form of input ends in the canonical tables of :class:`Snapshots`.

Spark is loaded when something is read: the names of the forms are known without it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from understudy.sources.forms import Wanted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from understudy.snapshot import Snapshots


def read(
    spark: SparkSession, paths: Sequence[str], only: Collection[tuple[str, str]] | None = None
) -> Snapshots:
    """The snapshots in *paths*: stores, and files, directories or globs of documents, mixed.

    Of stores, *only* the snapshots with these keys, if they are given. The caller closes the
    result.
    """
    from understudy.sources import documents, few_documents, store  # noqa: PLC0415
    from understudy.sources.combine import combine  # noqa: PLC0415

    stores, others = store.divide(spark, paths)
    if not stores and (few := few_documents.read(spark, others)) is not None:
        return few
    parts = [store.read(spark, path, only) for path in stores]
    if others:
        parts.append(documents.read(spark, others))
    return combine(parts, settles_few=True)


def load(spark: SparkSession, paths: Sequence[str], wanted: Wanted | None = None) -> Snapshots:
    """The snapshots in *paths*, whatever form they have; see :mod:`understudy.sources.loading`."""
    from understudy.sources import loading  # noqa: PLC0415

    return loading.load(spark, paths, wanted or Wanted())
