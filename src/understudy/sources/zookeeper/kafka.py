"""What Kafka's znodes say, as canonical snapshots: every ZooKeeper-mode release from 0.9 to 3.9.

Existence of ``/brokers/ids/<N>`` is being alive; its czxid is the broker epoch; the version of a
``state`` znode is the partition epoch. What only the controller's memory or a broker's properties
file holds (brokers in controlled shutdown, offline log directories, static settings, the release)
stays unknown: null.

``complete`` says that nothing is missing which a newly elected controller would read from
ZooKeeper, and that all of it is from one instant.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from understudy.sources.content import Parsed, Row, canonical
from understudy.sources.document import (
    NO_LEADER,
    Problems,
    Where,
    config_refusal,
    ids,
    integer,
    is_object,
    load_json,
    name,
    newest_metadata_version,
    shown,
    text,
    texts,
    topic_name,
)
from understudy.sources.zookeeper.tree import Node, Nodes, stat_of

_IDS: Final = b"/brokers/ids"
_TOPICS: Final = b"/brokers/topics"
_TOPIC_CONFIGS: Final = b"/config/topics"
_BROKER_CONFIGS: Final = b"/config/brokers"
_DELETIONS: Final = b"/admin/delete_topics"
_REASSIGNMENTS: Final = b"/admin/reassign_partitions"
_PREFERRED_ELECTIONS: Final = b"/admin/preferred_replica_election"
_CONTROLLER: Final = b"/controller"
_CONTROLLER_EPOCH: Final = b"/controller_epoch"
_CLUSTER_ID: Final = b"/cluster/id"
_LISTINGS: Final = (_IDS, _TOPICS, _TOPIC_CONFIGS, _DELETIONS)
"""Every broker creates these when it starts, so a tree without one of them is not whole."""

TOPICS: Final = _TOPICS
LISTED: Final = (*_LISTINGS, _BROKER_CONFIGS)
"""The znodes whose children :class:`Reader` looks at."""
SINGLE: Final = (
    _CONTROLLER,
    _CONTROLLER_EPOCH,
    _CLUSTER_ID,
    _REASSIGNMENTS,
    _PREFERRED_ELECTIONS,
)
"""The other znodes it looks at, but for the states of partitions."""

_PARTITIONS: Final = b"/partitions/"
_STATE: Final = b"/state"
_DEFAULT: Final = b"<default>"
_NUMBER: Final = re.compile(r"0|[1-9]\d{0,9}", re.ASCII)

# Settings of Kafka's type PASSWORD; brokers keep them encrypted, and a report needs none of them.
_SECRETS: Final = re.compile(
    r"(?:password|secret|sasl\.jaas\.config|ssl\.keystore\.key|ssl\.keystore\.certificate\.chain"
    r"|ssl\.truststore\.certificates)$"
)
_HIDDEN: Final = "[hidden]"

_RELEVANT: Final = re.compile(
    rb"/(?:brokers/(?:ids|topics)|config/(?:topics|brokers)|admin/delete_topics)(?:/|$)"
    rb"|/admin/(?:reassign_partitions|preferred_replica_election)$"
    rb"|/controller(?:_epoch)?$|/cluster/id$"
)

_MAX_KEPT: Final = 500_000


@dataclass(frozen=True, slots=True)
class Naming:
    """What ZooKeeper does not say of a cluster, as far as somebody else does."""

    cluster: str | None = None
    release: str | None = None
    metadata_version: str | None = None


@dataclass(frozen=True, slots=True)
class Instant:
    """Which state of a tree this is, and where it was read."""

    snapshot_id: str
    taken_at: int | None
    """Microseconds since 1970."""
    source_form: str
    position: str
    exact: bool
    """Whether the tree is that of one instant; a fuzzy snapshot alone may not be."""


def may_change_kafka(path: bytes) -> bool:
    """Whether a change of this znode can change what :class:`Reader` finds."""
    return _RELEVANT.search(path) is not None


def roots(nodes: Nodes) -> list[bytes]:
    """The paths below which a Kafka cluster keeps its znodes: mostly one, and empty."""
    size = len(_TOPICS)
    found = [path[:-size] for path in nodes if path.endswith(_TOPICS)]
    return sorted(root for root in found if _is_cluster(nodes, root))


def _is_cluster(nodes: Nodes, root: bytes) -> bool:
    """A group of consumers may be called brokers, so one listing alone proves nothing."""
    return root + _IDS in nodes or root + _CONTROLLER_EPOCH in nodes or not root


class Reader:
    """Reads trees; with *keep*, remembers what it parsed for the next tree, little changed."""

    def __init__(self, naming: Naming, *, keep: bool = False) -> None:
        self._naming = naming
        self._keep = keep
        self._parsed: dict[bytes, Any] = {}

    def read(self, nodes: Nodes, instant: Instant) -> Iterator[Parsed]:
        """One snapshot for each cluster in the tree."""
        found = roots(nodes)
        if not found:
            problem = "there is no Kafka cluster in this tree: it has no znode /brokers/topics"
            yield Parsed(instant.position, self._naming.cluster, None, (problem,), None)
        for root in found:
            yield self._cluster(nodes, root, instant, alone=len(found) == 1)

    def _cluster(self, nodes: Nodes, root: bytes, instant: Instant, *, alone: bool) -> Parsed:
        to = Problems()
        below = root.decode("utf-8", "backslashreplace")
        position = f"{instant.position} below {below}" if root else instant.position
        znodes = _Znodes(nodes, root)
        cluster = self._cluster_name(znodes, below, to, alone=alone)
        topics, partitions, expressible = self._topics(znodes, to)
        brokers = _brokers(znodes, to)
        configs = _configs(znodes, to)
        controller_id, migrating = _controller(znodes, to)
        controller_epoch = _controller_epoch(znodes, to)
        if to.count or cluster is None:
            return Parsed(position, cluster, instant.snapshot_id, to.all(), None)
        content = canonical(
            (cluster, instant.snapshot_id),
            taken_at=instant.taken_at,
            mode="zk",
            source_form=instant.source_form,
            release=self._naming.release,
            metadata_version=self._metadata_version(),
            elr_enabled=None,
            controller=(controller_id, controller_epoch),
            complete=instant.exact
            and expressible
            and not migrating
            and znodes.are_whole
            and znodes.get(_PREFERRED_ELECTIONS) is None,
            brokers=brokers,
            topics=topics,
            partitions=partitions,
            configs=configs,
        )
        return Parsed(position, cluster, instant.snapshot_id, (), content)

    def _metadata_version(self) -> str | None:
        if self._naming.metadata_version is None and self._naming.release is not None:
            return newest_metadata_version(self._naming.release)
        return self._naming.metadata_version

    def _cluster_name(
        self, znodes: _Znodes, below: str, to: Problems, *, alone: bool
    ) -> str | None:
        if self._naming.cluster is not None:
            return self._naming.cluster if alone else self._naming.cluster + below
        node = znodes.get(_CLUSTER_ID)
        if node is None:
            to.add(
                (),
                "the tree does not name its cluster (Kafka has written /cluster/id since 0.10.1):"
                " give --cluster NAME",
            )
            return None
        where = znodes.where(_CLUSTER_ID)
        found = _object(node, where, to)
        return None if found is None else name(found.get("id"), (*where, "id"), to)

    def _topics(self, znodes: _Znodes, to: Problems) -> tuple[list[Row], list[Row], bool]:
        """Topics, partitions, and whether every reassignment asked for fits the rows.

        Until 2.3 only the znode of the request says what an assignment will lose, and what it has
        gained is written nowhere. A request that the controller has not begun, or one that also
        reorders an assignment already widened, fits no row.
        """
        topics: list[Row] = []
        partitions: list[Row] = []
        requested = _requested(znodes, to)
        expressible = True
        queued = {path for path, _ in znodes.below(_DELETIONS)}
        for encoded, node in znodes.topics.items():
            where = znodes.where(_TOPICS, encoded)
            topic = topic_name(encoded.decode("utf-8", "backslashreplace"), where, to)
            assignment = _object(node, where, to) or {}
            topic_id = assignment.get("topic_id")
            if topic_id is not None:
                topic_id = name(topic_id, (*where, "topic_id"), to)
            topics.append((topic, topic_id, encoded in queued))
            states = znodes.states.get(encoded, {})
            says_what_moves = "removing_replicas" in assignment
            for number, replicas, adding, removing in _assigned(assignment, where, to):
                state = self._state(states.get(b"%d" % number), where, number, to)
                target = requested.get((topic or "", number))
                if target is not None:
                    if not says_what_moves and set(target) <= set(replicas):
                        removing = [each for each in replicas if each not in target]  # noqa: PLW2901
                    fits = [each for each in replicas if each not in removing] == target
                    expressible = expressible and fits
                lists = (replicas, adding, removing, None)
                partitions.append((topic, number, *lists, *state, None, None, None))
        return topics, partitions, expressible

    def _state(self, node: Node | None, above: Where, number: int, to: Problems) -> Row:
        """has_state, leader, leader_epoch, isr, partition_epoch, controller_epoch, recovery."""
        if node is None or not node[0]:
            return _NEVER_LED
        found = self._parsed.get(node[0])
        if found is None:
            before = to.count
            where = (f"{above[0]}/partitions/{number}/state",)
            value = _object(node, where, to)
            if value is None:
                return _NEVER_LED
            found = (
                integer(value.get("leader"), (*where, "leader"), to, low=NO_LEADER),
                integer(value.get("leader_epoch"), (*where, "leader_epoch"), to),
                ids(value.get("isr"), (*where, "isr"), to, distinct=False),
                integer(value.get("controller_epoch"), (*where, "controller_epoch"), to),
                _recovery(value.get("leader_recovery_state"), where, to),
            )
            if self._keep and to.count == before:
                if len(self._parsed) >= _MAX_KEPT:
                    self._parsed.clear()
                self._parsed[node[0]] = found
        leader, leader_epoch, isr, controller_epoch, recovery = found
        stat = stat_of(node)
        version = None if stat is None else stat.version
        return True, leader, leader_epoch, isr, version, controller_epoch, recovery


_NEVER_LED: Final = (False, None, None, None, None, None, None)


class _Znodes:
    """The znodes of one cluster, sorted out once."""

    def __init__(self, nodes: Nodes, root: bytes) -> None:
        self._nodes = nodes
        self._root = root
        self.topics: dict[bytes, Node] = {}
        self.states: dict[bytes, dict[bytes, Node]] = {}
        self._below: dict[bytes, list[tuple[bytes, Node]]] = {}
        self._sort_out()

    def _sort_out(self) -> None:
        topics = self._root + _TOPICS + b"/"
        start = len(topics)
        others = {
            self._root + listing + b"/": self._below.setdefault(listing, [])
            for listing in (_IDS, _TOPIC_CONFIGS, _BROKER_CONFIGS, _DELETIONS)
        }
        for path, node in self._nodes.items():
            if path.startswith(topics):
                if path.endswith(_STATE):
                    topic, between, number = path[start : -len(_STATE)].partition(_PARTITIONS)
                    if between:
                        self.states.setdefault(topic, {})[number] = node
                        continue
                if b"/" not in path[start:]:
                    self.topics[path[start:]] = node
            else:
                above, slash, last = path.rpartition(b"/")
                listed = others.get(above + slash)
                if listed is not None:
                    listed.append((last, node))

    @property
    def are_whole(self) -> bool:
        """Whether every listing is there, and every znode with what ZooKeeper counts of it."""
        listings = [self._nodes.get(self._root + listing) for listing in _LISTINGS]
        return all(node is not None and node[1] for node in listings)

    def get(self, path: bytes) -> Node | None:
        return self._nodes.get(self._root + path)

    def below(self, listing: bytes) -> Sequence[tuple[bytes, Node]]:
        """The children of a znode by their last name."""
        return self._below[listing]

    def where(self, *path: bytes) -> Where:
        whole = self._root + b"/".join(path)
        return (whole.decode("utf-8", "backslashreplace"),)


def _object(node: Node, where: Where, to: Problems) -> dict[str, Any] | None:
    """The JSON object in a znode; an empty one says nothing."""
    data = node[0]
    if not data:
        return {}
    try:
        value = json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError):
        value, problem = load_json(data)
        if problem is not None:
            to.add(where, problem)
            return None
    return value if is_object(value, where, to) else None


def _number(written: str, where: Where, to: Problems) -> int | None:
    if not _NUMBER.fullmatch(written):
        to.add(where, f"expected a number, found {shown(written)}")
        return None
    return integer(int(written), where, to)


def _recovery(value: Any, where: Where, to: Problems) -> int:  # noqa: ANN401 - any JSON
    """Kafka's LeaderRecoveryState: written since 3.2, and only while a leader is recovering."""
    if value in (None, 0, 1) and type(value) is not bool:
        return value or 0
    to.add((*where, "leader_recovery_state"), f"expected 0 or 1, found {shown(value)}")
    return 0


def _assigned(assignment: dict[str, Any], where: Where, to: Problems) -> Iterator[tuple[Any, ...]]:
    """Partition, replicas, adding, removing: each list in its order."""
    lists = [
        _lists(assignment, key, where, to)
        for key in ("partitions", "adding_replicas", "removing_replicas")
    ]
    for written, replicas in lists[0].items():
        here = (*where, "partitions", written)
        number = _number(written, here, to)
        if not replicas:
            to.add(here, "a partition has at least one replica")
        if number is not None:
            yield number, replicas, *(each.get(written, []) for each in lists[1:])


def _lists(
    assignment: dict[str, Any], key: str, where: Where, to: Problems
) -> dict[str, list[int]]:
    found = assignment.get(key, {})
    here = (*where, key)
    if not is_object(found, here, to):
        return {}
    return {
        number: ids(listed, (*here, number), to, distinct=True) for number, listed in found.items()
    }


def _requested(znodes: _Znodes, to: Problems) -> Mapping[tuple[str, int], list[int]]:
    """The reassignments asked for through ZooKeeper that are not yet done."""
    node = znodes.get(_REASSIGNMENTS)
    where = znodes.where(_REASSIGNMENTS)
    found = _object(node, where, to) if node else None
    targets: dict[tuple[str, int], list[int]] = {}
    listed = (found or {}).get("partitions", [])
    if type(listed) is not list:
        to.add((*where, "partitions"), f"expected a list of objects, found {shown(listed)}")
        return targets
    for place, each in enumerate(listed):
        here = (*where, "partitions", place)
        if is_object(each, here, to):
            topic = text(each.get("topic"), (*here, "topic"), to)
            number = integer(each.get("partition"), (*here, "partition"), to)
            replicas = ids(each.get("replicas"), (*here, "replicas"), to, distinct=True)
            targets[topic or "", number] = replicas
    return targets


def _controller(znodes: _Znodes, to: Problems) -> tuple[int | None, bool]:
    """Who is the controller, and whether a KRaft quorum has taken over in a migration."""
    node = znodes.get(_CONTROLLER)
    where = znodes.where(_CONTROLLER)
    found = _object(node, where, to) if node else None
    if found is None:
        return None, False
    epoch = found.get("kraftControllerEpoch", -1)
    migrating = integer(epoch, (*where, "kraftControllerEpoch"), to, low=-1) >= 0
    return integer(found.get("brokerid"), (*where, "brokerid"), to), migrating


def _controller_epoch(znodes: _Znodes, to: Problems) -> int | None:
    """Plain digits; without the znode no controller was ever elected, if the tree is whole."""
    node = znodes.get(_CONTROLLER_EPOCH)
    if node is None:
        return 0 if znodes.are_whole else None
    written = (node[0] or b"").decode("utf-8", "backslashreplace")
    return _number(written, znodes.where(_CONTROLLER_EPOCH), to)


def _brokers(znodes: _Znodes, to: Problems) -> list[Row]:
    rows: list[Row] = []
    for encoded, node in znodes.below(_IDS):
        where = znodes.where(_IDS, encoded)
        broker_id = _number(encoded.decode("utf-8", "backslashreplace"), where, to)
        found = _object(node, where, to)
        if found is None or broker_id is None:
            continue
        if not found:
            to.add(where, "the registration of a broker is empty")
        rack = found.get("rack")
        stat = stat_of(node)
        rows.append(
            (
                broker_id,
                True,
                None,  # controlled shutdown: only the controller knows
                None,
                None if stat is None else stat.czxid,
                None if rack is None else text(rack, (*where, "rack"), to),
                _endpoints(found, where, to),
                None,
            )
        )
    return rows


def _endpoints(found: dict[str, Any], where: Where, to: Problems) -> str | None:
    """As ``advertised.listeners`` has them; Kafka 0.8 wrote only a host and a port."""
    if "endpoints" in found:
        return ",".join(texts(found["endpoints"], (*where, "endpoints"), to) or []) or None
    if found.get("host") is None:
        return None
    host = text(found["host"], (*where, "host"), to)
    return f"PLAINTEXT://{host}:{integer(found.get('port'), (*where, 'port'), to, low=-1)}"


def _configs(znodes: _Znodes, to: Problems) -> list[Row]:
    """Dynamic settings: of topics that exist, of brokers alive or not, and the default."""
    rows: list[Row] = []
    for encoded, node in znodes.below(_TOPIC_CONFIGS):
        if encoded in znodes.topics:
            where = znodes.where(_TOPIC_CONFIGS, encoded)
            rows += _settings(node, "topic", encoded.decode("utf-8", "replace"), where, to)
    for encoded, node in znodes.below(_BROKER_CONFIGS):
        where = znodes.where(_BROKER_CONFIGS, encoded)
        if encoded == _DEFAULT:
            rows += _settings(node, "cluster", None, where, to)
        else:
            number = _number(encoded.decode("utf-8", "backslashreplace"), where, to)
            rows += _settings(node, "broker", str(number), where, to)
    return rows


def _settings(
    node: Node, scope: str, owner: str | None, where: Where, to: Problems
) -> Iterator[Row]:
    found = _object(node, where, to)
    settings = (found or {}).get("config") or {}
    if not is_object(settings, (*where, "config"), to):
        return
    for key, value in settings.items():
        here = (*where, "config", key)
        if name(key, here, to) is None or text(value, here, to) is None:
            continue
        refusal = config_refusal(key, value)
        if refusal:
            to.add(here, refusal)
        yield scope, owner, key, _HIDDEN if _SECRETS.search(key) else value
