package org.apache.kafka.controller;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import org.apache.kafka.common.metadata.BrokerRegistrationChangeRecord;
import org.apache.kafka.common.metadata.FenceBrokerRecord;
import org.apache.kafka.common.metadata.PartitionChangeRecord;
import org.apache.kafka.common.metadata.PartitionRecord;
import org.apache.kafka.common.metadata.RegisterBrokerRecord;
import org.apache.kafka.common.metadata.RemoveTopicRecord;
import org.apache.kafka.common.metadata.TopicRecord;
import org.apache.kafka.common.metadata.UnfenceBrokerRecord;
import org.apache.kafka.common.metadata.UnregisterBrokerRecord;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.metadata.PartitionRegistration;
import org.apache.kafka.server.common.ApiMessageAndVersion;

/** What was written to the log and what was answered, as rows. */
final class Journal {

  private static final int NO_LEADER_CHANGE = -2;
  private static final byte NO_RECOVERY_CHANGE = -1;
  private static final byte NO_CHANGE = 0; // of fencing and controlled shutdown
  private static final int FIRST_CHANGE_WITH_DIRECTORIES = 2;

  private static final Comparator<ObjectNode> BY_PARTITION =
      Comparator.comparing((ObjectNode row) -> row.get("topic").textValue())
          .thenComparing(row -> row.get("partition").intValue());
  private static final Comparator<ObjectNode> RESULTS =
      Comparator.comparing((ObjectNode row) -> row.get("event").intValue())
          .thenComparing(row -> row.get("topic").asText())
          .thenComparing(row -> row.get("partition").asInt())
          .thenComparing(row -> row.get("broker_id").asInt());

  private final List<ObjectNode> writes = new ArrayList<>();
  private final List<ObjectNode> results = new ArrayList<>();
  private final ArrayNode failures = Json.array();
  private int event = 0;

  void beginEvent() {
    event++;
  }

  ArrayNode metadataWrites() {
    for (int place = 0; place < writes.size(); place++) {
      writes.get(place).put("seq", place + 1);
    }
    return Json.array().addAll(writes);
  }

  ArrayNode eventResults() {
    return Json.array().addAll(results.stream().sorted(RESULTS).toList());
  }

  /** Kafka's own words of what made controllers resign. */
  ArrayNode failures() {
    return failures;
  }

  void resigned(RuntimeException failure) {
    refused(Errors.UNKNOWN_SERVER_ERROR.name());
    failures.add("event " + event + ": " + failure);
  }

  void result(TopicPartitionName partition, String error) {
    result(partition.topic(), partition.partition(), null, error);
  }

  void refusedTopic(String topic, String error) {
    result(topic, null, null, error);
  }

  void refusedBroker(int broker, String error) {
    result(null, null, broker, error);
  }

  void refused(String error) {
    result(null, null, null, error);
  }

  void result(String topic, Integer partition, Integer broker, String error) {
    ObjectNode row = Json.object().put("event", event);
    row.put("topic", topic).put("partition", partition).put("broker_id", broker);
    results.add(row.put("error", error));
  }

  /** One operation's records as they are applied, runs of partition changes in a fixed order. */
  void apply(List<ApiMessageAndVersion> records, Cluster cluster) {
    int runStart = writes.size();
    for (ApiMessageAndVersion record : records) {
      cluster.append(record.message());
      boolean isChange = record.message() instanceof PartitionChangeRecord;
      if (!isChange) {
        writes.subList(runStart, writes.size()).sort(BY_PARTITION);
      }
      writes.add(row(record, cluster));
      if (!isChange) {
        runStart = writes.size();
      }
    }
    writes.subList(runStart, writes.size()).sort(BY_PARTITION);
  }

  private ObjectNode row(ApiMessageAndVersion written, Cluster cluster) {
    ApiMessage message = written.message();
    ObjectNode row = Json.object().put("seq", 0).put("event", event).put("kind", "record");
    row.put("record", message.getClass().getSimpleName()).put("version", written.version());
    row.putNull("topic").putNull("partition").putNull("broker_id");
    ObjectNode changed = row.putObject("changed");
    if (message instanceof PartitionChangeRecord record) {
      putChange(changed, record);
      String topic = cluster.topicName(record.topicId());
      putPartition(row, new TopicPartitionName(topic, record.partitionId()), cluster);
    } else if (message instanceof PartitionRecord record) {
      String topic = cluster.topicName(record.topicId());
      putPartition(row, new TopicPartitionName(topic, record.partitionId()), cluster);
    } else if (message instanceof TopicRecord record) {
      row.put("topic", record.name());
    } else if (message instanceof RemoveTopicRecord record) {
      row.put("topic", cluster.topicName(record.topicId()));
    } else {
      row.put("broker_id", putBroker(changed, message, written.version()));
    }
    return row;
  }

  private static void putPartition(ObjectNode row, TopicPartitionName name, Cluster cluster) {
    row.put("topic", name.topic()).put("partition", name.partition());
    putState(row, cluster.partition(name));
  }

  static void putState(ObjectNode row, PartitionRegistration partition) {
    row.put("leader", partition.leader).put("leader_epoch", partition.leaderEpoch);
    row.set("isr", Json.ofNumbers(partition.isr));
    row.put("partition_epoch", partition.partitionEpoch);
    row.put("recovery", partition.leaderRecoveryState.value());
    row.set("elr", Json.ofNumbers(partition.elr));
    row.set("last_known_elr", Json.ofNumbers(partition.lastKnownElr));
    row.set("replicas", Json.ofNumbers(partition.replicas));
    row.set("adding", Json.ofNumbers(partition.addingReplicas));
    row.set("removing", Json.ofNumbers(partition.removingReplicas));
    row.set("directories", Json.ofIds(Arrays.asList(partition.directories)));
  }

  private static void putChange(ObjectNode changed, PartitionChangeRecord record) {
    if (record.leader() != NO_LEADER_CHANGE) {
      changed.put("leader", record.leader());
    }
    putNumbers(changed, "isr", record.isr());
    putNumbers(changed, "replicas", record.replicas());
    putNumbers(changed, "adding", record.addingReplicas());
    putNumbers(changed, "removing", record.removingReplicas());
    if (record.leaderRecoveryState() != NO_RECOVERY_CHANGE) {
      changed.put("recovery", record.leaderRecoveryState());
    }
    putNumbers(changed, "elr", record.eligibleLeaderReplicas());
    putNumbers(changed, "last_known_elr", record.lastKnownElr());
    if (record.directories() != null) {
      changed.set("directories", Json.ofIds(record.directories()));
    }
  }

  private static void putNumbers(ObjectNode changed, String field, List<Integer> numbers) {
    if (numbers != null) {
      changed.set(field, Json.ofNumbers(numbers));
    }
  }

  /** What a record says of a broker; gives the broker's id. */
  private static int putBroker(ObjectNode changed, ApiMessage message, short version) {
    if (message instanceof RegisterBrokerRecord record) {
      changed.put("broker_epoch", record.brokerEpoch()).put("fenced", record.fenced());
      changed.put("shutting_down", record.inControlledShutdown()).put("rack", record.rack());
      changed.set("log_dirs", Json.ofIds(record.logDirs()));
      return record.brokerId();
    }
    if (message instanceof BrokerRegistrationChangeRecord record) {
      changed.put("broker_epoch", record.brokerEpoch());
      if (record.fenced() != NO_CHANGE) {
        changed.put("fenced", record.fenced() > 0);
      }
      if (record.inControlledShutdown() != NO_CHANGE) {
        changed.put("shutting_down", true);
      }
      if (version >= FIRST_CHANGE_WITH_DIRECTORIES) {
        changed.set("log_dirs", Json.ofIds(record.logDirs()));
      }
      return record.brokerId();
    }
    if (message instanceof UnregisterBrokerRecord record) {
      changed.put("broker_epoch", record.brokerEpoch());
      return record.brokerId();
    }
    if (message instanceof FenceBrokerRecord record) {
      changed.put("broker_epoch", record.epoch()).put("fenced", true);
      return record.id();
    }
    if (message instanceof UnfenceBrokerRecord record) {
      changed.put("broker_epoch", record.epoch()).put("fenced", false);
      return record.id();
    }
    throw new IllegalStateException("no row is known for " + message);
  }
}
