"""The state that the records of KRaft's metadata log add up to, and the snapshot of it.

The rules are those of Kafka's own metadata image: a change to a partition moves its epochs, a
change to something that is not there is an error, an unfinished transaction has not happened yet.
Plain Python: this runs on executors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ClassVar, Final

from understudy.sources.content import Content, Row, canonical
from understudy.sources.kraft_records import (
    LEADER_CHANGE,
    PASSED_OVER_NAMES,
    SNAPSHOT_FOOTER,
    SNAPSHOT_HEADER,
    UNREAD_CONTROL,
    Data,
    Record,
)
from understudy.sources.record_batches import Malformed

METADATA_VERSION: Final = "metadata.version"
ELR_VERSION: Final = "eligible.leader.replicas.version"

# Kafka's MetadataVersion by feature level; a release formats with the last of its own names.
_VERSION_NAMES: Final[Mapping[int, str]] = dict(
    enumerate(
        (
            *("3.0-IV1", "3.1-IV0", "3.2-IV0", "3.3-IV0", "3.3-IV1", "3.3-IV2", "3.3-IV3"),
            *("3.4-IV0", "3.5-IV0", "3.5-IV1", "3.5-IV2", "3.6-IV0", "3.6-IV1", "3.6-IV2"),
            *("3.7-IV0", "3.7-IV1", "3.7-IV2", "3.7-IV3", "3.7-IV4", "3.8-IV0", "3.9-IV0"),
            *("4.0-IV0", "4.0-IV1", "4.0-IV2", "4.0-IV3", "4.1-IV0", "4.1-IV1"),
            *("4.2-IV0", "4.2-IV1", "4.3-IV0", "4.4-IV0", "4.4-IV1", "4.4-IV2"),
        ),
        start=1,
    )
)
_LEVEL_WITHOUT_RECORD: Final = 1

# Reserved directory ids: the first two count as online on any broker, the third never.
MIGRATING: Final = "AAAAAAAAAAAAAAAAAAAAAA"
UNASSIGNED: Final = "AAAAAAAAAAAAAAAAAAAAAQ"
LOST: Final = "AAAAAAAAAAAAAAAAAAAAAg"

_NO_LEADER_CHANGE: Final = -2
_NO_CHANGE: Final = -1
_TOPIC: Final = 2
_BROKER: Final = 4
# What Kafka's ConfigDef calls PASSWORD: it stands in the log in plain text, and stays there.
_SECRET_ENDINGS: Final = (
    "password",
    "sasl.jaas.config",
    "ssl.keystore.key",
    "ssl.keystore.certificate.chain",
    "ssl.truststore.certificates",
    "secret.key",
)

_REPLICAS, _ISR, _REMOVING, _ADDING, _LEADER, _RECOVERY = range(6)
_LEADER_EPOCH, _PARTITION_EPOCH, _DIRECTORIES, _ELR, _LAST_KNOWN_ELR = range(6, 11)
_CHANGED_BY: Final = (
    (_REPLICAS, "replicas"),
    (_ISR, "isr"),
    (_REMOVING, "removingReplicas"),
    (_ADDING, "addingReplicas"),
    (_ELR, "eligibleLeaderReplicas"),
    (_LAST_KNOWN_ELR, "lastKnownElr"),
)
Partition = list[Any]


class Image:
    """The state at one offset. Records go in, in order; a snapshot can be taken at any time."""

    def __init__(self) -> None:
        self.offset = -1
        self.epoch = 0
        self.time: int | None = None
        self.leader: int | None = None
        self._features: dict[str, int] = {}
        self._brokers: dict[int, Data] = {}
        self._controllers: dict[int, Data] = {}
        self._names: dict[str, str] = {}  # by topic id
        self._ids: dict[str, str] = {}  # by topic name
        self._partitions: dict[str, dict[int, Partition]] = {}
        self._configs: dict[tuple[int, str], dict[str, str]] = {}
        self._pending: list[Record] | None = None

    def apply(self, records: Iterable[Record], epoch: int) -> bool:
        """Apply one batch; whether it changed anything a snapshot shows.

        Raises Malformed, with the offset, for a record that contradicts the state.
        """
        changed = False
        for record in records:
            try:
                changed |= self._apply(record, epoch)
            except Malformed as error:
                raise Malformed(f"offset {record.offset}: {record.type}: {error}") from None
        return changed

    def _apply(self, record: Record, epoch: int) -> bool:
        if self._pending is not None:
            return self._in_transaction(self._pending, record, epoch)
        if record.type == "BEGIN_TRANSACTION_RECORD":
            self._pending = []
            return False
        if record.type in ("END_TRANSACTION_RECORD", "ABORT_TRANSACTION_RECORD"):
            raise Malformed("no transaction was begun")
        return self._now(record, epoch)

    def _in_transaction(self, pending: list[Record], record: Record, epoch: int) -> bool:
        if record.type == "BEGIN_TRANSACTION_RECORD":
            raise Malformed("the transaction before it has no end")
        if record.type not in ("END_TRANSACTION_RECORD", "ABORT_TRANSACTION_RECORD"):
            pending.append(record)
            return False
        self._pending = None
        changed = False
        if record.type == "END_TRANSACTION_RECORD":
            for each in pending:
                changed |= self._now(each, epoch)
        self._at(record, epoch)
        return changed

    def _now(self, record: Record, epoch: int) -> bool:
        self._at(record, epoch)
        if record.type in _UNSEEN:
            return False
        if record.type not in self._APPLY:
            raise Malformed("this type of record is not known")
        self._APPLY[record.type](self, record.data)
        return True

    def _at(self, record: Record, epoch: int) -> None:
        self.stand_at(record.offset, epoch, record.time)

    def stand_at(self, offset: int, epoch: int, time: int | None) -> None:
        """The offset, raft epoch and time this is the state of."""
        self.offset, self.epoch, self.time = offset, epoch, time

    def note_leader(self, records: Iterable[Record]) -> None:
        """Take only the raft leader from records that the state already holds."""
        for record in records:
            if record.type == LEADER_CHANGE:
                self._leader_change(record.data)

    @property
    def in_transaction(self) -> bool:
        return self._pending is not None

    # --- One method per type of record -------------------------------------------------------

    def _leader_change(self, data: Data) -> None:
        self.leader = data.get("leaderId")

    def _feature_level(self, data: Data) -> None:
        if data["featureLevel"]:
            self._features[data["name"]] = data["featureLevel"]
        else:
            self._features.pop(data["name"], None)

    def _register_broker(self, data: Data) -> None:
        self._brokers[data["brokerId"]] = dict(data)

    def _unregister_broker(self, data: Data) -> None:
        self._broker(data["brokerId"], data["brokerEpoch"])
        del self._brokers[data["brokerId"]]

    def _change_registration(self, data: Data) -> None:
        broker = self._broker(data["brokerId"], data["brokerEpoch"])
        if data.get("fenced"):
            broker["fenced"] = data["fenced"] > 0
        if data.get("inControlledShutdown"):
            broker["inControlledShutdown"] = True
        if data.get("logDirs"):
            broker["logDirs"] = data["logDirs"]

    def _fence(self, data: Data) -> None:
        self._broker(data["id"], data["epoch"])["fenced"] = True

    def _unfence(self, data: Data) -> None:
        self._broker(data["id"], data["epoch"])["fenced"] = False

    def _register_controller(self, data: Data) -> None:
        self._controllers[data["controllerId"]] = data

    def _topic(self, data: Data) -> None:
        name, topic_id = data["name"], data["topicId"]
        if name in self._ids or topic_id in self._names:
            raise Malformed(f"topic {name} is there already")
        self._names[topic_id], self._ids[name] = name, topic_id
        self._partitions[topic_id] = {}

    def _remove_topic(self, data: Data) -> None:
        topic_id = data["topicId"]
        self._of_topic(topic_id)
        name = self._names.pop(topic_id)
        del self._ids[name], self._partitions[topic_id]
        self._configs.pop((_TOPIC, name), None)

    def _partition(self, data: Data) -> None:
        replicas = data["replicas"] or []
        directories = data.get("directories") or [MIGRATING] * len(replicas)
        _check_directories(replicas, directories)
        self._of_topic(data["topicId"])[data["partitionId"]] = [
            replicas,
            data["isr"] or [],
            data["removingReplicas"] or [],  # 2.8 could write null
            data["addingReplicas"] or [],
            data["leader"],
            data.get("leaderRecoveryState", 0),
            data["leaderEpoch"],
            data["partitionEpoch"],
            directories,
            data.get("eligibleLeaderReplicas") or [],
            data.get("lastKnownElr") or [],
        ]

    def _change_partition(self, data: Data) -> None:
        """PartitionRegistration.merge: the leader epoch moves with every leader that is written."""
        partitions = self._of_topic(data["topicId"])
        number = data["partitionId"]
        if number not in partitions:
            raise Malformed(f"topic {self._names[data['topicId']]} has no partition {number}")
        changed = partitions[number].copy()
        for place, field in _CHANGED_BY:
            if data.get(field) is not None:
                changed[place] = data[field]
        if data.get("leader", _NO_LEADER_CHANGE) != _NO_LEADER_CHANGE:
            changed[_LEADER] = data["leader"]
            changed[_LEADER_EPOCH] += 1
        if data.get("leaderRecoveryState", _NO_CHANGE) != _NO_CHANGE:
            changed[_RECOVERY] = data["leaderRecoveryState"]
        changed[_PARTITION_EPOCH] += 1
        if data.get("directories"):
            changed[_DIRECTORIES] = data["directories"]
        elif set(changed[_DIRECTORIES]) == {MIGRATING}:
            changed[_DIRECTORIES] = [MIGRATING] * len(changed[_REPLICAS])
        _check_directories(changed[_REPLICAS], changed[_DIRECTORIES])
        partitions[number] = changed

    def _clear_elr(self, data: Data) -> None:
        """TopicDelta: a partition that has no ELR keeps its partition epoch."""
        name = data["topicName"]
        if name and name not in self._ids:
            raise Malformed(f"there is no topic {name}")
        for topic_id in [self._ids[name]] if name else self._partitions:
            partitions = self._partitions[topic_id]
            for number, partition in partitions.items():
                if partition[_ELR] or partition[_LAST_KNOWN_ELR]:
                    changed = partition.copy()
                    changed[_ELR], changed[_LAST_KNOWN_ELR] = [], []
                    changed[_PARTITION_EPOCH] += 1
                    partitions[number] = changed

    def _config(self, data: Data) -> None:
        owner = (data["resourceType"], data["resourceName"])
        if data["value"] is not None:
            self._configs.setdefault(owner, {})[data["name"]] = data["value"]
        elif owner in self._configs:
            self._configs[owner].pop(data["name"], None)

    def _broker(self, broker_id: int, epoch: int) -> Data:
        broker = self._brokers.get(broker_id)
        if broker is None:
            raise Malformed(f"broker {broker_id} is not registered")
        if broker["brokerEpoch"] != epoch:
            raise Malformed(
                f"broker {broker_id} is registered with epoch {broker['brokerEpoch']}, not {epoch}"
            )
        return broker

    def _of_topic(self, topic_id: str) -> dict[int, Partition]:
        if topic_id not in self._partitions:
            raise Malformed(f"there is no topic with id {topic_id}")
        return self._partitions[topic_id]

    _APPLY: ClassVar[Mapping[str, Callable[[Image, Data], None]]] = {
        LEADER_CHANGE: _leader_change,
        "REGISTER_BROKER_RECORD": _register_broker,
        "UNREGISTER_BROKER_RECORD": _unregister_broker,
        "TOPIC_RECORD": _topic,
        "PARTITION_RECORD": _partition,
        "CONFIG_RECORD": _config,
        "PARTITION_CHANGE_RECORD": _change_partition,
        "FENCE_BROKER_RECORD": _fence,
        "UNFENCE_BROKER_RECORD": _unfence,
        "REMOVE_TOPIC_RECORD": _remove_topic,
        "FEATURE_LEVEL_RECORD": _feature_level,
        "BROKER_REGISTRATION_CHANGE_RECORD": _change_registration,
        "REGISTER_CONTROLLER_RECORD": _register_controller,
        "CLEAR_ELR_RECORD": _clear_elr,
    }

    # --- The snapshot ------------------------------------------------------------------------

    def content(
        self, cluster: str, snapshot_id: str, *, source_form: str, complete: bool
    ) -> Content:
        """The state as a canonical snapshot."""
        return canonical(
            (cluster, snapshot_id),
            taken_at=None if self.time is None else self.time * 1000,
            mode="kraft",
            source_form=source_form,
            release=self._release(),
            metadata_version=version_name(
                self._features.get(METADATA_VERSION, _LEVEL_WITHOUT_RECORD)
            ),
            elr_enabled=self._features.get(ELR_VERSION, 0) > 0,
            controller=(self.leader, self.epoch),
            complete=complete,
            brokers=[self._broker_row(broker) for broker in self._brokers.values()],
            topics=[(name, topic_id, False) for name, topic_id in self._ids.items()],
            partitions=self._partition_rows(),
            configs=list(self._config_rows()),
        )

    def _release(self) -> str | None:
        """The controller's release: the newest metadata version its software registered.

        Before 3.7 controllers did not register; there the brokers' answer counts if they agree.
        """
        own = self._controllers.get(-1 if self.leader is None else self.leader)
        registered = [own] if own else list(self._brokers.values())
        newest = {
            feature["maxSupportedVersion"]
            for each in registered
            for feature in each["features"] or ()
            if feature["name"] == METADATA_VERSION
        }
        return release_of_level(newest.pop()) if len(newest) == 1 else None

    @staticmethod
    def _broker_row(data: Data) -> Row:
        end_points = [
            f"{each['name']}://{each['host']}:{each['port']}" for each in data["endPoints"] or ()
        ]
        return (
            data["brokerId"],
            not data["fenced"],
            data.get("inControlledShutdown", False),
            data["fenced"],
            data["brokerEpoch"],
            data["rack"],
            ",".join(end_points) or None,
            data.get("logDirs") or [],
        )

    def _partition_rows(self) -> list[Row]:
        online = {
            broker_id: {*data["logDirs"], MIGRATING, UNASSIGNED}
            for broker_id, data in self._brokers.items()
            if data.get("logDirs")
        }
        rows: list[Row] = []
        for topic_id, partitions in self._partitions.items():
            name = self._names[topic_id]
            for number, found in partitions.items():
                (
                    replicas,
                    isr,
                    removing,
                    adding,
                    leader,
                    recovery,
                    leader_epoch,
                    epoch,
                    directories,
                    elr,
                    last_known_elr,
                ) = found
                offline = [
                    replica
                    for replica, directory in zip(replicas, directories, strict=True)
                    if (replica in online and directory not in online[replica])
                    or (directory == LOST and replica in self._brokers)
                ]
                rows.append(
                    (
                        name,
                        number,
                        replicas,
                        adding,
                        removing,
                        offline,
                        True,
                        leader,
                        leader_epoch,
                        isr,
                        epoch,
                        None,
                        recovery,
                        elr,
                        last_known_elr,
                        directories,
                    )
                )
        return rows

    def _config_rows(self) -> Iterator[Row]:
        for (kind, owner), configs in self._configs.items():
            if kind == _TOPIC and owner in self._ids:
                scope = "topic"
            elif kind == _BROKER:
                scope = "broker" if owner else "cluster"
            else:
                continue
            for key, value in configs.items():
                if not is_secret(key):
                    yield scope, owner or None, key, value


def is_secret(key: str) -> bool:
    """Whether the value of a setting is nothing to copy into tables."""
    return key.endswith(_SECRET_ENDINGS)


def _check_directories(replicas: list[int], directories: list[str]) -> None:
    if len(replicas) != len(directories):
        raise Malformed(f"{len(directories)} directories for {len(replicas)} replicas")


def release_of_level(newest: int) -> str | None:
    """The release of software whose newest metadata version is this feature level."""
    name = _VERSION_NAMES.get(newest)
    return None if name is None else name.partition("-")[0]


def version_name(level: int) -> str:
    """The metadata version of a feature level."""
    if level not in _VERSION_NAMES:
        raise Malformed(
            f"metadata.version {level} is newer than {max(_VERSION_NAMES)}, the newest one known"
        )
    return _VERSION_NAMES[level]


_UNSEEN: Final = PASSED_OVER_NAMES | {
    "NO_OP_RECORD",
    "ZK_MIGRATION_STATE_RECORD",
    SNAPSHOT_HEADER,
    SNAPSHOT_FOOTER,
    UNREAD_CONTROL,
    "KRAFT_VERSION",
    "KRAFT_VOTERS",
}
