"""The words both forms of the core put into tables: results, outcomes, verdicts and reasons.

Sentences are constants, not built per row: both engines say the same thing with the same words, and
a column of a few distinct sentences costs nothing in Parquet.
"""

from __future__ import annotations

from typing import Final

UNCLEAN_SETTING: Final = "unclean.leader.election.enable"

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

# reasons
FIRST_IN_SYNC: Final = "the first online replica of the assignment that is in the ISR leads"
FIRST_ONLINE_UNCLEAN: Final = (
    "no ISR member is online and unclean election is allowed: the first online replica leads"
)
FIRST_ONLINE_NEW: Final = "the partition never had a leader: its first online replica leads"
UNCLEAN_OFF: Final = "no ISR member is online and unclean election is not allowed"
NO_REPLICA_ONLINE: Final = "no assigned replica is online"
STRANGER_IN_ISR: Final = (
    "the online ISR members are not in the assignment: none may lead, and no unclean election runs"
)
LATER_CONTROLLER: Final = "the leadership record was written by a later controller epoch"
QUEUED: Final = "the topic is queued for deletion"
SHRUNK: Final = "replicas that are not online left the ISR"
SENT_AGAIN: Final = (
    "an assigned replica is not online: the record is sent again under this controller epoch"
)
