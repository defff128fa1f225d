"""Assignments as ``kafka-reassign-partitions`` reads and prints them.

A plan file, or the output of ``--generate`` and ``--execute`` (of which the *current* assignment is
read), gives replicas in order and nothing else. The output of ``--list`` gives what is being
added and removed, and stands beside another text. Plain Python: this runs on executors.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, Final

from understudy.errors import BadInputError
from understudy.sources.document import Problems, ids, integer, is_object, objects, topic_name
from understudy.sources.text_snapshot import Beside, ClusterText, PartitionText, id_list

FORM: Final = "reassignment"
_CURRENT: Final = "Current partition replica assignment"
_NONE_LISTED: Final = "No partition reassignments found."
_LIST_HEAD: Final = "Current partition reassignments:"
_PLAN: Final = re.compile(
    r'\{\s*(?:"version"\s*:\s*\d+\s*,\s*)?"partitions"\s*:\s*\[\s*\{[^{}]*"replicas"', re.ASCII
)
_LISTED: Final = re.compile(
    r"(?P<topic>\S+)-(?P<partition>\d+): replicas: (?P<replicas>[\d,]+)\."
    r"(?: adding: (?P<adding>[\d,]+)\.)?(?: removing: (?P<removing>[\d,]+)\.)?",
    re.ASCII,
)


def recognise(head: str) -> bool:
    """Whether a text is a plan, or begins as the tool's output does."""
    first = head.lstrip()
    return first.startswith(_CURRENT) or bool(_PLAN.match(first))


def recognise_list(head: str) -> bool:
    """Whether a text is the output of ``--list``."""
    return head.lstrip().startswith((_NONE_LISTED, _LIST_HEAD))


def read(text: str) -> ClusterText:
    """The assignment in one text."""
    said = ClusterText(FORM)
    to = Problems()
    found = _json(text)
    if not is_object(found, (), to):
        raise BadInputError("the JSON is no partition assignment", to.all())
    for place, partition in enumerate(objects(found, "partitions", (), to)):
        if is_object(partition, ("partitions", place), to):
            _read_partition(said, partition, place, to)
    if not to.count and not said.topics:
        to.add(("partitions",), "there is no partition")
    if to.count:
        raise BadInputError("the JSON is no partition assignment", to.all())
    said.lacking.append("an assignment says nothing of leaders, ISRs and brokers")
    return said


def _json(text: str) -> Any:  # noqa: ANN401 - whatever stands there
    begin = text.find(_CURRENT)
    try:
        if begin < 0:
            return json.loads(text)
        at = text.find("{", begin)
        return json.JSONDecoder().raw_decode(text, max(at, 0))[0]
    except (ValueError, RecursionError) as error:
        line = f"line {error.lineno}: " if isinstance(error, json.JSONDecodeError) else ""
        raise BadInputError(f"{line}the text is no whole JSON object") from None


def _read_partition(said: ClusterText, found: dict[str, Any], place: int, to: Problems) -> None:
    where = ("partitions", place)
    topic = topic_name(found.get("topic"), (*where, "topic"), to)
    number = integer(found.get("partition"), (*where, "partition"), to)
    replicas = ids(found.get("replicas"), (*where, "replicas"), to, distinct=True)
    if not replicas:
        to.add((*where, "replicas"), "a partition has at least one replica")
    if topic is None:
        return
    if number in said.topic(topic).partitions:
        to.add(where, f"partition {topic}-{number} stands there twice")
    said.topic(topic).partitions[number] = PartitionText(list(replicas))


def read_list(lines: Iterable[str]) -> Beside:
    """The reassignments under way."""
    found: dict[tuple[str, int], tuple[list[int], list[int]]] = {}
    problems = []
    for number, line in enumerate(lines, start=1):
        listed = _LISTED.fullmatch(line.strip())
        if listed:
            key = listed["topic"], int(listed["partition"])
            found[key] = id_list(listed["adding"] or ""), id_list(listed["removing"] or "")
        elif line.strip() and line.strip() not in (_NONE_LISTED, _LIST_HEAD):
            problems.append(f"line {number}: no line of kafka-reassign-partitions --list")
    if problems:
        raise BadInputError("the text is no list of reassignments", problems)
    return Beside(reassignments=found)
