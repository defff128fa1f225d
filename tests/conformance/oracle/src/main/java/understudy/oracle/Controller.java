package understudy.oracle;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.NoSuchElementException;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.Properties;
import java.util.Set;
import kafka.controller.ControllerDeletionClient;
import kafka.controller.ControllerEvent;
import kafka.controller.KafkaController;
import kafka.controller.LeaderIsrAndControllerEpoch;
import kafka.controller.NewPartition$;
import kafka.controller.OfflinePartition$;
import kafka.controller.OfflineReplica$;
import kafka.controller.OnlinePartition$;
import kafka.controller.OnlineReplica$;
import kafka.controller.PartitionAndReplica;
import kafka.controller.PartitionState;
import kafka.controller.ReplicaAssignment;
import kafka.controller.Startup$;
import kafka.controller.StateChangeLogger;
import kafka.controller.TopicDeletionManager;
import kafka.server.KafkaConfig;
import kafka.zk.KafkaZkClient;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.utils.Time;
import scala.Option;
import scala.Tuple2;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Kafka's controller of one broker, its event thread not started: it processes what it is given.
 *
 * <p>Around it stand our ZooKeeper, channels and journal; every rule is Kafka's own code.
 */
final class Controller implements ControllerView {

  private static final int DEFAULT_PERCENTAGE = 10;

  final OptionalInt id;
  final RecordingContext context;
  final KafkaConfig config;

  private final KafkaController kafka;
  private final Cluster cluster;
  private final Journal journal;
  private final RecordingMachines.Replicas replicas;
  private final RecordingMachines.Partitions partitions;
  private final Metrics metrics = new Metrics();
  private final List<String> log;

  Controller(OptionalInt id, Cluster cluster, Journal journal, List<String> log) {
    this.id = id;
    this.cluster = cluster;
    this.journal = journal;
    this.log = log;
    Properties properties = cluster.properties(broker(), DEFAULT_PERCENTAGE);
    config = KafkaConfig.fromProps(properties, false);
    if (config.isFeatureVersioningSupported()) {
      cluster.putFeatures(Release.featureZNode(cluster.protocol()));
    }
    KafkaZkClient client =
        Release.zkClient(MemoryZooKeeperClient.over(cluster.tree, journal), Time.SYSTEM);
    context = new RecordingContext(journal);
    kafka = Release.controller(config, client, metrics);
    Channels channels = new Channels(config, metrics, context, journal, this::tellWhatIsKnown);
    StateChangeLogger logger = new StateChangeLogger(broker(), true, Option.empty());
    replicas =
        new RecordingMachines.Replicas(
            config, logger, context, client, batch(channels, logger), journal);
    partitions =
        new RecordingMachines.Partitions(
            config, logger, context, client, batch(channels, logger), journal);
    give("controllerContext", context);
    give("controllerChannelManager", channels);
    give("brokerRequestBatch", batch(channels, logger));
    give("replicaStateMachine", replicas);
    give("partitionStateMachine", partitions);
    give(
        "topicDeletionManager",
        new TopicDeletionManager(
            config, context, replicas, partitions, new ControllerDeletionClient(kafka, client)));
  }

  /** Kafka needs a broker id even where nobody is left to be controller. */
  private int broker() {
    return id.orElse(0);
  }

  private RecordingMachines.Batch batch(Channels channels, StateChangeLogger logger) {
    return new RecordingMachines.Batch(
        config, channels, kafka.eventManager(), context, logger, journal);
  }

  private void give(String field, Object part) {
    Reflection.set(kafka, KafkaController.class, field, part);
  }

  /** A freshly elected controller knows neither; a scenario may say what brokers told it. */
  private void tellWhatIsKnown() {
    for (int broker : cluster.shuttingDown) {
      if (cluster.registered().contains(broker)) {
        context.shuttingDownBrokerIds().addOne(broker);
      }
    }
    cluster.offlineDirs.forEach(
        (broker, known) ->
            context
                .replicasOnOfflineDirs()
                .put(broker, CollectionConverters.asScala(new HashSet<>(known))));
  }

  // --- Coming into office ----------------------------------------------------------------------

  /** Election, loading, both machines, reassignments, deletions: all of it, as Kafka does it. */
  Optional<String> failOver() {
    return process(Startup$.MODULE$);
  }

  /**
   * The state a controller holds when no event is in progress, reached without a word to anybody:
   * elected over an empty cluster, then loaded by Kafka's own code, then every state put as it is.
   */
  void settle() {
    process(Startup$.MODULE$);
    cluster.fillTree();
    Reflection.call(kafka, KafkaController.class, "initializeControllerContext");
    Tuple2<?, ?> deletions =
        (Tuple2<?, ?>)
            Reflection.call(kafka, KafkaController.class, "fetchTopicDeletionsInProgress");
    deletionManager().init(texts(deletions._1()), texts(deletions._2()));
    for (TopicPartition partition : List.copyOf(assigned())) {
      context.putPartitionState(partition, settledState(partition));
      for (PartitionAndReplica replica : replicasOf(partition)) {
        boolean online = context.isReplicaOnline(replica.replica(), partition, false);
        context.putReplicaState(replica, online ? OnlineReplica$.MODULE$ : OfflineReplica$.MODULE$);
      }
    }
  }

  private PartitionState settledState(TopicPartition partition) {
    Optional<Record> record = cached(partition);
    if (record.isEmpty()) {
      return NewPartition$.MODULE$;
    }
    boolean online = context.isReplicaOnline(record.get().leader(), partition, false);
    return online ? OnlinePartition$.MODULE$ : OfflinePartition$.MODULE$;
  }

  @SuppressWarnings("unchecked")
  private static scala.collection.Set<String> texts(Object set) {
    return (scala.collection.Set<String>) set;
  }

  private TopicDeletionManager deletionManager() {
    return (TopicDeletionManager)
        Reflection.get(kafka, KafkaController.class, "topicDeletionManager");
  }

  /** What the next controller is to know, unless it forgets; nothing new once this one resigned. */
  void tell() {
    if (!isInOffice()) {
      return;
    }
    cluster.shuttingDown.clear();
    for (Object broker : CollectionConverters.asJava(context.shuttingDownBrokerIds())) {
      cluster.shuttingDown.add((Integer) broker);
    }
    cluster.offlineDirs.clear();
    CollectionConverters.asJava(context.replicasOnOfflineDirs())
        .forEach(
            (broker, known) ->
                cluster.offlineDirs.put(
                    (Integer) broker, new HashSet<>(CollectionConverters.asJava(known))));
  }

  boolean isInOffice() {
    return kafka.isActive();
  }

  double secondsInStartUp() {
    return replicas.secondsInStartUp() + partitions.secondsInStartUp();
  }

  void leave() {
    Release.stopTimers(kafka);
    metrics.close();
  }

  // --- Events ----------------------------------------------------------------------------------

  /** Processes an event; the error if Kafka gave up in the middle of it. */
  Optional<String> process(ControllerEvent event) {
    Throwable thrown = null;
    try {
      kafka.process(event);
    } catch (NoSuchElementException e) {
      // Kafka counts its metrics when the event is done; its event thread lets them fail.
      log.add("uncaught: " + e.getMessage());
    }
    for (ErrorLines.Line line : ErrorLines.take()) {
      if (journal.isOn()) {
        log.add(line.toString());
      }
      if (line.message().contains("Error processing event")
          || line.message().contains("Error while electing or becoming controller")) {
        thrown = line.thrown();
      }
    }
    return Optional.ofNullable(thrown).map(e -> Errors.forException(e).name());
  }

  void changeSettings(int imbalancePercentage) {
    Properties properties = cluster.properties(broker(), imbalancePercentage);
    config.updateCurrentConfig(KafkaConfig.fromProps(properties, false));
    Reflection.set(
        config, KafkaConfig.class, "leaderImbalancePerBrokerPercentage", imbalancePercentage);
  }

  void changeSettings() {
    changeSettings(DEFAULT_PERCENTAGE);
  }

  // --- What it knows ---------------------------------------------------------------------------

  @Override
  public States states() {
    Map<TopicPartition, String> states = new HashMap<>();
    CollectionConverters.asJava(context.partitionStates())
        .forEach((partition, state) -> states.put(partition, state.toString()));
    Map<ReplicaKey, String> ofReplicas = new HashMap<>();
    CollectionConverters.asJava(context.replicaStates())
        .forEach(
            (replica, state) ->
                ofReplicas.put(
                    new ReplicaKey(replica.topicPartition(), replica.replica()), state.toString()));
    return new States(states, ofReplicas);
  }

  @Override
  public void putAssignment(ObjectNode row, TopicPartition partition) {
    ReplicaAssignment assignment = context.partitionFullReplicaAssignment(partition);
    row.set("replicas", numbers(assignment.replicas()));
    row.set("adding", numbers(assignment.addingReplicas()));
    row.set("removing", numbers(assignment.removingReplicas()));
  }

  private static ArrayNode numbers(scala.collection.Seq<Object> ids) {
    ArrayNode array = Json.array();
    CollectionConverters.asJava(ids).forEach(id -> array.add((Integer) id));
    return array;
  }

  @Override
  public Set<TopicPartition> assigned() {
    return CollectionConverters.asJava(context.allPartitions());
  }

  Set<PartitionAndReplica> replicasOf(TopicPartition partition) {
    Set<PartitionAndReplica> found = new HashSet<>();
    for (Object replica :
        CollectionConverters.asJava(context.partitionReplicaAssignment(partition))) {
      found.add(new PartitionAndReplica(partition, (Integer) replica));
    }
    return found;
  }

  @Override
  public Optional<Record> cached(TopicPartition partition) {
    Option<LeaderIsrAndControllerEpoch> cached = context.partitionLeadershipInfo(partition);
    return cached.isEmpty() ? Optional.empty() : Optional.of(Release.record(cached.get()));
  }

  /** Partitions with a record whose topic is not queued for deletion, by topic and number. */
  List<TopicPartition> led() {
    return Partitions.sorted(CollectionConverters.asJava(context.partitionsWithLeaders()));
  }

  boolean isOnline(int broker, TopicPartition partition) {
    return context.isReplicaOnline(broker, partition, false);
  }

  boolean isConnected(int broker, TopicPartition partition) {
    return context.isReplicaOnline(broker, partition, true);
  }
}
