package understudy.oracle;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.SortedSet;
import java.util.TreeSet;
import org.apache.kafka.common.TopicPartition;
import understudy.oracle.ControllerView.States;

/** The states at the end, beside those before, as rows; a missing key is null. */
final class Answer {

  private Answer() {}

  static ObjectNode of(
      JsonNode snapshot,
      States before,
      ControllerView controller,
      Journal journal,
      List<String> log) {
    States after = controller.states();
    ObjectNode answer = Json.object();
    answer.set("partition_states", partitionStates(snapshot, before, after, controller));
    answer.set("replica_states", replicaStates(before, after));
    answer.set("transitions", journal.transitions);
    answer.set("metadata_writes", journal.metadataWrites);
    answer.set("requests", journal.requests);
    answer.set("request_partitions", journal.requestPartitions);
    answer.set("event_results", journal.eventResults);
    ArrayNode lines = answer.putArray("log");
    log.forEach(lines::add);
    return answer;
  }

  private static ArrayNode partitionStates(
      JsonNode snapshot, States before, States after, ControllerView controller) {
    Map<TopicPartition, JsonNode> recorded = new HashMap<>();
    SortedSet<TopicPartition> partitions = new TreeSet<>(Partitions.BY_NAME);
    for (JsonNode topic : snapshot.path("topics")) {
      for (JsonNode partition : topic.path("partitions")) {
        String name = topic.get("name").textValue();
        TopicPartition key = new TopicPartition(name, partition.get("partition").intValue());
        partitions.add(key);
        if (!Json.missing(partition.get("state"))) {
          recorded.put(key, partition.get("state"));
        }
      }
    }
    partitions.addAll(controller.assigned());
    partitions.addAll(after.partitions().keySet());
    ArrayNode rows = Json.array();
    for (TopicPartition partition : partitions) {
      ObjectNode row = rows.addObject();
      row.put("topic", partition.topic()).put("partition", partition.partition());
      putIfKnown(row, "state_before", before.partitions().get(partition));
      putIfKnown(row, "state_after", after.partitions().get(partition));
      if (controller.assigned().contains(partition)) {
        controller.putAssignment(row, partition);
      }
      if (recorded.containsKey(partition)) {
        Record old = Record.of(recorded.get(partition));
        row.put("leader_before", old.leader()).put("leader_epoch_before", old.leaderEpoch());
        row.set("isr_before", Json.array(old.isr()));
      }
      controller.cached(partition).ifPresent(record -> putRecord(row, record));
    }
    return rows;
  }

  private static void putRecord(ObjectNode row, Record record) {
    row.put("leader", record.leader()).put("leader_epoch", record.leaderEpoch());
    row.set("isr", Json.array(record.isr()));
    row.put("partition_epoch", record.partitionEpoch());
    row.put("controller_epoch", record.controllerEpoch());
    if (Release.KNOWS_RECOVERY) {
      row.put("recovery", record.recovery());
    }
  }

  private static ArrayNode replicaStates(States before, States after) {
    SortedSet<ReplicaKey> replicas = new TreeSet<>(ReplicaKey.BY_NAME);
    replicas.addAll(before.replicas().keySet());
    replicas.addAll(after.replicas().keySet());
    ArrayNode rows = Json.array();
    for (ReplicaKey replica : replicas) {
      ObjectNode row = rows.addObject();
      row.put("topic", replica.partition().topic());
      row.put("partition", replica.partition().partition()).put("replica", replica.replica());
      putIfKnown(row, "state_before", before.replicas().get(replica));
      putIfKnown(row, "state_after", after.replicas().get(replica));
    }
    return rows;
  }

  private static void putIfKnown(ObjectNode row, String column, String value) {
    Optional.ofNullable(value).ifPresent(known -> row.put(column, known));
  }
}
