"""What ``kafka-configs --describe`` prints for topics and brokers, in every release's wording.

With a broker the settings come one per line with their sources; only a resource's own dynamic
settings are its own, and those of the properties file are the static ones. Through ZooKeeper they
come on one line. Plain Python: this runs on executors.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from understudy.errors import BadInputError
from understudy.sources.content import Row
from understudy.sources.describe_text import split_configs
from understudy.sources.document import MIN_ISR, UNCLEAN
from understudy.sources.kraft_image import is_secret
from understudy.sources.text_snapshot import Beside

_HEAD: Final = re.compile(
    r"(?:Dynamic|All) configs for (?P<kind>topic|broker) (?P<name>\S+) are:"
    r"|(?P<default>Default) configs for brokers in the cluster are:",
    re.ASCII,
)
_OF_ZOOKEEPER: Final = re.compile(
    r"Configs for (?:(?P<kind>topic|brokers?) '(?P<name>[^']+)'|(?P<default>default) brokers)"
    r" are ?(?P<configs>.*)",
    re.ASCII,
)
_CONFIG: Final = re.compile(
    r"\s+(?P<key>[^\s=]+)=(?P<value>.*) sensitive=(?P<hidden>true|false)"
    r"(?: synonyms=\{(?P<synonyms>.*)\})?",
    re.ASCII,
)
_SOURCES: Final = re.compile(r"(?:^|, )([A-Z]+(?:_[A-Z]+)+):", re.ASCII)
_WARNING: Final = (
    "Warning: --zookeeper is deprecated and will be removed in a future version of Kafka.",
    "Use --bootstrap-server instead to specify a broker to connect to.",
)
# Of the properties files only what a controller decides by is taken, and only if they agree.
_ASKED: Final = (UNCLEAN, MIN_ISR)
_OWN: Final = {
    "DYNAMIC_TOPIC_CONFIG": "topic",
    "DYNAMIC_BROKER_CONFIG": "broker",
    "DYNAMIC_DEFAULT_BROKER_CONFIG": "cluster",
    "STATIC_BROKER_CONFIG": "static",
}


def recognise(head: str) -> bool:
    """Whether a text has a heading of the tool's, or the warning alone: nothing is set."""
    if head.startswith(_WARNING[0]) and head.splitlines() == [*_WARNING]:
        return True
    return any(_HEAD.match(line) or _OF_ZOOKEEPER.match(line) for line in head.splitlines())


def read(lines: Iterable[str]) -> Beside:
    """The settings of one text, by scope and owner."""
    rows: list[Row] = []
    problems: list[str] = []
    owner: tuple[str, str | None] | None = None
    for number, line in enumerate(lines, start=1):
        if head := _HEAD.fullmatch(line.rstrip()):
            owner = ("cluster", None) if head["default"] else (head["kind"], head["name"])
        elif old := _OF_ZOOKEEPER.fullmatch(line.rstrip("\n")):
            scope = "cluster" if old["default"] else old["kind"].removesuffix("s")
            rows += ((scope, old["name"], *each) for each in split_configs(old["configs"]))
        elif found := _CONFIG.fullmatch(line.rstrip()):
            if owner is None:
                problems.append(f"line {number}: a setting of nobody")
            elif found["hidden"] == "false":
                rows += _rows(*owner, found)
        elif line.startswith("  "):
            problems.append(f"line {number}: no line of kafka-configs --describe, or cut short")
    if problems:
        raise BadInputError("the text is not what kafka-configs --describe prints", problems)
    return Beside(configs=kept(rows))


def kept(rows: list[Row]) -> list[Row]:
    """Without secrets, and of the properties files what a controller decides by."""
    static: dict[str, set[str]] = {}
    for scope, _, key, value in rows:
        if scope == "static":
            static.setdefault(key, set()).add(value)
    return [
        row
        for row in rows
        if not is_secret(row[2])
        and (row[0] != "static" or (row[2] in _ASKED and len(static[row[2]]) == 1))
    ]


def _rows(scope: str, name: str | None, found: re.Match[str]) -> Iterator[Row]:
    synonyms = list(_synonyms(found["synonyms"] or ""))
    if found["synonyms"] is None:  # releases before 1.1 print no sources
        yield scope, name, found["key"], found["value"]
    yield from by_source(scope, name, synonyms)


def by_source(
    scope: str, name: str | None, synonyms: Iterable[tuple[str, str, str]]
) -> Iterator[Row]:
    """One row per source that is not the built-in default; ``--all`` prints every source.

    The broker's synonym has the broker's name of the setting (``log.retention.ms``).
    """
    for source, key, value in synonyms:
        of = _OWN.get(source)
        if of is None:
            continue
        if of == "topic" or (of == "broker" and scope == "broker"):
            yield of, name, key, value
        elif of in ("cluster", "static"):
            yield of, None, key, value


def _synonyms(text: str) -> Iterator[tuple[str, str, str]]:
    found = list(_SOURCES.finditer(text))
    for source, after in zip(found, [*found[1:], None], strict=False):
        pair = text[source.end() : after.start() if after else len(text)]
        key, _, value = pair.partition("=")
        yield source[1], key, value
