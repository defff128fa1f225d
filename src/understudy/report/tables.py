"""Plain text for a terminal: aligned tables that keep to a width, and numbers people can read."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, Final

_NARROWEST: Final = 80
# That of the terminal, or what COLUMNS says; a file or a pipe has none.
WIDTH: Final = max(_NARROWEST, shutil.get_terminal_size((100, 24)).columns)
_GAP: Final = "  "
_BELOW: Final = 3 * _GAP
_ROOM: Final = 30  # characters: a sentence in fewer is a column of words
_SHORTEST: Final = 12
_CUT: Final = "…"
_CUT_NOTE: Final = f"{_GAP}({_CUT} is what did not fit: --json shows it, as does a greater COLUMNS)"
_LEFT_OUT: Final = "follow)"
_KIB: Final = 1024


# --- Tables ------------------------------------------------------------------------------------


def table(
    headings: Sequence[str], rows: Sequence[Sequence[object]], *, width: int = WIDTH
) -> list[str]:
    """Lines of an indented table that keeps to *width*; numbers stand to the right.

    A last column of words says what a row is about, so it is not cut: it goes on below itself or,
    where the others leave it too little room, below the row. Names are cut in the middle, the
    longest first, where they do not fit otherwise; a last line then says how to see them.
    """
    cells = [list(headings), *([cell(value) for value in row] for row in rows)]
    sizes = [max(map(len, column)) for column in zip(*cells, strict=True)]
    is_number = [
        bool(rows) and all(isinstance(row[column], int) for row in rows)
        for column in range(len(headings))
    ]
    beside = width - _taken(sizes[:-1]) - len(_GAP)
    goes_on = sizes[-1] > beside and not is_number[-1]
    is_below = goes_on and beside < _ROOM
    if goes_on:
        sizes[-1] = 0 if is_below else beside
    narrowed = _narrowed(sizes, is_number, width)
    indent = _BELOW if is_below else " " * (width - beside)

    def lines(values: Sequence[str]) -> list[str]:
        *others, last = values
        parts = _folded(last, width - len(indent)) if goes_on else [last]
        if is_below:
            parts = ["", *parts]
        first = _line([*others, parts[0]], narrowed, is_number)
        return [cut(first, width), *(indent + part for part in parts[1:] if part)]

    cuts = narrowed != sizes or _taken(narrowed) > width
    return [*(line for row in cells for line in lines(row)), *([_CUT_NOTE] if cuts else [])]


def _taken(sizes: Sequence[int]) -> int:
    return sum(len(_GAP) + size for size in sizes)


def _narrowed(sizes: Sequence[int], is_number: Sequence[bool], width: int) -> list[int]:
    """The same but for the widest names before the last column, made to fit if they can be."""
    narrowed = list(sizes)
    names = [column for column, numeric in enumerate(is_number[:-1]) if not numeric]
    while names and _taken(narrowed) > width:
        widest = max(names, key=narrowed.__getitem__)
        if narrowed[widest] <= _SHORTEST:
            break
        narrowed[widest] -= 1
    return narrowed


def _line(values: Sequence[str], sizes: Sequence[int], is_number: Sequence[bool]) -> str:
    shown = [*map(_shortened, values[:-1], sizes[:-1]), values[-1]]
    padded = (
        value.rjust(size) if numeric else value.ljust(size)
        for value, size, numeric in zip(shown, sizes, is_number, strict=True)
    )
    return (_GAP + _GAP.join(padded)).rstrip()


def _shortened(name: str, size: int) -> str:
    """Cut in the middle: names of snapshots and partitions begin and end with what tells them."""
    if len(name) <= size:
        return name
    tail = (size - len(_CUT)) // 2
    return name[: size - len(_CUT) - tail] + _CUT + name[len(name) - tail :]


def _folded(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, break_on_hyphens=False) or [""]


def cell(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else str(value)


def leader(broker_id: int | None) -> str:
    """An id is a name, not an amount."""
    return "nobody" if broker_id == -1 else "-" if broker_id is None else str(broker_id)


def cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - len(_CUT)] + _CUT


def wrapped(text: str, width: int = WIDTH) -> list[str]:
    return textwrap.wrap(text, width, subsequent_indent=_GAP, break_long_words=False)


# --- What is listed ----------------------------------------------------------------------------


def listed(found: Mapping[str, Any], one: str) -> str:
    """How many there are of *one*, and how many of them the list that follows has."""
    return amount(found["count"], one) + of_which(len(found["first"]), found["count"])


def of_which(shown: int, count: int, *, which: str = "first") -> str:
    """What to add to a heading whose list has only so many of what there is."""
    return "" if shown >= count else f" (the {which} {shown:,} {_LEFT_OUT}"


def how_to_see_more(text: str, limit: int) -> str:
    """What to say after *text* if a list in it is not whole, see :func:`of_which`; else nothing."""
    return (
        f"\nLists end after {limit:,}: --limit N makes them longer.\n" if _LEFT_OUT in text else ""
    )


# --- Numbers -----------------------------------------------------------------------------------


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
