"""What ``kafka-dump-log --cluster-metadata-decoder`` prints, read back into the log it printed.

A text holds one part per file dumped, each with its batches and their records; the state comes
from the same machinery that reads the files themselves. ``--skip-record-metadata`` leaves out
offsets and times of records, which the batch lines still give. Plain Python: runs on executors.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from understudy.errors import BadInputError
from understudy.sources.content import Parsed
from understudy.sources.kraft_directory import (
    Asked,
    Entry,
    History,
    LogFile,
    checkpoint_end,
    plan,
    segment_base,
)
from understudy.sources.kraft_records import (
    LEADER_CHANGE,
    SNAPSHOT_FOOTER,
    SNAPSHOT_HEADER,
    UNREAD_CONTROL,
    Record,
    from_json,
)
from understudy.sources.record_batches import Malformed

FORM: Final = "dump-log"
_FILE: Final = "Dumping "
_BATCH: Final = re.compile(
    r"baseOffset: (\d+) lastOffset: (\d+) count: (\d+) .*?partitionLeaderEpoch: (\d+) "
    r".*?isControl: (true|false) .*?CreateTime: (-?\d+) .*?isvalid: (true|false)",
    re.ASCII,
)
_RECORD: Final = re.compile(r"\| offset: (\d+) CreateTime: (-?\d+) ", re.ASCII)
_PAYLOAD: Final = "payload: "
_CONTROL: Final = re.compile(
    r"(?:controlType: LEADER_CHANGE\(2\)|"
    r"(SnapshotHeader|SnapshotFooter|KRaftVersion|KRaftVoters|LeaderChange:?) (\{.*\}))$",
    re.ASCII,
)
_CONTROL_NAMES: Final = {
    "SnapshotHeader": SNAPSHOT_HEADER,
    "SnapshotFooter": SNAPSHOT_FOOTER,
    "KRaftVersion": "KRAFT_VERSION",
    "KRaftVoters": "KRAFT_VOTERS",
    "LeaderChange": LEADER_CHANGE,
}


@dataclass
class _Dumped:
    """A batch line and the records printed below it."""

    line: int
    base: int
    last: int
    count: int
    epoch: int
    control: bool
    time: int
    records: list[Record] = field(default_factory=list)


@dataclass
class _Part:
    name: str
    line: int
    batches: list[_Dumped] = field(default_factory=list)


def recognise(head: str) -> bool:
    """Whether a text begins as the tool's output does."""
    lines = head.lstrip("\ufeff").splitlines()
    return any(line.startswith(_FILE) for line in lines) and any(
        line.startswith(("Log starting offset: ", "Snapshot end offset: ", "KRaft bootstrap"))
        for line in lines
    )


def snapshots(text: Iterable[str], wanted: Asked) -> Iterator[Parsed]:
    """The snapshots in the lines of one dump, which may hold several files of one directory."""
    history = History(wanted, FORM)
    try:
        parts = {part.name: part for part in _parts(text)}
        for name in plan(parts, wanted):
            yield from history.read(LogFile(name, _entries(parts[name])))
        yield from history.finish()
    except BadInputError as error:
        yield history.refused(error)


def _parts(text: Iterable[str]) -> Iterator[_Part]:
    part: _Part | None = None
    for number, line in enumerate(text, start=1):
        if line.startswith(_FILE):
            if part:
                yield part
            name = line[len(_FILE) :].strip().replace("\\", "/").rpartition("/")[2]
            part = _Part(name, number)
            if segment_base(name) is None and checkpoint_end(name) is None:
                raise BadInputError(f"line {number}: {name} is no segment and no checkpoint")
        elif part and line.startswith("baseOffset: "):
            part.batches.append(_batch(line, number))
        elif part and part.batches and line.startswith(("| ", _PAYLOAD, f" {_PAYLOAD}")):
            part.batches[-1].records.append(_record(line, number, part.batches[-1]))
        elif line.startswith("Error at "):
            raise BadInputError(f"line {number}: the tool could not decode a record: {line[:200]}")
    if part is None:
        raise BadInputError('no line begins with "Dumping ": this is no output of kafka-dump-log')
    yield part


def _batch(line: str, number: int) -> _Dumped:
    found = _BATCH.match(line)
    if not found:
        raise BadInputError(f"line {number}: the batch line is cut short")
    base, last, count, epoch, control, time, valid = found.groups()
    if valid != "true":
        raise BadInputError(f"line {number}: the tool found the batch damaged (isvalid: false)")
    return _Dumped(
        number, int(base), int(last), int(count), int(epoch), control == "true", int(time)
    )


def _record(line: str, number: int, batch: _Dumped) -> Record:
    found = _RECORD.match(line)
    offset, time = batch.base + len(batch.records), batch.time
    if found:
        offset, time = int(found[1]), int(found[2])
    if _PAYLOAD in line:
        return _data_record(line[line.index(_PAYLOAD) + len(_PAYLOAD) :], number, offset, time)
    control = _CONTROL.search(line.rstrip())
    if not control:
        raise BadInputError(f"line {number}: the record is cut short or of a kind not known")
    if control[1] is None:
        return Record(offset, time, LEADER_CHANGE, 0, {})
    data = {key: value for key, value in _json(control[2], number).items() if type(value) is int}
    return Record(offset, time, _CONTROL_NAMES[control[1].rstrip(":")], 0, data)


def _data_record(payload: str, number: int, offset: int, time: int) -> Record:
    try:
        return from_json(offset, time, _json(payload, number))
    except Malformed as error:
        raise BadInputError(f"line {number}: {error}") from None


def _json(text: str, number: int) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise BadInputError(f"line {number}: the payload is no whole JSON object") from None
    if not isinstance(found, dict):
        raise BadInputError(f"line {number}: the payload is no JSON object")
    return found


def _entries(part: _Part) -> Iterator[Entry]:
    for batch in part.batches:
        records = batch.records
        if batch.control and not records:
            records = [
                Record(batch.base + place, batch.time, UNREAD_CONTROL, 0, {})
                for place in range(batch.count)
            ]
        if len(records) != batch.count:
            raise BadInputError(
                f"line {batch.line}: {batch.count} records announced, {len(records)} printed"
            )
        yield Entry(
            f"line {batch.line}",
            batch.base,
            batch.last,
            batch.epoch,
            batch.control,
            lambda records=records: records,  # type: ignore[misc]
        )
