"""What the texts of Kafka's tools say of a cluster at one instant, put together into a snapshot.

One text names the partitions (describe, kcat, a reassignment); others beside it can add the live
brokers, settings, log directories and the controller. What none of them says stays null, and
``complete`` is true only where all that a broker failure is judged by is there: every partition
with its replicas, leader and ISR, the live brokers and the settings. Plain Python: runs on
executors.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from understudy.errors import BadInputError
from understudy.sources.content import Content, Parsed, Row, canonical
from understudy.sources.document import config_refusal

NO_LEADER: Final = -1


@dataclass
class PartitionText:
    """One partition as a text has it; null is what the text does not say."""

    replicas: list[int]
    leader: int | None = None
    isr: list[int] | None = None
    adding: list[int] | None = None
    removing: list[int] | None = None
    elr: list[int] | None = None
    last_known_elr: list[int] | None = None
    has_state: bool | None = None
    leader_epoch: int | None = None
    offline: list[int] | None = None
    """Live brokers whose log directory of this replica is offline."""


@dataclass
class TopicText:
    topic_id: str | None = None
    queued_for_deletion: bool | None = None
    configs: dict[str, str] = field(default_factory=dict)
    partitions: dict[int, PartitionText] = field(default_factory=dict)


@dataclass
class BrokerText:
    rack: str | None = None
    endpoint: str | None = None
    fenced: bool | None = None
    alive: bool | None = True


@dataclass
class ClusterText:
    """All that one text says."""

    form: str
    mode: str | None = None
    topics: dict[str, TopicText] = field(default_factory=dict)
    brokers: dict[int, BrokerText] | None = None
    """The live ones (and fenced ones, marked); null: the text does not list brokers."""
    says_configs: bool = False
    taken_at: int | None = None
    """Microseconds since 1970."""
    lacking: list[str] = field(default_factory=list)
    """Why this is not the whole cluster, in words."""

    def topic(self, name: str) -> TopicText:
        return self.topics.setdefault(name, TopicText())

    def lacks(self, what: str) -> None:
        if what not in self.lacking:
            self.lacking.append(what)

    def note_gaps(self) -> None:
        """Brokers of ZooKeeper mode list no partition that never had a leader."""
        if any(
            max(topic.partitions) >= len(topic.partitions)
            for topic in self.topics.values()
            if topic.partitions
        ):
            self.lacks("some partitions are not listed, as those that never had a leader")


@dataclass
class Beside:
    """What the other texts of the same instant add."""

    cluster: str | None = None
    mode: str | None = None
    metadata_version: str | None = None
    elr_enabled: bool | None = None
    controller: tuple[int, int | None] | None = None
    brokers: dict[int, BrokerText] | None = None
    configs: list[Row] | None = None
    """Rows of scope, name, key and value."""
    reassignments: Mapping[tuple[str, int], tuple[list[int], list[int]]] | None = None
    """Adding and removing replicas of every partition that is being reassigned."""
    directories: Mapping[int, frozenset[str] | None] | None = None
    """By broker: the replicas it still has, where a directory of it failed; else null."""
    digests: list[str] = field(default_factory=list)

    def add(self, other: Beside) -> None:
        """Take what *other* says; what was said first stays."""
        self.cluster = self.cluster or other.cluster
        self.mode = self.mode or other.mode
        self.metadata_version = self.metadata_version or other.metadata_version
        if self.elr_enabled is None:
            self.elr_enabled = other.elr_enabled
        self.controller = self.controller or other.controller
        if other.brokers is not None:
            self.brokers = {**other.brokers, **(self.brokers or {})}
        if other.configs is not None:
            self.configs = list(dict.fromkeys([*(self.configs or []), *other.configs]))
        if other.reassignments is not None:
            self.reassignments = {**other.reassignments, **(self.reassignments or {})}
        if other.directories is not None:
            self.directories = {**other.directories, **(self.directories or {})}
        self.digests += other.digests


def snapshot(
    said: ClusterText,
    beside: Beside,
    cluster: str | None,
    digest: str,
    *,
    release: str | None = None,
    metadata_version: str | None = None,
) -> Parsed:
    """The snapshot of one text and what stands beside it; *digest* is of the text's bytes.

    No text says the *release*; *metadata_version* counts where none beside it says one.
    """
    name = cluster or beside.cluster
    if name is None:
        raise BadInputError("this form does not name its cluster: say --cluster NAME")
    whole = hashlib.sha256("\n".join([digest, *sorted(beside.digests)]).encode()).hexdigest()
    return put_together(
        (name, f"{said.form}-{whole[:12]}"),
        said,
        beside,
        position="line 1",
        release=release,
        metadata_version=metadata_version,
    )


def put_together(
    key: tuple[str, str],
    said: ClusterText,
    beside: Beside,
    *,
    position: str,
    release: str | None,
    metadata_version: str | None,
) -> Parsed:
    """The snapshot called *key*: what was said, what stands beside it, and what is lacking."""
    lacking = list(said.lacking)
    brokers = said.brokers if said.brokers is not None else beside.brokers
    if brokers is None:
        brokers = _inferred(said)
        if said.form != "reassignment":
            lacking.append("brokers are inferred from leaders and ISRs")
    if not said.says_configs and beside.configs is None:
        lacking.append("settings are not known")
    lacking += _unlisted(said, beside)
    content = _content(
        key,
        said,
        beside,
        brokers,
        versions=(release, beside.metadata_version or metadata_version),
        complete=not lacking,
    )
    check_configs(content)
    return Parsed("; ".join([position, *lacking]), *key, (), content)


def check_configs(content: Content) -> None:
    """Refuse settings that Kafka would not parse and the controller's rules depend on."""
    problems = [
        f"{key} of {' '.join(filter(None, (scope, owner)))}: {refusal}"
        for scope, owner, key, value in content.configs
        if (refusal := config_refusal(key, value))
    ]
    if problems:
        raise BadInputError("settings Kafka cannot read", problems)


def _unlisted(said: ClusterText, beside: Beside) -> Iterator[str]:
    """Topics only the texts beside it know: not asked for, or being deleted."""
    known = {row[1] for row in beside.configs or () if row[0] == "topic"}
    known |= {topic for topic, _ in beside.reassignments or ()}
    if not known <= set(said.topics):
        yield f"topic {min(known - set(said.topics))} is not listed"


def _inferred(said: ClusterText) -> dict[int, BrokerText]:
    """A broker that leads, or is in sync with a leader, lived a moment ago; others may or not."""
    alive: set[int] = set()
    named: set[int] = set()
    for topic in said.topics.values():
        for partition in topic.partitions.values():
            named.update(partition.replicas, partition.isr or ())
            if partition.leader is not None and partition.leader != NO_LEADER:
                alive.update((partition.leader, *(partition.isr or ())))
    return {each: BrokerText(alive=True if each in alive else None) for each in named | alive}


def _content(
    key: tuple[str, str],
    said: ClusterText,
    beside: Beside,
    brokers: dict[int, BrokerText],
    *,
    versions: tuple[str | None, str | None],
    complete: bool,
) -> Content:
    mode = said.mode or beside.mode
    release, metadata_version = versions
    return canonical(
        key,
        taken_at=said.taken_at,
        mode=mode,
        source_form=said.form,
        release=release,
        metadata_version=metadata_version,
        elr_enabled=beside.elr_enabled,
        controller=beside.controller or (None, None),
        complete=complete,
        brokers=[
            (
                broker_id,
                broker.alive if broker.fenced is None else not broker.fenced,
                None,
                broker.fenced,
                None,
                broker.rack,
                broker.endpoint,
                None,
            )
            for broker_id, broker in brokers.items()
        ],
        topics=[
            (name, topic.topic_id, topic.queued_for_deletion) for name, topic in said.topics.items()
        ],
        partitions=[
            _partition_row(name, number, partition, beside)
            for name, topic in said.topics.items()
            for number, partition in topic.partitions.items()
        ],
        configs=list(_configs(said, beside)),
    )


def _partition_row(topic: str, number: int, said: PartitionText, beside: Beside) -> Row:
    adding, removing = said.adding, said.removing
    if adding is None and beside.reassignments is not None:
        adding, removing = beside.reassignments.get((topic, number), ([], []))
    return (
        topic,
        number,
        said.replicas,
        adding,
        removing,
        _offline(f"{topic}-{number}", said.replicas, beside)
        if said.offline is None
        else said.offline,
        said.has_state,
        said.leader,
        said.leader_epoch,
        said.isr,
        None,
        None,
        None,
        said.elr,
        said.last_known_elr,
        None,
    )


def _offline(partition: str, replicas: Iterable[int], beside: Beside) -> list[int] | None:
    """A failed directory lists no replicas: what its broker should have and lists nowhere."""
    if beside.directories is None:
        return None
    offline = []
    for replica in replicas:
        left = beside.directories.get(replica)
        if left is not None and partition not in left:
            offline.append(replica)
    return offline


def _configs(said: ClusterText, beside: Beside) -> Iterator[Row]:
    """The settings a tool was asked for by name win over those describe prints in passing."""
    rows = beside.configs or []
    own = {(row[1], row[2]) for row in rows if row[0] == "topic"}
    yield from (row for row in rows if row[0] != "topic" or row[1] in said.topics)
    for name, topic in said.topics.items():
        for key, value in topic.configs.items():
            if (name, key) not in own:
                yield "topic", name, key, value


def id_list(text: str) -> list[int]:
    """``1,2,3`` as numbers."""
    return [int(each) for each in text.split(",") if each]
