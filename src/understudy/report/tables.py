"""Plain text for a terminal: aligned tables that keep to a width, and numbers people can read."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Sequence
from typing import Final

_NARROWEST: Final = 80
# That of the terminal, or what COLUMNS says; a file or a pipe has none.
WIDTH: Final = max(_NARROWEST, shutil.get_terminal_size((100, 24)).columns)
_GAP: Final = "  "
_KIB: Final = 1024


def table(
    headings: Sequence[str], rows: Sequence[Sequence[object]], *, width: int = WIDTH
) -> list[str]:
    """Lines of an indented table; numbers to the right, the last column cut to fit *width*."""
    cells = [[cell(value) for value in row] for row in rows]
    widths = [
        max(len(heading), *(len(row[column]) for row in cells), 0) if cells else len(heading)
        for column, heading in enumerate(headings)
    ]
    right = [
        bool(rows) and all(isinstance(row[column], int) for row in rows)
        for column in range(len(headings))
    ]

    def line(values: Sequence[str]) -> str:
        padded = (
            value.rjust(size) if numeric else value.ljust(size)
            for value, size, numeric in zip(values, widths, right, strict=True)
        )
        return cut((_GAP + _GAP.join(padded)).rstrip(), width)

    return [line(headings), *map(line, cells)]


def cell(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else str(value)


def cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def wrapped(text: str, width: int = WIDTH) -> list[str]:
    return textwrap.wrap(text, width, subsequent_indent=_GAP, break_long_words=False)


def amount(number: int, one: str, many: str | None = None) -> str:
    """``1 partition``, ``1,200 partitions``."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def size(number: int) -> str:
    """Bytes as people say them."""
    scaled = float(number)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if scaled < _KIB:
            return f"{number} B" if unit == "B" else f"{scaled:.1f} {unit}"
        scaled /= _KIB
    return f"{scaled:.1f} TiB"
