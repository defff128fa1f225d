"""The decisions a ZooKeeper-mode controller wrote into its ``state-change.log``, by release.

Transitions that were made or failed, the records written, and the bodies sent to brokers where the
log was at TRACE. Times are the machine's local time without a zone and are taken as UTC. The last
record of each partition is also a snapshot, of what the log happens to mention. Plain Python: this
runs on executors.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from understudy.errors import BadInputError
from understudy.sources.content import Content, Row, canonical
from understudy.sources.text_snapshot import id_list

FORM: Final = "state-change-log"

PARTITION: Final = "partition"
REPLICA: Final = "replica"
REMOVAL: Final = "removal"
LEADER_AND_ISR: Final = "leader_and_isr"

_LINE: Final = re.compile(
    r"\[(?P<time>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3})\] (?P<level>[A-Z]+) (?P<message>.*)"
    r" \(\S*state\.change\.logger\)\s*",
    re.ASCII,
)
_BY: Final = re.compile(r"\[Controller id=(\d+) epoch=(\d+)\] |Controller (\d+) epoch (\d+) ")
_P: Final = r"(?P<partition>\[[^\]]+,\d+\]|\S+-\d+)"
_STATES: Final = r"from (?P<from_state>\w+) to (?P<to_state>\w+)"
# The first letter is capital from 1.0 on, where the name of the controller moved into brackets.
_CHANGED: Final = rf"[Cc]hanged partition {_P} (?:state )?{_STATES}(?: with (?P<with>.*))?"
_CHANGED_REPLICA: Final = (
    rf"[Cc]hanged state of replica (?P<replica>\d+) for partition {_P} {_STATES}"
)
_REMOVED: Final = (
    rf"Partition {_P} state changed to (?P<with>\(.*\)) after removing replica (?P<replica>\d+)"
    r" from the ISR as part of transition to OfflineReplica"
)
_SENT: Final = (
    r"[Ss]ending become-(?:leader|follower) LeaderAndIsr request (?P<with>.*)"
    rf" to broker (?P<replica>\d+) for partition {_P}"
)
_FAILED: Final = rf"(?P<failed>failed) to change state for partition {_P} {_STATES}"
_FAILED_OLD: Final = rf"[Ii]nitiated state change for partition {_P} {_STATES} (?P<failed>failed)"
_FAILED_REPLICA: Final = (
    r"[Ii]nitiated state change of replica (?P<replica>\d+)"
    rf" for partition {_P} {_STATES} (?P<failed>failed)"
)
_MESSAGES: Final = (
    (PARTITION, re.compile(_CHANGED, re.ASCII)),
    (REPLICA, re.compile(_CHANGED_REPLICA, re.ASCII)),
    (REMOVAL, re.compile(_REMOVED, re.ASCII)),
    (LEADER_AND_ISR, re.compile(_SENT, re.ASCII)),
    (PARTITION, re.compile(_FAILED, re.ASCII)),
    (PARTITION, re.compile(_FAILED_OLD, re.ASCII)),
    (REPLICA, re.compile(_FAILED_REPLICA, re.ASCII)),
)
_LEADER: Final = re.compile(r'[Ll]eader"?[=:](-?\d+)', re.ASCII)
_LEADER_EPOCH: Final = re.compile(r'(?:[Ll]eaderEpoch|"leader_epoch")[=:](\d+)', re.ASCII)
_VERSION: Final = re.compile(r"(?:[zZ]kVersion|partitionEpoch)[=:](\d+)", re.ASCII)
_CONTROLLER_EPOCH: Final = re.compile(r"[cC]ontrollerEpoch[=:](\d+)", re.ASCII)
_RECOVERY: Final = re.compile(r"[lL]eaderRecoveryState[=:](RECOVERED|RECOVERING|0|1)", re.ASCII)
_IDS_AFTER: Final = r'{}"?[=:](?:\w*[(\[])?((?:-?\d+(?:,\s?-?\d+)*)?)'
_ISR: Final = re.compile(_IDS_AFTER.format("(?:isr|ISR)"), re.ASCII)
_REPLICAS: Final = re.compile(_IDS_AFTER.format("(?<!adding)(?<!removing)replicas"), re.ASCII)
_ISR_WITH_EPOCHS: Final = re.compile(r"isrWithBrokerEpoch=\w+\((.*?)\)(?:, leader|\)$)", re.ASCII)
_BROKER_ID: Final = re.compile(r"brokerId=(\d+)", re.ASCII)
_ASSIGNED: Final = "assigned replicas "


class Recorded(NamedTuple):
    """One decision as the log has it."""

    line: int
    time: int
    """Milliseconds since 1970, if the machine's zone was UTC."""
    controller_id: int
    controller_epoch: int
    kind: str
    """``partition`` and ``replica`` transitions, ``removal`` of a replica from the ISR (printed
    also where nothing was written), ``leader_and_isr`` sent to a broker."""
    topic: str
    partition: int
    replica: int | None
    """The replica moved or removed; the receiver of a LeaderAndIsr request."""
    from_state: str | None
    to_state: str | None
    result: str
    """``ok`` or ``failed``."""
    leader: int | None
    leader_epoch: int | None
    isr: list[int] | None
    partition_epoch: int | None
    recovery: int | None
    record_epoch: int | None
    """The controller epoch inside the record, where it is printed."""
    replicas: list[int] | None


def recognise(head: str) -> bool:
    """Whether a text has a line of the state-change logger."""
    return any(_LINE.fullmatch(line) for line in head.splitlines())


def decisions(lines: Iterable[str]) -> Iterator[Recorded]:
    """The controller's decisions, in the order of the log; other lines are passed over."""
    for number, line in enumerate(lines, start=1):
        if "ontroller" not in line:
            continue
        found = _LINE.fullmatch(line)
        if found:
            decision = _decision(number, found["time"], found["message"])
            if decision:
                yield decision


def _decision(number: int, time: str, message: str) -> Recorded | None:
    by: tuple[int, int] | None = None
    while prefix := _BY.match(message):
        who, epoch = (prefix[1] or prefix[3]), (prefix[2] or prefix[4])
        by, message = (int(who), int(epoch)), message[prefix.end() :]
    if by is None:
        return None
    for kind, pattern in _MESSAGES:
        found = pattern.fullmatch(message)
        if found:
            return _recorded(number, time, by, kind, found.groupdict())
    return None


def _recorded(
    number: int, time: str, by: tuple[int, int], kind: str, found: dict[str, Any]
) -> Recorded:
    topic, partition = _split(found["partition"])
    state = found.get("with") or ""
    replicas = (
        id_list(state.removeprefix(_ASSIGNED).replace(" ", ""))
        if state.startswith(_ASSIGNED)
        else _ids(_REPLICAS, state)
    )
    return Recorded(
        number,
        _milliseconds(time),
        *by,
        kind,
        topic,
        partition,
        None if found.get("replica") is None else int(found["replica"]),
        found.get("from_state"),
        found.get("to_state"),
        "failed" if found.get("failed") else "ok",
        _with_leader(state),
        _number(_LEADER_EPOCH, state),
        _isr(state),
        _number(_VERSION, state),
        _recovery(state),
        _number(_CONTROLLER_EPOCH, state),
        replicas,
    )


def _split(partition: str) -> tuple[str, int]:
    """``[foo,0]`` up to 0.11, ``foo-0`` from 1.0 on."""
    old = partition.startswith("[")
    topic, _, number = partition.strip("[]").rpartition("," if old else "-")
    return topic, int(number)


def _milliseconds(time: str) -> int:
    try:
        moment = datetime.strptime(time, "%Y-%m-%d %H:%M:%S,%f").replace(tzinfo=UTC)
    except ValueError:
        raise BadInputError(f"{time} is no time") from None
    return round(moment.timestamp() * 1000)


def _with_leader(state: str) -> int | None:
    """``with leader 2`` up to 1.0, else the leader in the record."""
    if state.startswith("leader "):
        return int(state.removeprefix("leader "))
    return _number(_LEADER, state)


def _number(pattern: re.Pattern[str], state: str) -> int | None:
    found = pattern.search(state)
    return int(found[1]) if found else None


def _ids(pattern: re.Pattern[str], state: str) -> list[int] | None:
    found = pattern.search(state)
    return id_list(found[1].replace(" ", "")) if found else None


def _isr(state: str) -> list[int] | None:
    found = _ISR_WITH_EPOCHS.search(state)
    if found:
        return [int(each) for each in _BROKER_ID.findall(found[1])]
    return _ids(_ISR, state)


def _recovery(state: str) -> int | None:
    found = _RECOVERY.search(state)
    return None if not found else int(found[1] in ("RECOVERING", "1"))


def content(
    lines: Iterable[str],
    key: tuple[str, str],
    *,
    release: str | None = None,
    metadata_version: str | None = None,
) -> Content:
    """The last record of every partition the log mentions: never a whole cluster."""
    newest: dict[tuple[str, int], dict[str, Any]] = {}
    last: Recorded | None = None
    for decision in decisions(lines):
        last = decision
        place = (decision.topic, decision.partition)
        if decision.kind == PARTITION and decision.to_state == "NonExistentPartition":
            newest.pop(place, None)
            continue
        known = newest.setdefault(place, {})
        known.update(
            {name: value for name in _KEPT if (value := getattr(decision, name)) is not None}
        )
        if decision.leader_epoch is not None:
            known["controller_epoch"] = decision.record_epoch or decision.controller_epoch
    if last is None:
        raise BadInputError("the log holds no decision of a controller")
    return canonical(
        key,
        taken_at=last.time * 1000,
        mode="zk",
        source_form=FORM,
        release=release,
        metadata_version=metadata_version,
        elr_enabled=None,
        controller=(last.controller_id, last.controller_epoch),
        complete=False,
        brokers=[],
        topics=[(topic, None, None) for topic in {topic for topic, _ in newest}],
        partitions=[_row(*place, known) for place, known in newest.items()],
        configs=[],
    )


_KEPT: Final = ("leader", "leader_epoch", "isr", "partition_epoch", "recovery", "replicas")


def _row(topic: str, partition: int, known: dict[str, Any]) -> Row:
    return (
        topic,
        partition,
        known.get("replicas"),
        None,
        None,
        None,
        True if "leader" in known else None,
        known.get("leader"),
        known.get("leader_epoch"),
        known.get("isr"),
        known.get("partition_epoch"),
        known.get("controller_epoch"),
        known.get("recovery"),
        None,
        None,
        None,
    )
