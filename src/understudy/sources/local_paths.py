"""Paths of this machine, looked at without Spark: what is not there is told before one is started.

Whatever is found here, Spark finds, too. Where the two could differ (braces and backslashes in a
pattern, any file system but this machine's) nothing is said here, and Spark has the word.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from understudy.errors import BadInputError, UsageError

NO_SUCH_FILE: Final = "no such file"
NO_FILE_THERE: Final = "there is no file"

LITTLE: Final = 2**20
"""Bytes in all, whose work is done before a JVM has optimised the code for it."""
COMPRESSED: Final = 16
"""Times its size that a compressed file is taken for."""

_NOTHING_FOUND: Final = "nothing was found to read"
_SCHEME: Final = re.compile(r"[^/]*:")
_ONLY_SPARKS: Final = re.compile(r"[\\{}]")
_GZIP_MAGIC: Final = b"\x1f\x8b"


def nothing_found(problems: Iterable[str]) -> BadInputError:
    """The error for paths that give nothing, each with what is the matter with it."""
    return BadInputError(_NOTHING_FOUND, list(problems))


def plain(path: str) -> str:
    """A path as people write it: local files without ``file:``."""
    return path.removeprefix("file:") if path.startswith("file:/") else path


def is_local(path: str) -> bool:
    """Whether *path* is of this machine, if paths without a scheme are."""
    return _SCHEME.match(plain(path)) is None


def check_there(paths: Iterable[str]) -> None:
    """Refuse those of *paths* that are of this machine and give no file, all at once."""
    missing = {path: why for path in dict.fromkeys(paths) if (why := _why_missing(path))}
    if missing:
        raise nothing_found(f"{path}: {why}" for path, why in missing.items())


def check_can_be_written(place: str) -> None:
    """Refuse a place of this machine where no directory can be made."""
    if not is_local(place):
        return
    there = Path(plain(place))
    while not there.exists() and there != there.parent:
        there = there.parent
    try:
        with TemporaryDirectory(prefix=".understudy-", dir=there):
            pass
    except OSError as error:
        raise UsageError(f"{place}: cannot be written: {there}: {error.strerror}") from None


def hold_little(paths: Sequence[str]) -> bool:
    """Whether all that *paths* give is on this machine, and little; of no paths nobody can tell."""
    if not paths or any(map(_is_only_sparks, paths)):
        return False
    left = LITTLE
    for file in (file for path in paths for place in _found(path) for file in _files(place)):
        left -= file.stat().st_size if file.exists() else 0  # a link may lead nowhere
        if left < 0:
            return False
    return True


def little_content(files: Iterable[str]) -> dict[str, bytes] | None:
    """The bytes of each of these files of this machine; None if they are more than a little."""
    found: dict[str, bytes] = {}
    left = LITTLE
    for file in map(Path, files):
        left -= file.stat().st_size
        if left < 0:
            return None
        found[str(file)] = data = file.read_bytes()
        left -= (COMPRESSED - 1) * len(data) if data.startswith(_GZIP_MAGIC) else 0
    return found if left >= 0 else None


def _why_missing(path: str) -> str | None:
    if _is_only_sparks(path):
        return None
    found = _found(path)
    if not found:
        return NO_SUCH_FILE
    return None if any(any(_files(place)) for place in found) else NO_FILE_THERE


def _is_only_sparks(path: str) -> bool:
    return not is_local(path) or _ONLY_SPARKS.search(path) is not None


def _found(path: str) -> list[str]:
    # Hadoop's patterns match hidden names as well, and may say "none of these" with a ^.
    pattern = plain(path).replace("[^", "[!")
    return glob.glob(pattern, include_hidden=True)  # noqa: PTH207 - may be absolute


def _files(place: str) -> Iterator[Path]:
    if not Path(place).is_dir():
        yield Path(place)
    for folder, _, names in os.walk(place, followlinks=True):
        yield from (Path(folder, name) for name in names)
