package understudy.oracle;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.SortedSet;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.kafka.common.TopicPartition;

/** What a controller did, as the rows of an answer. Switched off it notes nothing. */
final class Journal implements Writes {

  private static final Pattern STATE =
      Pattern.compile("/brokers/topics/([^/]+)/partitions/(\\d+)/state");
  private static final Pattern TOPIC = Pattern.compile("/brokers/topics/([^/]+)");

  final ArrayNode transitions = Json.array();
  final ArrayNode metadataWrites = Json.array();
  final ArrayNode requests = Json.array();
  final ArrayNode requestPartitions = Json.array();
  final ArrayNode dropped = Json.array();
  final ArrayNode eventResults = Json.array();

  /** Partitions of the LeaderAndIsr requests this event has sent so far, by broker. */
  private final Map<Integer, List<TopicPartition>> toldInEvent = new HashMap<>();

  /** Partitions that a broker was asked to delete by the controller now in office. */
  private final Map<Integer, Set<TopicPartition>> askedToDelete = new HashMap<>();

  private boolean on;
  private boolean controllerIsKnown;
  private int event;
  private int step;
  private boolean restoring;
  private TopicPartition assignmentLookedUp;

  void on(boolean on) {
    this.on = on;
  }

  boolean isOn() {
    return on;
  }

  void beginEvent() {
    event++;
    toldInEvent.clear();
  }

  int event() {
    return event;
  }

  void beginStep() {
    if (on) {
      step++;
    }
  }

  int step() {
    return step;
  }

  void newController(boolean isKnown) {
    controllerIsKnown = isKnown;
    askedToDelete.clear();
  }

  /** While partitions are added to a topic: a topic znode is then written back as a whole. */
  void restoring(boolean restoring) {
    this.restoring = restoring;
  }

  /** The topic znode does not say for which partition it is written: the one last looked up. */
  void lookedUpAssignment(TopicPartition partition) {
    assignmentLookedUp = partition;
  }

  List<TopicPartition> toldInEvent(int broker) {
    return toldInEvent.getOrDefault(broker, List.of());
  }

  boolean wasAskedToDelete(int broker, TopicPartition partition) {
    return askedToDelete.getOrDefault(broker, Set.of()).contains(partition);
  }

  void transition(
      String machine,
      TopicPartition partition,
      Integer replica,
      Object from,
      Object to,
      String result) {
    ObjectNode row = transitions.addObject();
    row.put("step", step).put("event", event).put("machine", machine);
    put(row, partition);
    if (replica != null) {
      row.put("replica", replica);
    }
    row.put("from_state", from.toString()).put("to_state", to.toString()).put("result", result);
  }

  void result(TopicPartition partition, String error) {
    ObjectNode row = eventResults.addObject().put("event", event);
    if (partition != null) {
      put(row, partition);
    }
    if (error != null) {
      row.put("error", error);
    }
  }

  // --- Requests --------------------------------------------------------------------------------

  boolean isControllerKnown() {
    return controllerIsKnown;
  }

  /** A request; what a release does not know is left to be added. */
  ObjectNode request(int broker, String kind) {
    return row(requests, broker, kind);
  }

  /** A request to a broker without a channel: built, but not sent. */
  ObjectNode droppedRequest(int broker, String kind) {
    return row(dropped, broker, kind);
  }

  private ObjectNode row(ArrayNode table, int broker, String kind) {
    ObjectNode row = table.addObject().put("step", step).put("event", event);
    return row.put("request", kind).put("broker_id", broker);
  }

  /** What a request says of one partition. */
  ObjectNode body(int broker, String kind, TopicPartition partition) {
    ObjectNode row = requestPartitions.addObject();
    row.put("step", step).put("request", kind).put("broker_id", broker);
    put(row, partition);
    return row;
  }

  void told(int broker, TopicPartition partition) {
    toldInEvent.computeIfAbsent(broker, any -> new ArrayList<>()).add(partition);
  }

  void askedToDelete(int broker, TopicPartition partition) {
    askedToDelete.computeIfAbsent(broker, any -> new HashSet<>()).add(partition);
  }

  // --- Durable writes --------------------------------------------------------------------------

  @Override
  public void created(String path, byte[] data, int version) {
    written(path, data, version);
  }

  @Override
  public void set(String path, byte[] before, byte[] data, int version) {
    Matcher topic = TOPIC.matcher(path);
    if (topic.matches()) {
      assignment(topic.group(1), Json.parse(before), Json.parse(data));
    } else {
      written(path, data, version);
    }
  }

  @Override
  public void deleted(String path) {
    Matcher topic = TOPIC.matcher(path);
    if (on && topic.matches()) {
      write("delete_topic").put("topic", topic.group(1));
    }
  }

  private void written(String path, byte[] data, int version) {
    Matcher state = STATE.matcher(path);
    if (!on || !state.matches()) {
      return;
    }
    JsonNode record = Json.parse(data);
    ObjectNode row = write("state");
    row.put("topic", state.group(1)).put("partition", Integer.parseInt(state.group(2)));
    row.put("leader", record.get("leader").intValue());
    row.put("leader_epoch", record.get("leader_epoch").intValue());
    row.set("isr", Json.array(Json.numbers(record.get("isr"))));
    row.put("partition_epoch", version);
    row.put("controller_epoch", record.get("controller_epoch").intValue());
    if (Release.KNOWS_RECOVERY) {
      row.put("recovery", record.path("leader_recovery_state").asInt(0));
    }
  }

  /** Giving a topic its id writes the same znode and says nothing of the assignment. */
  private void assignment(String topic, JsonNode before, JsonNode after) {
    boolean idGiven = Json.missing(before.get("topic_id")) && !Json.missing(after.get("topic_id"));
    if (!on || idGiven) {
      return;
    }
    SortedSet<Integer> partitions = new TreeSet<>();
    if (restoring) {
      after
          .path("partitions")
          .fieldNames()
          .forEachRemaining(number -> partitions.add(Integer.valueOf(number)));
    } else {
      partitions.add(assignmentLookedUp.partition());
    }
    for (int partition : partitions) {
      String key = String.valueOf(partition);
      ObjectNode row = write("assignment").put("topic", topic).put("partition", partition);
      row.set("replicas", Json.array(Json.numbers(after.path("partitions").get(key))));
      if (after.has("adding_replicas")) {
        row.set("adding", Json.array(Json.numbers(after.path("adding_replicas").get(key))));
        row.set("removing", Json.array(Json.numbers(after.path("removing_replicas").get(key))));
      }
    }
  }

  private ObjectNode write(String kind) {
    return metadataWrites
        .addObject()
        .put("seq", metadataWrites.size())
        .put("step", step)
        .put("event", event)
        .put("kind", kind);
  }

  private static void put(ObjectNode row, TopicPartition partition) {
    row.put("topic", partition.topic()).put("partition", partition.partition());
  }
}
