"""The bytes of a file of snapshot documents, parsed and validated, with everything wrong at once.

A file holds one JSON object, or one object per line; plain or gzip, told apart by content and not
by name. States a controller can really meet, however odd (a leader outside the ISR, an ISR member
outside the assignment, replicas on brokers nobody lists), are no problems; what no controller could
hold (a replica twice in one assignment, a negative id) is. Plain Python: this runs on executors.
"""

from __future__ import annotations

import codecs
import gzip
import io
import json
import re
import zlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import Any, Final, TypeVar

from understudy.sources.content import Content, Parsed, Row, canonical

MAX_UNCOMPRESSED_BYTES: Final = 4 * 2**30
MAX_PROBLEMS: Final = 1000

INT_MIN: Final = -(2**31)
INT_MAX: Final = 2**31 - 1
LONG_MAX: Final = 2**63 - 1
NO_LEADER: Final = -1
MAX_TOPIC_NAME: Final = 249
DEFAULT_RELEASE: Final = "3.9"

UNCLEAN: Final = "unclean.leader.election.enable"
MIN_ISR: Final = "min.insync.replicas"

_GZIP_MAGIC: Final = b"\x1f\x8b"
_READ_BYTES: Final = 1 << 20
_BLANK: Final = b" \t\r\n"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

# 0.x releases carry one number more: 0.10.2 is what X.Y is later, 0.10.2.1 its patch.
_RELEASE: Final = re.compile(r"(?:0\.\d+(?:\.\d+){0,2}|[1-9]\d*\.\d+(?:\.\d+)?)", re.ASCII)
_METADATA_VERSION: Final = re.compile(r"\d+\.\d+(?:\.\d+)?(?:-IV\d+)?", re.ASCII)
_INSTANT: Final = re.compile(
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?", re.ASCII
)
_TOPIC_NAME: Final = re.compile(r"[a-zA-Z0-9._-]+", re.ASCII)
_JAVA_INT: Final = re.compile(r"[+-]?\d+", re.ASCII)
_JAVA_BLANKS: Final = "".join(map(chr, range(0x21)))  # what String.trim() takes away

_DOCUMENT_KEYS: Final = frozenset(
    (
        "cluster",
        "snapshot_id",
        "taken_at",
        "mode",
        "release",
        "metadata_version",
        "controller",
        "brokers",
        "configs",
        "static_configs",
        "topics",
    )
)
_OWN_KEYS: Final = ("cluster", "snapshot_id")
_CONTROLLER_KEYS: Final = frozenset(("id", "epoch"))
_BROKER_KEYS: Final = frozenset(
    ("id", "epoch", "rack", "alive", "shutting_down", "endpoints", "log_dirs", "configs")
)
_TOPIC_KEYS: Final = frozenset(("name", "id", "queued_for_deletion", "configs", "partitions"))
_PARTITION_KEYS: Final = frozenset(
    ("partition", "replicas", "adding", "removing", "offline_dirs", "state")
)
_STATE_KEYS: Final = frozenset(
    ("leader", "leader_epoch", "isr", "partition_epoch", "controller_epoch", "recovery")
)
_KRAFT_DOCUMENT_KEYS: Final = frozenset(("elr_enabled",))
_KRAFT_BROKER_KEYS: Final = frozenset(("fenced",))
_KRAFT_PARTITION_KEYS: Final = frozenset(("directories",))
_KRAFT_STATE_KEYS: Final = frozenset(("elr", "last_known_elr"))

Where = tuple[str | int, ...]
Json = Any
Loaded = tuple[Json, str | None]  # a value, or what makes a text none
_T = TypeVar("_T")


def parse(data: bytes, *, max_uncompressed_bytes: int = MAX_UNCOMPRESSED_BYTES) -> Iterator[Parsed]:
    """The documents in the bytes of one file, in their order; never raises for what they say."""
    for line, loaded in load(data, _OWN_KEYS, max_uncompressed_bytes):
        yield _document(f"line {line}", loaded)


def load(
    data: bytes,
    own_keys: tuple[str, ...],
    max_uncompressed_bytes: int = MAX_UNCOMPRESSED_BYTES,
) -> Iterator[tuple[int, Loaded]]:
    """The JSON values in the bytes of one file, with the number of the line where each begins.

    *own_keys* are keys of a document that no object inside it has: they tell a broken line of many
    documents from a line of one broken document.
    """
    broken = _broken_gzip(data, max_uncompressed_bytes)
    if broken:
        yield 1, (None, broken)
        return
    lines = _lines(data)
    number, line = next(lines, (0, b""))
    if not number:
        yield 1, (None, "the file is empty")
        return
    first = load_json(line)
    second = next(lines, None)
    if first[1] and second:
        with _open(data) as stream:
            whole = load_json(stream.read().removeprefix(codecs.BOM_UTF8))
        if not whole[1] or not _is_one_per_line(data, own_keys):
            yield number, whole
            return
    yield number, first
    for number, line in chain((second,), lines) if second else ():
        yield number, load_json(line)


def _refused(position: str, problem: str) -> Parsed:
    return Parsed(position, None, None, (problem,), None)


# --- From bytes to texts, one per document -----------------------------------------------------


def _broken_gzip(data: bytes, limit: int) -> str | None:
    """What is wrong with the compression, read to its end before one line of it is believed.

    The checksum stands at the end, and a flipped bit may still leave lines that parse.
    """
    if not data.startswith(_GZIP_MAGIC):
        return None
    size = 0
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as stream:
            while chunk := stream.read(_READ_BYTES):
                size += len(chunk)
                if size > limit:
                    return f"the file is larger than {limit:,} bytes when uncompressed"
    except EOFError:
        return "the gzip data is truncated"
    except (OSError, zlib.error) as error:
        return f"the gzip data is corrupt: {error}"
    return None


def _open(data: bytes) -> io.BufferedIOBase:
    if data.startswith(_GZIP_MAGIC):
        return gzip.GzipFile(fileobj=io.BytesIO(data))
    return io.BytesIO(data)


def _lines(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The lines that are not blank, numbered from 1, without a byte order mark."""
    with _open(data) as stream:
        for number, line in enumerate(stream, start=1):
            text = line.removeprefix(codecs.BOM_UTF8) if number == 1 else line
            if text.strip(_BLANK):
                yield number, text


def _is_one_per_line(data: bytes, own_keys: tuple[str, ...]) -> bool:
    """Whether a file that is not one JSON value holds one document per line, some of them broken.

    Inside one document written over many lines no line alone is an object with a document's own
    keys, and the line that closes it does not begin an object.
    """
    all_begin_objects = True
    for _, line in _lines(data):
        begins = line.startswith(b"{")
        all_begin_objects = all_begin_objects and begins
        if begins and any(key.encode() in line for key in own_keys):
            value, broken = load_json(line)
            if not broken and any(key in value for key in own_keys):
                return True
    return all_begin_objects


# --- From text to JSON values ------------------------------------------------------------------


class _Repeated(dict[str, Any]):
    """An object some of whose keys were written more than once."""

    names: tuple[str, ...] = ()


class _NotJson:
    """NaN, Infinity or -Infinity, which Python reads and JSON does not have."""

    def __init__(self, name: str) -> None:
        self.name = name


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    repeated = _Repeated(found)
    seen: set[str] = set()
    again = [name for name, _ in pairs if name in seen or seen.add(name)]  # type: ignore[func-returns-value]
    repeated.names = tuple(dict.fromkeys(again))
    return repeated


def _loads(text: bytes) -> Json:
    return json.loads(text.decode("utf-8"), object_pairs_hook=_object, parse_constant=_NotJson)


def load_json(text: bytes) -> Loaded:
    """The JSON value of a text, or what makes it none and where in the text."""
    try:
        return _loads(text.rstrip()), None  # what is missing is missing at the end of a line
    except UnicodeDecodeError as error:
        line = text.count(b"\n", 0, error.start) + 1
        return None, f"byte {error.start + 1}{_in_line(line)}: the text is not UTF-8"
    except json.JSONDecodeError as error:
        return None, f"column {error.colno}{_in_line(error.lineno)}: {_syntax(error)}"
    except RecursionError:
        return None, "the JSON is nested too deeply"
    except ValueError:  # the only one left: int() refuses to read thousands of digits
        return None, "a number has too many digits"


def _in_line(line: int) -> str:
    return f" of line {line}" if line > 1 else ""


def _syntax(error: json.JSONDecodeError) -> str:
    if error.msg == "Extra data":
        return "there is more after the end of the JSON object; several must stand one per line"
    if error.pos >= len(error.doc.rstrip()) or error.msg.startswith("Unterminated string"):
        return f"the JSON is truncated ({error.msg[0].lower()}{error.msg[1:]})"
    return f"not JSON: {error.msg[0].lower()}{error.msg[1:]}"


# --- Saying what is wrong ----------------------------------------------------------------------


class Problems:
    """Everything wrong with one document, each with the path to it."""

    def __init__(self) -> None:
        self.found: list[str] = []
        self.count = 0

    def add(self, where: Where, sentence: str) -> None:
        self.count += 1
        if self.count <= MAX_PROBLEMS:
            self.found.append(f"{path(where)}: {sentence}" if where else sentence)

    def all(self) -> tuple[str, ...]:
        if self.count > MAX_PROBLEMS:
            return (*self.found, f"and {self.count - MAX_PROBLEMS:,} more problems")
        return tuple(self.found)


def path(where: Where) -> str:
    """``("topics", 3, "name")`` as ``topics[3].name``."""
    written = ""
    for step in where:
        if isinstance(step, int):
            written += f"[{step}]"
        else:
            name = step if is_text(step) and step.isprintable() else shown(step)
            written += f".{name}" if written else name
    return written


_SHOWN_CHARACTERS: Final = 60


def shown(value: Json) -> str:
    """A value as it stood in the document, in ASCII and short."""
    if isinstance(value, _NotJson):
        return value.name
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, int) and value.bit_length() > LONG_MAX.bit_length():
        return "a number beyond 64 bits"
    text = json.dumps(value)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"


def is_text(value: str) -> bool:
    """Whether a string can be written as UTF-8: JSON escapes can name half a character."""
    if value.isascii():
        return True
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


# --- Reading single values; a path is only written out when there is something to say ----------


def check_repeated(found: dict[str, Any], where: Where, to: Problems) -> None:
    if type(found) is _Repeated:
        for again in found.names:
            to.add((*where, again), "this key is written more than once")


def check_keys(found: dict[str, Any], known: frozenset[str], where: Where, to: Problems) -> None:
    check_repeated(found, where, to)
    if not known.issuperset(found):
        unknown = sorted(set(found) - known)
        names = ", ".join(map(shown, unknown))
        to.add(where, f"unknown key{'s' if len(unknown) > 1 else ''} {names}")


def _check_keys_by_mode(
    found: dict[str, Any],
    known: frozenset[str],
    kraft_only: frozenset[str],
    where: Where,
    to: Problems,
    *,
    kraft: bool,
) -> None:
    """In ZooKeeper mode a KRaft key may stand there as long as it says nothing."""
    if known.issuperset(found) and type(found) is dict:
        return
    check_keys(found, known | kraft_only, where, to)
    if not kraft:
        for name in sorted(kraft_only & set(found)):
            if not (found[name] is None or found[name] is False or found[name] == []):
                to.add((*where, name), "only a KRaft document has this key")


def objects(found: dict[str, Any], key: str, where: Where, to: Problems) -> list[Json]:
    value = found.get(key, [])
    if type(value) is not list:
        to.add((*where, key), f"expected a list of objects, found {shown(value)}")
        return []
    return value


def is_object(value: Json, where: Where, to: Problems) -> bool:
    if isinstance(value, dict):
        return True
    to.add(where, f"expected an object, found {shown(value)}")
    return False


def integer(value: Json, where: Where, to: Problems, *, low: int = 0, high: int = INT_MAX) -> int:
    if type(value) is int and low <= value <= high:
        return value
    if type(value) is not int:
        to.add(where, f"expected an integer, found {shown(value)}")
    elif value < low:
        to.add(where, f"{shown(value)} is less than {low}")
    else:
        to.add(where, f"{shown(value)} does not fit {32 if high == INT_MAX else 64} bits")
    return low


def boolean(value: Json, where: Where, to: Problems) -> bool:
    if type(value) is bool:
        return value
    to.add(where, f"expected true or false, found {shown(value)}")
    return False


def text(value: Json, where: Where, to: Problems) -> str | None:
    if type(value) is not str:
        to.add(where, f"expected a string, found {shown(value)}")
    elif not is_text(value):
        to.add(where, "the string has half of a surrogate pair")
    else:
        return value
    return None


def name(value: Json, where: Where, to: Problems) -> str | None:
    """A string that must say something."""
    found = text(value, where, to)
    if found == "":
        to.add(where, "the string is empty")
        return None
    return found


def ids(value: Json, where: Where, to: Problems, *, distinct: bool, low: int = 0) -> list[int]:
    """A list of broker ids, in the order written."""
    if type(value) is not list:
        to.add(where, f"expected a list of broker ids, found {shown(value)}")
        return []
    seen: set[int] = set()
    for place, each in enumerate(value):
        if type(each) is not int or not low <= each <= INT_MAX:
            integer(each, (*where, place), to, low=low)
        elif distinct:
            if each in seen:
                to.add((*where, place), f"broker {each} stands here twice")
            seen.add(each)
    return value


def texts(value: Json, where: Where, to: Problems) -> list[str]:
    if type(value) is not list:
        to.add(where, f"expected a list of strings, found {shown(value)}")
        return []
    for place, each in enumerate(value):
        text(each, (*where, place), to)
    return value


def topic_name(value: Json, where: Where, to: Problems) -> str | None:
    """A name that Kafka's Topic.validate accepts."""
    found = name(value, where, to)
    if found is None:
        return None
    if found in (".", ".."):
        to.add(where, 'a topic cannot be named "." or ".."')
    elif len(found) > MAX_TOPIC_NAME:
        to.add(where, f"a topic name has at most {MAX_TOPIC_NAME} characters, not {len(found)}")
    elif not _TOPIC_NAME.fullmatch(found):
        to.add(where, f"{shown(found)} has characters other than letters, digits, '.', '_', '-'")
    else:
        return found
    return None


def _instant(value: Json, where: Where, to: Problems) -> int | None:
    """Microseconds since 1970; a time without an offset is UTC."""
    found = text(value, where, to)
    if found is None:
        return None
    try:
        if not _INSTANT.fullmatch(found):
            raise ValueError  # noqa: TRY301 - one refusal for a wrong form and a wrong date
        moment = datetime.fromisoformat(found)
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return (moment - _EPOCH) // timedelta(microseconds=1)
    except (ValueError, OverflowError):
        to.add(where, f"{shown(found)} is not an ISO-8601 time such as 2026-01-01T00:00:00Z")
        return None


def _like(value: Json, form: re.Pattern[str], such_as: str, where: Where, to: Problems) -> str:
    found = text(value, where, to)
    if found is None:
        return ""
    if not form.fullmatch(found):
        to.add(where, f"{shown(found)} is not a version such as {such_as}")
    return found


def _configs(
    found: Json, scope: str, owner: str | None, where: Where, to: Problems
) -> Iterator[Row]:
    if not is_object(found, where, to):
        return
    check_repeated(found, where, to)
    for config, value in found.items():
        here = (*where, config)
        if name(config, here, to) is None or text(value, here, to) is None:
            continue
        refusal = config_refusal(config, value)
        if refusal:
            to.add(here, refusal)
        yield scope, owner, config, value


def config_refusal(config: str, value: str) -> str | None:
    """Why Kafka's ConfigDef would not parse a value the controller's rules depend on."""
    if config == UNCLEAN:
        if value.strip(_JAVA_BLANKS).lower() not in ("true", "false"):
            return f"Kafka reads true or false here, not {shown(value)}"
    elif config == MIN_ISR:
        number = value.strip(_JAVA_BLANKS)
        readable = _JAVA_INT.fullmatch(number) and len(number) <= len(str(INT_MAX)) + 1
        if not readable or not 1 <= int(number) <= INT_MAX:
            return f"Kafka reads an integer of at least 1 here, not {shown(value)}"
    return None


# --- From a JSON value to a snapshot -----------------------------------------------------------


def _document(position: str, loaded: Loaded) -> Parsed:
    value, syntax = loaded
    if syntax:
        return _refused(position, syntax)
    if type(value) is list:
        return _refused(
            position, "a snapshot document is an object, not a list; write one object per line"
        )
    problems = Problems()
    if not is_object(value, (), problems):
        return Parsed(position, None, None, problems.all(), None)
    content = _content(value, problems)
    cluster, snapshot_id = (_readable(value.get(key)) for key in ("cluster", "snapshot_id"))
    if problems.count:
        return Parsed(position, cluster, snapshot_id, problems.all(), None)
    return Parsed(position, cluster, snapshot_id, (), content)


def _readable(value: Json) -> str | None:
    return value if type(value) is str and is_text(value) else None


def _required(found: dict[str, Any], key: str, where: Where, to: Problems) -> bool:
    if key in found:
        return True
    to.add(where, f'the key "{key}" is missing')
    return False


def _content(document: dict[str, Any], to: Problems) -> Content | None:
    mode = document.get("mode", "zk")
    if mode not in ("zk", "kraft"):
        to.add(("mode",), f'expected "zk" or "kraft", found {shown(mode)}')
    kraft = mode == "kraft"
    _check_keys_by_mode(document, _DOCUMENT_KEYS, _KRAFT_DOCUMENT_KEYS, (), to, kraft=kraft)
    key = [
        name(document[each], (each,), to) if _required(document, each, (), to) else None
        for each in ("cluster", "snapshot_id")
    ]
    release = _optional(document, "release", release_name, (), to) or DEFAULT_RELEASE
    version = _optional(document, "metadata_version", metadata_version_name, (), to)
    configs = list(_configs(document.get("configs", {}), "cluster", None, ("configs",), to))
    static = document.get("static_configs", {})
    configs += _configs(static, "static", None, ("static_configs",), to)
    brokers = _brokers(document, configs, to, kraft=kraft)
    topics, partitions = _topics(document, configs, to, kraft=kraft)
    live = [broker_id for broker_id, alive, *_ in brokers if alive]
    controller = _controller(document, min(live, default=None), to)
    taken_at = _optional(document, "taken_at", _instant, (), to)
    elr_enabled = _optional(document, "elr_enabled", boolean, (), to)
    cluster, snapshot_id = key
    if to.count or cluster is None or snapshot_id is None:
        return None
    return canonical(
        (cluster, snapshot_id),
        taken_at=taken_at,
        mode=mode,
        source_form="json",
        release=release,
        metadata_version=version or newest_metadata_version(release),
        elr_enabled=bool(elr_enabled) if kraft else None,
        controller=controller,
        complete=True,
        brokers=brokers,
        topics=topics,
        partitions=partitions,
        configs=configs,
    )


def newest_metadata_version(release: str) -> str:
    """The newest protocol of a release goes by the release's own name, without its patch."""
    numbers = release.split(".")
    return ".".join(numbers[: 3 if numbers[0] == "0" else 2])


def release_name(value: Json, where: Where, to: Problems) -> str:
    return _like(value, _RELEASE, "3.9 or 3.9.1", where, to)


def metadata_version_name(value: Json, where: Where, to: Problems) -> str:
    return _like(value, _METADATA_VERSION, "3.9 or 3.7-IV2", where, to)


def _optional(
    found: dict[str, Any],
    key: str,
    read: Callable[[Json, Where, Problems], _T],
    where: Where,
    to: Problems,
) -> _T | None:
    """A value that may be left out or written as null: both say that it is unknown."""
    value = found.get(key)
    return None if value is None else read(value, (*where, key), to)


def _controller(
    document: dict[str, Any], smallest_live: int | None, to: Problems
) -> tuple[int | None, int]:
    found = document.get("controller")
    where: Where = ("controller",)
    if found is None or not is_object(found, where, to):
        return smallest_live, 0
    check_keys(found, _CONTROLLER_KEYS, where, to)
    controller_id = _optional(found, "id", integer, where, to)
    epoch = _optional(found, "epoch", integer, where, to)
    return smallest_live if controller_id is None else controller_id, epoch or 0


def _brokers(
    document: dict[str, Any], configs: list[Row], to: Problems, *, kraft: bool
) -> list[Row]:
    rows: list[Row] = []
    seen: dict[int, int] = {}
    for place, found in enumerate(objects(document, "brokers", (), to)):
        where: Where = ("brokers", place)
        if not is_object(found, where, to):
            continue
        _check_keys_by_mode(found, _BROKER_KEYS, _KRAFT_BROKER_KEYS, where, to, kraft=kraft)
        if not _required(found, "id", where, to):
            continue
        broker_id = integer(found["id"], (*where, "id"), to)
        if found["id"] == broker_id and seen.setdefault(broker_id, place) != place:
            to.add((*where, "id"), f"broker {broker_id} is also brokers[{seen[broker_id]}]")
        alive = boolean(found.get("alive", True), (*where, "alive"), to)
        fenced = _optional(found, "fenced", boolean, where, to)
        if kraft:
            fenced = not alive if fenced is None else fenced
            alive = not fenced
        rows.append(
            (
                broker_id,
                alive,
                boolean(found.get("shutting_down", False), (*where, "shutting_down"), to),
                fenced if kraft else None,
                integer(found.get("epoch", 0), (*where, "epoch"), to, high=LONG_MAX),
                _optional(found, "rack", text, where, to),
                _optional(found, "endpoints", text, where, to),
                _optional(found, "log_dirs", texts, where, to),
            )
        )
        own = found.get("configs", {})
        configs += _configs(own, "broker", str(broker_id), (*where, "configs"), to)
    return rows


def _topics(
    document: dict[str, Any], configs: list[Row], to: Problems, *, kraft: bool
) -> tuple[list[Row], list[Row]]:
    topics: list[Row] = []
    partitions: list[Row] = []
    seen: dict[str, int] = {}
    for place, found in enumerate(objects(document, "topics", (), to)):
        where: Where = ("topics", place)
        if not is_object(found, where, to):
            continue
        check_keys(found, _TOPIC_KEYS, where, to)
        topic = None
        if _required(found, "name", where, to):
            topic = topic_name(found["name"], (*where, "name"), to)
        if topic is not None and seen.setdefault(topic, place) != place:
            to.add((*where, "name"), f"topic {shown(topic)} is also topics[{seen[topic]}]")
        queued = found.get("queued_for_deletion", False)
        topics.append(
            (
                topic,
                _optional(found, "id", name, where, to),
                boolean(queued, (*where, "queued_for_deletion"), to),
            )
        )
        configs += _configs(found.get("configs", {}), "topic", topic, (*where, "configs"), to)
        _partitions(topic, found, where, partitions, to, kraft=kraft)
    return topics, partitions


def _partitions(
    topic: str | None,
    holder: dict[str, Any],
    where: Where,
    rows: list[Row],
    to: Problems,
    *,
    kraft: bool,
) -> None:
    listed = objects(holder, "partitions", where, to)
    if listed == [] and type(holder.get("partitions", [])) is list:
        to.add((*where, "partitions"), "a topic has at least one partition")
    seen: dict[int, int] = {}
    for place, found in enumerate(listed):
        here: Where = (*where, "partitions", place)
        if not is_object(found, here, to):
            continue
        _check_keys_by_mode(found, _PARTITION_KEYS, _KRAFT_PARTITION_KEYS, here, to, kraft=kraft)
        number = -1
        if _required(found, "partition", here, to):
            number = integer(found["partition"], (*here, "partition"), to)
            if found["partition"] == number and seen.setdefault(number, place) != place:
                other = path((*where, "partitions", seen[number]))
                to.add((*here, "partition"), f"partition {number} is also {other}")
        rows.append(_partition(topic, number, found, here, to, kraft=kraft))


def _partition(
    topic: str | None,
    number: int,
    found: dict[str, Any],
    where: Where,
    to: Problems,
    *,
    kraft: bool,
) -> Row:
    get = found.get
    replicas: list[int] = []
    if _required(found, "replicas", where, to):
        replicas = ids(found["replicas"], (*where, "replicas"), to, distinct=True)
        if found["replicas"] == []:
            to.add((*where, "replicas"), "a partition has at least one replica")
    directories = _optional(found, "directories", texts, where, to) or []
    if directories and len(directories) != len(replicas) and kraft:
        to.add(
            (*where, "directories"),
            f"expected one for each of {len(replicas)} replicas, found {len(directories)}",
        )
    return (
        topic,
        number,
        replicas,
        ids(get("adding", []), (*where, "adding"), to, distinct=True),
        ids(get("removing", []), (*where, "removing"), to, distinct=True),
        ids(get("offline_dirs", []), (*where, "offline_dirs"), to, distinct=True),
        *_state(get("state"), (*where, "state"), to, kraft=kraft),
        directories if kraft else None,
    )


_NEVER_LED: Final = (False, None, None, None, None, None, None)


def _state(found: Json, where: Where, to: Problems, *, kraft: bool) -> Row:
    """has_state, leader, leader_epoch, isr, partition_epoch, controller_epoch, recovery, ELRs."""
    if found is None or not is_object(found, where, to):
        return (*_NEVER_LED, *(([], []) if kraft else (None, None)))
    _check_keys_by_mode(found, _STATE_KEYS, _KRAFT_STATE_KEYS, where, to, kraft=kraft)
    get = found.get
    controller_epoch = get("controller_epoch", 0)
    if not (kraft and controller_epoch is None):
        controller_epoch = integer(controller_epoch, (*where, "controller_epoch"), to)
    return (
        True,
        integer(get("leader", NO_LEADER), (*where, "leader"), to, low=NO_LEADER),
        integer(get("leader_epoch", 0), (*where, "leader_epoch"), to),
        ids(get("isr", []), (*where, "isr"), to, distinct=False),
        integer(get("partition_epoch", 0), (*where, "partition_epoch"), to),
        None if kraft else controller_epoch,
        _recovery(get("recovery"), (*where, "recovery"), to),
        _optional(found, "elr", _elr, where, to) or [] if kraft else None,
        _optional(found, "last_known_elr", _last_known_elr, where, to) or [] if kraft else None,
    )


def _elr(value: Json, where: Where, to: Problems) -> list[int]:
    return ids(value, where, to, distinct=False)


def _last_known_elr(value: Json, where: Where, to: Problems) -> list[int]:
    """Kafka can record -1 here, where the last known leader was none."""
    return ids(value, where, to, distinct=False, low=NO_LEADER)


def _recovery(value: Json, where: Where, to: Problems) -> int:
    """Kafka's LeaderRecoveryState: 0 recovered, 1 recovering after an unclean election."""
    if value is None:
        return 0
    found = integer(value, where, to)
    if found > 1:
        to.add(where, f"expected 0 (recovered) or 1 (recovering), found {found}")
    return found
