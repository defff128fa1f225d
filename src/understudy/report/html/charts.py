"""Charts as SVG: few marks, each with its number as text or as a title, none by colour alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from understudy.report.html.markup import Markup, tag
from understudy.report.html.page import cell

WIDTH: Final = 520
MOST_ROWS: Final = 40  # more cannot be told apart
_LABEL: Final = 110
_NUMBER: Final = 84
_READABLE: Final = 22  # the side of a square that a number fits in
_SHADES: Final = ("c1", "c2", "c3")
_LINES: Final = ("s1", "s2", "s3")


def figure(title: str, note: object, drawing: Markup) -> Markup:
    return tag(
        "figure", tag("figcaption", title), tag("p", note, class_="quiet") if note else "", drawing
    )


def paired_bars(label: str, names: tuple[str, str], rows: Sequence[tuple[str, int, int]]) -> Markup:
    """Two bars per row, before and after, with both numbers."""
    most = max((max(before, after) for _, before, after in rows), default=0) or 1
    step, marks = 27, []
    for at, (name, before, after) in enumerate(rows):
        top = at * step
        told = f"{name}: {before:,} {names[0]}, {after:,} {names[1]}"
        marks += [
            _text(0, top + 16, cut_label(name)),
            tag(
                "g",
                tag("title", told),
                _bar(_LABEL, top + 3, _scaled(before, most), 8, "c1"),
                _bar(_LABEL, top + 12, _scaled(after, most), 8, "c2"),
            ),
            _text(WIDTH, top + 16, f"{before:,} → {after:,}", anchor="end"),
        ]
    key = _key(names, len(rows) * step)
    return _svg(label, len(rows) * step + 24, *marks, *key)


def stacked_bars(
    label: str,
    names: Sequence[str],
    rows: Sequence[tuple[str, Sequence[int], str]],
) -> Markup:
    """One bar per row, made of parts; the last of a row is its total as people say it."""
    most = max((sum(parts) for _, parts, _ in rows), default=0) or 1
    step, marks = 22, []
    for at, (name, parts, total) in enumerate(rows):
        top, left, bars = at * step, float(_LABEL), []
        for part, shade in zip(parts, _SHADES, strict=False):
            bars.append(_bar(left, top + 3, _scaled(part, most), 14, shade))
            left += _scaled(part, most)
        told = ", ".join(f"{n} {part:,}" for n, part in zip(names, parts, strict=True))
        marks += [
            _text(0, top + 14, cut_label(name)),
            tag("g", tag("title", f"{name}: {told}"), *bars),
            _text(WIDTH, top + 14, total, anchor="end"),
        ]
    key = _key(names, len(rows) * step)
    return _svg(label, len(rows) * step + 24, *marks, *key)


def heat_map(
    label: str, ids: Sequence[int], values: Mapping[tuple[int, int], tuple[int, str]]
) -> Markup:
    """A triangle of squares; *values* has a number and its words for ``(smaller, larger)``."""
    most = max((value for value, _ in values.values()), default=0) or 1
    side = min(42.0, (WIDTH - 30) / max(len(ids), 1))
    readable = side >= _READABLE
    marks = []
    for row, one in enumerate(ids):
        for column, other in enumerate(ids[:row]):
            found = values.get((min(one, other), max(one, other)))
            if found is None:
                continue
            value, told = found
            left, top = 30 + column * side, row * side
            square = _bar(
                left,
                top,
                side - 1.5,
                side - 1.5,
                "hot" if value else "empty",
                fill_opacity=_number(0.12 + 0.68 * value / most) if value else None,
            )
            middle = (left + side / 2 - 0.75, top + side / 2 + 3)
            count = _text(*middle, f"{value:,}", anchor="middle") if readable and value else ""
            marks.append(tag("g", tag("title", told), square, count))
        marks.append(_text(24, row * side + side / 2 + 3, str(one), anchor="end", quiet=True))
        if readable and one != ids[-1]:
            below = len(ids) * side + 12
            left = 30 + row * side + side / 2
            marks.append(_text(left, below, str(one), anchor="middle", quiet=True))
    return _svg(label, len(ids) * side + 18, *marks)


def schedule(label: str, ids: Sequence[int], rounds: Sequence[Sequence[int]]) -> Markup:
    """A row per broker, a column per round; filled where the broker is down."""
    width = min(60.0, (WIDTH - 70) / max(len(rounds), 1))
    step, marks = 20, []
    for at, broker in enumerate(ids):
        top = at * step + 16
        marks.append(_text(0, top + 13, f"broker {broker}"))
        for column, down in enumerate(rounds):
            told = f"round {column + 1}: broker {broker} {'is down' if broker in down else 'stays'}"
            shade = "c2" if broker in down else "empty"
            square = _bar(70 + column * width, top + 1, width - 3, step - 4, shade)
            marks.append(tag("g", tag("title", told), square))
    for column in range(len(rounds)):
        left = 70 + column * width + width / 2 - 1.5
        marks.append(_text(left, 10, str(column + 1), anchor="middle", quiet=True))
    return _svg(label, len(ids) * step + 20, *marks)


def timeline(
    label: str, times: Sequence[str], series: Sequence[tuple[str, Sequence[int]]]
) -> Markup:
    """Lines over the snapshots, evenly spaced, each named at its last point's number."""
    most = max((value for _, values in series for value in values), default=0) or 1
    top, bottom, left, right = 10.0, 150.0, 44.0, WIDTH - 12.0
    across = (right - left) / max(len(times) - 1, 1)

    def place(at: int, value: int) -> tuple[float, float]:
        return left + at * across, bottom - (bottom - top) * value / most

    marks = [
        tag(
            "line", class_="axis", x1=_number(left), x2=_number(right), y1=_number(y), y2=_number(y)
        )
        for y in (top, (top + bottom) / 2, bottom)
    ]
    marks += [
        _text(left - 6, top + 4, cell(most), anchor="end", quiet=True),
        _text(left - 6, bottom + 4, "0", anchor="end", quiet=True),
        _text(left, bottom + 18, times[0] if times else "", quiet=True),
    ]
    if len(times) > 1:
        marks.append(_text(right, bottom + 18, times[-1], anchor="end", quiet=True))
    for (name, values), line in zip(series, _LINES, strict=False):
        places = [place(at, value) for at, value in enumerate(values)]
        points = " ".join(f"{_number(x)},{_number(y)}" for x, y in places)
        marks.append(tag("polyline", tag("title", name), class_=line, points=points))
        marks += [
            tag(
                "circle",
                tag("title", f"{times[at]}: {values[at]:,} {name}"),
                class_=line,
                cx=_number(x),
                cy=_number(y),
                r="3.5",
            )
            for at, (x, y) in enumerate(places)
        ]
    lines = [
        tag("line", class_=line, x1=at * 170, x2=at * 170 + 22, y1=194, y2=194, stroke_width=2)
        for at, line in zip(range(len(series)), _LINES, strict=False)
    ]
    names = [_text(at * 170 + 28, 198, name) for at, (name, _) in enumerate(series)]
    return _svg(label, 206, *marks, *lines, *names)


# --- Marks ---------------------------------------------------------------------------------------


def cut_label(name: str, length: int = 17) -> str:
    return name if len(name) <= length else name[: length - 1] + "…"


def _svg(label: str, height: float, *content: object) -> Markup:
    box = f"0 0 {WIDTH} {_number(height)}"
    return tag("svg", *content, viewBox=box, role="img", aria_label=label)


def _bar(
    left: float, top: float, width: float, height: float, shade: str, **more: object
) -> Markup:
    sizes = {"x": left, "y": top, "width": max(width, 0), "height": height}
    return tag("rect", class_=shade, **{k: _number(v) for k, v in sizes.items()}, **more)


def _text(
    left: float, base: float, content: object, *, anchor: str | None = None, quiet: bool = False
) -> Markup:
    place = {"x": _number(left), "y": _number(base), "text_anchor": anchor}
    return tag("text", content, class_="quiet" if quiet else None, **place)


def _key(names: Sequence[str], top: float) -> list[Markup]:
    marks = []
    for at, (name, shade) in enumerate(zip(names, _SHADES, strict=False)):
        left = _LABEL + at * 130
        marks += [_bar(left, top + 10, 10, 10, shade), _text(left + 15, top + 19, name, quiet=True)]
    return marks


def _scaled(value: int, most: int) -> float:
    return (WIDTH - _LABEL - _NUMBER) * value / most


def _number(value: float) -> str:
    """Short, and the same everywhere."""
    return f"{value:.2f}".rstrip("0").rstrip(".")
