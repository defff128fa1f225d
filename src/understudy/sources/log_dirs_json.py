"""What ``kafka-log-dirs --describe`` prints: two lines for people, then one of JSON.

A directory that failed carries an error and lists none of its replicas. Plain Python: this runs on
executors.
"""

from __future__ import annotations

import json
from typing import Any, Final

from understudy.errors import BadInputError
from understudy.sources.document import Problems, integer, is_object, objects, text
from understudy.sources.text_snapshot import Beside

_FIRST: Final = "Querying brokers for log directories information"


def recognise(head: str) -> bool:
    """Whether a text begins as the tool's does, or is its JSON."""
    first = head.lstrip()
    return first.startswith(_FIRST) or (first.startswith("{") and '"logDirs"' in first)


def read(printed: str) -> Beside:
    """By broker: the replicas left where a directory failed."""
    at = printed.find("{")
    try:
        found = json.loads(printed[at:]) if at >= 0 else None
    except (ValueError, RecursionError):
        found = None
    to = Problems()
    if found is None or not is_object(found, (), to):
        raise BadInputError("the text holds no whole JSON object of kafka-log-dirs")
    directories: dict[int, frozenset[str] | None] = {}
    for place, broker in enumerate(objects(found, "brokers", (), to)):
        where = ("brokers", place)
        if is_object(broker, where, to):
            broker_id = integer(broker.get("broker"), (*where, "broker"), to)
            directories[broker_id] = _left(broker, place, to)
    if to.count:
        raise BadInputError("the JSON is not what kafka-log-dirs prints", to.all())
    return Beside(directories=directories)


def _left(broker: dict[str, Any], place: int, to: Problems) -> frozenset[str] | None:
    failed = False
    left: set[str] = set()
    for nth, directory in enumerate(objects(broker, "logDirs", ("brokers", place), to)):
        where = ("brokers", place, "logDirs", nth)
        if not is_object(directory, where, to):
            continue
        failed |= directory.get("error") is not None
        for at, replica in enumerate(objects(directory, "partitions", where, to)):
            here = (*where, "partitions", at)
            if is_object(replica, here, to) and not replica.get("isFuture"):
                left.add(text(replica.get("partition"), (*here, "partition"), to) or "")
    return frozenset(left) if failed else None
