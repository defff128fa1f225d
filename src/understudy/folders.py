"""Listing and deleting directories, which the DataFrame API cannot do.

Arrow's file systems do it, from the process that runs the command: those of this machine, and
``hdfs://``, ``s3://``, ``gs://`` and ``abfs://`` with the usual credentials of each.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from understudy.errors import BadInputError, UsageError

_SCHEMES: Final = {"s3a": "s3", "s3n": "s3", "abfss": "abfs"}  # Hadoop's names for the same


class Folders:
    """The directories below a place."""

    def __init__(self, root: str) -> None:
        from pyarrow import fs  # noqa: PLC0415 - only where something is deleted

        self._fs = fs
        scheme, found, rest = root.partition("://")
        uri = f"{_SCHEMES.get(scheme, scheme)}://{rest}" if found else Path(root).resolve().as_uri()
        try:
            self._files, self._root = fs.FileSystem.from_uri(uri)
        except (ValueError, OSError) as error:
            raise UsageError(f"{root}: cannot be listed from here: {error}") from None
        if not self.names("runs"):
            raise UsageError(
                f"{root}: nothing is there; a path on a cluster needs its file system, as in"
                " hdfs://host/path"
            )

    def names(self, *below: str) -> list[str]:
        """The directories in the one that *below* leads to; none if it is not there."""
        selector = self._fs.FileSelector(self._at(*below), allow_not_found=True)
        found = self._files.get_file_info(selector)
        return sorted(each.base_name for each in found if each.type == self._fs.FileType.Directory)

    def delete(self, *below: str) -> None:
        """Delete a directory with all that is in it; one that is gone already is fine."""
        place = self._at(*below)
        try:
            self._files.delete_dir(place)
        except FileNotFoundError:
            return
        except OSError as error:
            raise BadInputError(f"{place} cannot be deleted: {error}") from None

    def _at(self, *below: str) -> str:
        return "/".join((self._root, *below))
