package org.apache.kafka.controller;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.SortedMap;
import java.util.TreeMap;
import org.apache.kafka.metadata.BrokerRegistration;

/** The states at the end, beside those before, as rows; a missing key is null. */
final class Answer {

  private Answer() {}

  static ObjectNode of(JsonNode snapshot, Cluster cluster, Journal journal) {
    ObjectNode answer = Json.object();
    answer.set("metadata_writes", journal.metadataWrites());
    answer.set("partition_states", partitionStates(snapshot, cluster));
    answer.set("broker_states", brokerStates(cluster));
    answer.set("event_results", journal.eventResults());
    answer.set("log", journal.failures());
    return answer.putNull("aborted");
  }

  private static ArrayNode partitionStates(JsonNode snapshot, Cluster cluster) {
    SortedMap<TopicPartitionName, ObjectNode> rows = new TreeMap<>();
    for (JsonNode topic : snapshot.get("topics")) {
      for (JsonNode partition : topic.get("partitions")) {
        TopicPartitionName name =
            new TopicPartitionName(
                topic.get("name").textValue(), partition.get("partition").intValue());
        ObjectNode row = rows.computeIfAbsent(name, Answer::row);
        if (partition.hasNonNull("state")) {
          JsonNode state = partition.get("state");
          row.set("leader_before", state.get("leader"));
          row.put("leader_epoch_before", Json.number(state, "leader_epoch", 0));
          row.set("isr_before", Json.ofNumbers(Json.numbers(state.get("isr"))));
        }
      }
    }
    cluster.eachPartition(
        (name, partition) ->
            Journal.putState(rows.computeIfAbsent(name, Answer::row), partition));
    return Json.array().addAll(rows.values());
  }

  private static ObjectNode row(TopicPartitionName name) {
    return Json.object().put("topic", name.topic()).put("partition", name.partition());
  }

  private static ArrayNode brokerStates(Cluster cluster) {
    ArrayNode rows = Json.array();
    for (BrokerRegistration broker : cluster.brokers()) {
      ObjectNode row = rows.addObject();
      row.put("broker_id", broker.id()).put("broker_epoch", broker.epoch());
      row.put("fenced", broker.fenced()).put("shutting_down", broker.inControlledShutdown());
      row.put("rack", broker.rack().orElse(null));
      row.set("log_dirs", Json.ofIds(broker.directories()));
    }
    return rows;
  }
}
