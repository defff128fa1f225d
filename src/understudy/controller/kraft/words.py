"""The words of the quorum controller: records, verdicts, outcomes, reasons and Kafka's error names.

What both profiles say with the same word stands in ``words``.
"""

from __future__ import annotations

from typing import Final

MIN_ISR_SETTING: Final = "min.insync.replicas"
DEFAULT_MIN_ISR: Final = 1

# metadata_writes.kind and .record
RECORD_WRITE: Final = "record"
PARTITION_RECORD: Final = "PartitionRecord"
PARTITION_CHANGE_RECORD: Final = "PartitionChangeRecord"
TOPIC_RECORD: Final = "TopicRecord"
REMOVE_TOPIC_RECORD: Final = "RemoveTopicRecord"
REGISTER_BROKER_RECORD: Final = "RegisterBrokerRecord"
UNREGISTER_BROKER_RECORD: Final = "UnregisterBrokerRecord"
BROKER_REGISTRATION_CHANGE_RECORD: Final = "BrokerRegistrationChangeRecord"
FENCE_BROKER_RECORD: Final = "FenceBrokerRecord"
UNFENCE_BROKER_RECORD: Final = "UnfenceBrokerRecord"

# decisions.strategy: the kinds of election of Kafka's PartitionChangeBuilder
ONLINE_ELECTION: Final = "online"
PREFERRED_ELECTION: Final = "preferred"
UNCLEAN_ELECTION: Final = "unclean"

# decisions.unclean_allowed_by, beside the levels of the setting
BY_REQUEST: Final = "request"

# decisions.candidates.verdict, beside those of ``words``
NOT_REGISTERED: Final = "not_registered"
FENCED: Final = "fenced"
LEAVING: Final = "leaving"  # the broker this very event is about to take away
NOT_ASSIGNED: Final = "not_assigned"  # no replica of the partition (any more)
NOT_IN_ELR: Final = "not_in_elr"  # the ISR is empty, so the ELR decides

# partition_states.outcome, beside those of ``words``
CREATED: Final = "created"
CHANGED: Final = "changed"

# reasons, beside those of ``words``
LEADER_STAYS: Final = "the preferred replica may not lead, and the current leader may: it stays"
FIRST_ELIGIBLE: Final = "the ISR is empty: the first active replica of the ELR leads"
LAST_KNOWN_LEADS: Final = (
    "ISR and ELR are empty: the last known leader leads, though it may miss records"
)
LAST_KNOWN_MAY_NOT: Final = "ISR and ELR are empty and the last known leader is not active"
ELIGIBLE_DOWN: Final = "the ISR is empty and no member of the ELR is active"
MEMBERS_LEFT: Final = "replicas that are not active left the ISR"
TOPIC_CREATED: Final = "the partition was created"
REPLICAS_CHANGED: Final = "its replicas changed"
RECORD_CHANGED: Final = "its record changed in other fields"

# event_results.error: Kafka's own names, beside those of ``words``
BROKER_ID_NOT_REGISTERED: Final = "BROKER_ID_NOT_REGISTERED"
DUPLICATE_BROKER_REGISTRATION: Final = "DUPLICATE_BROKER_REGISTRATION"
FENCED_LEADER_EPOCH: Final = "FENCED_LEADER_EPOCH"
INVALID_PARTITIONS: Final = "INVALID_PARTITIONS"
INVALID_REGISTRATION: Final = "INVALID_REGISTRATION"
INVALID_REPLICATION_FACTOR: Final = "INVALID_REPLICATION_FACTOR"
INVALID_REQUEST: Final = "INVALID_REQUEST"
NEW_LEADER_ELECTED: Final = "NEW_LEADER_ELECTED"
NOT_LEADER_OR_FOLLOWER: Final = "NOT_LEADER_OR_FOLLOWER"
POLICY_VIOLATION: Final = "POLICY_VIOLATION"
STALE_BROKER_EPOCH: Final = "STALE_BROKER_EPOCH"
TOPIC_ALREADY_EXISTS: Final = "TOPIC_ALREADY_EXISTS"
UNKNOWN_TOPIC_ID: Final = "UNKNOWN_TOPIC_ID"
