"""Packs the package into the zip that ``spark-submit --py-files`` ships to executors.

``python -m understudy.bundle dist/understudy.zip``. The same files give the same bytes: entries
are sorted, dated alike and stored as they are.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final
from zipfile import ZIP_STORED, ZipFile, ZipInfo

_PACKAGE: Final = Path(__file__).parent
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)
_READABLE_FILE: Final = 0o100644 << 16
_UNIX: Final = 3


def bundle(target: Path) -> Path:
    """Write the zip; return where it is."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with ZipFile(target, "w", ZIP_STORED) as packed:
        for path in sorted(_PACKAGE.rglob("*")):
            inside = path.relative_to(_PACKAGE.parent).as_posix()
            if path.is_file() and "__pycache__" not in path.parts:
                entry = ZipInfo(inside, _EPOCH)
                entry.external_attr, entry.create_system = _READABLE_FILE, _UNIX
                packed.writestr(entry, path.read_bytes())
    return target


if __name__ == "__main__":
    if len(sys.argv) != 2:  # noqa: PLR2004
        sys.exit("usage: python -m understudy.bundle ZIP")
    sys.stdout.write(f"{bundle(Path(sys.argv[1]))}\n")
