"""What ``kafka-topics --describe`` prints, from 0.9 to 4.x, through ZooKeeper or a broker.

Fields are found by their labels, for pasted text has lost its tabs. A text without topic lines was
filtered (``--under-replicated-partitions`` and its kin) and is never the whole cluster. Plain
Python: this runs on executors.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from understudy.errors import BadInputError
from understudy.sources.text_snapshot import (
    NO_LEADER,
    ClusterText,
    PartitionText,
    TopicText,
    id_list,
)

FORM: Final = "describe"
_TOPIC: Final = re.compile(
    r"\s*Topic:\s*(?P<topic>\S+)\s+(?:TopicId:\s*(?P<id>\S+)\s+)?PartitionCount:\s*(?P<count>\d+)"
    r"\s+ReplicationFactor:\s*-?\d+\s+Configs:(?P<configs>.*?)"
    r"(?P<deleted>\s+MarkedForDeletion:\s*true)?\s*",
    re.ASCII,
)
_PARTITION: Final = re.compile(
    r"\s*Topic:\s*(?P<topic>\S+)\s+Partition:\s*(?P<partition>\d+)"
    r"\s+Leader:\s*(?P<leader>none|-?\d+)\s+Replicas:\s*(?P<replicas>[\d,]+)"
    r"\s+Isr:[ \t]*(?P<isr>[\d,]*)"
    r"(?:\s+Adding Replicas:[ \t]*(?P<adding>[\d,]*)"
    r"\s+Removing Replicas:[ \t]*(?P<removing>[\d,]*))?"
    r"(?:\s+Elr:[ \t]*(?P<elr>N/A|[\d,]*)\s+LastKnownElr:[ \t]*(?P<known>N/A|[\d,-]*))?"
    r"(?P<deleted>\s+MarkedForDeletion:\s*true)?\s*",
    re.ASCII,
)
_LABEL: Final = re.compile(r"\s*Topic:\s*\S+\s+(?:TopicId|PartitionCount|Partition):", re.ASCII)
# A value may hold commas; a comma before the name of a setting ends it.
_NEXT_CONFIG: Final = re.compile(r",(?=(?:[a-z0-9]+(?:\.[a-z0-9]+)+|preallocate)=)", re.ASCII)
_FAILED: Final = "Error while executing topic command"


def recognise(head: str) -> bool:
    """Whether a text has a line of describe's."""
    return any(_LABEL.match(line) for line in head.splitlines())


def read(lines: Iterable[str]) -> ClusterText:
    """The topics and partitions of one text."""
    said = ClusterText(FORM)
    counts: dict[str, tuple[int, int]] = {}
    problems: list[str] = []
    failed = False
    for number, line in enumerate(lines, start=1):
        failed |= line.startswith(_FAILED)
        if not line.lstrip().startswith("Topic:"):
            continue
        topic, partition = _TOPIC.fullmatch(line), _PARTITION.fullmatch(line)
        if topic:
            if topic["topic"] in counts:
                problems.append(f"line {number}: topic {topic['topic']} is described twice")
            counts[topic["topic"]] = number, int(topic["count"])
            _read_topic(said.topic(topic["topic"]), topic)
        elif partition:
            problems += _read_partition(said, partition, number)
        else:
            problems.append(f"line {number}: no line of kafka-topics --describe, or cut short")
    problems += _miscounted(said, counts)
    if not problems and not any(topic.partitions for topic in said.topics.values()):
        problems.append("there is no partition line (--topics-with-overrides prints none)")
    if problems:
        raise BadInputError("the text is not what kafka-topics --describe prints", problems)
    _judge(said, filtered=not counts, failed=failed)
    return said


def _read_topic(topic: TopicText, found: re.Match[str]) -> None:
    topic.topic_id = found["id"]
    if found["deleted"]:
        topic.queued_for_deletion = True
    topic.configs.update(split_configs(found["configs"]))


def split_configs(text: str) -> Iterator[tuple[str, str]]:
    """The settings of ``k=v,k=v``, of which a value may hold commas itself."""
    for setting in _NEXT_CONFIG.split(text.strip()):
        key, equals, value = setting.partition("=")
        if equals:
            yield key, value


def _read_partition(said: ClusterText, found: re.Match[str], number: int) -> Iterator[str]:
    topic = said.topic(found["topic"])
    place = int(found["partition"])
    if place in topic.partitions:
        yield f"line {number}: partition {found['topic']}-{place} is described twice"
    replicas = id_list(found["replicas"])
    if len(set(replicas)) != len(replicas):
        yield f"line {number}: a replica of {found['topic']}-{place} stands there twice"
    if found["deleted"]:
        topic.queued_for_deletion = True
    leader = NO_LEADER if found["leader"] == "none" else int(found["leader"])
    isr = id_list(found["isr"])
    elr, known = (_unless_unknown(found[name]) for name in ("elr", "known"))
    has_state = _has_state(found["leader"], isr, elr)
    topic.partitions[place] = PartitionText(
        replicas,
        leader,
        isr if has_state else None,
        adding=None if found["adding"] is None else id_list(found["adding"]),
        removing=None if found["removing"] is None else id_list(found["removing"]),
        elr=elr,
        last_known_elr=known,
        has_state=has_state,
    )


def _unless_unknown(ids: str | None) -> list[int] | None:
    return None if ids is None or ids == "N/A" else id_list(ids)


def _has_state(leader: str, isr: list[int], elr: list[int] | None) -> bool | None:
    """``none`` with an empty ISR is a partition never led, or one a 1.0 broker has no leader of."""
    return True if leader != "none" or isr or elr is not None else None


def _miscounted(said: ClusterText, counts: dict[str, tuple[int, int]]) -> Iterator[str]:
    for name, topic in said.topics.items():
        if not counts:
            return
        if name not in counts:
            yield f"the text has partitions of {name} without its topic line"
        elif counts[name][1] != len(topic.partitions) and topic.partitions:
            number, count = counts[name]
            yield (
                f"line {number}: topic {name} has {count} partitions, "
                f"{len(topic.partitions)} are listed"
            )


def _judge(said: ClusterText, *, filtered: bool, failed: bool) -> None:
    partitions = [
        partition for topic in said.topics.values() for partition in topic.partitions.values()
    ]
    if any(topic.queued_for_deletion for topic in said.topics.values()):
        said.mode = "zk"
    elif any(partition.elr is not None for partition in partitions):
        said.mode = "kraft"  # in ZooKeeper mode the columns say N/A
    if said.mode == "kraft" or any(partition.adding is not None for partition in partitions):
        for partition in partitions:  # a release that prints these columns, where there are any
            partition.adding, partition.removing = partition.adding or [], partition.removing or []
    said.says_configs = not filtered
    if filtered:
        said.lacking.append("the list is filtered, other partitions exist")
    if failed:
        said.lacking.append("the tool failed half-way")
    if any(partition.has_state is None for partition in partitions):
        said.lacking.append("some partitions have no leader and no ISR, perhaps never had")
    if any(
        max(topic.partitions) >= len(topic.partitions)
        for topic in said.topics.values()
        if topic.partitions
    ):
        said.lacking.append("some partitions are not listed, as those that never had a leader")
