"""What ``kcat -L`` prints, as text and as JSON (``-J``).

It knows the live brokers, which describe does not, and no settings. The controller it names is a
random broker on KRaft, and the text does not say which mode it saw, so it is not believed. Plain
Python: this runs on executors.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Final

from understudy.errors import BadInputError
from understudy.sources.document import Problems, integer, is_object, objects, topic_name
from understudy.sources.text_snapshot import (
    NO_LEADER,
    BrokerText,
    ClusterText,
    PartitionText,
    id_list,
)

FORM: Final = "kcat"
_HEAD: Final = re.compile(r"Metadata for (?P<what>.+) \(from broker -?\d+: .*\):", re.ASCII)
_BROKER: Final = re.compile(
    r"\s+broker (?P<id>\d+) at (?P<endpoint>\S+?)(?: \(controller\))?", re.ASCII
)
_COUNT: Final = re.compile(r"\s+(?P<count>\d+) (?P<what>brokers|topics):", re.ASCII)
_TOPIC: Final = re.compile(
    r'\s+topic "(?P<topic>[^"]+)" with (?P<count>\d+) partitions:(?P<error>.*)', re.ASCII
)
_PARTITION: Final = re.compile(
    r"\s+partition (?P<partition>\d+), leader (?P<leader>-?\d+), replicas: (?P<replicas>[\d,]*),"
    r" isrs: (?P<isr>(?:\d+(?:,\d+)*)?)(?:, (?P<error>.*))?",
    re.ASCII,
)
_ALL_TOPICS: Final = "all topics"
_INCOMPLETE_ASSIGNMENT: Final = "Replica not available"


def recognise(head: str) -> bool:
    """Whether a text begins as kcat's does."""
    first = head.lstrip()
    return bool(_HEAD.match(first)) or first.startswith('{"originating_broker"')


def read(text: str) -> ClusterText:
    """The brokers, topics and partitions of one text, or of its JSON."""
    if text.lstrip().startswith("{"):
        return _read_json(text)
    return _read_text(text.splitlines())


def _read_text(lines: Sequence[str]) -> ClusterText:
    brokers: dict[int, BrokerText] = {}
    said = ClusterText(FORM, brokers=brokers)
    counts: dict[str, int] = {}
    announced: dict[str, int] = {}
    problems: list[str] = []
    topic = ""
    for number, line in enumerate(lines, start=1):
        if found := _PARTITION.fullmatch(line):
            _add(said, topic, int(found["partition"]), _partition(found), found["error"])
        elif found := _TOPIC.fullmatch(line):
            topic = found["topic"]
            counts[topic] = int(found["count"])
            said.topic(topic)
            _note_topic_error(said, topic, found["error"])
        elif found := _BROKER.fullmatch(line):
            brokers[int(found["id"])] = BrokerText(endpoint=found["endpoint"])
        elif found := _COUNT.fullmatch(line):
            announced[found["what"]] = int(found["count"])
        elif not (line.strip() == "" or _HEAD.match(line)):
            problems.append(f"line {number}: no line of kcat -L, or cut short")
    head = _HEAD.match(lines[0]) if lines else None
    if head is None or head["what"] != _ALL_TOPICS:
        said.lacking.append("only one topic was asked for")
    if announced != {"brokers": len(brokers), "topics": len(said.topics)}:
        problems.append("the text is cut short: fewer brokers or topics than it announces")
    problems += [
        f"topic {name} has {count} partitions, {len(said.topics[name].partitions)} are listed"
        for name, count in counts.items()
        if len(said.topics[name].partitions) != count
    ]
    return _checked(said, problems)


def _partition(found: re.Match[str]) -> PartitionText:
    return _judged(int(found["leader"]), id_list(found["replicas"]), id_list(found["isr"]))


def _judged(leader: int, replicas: list[int], isr: list[int]) -> PartitionText:
    has_state = True if leader != NO_LEADER or isr else None
    return PartitionText(replicas, leader, isr if has_state else None, has_state=has_state)


def _add(
    said: ClusterText, topic: str, number: int, partition: PartitionText, error: str | None
) -> None:
    said.topic(topic).partitions[number] = partition
    if error and _INCOMPLETE_ASSIGNMENT in error:
        said.lacks("an old broker left dead brokers out of some assignments")
    if partition.has_state is None:
        said.lacks("some partitions have no leader and no ISR, perhaps never had")


def _note_topic_error(said: ClusterText, topic: str, error: str | None) -> None:
    if error and error.strip():
        said.lacks(f"topic {topic}: {error.strip()}")


def _checked(said: ClusterText, problems: list[str]) -> ClusterText:
    for name, topic in said.topics.items():
        for number, partition in topic.partitions.items():
            if not partition.replicas or len(set(partition.replicas)) < len(partition.replicas):
                problems.append(f"partition {name}-{number} has no replica, or one twice")
    if problems:
        raise BadInputError("the text is not what kcat -L prints", problems)
    said.note_gaps()
    return said


def _read_json(text: str) -> ClusterText:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise BadInputError("the text is no whole JSON object") from None
    said = ClusterText(FORM, brokers={})
    to = Problems()
    if not is_object(found, (), to):
        raise BadInputError("the JSON is not what kcat -L -J prints", to.all())
    query = found.get("query")
    if not isinstance(query, dict) or query.get("topic") != "*":
        said.lacking.append("only one topic was asked for")
    said.brokers = {
        integer(broker.get("id"), ("brokers", place, "id"), to): BrokerText(
            endpoint=broker["name"] if isinstance(broker.get("name"), str) else None
        )
        for place, broker in enumerate(objects(found, "brokers", (), to))
        if is_object(broker, ("brokers", place), to)
    }
    for place, topic in enumerate(objects(found, "topics", (), to)):
        if is_object(topic, ("topics", place), to):
            _read_json_topic(said, topic, place, to)
    if to.count:
        raise BadInputError("the JSON is not what kcat -L -J prints", to.all())
    return _checked(said, [])


def _read_json_topic(said: ClusterText, topic: dict[str, Any], place: int, to: Problems) -> None:
    where = ("topics", place)
    name = topic_name(topic.get("topic"), (*where, "topic"), to)
    if name is None:
        return
    if name in said.topics:
        to.add((*where, "topic"), f"topic {name} stands there twice")
    said.topic(name)
    _note_topic_error(said, name, str(topic.get("error", "")))
    for at, found in enumerate(objects(topic, "partitions", where, to)):
        here = (*where, "partitions", at)
        if is_object(found, here, to):
            number = integer(found.get("partition"), (*here, "partition"), to)
            leader = integer(found.get("leader"), (*here, "leader"), to, low=NO_LEADER)
            replicas, isr = (
                [
                    integer(each.get("id"), (*here, key, nth, "id"), to)
                    for nth, each in enumerate(objects(found, key, here, to))
                    if is_object(each, (*here, key, nth), to)
                ]
                for key in ("replicas", "isrs")
            )
            error = str(found.get("error", ""))
            _add(said, name, number, _judged(leader, replicas, isr), error)
