package understudy.oracle;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;
import kafka.controller.AdminClientTriggered$;
import kafka.controller.ApiPartitionReassignment;
import kafka.controller.AutoPreferredReplicaLeaderElection$;
import kafka.controller.BrokerChange$;
import kafka.controller.ControlledShutdown;
import kafka.controller.ControllerEvent;
import kafka.controller.IsrChangeNotification$;
import kafka.controller.LeaderAndIsrResponseReceived;
import kafka.controller.LogDirEventNotification$;
import kafka.controller.PartitionModifications;
import kafka.controller.PartitionReassignmentIsrChange;
import kafka.controller.ReplicaLeaderElection;
import kafka.controller.TopicChange$;
import kafka.controller.TopicDeletion$;
import kafka.controller.TopicDeletionStopReplicaResponseReceived;
import kafka.controller.TopicUncleanLeaderElectionEnable;
import kafka.controller.UncleanLeaderElectionEnable$;
import org.apache.kafka.common.ElectionType;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.message.LeaderAndIsrResponseData;
import org.apache.kafka.common.message.LeaderAndIsrResponseData.LeaderAndIsrPartitionError;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.ApiError;
import org.apache.kafka.common.requests.LeaderAndIsrResponse;
import scala.Option;
import scala.collection.Seq;
import scala.jdk.javaapi.CollectionConverters;
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
          Map.entry("cancel_reassignment", Scenario::cancelReassignment),
          Map.entry("isr_change", Scenario::isrChange),
          Map.entry("catch_up", Scenario::catchUp),
          Map.entry("preferred_election", Scenario::preferredElection),
          Map.entry("unclean_election", Scenario::uncleanElection),
          Map.entry("auto_rebalance", Scenario::autoRebalance),
          Map.entry("delete_topics", Scenario::deleteTopics),
          Map.entry("stop_replica_response", Scenario::stopReplicaResponse),
          Map.entry("unclean_enabled", Scenario::uncleanEnabled));

  private static final String FAILOVER = "controller_failover";
  private static final short RESPONSE_BY_NAME = 4; // from 5 on partitions go by topic id

  private final JsonNode snapshot;
  private final JsonNode events;
  private final Cluster cluster;
  private final Journal journal = new Journal();
  private final List<String> log = new ArrayList<>();
  private Controller controller;
  private String resigned;

  private Scenario(JsonNode snapshot, JsonNode events) {
    this.snapshot = snapshot;
    this.events = events;
    this.cluster = new Cluster(snapshot);
  }

  static ObjectNode answer(JsonNode snapshot, JsonNode events) {
    ErrorLines.take();
    return new Scenario(snapshot, events).run();
  }

  private ObjectNode run() {
    ControllerView.States before = ControllerView.States.UNKNOWN;
    boolean settled = events.isEmpty() || !isFailover(events.get(0));
    if (settled) {
      cluster.vacateController(cluster.controllerEpoch() - 1);
      controller = takeOffice(settledController());
      controller.settle();
      before = controller.states();
    } else {
      cluster.fillTree();
      cluster.vacateController(cluster.controllerEpoch());
    }
    try {
      journal.on(true);
      for (JsonNode event : events) {
        journal.beginEvent();
        if (isFailover(event) || controller.isInOffice()) {
          EVENTS.get(event.get("type").textValue()).happen(this, event);
        } else { // a controller that gave up its failover has resigned
          journal.result(null, Errors.NOT_CONTROLLER.name());
        }
        if (controller.isInOffice()) {
          resigned = null;
        } else if (resigned == null) {
          resigned = "the controller resigned in event " + journal.event();
        }
      }
      ObjectNode answer = Answer.of(snapshot, before, controller, journal, log);
      return answer.put("aborted", resigned);
    } finally {
      controller.leave();
    }
  }

  private static boolean isFailover(JsonNode event) {
    return event.get("type").textValue().equals(FAILOVER);
  }

  private Controller takeOffice(OptionalInt id) {
    journal.newController(id.isPresent());
    return new Controller(id, cluster, journal, log);
  }

  /** The registered brokers are not in the tree yet when a settled controller takes office. */
  private OptionalInt settledController() {
    Cluster preview = new Cluster(snapshot);
    preview.fillTree();
    return preview.controllerId();
  }

  /** An event that Kafka gives up in the middle leaves a row without a partition. */
  private void process(ControllerEvent event) {
    controller.process(event).ifPresent(error -> journal.result(null, error));
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
    boolean died = before.isPresent() && dead.contains(before.getAsInt());
    OptionalInt next = died ? cluster.smallestLive() : before;
    if (!Json.missing(event.get("controller"))) {
      next = OptionalInt.of(event.get("controller").intValue());
    }
    cluster.vacateController();
    controller = takeOffice(next);
    controller.failOver().ifPresent(error -> journal.result(null, error));
  }

  private void brokerChange(JsonNode event) {
    cluster.registered().forEach(cluster::unregister);
    event
        .get("live")
        .fields()
        .forEachRemaining(
            entry ->
                cluster.register(Integer.parseInt(entry.getKey()), entry.getValue().longValue()));
    process(BrokerChange$.MODULE$);
  }

  private void brokerFailure(JsonNode event) {
    Json.numbers(event.get("brokers")).forEach(cluster::unregister);
    process(BrokerChange$.MODULE$);
  }

  private void brokerStartup(JsonNode event) {
    JsonNode epochs = event.path("epochs");
    List<Integer> brokers = Json.numbers(event.get("brokers"));
    for (int i = 0; i < brokers.size(); i++) {
      boolean given = !Json.missing(epochs.get(i));
      long epoch = given ? epochs.get(i).longValue() : cluster.nextEpoch();
      cluster.register(brokers.get(i), epoch);
    }
    process(BrokerChange$.MODULE$);
  }

  private void controlledShutdown(JsonNode event) {
    long anyEpoch = -1;
    process(
        new ControlledShutdown(
            event.get("broker").intValue(),
            anyEpoch,
            answer -> {
              if (answer.isFailure()) {
                journal.result(null, Errors.forException(answer.failed().get()).name());
              } else {
                Partitions.sorted(CollectionConverters.asJava(answer.get()))
                    .forEach(led -> journal.result(led, null));
              }
              return BoxedUnit.UNIT;
            }));
  }

  private void logDirFailure(JsonNode event) {
    int broker = event.get("broker").intValue();
    cluster.notifyLogDirFailure(broker);
    process(LogDirEventNotification$.MODULE$);
    Set<TopicPartition> failed = new HashSet<>(Partitions.named(event.get("partitions")));
    Option<scala.collection.Set<TopicPartition>> known =
        controller.context.replicasOnOfflineDirs().get(broker);
    if (known.isDefined()) {
      failed.addAll(CollectionConverters.asJava(known.get()));
    }
    List<LeaderAndIsrPartitionError> errors = new ArrayList<>();
    for (TopicPartition told : journal.toldInEvent(broker)) {
      Errors error = failed.contains(told) ? Errors.KAFKA_STORAGE_ERROR : Errors.NONE;
      errors.add(
          new LeaderAndIsrPartitionError()
              .setTopicName(told.topic())
              .setPartitionIndex(told.partition())
              .setErrorCode(error.code()));
    }
    if (!errors.isEmpty()) {
      LeaderAndIsrResponseData data = new LeaderAndIsrResponseData().setPartitionErrors(errors);
      LeaderAndIsrResponse response = new LeaderAndIsrResponse(data, RESPONSE_BY_NAME);
      process(new LeaderAndIsrResponseReceived(response, broker));
    }
  }

  // --- Topics and partitions -------------------------------------------------------------------

  private void topicChange(JsonNode event) {
    event
        .path("topics")
        .fields()
        .forEachRemaining(
            entry -> {
              if (!cluster.hasTopic(entry.getKey())) {
                cluster.addTopic(entry.getKey(), entry.getValue());
              }
            });
    Json.texts(event.get("removed")).forEach(cluster::removeTopic);
    process(TopicChange$.MODULE$);
  }

  private void partitionChange(JsonNode event) {
    String topic = event.get("topic").textValue();
    if (cluster.hasTopic(topic)) {
      cluster.addPartitions(topic, event.get("partitions"));
      journal.restoring(true);
      process(new PartitionModifications(topic));
      journal.restoring(false);
    }
  }

  private void deleteTopics(JsonNode event) {
    Json.texts(event.get("topics")).forEach(cluster::queueForDeletion);
    process(TopicDeletion$.MODULE$);
  }

  private void stopReplicaResponse(JsonNode event) {
    int broker = event.get("broker").intValue();
    Errors error =
        Json.missing(event.get("error"))
            ? Errors.NONE
            : Errors.valueOf(event.get("error").textValue());
    Map<TopicPartition, Errors> errors = new LinkedHashMap<>();
    for (TopicPartition partition : Partitions.named(event.get("partitions"))) {
      if (controller.context.isTopicDeletionInProgress(partition.topic())
          && journal.wasAskedToDelete(broker, partition)) {
        errors.put(partition, error);
      }
    }
    if (!errors.isEmpty()) {
      process(
          new TopicDeletionStopReplicaResponseReceived(
              broker, Errors.NONE, CollectionConverters.asScala(errors)));
    }
  }

  // --- Reassignments and elections -------------------------------------------------------------

  private void reassign(JsonNode event) {
    event
        .get("partitions")
        .fields()
        .forEachRemaining(
            entry ->
                reassign(
                    Partitions.named(entry.getKey()), Option.apply(ids(Json.numbers(entry.getValue())))));
  }

  private void cancelReassignment(JsonNode event) {
    Partitions.named(event.get("partitions")).forEach(partition -> reassign(partition, Option.empty()));
  }

  private void reassign(TopicPartition partition, Option<Seq<Object>> target) {
    Map<TopicPartition, Option<Seq<Object>>> asked = Map.of(partition, target);
    process(
        new ApiPartitionReassignment(
            CollectionConverters.asScala(asked),
            answer -> {
              if (answer.isRight()) {
                journal.result(null, name(answer.toOption().get()));
              } else {
                CollectionConverters.asJava(answer.left().toOption().get())
                    .forEach((answered, error) -> journal.result(answered, name(error)));
              }
              return BoxedUnit.UNIT;
            }));
  }

  private void preferredElection(JsonNode event) {
    elect(event, ElectionType.PREFERRED);
  }

  private void uncleanElection(JsonNode event) {
    elect(event, ElectionType.UNCLEAN);
  }

  /** For all partitions Kafka's broker leaves out the answers that nothing was needed. */
  private void elect(JsonNode event, ElectionType type) {
    boolean all = event.get("partitions").isTextual();
    Set<TopicPartition> asked =
        new HashSet<>(all ? controller.led() : Partitions.named(event.get("partitions")));
    process(
        new ReplicaLeaderElection(
            Option.apply(CollectionConverters.asScala(asked)),
            type,
            AdminClientTriggered$.MODULE$,
            answer -> {
              Map<TopicPartition, String> errors = new TreeMap<>(Partitions.BY_NAME);
              CollectionConverters.asJava(answer)
                  .forEach(
                      (partition, result) ->
                          errors.put(
                              partition,
                              result.isLeft() ? name(result.left().toOption().get()) : null));
              errors.forEach(
                  (partition, error) -> {
                    if (!all || !Errors.ELECTION_NOT_NEEDED.name().equals(error)) {
                      journal.result(partition, error);
                    }
                  });
              return BoxedUnit.UNIT;
            }));
  }

  private void autoRebalance(JsonNode event) {
    if (Json.missing(event.get("percentage"))) {
      controller.changeSettings();
    } else {
      controller.changeSettings(event.get("percentage").intValue());
    }
    process(AutoPreferredReplicaLeaderElection$.MODULE$);
  }

  private void uncleanEnabled(JsonNode event) {
    if (Json.missing(event.get("topic"))) {
      cluster.enableUncleanByDefault();
      controller.changeSettings();
      process(UncleanLeaderElectionEnable$.MODULE$);
    } else {
      String topic = event.get("topic").textValue();
      cluster.enableUnclean(topic);
      process(new TopicUncleanLeaderElectionEnable(topic));
    }
  }

  // --- ISRs reported by leaders ----------------------------------------------------------------

  private void isrChange(JsonNode event) {
    TopicPartition partition = Partitions.named(event.get("partition").textValue());
    Optional<Record> cached = controller.cached(partition);
    if (cached.isPresent() && controller.isConnected(cached.get().leader(), partition)) {
      report(cached.get().leader(), Map.of(partition, Json.numbers(event.get("isr"))));
    }
  }

  private void catchUp(JsonNode event) {
    SortedMap<Integer, Map<TopicPartition, List<Integer>>> byLeader = new TreeMap<>();
    for (TopicPartition partition : controller.led()) {
      Record record = controller.cached(partition).orElseThrow();
      List<Integer> isr = new ArrayList<>(record.isr());
      if (controller.isOnline(record.leader(), partition)) {
        for (int broker : Json.numbers(event.get("brokers"))) {
          boolean assigned =
              controller.context.partitionReplicaAssignment(partition).contains(broker);
          if (assigned && controller.isOnline(broker, partition) && !isr.contains(broker)) {
            isr.add(broker);
          }
        }
      }
      if (isr.size() > record.isr().size()) {
        byLeader
            .computeIfAbsent(record.leader(), any -> new TreeMap<>(Partitions.BY_NAME))
            .put(partition, isr);
      }
    }
    byLeader.forEach(this::report);
  }

  /** By AlterPartition, or where the protocol has none by the state znode and a notification. */
  private void report(int leader, Map<TopicPartition, List<Integer>> isrs) {
    if (Release.isAlterPartitionEnabled(controller.config)) {
      alterPartition(leader, isrs);
    } else {
      writeIsrs(isrs);
    }
  }

  /**
   * Where a report can complete several reassignments, Kafka takes them in hash order. They are
   * hidden from it then, and shown to it one by one in ours.
   */
  private void alterPartition(int leader, Map<TopicPartition, List<Integer>> isrs) {
    PartitionsInOrder reassigning = controller.context.reassigning();
    List<TopicPartition> waiting = Partitions.sorted(isrs.keySet());
    waiting.retainAll(reassigning);
    Set<TopicPartition> refused = new HashSet<>();
    reassigning.hide(waiting.size() > 1);
    Optional<String> error =
        controller.process(
            Release.alterPartition(
                controller,
                leader,
                isrs,
                (partition, why) -> {
                  refused.add(partition);
                  journal.result(partition, why);
                }));
    if (waiting.size() > 1) {
      reassigning.hide(false);
      waiting.removeAll(refused);
      while (error.isEmpty() && !waiting.isEmpty()) {
        error = controller.process(new PartitionReassignmentIsrChange(waiting.remove(0)));
      }
    }
    error.ifPresent(name -> journal.result(null, name));
  }

  private void writeIsrs(Map<TopicPartition, List<Integer>> isrs) {
    isrs.forEach(
        (partition, isr) -> {
          if (cluster.hasState(partition)) {
            cluster.leaderWrites(partition, controller.cached(partition).orElseThrow().with(isr));
          }
        });
    for (TopicPartition partition : isrs.keySet()) {
      if (controller.context.partitionsBeingReassigned().contains(partition)) {
        process(new PartitionReassignmentIsrChange(partition));
      }
    }
    cluster.notifyIsrChange(isrs.keySet());
    process(IsrChangeNotification$.MODULE$);
  }

  // --- Words -----------------------------------------------------------------------------------

  private static String name(ApiError error) {
    return error == null || error.isSuccess() ? null : error.error().name();
  }

  private static Seq<Object> ids(List<Integer> numbers) {
    return CollectionConverters.asScala(new ArrayList<Object>(numbers)).toSeq();
  }
}
