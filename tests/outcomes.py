"""What a scenario over one snapshot led to, with words for what tests ask.

Records are written (leader, leader epoch, ISR, partition epoch); bodies are told to brokers.
"""

from __future__ import annotations

from typing import Any

from clusters import Document, partition, rows_of
from kafka_answers import Row, named, per_receiver
from understudy.controller.zk import interpreter

LAI, UM, STOP = "LEADER_AND_ISR", "UPDATE_METADATA", "STOP_REPLICA"


class Outcome:
    def __init__(self, doc: Document, *events: Document) -> None:
        tables = interpreter.replay(rows_of(doc), events)
        self.tables = per_receiver({name: named(name, rows) for name, rows in tables.items()})

    def partition(self, topic: str = "a") -> Row:
        return next(row for row in self.tables["partition_states"] if row["topic"] == topic)

    def state(self, topic: str = "a") -> str | None:
        state: str | None = self.partition(topic)["state_after"]
        return state

    def record(self, topic: str = "a") -> tuple[Any, ...]:
        return _record(self.partition(topic))

    def assignment(self, topic: str = "a") -> tuple[Any, ...]:
        row = self.partition(topic)
        return (row["replicas"], row["adding"], row["removing"])

    def writes(self, topic: str = "a") -> list[tuple[Any, ...]]:
        return [_record(row) for row in self.written("state", topic)]

    def written(self, kind: str, topic: str = "a") -> list[Row]:
        return [
            row
            for row in self.tables["metadata_writes"]
            if row["kind"] == kind and row["topic"] == topic
        ]

    def replicas(self, topic: str = "a") -> dict[int, str | None]:
        return {
            row["replica"]: row["state_after"]
            for row in self.tables["replica_states"]
            if row["topic"] == topic
        }

    def told(self, request: str, step: int, topic: str = "a") -> dict[int, tuple[Any, ...]]:
        """Broker -> (leader, leader epoch, ISR) of its body in a step."""
        return {
            row["broker_id"]: (row["leader"], row["leader_epoch"], row["isr"])
            for row in self.bodies(request, topic)
            if row["step"] == step
        }

    def sent(self) -> list[tuple[int, str, set[int]]]:
        """(step, request, receivers), in order."""
        receivers: dict[tuple[int, str], set[int]] = {}
        for row in self.tables["requests"]:
            receivers.setdefault((row["step"], row["request"]), set()).add(row["broker_id"])
        return [(step, request, brokers) for (step, request), brokers in receivers.items()]

    def requests(self) -> list[tuple[str, set[int]]]:
        """(request, receivers), in order."""
        return [(request, brokers) for _, request, brokers in self.sent()]

    def stops(self, topic: str = "a") -> list[tuple[int, int, bool]]:
        """(broker, leader epoch, delete), in order."""
        return [
            (row["broker_id"], row["leader_epoch"], row["delete_partition"])
            for row in self.bodies(STOP, topic)
        ]

    def failures(self) -> list[str]:
        return [row["machine"] for row in self.tables["transitions"] if row["result"] == "failed"]

    def invalid(self) -> list[tuple[str, str]]:
        return [
            (row["from_state"], row["to_state"])
            for row in self.tables["transitions"]
            if row["result"] == "invalid"
        ]

    def bodies(self, request: str, topic: str = "a") -> list[Row]:
        return [
            row
            for row in self.tables["request_partitions"]
            if row["request"] == request and row["topic"] == topic
        ]

    def answers(self) -> list[tuple[str | None, str | None]]:
        """(partition, error) of everything the events answered."""
        return [
            (None if row["topic"] is None else f"{row['topic']}-{row['partition']}", row["error"])
            for row in self.tables["event_results"]
        ]


def failover(doc: Document, **fields: Any) -> Outcome:  # noqa: ANN401
    return Outcome(doc, {"type": "controller_failover", **fields})


def event(kind: str, **fields: Any) -> Document:  # noqa: ANN401
    return {"type": kind, **fields}


def dies(*brokers: int) -> Document:
    return event("broker_failure", brokers=list(brokers))


def starts(*brokers: int) -> Document:
    return event("broker_startup", brokers=list(brokers))


def reassigning(
    replicas: list[int],
    state: tuple[int, int, list[int]] | None,
    adding: list[int],
    removing: list[int],
) -> Document:
    """A partition with a reassignment in flight."""
    return {**partition(replicas, state), "adding": adding, "removing": removing}


def _record(row: Row) -> tuple[Any, ...]:
    return (row["leader"], row["leader_epoch"], row["isr"], row["partition_epoch"])
