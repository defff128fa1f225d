"""Replays what was recorded of a step and holds the outcome against the znodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from clusters import rows_of
from kafka_answers import named
from real_cluster.steps import View, membership
from understudy.controller.records import named_partition
from understudy.controller.words import UNCHANGED
from understudy.controller.zk import interpreter
from understudy.controller.zk.events import FAILOVER

Document = dict[str, Any]
Records = dict[str, list[Document]]

PREDICTED: Final = "yes"
DIFFERS: Final = "DIFFERS"
DISTURBED: Final = "disturbed"

_ASSIGNMENT: Final = ("replicas", "adding", "removing")
_RECORD: Final = (
    "leader",
    "leader_epoch",
    "isr",
    "partition_epoch",
    "controller_epoch",
    "recovery",
)


class Judged(NamedTuple):
    case: Document
    verdict: str
    remarks: list[str]
    outcomes: str
    """What became of the partitions, in the replay's words."""


def disturbances(
    before: View, after: View, events: list[Document], writes: list[Document]
) -> list[str]:
    """What happened that the script had no hand in, so that the events are not all there are.

    A loaded machine can end a broker's session; that is nobody's fault and no prediction.
    """
    found = []
    moves = [
        {key: write[key] for key in ("kind", "broker", "broker_epoch") if key in write}
        for write in writes
        if write["kind"] in {"broker_gone", "broker_registered"}
    ]
    if moves != membership(before, after):
        found.append("brokers lost their session or registered on their own")
    failovers = sum(event["type"] == FAILOVER for event in events)
    if after.controller_epoch != before.controller_epoch + failovers:
        found.append("another controller was elected")
    return found


def judge(case: Document) -> Judged:
    """Whether the replay leaves every partition as it was recorded, write by write."""
    tables = interpreter.replay(rows_of(case["before"]), case["scenario"]["events"])
    states = list(named("partition_states", tables["partition_states"]))
    writes = list(named("metadata_writes", tables["metadata_writes"]))
    outcomes = _outcomes(states)
    disturbed = case["noise"].get("remarks", [])
    if disturbed:
        return Judged(case, DISTURBED, disturbed, outcomes)
    found = [*_different_ends(case, states, _records(writes)), *_different_writes(case, writes)]
    return Judged(case, DIFFERS if found else PREDICTED, found, outcomes)


def _outcomes(states: list[Document]) -> str:
    counts = Counter(row["outcome"] for row in states if row["outcome"] != UNCHANGED)
    return ", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items()))


def _different_ends(case: Document, states: list[Document], written: Records) -> Iterator[str]:
    """Assignments as the replay ends; records as it wrote them, or as they were before."""
    before = View(case["before"]).partitions
    predicted = {}
    for row in states:
        if row["replicas"] is not None:
            name = f"{row['topic']}-{row['partition']}"
            old = before.get(name, {}).get("state")
            last = written[name][-1] if name in written else old
            predicted[name] = _fields(row, last)
    recorded = {
        name: _fields(partition, partition["state"])
        for name, partition in case["after"]["partitions"].items()
    }
    for name in sorted(predicted.keys() | recorded.keys(), key=named_partition):
        ours, theirs = predicted.get(name), recorded.get(name)
        if ours is None or theirs is None:
            yield f"{name} is {'recorded' if ours is None else 'predicted'} only"
            continue
        for field in (*_ASSIGNMENT, *_RECORD):
            if ours[field] != theirs[field]:
                yield f"{name} {field}: predicted {ours[field]}, recorded {theirs[field]}"


def _different_writes(case: Document, writes: list[Document]) -> Iterator[str]:
    """Each partition's records one after the other, also those that were overwritten."""
    predicted, recorded = _records(writes), _records(case["writes"])
    for name in sorted(predicted.keys() | recorded.keys(), key=named_partition):
        ours, theirs = predicted.get(name, []), recorded.get(name, [])
        if ours != theirs:
            yield f"{name} writes: predicted {_short(ours)}, recorded {_short(theirs)}"


def _records(writes: list[Document]) -> Records:
    found: Records = {}
    for write in writes:
        if write["kind"] == "state":
            name = f"{write['topic']}-{write['partition']}"
            found.setdefault(name, []).append({key: _plain(write[key]) for key in _RECORD})
    return found


def _fields(assignment: Mapping[str, Any], record: Mapping[str, Any] | None) -> Document:
    lists = {key: _plain(assignment[key]) for key in _ASSIGNMENT}
    return lists | {key: _plain(record[key]) if record else None for key in _RECORD}


def _plain(value: Any) -> Any:  # noqa: ANN401 - a number or ids
    return list(value) if isinstance(value, tuple) else value


def _short(records: list[Document]) -> list[tuple[Any, ...]]:
    return [tuple(record.values()) for record in records]
