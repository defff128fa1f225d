"""The words both forms of the core put into tables: results, outcomes, verdicts and reasons.

Sentences are constants, not built per row: both engines say the same thing with the same words, and
a column of a few distinct sentences costs nothing in Parquet.
"""

from __future__ import annotations

from typing import Final

UNCLEAN_SETTING: Final = "unclean.leader.election.enable"
DELETION_SETTING: Final = "delete.topic.enable"

NO_LEADER: Final = -1
LEADER_DURING_DELETE: Final = -2
EPOCH_DURING_DELETE: Final = -2
NO_EPOCH: Final = -1

RECOVERED: Final = 0
RECOVERING: Final = 1

LEADER_AND_ISR: Final = "LEADER_AND_ISR"
UPDATE_METADATA: Final = "UPDATE_METADATA"
STOP_REPLICA: Final = "STOP_REPLICA"

# transitions.machine, .result and .error
PARTITION_MACHINE: Final = "partition"
REPLICA_MACHINE: Final = "replica"
OK: Final = "ok"
INVALID: Final = "invalid"
FAILED: Final = "failed"
ILLEGAL_STATE: Final = "IllegalState"
STATE_CHANGE_FAILED: Final = "StateChangeFailed"

# metadata_writes.kind
STATE_WRITE: Final = "state"
ASSIGNMENT_WRITE: Final = "assignment"
DELETE_TOPIC_WRITE: Final = "delete_topic"

# event_results.error: Kafka's own names
BROKER_NOT_AVAILABLE: Final = "BROKER_NOT_AVAILABLE"
ELECTION_NOT_NEEDED: Final = "ELECTION_NOT_NEEDED"
ELIGIBLE_LEADERS_NOT_AVAILABLE: Final = "ELIGIBLE_LEADERS_NOT_AVAILABLE"
INELIGIBLE_REPLICA: Final = "INELIGIBLE_REPLICA"
INVALID_REPLICA_ASSIGNMENT: Final = "INVALID_REPLICA_ASSIGNMENT"
INVALID_TOPIC_EXCEPTION: Final = "INVALID_TOPIC_EXCEPTION"
INVALID_UPDATE_VERSION: Final = "INVALID_UPDATE_VERSION"
NOT_CONTROLLER: Final = "NOT_CONTROLLER"
NO_REASSIGNMENT_IN_PROGRESS: Final = "NO_REASSIGNMENT_IN_PROGRESS"
OPERATION_NOT_ATTEMPTED: Final = "OPERATION_NOT_ATTEMPTED"
PREFERRED_LEADER_NOT_AVAILABLE: Final = "PREFERRED_LEADER_NOT_AVAILABLE"
UNKNOWN_SERVER_ERROR: Final = "UNKNOWN_SERVER_ERROR"
UNKNOWN_TOPIC_OR_PARTITION: Final = "UNKNOWN_TOPIC_OR_PARTITION"
UNSUPPORTED_VERSION: Final = "UNSUPPORTED_VERSION"

# decisions.strategy
OFFLINE_STRATEGY: Final = "offline"
REASSIGN_STRATEGY: Final = "reassign"
PREFERRED_STRATEGY: Final = "preferred"
CONTROLLED_SHUTDOWN_STRATEGY: Final = "controlled_shutdown"
INITIALIZE_STRATEGY: Final = "initialize"  # the first leader ever; not an election in Kafka's words

# decisions.candidates.verdict
CHOSEN: Final = "chosen"
BROKER_DOWN: Final = "broker_down"
SHUTTING_DOWN: Final = "shutting_down"
LOG_DIR_OFFLINE: Final = "log_dir_offline"
NOT_IN_ISR: Final = "not_in_isr"
NOT_TRIED: Final = "not_tried"

# partition_states.outcome
UNCHANGED: Final = "unchanged"
RECORD_REFRESHED: Final = "record_refreshed"
ISR_SHRUNK: Final = "isr_shrunk"
ELECTED: Final = "elected"
ELECTED_UNCLEAN: Final = "elected_unclean"
INITIALIZED: Final = "initialized"
OFFLINE: Final = "offline"
NEVER_LED: Final = "never_led"
EPOCH_RAISED: Final = "epoch_raised"
ISR_CHANGED: Final = "isr_changed"
REASSIGNING: Final = "reassigning"
REASSIGNED: Final = "reassigned"
DELETING: Final = "deleting"
DELETED: Final = "deleted"
RESIGNED: Final = "resigned"

# reasons
FIRST_IN_SYNC: Final = "the first online replica of the assignment that is in the ISR leads"
FIRST_ONLINE_UNCLEAN: Final = (
    "no ISR member is online and unclean election is allowed: the first online replica leads"
)
FIRST_ONLINE_NEW: Final = "the partition never had a leader: its first online replica leads"
UNCLEAN_OFF: Final = "no ISR member is online and unclean election is not allowed"
# Kafka elects nobody whose broker is shutting down, although he is alive and may still lead.
NO_REPLICA_ONLINE: Final = (
    "no assigned replica is online: each broker is down or shutting down, or its directory offline"
)
STRANGER_IN_ISR: Final = (
    "the online ISR members are not in the assignment: none may lead, and no unclean election runs"
)
LATER_CONTROLLER: Final = "the leadership record was written by a later controller epoch"
QUEUED: Final = "the topic is queued for deletion"
SHRUNK: Final = "replicas that are not online left the ISR"
SENT_AGAIN: Final = (
    "an assigned replica is not online: the record is sent again under this controller epoch"
)
PREFERRED_IN_SYNC: Final = "the preferred replica is online and in the ISR, so it leads"
PREFERRED_UNAVAILABLE: Final = "the preferred replica is not online or not in the ISR"
TARGET_IN_SYNC: Final = "the first online target replica that is in the ISR leads"
NO_TARGET_IN_SYNC: Final = "no target replica is online and in the ISR"
STAYING_IN_SYNC: Final = "the first replica in the ISR that is not shutting down leads"
NONE_STAYING_IN_SYNC: Final = "every replica in the ISR is shutting down or not online"
REPORTED: Final = "the leader reported another ISR"
RAISED: Final = "the leader epoch was raised to send the record anew"
REASSIGNMENT_STARTED: Final = "a reassignment is in flight"
REASSIGNMENT_DONE: Final = "the partition has the replicas a reassignment asked for"
DELETION_STARTED_REASON: Final = "the deletion of the topic has started"
TOPIC_GONE: Final = "the topic is gone"
NOBODY_KNOWS: Final = "the controller resigned during its failover and holds nothing any more"
