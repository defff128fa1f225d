package understudy.oracle;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.Properties;
import java.util.Set;
import java.util.SortedSet;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.common.TopicPartition;

/** A cluster around its controller: what stands in ZooKeeper, and what a new controller is told. */
final class Cluster {

  private static final String BROKERS = "/brokers/ids";
  private static final String TOPICS = "/brokers/topics";
  private static final String DELETIONS = "/admin/delete_topics";
  private static final String TOPIC_CONFIGS = "/config/topics";
  private static final String CONTROLLER = "/controller";
  private static final String CONTROLLER_EPOCH = "/controller_epoch";
  private static final String UNCLEAN = "unclean.leader.election.enable";
  private static final List<String> SETTINGS_THAT_DECIDE = List.of(UNCLEAN, "delete.topic.enable");

  final ZooKeeperTree tree = new ZooKeeperTree();

  /** Brokers known to be shutting down, and replicas known to be on offline directories. */
  final Set<Integer> shuttingDown = new HashSet<>();

  final Map<Integer, Set<TopicPartition>> offlineDirs = new HashMap<>();

  private final JsonNode document;
  private final Map<Integer, JsonNode> described = new TreeMap<>();
  private final Map<String, String> defaults = new HashMap<>();
  private long highestEpoch;

  Cluster(JsonNode document) {
    this.document = document;
    for (JsonNode broker : document.path("brokers")) {
      described.put(broker.get("id").intValue(), broker);
      highestEpoch = Math.max(highestEpoch, broker.path("epoch").asLong(0));
    }
    take(defaults, document.path("static_configs"));
    take(defaults, document.path("configs"));
    for (String path :
        List.of(
            BROKERS, TOPICS, DELETIONS, TOPIC_CONFIGS, "/isr_change_notification",
            "/log_dir_event_notification")) {
      tree.put(path, null);
    }
  }

  private static void take(Map<String, String> into, JsonNode configs) {
    configs.fields().forEachRemaining(entry -> into.put(entry.getKey(), entry.getValue().asText()));
  }

  // --- The snapshot ----------------------------------------------------------------------------

  /** Everything the snapshot says is in ZooKeeper, but for the controller's own znodes. */
  void fillTree() {
    for (JsonNode broker : described.values()) {
      int id = broker.get("id").intValue();
      if (broker.path("alive").asBoolean(true)) {
        register(id, broker.path("epoch").asLong(0));
        if (broker.path("shutting_down").asBoolean(false)) {
          shuttingDown.add(id);
        }
      }
    }
    for (JsonNode topic : document.path("topics")) {
      fillTopic(topic);
    }
  }

  /** One topic of a snapshot; the number of its partitions. */
  int fillTopic(JsonNode topic) {
    String name = topic.get("name").textValue();
    ObjectNode assignment = emptyTopic();
    if (!Json.missing(topic.get("id"))) {
      assignment.put("topic_id", topic.get("id").textValue());
    }
    for (JsonNode partition : topic.path("partitions")) {
      int number = partition.get("partition").intValue();
      assign(assignment, "partitions", number, Json.numbers(partition.get("replicas")));
      assign(assignment, "adding_replicas", number, Json.numbers(partition.get("adding")));
      assign(assignment, "removing_replicas", number, Json.numbers(partition.get("removing")));
      TopicPartition key = new TopicPartition(name, number);
      for (int broker : Json.numbers(partition.get("offline_dirs"))) {
        offlineDirs.computeIfAbsent(broker, any -> new HashSet<>()).add(key);
      }
    }
    tree.put(TOPICS + "/" + name, Json.bytes(assignment));
    for (JsonNode partition : topic.path("partitions")) {
      JsonNode state = partition.get("state");
      if (!Json.missing(state)) {
        TopicPartition key = new TopicPartition(name, partition.get("partition").intValue());
        byte[] data = Json.bytes(Record.of(state).znode());
        tree.put(statePath(key), data, state.path("partition_epoch").asInt(0), 0);
      }
    }
    if (topic.path("queued_for_deletion").asBoolean(false)) {
      queueForDeletion(name);
    }
    if (topic.path("configs").size() > 0) {
      setConfigs(name, topic.get("configs"));
    }
    return topic.path("partitions").size();
  }

  int controllerEpoch() {
    return document.path("controller").path("epoch").asInt(0);
  }

  /** Nobody when the document does not say and no broker is alive. */
  OptionalInt controllerId() {
    JsonNode id = document.path("controller").get("id");
    return Json.missing(id) ? smallestLive() : OptionalInt.of(id.intValue());
  }

  OptionalInt smallestLive() {
    return registered().stream().mapToInt(Integer::intValue).min();
  }

  // --- What others write into ZooKeeper --------------------------------------------------------

  SortedSet<Integer> registered() {
    SortedSet<Integer> ids = new TreeSet<>();
    tree.children(BROKERS).forEach(id -> ids.add(Integer.parseInt(id)));
    return ids;
  }

  long nextEpoch() {
    return highestEpoch + 1;
  }

  void register(int broker, long epoch) {
    highestEpoch = Math.max(highestEpoch, epoch);
    ObjectNode data = Json.object();
    data.put("version", 4).put("host", "broker").put("port", 9092).put("jmx_port", -1);
    data.put("timestamp", "0");
    data.putArray("endpoints").add("PLAINTEXT://broker:9092");
    data.putObject("listener_security_protocol_map").put("PLAINTEXT", "PLAINTEXT");
    JsonNode rack = described.containsKey(broker) ? described.get(broker).get("rack") : null;
    if (!Json.missing(rack)) {
      data.put("rack", rack.textValue());
    }
    tree.put(BROKERS + "/" + broker, Json.bytes(data), 0, epoch);
  }

  void unregister(int broker) {
    tree.removeAll(BROKERS + "/" + broker);
  }

  /** A controller epoch of which the next controller to be elected takes the successor. */
  void vacateController(int epoch) {
    tree.removeAll(CONTROLLER);
    tree.put(CONTROLLER_EPOCH, String.valueOf(epoch).getBytes());
  }

  void vacateController() {
    tree.removeAll(CONTROLLER);
  }

  void putFeatures(ObjectNode features) {
    tree.put("/feature", Json.bytes(features));
  }

  boolean hasTopic(String topic) {
    return tree.get(TOPICS + "/" + topic) != null;
  }

  void addTopic(String topic, JsonNode partitions) {
    tree.put(TOPICS + "/" + topic, Json.bytes(withPartitions(emptyTopic(), partitions)));
  }

  void addPartitions(String topic, JsonNode partitions) {
    String path = TOPICS + "/" + topic;
    ObjectNode assignment = (ObjectNode) Json.parse(tree.get(path).data);
    tree.overwrite(path, Json.bytes(withPartitions(assignment, partitions)));
  }

  void removeTopic(String topic) {
    tree.removeAll(TOPICS + "/" + topic);
  }

  void queueForDeletion(String topic) {
    tree.put(DELETIONS + "/" + topic, null);
  }

  void enableUnclean(String topic) {
    String path = TOPIC_CONFIGS + "/" + topic;
    ObjectNode configs = Json.object();
    if (tree.get(path) != null) {
      configs.setAll((ObjectNode) Json.parse(tree.get(path).data).get("config"));
    }
    setConfigs(topic, configs.put(UNCLEAN, "true"));
  }

  void enableUncleanByDefault() {
    defaults.put(UNCLEAN, "true");
  }

  private void setConfigs(String topic, JsonNode configs) {
    ObjectNode data = Json.object().put("version", 1);
    data.set("config", configs);
    tree.put(TOPIC_CONFIGS + "/" + topic, Json.bytes(data));
  }

  /** The name of the notification. */
  String notifyLogDirFailure(int broker) {
    ObjectNode data = Json.object().put("version", 1).put("broker", broker).put("event", 1);
    String name = "log_dir_event_0000000000";
    tree.put("/log_dir_event_notification/" + name, Json.bytes(data));
    return name;
  }

  /** The name of the notification. */
  String notifyIsrChange(Iterable<TopicPartition> partitions) {
    ObjectNode data = Json.object().put("version", 1);
    for (TopicPartition partition : partitions) {
      data.withArray("partitions")
          .addObject()
          .put("topic", partition.topic())
          .put("partition", partition.partition());
    }
    String name = "isr_change_0000000000";
    tree.put("/isr_change_notification/" + name, Json.bytes(data));
    return name;
  }

  /** A leader of the days before AlterIsr writes the state znode itself. */
  void leaderWrites(TopicPartition partition, Record record) {
    tree.overwrite(statePath(partition), Json.bytes(record.znode()));
  }

  boolean hasState(TopicPartition partition) {
    return tree.get(statePath(partition)) != null;
  }

  /** The state znode as it stands. */
  Optional<Record> state(TopicPartition partition) {
    ZooKeeperTree.Node node = tree.get(statePath(partition));
    if (node == null) {
      return Optional.empty();
    }
    ObjectNode state = (ObjectNode) Json.parse(node.data);
    return Optional.of(Record.of(state.put("partition_epoch", node.version)));
  }

  /** The partitions that have a state znode, by topic and number. */
  SortedSet<TopicPartition> withState() {
    SortedSet<TopicPartition> found = new TreeSet<>(Partitions.BY_NAME);
    for (String topic : topics()) {
      for (String number : tree.children(TOPICS + "/" + topic + "/partitions")) {
        TopicPartition partition = new TopicPartition(topic, Integer.parseInt(number));
        if (hasState(partition)) {
          found.add(partition);
        }
      }
    }
    return found;
  }

  SortedSet<String> topics() {
    return tree.children(TOPICS);
  }

  SortedSet<String> queuedForDeletion() {
    return tree.children(DELETIONS);
  }

  private static String statePath(TopicPartition key) {
    return TOPICS + "/" + key.topic() + "/partitions/" + key.partition() + "/state";
  }

  private static ObjectNode emptyTopic() {
    ObjectNode topic = Json.object().put("version", 3);
    topic.putObject("partitions");
    topic.putObject("adding_replicas");
    topic.putObject("removing_replicas");
    return topic;
  }

  /** Partitions that the topic already has stay as they are. */
  private static ObjectNode withPartitions(ObjectNode topic, JsonNode partitions) {
    partitions
        .fields()
        .forEachRemaining(
            entry -> {
              int number = Integer.parseInt(entry.getKey());
              if (!topic.get("partitions").has(entry.getKey())) {
                assign(topic, "partitions", number, Json.numbers(entry.getValue()));
              }
            });
    return topic;
  }

  private static void assign(ObjectNode topic, String list, int partition, List<Integer> replicas) {
    boolean always = list.equals("partitions");
    if (always || !replicas.isEmpty()) {
      ((ObjectNode) topic.get(list)).set(String.valueOf(partition), Json.array(replicas));
    }
  }

  // --- The controller's properties -------------------------------------------------------------

  /** A broker's own dynamic settings win over the cluster's, those over the properties file. */
  Properties properties(int controller, int imbalancePercentage) {
    Map<String, String> settings = new HashMap<>(defaults);
    if (described.containsKey(controller)) {
      take(settings, described.get(controller).path("configs"));
    }
    Properties properties = new Properties();
    properties.put("broker.id", String.valueOf(controller));
    properties.put("broker.id.generation.enable", "false");
    properties.put("zookeeper.connect", "memory:2181");
    properties.put("listeners", "PLAINTEXT://broker:9092");
    properties.put("auto.leader.rebalance.enable", "false");
    properties.put("inter.broker.protocol.version", protocol());
    properties.put("leader.imbalance.per.broker.percentage", String.valueOf(imbalancePercentage));
    settings.keySet().retainAll(SETTINGS_THAT_DECIDE);
    properties.putAll(settings);
    return properties;
  }

  String protocol() {
    JsonNode version = document.get("metadata_version");
    return Json.missing(version) ? Release.NEWEST_PROTOCOL : version.textValue();
  }
}
