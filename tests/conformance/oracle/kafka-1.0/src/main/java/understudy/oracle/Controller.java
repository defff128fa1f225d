package understudy.oracle;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.Properties;
import java.util.Set;
import kafka.api.LeaderAndIsr;
import kafka.common.TopicAndPartition;
import kafka.controller.ControlledShutdownLeaderSelector;
import kafka.controller.KafkaController;
import kafka.controller.LeaderIsrAndControllerEpoch;
import kafka.controller.NewPartition$;
import kafka.controller.OfflinePartition$;
import kafka.controller.OfflinePartitionLeaderSelector;
import kafka.controller.OfflineReplica$;
import kafka.controller.OnlinePartition$;
import kafka.controller.OnlineReplica$;
import kafka.controller.PartitionAndReplica;
import kafka.controller.PartitionState;
import kafka.controller.PreferredReplicaPartitionLeaderSelector;
import kafka.controller.ReassignedPartitionLeaderSelector;
import kafka.controller.ReassignedPartitionsContext;
import kafka.controller.StateChangeLogger;
import kafka.controller.TopicDeletionManager;
import kafka.server.KafkaConfig;
import kafka.utils.ZKStringSerializer$;
import kafka.utils.ZkUtils;
import org.I0Itec.zkclient.ZkClient;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.metrics.Metrics;
import scala.Option;
import scala.Tuple2;
import scala.collection.Seq;
import scala.collection.mutable.TreeSet;
import scala.math.Ordering;

/**
 * Kafka 1.0's controller of one broker, its event thread not started: it processes what it is given.
 *
 * <p>Around it stand our ZooKeeper, channels and journal; every rule is Kafka's own code.
 */
final class Controller implements ControllerView {

  private static final int DEFAULT_PERCENTAGE = 10;
  private static final int AT_ONCE = 1_000; // milliseconds to wait for a connection that is there

  final OptionalInt id;
  final RecordingContext context;
  final RecordingController kafka;

  private final Cluster cluster;
  private final Reassignments reassignments;
  private final Metrics metrics = new Metrics();
  private final ZkClient client;
  private final RecordingMachines.Replicas replicas;
  private final RecordingMachines.OfPartitions partitions;

  Controller(OptionalInt id, Cluster cluster, Journal journal, List<String> log) {
    this(id, cluster, journal, false);
  }

  /** {@code backwards} walks every set of replicas the other way round. */
  Controller(OptionalInt id, Cluster cluster, Journal journal, boolean backwards) {
    this.id = id;
    this.cluster = cluster;
    reassignments = new Reassignments(cluster.tree);
    client =
        new ZkClient(
            new MemoryZooKeeperConnection(cluster.tree, journal),
            AT_ONCE,
            ZKStringSerializer$.MODULE$);
    ZkUtils zkUtils = new ZkUtils(client, null, false);
    KafkaConfig config = KafkaConfig.fromProps(properties());
    kafka = new RecordingController(config, zkUtils, metrics, journal);
    context = new RecordingContext(zkUtils, this::tellWhatIsKnown);
    StateChangeLogger logger = new StateChangeLogger(broker(), true, Option.empty());
    context.useChannels(new Channels(context, config, metrics, logger));
    give("controllerContext", context);
    replicas = new RecordingMachines.Replicas(kafka, logger, journal, backwards);
    partitions = new RecordingMachines.OfPartitions(kafka, logger, journal);
    give("replicaStateMachine", replicas);
    give("partitionStateMachine", partitions);
    give("topicDeletionManager", deletionManager());
    give("offlinePartitionSelector", new OfflinePartitionLeaderSelector(context, config));
    give("reassignedPartitionLeaderSelector", new ReassignedPartitionLeaderSelector(context));
    give(
        "preferredReplicaPartitionLeaderSelector",
        new PreferredReplicaPartitionLeaderSelector(context));
    give(
        "kafka$controller$KafkaController$$controlledShutdownPartitionLeaderSelector",
        new ControlledShutdownLeaderSelector(context));
    give(
        "kafka$controller$KafkaController$$brokerRequestBatch",
        new RecordingMachines.Batch(kafka, logger, journal));
  }

  private Properties properties() {
    Properties properties = cluster.properties(broker(), DEFAULT_PERCENTAGE);
    properties.put("log.message.format.version", cluster.protocol());
    return properties;
  }

  /** Topics are taken by name where Kafka's order is that of a hash. */
  private TopicDeletionManager deletionManager() {
    TopicDeletionManager deletions = new TopicDeletionManager(kafka, kafka.eventManager());
    Ordering<String> byName = Ordering.String$.MODULE$;
    Reflection.set(
        deletions, TopicDeletionManager.class, "topicsToBeDeleted", new TreeSet<>(byName));
    return deletions;
  }

  /** Kafka needs a broker id even where nobody is left to be controller. */
  private int broker() {
    return id.orElse(0);
  }

  private void give(String field, Object part) {
    Reflection.set(kafka, KafkaController.class, field, part);
  }

  /** A freshly elected controller knows neither; a scenario may say what brokers told it. */
  private void tellWhatIsKnown() {
    for (int broker : cluster.shuttingDown) {
      if (cluster.registered().contains(broker)) {
        context.shuttingDownBrokerIds().add(broker);
      }
    }
    cluster.offlineDirs.forEach(
        (broker, known) -> {
          Set<TopicAndPartition> offline = new HashSet<>();
          known.forEach(partition -> offline.add(Scala.partition(partition)));
          context.replicasOnOfflineDirs().put(broker, Scala.set(offline));
        });
  }

  // --- Coming into office ----------------------------------------------------------------------

  /** Loading, both machines, reassignments, deletions: all of it, as Kafka does it. */
  Optional<String> failOver() {
    kafka.kafka$controller$KafkaController$$activeControllerId_$eq(broker());
    kafka.onControllerFailover();
    return Optional.empty();
  }

  /**
   * The state a controller holds when no event is in progress, reached without a word to anybody:
   * elected over an empty cluster, then loaded by Kafka's own code, then every state put as it is.
   */
  void settle(Runnable fillCluster) {
    failOver();
    fillCluster.run();
    Map<TopicPartition, List<Integer>> moving = reassignments.targets();
    Reflection.call(kafka, KafkaController.class, "initializeControllerContext");
    moving.forEach(this::isBeingReassigned);
    Tuple2<?, ?> deletions =
        (Tuple2<?, ?>)
            Reflection.call(kafka, KafkaController.class, "fetchTopicDeletionsInProgress");
    kafka.topicDeletionManager().init(texts(deletions._1()), texts(deletions._2()));
    Scala.java(context.allTopics()).forEach(kafka::registerPartitionModificationsListener);
    for (TopicPartition partition : assigned()) {
      partitions.states().put(Scala.partition(partition), settledState(partition));
      for (int broker : replicasOf(partition)) {
        PartitionAndReplica replica =
            new PartitionAndReplica(partition.topic(), partition.partition(), broker);
        replicas.states().put(
            replica,
            isOnline(broker, partition) ? OnlineReplica$.MODULE$ : OfflineReplica$.MODULE$);
      }
    }
  }

  /** Also where Kafka, loading, would take it for done: the settled controller is still at it. */
  private void isBeingReassigned(TopicPartition partition, List<Integer> target) {
    if (!reassignments.targets().containsKey(partition)) {
      reassignments.ask(partition, target);
    }
    context
        .partitionsBeingReassigned()
        .put(Scala.partition(partition), new ReassignedPartitionsContext(Scala.ids(target), null));
  }

  private PartitionState settledState(TopicPartition partition) {
    Optional<Record> record = cached(partition);
    if (record.isEmpty()) {
      return NewPartition$.MODULE$;
    }
    boolean online = isOnline(record.get().leader(), partition);
    return online ? OnlinePartition$.MODULE$ : OfflinePartition$.MODULE$;
  }

  @SuppressWarnings("unchecked")
  private static scala.collection.Set<String> texts(Object set) {
    return (scala.collection.Set<String>) set;
  }

  /** What the next controller is to know, unless it forgets. */
  void tell() {
    cluster.shuttingDown.clear();
    for (Object broker : Scala.java(context.shuttingDownBrokerIds())) {
      cluster.shuttingDown.add((Integer) broker);
    }
    cluster.offlineDirs.clear();
    Scala.java(context.replicasOnOfflineDirs())
        .forEach(
            (broker, known) -> {
              Set<TopicPartition> offline = new HashSet<>();
              Scala.java(known).forEach(partition -> offline.add(Scala.partition(partition)));
              cluster.offlineDirs.put((Integer) broker, offline);
            });
  }

  double secondsInStartUp() {
    return replicas.secondsInStartUp() + partitions.secondsInStartUp();
  }

  void leave() {
    kafka.kafkaScheduler().shutdown();
    client.close();
    metrics.close();
  }

  void changePercentage(OptionalInt percentage) {
    Reflection.set(
        kafka.config(),
        KafkaConfig.class,
        "leaderImbalancePerBrokerPercentage",
        percentage.orElse(DEFAULT_PERCENTAGE));
  }

  // --- What it knows ---------------------------------------------------------------------------

  @Override
  public States states() {
    Map<TopicPartition, String> ofPartitions = new HashMap<>();
    Scala.java(partitions.states())
        .forEach(
            (partition, state) -> ofPartitions.put(Scala.partition(partition), state.toString()));
    Map<ReplicaKey, String> ofReplicas = new HashMap<>();
    Scala.java(replicas.states())
        .forEach(
            (replica, state) ->
                ofReplicas.put(
                    new ReplicaKey(
                        new TopicPartition(replica.topic(), replica.partition()),
                        replica.replica()),
                    state.toString()));
    return new States(ofPartitions, ofReplicas);
  }

  @Override
  public Set<TopicPartition> assigned() {
    Set<TopicPartition> assigned = new HashSet<>();
    for (TopicAndPartition partition :
        Scala.java(context.partitionReplicaAssignment()).keySet()) {
      assigned.add(Scala.partition(partition));
    }
    return assigned;
  }

  /** There are no adding or removing replicas in this age. */
  @Override
  public void putAssignment(ObjectNode row, TopicPartition partition) {
    row.set("replicas", Json.array(replicasOf(partition)));
  }

  List<Integer> replicasOf(TopicPartition partition) {
    Seq<Object> ids = context.partitionReplicaAssignment().apply(Scala.partition(partition));
    return Scala.numbers(ids);
  }

  @Override
  public Optional<Record> cached(TopicPartition partition) {
    Option<LeaderIsrAndControllerEpoch> cached =
        context.partitionLeadershipInfo().get(Scala.partition(partition));
    if (cached.isEmpty()) {
      return Optional.empty();
    }
    LeaderAndIsr record = cached.get().leaderAndIsr();
    return Optional.of(
        new Record(
            record.leader(),
            record.leaderEpoch(),
            Scala.numbers(record.isr()),
            record.zkVersion(),
            cached.get().controllerEpoch(),
            0));
  }

  boolean isOnline(int broker, TopicPartition partition) {
    return context.isReplicaOnline(broker, Scala.partition(partition), false);
  }

  boolean isConnected(int broker, TopicPartition partition) {
    return context.isReplicaOnline(broker, Scala.partition(partition), true);
  }

  Optional<ReassignedPartitionsContext> reassignment(TopicPartition partition) {
    Option<ReassignedPartitionsContext> found =
        context.partitionsBeingReassigned().get(Scala.partition(partition));
    return found.isEmpty() ? Optional.empty() : Optional.of(found.get());
  }
}
