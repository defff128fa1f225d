"""Listing and deleting directories, which the DataFrame API cannot do.

A classic session has Hadoop's file systems for it, whatever the path is on. Spark Connect has no
such thing, and says so.
"""

from __future__ import annotations

from typing import Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from understudy.errors import BadInputError, UsageError
from understudy.session import is_connect


class Folders:
    """The directories below a place."""

    def __init__(self, spark: SparkSession, root: str) -> None:
        if is_connect(spark):
            raise UsageError("files cannot be deleted through Spark Connect: use a classic session")
        context: Any = spark.sparkContext
        self._path = context._jvm.org.apache.hadoop.fs.Path  # noqa: SLF001
        self._root = self._path(root)
        self._files = self._root.getFileSystem(context._jsc.hadoopConfiguration())  # noqa: SLF001

    def names(self, *below: str) -> list[str]:
        """The directories in the one that *below* leads to; none if it is not there."""
        place = self._at(*below)
        if not self._files.exists(place):
            return []
        found = [each for each in self._files.listStatus(place) if each.isDirectory()]
        return sorted(each.getPath().getName() for each in found)

    def delete(self, *below: str) -> None:
        """Delete a directory with all that is in it; one that is gone already is fine."""
        place = self._at(*below)
        try:
            deleted = self._files.delete(place, True)
        except Py4JJavaError as error:
            raise BadInputError(f"{place} cannot be deleted: {error.java_exception}") from None
        if not deleted and self._files.exists(place):
            raise BadInputError(f"{place} cannot be deleted")

    def _at(self, *below: str) -> Any:  # noqa: ANN401 - a path of Java
        place = self._root
        for name in below:
            place = self._path(place, name)
        return place
