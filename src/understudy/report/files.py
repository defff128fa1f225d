"""Small files beside the tables: whole or not there at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from understudy.errors import UsageError


def write_whole(path: str, content: str) -> None:
    """Write *content* so that nobody ever reads a part of it: another file, then a rename."""
    target = Path(path)
    try:
        handle, scratch = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from None
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as out:
            out.write(content)
            out.flush()
            os.fsync(out.fileno())
        # As any new file: a scratch file may be read by its owner alone.
        umask = os.umask(0)
        os.umask(umask)
        Path(scratch).chmod(0o666 & ~umask)
        Path(scratch).replace(target)
    except BaseException:
        Path(scratch).unlink(missing_ok=True)
        raise
