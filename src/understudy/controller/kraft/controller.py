"""The active quorum controller, as its events see it: what it knows, and how it writes."""

from __future__ import annotations

from understudy.controller.kraft.cluster import Cluster
from understudy.controller.kraft.journal import KraftJournal
from understudy.controller.kraft.operation import Operation
from understudy.controller.kraft.words import POLICY_VIOLATION
from understudy.controller.scope import Event
from understudy.controller.words import UNSUPPORTED_VERSION


class Controller:
    """What a controller knows of its cluster, and what it has done."""

    def __init__(self, cluster: Cluster, journal: KraftJournal) -> None:
        self.cluster = cluster
        self.journal = journal

    def operation(self) -> Operation:
        return Operation(self.cluster, self.journal)

    def commit_request(self, operation: Operation, broker_id: int | None = None) -> bool:
        """Write what a user's request wants, unless it is too much for one batch of the log."""
        if operation.is_too_large and self.cluster.rules.limits_requests:
            self.journal.refused(POLICY_VIOLATION, broker_id)
            return False
        operation.commit()
        return True


def unsupported(controller: Controller, event: Event) -> None:  # noqa: ARG001
    """An event that only a controller of the ZooKeeper era knows."""
    controller.journal.refused(UNSUPPORTED_VERSION)
