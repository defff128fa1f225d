"""What happened to a cluster, read from ZooKeeper's own transaction log while it is written.

The log is flushed before anybody is told that a write has happened, so what a broker or a client
has seen is in it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from understudy.sources import content as C
from understudy.sources.content import Content
from understudy.sources.zookeeper import txnlog
from understudy.sources.zookeeper.history import Asked
from understudy.sources.zookeeper.kafka import Naming
from understudy.sources.zookeeper.txnlog import (
    CloseSession,
    Create,
    Delete,
    Operation,
    SetData,
    Transaction,
)
from zookeeper_samples import Files, load

Document = dict[str, Any]

_STATE: Final = re.compile(r"/brokers/topics/([^/]+)/partitions/(\d+)/state")
_TOPIC: Final = re.compile(r"/brokers/topics/([^/]+)")
_BROKER: Final = re.compile(r"/brokers/ids/(\d+)")
_OTHERS: Final = re.compile(r"/(?:config/(?:topics|brokers)|admin/[a-z_]+)/[^/]+")


class Recorder:
    """Reads the transaction logs of a running ZooKeeper."""

    def __init__(self, data: Path, naming: Naming) -> None:
        self._data = data
        self._naming = naming

    def newest(self) -> tuple[int, Content] | None:
        """The last transaction and what the cluster is then; None as long as there is none."""
        files = self._logs()
        if not files:
            return None
        (parsed,) = load(files, Asked(self._naming))
        zxid = max((each.zxid for each in _transactions(files)), default=0)
        return None if parsed.content is None else (zxid, parsed.content)

    def writes(self, after: int, until: int) -> list[Document]:
        """Every durable write of Kafka in between, in order."""
        return list(_writes(_transactions(self._logs()), after, until))

    def _logs(self) -> Files:
        """Snapshots are not needed: the logs begin with the first transaction."""
        return {path.name: path.read_bytes() for path in sorted(self._data.glob("log.*"))}


def _transactions(files: Files) -> Iterator[Transaction]:
    for name in sorted(files, key=lambda name: txnlog.first_zxid_of(name) or 0):
        yield from txnlog.read(files[name])


# --- A snapshot as a document ------------------------------------------------------------------


def document(content: Content) -> Document:
    """The canonical document that says the same."""
    snapshot = dict(zip(C.SNAPSHOT_COLUMNS, content.snapshot, strict=True))
    taken_at = datetime.fromtimestamp(snapshot["taken_at"] / 1_000_000, UTC)
    return {
        "cluster": content.cluster,
        "snapshot_id": content.snapshot_id,
        "taken_at": taken_at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "mode": snapshot["mode"],
        "release": snapshot["release"],
        "metadata_version": snapshot["metadata_version"],
        "controller": {"id": snapshot["controller_id"], "epoch": snapshot["controller_epoch"]},
        "brokers": [_broker(row, content) for row in _rows(C.BROKER_COLUMNS, content.brokers)],
        "configs": _configs(content, "cluster", None),
        "topics": [_topic(row, content) for row in _rows(C.TOPIC_COLUMNS, content.topics)],
    }


def _rows(columns: Sequence[str], rows: Iterable[C.Row]) -> Iterator[Document]:
    return (dict(zip(columns, row, strict=True)) for row in rows)


def _broker(row: Document, content: Content) -> Document:
    """At a quiet instant nobody is shutting down, which ZooKeeper does not say."""
    return {
        "id": row["broker_id"],
        "epoch": row["broker_epoch"],
        "rack": row["rack"],
        "alive": row["alive"],
        "shutting_down": False,
        "configs": _configs(content, "broker", str(row["broker_id"])),
    }


def _topic(row: Document, content: Content) -> Document:
    partitions = _rows(C.PARTITION_COLUMNS, content.partitions)
    return {
        "name": row["topic"],
        "id": row["topic_id"],
        "queued_for_deletion": row["queued_for_deletion"],
        "configs": _configs(content, "topic", row["topic"]),
        "partitions": [_partition(each) for each in partitions if each["topic"] == row["topic"]],
    }


def _partition(row: Document) -> Document:
    fields = ("leader", "leader_epoch", "isr", "partition_epoch", "controller_epoch", "recovery")
    return {
        "partition": row["partition"],
        "replicas": row["replicas"],
        "adding": row["adding"],
        "removing": row["removing"],
        "offline_dirs": [],
        "state": {field: row[field] for field in fields} if row["has_state"] else None,
    }


def _configs(content: Content, scope: str, name: str | None) -> dict[str, str]:
    rows = _rows(C.CONFIG_COLUMNS, content.configs)
    return {
        row["key"]: row["value"] for row in rows if (row["scope"], row["name"]) == (scope, name)
    }


# --- Writes ------------------------------------------------------------------------------------


def _writes(transactions: Iterable[Transaction], after: int, until: int) -> Iterator[Document]:
    """The writes of all transactions up to one, of which the first ones only say who is who."""
    known = _Known()
    for transaction in transactions:
        if transaction.zxid > until:
            return
        for operation in transaction.operations:
            for write in known.seen(operation, transaction.zxid):
                if transaction.zxid > after:
                    yield {"zxid": transaction.zxid, "time": transaction.time, **write}


class _Known:
    """What the znodes held, as far as it tells who decided the next write."""

    def __init__(self) -> None:
        self._leader_epochs: dict[str, int] = {}
        self._assignments: dict[str, dict[str, Document]] = {}

    def seen(self, operation: Operation, zxid: int) -> Iterator[Document]:
        if isinstance(operation, CloseSession):
            for path in operation.paths or ():
                yield from self._gone(path.decode())
        elif isinstance(operation, Delete):
            yield from self._gone(operation.path.decode())
        elif isinstance(operation, Create | SetData):
            yield from self._written(operation, zxid)

    def _gone(self, path: str) -> Iterator[Document]:
        if found := _BROKER.fullmatch(path):
            yield {"kind": "broker_gone", "broker": int(found[1])}
        elif found := _TOPIC.fullmatch(path):
            self._assignments.pop(found[1], None)
            yield {"kind": "delete_topic", "topic": found[1]}
        elif found := _STATE.fullmatch(path):
            self._leader_epochs.pop(path, None)
        elif _OTHERS.fullmatch(path):
            yield {"kind": "znode", "op": "delete", "path": path, "data": None}

    def _written(self, operation: Create | SetData, zxid: int) -> Iterator[Document]:
        path, data = operation.path.decode(), (operation.data or b"").decode()
        if found := _STATE.fullmatch(path):
            version = operation.version if isinstance(operation, SetData) else 0
            yield self._state(path, found[1], int(found[2]), version, json.loads(data))
        elif found := _TOPIC.fullmatch(path):
            yield from self._assignment(found[1], json.loads(data))
        elif found := _BROKER.fullmatch(path):
            if isinstance(operation, Create):  # a broker also sets it, to learn the zxid
                yield {"kind": "broker_registered", "broker": int(found[1]), "broker_epoch": zxid}
        elif _OTHERS.fullmatch(path):
            op = "set" if isinstance(operation, SetData) else "create"
            yield {"kind": "znode", "op": op, "path": path, "data": data or None}

    def _state(
        self, path: str, topic: str, partition: int, version: int, record: Document
    ) -> Document:
        """The controller raises the leader epoch with every write of its own."""
        before = self._leader_epochs.get(path)
        self._leader_epochs[path] = record["leader_epoch"]
        by = "leader" if before == record["leader_epoch"] else "controller"
        return {
            "kind": "state",
            "topic": topic,
            "partition": partition,
            "leader": record["leader"],
            "leader_epoch": record["leader_epoch"],
            "isr": record["isr"],
            "partition_epoch": version,
            "controller_epoch": record["controller_epoch"],
            "recovery": record.get("leader_recovery_state", 0),
            "by": "created" if before is None else by,
        }

    def _assignment(self, topic: str, written: Document) -> Iterator[Document]:
        """The partitions that are new or not what they were; clients write only new ones."""
        before = self._assignments.get(topic, {})
        now = {
            number: {
                "replicas": replicas,
                "adding": written.get("adding_replicas", {}).get(number, []),
                "removing": written.get("removing_replicas", {}).get(number, []),
            }
            for number, replicas in written["partitions"].items()
        }
        self._assignments[topic] = now
        for number in sorted(now, key=int):
            if now[number] != before.get(number):
                by = "controller" if number in before else "client"
                place = {"topic": topic, "partition": int(number)}
                yield {"kind": "assignment", **place, **now[number], "by": by}
