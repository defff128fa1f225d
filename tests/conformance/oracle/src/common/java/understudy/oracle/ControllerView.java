package understudy.oracle;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.kafka.common.TopicPartition;

/** What an answer tells of a controller. */
interface ControllerView {

  /** The states of a controller at one moment. */
  record States(Map<TopicPartition, String> partitions, Map<ReplicaKey, String> replicas) {
    static final States UNKNOWN = new States(Map.of(), Map.of());
  }

  States states();

  Set<TopicPartition> assigned();

  /** Adds the columns of an assigned partition's replicas. */
  void putAssignment(ObjectNode row, TopicPartition partition);

  Optional<Record> cached(TopicPartition partition);
}
