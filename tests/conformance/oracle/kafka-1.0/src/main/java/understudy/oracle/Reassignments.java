package understudy.oracle;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.List;
import java.util.SortedMap;
import java.util.TreeMap;
import org.apache.kafka.common.TopicPartition;

/** The znode by which reassignments were asked for: a target for each partition. */
final class Reassignments {

  private static final String PATH = "/admin/reassign_partitions";

  private final ZooKeeperTree tree;

  Reassignments(ZooKeeperTree tree) {
    this.tree = tree;
  }

  /** A snapshot says adding and removing: the target is what is not being removed. */
  void fill(JsonNode snapshot) {
    SortedMap<TopicPartition, List<Integer>> targets = new TreeMap<>(Partitions.BY_NAME);
    for (JsonNode topic : snapshot.path("topics")) {
      for (JsonNode partition : topic.path("partitions")) {
        List<Integer> removing = Json.numbers(partition.get("removing"));
        if (!removing.isEmpty() || !Json.numbers(partition.get("adding")).isEmpty()) {
          List<Integer> target = new ArrayList<>(Json.numbers(partition.get("replicas")));
          target.removeAll(removing);
          String name = topic.get("name").textValue();
          targets.put(new TopicPartition(name, partition.get("partition").intValue()), target);
        }
      }
    }
    if (!targets.isEmpty()) {
      write(targets);
    }
  }

  void ask(TopicPartition partition, List<Integer> target) {
    SortedMap<TopicPartition, List<Integer>> targets = targets();
    targets.put(partition, target);
    write(targets);
  }

  SortedMap<TopicPartition, List<Integer>> targets() {
    SortedMap<TopicPartition, List<Integer>> targets = new TreeMap<>(Partitions.BY_NAME);
    if (tree.get(PATH) != null) {
      for (JsonNode asked : Json.parse(tree.get(PATH).data).path("partitions")) {
        String topic = asked.get("topic").textValue();
        targets.put(
            new TopicPartition(topic, asked.get("partition").intValue()),
            Json.numbers(asked.get("replicas")));
      }
    }
    return targets;
  }

  private void write(SortedMap<TopicPartition, List<Integer>> targets) {
    ObjectNode data = Json.object().put("version", 1);
    targets.forEach(
        (partition, target) ->
            data.withArray("partitions")
                .addObject()
                .put("topic", partition.topic())
                .put("partition", partition.partition())
                .set("replicas", Json.array(target)));
    tree.put(PATH, Json.bytes(data));
  }
}
