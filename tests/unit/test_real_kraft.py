"""Every change a real quorum controller recorded follows from what happened to it.

The recordings are the metadata logs of real clusters, cut into cases: the snapshot before, what an
operator did, and the records written until the next one. A log tells what brokers and leaders
asked for (registrations, fencing, directories, ISRs); the replay is asked the same, and must write
the same records.
"""

from __future__ import annotations

import copy
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from clusters import rows_of
from kafka_answers import named
from understudy.controller.kraft import broker_events as kraft_broker_events
from understudy.controller.kraft import interpreter as kraft_interpreter
from understudy.controller.kraft.cluster import Cluster
from understudy.controller.kraft.events import QuorumController
from understudy.controller.kraft.journal import KraftJournal

RECORDINGS = Path(__file__).parents[1] / "data" / "real"

Json = Any
Record = dict[str, Json]
Event = dict[str, Json]
Written = list[tuple[str, int, Json, dict[str, Json]]]

_FIELDS = {
    "leader": "leader",
    "isr": "isr",
    "replicas": "replicas",
    "addingReplicas": "adding",
    "removingReplicas": "removing",
    "leaderRecoveryState": "recovery",
    "eligibleLeaderReplicas": "elr",
    "lastKnownElr": "last_known_elr",
    "directories": "directories",
}
_CHANGE = "PARTITION_CHANGE_RECORD"
_CREATED = ("TOPIC_RECORD", "PARTITION_RECORD", "CONFIG_RECORD")
_SETTINGS = {"min.insync.replicas": "min_isr", "unclean.leader.election.enable": "unclean"}
_TOPIC_CONFIG = 2
# Brokers of 4.3 report which directories are cordoned; nothing but placement depends on it.
_OF_NO_CONCERN = ("REGISTER_CONTROLLER_RECORD", "FEATURE_LEVEL_RECORD", "CLEAR_ELR_RECORD")


def cases(run: str) -> list[Json]:
    with gzip.open(RECORDINGS / run / "cases.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


@pytest.mark.parametrize(("run", "changes"), [("kraft-4.3", 1417), ("kraft-3.9", 667)])
def test_every_partition_change_is_explained(run: str, changes: int) -> None:
    explained = 0
    unexplained = []
    for case in cases(run):
        log = Log(case)
        log.explain()
        explained += log.explained
        unexplained += log.unexplained
    assert unexplained == []
    assert explained == changes


class Log:
    """The records of one case beside a replay that is asked what they were written for."""

    def __init__(self, case: Json) -> None:
        self.cluster = kraft_interpreter.load(rows_of(case["before"]))
        self.names = {topic["id"]: topic["name"] for topic in case["before"]["topics"]}
        self.did: dict[str, Json] = case["driver_event"]
        self.records: list[Record] = case["records"]
        self.at = 0
        self.explained = 0
        self.unexplained: list[tuple[str, int]] = []
        self.case = case["case"]

    def explain(self) -> None:
        while self.at < len(self.records):
            if not any(self._fits(cluster, written) for cluster, written in self._replays()):
                record = self.records[self.at]
                self.unexplained.append((self.case, record["offset"]))
                self.at += 1

    def _fits(self, cluster: Cluster, written: Written) -> bool:
        """Whether the next records are these, in any order over the partitions."""
        until = self.at + len(written)
        recorded = [self._recorded(record) for record in self.records[self.at : until]]
        if not written or _sorted(recorded) != _sorted(written):
            return False
        self.cluster = cluster
        self.at = until
        self.explained += sum(record == _CHANGE for record, *_ in written)
        return True

    # --- what the next records may have been written for ---

    def _replays(self) -> Iterator[tuple[Cluster, Written]]:
        record = self.records[self.at]
        data = record["data"]
        if record["type"] in _OF_NO_CONCERN or "cordonedLogDirs" in data:
            yield self._skipped()
        elif record["type"] == "CONFIG_RECORD":
            yield self._configured(data)
        elif record["type"] == "TOPIC_RECORD":
            self.names[data["topicId"]] = data["name"]
            yield self._created({"type": "topic_change", "topics": {data["name"]: self._new()}})
        elif record["type"] == "PARTITION_RECORD":
            topic = self.names[data["topicId"]]
            yield self._created(
                {"type": "partition_change", "topic": topic, "partitions": self._new()}
            )
        elif record["type"] == "REMOVE_TOPIC_RECORD":
            yield self._replayed({"type": "delete_topics", "topics": [self.names[data["topicId"]]]})
        elif record["type"] != _CHANGE:
            yield from self._of_broker(record)
        else:
            later = (r for r in self.records[self.at :] if r["type"] != _CHANGE)
            yield from self._of_broker(next(later, record))
            yield from self._of_partition(record)

    def _of_broker(self, record: Record) -> Iterator[tuple[Cluster, Written]]:
        data = record["data"]
        broker = data.get("brokerId")
        if record["type"] == "REGISTER_BROKER_RECORD":
            for is_clean in (True, False):
                yield self._registered(data, is_clean=is_clean)
        elif record["type"] == "UNREGISTER_BROKER_RECORD":
            yield self._replayed({"type": "unregister", "brokers": [broker]})
        elif data.get("fenced") == 1:
            yield self._replayed({"type": "fence", "brokers": [broker]})
        elif data.get("fenced") == -1:
            yield self._replayed({"type": "unfence", "brokers": [broker]})
        elif "inControlledShutdown" in data:
            yield self._replayed({"type": "controlled_shutdown", "broker": broker})
        elif "logDirs" in data:
            known = self.cluster.brokers[broker].directories
            lost = [d for d in known if d not in data["logDirs"]]
            yield self._replayed({"type": "log_dir_failure", "broker": broker, "dirs": lost})

    def _of_partition(self, record: Record) -> Iterator[tuple[Cluster, Written]]:
        data = record["data"]
        topic, number = self.names[data["topicId"]], data["partitionId"]
        name = f"{topic}-{number}"
        partition = self.cluster.topics[topic][number]
        if "directories" in data and "replicas" not in data:
            for replica, directory in zip(partition.replicas, data["directories"], strict=True):
                if partition.directory_of[replica] != directory:
                    assigned = {"broker": replica, "partitions": {name: directory}}
                    yield self._replayed({"type": "assign_dirs", **assigned})
        # A report that completes a reassignment was of the ISR with everybody who joins.
        joined = tuple(r for r in partition.adding if r not in partition.isr)
        for isr in (data.get("isr", partition.isr), (*partition.isr, *joined)):
            yield self._replayed({"type": "isr_change", "partition": name, "isr": list(isr)})
        kind, asked = self.did["kind"], self.did["args"].get("partitions")
        if kind in ("preferred_election", "unclean_election", "cancel_reassignment"):
            yield self._replayed({"type": kind, "partitions": [name]})
        elif kind == "reassign" and name in asked:
            yield self._replayed({"type": kind, "partitions": {name: asked[name]}})

    # --- replays, each on a cluster of its own ---

    def _replayed(self, event: Event) -> tuple[Cluster, Written]:
        controller = self._controller()
        controller.process(event)
        return controller.cluster, _written(controller.journal)

    def _registered(self, data: Record, *, is_clean: bool) -> tuple[Cluster, Written]:
        controller = self._controller()
        kraft_broker_events.register(
            controller, data["brokerId"], data["brokerEpoch"], data["logDirs"], is_clean=is_clean
        )
        return controller.cluster, _written(controller.journal)

    def _created(self, event: Event) -> tuple[Cluster, Written]:
        """With the configurations of a new topic, which stand between topic and partitions."""
        cluster, written = self._replayed(event)
        for record in self._created_together():
            if record["type"] == "CONFIG_RECORD":
                _configure(cluster, record["data"])
                written.append(self._recorded(record))
        return cluster, written

    def _configured(self, data: Record) -> tuple[Cluster, Written]:
        cluster, written = self._skipped()
        _configure(cluster, data)
        return cluster, written

    def _skipped(self) -> tuple[Cluster, Written]:
        return self._controller().cluster, [self._recorded(self.records[self.at])]

    def _controller(self) -> QuorumController:
        return QuorumController(copy.deepcopy(self.cluster), KraftJournal())

    def _created_together(self) -> list[Record]:
        found = []
        for place, record in enumerate(self.records[self.at :]):
            if record["type"] not in _CREATED or (place and record["type"] == "TOPIC_RECORD"):
                break
            found.append(record)
        return found

    def _new(self) -> dict[str, list[int]]:
        return {
            str(record["data"]["partitionId"]): record["data"]["replicas"]
            for record in self._created_together()
            if record["type"] == "PARTITION_RECORD"
        }

    def _recorded(self, record: Record) -> tuple[str, int, Json, dict[str, Json]]:
        data = record["data"]
        about: Json = data.get("brokerId")
        if "topicId" in data and record["type"] != "TOPIC_RECORD":
            about = (self.names[data["topicId"]], data.get("partitionId"))
        carried: dict[str, Json] = {}
        if record["type"] in (_CHANGE, "PARTITION_RECORD"):
            carried = {_FIELDS[k]: _frozen(v) for k, v in data.items() if k in _FIELDS}
        elif "brokerEpoch" in data:
            carried = {"broker_epoch": data["brokerEpoch"]}
        return record["type"], record["version"], about, carried


def _configure(cluster: Cluster, data: Record) -> None:
    setting = _SETTINGS.get(data["name"])
    if setting is not None and data["resourceType"] == _TOPIC_CONFIG:
        getattr(cluster, setting).by_topic[data["resourceName"]] = data["value"]


def _written(journal: KraftJournal) -> Written:
    """The rows of a replay in the words of the log."""
    found = []
    for row in named("metadata_writes", journal.metadata_writes):
        kind = "".join(f"_{c}" if c.isupper() else c.upper() for c in row["record"]).lstrip("_")
        about: Json = row["broker_id"]
        if kind != "TOPIC_RECORD" and row["topic"] is not None:
            about = (row["topic"], row["partition"])
        carried = {name: _frozen(row[name]) for name in row["changed"]}
        if kind == "PARTITION_RECORD":
            carried = {
                name: row[name] for name in _FIELDS.values() if row[name] and name != "recovery"
            } | {"adding": (), "removing": ()}
        elif "broker_epoch" in carried:
            carried = {"broker_epoch": carried["broker_epoch"]}
        found.append((kind, row["version"], about, carried))
    return found


def _frozen(value: Json) -> Json:
    return tuple(value) if isinstance(value, list) else value


def _sorted(written: Written) -> list[str]:
    return sorted(repr((*about, sorted(carried.items()))) for *about, carried in written)
