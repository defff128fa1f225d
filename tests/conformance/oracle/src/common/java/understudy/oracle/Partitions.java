package understudy.oracle;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.List;
import org.apache.kafka.common.TopicPartition;

/** Partitions as documents name them, and their order wherever none is Kafka's own. */
final class Partitions {

  static final Comparator<TopicPartition> BY_NAME =
      Comparator.comparing(TopicPartition::topic).thenComparing(TopicPartition::partition);

  private Partitions() {}

  static TopicPartition named(String name) {
    int dash = name.lastIndexOf('-');
    return new TopicPartition(name.substring(0, dash), Integer.parseInt(name.substring(dash + 1)));
  }

  static List<TopicPartition> named(JsonNode names) {
    List<TopicPartition> partitions = new ArrayList<>();
    Json.texts(names).forEach(name -> partitions.add(named(name)));
    return partitions;
  }

  static List<TopicPartition> sorted(Collection<TopicPartition> partitions) {
    List<TopicPartition> sorted = new ArrayList<>(partitions);
    sorted.sort(BY_NAME);
    return sorted;
  }
}
