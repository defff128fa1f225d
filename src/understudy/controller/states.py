"""The states of Kafka's two machines and which state may follow which."""

from __future__ import annotations

from typing import Final

NEW_PARTITION: Final = "NewPartition"
ONLINE_PARTITION: Final = "OnlinePartition"
OFFLINE_PARTITION: Final = "OfflinePartition"
NON_EXISTENT_PARTITION: Final = "NonExistentPartition"

NEW_REPLICA: Final = "NewReplica"
ONLINE_REPLICA: Final = "OnlineReplica"
OFFLINE_REPLICA: Final = "OfflineReplica"
DELETION_STARTED: Final = "ReplicaDeletionStarted"
DELETION_SUCCESSFUL: Final = "ReplicaDeletionSuccessful"
DELETION_INELIGIBLE: Final = "ReplicaDeletionIneligible"
NON_EXISTENT_REPLICA: Final = "NonExistentReplica"

_SETTLED_PARTITION: Final = frozenset({NEW_PARTITION, ONLINE_PARTITION, OFFLINE_PARTITION})
_SETTLED_REPLICA: Final = frozenset(
    {NEW_REPLICA, ONLINE_REPLICA, OFFLINE_REPLICA, DELETION_INELIGIBLE}
)

# Target state -> the states it may be entered from (Kafka's validPreviousStates, 2.4 to 3.9).
VALID_PREVIOUS_PARTITION: Final[dict[str, frozenset[str]]] = {
    NEW_PARTITION: frozenset({NON_EXISTENT_PARTITION}),
    ONLINE_PARTITION: _SETTLED_PARTITION,
    OFFLINE_PARTITION: _SETTLED_PARTITION,
    NON_EXISTENT_PARTITION: frozenset({OFFLINE_PARTITION}),
}
VALID_PREVIOUS_REPLICA: Final[dict[str, frozenset[str]]] = {
    NEW_REPLICA: frozenset({NON_EXISTENT_REPLICA}),
    ONLINE_REPLICA: _SETTLED_REPLICA,
    OFFLINE_REPLICA: _SETTLED_REPLICA,
    DELETION_STARTED: frozenset({OFFLINE_REPLICA}),
    DELETION_SUCCESSFUL: frozenset({DELETION_STARTED}),
    DELETION_INELIGIBLE: frozenset({OFFLINE_REPLICA, DELETION_STARTED}),
    NON_EXISTENT_REPLICA: frozenset({DELETION_SUCCESSFUL}),
}
