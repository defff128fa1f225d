"""A properties file as Kafka's tools take it with ``--command-config``.

Every key is either taken by whoever understands it or refused by name: a setting that is passed
over in silence could be the one that keeps a connection safe. Values never stand in an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from understudy.errors import BadInputError

_ESCAPE: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_NAMED_ESCAPES: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_KEY: Final = re.compile(r"(?P<key>(?:\\.|[^\\=:\s])*)\s*[=:]?\s*(?P<value>.*)", re.DOTALL)
_COMMENT: Final = ("#", "!")


class Properties:
    """The settings of one file; what nobody has taken is refused in the end."""

    def __init__(self, source: str, values: dict[str, tuple[int, str]]) -> None:
        self._source = source
        self._values = values
        self._left = dict.fromkeys(values)

    @classmethod
    def of_file(cls, path: str | None) -> Properties:
        """The settings in the file at *path*; without a path there are none."""
        if path is None:
            return cls("", {})
        try:
            text = Path(path).read_text(encoding="utf-8")
        except OSError as error:
            raise BadInputError(f"{path}: {error.strerror or 'it cannot be read'}") from None
        except UnicodeDecodeError:
            raise BadInputError(f"{path}: the file is not UTF-8") from None
        return cls(path, parse(text))

    def take(self, key: str, default: str | None = None) -> str | None:
        """The value of *key*, which is understood hereby."""
        self._left.pop(key, None)
        return self._values[key][1] if key in self._values else default

    def choose(self, key: str, choices: tuple[str, ...], default: str) -> str:
        """The value of *key*, one of *choices* whatever its case."""
        value = (self.take(key, default) or default).upper()
        if value not in choices:
            raise self.refusal(key, f"expected one of {', '.join(choices)}")
        return value

    def refusal(self, key: str, why: str) -> BadInputError:
        line = self._values[key][0] if key in self._values else None
        place = self._source if line is None else f"{self._source}, line {line}"
        return BadInputError(f"{place}: {key}: {why}")

    def check_all_taken(self) -> None:
        """Refuse, by name, every setting that nobody understood."""
        if self._left:
            problems = [f"line {self._values[key][0]}: {key}" for key in self._left]
            raise BadInputError(f"{self._source}: settings a capture cannot honour", problems)


def parse(text: str) -> dict[str, tuple[int, str]]:
    """The line and the value of every key, as java.util.Properties reads them."""
    found = {}
    for number, line in _logical_lines(text):
        match = _KEY.fullmatch(line)
        if match:
            found[_unescaped(match["key"])] = (number, _unescaped(match["value"]))
    return found


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines without comments, each with those that continue it; trailing spaces count."""
    begun = 0
    whole = ""
    for number, raw in enumerate(text.removeprefix("\ufeff").splitlines(), start=1):
        line = raw.lstrip(" \t\f")
        if not begun and (not line or line.startswith(_COMMENT)):
            continue
        begun = begun or number
        backslashes = len(line) - len(line.rstrip("\\"))
        if backslashes % 2:
            whole += line[:-1]
            continue
        yield begun, whole + line
        begun, whole = 0, ""
    if begun:
        yield begun, whole


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(_meant, text)


def _meant(escape: re.Match[str]) -> str:
    what = escape[1]
    if len(what) > 1:
        return chr(int(what[1:], 16))
    return _NAMED_ESCAPES.get(what, what)
