package understudy.oracle;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;

/** A partition's leadership record, in its state znode or in the controller's cache. */
record Record(
    int leader,
    int leaderEpoch,
    List<Integer> isr,
    int partitionEpoch,
    int controllerEpoch,
    int recovery) {

  static Record of(JsonNode state) {
    return new Record(
        state.path("leader").asInt(-1),
        state.path("leader_epoch").asInt(0),
        Json.numbers(state.get("isr")),
        state.path("partition_epoch").asInt(0),
        state.path("controller_epoch").asInt(0),
        state.path("recovery").asInt(0));
  }

  /** As Kafka writes it: the recovery state only where it says something. */
  ObjectNode znode() {
    ObjectNode node = Json.object().put("version", 1);
    node.put("leader", leader).put("leader_epoch", leaderEpoch);
    node.put("controller_epoch", controllerEpoch);
    node.set("isr", Json.array(isr));
    if (recovery != 0) {
      node.put("leader_recovery_state", recovery);
    }
    return node;
  }

  Record with(List<Integer> newIsr) {
    return new Record(leader, leaderEpoch, newIsr, partitionEpoch, controllerEpoch, 0);
  }
}
