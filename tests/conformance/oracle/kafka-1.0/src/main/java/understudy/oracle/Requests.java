package understudy.oracle;

import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.BasePartitionState;
import org.apache.kafka.common.requests.LeaderAndIsrRequest;
import org.apache.kafka.common.requests.StopReplicaRequest;
import org.apache.kafka.common.requests.UpdateMetadataRequest;

/** Control requests of Kafka 1.0 as rows of the journal. */
final class Requests {

  private static final String LEADER_AND_ISR = "LEADER_AND_ISR";
  private static final String UPDATE_METADATA = "UPDATE_METADATA";
  private static final String STOP_REPLICA = "STOP_REPLICA";

  private final Journal journal;

  Requests(Journal journal) {
    this.journal = journal;
  }

  /** {@code heard}: whether anybody waits for the answer, as in the deletion of a topic. */
  void note(int broker, boolean connected, AbstractRequest request, boolean heard) {
    if (!journal.isOn()) {
      return;
    }
    if (request instanceof LeaderAndIsrRequest leaderAndIsr) {
      ObjectNode row = row(broker, connected, LEADER_AND_ISR, request);
      put(row, leaderAndIsr.controllerId(), leaderAndIsr.controllerEpoch());
      row.put("partition_count", leaderAndIsr.partitionStates().size());
      if (connected) {
        leaderAndIsr(broker, leaderAndIsr);
      }
    } else if (request instanceof UpdateMetadataRequest updateMetadata) {
      ObjectNode row = row(broker, connected, UPDATE_METADATA, request);
      put(row, updateMetadata.controllerId(), updateMetadata.controllerEpoch());
      row.put("partition_count", updateMetadata.partitionStates().size());
      if (connected) {
        updateMetadata(broker, updateMetadata);
      }
    } else {
      StopReplicaRequest stopReplica = (StopReplicaRequest) request;
      ObjectNode row = row(broker, connected, STOP_REPLICA, request);
      put(row, stopReplica.controllerId(), stopReplica.controllerEpoch());
      row.put("partition_count", stopReplica.partitions().size());
      if (connected) {
        stopReplica(broker, stopReplica, heard);
      }
    }
  }

  private ObjectNode row(int broker, boolean connected, String kind, AbstractRequest request) {
    ObjectNode row =
        connected ? journal.request(broker, kind) : journal.droppedRequest(broker, kind);
    return row.put("version", (int) request.version());
  }

  private void put(ObjectNode row, int controller, int epoch) {
    if (journal.isControllerKnown()) {
      row.put("controller_id", controller);
    }
    row.put("controller_epoch", epoch);
  }

  private void leaderAndIsr(int broker, LeaderAndIsrRequest request) {
    request
        .partitionStates()
        .forEach(
            (partition, state) -> {
              journal.told(broker, partition);
              body(broker, LEADER_AND_ISR, partition, state.basePartitionState)
                  .put("is_new", state.isNew);
            });
  }

  private void updateMetadata(int broker, UpdateMetadataRequest request) {
    request
        .partitionStates()
        .forEach(
            (partition, state) ->
                body(broker, UPDATE_METADATA, partition, state.basePartitionState)
                    .set("offline_replicas", Json.array(state.offlineReplicas)));
  }

  private void stopReplica(int broker, StopReplicaRequest request, boolean heard) {
    for (TopicPartition partition : request.partitions()) {
      journal
          .body(broker, STOP_REPLICA, partition)
          .put("delete_partition", request.deletePartitions());
      if (request.deletePartitions() && heard) {
        journal.askedToDelete(broker, partition);
      }
    }
  }

  private ObjectNode body(
      int broker, String kind, TopicPartition partition, BasePartitionState state) {
    ObjectNode row = journal.body(broker, kind, partition);
    row.put("leader", state.leader).put("leader_epoch", state.leaderEpoch);
    row.set("isr", Json.array(state.isr));
    row.put("partition_epoch", state.zkVersion).put("controller_epoch", state.controllerEpoch);
    row.set("replicas", Json.array(state.replicas));
    return row;
  }
}
