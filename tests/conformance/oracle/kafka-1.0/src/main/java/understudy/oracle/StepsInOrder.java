package understudy.oracle;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.TopicPartition;

/**
 * The steps of a rebalance, which elects one partition after the other, by topic, then partition.
 *
 * <p>Kafka takes the partitions in hash order; no step of one depends on those of another.
 */
final class StepsInOrder {

  private StepsInOrder() {}

  /** Renumbers the steps after {@code before}. */
  static void sort(Journal journal, int before) {
    Map<Integer, TopicPartition> about = new HashMap<>();
    journal.transitions.forEach(transition -> note(about, transition));
    List<Integer> steps = new ArrayList<>();
    for (int step = before + 1; step <= journal.step(); step++) {
      if (about.containsKey(step)) {
        steps.add(step);
      }
    }
    List<Integer> places = List.copyOf(steps);
    steps.sort(Comparator.comparing(about::get, Partitions.BY_NAME));
    Map<Integer, Integer> renumbered = new HashMap<>();
    for (int i = 0; i < steps.size(); i++) {
      renumbered.put(steps.get(i), places.get(i));
    }
    for (ArrayNode table :
        List.of(
            journal.transitions,
            journal.metadataWrites,
            journal.requests,
            journal.requestPartitions,
            journal.dropped)) {
      for (JsonNode row : table) {
        int step = row.get("step").intValue();
        ((ObjectNode) row).put("step", renumbered.getOrDefault(step, step));
      }
    }
  }

  private static void note(Map<Integer, TopicPartition> about, JsonNode row) {
    about.put(
        row.get("step").intValue(),
        new TopicPartition(row.get("topic").textValue(), row.get("partition").intValue()));
  }
}
