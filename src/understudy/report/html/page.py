"""The parts of a page: its frame, sections, tiles and tables.

The content security policy names the digests of the one style and the one script and forbids
everything else: the page can load nothing, and a script that slipped into the text would not run.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from importlib.resources import files
from typing import Any, Final

from understudy.report.html.markup import Markup, escaped, joined, tag

Found = dict[str, Any]
"""A listing: its true ``count``, and the ``first`` rows of it."""

_TONES: Final = {
    **dict.fromkeys(("unsafe", "fails", "error"), "bad"),
    **dict.fromkeys(("warnings", "warning"), "warn"),
    **dict.fromkeys(("cannot-decide", "undecided"), "unknown"),
    **dict.fromkeys(("safe", "holds"), "good"),
}
_SHORT: Final = 28  # characters that stay on one line
_MARKS: Final = {"bad": "✕", "warn": "!", "unknown": "?", "good": "✓", "plain": "·"}


def document(title: str, subtitle: str, *sections: object) -> str:
    """The whole file."""
    style, script = _asset("report.css"), _asset("report.js")
    policy = (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name_="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name_="color-scheme", content="light dark"),
        tag("title", title),
        tag("style", Markup(style)),
    )
    header = tag("header", tag("h1", title), tag("p", subtitle, class_="quiet"))
    body = tag("body", tag("main", header, *sections), tag("script", Markup(script)))
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"


def section(heading: str, *content: object, note: object = "") -> Markup:
    said = tag("p", note, class_="quiet") if note else ""
    return tag("section", tag("h2", heading), said, *content)


def grid(*parts: object) -> Markup:
    return tag("div", *parts, class_="grid")


def tone(verdict: str) -> str:
    """How bad a verdict or a severity is; never told by colour alone."""
    return _TONES.get(verdict, "plain")


def badge(verdict: str) -> Markup:
    told = tone(verdict)
    mark = tag("span", _MARKS[told], aria_hidden="true")
    return tag("span", mark, " ", verdict, class_=f"badge {told}")


def banner(verdict: str, sentence: object) -> Markup:
    return tag("div", badge(verdict), tag("p", sentence), class_=f"banner {tone(verdict)}")


def tile(number: object, label: object, meaning: object, *, bad: bool) -> Markup:
    return tag(
        "div",
        tag("strong", cell(number)),
        tag("span", label, class_="label"),
        tag("span", meaning, class_="quiet"),
        class_="tile bad" if bad else "tile",
    )


def tiles(*each: Markup) -> Markup:
    return tag("div", *each, class_="tiles")


# --- Tables --------------------------------------------------------------------------------------


def table(caption: str, headings: Sequence[str], rows: Sequence[Sequence[object]]) -> Markup:
    """A table that can be sorted and searched; without scripts it is simply a table."""
    numeric = [
        bool(rows) and all(isinstance(row[at], int | None) for row in rows)
        for at in range(len(headings))
    ]
    kinds = ["number" if each else None for each in numeric]
    head = tag(
        "tr",
        *(
            tag("th", heading, class_=kind, scope="col")
            for heading, kind in zip(headings, kinds, strict=True)
        ),
    )
    body = (
        tag("tr", *(_cell(value, kind) for value, kind in zip(row, kinds, strict=True)))
        for row in rows
    )
    named = tag("caption", caption)
    inner = tag("table", named, tag("thead", head), tag("tbody", *body), class_="sortable")
    return tag("div", tag("div", inner, class_="scroll"), class_="listing")


def _cell(value: object, kind: str | None) -> Markup:
    told = cell(value)
    short = isinstance(value, Markup) or len(told) <= _SHORT
    return tag("td", told, class_=kind or ("short" if short else None))


def cell(value: object) -> Markup:
    """A value as people read it; unknown is a dash."""
    if value is None:
        return escaped("\N{EN DASH}")
    if isinstance(value, list | tuple):
        return joined(", ".join(str(each) for each in value))
    return escaped(f"{value:,}" if isinstance(value, int) else value)


def shown_of(found: Found, things: str) -> str:
    """How many there are, and how many of them are shown."""
    count, shown = found["count"], len(found["first"])
    named = things.removesuffix("s") if count == 1 else things
    return f"{count:,} {named}" + ("" if shown >= count else f", the first {shown:,} shown")


# --- What the page carries -----------------------------------------------------------------------


def _asset(name: str) -> str:
    return files("understudy.report.html").joinpath(name).read_text(encoding="utf-8")


def _digest(content: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
