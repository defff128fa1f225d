"""Every form of input by name: what it is, what may be asked of it, and how it is recognised.

A file is recognised by its first bytes. A data directory of ZooKeeper or a metadata log of Kafka
counts as a whole: one of its files is looked at, or none where the directory has the name those two
give it. Nothing here opens a file or knows of Spark.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final, NamedTuple

from understudy.errors import UsageError
from understudy.sources import (
    describe_text,
    document,
    dump_log_text,
    kcat,
    kraft_directory,
    reassignment_json,
    state_change_log,
    text_forms,
)
from understudy.sources.instants import examples, instant
from understudy.sources.kraft_directory import METADATA_DIRECTORY
from understudy.sources.zookeeper import forms as zookeeper
from understudy.sources.zookeeper import history, txnlog
from understudy.sources.zookeeper.compression import uncompressed_head

JSON: Final = "json"
HEAD_BYTES: Final = max(text_forms.HEAD_BYTES, zookeeper.HEAD_BYTES)
"""So much of a file is enough to recognise it by."""


class Form(NamedTuple):
    """A form of input, and which options of a load mean something to it."""

    name: str
    what: str
    instants: tuple[str, ...] = ()
    """What ``--at`` can pick; nothing if a file is one instant."""
    has_history: bool = False
    takes_cluster: bool = True
    takes_release: bool = True


_LOG: Final[dict[str, Any]] = {
    "instants": kraft_directory.INSTANTS,
    "has_history": True,
    "takes_release": False,
}

FORMS: Final = {
    form.name: form
    for form in (
        Form(JSON, "snapshot documents", takes_cluster=False, takes_release=False),
        Form(
            zookeeper.DATA_DIRECTORY,
            "a data directory of ZooKeeper: snapshots and transaction logs",
            instants=history.INSTANTS,
            has_history=True,
        ),
        Form(zookeeper.SNAPSHOT, "snapshot files of ZooKeeper, each by itself"),
        Form(zookeeper.DUMP, "dumps of ZooKeeper's znodes"),
        Form(
            kraft_directory.FORM,
            "a __cluster_metadata-0 directory: segments and checkpoints",
            **_LOG,
        ),
        Form(dump_log_text.FORM, "output of kafka-dump-log --cluster-metadata-decoder", **_LOG),
        Form(describe_text.FORM, "output of kafka-topics --describe"),
        Form(kcat.FORM, "output of kcat -L, as text or JSON"),
        Form(reassignment_json.FORM, "plans of kafka-reassign-partitions"),
        Form(state_change_log.FORM, "state-change.log of a controller"),
    )
}

_SIZE: Final = re.compile(r"(?P<number>\d{1,15})(?P<unit>[kmgt]?)b?", re.ASCII)
_SHIFTS: Final = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}
_ZOOKEEPERS_OWN: Final = "version-2"
_TOPIC_DIRECTORY: Final = re.compile(r".+-\d+(?:\.[0-9a-f]{32}-(?:delete|future|stray))?", re.ASCII)
# What ZooKeeper and Kafka keep beside the files that count.
_BYSTANDER: Final = re.compile(
    r"\d{20}\.(?:index|timeindex|txnindex|snapshot)|.*\.deleted"
    r"|(?:leader-epoch|(?:recovery-point|replication|log-start|cleaner)-offset)-checkpoint"
    r"|bootstrap\.checkpoint|partition\.metadata|meta\.properties|quorum-state"
    r"|zookeeper_server\.pid",
    re.ASCII,
)


# --- What a load asks for ----------------------------------------------------------------------


@dataclass(frozen=True)
class Wanted:
    """The options of a load; null is what was not said."""

    form: str | None = None
    cluster: str | None = None
    release: str | None = None
    metadata_version: str | None = None
    at: str | None = None
    every_change: bool = False
    max_uncompressed_bytes: int | None = None
    """A compressed file that is larger than this is refused."""

    def check(self) -> None:
        """Refuse what no input could make sense of."""
        problems = document.Problems()
        for option, value, read in (
            ("--cluster", self.cluster, document.name),
            ("--release", self.release, document.release_name),
            ("--metadata-version", self.metadata_version, document.metadata_version_name),
        ):
            if value is not None:
                read(value, (option,), problems)
        if problems.count:
            raise UsageError("; ".join(problems.all()))
        if self.at is not None:
            instant(self.at)
        if self.at is not None and self.every_change:
            raise UsageError(
                "--at picks one instant and --every-change all of them: give one of both"
            )
        if self.form is not None:
            self.check_forms([self.form])

    def check_forms(self, found: Iterable[str]) -> None:
        """Refuse options that mean nothing to what was *found*.

        An instant has to mean something to all of it. A name or a release only fills what a form
        leaves open, so it is enough if one form does.
        """
        forms = [FORMS[name] for name in dict.fromkeys(found)]
        if not forms:
            return
        _refuse_timeless(self, forms)
        named = {"--release": self.release, "--metadata-version": self.metadata_version}
        said = ", ".join(form.name for form in forms)
        if self.cluster is not None and not any(form.takes_cluster for form in forms):
            raise UsageError(f"--cluster {self.cluster}: form {said} names its cluster itself")
        for option, value in named.items():
            if value is not None and not any(form.takes_release for form in forms):
                raise UsageError(f"{option} {value}: form {said} says so itself")

    def settings(self) -> dict[str, object]:
        """What was said, for the digest of a run's configuration."""
        return {name: value for name, value in asdict(self).items() if value not in (None, False)}

    def of_zookeeper(self) -> history.Asked:
        return history.asked(
            cluster=self.cluster,
            release=self.release,
            metadata_version=self.metadata_version,
            at=self.at,
            every_change=self.every_change,
            max_uncompressed_bytes=self.max_uncompressed_bytes,
        )

    def of_kafka(self) -> kraft_directory.Asked:
        return kraft_directory.asked(
            cluster=self.cluster,
            release=self.release,
            metadata_version=self.metadata_version,
            at=self.at,
            every_change=self.every_change,
            max_uncompressed_bytes=self.max_uncompressed_bytes,
        )


def size(text: str) -> int:
    """A number of bytes as people write it: ``500m``, ``8g``."""
    found = _SIZE.fullmatch(text.lower())
    if not found or not int(found["number"]):
        raise UsageError(f"{text!r} is no size: expected a number of bytes, or one like 500m or 8g")
    return int(found["number"]) << _SHIFTS[found["unit"]]


def _refuse_timeless(wanted: Wanted, forms: Iterable[Form]) -> None:
    for form in forms:
        if wanted.every_change and not form.has_history:
            raise UsageError(f"--every-change: form {form.name} is one instant; {_histories()}")
        if wanted.at is not None and not form.instants:
            raise UsageError(f"--at {wanted.at}: form {form.name} is one instant; {_histories()}")
        if wanted.at is not None and instant(wanted.at).kind not in form.instants:
            raise UsageError(
                f"--at {wanted.at}: an instant of form {form.name} is {examples(form.instants)}"
            )


def _histories() -> str:
    names = ", ".join(form.name for form in FORMS.values() if form.has_history)
    return f"a history is in {names} (--form picks what is read)"


# --- Which form a file has ---------------------------------------------------------------------


def recognise(head: bytes, name: str) -> str | None:
    """The form of the file that begins with *head*; null for none that is known.

    ``text_forms.BESIDE`` is a text that only adds to the others of its directory.
    """
    return (
        zookeeper.recognise(head, name)
        or kraft_directory.recognise(head, name)
        or text_forms.recognise(head)
        or (JSON if _is_json(head) else None)
    )


def _is_json(head: bytes) -> bool:
    plain = uncompressed_head(head, HEAD_BYTES)
    return plain.removeprefix(b"\xef\xbb\xbf").lstrip().startswith((b"{", b"["))


class Listed(NamedTuple):
    """A file that was found, and its length."""

    path: str
    length: int


@dataclass
class Found:
    """The files of a load by what reads them; what only stands beside them is left out."""

    forms: dict[str, list[str]] = field(default_factory=dict)
    """Paths by form, ``text_forms.BESIDE`` among them."""
    unknown: dict[str, str] = field(default_factory=dict)
    """By path, why a file cannot be loaded."""

    def add(self, form: str, paths: Iterable[str]) -> None:
        self.forms.setdefault(form, []).extend(paths)


def to_look_at(files: Iterable[Listed], largest: int) -> list[str]:
    """The files whose first bytes decide; of a directory that counts as a whole, the smallest."""
    sample: dict[tuple[str, str], Listed] = {}
    chosen: list[str] = []
    for file in sorted(_without_topics(list(files)), key=lambda each: (each.length, each.path)):
        if file.length > largest or _is_bystander(_name(file.path)):
            continue
        place = _place(file.path)
        if place is None:
            chosen.append(file.path)
        elif not _is_named_so(*place):
            sample.setdefault(place, file)
    return [*chosen, *(file.path for file in sample.values())]


def sort_out(files: Iterable[Listed], looked_at: Mapping[str, str | None], largest: int) -> Found:
    """Every file to its form, given what :func:`recognise` said of those looked at."""
    listed = sorted(files)
    ours = _without_topics(listed)
    said = {place: form for path, form in looked_at.items() if (place := _place(path))}
    found = Found()
    zookeepers: list[str] = []
    kafkas: list[str] = []
    for file in ours:
        place = _place(file.path)
        if place is None:
            _sort_file(file, looked_at.get(file.path), largest, found)
            continue
        form = place[1] if _is_named_so(*place) else said.get(place, place[1])
        if form in (zookeeper.DATA_DIRECTORY, zookeeper.SNAPSHOT):
            zookeepers.append(file.path)
        elif form == kraft_directory.FORM:
            kafkas.append(file.path)
        else:
            _sort_file(file, form, largest, found)
    _sort_zookeepers(zookeepers, found)
    if kafkas:
        found.add(kraft_directory.FORM, [*kafkas, *_beside_logs(kafkas, listed)])
    return found


def _sort_file(file: Listed, form: str | None, largest: int, found: Found) -> None:
    name = _name(file.path)
    if form is not None:
        found.add(form, [file.path])
    elif _is_bystander(name) or name.startswith(("_", ".")):
        return
    elif file.length > largest:
        found.unknown[file.path] = f"the file is larger than {largest:,} bytes"
    else:
        found.unknown[file.path] = f"this is none of the forms known: {', '.join(FORMS)}"


def _is_bystander(name: str) -> bool:
    return name in zookeeper.BESIDE_SNAPSHOTS or _BYSTANDER.fullmatch(name) is not None


def _sort_zookeepers(paths: list[str], found: Found) -> None:
    """Snapshots without transaction logs stand alone."""
    for names in zookeeper.directories(paths).values():
        has_log = any(map(txnlog.is_log, names))
        found.add(zookeeper.DATA_DIRECTORY if has_log else zookeeper.SNAPSHOT, names.values())


def _beside_logs(paths: Iterable[str], listed: Iterable[Listed]) -> list[str]:
    """The files that name the cluster and its leader: in the directory, or above it."""
    inside = {_directory(path) for path in paths}
    places = {
        kraft_directory.META_PROPERTIES: inside | {_directory(each) for each in inside},
        kraft_directory.QUORUM_STATE: inside,
    }
    return [
        file.path for file in listed if _directory(file.path) in places.get(_name(file.path), ())
    ]


def _without_topics(listed: list[Listed]) -> list[Listed]:
    """Without the records of topics that lie beside a metadata log, as they do on a node."""
    directories = {_directory(file.path) for file in listed}
    nodes = {_directory(each) for each in directories if _name(each).startswith(METADATA_DIRECTORY)}
    topics = {
        directory
        for file in listed
        if kraft_directory.is_file(_name(file.path))
        and _directory(directory := _directory(file.path)) in nodes
        and not _name(directory).startswith(METADATA_DIRECTORY)
        and _TOPIC_DIRECTORY.fullmatch(_name(directory))
    }
    return [file for file in listed if _directory(file.path) not in topics]


def _place(path: str) -> tuple[str, str] | None:
    """The directory a file may only be a part of, and what that would be; by its name."""
    name = _name(path)
    if kraft_directory.is_file(name):
        return _directory(path), kraft_directory.FORM
    if txnlog.is_log(name):
        return _directory(path), zookeeper.DATA_DIRECTORY
    if zookeeper.is_file(name):
        return _directory(path), zookeeper.SNAPSHOT
    return None


def _is_named_so(directory: str, form: str) -> bool:
    """Whether the directory has the name its owner gives it."""
    if form == kraft_directory.FORM:
        return _name(directory).startswith(METADATA_DIRECTORY)
    return _name(directory) == _ZOOKEEPERS_OWN


def _directory(path: str) -> str:
    return path.rpartition("/")[0]


def _name(path: str) -> str:
    return path.rpartition("/")[2]
