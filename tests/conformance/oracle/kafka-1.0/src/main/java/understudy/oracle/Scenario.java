package understudy.oracle;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;
import kafka.common.TopicAndPartition;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.LeaderAndIsrResponse;
import org.apache.kafka.common.requests.StopReplicaResponse;
import scala.Option;
import scala.runtime.BoxedUnit;

/** One case: the snapshot as a cluster, then each event as the things that make Kafka act on it. */
final class Scenario {

  private interface Event {
    void happen(Scenario scenario, JsonNode fields);
  }

  /** To add an event, write its method and name it here. */
  private static final Map<String, Event> EVENTS =
      Map.ofEntries(
          Map.entry("controller_failover", Scenario::controllerFailover),
          Map.entry("broker_change", Scenario::brokerChange),
          Map.entry("broker_failure", Scenario::brokerFailure),
          Map.entry("broker_startup", Scenario::brokerStartup),
          Map.entry("log_dir_failure", Scenario::logDirFailure),
          Map.entry("controlled_shutdown", Scenario::controlledShutdown),
          Map.entry("topic_change", Scenario::topicChange),
          Map.entry("partition_change", Scenario::partitionChange),
          Map.entry("reassign", Scenario::reassign),
          Map.entry("isr_change", Scenario::isrChange),
          Map.entry("catch_up", Scenario::catchUp),
          Map.entry("preferred_election", Scenario::preferredElection),
          Map.entry("auto_rebalance", Scenario::autoRebalance),
          Map.entry("delete_topics", Scenario::deleteTopics),
          Map.entry("stop_replica_response", Scenario::stopReplicaResponse),
          Map.entry("unclean_enabled", Scenario::uncleanEnabled));

  private static final String FAILOVER = "controller_failover";

  private final JsonNode snapshot;
  private final JsonNode events;
  private final boolean backwards;
  private final Cluster cluster;
  private final Reassignments reassignments;
  private final Journal journal = new Journal();
  private final List<String> log = new ArrayList<>();
  private Controller controller;

  private Scenario(JsonNode snapshot, JsonNode events, boolean backwards) {
    this.snapshot = snapshot;
    this.events = events;
    this.backwards = backwards;
    this.cluster = new Cluster(snapshot);
    this.reassignments = new Reassignments(cluster.tree);
  }

  /**
   * The answer, and beside it, if that is another one, what happens when sets of replicas are
   * walked the other way round: a case in which that makes a difference hangs on hashes.
   */
  static ObjectNode answer(JsonNode snapshot, JsonNode events) {
    Log.listen();
    ObjectNode answer = new Scenario(snapshot, events, false).run();
    ObjectNode other = new Scenario(snapshot, events, true).run();
    if (!other.equals(answer)) {
      other.remove("log");
      answer.set("other_order", other);
    }
    return answer;
  }

  private ObjectNode run() {
    ErrorLines.take();
    ControllerView.States before = ControllerView.States.UNKNOWN;
    if (events.size() == 0 || !isFailover(events.get(0))) {
      cluster.vacateController(cluster.controllerEpoch() - 1);
      controller = takeOffice(settledController());
      controller.settle(this::fillCluster);
      before = controller.states();
    } else {
      fillCluster();
      cluster.vacateController(cluster.controllerEpoch());
    }
    journal.on(true);
    String aborted = null;
    for (int i = 0; i < events.size() && aborted == null; i++) {
      aborted = happen(events.get(i));
    }
    ObjectNode answer = Answer.of(snapshot, before, controller, journal, log);
    controller.leave();
    answer.set("dropped", journal.dropped);
    return answer.put("aborted", aborted);
  }

  private void fillCluster() {
    cluster.fillTree();
    reassignments.fill(snapshot);
  }

  /** What Kafka throws out of an event ends the case: nothing more can be said of it. */
  private String happen(JsonNode event) {
    journal.beginEvent();
    String aborted = null;
    try {
      Event known = EVENTS.get(event.get("type").textValue());
      if (known == null) {
        cannotBeDone();
      } else {
        known.happen(this, event);
      }
    } catch (RuntimeException e) {
      String what = e.getClass().getSimpleName() + ": " + e.getMessage();
      aborted = "event " + journal.event() + ": " + what;
    }
    ErrorLines.take().forEach(line -> log.add(line.toString()));
    return aborted;
  }

  private void cannotBeDone() {
    journal.result(null, Errors.UNSUPPORTED_VERSION.name());
  }

  private static boolean isFailover(JsonNode event) {
    return event.get("type").textValue().equals(FAILOVER);
  }

  private Controller takeOffice(OptionalInt id) {
    journal.newController(id.isPresent());
    return new Controller(id, cluster, journal, backwards);
  }

  /** The registered brokers are not in the tree yet when a settled controller takes office. */
  private OptionalInt settledController() {
    Cluster preview = new Cluster(snapshot);
    preview.fillTree();
    return preview.controllerId();
  }

  // --- Controllers and brokers -----------------------------------------------------------------

  private void controllerFailover(JsonNode event) {
    OptionalInt before = cluster.controllerId();
    if (controller != null) {
      before = controller.id;
      controller.tell();
      controller.leave();
    }
    Set<Integer> dead = new HashSet<>(Json.numbers(event.get("dead")));
    dead.forEach(cluster::unregister);
    if (event.path("forget").asBoolean(false)) {
      cluster.shuttingDown.clear();
      cluster.offlineDirs.clear();
    }
    OptionalInt next = before;
    if (!Json.missing(event.get("controller"))) {
      next = OptionalInt.of(event.get("controller").intValue());
    } else if (before.isPresent() && dead.contains(before.getAsInt())) {
      next = cluster.smallestLive().isPresent() ? cluster.smallestLive() : before;
    }
    controller = takeOffice(next);
    controller.failOver();
  }

  private void brokerChange(JsonNode event) {
    cluster.registered().forEach(cluster::unregister);
    event.get("live").fieldNames().forEachRemaining(id -> register(Integer.parseInt(id)));
    brokersChanged();
  }

  private void brokerFailure(JsonNode event) {
    Json.numbers(event.get("brokers")).forEach(cluster::unregister);
    brokersChanged();
  }

  private void brokerStartup(JsonNode event) {
    Json.numbers(event.get("brokers")).forEach(this::register);
    brokersChanged();
  }

  /** There are no broker epochs in this age. */
  private void register(int broker) {
    cluster.register(broker, 0);
  }

  private void brokersChanged() {
    List<String> ids = new ArrayList<>();
    cluster.registered().forEach(id -> ids.add(String.valueOf(id)));
    controller.kafka.BrokerChange().apply(Scala.seq(ids)).process();
  }

  private void controlledShutdown(JsonNode event) {
    controller
        .kafka
        .ControlledShutdown()
        .apply(
            event.get("broker").intValue(),
            answer -> {
              if (answer.isFailure()) {
                journal.result(null, Errors.forException(answer.failed().get()).name());
              } else {
                List<TopicPartition> led = new ArrayList<>();
                Scala.java(answer.get()).forEach(partition -> led.add(Scala.partition(partition)));
                Partitions.sorted(led).forEach(partition -> journal.result(partition, null));
              }
              return BoxedUnit.UNIT;
            })
        .process();
  }

  private void logDirFailure(JsonNode event) {
    int broker = event.get("broker").intValue();
    String notification = cluster.notifyLogDirFailure(broker);
    controller.kafka.LogDirEventNotification().apply(Scala.seq(List.of(notification))).process();
    Set<TopicPartition> failed = new HashSet<>(Partitions.named(event.get("partitions")));
    Option<scala.collection.Set<TopicAndPartition>> known =
        controller.context.replicasOnOfflineDirs().get(broker);
    if (known.isDefined()) {
      Scala.java(known.get()).forEach(partition -> failed.add(Scala.partition(partition)));
    }
    Map<TopicPartition, Errors> errors = new HashMap<>();
    for (TopicPartition told : journal.toldInEvent(broker)) {
      errors.put(told, failed.contains(told) ? Errors.KAFKA_STORAGE_ERROR : Errors.NONE);
    }
    if (!errors.isEmpty()) {
      LeaderAndIsrResponse response = new LeaderAndIsrResponse(Errors.NONE, errors);
      controller.kafka.LeaderAndIsrResponseReceived().apply(response, broker).process();
    }
  }

  // --- Topics and partitions -------------------------------------------------------------------

  private void topicChange(JsonNode event) {
    Json.texts(event.get("removed")).forEach(cluster::removeTopic);
    event
        .path("topics")
        .fields()
        .forEachRemaining(
            entry -> {
              if (!cluster.hasTopic(entry.getKey())) {
                cluster.addTopic(entry.getKey(), entry.getValue());
              }
            });
    controller.kafka.TopicChange().apply(Scala.set(cluster.topics())).process();
  }

  private void partitionChange(JsonNode event) {
    String topic = event.get("topic").textValue();
    if (cluster.hasTopic(topic)) {
      cluster.addPartitions(topic, event.get("partitions"));
      controller.kafka.PartitionModifications().apply(topic).process();
    }
  }

  private void deleteTopics(JsonNode event) {
    Json.texts(event.get("topics")).forEach(cluster::queueForDeletion);
    controller.kafka.TopicDeletion().apply(Scala.set(cluster.queuedForDeletion())).process();
  }

  /** Every partition was asked for in a request of its own, and is an answer of its own. */
  private void stopReplicaResponse(JsonNode event) {
    int broker = event.get("broker").intValue();
    Errors error =
        Json.missing(event.get("error"))
            ? Errors.NONE
            : Errors.valueOf(event.get("error").textValue());
    for (TopicPartition partition : Partitions.named(event.get("partitions"))) {
      if (journal.wasAskedToDelete(broker, partition)) {
        StopReplicaResponse response =
            new StopReplicaResponse(Errors.NONE, Map.of(partition, error));
        controller
            .kafka
            .TopicDeletionStopReplicaResponseReceived()
            .apply(response, broker)
            .process();
      }
    }
  }

  // --- Reassignments and elections -------------------------------------------------------------

  /** One by one; a partition that is being reassigned already is left as it is. */
  private void reassign(JsonNode event) {
    event
        .get("partitions")
        .fields()
        .forEachRemaining(
            entry -> {
              TopicPartition partition = Partitions.named(entry.getKey());
              if (controller.reassignment(partition).isEmpty()) {
                reassignments.ask(partition, Json.numbers(entry.getValue()));
                controller.kafka.PartitionReassignment().process();
              }
            });
  }

  private void preferredElection(JsonNode event) {
    List<TopicAndPartition> asked = new ArrayList<>();
    if (event.get("partitions").isTextual()) {
      cluster.withState().forEach(partition -> asked.add(Scala.partition(partition)));
    } else {
      Partitions.named(event.get("partitions"))
          .forEach(partition -> asked.add(Scala.partition(partition)));
    }
    controller.kafka.PreferredReplicaLeaderElection().apply(Scala.set(asked)).process();
  }

  private void autoRebalance(JsonNode event) {
    JsonNode percentage = event.get("percentage");
    controller.changePercentage(
        Json.missing(percentage) ? OptionalInt.empty() : OptionalInt.of(percentage.intValue()));
    int before = journal.step();
    controller.kafka.AutoPreferredReplicaLeaderElection().process();
    StepsInOrder.sort(journal, before);
  }

  /** A topic's setting is read at its next election; the broker's own needs a restart. */
  private void uncleanEnabled(JsonNode event) {
    if (Json.missing(event.get("topic"))) {
      cannotBeDone();
    } else {
      cluster.enableUnclean(event.get("topic").textValue());
    }
  }

  // --- ISRs reported by leaders ----------------------------------------------------------------

  private void isrChange(JsonNode event) {
    TopicPartition partition = Partitions.named(event.get("partition").textValue());
    cluster
        .state(partition)
        .filter(state -> controller.isConnected(state.leader(), partition))
        .ifPresent(state -> report(Map.of(partition, state.with(Json.numbers(event.get("isr"))))));
  }

  private void catchUp(JsonNode event) {
    SortedMap<Integer, Map<TopicPartition, Record>> byLeader = new TreeMap<>();
    for (TopicPartition partition : cluster.withState()) {
      Record state = cluster.state(partition).orElseThrow();
      if (!isServed(partition) || !controller.isOnline(state.leader(), partition)) {
        continue;
      }
      List<Integer> isr = new ArrayList<>(state.isr());
      for (int broker : Json.numbers(event.get("brokers"))) {
        boolean assigned = controller.replicasOf(partition).contains(broker);
        if (assigned && controller.isOnline(broker, partition) && !isr.contains(broker)) {
          isr.add(broker);
        }
      }
      if (isr.size() > state.isr().size()) {
        byLeader
            .computeIfAbsent(state.leader(), any -> new TreeMap<>(Partitions.BY_NAME))
            .put(partition, state.with(isr));
      }
    }
    byLeader.values().forEach(this::report);
  }

  private boolean isServed(TopicPartition partition) {
    return controller.assigned().contains(partition)
        && !controller.kafka.topicDeletionManager().isTopicQueuedUpForDeletion(partition.topic());
  }

  /** The leader writes the state znodes; watches of reassignments fire; one notification comes. */
  private void report(Map<TopicPartition, Record> states) {
    states.forEach(cluster::leaderWrites);
    for (TopicPartition partition : states.keySet()) {
      controller
          .reassignment(partition)
          .ifPresent(
              moving ->
                  controller
                      .kafka
                      .PartitionReassignmentIsrChange()
                      .apply(Scala.partition(partition), moving.newReplicas().toSet())
                      .process());
    }
    String notification = cluster.notifyIsrChange(states.keySet());
    controller.kafka.IsrChangeNotification().apply(Scala.seq(List.of(notification))).process();
  }
}
