"""A running cluster as its brokers tell it, through the requests of Kafka's admin clients.

Brokers answer from their caches and no request sees everything, so what changes is asked for twice:
if both answers are equal, all that was asked for in between belongs together. What no request
tells (partition epochs, broker epochs, who is shutting down) stays unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

from understudy.errors import BadInputError
from understudy.sources.configs_text import by_source, kept
from understudy.sources.content import Parsed, Row
from understudy.sources.kraft_image import (
    ELR_VERSION,
    METADATA_VERSION,
    release_of_level,
    version_name,
)
from understudy.sources.kraft_records import uuid_text
from understudy.sources.record_batches import Malformed
from understudy.sources.text_snapshot import (
    NO_LEADER,
    Beside,
    BrokerText,
    ClusterText,
    PartitionText,
    put_together,
)

_ATTEMPTS: Final = 5
_TOPICS_AT_ONCE: Final = 200
_REQUEST_MS: Final = 20_000
_PROTOCOL: Final = "inter.broker.protocol.version"
_LEADER_NOT_AVAILABLE: Final = 5
_REPLICA_NOT_AVAILABLE: Final = 9
_LISTENER_NOT_FOUND: Final = 72
_OF_LEADERS: Final = (0, _LEADER_NOT_AVAILABLE, _LISTENER_NOT_FOUND)
_KRAFT, _ZK = "kraft", "zk"

Answer = dict[str, Any]


def read(
    servers: Sequence[str],
    settings: Answer,
    *,
    form: str,
    cluster: str | None,
    release: str | None,
    metadata_version: str | None,
    snapshot_id: str,
    seconds: float,
) -> Parsed:
    """The cluster that the brokers at *servers* belong to."""
    from kafka import KafkaAdminClient  # noqa: PLC0415 - an extra

    wait_ms = int(seconds * 1000)
    client = KafkaAdminClient(
        bootstrap_servers=list(servers),
        bootstrap_timeout_ms=wait_ms,
        request_timeout_ms=min(wait_ms, _REQUEST_MS),
        **settings,
    )
    try:
        found = _Asked(client, form).all()
    finally:
        client.close()
    name = cluster or found.beside.cluster
    if name is None:
        raise BadInputError("the brokers do not name their cluster: give --cluster NAME")
    return put_together(
        (name, snapshot_id),
        found.said,
        found.beside,
        position=f"brokers' answers of {datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        release=release or found.release,
        metadata_version=metadata_version,
    )


class _Asked:
    """One cluster, asked question after question."""

    def __init__(self, client: Any, form: str) -> None:  # noqa: ANN401 - kafka-python has no types
        self._client = client
        self.said = ClusterText(form, says_configs=True)
        self.beside = Beside()
        self.release: str | None = None
        self._mode: str | None = None

    def all(self) -> _Asked:
        self._mode = self.said.mode = self._find_mode()
        for _ in range(_ATTEMPTS):
            self.said.lacking.clear()
            before = self._changing()
            self.said.taken_at = int(datetime.now(UTC).timestamp() * 1_000_000)
            eligible = self._eligible()
            self._moving()
            if self._changing() == before and self._fits(eligible, before):
                break
        else:
            self.said.lacks("it changed while it was asked")
        cluster, topics = before
        self._brokers(cluster)
        self._topics(topics, eligible)
        self._versions()
        self._configs([topic["name"] for topic in topics])
        return self

    # --- Questions ---------------------------------------------------------------------------

    def _find_mode(self) -> str | None:
        """Only brokers of KRaft know of a quorum, and only those of ZooKeeper take its requests."""
        try:
            known = {int(key) for key in self._client.api_versions()}
        except ValueError:
            return _KRAFT  # it takes requests that the client does not know: newer than ZooKeeper
        if 55 in known:  # noqa: PLR2004 - DescribeQuorum
            return _KRAFT
        return _ZK if 4 in known else None  # noqa: PLR2004 - LeaderAndIsr

    def _changing(self) -> tuple[Answer, list[Answer]]:
        cluster = self._client.describe_cluster()
        topics = sorted(self._client.describe_topics(), key=lambda topic: str(topic["name"]))
        for topic in topics:
            topic["partitions"].sort(key=lambda each: int(each["partition_index"]))
        cluster["brokers"].sort(key=lambda each: int(each["broker_id"]))
        return cluster, topics

    def _eligible(self) -> dict[tuple[str, int], Answer] | None:
        """ELRs, where brokers tell them; an empty one comes as null."""
        from kafka import errors  # noqa: PLC0415 - an extra

        if self._mode != _KRAFT:
            return None
        found = {}
        cursor = None
        try:
            while True:
                answer = self._client.describe_topic_partitions([], cursor=cursor)
                for topic in answer["topics"]:
                    for each in topic["partitions"]:
                        found[topic["name"], each["partition_index"]] = each
                cursor = answer["next_cursor"]
                if cursor is None:
                    return found
        except errors.UnsupportedVersionError:
            return None

    @staticmethod
    def _fits(
        eligible: dict[tuple[str, int], Answer] | None, before: tuple[Answer, list[Answer]]
    ) -> bool:
        """Whether the answer with the ELRs is of the same state as the one without."""
        return eligible is None or all(
            (topic["name"], each["partition_index"]) in eligible
            and eligible[topic["name"], each["partition_index"]]["leader_epoch"]
            == each["leader_epoch"]
            for topic in before[1]
            for each in topic["partitions"]
        )

    def _moving(self) -> None:
        from kafka import errors  # noqa: PLC0415 - an extra

        try:
            found = self._client.list_partition_reassignments()
        except errors.UnsupportedVersionError:
            return  # before 2.4 no request told it
        except errors.AuthorizationError:
            self.said.lacks("reassignments may not be seen by this user")
            return
        except RuntimeError:  # so kafka-python says that nobody would be the controller
            self.said.lacks("no controller was found to tell the reassignments")
            return
        self.beside.reassignments = {
            (partition.topic, partition.partition): (
                list(each["adding_replicas"]),
                list(each["removing_replicas"]),
            )
            for partition, each in found.items()
        }

    # --- Answers -----------------------------------------------------------------------------

    def _brokers(self, cluster: Answer) -> None:
        in_kraft = self._mode == _KRAFT
        self.said.brokers = {
            broker["broker_id"]: BrokerText(
                rack=broker.get("rack"),
                endpoint=f"{broker['host']}:{broker['port']}",
                fenced=bool(broker.get("is_fenced")) if in_kraft else None,
            )
            for broker in cluster["brokers"]
        }
        self.beside.cluster = cluster.get("cluster_id")
        if in_kraft:
            self._quorum()
        elif cluster.get("controller_id", NO_LEADER) >= 0:
            self.beside.controller = (cluster["controller_id"], None)

    def _quorum(self) -> None:
        from kafka import errors  # noqa: PLC0415 - an extra

        try:
            quorum = self._client.describe_metadata_quorum()["topics"][0]["partitions"][0]
        except (errors.AuthorizationError, errors.UnsupportedVersionError):
            return
        if quorum["error"] is None:
            self.beside.controller = (quorum["leader_id"], quorum["leader_epoch"])

    def _topics(
        self, topics: Iterable[Answer], eligible: dict[tuple[str, int], Answer] | None
    ) -> None:
        live = {each for each, broker in (self.said.brokers or {}).items() if not broker.fenced}
        for topic in topics:
            said = self.said.topic(topic["name"])
            if topic["error_code"]:
                self.said.lacks(f"topic {topic['name']}: {_error_name(topic['error_code'])}")
            said.topic_id = _topic_id(topic.get("topic_id"))
            said.queued_for_deletion = False if self._mode == _KRAFT else None
            for each in topic["partitions"]:
                number = each["partition_index"]
                partition = self._partition(each, live)
                if eligible is not None:
                    more = eligible.get((topic["name"], number), {})
                    partition.elr = more.get("eligible_leader_replicas") or []
                    partition.last_known_elr = more.get("last_known_elr") or []
                said.partitions[number] = partition
        self.said.note_gaps()

    def _partition(self, each: Answer, live: set[int]) -> PartitionText:
        isr = list(each["isr_nodes"])
        has_state = self._mode == _KRAFT or each["leader_id"] != NO_LEADER or bool(isr)
        if not has_state:
            self.said.lacks("some partitions have no leader and no ISR, perhaps never had")
        if each["error_code"] == _REPLICA_NOT_AVAILABLE:
            self.said.lacks("an old broker left dead brokers out of some assignments")
        elif each["error_code"] not in _OF_LEADERS:
            self.said.lacks(f"some partitions: {_error_name(each['error_code'])}")
        epoch = each.get("leader_epoch", NO_LEADER)
        offline = each.get("offline_replicas")
        return PartitionText(
            replicas=list(each["replica_nodes"]),
            leader=each["leader_id"],
            isr=isr if has_state else None,
            has_state=True if has_state else None,
            leader_epoch=epoch if epoch >= 0 else None,
            # A broker that lives and yet is offline for a replica has lost its directory.
            offline=None if offline is None else [each for each in offline if each in live],
        )

    def _versions(self) -> None:
        from kafka import errors  # noqa: PLC0415 - an extra

        if self._mode != _KRAFT:
            return
        try:
            features = self._client.describe_features()
        except errors.UnsupportedVersionError:
            return
        version = features.get(METADATA_VERSION, {})
        if "finalized" in version:
            level = version["finalized"][1]
            try:
                self.beside.metadata_version = version_name(level)
            except Malformed as error:
                raise BadInputError(str(error)) from None
            elr = features.get(ELR_VERSION, {}).get("finalized", (0, 0))
            self.beside.elr_enabled = elr[1] > 0
        if "supported" in version:
            self.release = release_of_level(version["supported"][1])

    # --- Settings ----------------------------------------------------------------------------

    def _configs(self, topics: Sequence[str]) -> None:
        from kafka.admin import ConfigResource, ConfigResourceType  # noqa: PLC0415 - an extra

        rows: list[Row] = []
        for start in range(0, len(topics), _TOPICS_AT_ONCE):
            some = topics[start : start + _TOPICS_AT_ONCE]
            asked = [ConfigResource(ConfigResourceType.TOPIC, topic) for topic in some]
            answer = self._client.describe_configs(asked, config_filter="all").get("topic", {})
            for topic in some:
                rows += self._settings(
                    f"settings of topic {topic}", answer.get(topic), "topic", topic
                )
        protocols: set[tuple[str | None, str | None]] = set()
        for broker, about in (self.said.brokers or {}).items():
            if not about.fenced:
                answer = self._describe_broker(broker)
                rows += self._settings(
                    f"settings of broker {broker}", answer, "broker", str(broker)
                )
                if answer:
                    protocols.add(_protocol(answer.get(_PROTOCOL, {})))
        self.beside.configs = kept(list(dict.fromkeys(rows)))
        if self._mode != _KRAFT and len(protocols) == 1:
            self.beside.metadata_version, self.release = protocols.pop()

    def _describe_broker(self, broker: int) -> Answer:
        """The settings of a broker, which it alone can tell; nothing if it cannot be reached."""
        from kafka import errors  # noqa: PLC0415 - an extra
        from kafka.admin import ConfigResource, ConfigResourceType  # noqa: PLC0415

        def describe(*, sources: bool) -> Answer:
            asked = [ConfigResource(ConfigResourceType.BROKER, str(broker))]
            found = self._client.describe_configs(
                asked, include_synonyms=sources, config_filter="all"
            )
            answer: Answer = found.get("broker", {}).get(str(broker), {})
            return answer

        try:
            return describe(sources=True)
        except errors.UnsupportedVersionError:  # sources are told since 1.1
            return describe(sources=False)
        except errors.RetriableError:
            return {}

    def _settings(self, what: str, answer: Answer | None, scope: str, name: str) -> Iterator[Row]:
        """Whatever exists has settings, if only default ones: an empty answer is a refusal."""
        if not answer:
            self.said.lacks(f"{what} are not told to this user, or not from here")
            return
        for key, found in answer.items():
            if found.get("is_sensitive"):
                continue
            yield from by_source(scope, name, _sources(key, found))


def _sources(key: str, found: Answer) -> Iterator[tuple[str, str, str]]:
    """Source, name and value of a setting wherever it is set."""
    listed = found.get("synonyms") or [
        {"source": found["config_source"], "name": key, "value": found["value"]}
    ]
    for each in listed:
        if each["value"] is not None:
            yield each["source"], each["name"], each["value"]


def _protocol(found: Answer) -> tuple[str | None, str | None]:
    """The inter-broker protocol, and the release by what the software would use by default."""
    default = next(
        (each["value"] for each in found.get("synonyms", ()) if each["source"] == "DEFAULT_CONFIG"),
        None,
    )
    return found.get("value"), default.partition("-")[0] if default else None


def _topic_id(found: str | None) -> str | None:
    """As Kafka writes ids; zero is no id."""
    value = UUID(found) if found else None
    if value is None or not value.int:
        return None
    return uuid_text(value.bytes)


def _error_name(code: int) -> str:
    from kafka import errors  # noqa: PLC0415 - an extra

    return str(errors.for_code(code).message)
