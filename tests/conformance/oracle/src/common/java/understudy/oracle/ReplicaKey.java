package understudy.oracle;

import java.util.Comparator;
import org.apache.kafka.common.TopicPartition;

/** A replica of a partition, whatever class a release has for it. */
record ReplicaKey(TopicPartition partition, int replica) {

  static final Comparator<ReplicaKey> BY_NAME =
      Comparator.comparing(ReplicaKey::partition, Partitions.BY_NAME)
          .thenComparing(ReplicaKey::replica);
}
