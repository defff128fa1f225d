"""HTML and SVG that cannot be broken out of: whatever is not markup already is escaped."""

from __future__ import annotations

import html
import re
from typing import Final

_VOID: Final = frozenset({"meta", "input", "br"})
# HTML cannot carry control characters at all, not even as references.
_CONTROLS: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ufffe\uffff]")


class Markup(str):
    """Text that is markup: made by :func:`tag` and :func:`joined` alone."""

    __slots__ = ()


def escaped(value: object) -> Markup:
    """*value* as text between tags or inside a quoted attribute."""
    if isinstance(value, Markup):
        return value
    # A lone surrogate, which JSON can spell, has no UTF-8.
    sound = str(value).encode("utf-8", "replace").decode("utf-8")
    return Markup(html.escape(_CONTROLS.sub("\N{REPLACEMENT CHARACTER}", sound), quote=True))


def joined(*parts: object) -> Markup:
    return Markup("".join(escaped(part) for part in parts))


def tag(name: str, *content: object, **attributes: object) -> Markup:
    """An element. ``class_`` is ``class``, ``aria_label`` is ``aria-label``; None leaves out."""
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escaped(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    opened = f"<{name}{given}>"
    return Markup(opened if name in _VOID else f"{opened}{joined(*content)}</{name}>")
