package understudy.oracle;

import java.util.HashSet;
import java.util.Set;
import kafka.controller.ControllerContext;
import kafka.controller.PartitionAndReplica;
import kafka.controller.PartitionState;
import kafka.controller.ReplicaAssignment;
import kafka.controller.ReplicaState;
import org.apache.kafka.common.TopicPartition;
import scala.jdk.javaapi.CollectionConverters;

/** Kafka's controller context that also says which states were set, even to what they were. */
final class RecordingContext extends ControllerContext {

  private final Journal journal;
  private final Set<Object> set = new HashSet<>();
  private final PartitionsInOrder reassigning = new PartitionsInOrder();

  RecordingContext(Journal journal) {
    this.journal = journal;
    Reflection.set(
        this,
        ControllerContext.class,
        "partitionsBeingReassigned",
        CollectionConverters.asScala(reassigning));
  }

  PartitionsInOrder reassigning() {
    return reassigning;
  }

  /** The partitions and replicas whose state was set since the last call. */
  Set<Object> takeSet() {
    Set<Object> taken = new HashSet<>(set);
    set.clear();
    return taken;
  }

  @Override
  public void putReplicaState(PartitionAndReplica replica, ReplicaState state) {
    super.putReplicaState(replica, state);
    noteSet(replica);
  }

  @Override
  public void removeReplicaState(PartitionAndReplica replica) {
    super.removeReplicaState(replica);
    noteSet(replica);
  }

  @Override
  public void putPartitionState(TopicPartition partition, PartitionState state) {
    super.putPartitionState(partition, state);
    noteSet(partition);
  }

  @Override
  public ReplicaAssignment partitionFullReplicaAssignment(TopicPartition partition) {
    journal.lookedUpAssignment(partition);
    return super.partitionFullReplicaAssignment(partition);
  }

  private void noteSet(Object what) {
    if (journal.isOn()) {
      set.add(what);
    }
  }
}
