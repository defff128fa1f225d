package org.apache.kafka.controller;

import static org.apache.kafka.metadata.LeaderConstants.NO_LEADER;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.function.IntConsumer;
import org.apache.kafka.common.ElectionType;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.common.message.AlterPartitionReassignmentsRequestData;
import org.apache.kafka.common.message.AlterPartitionReassignmentsRequestData.ReassignablePartition;
import org.apache.kafka.common.message.AlterPartitionReassignmentsRequestData.ReassignableTopic;
import org.apache.kafka.common.message.AlterPartitionReassignmentsResponseData;
import org.apache.kafka.common.message.AlterPartitionRequestData;
import org.apache.kafka.common.message.AlterPartitionResponseData;
import org.apache.kafka.common.message.AssignReplicasToDirsRequestData;
import org.apache.kafka.common.message.AssignReplicasToDirsResponseData;
import org.apache.kafka.common.message.BrokerHeartbeatRequestData;
import org.apache.kafka.common.message.BrokerRegistrationRequestData;
import org.apache.kafka.common.message.CreatePartitionsRequestData.CreatePartitionsAssignment;
import org.apache.kafka.common.message.CreatePartitionsRequestData.CreatePartitionsTopic;
import org.apache.kafka.common.message.CreatePartitionsResponseData.CreatePartitionsTopicResult;
import org.apache.kafka.common.message.CreateTopicsRequestData;
import org.apache.kafka.common.message.CreateTopicsRequestData.CreatableReplicaAssignment;
import org.apache.kafka.common.message.CreateTopicsRequestData.CreatableTopic;
import org.apache.kafka.common.message.CreateTopicsResponseData.CreatableTopicResult;
import org.apache.kafka.common.message.ElectLeadersRequestData;
import org.apache.kafka.common.message.ElectLeadersRequestData.TopicPartitions;
import org.apache.kafka.common.message.ElectLeadersRequestData.TopicPartitionsCollection;
import org.apache.kafka.common.message.ElectLeadersResponseData;
import org.apache.kafka.common.message.RequestHeaderData;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.metadata.BrokerHeartbeatReply;
import org.apache.kafka.metadata.BrokerRegistration;
import org.apache.kafka.metadata.FinalizedControllerFeatures;
import org.apache.kafka.metadata.PartitionRegistration;
import org.apache.kafka.metadata.Replicas;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.common.MetadataVersion;

/** One case: the snapshot as a log with a controller over it, then each event as its requests. */
final class Scenario {

  private interface Event {
    void happen(Scenario scenario, JsonNode fields);
  }

  /** To add an event, write its method and name it here. */
  private static final Map<String, Event> EVENTS =
      Map.ofEntries(
          Map.entry("fence", Scenario::fence),
          Map.entry("broker_failure", Scenario::brokerFailure),
          Map.entry("unfence", Scenario::unfence),
          Map.entry("controlled_shutdown", Scenario::controlledShutdown),
          Map.entry("unregister", Scenario::unregister),
          Map.entry("broker_startup", Scenario::brokerStartup),
          Map.entry("log_dir_failure", Scenario::logDirFailure),
          Map.entry("assign_dirs", Scenario::assignDirs),
          Map.entry("isr_change", Scenario::isrChange),
          Map.entry("catch_up", Scenario::catchUp),
          Map.entry("preferred_election", Scenario::preferredElection),
          Map.entry("unclean_election", Scenario::uncleanElection),
          Map.entry("auto_rebalance", Scenario::autoRebalance),
          Map.entry("auto_unclean_election", Scenario::autoUncleanElection),
          Map.entry("reassign", Scenario::reassign),
          Map.entry("cancel_reassignment", Scenario::cancelReassignment),
          Map.entry("topic_change", Scenario::topicChange),
          Map.entry("partition_change", Scenario::partitionChange),
          Map.entry("delete_topics", Scenario::deleteTopics),
          Map.entry("controller_failover", Scenario::controllerFailover));

  private static final short ALTER_PARTITION_VERSION = 3;
  private static final long NEVER_REGISTERED = -1;
  private static final long ANY_EPOCH = 1; // a broker that is not registered has to claim one
  private static final Uuid NO_SUCH_TOPIC = new Uuid(-1, -1);

  private final JsonNode snapshot;
  private final JsonNode events;
  private final MetadataVersion version;
  private final Cluster cluster;
  private final Journal journal = new Journal();

  private Scenario(JsonNode snapshot, JsonNode events) {
    this.snapshot = snapshot;
    this.events = events;
    String named = Json.textOrNull(snapshot, "metadata_version");
    this.version =
        Release.INSTANCE.metadataVersion(
            named == null ? Release.INSTANCE.newestMetadataVersion() : named);
    Map<String, Object> staticConfigs = new HashMap<>();
    Json.members(snapshot.get("static_configs"))
        .forEach((key, value) -> staticConfigs.put(key, value.asText()));
    this.cluster =
        new Cluster(controllerOf(snapshot), staticConfigs, SnapshotRecords.of(snapshot, version));
  }

  static ObjectNode answer(JsonNode snapshot, JsonNode events) {
    return new Scenario(snapshot, events).run();
  }

  private ObjectNode run() {
    for (JsonNode event : events) {
      journal.beginEvent();
      cluster.hearFromBrokers();
      try {
        EVENTS.get(event.get("type").textValue()).happen(this, event);
      } catch (RuntimeException failure) {
        giveUp(failure);
      }
    }
    return Answer.of(snapshot, cluster, journal);
  }

  /**
   * What is no refusal makes the active controller resign, with nothing of the operation written.
   * The next one is the same node here: who would follow, nobody can say.
   */
  private void giveUp(RuntimeException failure) {
    journal.resigned(failure);
    cluster.takeOver(cluster.controllerId());
  }

  private static int controllerOf(JsonNode snapshot) {
    JsonNode controller = snapshot.path("controller");
    if (controller.hasNonNull("id")) {
      return controller.get("id").intValue();
    }
    int smallest = Integer.MAX_VALUE;
    for (JsonNode broker : snapshot.get("brokers")) {
      if (!Json.flag(broker, "fenced")) {
        smallest = Math.min(smallest, broker.get("id").intValue());
      }
    }
    return smallest;
  }

  // --- Operations --------------------------------------------------------------------------------

  private <T> T apply(ControllerResult<T> result) {
    journal.apply(result.records(), cluster);
    return result.response();
  }

  private static String name(short code) {
    return code == Errors.NONE.code() ? null : Errors.forCode(code).name();
  }

  private static String name(RuntimeException refusal) {
    return Errors.forException(refusal).name();
  }

  private void forBroker(int broker, IntConsumer operation) {
    try {
      operation.accept(broker);
    } catch (ApiException refusal) {
      journal.refusedBroker(broker, name(refusal));
    }
  }

  private void forBrokers(JsonNode event, IntConsumer operation) {
    Json.numbers(event.get("brokers")).forEach(broker -> forBroker(broker, operation));
  }

  private static ControllerRequestContext context() {
    return new ControllerRequestContext(
        new RequestHeaderData().setRequestApiVersion(ALTER_PARTITION_VERSION),
        KafkaPrincipal.ANONYMOUS,
        OptionalLong.empty());
  }

  private long epochOf(int broker) {
    BrokerRegistration registration = cluster.broker(broker);
    return registration == null ? ANY_EPOCH : registration.epoch();
  }

  // --- Brokers -----------------------------------------------------------------------------------

  private void fence(JsonNode event) {
    for (int broker : Json.numbers(event.get("brokers"))) {
      if (cluster.broker(broker) == null) { // Kafka's manager throws what has no code of its own
        journal.refusedBroker(broker, Errors.UNKNOWN_SERVER_ERROR.name());
      } else {
        fence(broker);
      }
    }
  }

  private void fence(int broker) {
    List<ApiMessageAndVersion> records = new ArrayList<>();
    cluster.replication().handleBrokerFenced(broker, records);
    journal.apply(records, cluster);
    cluster.control().heartbeatManager().fence(broker);
  }

  private void brokerFailure(JsonNode event) {
    for (int broker : Json.numbers(event.get("brokers"))) {
      if (cluster.broker(broker) != null && !cluster.broker(broker).fenced()) {
        fence(broker);
      }
    }
  }

  private void unfence(JsonNode event) {
    forBrokers(
        event,
        broker -> {
          if (cluster.broker(broker) == null || cluster.broker(broker).fenced()) {
            heartbeat(broker, false, false, List.of());
          }
        });
  }

  private void controlledShutdown(JsonNode event) {
    forBroker(
        event.get("broker").intValue(), broker -> heartbeat(broker, false, true, List.of()));
  }

  private void logDirFailure(JsonNode event) {
    int id = event.get("broker").intValue();
    BrokerRegistration known = cluster.broker(id);
    boolean fenced = known != null && known.fenced();
    boolean leaving = known != null && known.inControlledShutdown() && !fenced;
    forBroker(id, broker -> heartbeat(broker, fenced, leaving, Json.ids(event.get("dirs"))));
  }

  private void heartbeat(int broker, boolean fence, boolean shutDown, List<Uuid> offline) {
    BrokerHeartbeatRequestData request =
        new BrokerHeartbeatRequestData()
            .setBrokerId(broker)
            .setBrokerEpoch(epochOf(broker))
            .setWantFence(fence)
            .setWantShutDown(shutDown)
            .setOfflineLogDirs(offline)
            .setCurrentMetadataOffset(cluster.offsetOfBrokers());
    BrokerHeartbeatReply reply =
        apply(cluster.replication().processBrokerHeartbeat(request, cluster.offset()));
    if (reply.inControlledShutdown()) { // as QuorumController does once the records are committed
      cluster
          .control()
          .heartbeatManager()
          .maybeUpdateControlledShutdownOffset(broker, cluster.offset());
    }
  }

  private void unregister(JsonNode event) {
    forBrokers(event, broker -> apply(cluster.replication().unregisterBroker(broker)));
  }

  private void brokerStartup(JsonNode event) {
    List<Integer> brokers = Json.numbers(event.get("brokers"));
    for (int place = 0; place < brokers.size(); place++) {
      JsonNode epoch = event.path("epochs").path(place);
      cluster.hearFromBrokers();
      forBroker(
          brokers.get(place),
          broker -> {
            register(broker, event, epoch.isNumber() ? epoch.longValue() : null);
            heartbeat(broker, false, false, List.of());
          });
    }
  }

  private void register(int broker, JsonNode event, Long givenEpoch) {
    Cluster.Registered before = cluster.registered(broker);
    long epoch = givenEpoch == null ? cluster.nextBrokerEpoch() : givenEpoch;
    BrokerRegistrationRequestData request =
        new BrokerRegistrationRequestData()
            .setBrokerId(broker)
            .setClusterId(Managers.CLUSTER_ID)
            .setIncarnationId(Uuid.randomUuid())
            .setRack(before == null ? null : before.rack())
            .setLogDirs(before == null ? List.of() : before.directories());
    JsonNode directories = event.path("log_dirs").path(String.valueOf(broker));
    if (directories.isArray()) {
      request.setLogDirs(Json.ids(directories));
    }
    if (Json.flag(event, "clean")) {
      request.setPreviousBrokerEpoch(before == null ? NEVER_REGISTERED : before.epoch());
    }
    request
        .listeners()
        .add(
            new BrokerRegistrationRequestData.Listener()
                .setName(SnapshotRecords.LISTENER)
                .setHost("h")
                .setPort(1));
    request.features().add(feature(MetadataVersion.FEATURE_NAME, 1, Short.MAX_VALUE));
    request.features().add(feature(Managers.ELR_FEATURE, 0, 1));
    FinalizedControllerFeatures finalized =
        new FinalizedControllerFeatures(
            Map.of(MetadataVersion.FEATURE_NAME, version.featureLevel()), cluster.offset());
    apply(Release.INSTANCE.registerBroker(cluster.control(), request, epoch, finalized));
  }

  private static BrokerRegistrationRequestData.Feature feature(String name, int from, int upTo) {
    return new BrokerRegistrationRequestData.Feature()
        .setName(name)
        .setMinSupportedVersion((short) from)
        .setMaxSupportedVersion((short) upTo);
  }

  private void assignDirs(JsonNode event) {
    int broker = event.get("broker").intValue();
    AssignReplicasToDirsRequestData request =
        new AssignReplicasToDirsRequestData().setBrokerId(broker).setBrokerEpoch(epochOf(broker));
    Map<Uuid, String> topics = new HashMap<>();
    Json.members(event.get("partitions"))
        .forEach(
            (text, directory) -> {
              TopicPartitionName partition = TopicPartitionName.of(text);
              Uuid known = cluster.topicId(partition.topic());
              Uuid id = known == null ? Uuid.randomUuid() : known;
              topics.put(id, partition.topic());
              request.directories().add(assignment(directory.textValue(), id, partition));
            });
    try {
      AssignReplicasToDirsResponseData answer =
          apply(cluster.replication().handleAssignReplicasToDirs(request));
      for (AssignReplicasToDirsResponseData.DirectoryData directory : answer.directories()) {
        for (AssignReplicasToDirsResponseData.TopicData topic : directory.topics()) {
          for (AssignReplicasToDirsResponseData.PartitionData partition : topic.partitions()) {
            if (partition.errorCode() != Errors.NONE.code()) {
              journal.result(
                  topics.get(topic.topicId()),
                  partition.partitionIndex(),
                  broker,
                  name(partition.errorCode()));
            }
          }
        }
      }
    } catch (ApiException refusal) {
      journal.refused(name(refusal));
    }
  }

  private static AssignReplicasToDirsRequestData.DirectoryData assignment(
      String directory, Uuid topic, TopicPartitionName partition) {
    return new AssignReplicasToDirsRequestData.DirectoryData()
        .setId(Uuid.fromString(directory))
        .setTopics(
            List.of(
                new AssignReplicasToDirsRequestData.TopicData()
                    .setTopicId(topic)
                    .setPartitions(
                        List.of(
                            new AssignReplicasToDirsRequestData.PartitionData()
                                .setPartitionIndex(partition.partition())))));
  }

  // --- ISRs --------------------------------------------------------------------------------------

  private void isrChange(JsonNode event) {
    TopicPartitionName name = TopicPartitionName.of(event.get("partition").textValue());
    PartitionRegistration partition = cluster.partition(name);
    int leader = partition == null ? NO_LEADER : partition.leader;
    try {
      alterPartitions((int) Json.number(event, "sender", leader), Map.of(name, event));
    } catch (ApiException refusal) {
      journal.refused(name(refusal));
    }
  }

  private void catchUp(JsonNode event) {
    List<Integer> brokers = Json.numbers(event.get("brokers"));
    SortedMap<Integer, Map<TopicPartitionName, JsonNode>> byLeader = new TreeMap<>();
    cluster.eachPartition(
        (name, partition) -> {
          if (!partition.hasLeader() || !isOnline(partition.leader, partition)) {
            return;
          }
          Set<Integer> isr = new LinkedHashSet<>(Replicas.toList(partition.isr));
          boolean grew =
              isr.addAll(
                  brokers.stream()
                      .filter(broker -> Replicas.contains(partition.replicas, broker))
                      .filter(broker -> isOnline(broker, partition))
                      .toList());
          if (grew) {
            byLeader
                .computeIfAbsent(partition.leader, leader -> new LinkedHashMap<>())
                .put(name, Json.object().set("isr", Json.ofNumbers(isr)));
          }
        });
    byLeader.forEach(this::alterPartitions);
  }

  private boolean isOnline(int broker, PartitionRegistration partition) {
    return cluster.control().isActive(broker)
        && (!Replicas.contains(partition.replicas, broker)
            || cluster.control().registration(broker).hasOnlineDir(partition.directory(broker)));
  }

  /** One AlterPartition request; every report has an ISR, and may claim other epochs. */
  private void alterPartitions(int sender, Map<TopicPartitionName, JsonNode> reports) {
    AlterPartitionRequestData request =
        new AlterPartitionRequestData().setBrokerId(sender).setBrokerEpoch(epochOf(sender));
    List<TopicPartitionName> asked = new ArrayList<>(reports.keySet());
    for (TopicPartitionName name : asked) {
      Uuid id = cluster.topicId(name.topic());
      request
          .topics()
          .add(
              new AlterPartitionRequestData.TopicData()
                  .setTopicId(id == null ? NO_SUCH_TOPIC : id)
                  .setPartitions(List.of(report(name, reports.get(name)))));
    }
    AlterPartitionResponseData answer =
        apply(cluster.replication().alterPartition(context(), request));
    for (int place = 0; place < answer.topics().size(); place++) {
      for (AlterPartitionResponseData.PartitionData each :
          answer.topics().get(place).partitions()) {
        if (each.errorCode() != Errors.NONE.code()) {
          journal.result(asked.get(place), name(each.errorCode()));
        }
      }
    }
  }

  private AlterPartitionRequestData.PartitionData report(
      TopicPartitionName name, JsonNode report) {
    PartitionRegistration now = cluster.partition(name);
    return new AlterPartitionRequestData.PartitionData()
        .setPartitionIndex(name.partition())
        .setLeaderEpoch((int) Json.number(report, "leader_epoch", now == null ? 0 : now.leaderEpoch))
        .setPartitionEpoch(
            (int) Json.number(report, "partition_epoch", now == null ? 0 : now.partitionEpoch))
        .setLeaderRecoveryState((byte) Json.number(report, "recovery", 0))
        .setNewIsrWithEpochs(
            Json.numbers(report.get("isr")).stream()
                .map(broker -> isrMember(broker, report.path("broker_epochs")))
                .toList());
  }

  private AlterPartitionRequestData.BrokerState isrMember(int broker, JsonNode claimedEpochs) {
    BrokerRegistration known = cluster.broker(broker);
    long epoch = known == null ? NEVER_REGISTERED : known.epoch();
    return new AlterPartitionRequestData.BrokerState()
        .setBrokerId(broker)
        .setBrokerEpoch(Json.number(claimedEpochs, String.valueOf(broker), epoch));
  }

  // --- Elections ---------------------------------------------------------------------------------

  private void preferredElection(JsonNode event) {
    elect(event.get("partitions"), ElectionType.PREFERRED);
  }

  private void uncleanElection(JsonNode event) {
    elect(event.get("partitions"), ElectionType.UNCLEAN);
  }

  private void elect(JsonNode partitions, ElectionType type) {
    ElectLeadersRequestData request = new ElectLeadersRequestData().setElectionType(type.value);
    request.setTopicPartitions(partitions.isArray() ? topicPartitions(partitions) : null);
    ElectLeadersResponseData answer = apply(cluster.replication().electLeaders(request));
    for (ElectLeadersResponseData.ReplicaElectionResult topic :
        answer.replicaElectionResults()) {
      for (ElectLeadersResponseData.PartitionResult each : topic.partitionResult()) {
        journal.result(
            new TopicPartitionName(topic.topic(), each.partitionId()), name(each.errorCode()));
      }
    }
  }

  private static TopicPartitionsCollection topicPartitions(JsonNode partitions) {
    TopicPartitionsCollection topics = new TopicPartitionsCollection();
    for (String text : Json.texts(partitions)) {
      TopicPartitionName name = TopicPartitionName.of(text);
      TopicPartitions topic = topics.find(name.topic());
      if (topic == null) {
        topic = new TopicPartitions().setTopic(name.topic());
        topics.add(topic);
      }
      topic.partitions().add(name.partition());
    }
    return topics;
  }

  private void autoRebalance(JsonNode event) {
    apply(cluster.replication().maybeBalancePartitionLeaders());
  }

  private void autoUncleanElection(JsonNode event) {
    apply(cluster.replication().maybeElectUncleanLeaders());
  }

  // --- Reassignments -----------------------------------------------------------------------------

  private void reassign(JsonNode event) {
    Map<String, List<Integer>> targets = new LinkedHashMap<>();
    Json.members(event.get("partitions"))
        .forEach((partition, replicas) -> targets.put(partition, Json.numbers(replicas)));
    AlterPartitionReassignmentsRequestData request = reassignment(targets);
    if (event.hasNonNull("allow_replication_factor_change")) {
      Release.INSTANCE.allowReplicationFactorChange(
          request, Json.flag(event, "allow_replication_factor_change"));
    }
    reassign(request);
  }

  private void cancelReassignment(JsonNode event) {
    Map<String, List<Integer>> targets = new LinkedHashMap<>();
    Json.texts(event.get("partitions")).forEach(partition -> targets.put(partition, null));
    reassign(reassignment(targets));
  }

  private static AlterPartitionReassignmentsRequestData reassignment(
      Map<String, List<Integer>> targets) {
    AlterPartitionReassignmentsRequestData request = new AlterPartitionReassignmentsRequestData();
    targets.forEach(
        (text, target) -> {
          TopicPartitionName name = TopicPartitionName.of(text);
          ReassignablePartition partition =
              new ReassignablePartition()
                  .setPartitionIndex(name.partition())
                  .setReplicas(target);
          request
              .topics()
              .add(
                  new ReassignableTopic()
                      .setName(name.topic())
                      .setPartitions(List.of(partition)));
        });
    return request;
  }

  private void reassign(AlterPartitionReassignmentsRequestData request) {
    AlterPartitionReassignmentsResponseData answer =
        apply(cluster.replication().alterPartitionReassignments(request));
    for (AlterPartitionReassignmentsResponseData.ReassignableTopicResponse topic :
        answer.responses()) {
      for (AlterPartitionReassignmentsResponseData.ReassignablePartitionResponse each :
          topic.partitions()) {
        journal.result(
            new TopicPartitionName(topic.name(), each.partitionIndex()), name(each.errorCode()));
      }
    }
  }

  // --- Topics ------------------------------------------------------------------------------------

  private void topicChange(JsonNode event) {
    deleteTopics(Json.texts(event.get("removed")));
    CreateTopicsRequestData request = new CreateTopicsRequestData();
    Json.members(event.get("topics"))
        .forEach((name, assignment) -> request.topics().add(creation(name, assignment)));
    if (request.topics().isEmpty()) {
      return;
    }
    try {
      for (CreatableTopicResult topic :
          apply(
                  Release.INSTANCE.createTopics(
                      cluster.replication(), context(), request, Set.of()))
              .topics()) {
        if (topic.errorCode() != Errors.NONE.code()) {
          journal.refusedTopic(topic.name(), name(topic.errorCode()));
        }
      }
    } catch (ApiException refusal) {
      journal.refused(name(refusal));
    }
  }

  private static CreatableTopic creation(String name, JsonNode assignment) {
    CreatableTopic topic =
        new CreatableTopic().setName(name).setNumPartitions(-1).setReplicationFactor((short) -1);
    Json.members(assignment)
        .forEach(
            (number, replicas) ->
                topic
                    .assignments()
                    .add(
                        new CreatableReplicaAssignment()
                            .setPartitionIndex(Integer.parseInt(number))
                            .setBrokerIds(Json.numbers(replicas))));
    return topic;
  }

  private void partitionChange(JsonNode event) {
    String name = event.get("topic").textValue();
    SortedMap<Integer, CreatePartitionsAssignment> added = new TreeMap<>();
    Json.members(event.get("partitions"))
        .forEach(
            (number, replicas) ->
                added.put(
                    Integer.parseInt(number),
                    new CreatePartitionsAssignment().setBrokerIds(Json.numbers(replicas))));
    CreatePartitionsTopic topic =
        new CreatePartitionsTopic()
            .setName(name)
            .setCount(cluster.partitionCount(name) + added.size())
            .setAssignments(new ArrayList<>(added.values()));
    for (CreatePartitionsTopicResult answer :
        apply(cluster.replication().createPartitions(context(), List.of(topic)))) {
      if (answer.errorCode() != Errors.NONE.code()) {
        journal.refusedTopic(answer.name(), name(answer.errorCode()));
      }
    }
  }

  private void deleteTopics(JsonNode event) {
    deleteTopics(Json.texts(event.get("topics")));
  }

  private void deleteTopics(List<String> names) {
    Set<Uuid> ids = new LinkedHashSet<>();
    for (String name : names) {
      Uuid id = cluster.topicId(name);
      if (id == null) {
        journal.refusedTopic(name, Errors.UNKNOWN_TOPIC_OR_PARTITION.name());
      } else {
        ids.add(id);
      }
    }
    if (!ids.isEmpty()) {
      apply(cluster.replication().deleteTopics(context(), ids));
    }
  }

  // --- The controller ----------------------------------------------------------------------------

  private void controllerFailover(JsonNode event) {
    cluster.takeOver((int) Json.number(event, "controller", cluster.controllerId()));
  }
}
