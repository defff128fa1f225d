"""The files of one ``__cluster_metadata-0`` directory, put together into snapshots.

The state at an instant is the newest checkpoint before it and the log from there on. Files come one
at a time and are let go of, so memory is bounded by the largest. A file that is damaged, a hole
between files or a log without a beginning is refused. Plain Python: this runs on executors.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Final, NamedTuple

from understudy.errors import BadInputError
from understudy.sources.content import Parsed
from understudy.sources.instants import OFFSET, TIME, instant
from understudy.sources.kraft_image import Image
from understudy.sources.kraft_records import (
    LEADER_CHANGE,
    SNAPSHOT_FOOTER,
    SNAPSHOT_HEADER,
    UNREAD_CONTROL,
    Record,
    decode,
)
from understudy.sources.record_batches import (
    HEADER_BYTES,
    MAGIC,
    MAGIC_AT,
    Batch,
    Malformed,
    Torn,
    batches,
)
from understudy.sources.text_snapshot import check_configs

FORM: Final = "kraft"
INSTANTS: Final = (OFFSET, TIME)
METADATA_DIRECTORY: Final = "__cluster_metadata-"
META_PROPERTIES: Final = "meta.properties"
QUORUM_STATE: Final = "quorum-state"
_SEGMENT: Final = re.compile(r"(\d{20})\.log", re.ASCII)
_CHECKPOINT: Final = re.compile(r"(\d{20})-(\d{10})\.checkpoint", re.ASCII)


@dataclass(frozen=True)
class Asked:
    """Which snapshots of a history are wanted, and what its cluster is called."""

    cluster: str | None = None
    offset: int | None = None
    """The state after this offset; null: not limited."""
    time: int | None = None
    """The state at this time, milliseconds since 1970; null: not limited."""
    every_change: bool = False
    release: str | None = None
    """Of a text that does not say it; a log does."""
    metadata_version: str | None = None
    max_uncompressed_bytes: int | None = None
    """Of a compressed text; null: what is usual."""

    def reaches(self, record: Record) -> bool:
        """Whether a record is still at or before the instant asked for."""
        return (self.offset is None or record.offset <= self.offset) and (
            self.time is None or record.time <= self.time
        )


def asked(
    *,
    cluster: str | None = None,
    at: str | None = None,
    every_change: bool = False,
    release: str | None = None,
    metadata_version: str | None = None,
    max_uncompressed_bytes: int | None = None,
) -> Asked:
    """What ``--cluster``, ``--at``, ``--every-change`` and the like say."""
    picked = None if at is None else instant(at, INSTANTS)
    return Asked(
        cluster,
        offset=picked.value if picked and picked.kind == OFFSET else None,
        time=picked.value if picked and picked.kind == TIME else None,
        every_change=every_change,
        release=release,
        metadata_version=metadata_version,
        max_uncompressed_bytes=max_uncompressed_bytes,
    )


class Entry(NamedTuple):
    """One batch of a log or checkpoint, whatever form it was read from."""

    where: str
    base_offset: int
    last_offset: int
    epoch: int
    control: bool
    records: Callable[[], Sequence[Record]]


class LogFile(NamedTuple):
    """A log segment or a checkpoint by its name, with its batches."""

    name: str
    entries: Iterable[Entry | Torn]


def entries(data: bytes, name: str) -> Iterator[Entry | Torn]:
    """The batches of a segment or checkpoint in Kafka's own form."""
    for batch in batches(data, name):
        if isinstance(batch, Torn):
            yield batch
            return
        yield _entry(data, batch, name)


def _entry(data: bytes, batch: Batch, name: str) -> Entry:
    return Entry(
        f"{name}, byte {batch.position}",
        batch.base_offset,
        batch.last_offset,
        batch.epoch,
        batch.control,
        lambda: decode(data, batch, name),
    )


def recognise(head: bytes, name: str) -> str | None:
    """``kraft`` for a segment or checkpoint by its name and first bytes; else null."""
    is_batch = len(head) >= HEADER_BYTES and head[MAGIC_AT] == MAGIC
    return FORM if is_file(name) and is_batch else None


# --- Which files are read, and in which order --------------------------------------------------


def segment_base(name: str) -> int | None:
    """The first offset of a log segment, from its name."""
    found = _SEGMENT.fullmatch(name)
    return int(found[1]) if found else None


def checkpoint_end(name: str) -> tuple[int, int] | None:
    """The offset a checkpoint ends before and its epoch, from its name."""
    found = _CHECKPOINT.fullmatch(name)
    return (int(found[1]), int(found[2])) if found else None


def names_above(directory: str) -> str | None:
    """Where the cluster of a metadata log is named: in a file of the directory above."""
    above, name = posixpath.split(directory.rstrip("/"))
    is_log = name.startswith(METADATA_DIRECTORY)
    return posixpath.join(above, META_PROPERTIES) if is_log else None


def is_file(name: str) -> bool:
    """Whether a log segment or a checkpoint is called so."""
    return segment_base(name) is not None or checkpoint_end(name) is not None


def plan(names: Iterable[str], wanted: Asked) -> list[str]:
    """The files of one directory that have to be read, in the order to read them."""
    known = set(names)
    checkpoints = sorted(name for name in known if checkpoint_end(name))
    segments = sorted(name for name in known if segment_base(name) is not None)
    beside = sorted(known & {META_PROPERTIES, QUORUM_STATE})
    chosen = _checkpoints(checkpoints, segments, wanted)
    start = _end(chosen[0]) if chosen else 0
    needed = [
        name
        for name, after in zip(segments, [*segments[1:], None], strict=False)
        if after is None or (segment_base(after) or 0) > start
    ]
    return [*beside, *chosen, *needed]


def _checkpoints(checkpoints: list[str], segments: list[str], wanted: Asked) -> list[str]:
    """The checkpoints that may be the start; several only where their content must decide."""
    first = segment_base(segments[0]) if segments else None
    if wanted.every_change:
        whole = [name for name in checkpoints if _end(name) == 0] if first == 0 else checkpoints
        return [name for name in whole if first is None or _end(name) >= first][:1]
    if wanted.time is not None:
        return checkpoints
    usable = [
        name for name in checkpoints if wanted.offset is None or _end(name) <= wanted.offset + 1
    ]
    return usable[-1:]


def _end(checkpoint: str) -> int:
    end = checkpoint_end(checkpoint)
    return end[0] if end else 0


# --- From files to snapshots -------------------------------------------------------------------


def snapshots(
    files: Iterable[tuple[str, bytes]], wanted: Asked, *, source_form: str = FORM
) -> Iterator[Parsed]:
    """The snapshots in the files of one directory, given in the order of :func:`plan`."""
    history = History(wanted, source_form)
    try:
        for name, data in files:
            if name == META_PROPERTIES:
                history.cluster = history.cluster or _cluster_id(data)
            elif name == QUORUM_STATE:
                history.quorum = _quorum(data)
            else:
                yield from history.read(LogFile(name, entries(data, name)))
        yield from history.finish()
    except BadInputError as error:
        yield history.refused(error)


def _cluster_id(properties: bytes) -> str | None:
    for line in properties.decode("utf-8", "replace").splitlines():
        key, _, value = line.partition("=")
        if key.strip() == "cluster.id" and value.strip():
            return value.strip()
    return None


def _quorum(state: bytes) -> tuple[int, int] | None:
    """The raft leader of the epoch this node saw last, if it says."""
    try:
        found = json.loads(state)
        return int(found["leaderEpoch"]), int(found["leaderId"])
    except (ValueError, KeyError, TypeError):
        return None


class History:
    """Reads checkpoints and segments in order, and takes the snapshots asked for."""

    def __init__(self, wanted: Asked, source_form: str) -> None:
        self.cluster = wanted.cluster
        self.quorum: tuple[int, int] | None = None
        self._wanted = wanted
        self._form = source_form
        self._image = Image()
        self._next = 0  # the first offset that is not yet part of the image
        self._seen = -1  # the last offset met, applied or not
        self._epoch: int | None = None
        self._file = ""
        self._begun_with: tuple[str, str] | None = None  # a checkpoint, and where it stands
        self._torn: Torn | None = None
        self._notes: list[str] = []
        self._has_gaps = False
        self._done = False
        self._in_log = False

    def read(self, file: LogFile) -> Iterator[Parsed]:
        """Go through one more file; a snapshot of every change where that is wanted."""
        end = checkpoint_end(file.name)
        if end:
            yield from self._checkpoint(file, *end)
        elif not self._done:
            try:
                yield from self._segment(file)
            except BadInputError as error:
                raise self._with_the_way_out(error) from None

    def _with_the_way_out(self, error: BadInputError) -> BadInputError:
        """Of a damaged log: the checkpoint it was to go on from is whole, and a state as well."""
        if self._begun_with is None or self._form != FORM:
            return error
        name, offset = self._begun_with
        return BadInputError(f"{error}; {name} is whole: by itself it is the state at {offset}")

    def finish(self) -> Iterator[Parsed]:
        """The newest snapshot wanted, unless each change gave its own."""
        wanted = self._wanted
        if self._torn:
            self._notes.append(f"left out: {self._torn.reason} at byte {self._torn.position}")
        if self._image.offset < 0:
            raise BadInputError(
                "no state is recorded at or before the instant asked for"
                if self._seen >= 0
                else "there is no record in these files"
            )
        if wanted.offset is not None and self._seen < wanted.offset and not self._done:
            raise BadInputError(
                f"--at offset:{wanted.offset}: the files end at offset {self._seen}"
            )
        if not wanted.every_change:
            yield self._snapshot()

    def refused(self, error: BadInputError) -> Parsed:
        position = f"offset {self._seen}" if self._seen >= 0 else "the beginning"
        return Parsed(position, self.cluster, None, error.problems or (str(error),), None)

    def _checkpoint(self, file: LogFile, end: int, epoch: int) -> Iterator[Parsed]:
        if self._in_log:
            raise BadInputError(f"{file.name}: a checkpoint is read before the log")
        image, time = _checkpoint_image(file, end, epoch)
        if self._wanted.time is not None and (time is None or time > self._wanted.time):
            return
        self._image, self._next, self._seen = image, end, max(end - 1, self._seen)
        self._epoch = epoch if end else None
        self._file = file.name
        if end:  # else it is what a log begins with, and no state of a cluster
            self._begun_with = file.name, f"offset {end - 1}"
        if self._wanted.every_change and end:
            yield self._snapshot()

    def _segment(self, file: LogFile) -> Iterator[Parsed]:
        if self._torn:
            raise BadInputError(
                f"{self._file}, byte {self._torn.position}: {self._torn.reason}, "
                f"and the log goes on in {file.name}"
            )
        base = segment_base(file.name) or 0
        self._check_connected(base, file.name)
        self._in_log = True
        last, epoch = base - 1, None
        for entry in file.entries:
            if isinstance(entry, Torn):
                self._torn, self._file = entry, file.name
                return
            if entry.base_offset <= last:
                raise BadInputError(
                    f"{entry.where}: offset {entry.base_offset} comes after offset {last}"
                )
            _check_epoch(entry, self._epoch if entry.base_offset == self._next else epoch)
            last, epoch = entry.last_offset, entry.epoch
            if entry.last_offset >= self._next:
                self._file = file.name
                yield from self._apply(entry)
            elif entry.control and entry.epoch == self._epoch:
                self._image.note_leader(entry.records())  # a checkpoint does not say who leads
            if self._done:
                return

    def _check_connected(self, base: int, name: str) -> None:
        if base <= self._next:
            return
        if self._image.offset < 0 and not self._in_log:
            raise BadInputError(
                f"{name}: the log begins at offset {base}, and there is no checkpoint to begin with"
            )
        raise BadInputError(f"{name}: offsets {self._next} to {base - 1} are in none of the files")

    def _apply(self, entry: Entry) -> Iterator[Parsed]:
        if entry.base_offset > self._next:
            self._has_gaps = True
            self._notes.append(f"offsets {self._next} to {entry.base_offset - 1} are missing")
        new = [record for record in entry.records() if record.offset >= self._next]
        reached = list(takewhile(self._wanted.reaches, new))
        self._done = len(reached) < len(new)
        if new:
            self._seen = (reached or new)[-1].offset
        try:
            changed = self._image.apply(reached, entry.epoch)
        except Malformed as error:
            raise BadInputError(f"{entry.where}: {error}") from None
        self._next, self._epoch = entry.last_offset + 1, entry.epoch
        if changed and self._wanted.every_change and not self._image.in_transaction:
            yield self._snapshot()

    def _snapshot(self) -> Parsed:
        image = self._image
        if self.cluster is None:
            raise BadInputError("these files do not name their cluster: say --cluster NAME")
        if image.leader is None and self.quorum and self.quorum[0] == image.epoch:
            image.leader = self.quorum[1]
        snapshot_id = f"offset-{image.offset}"
        position = "; ".join([f"offset {image.offset} in {self._file}", *self._notes])
        try:
            content = image.content(
                self.cluster, snapshot_id, source_form=self._form, complete=not self._has_gaps
            )
        except Malformed as error:
            raise BadInputError(f"{self._file}: {error}") from None
        check_configs(content)
        return Parsed(position, self.cluster, snapshot_id, (), content)


def _check_epoch(entry: Entry, before: int | None) -> None:
    """A new raft epoch begins with a leader's own control record, and none goes back."""
    if before is None or entry.epoch == before:
        return
    first = next(iter(entry.records()), None) if entry.control else None
    begins = first is not None and first.type in (LEADER_CHANGE, UNREAD_CONTROL)
    if entry.epoch < before or not begins:
        raise BadInputError(
            f"{entry.where}: epoch {entry.epoch} follows epoch {before} without a leader change"
        )


def _checkpoint_image(file: LogFile, end: int, epoch: int) -> tuple[Image, int | None]:
    image = Image()
    time: int | None = None
    last: Record | None = None
    expected = 0
    for entry in file.entries:
        if isinstance(entry, Torn):
            raise BadInputError(
                f"{file.name}, byte {entry.position}: {entry.reason}; a checkpoint must be whole"
            )
        if entry.epoch != epoch or entry.base_offset != expected:
            raise BadInputError(
                f"{entry.where}: offset {entry.base_offset} of epoch {entry.epoch} where "
                f"offset {expected} of epoch {epoch} belongs"
            )
        if last is not None and last.type == SNAPSHOT_FOOTER:
            raise BadInputError(f"{entry.where}: there is more after the footer")
        expected = entry.last_offset + 1
        records = entry.records()
        if last is None:
            time = _header_time(entry, records)
        try:
            image.apply(records, epoch)
        except Malformed as error:
            raise BadInputError(f"{entry.where}: {error}") from None
        last = records[-1] if records else last
    if last is None or last.type not in (SNAPSHOT_FOOTER, UNREAD_CONTROL):
        raise BadInputError(f"{file.name}: the checkpoint has no footer, so it is not finished")
    image.stand_at(end - 1, epoch, time)
    return image, time


def _header_time(entry: Entry, records: Sequence[Record]) -> int | None:
    first = records[0] if records else None
    if first is None or first.type not in (SNAPSHOT_HEADER, UNREAD_CONTROL):
        raise BadInputError(f"{entry.where}: a checkpoint begins with a snapshot header")
    time: int | None = first.data.get("lastContainedLogTimestamp")
    return time
