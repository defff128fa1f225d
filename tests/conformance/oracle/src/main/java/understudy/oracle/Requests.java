package understudy.oracle;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.message.LeaderAndIsrRequestData.LeaderAndIsrPartitionState;
import org.apache.kafka.common.message.StopReplicaRequestData.StopReplicaPartitionState;
import org.apache.kafka.common.message.StopReplicaRequestData.StopReplicaTopicState;
import org.apache.kafka.common.message.UpdateMetadataRequestData.UpdateMetadataPartitionState;
import org.apache.kafka.common.requests.AbstractControlRequest;
import org.apache.kafka.common.requests.LeaderAndIsrRequest;
import org.apache.kafka.common.requests.StopReplicaRequest;
import org.apache.kafka.common.requests.UpdateMetadataRequest;

/** Control requests as rows of the journal. */
final class Requests {

  private final Journal journal;

  Requests(Journal journal) {
    this.journal = journal;
  }

  void note(
      int broker, AbstractControlRequest.Builder<? extends AbstractControlRequest> builder) {
    if (!journal.isOn()) {
      return;
    }
    AbstractControlRequest request = builder.build();
    String kind = request.apiKey().name();
    int count;
    if (request instanceof LeaderAndIsrRequest leaderAndIsr) {
      count = leaderAndIsr(broker, leaderAndIsr, kind);
    } else if (request instanceof UpdateMetadataRequest updateMetadata) {
      count = updateMetadata(broker, updateMetadata, kind);
    } else {
      count = stopReplica(broker, (StopReplicaRequest.Builder) builder, kind);
    }
    ObjectNode row = journal.request(broker, kind);
    row.put("broker_epoch", request.brokerEpoch());
    if (journal.isControllerKnown()) {
      row.put("controller_id", request.controllerId());
    }
    row.put("controller_epoch", request.controllerEpoch());
    row.put("version", (int) request.version()).put("partition_count", count);
  }

  private int leaderAndIsr(int broker, LeaderAndIsrRequest request, String kind) {
    int count = 0;
    for (LeaderAndIsrPartitionState state : request.partitionStates()) {
      TopicPartition partition = new TopicPartition(state.topicName(), state.partitionIndex());
      journal.told(broker, partition);
      ObjectNode row = journal.body(broker, kind, partition);
      row.put("leader", state.leader()).put("leader_epoch", state.leaderEpoch());
      row.set("isr", Json.array(state.isr()));
      row.put("partition_epoch", Release.partitionEpoch(state));
      row.put("controller_epoch", state.controllerEpoch());
      row.set("replicas", Json.array(state.replicas()));
      row.set("adding", Json.array(state.addingReplicas()));
      row.set("removing", Json.array(state.removingReplicas()));
      row.put("is_new", state.isNew());
      Release.recovery(state, request.version()).ifPresent(r -> row.put("recovery", (int) r));
      count++;
    }
    return count;
  }

  private int updateMetadata(int broker, UpdateMetadataRequest request, String kind) {
    int count = 0;
    for (UpdateMetadataPartitionState state : request.partitionStates()) {
      ObjectNode row =
          journal.body(broker, kind, new TopicPartition(state.topicName(), state.partitionIndex()));
      row.put("leader", state.leader()).put("leader_epoch", state.leaderEpoch());
      row.set("isr", Json.array(state.isr()));
      row.put("partition_epoch", state.zkVersion());
      row.put("controller_epoch", state.controllerEpoch());
      row.set("replicas", Json.array(state.replicas()));
      row.set("offline_replicas", Json.array(state.offlineReplicas()));
      count++;
    }
    return count;
  }

  /** Read from the builder: old versions lose epochs and flags when the request is built. */
  @SuppressWarnings("unchecked")
  private int stopReplica(int broker, StopReplicaRequest.Builder builder, String kind) {
    int count = 0;
    Object topics = Reflection.get(builder, StopReplicaRequest.Builder.class, "topicStates");
    for (StopReplicaTopicState topic : (List<StopReplicaTopicState>) topics) {
      for (StopReplicaPartitionState state : topic.partitionStates()) {
        TopicPartition partition = new TopicPartition(topic.topicName(), state.partitionIndex());
        journal
            .body(broker, kind, partition)
            .put("leader_epoch", state.leaderEpoch())
            .put("delete_partition", state.deletePartition());
        if (state.deletePartition()) {
          journal.askedToDelete(broker, partition);
        }
        count++;
      }
    }
    return count;
  }
}
