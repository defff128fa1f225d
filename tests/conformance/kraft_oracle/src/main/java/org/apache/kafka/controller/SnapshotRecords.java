package org.apache.kafka.controller;

import static org.apache.kafka.metadata.LeaderConstants.NO_LEADER;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.metadata.ConfigRecord;
import org.apache.kafka.common.metadata.FeatureLevelRecord;
import org.apache.kafka.common.metadata.PartitionRecord;
import org.apache.kafka.common.metadata.RegisterBrokerRecord;
import org.apache.kafka.common.metadata.TopicRecord;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.server.common.MetadataVersion;

/** A snapshot document as the metadata log that leads to it. */
final class SnapshotRecords {

  static final String LISTENER = "PLAINTEXT";

  private final List<ApiMessage> records = new ArrayList<>();

  private SnapshotRecords() {}

  static List<ApiMessage> of(JsonNode snapshot, MetadataVersion version) {
    SnapshotRecords all = new SnapshotRecords();
    all.features(version, Json.flag(snapshot, "elr_enabled"));
    all.configs(ConfigResource.Type.BROKER, "", snapshot.get("configs"));
    snapshot.get("brokers").forEach(all::broker);
    snapshot.get("topics").forEach(all::topic);
    return all.records;
  }

  private void features(MetadataVersion version, boolean elr) {
    records.add(feature(MetadataVersion.FEATURE_NAME, version.featureLevel()));
    if (elr && version.isElrSupported()) {
      records.add(feature(Managers.ELR_FEATURE, (short) 1));
    }
  }

  private static FeatureLevelRecord feature(String name, short level) {
    return new FeatureLevelRecord().setName(name).setFeatureLevel(level);
  }

  private void configs(ConfigResource.Type type, String name, JsonNode settings) {
    Json.members(settings)
        .forEach(
            (key, value) ->
                records.add(
                    new ConfigRecord()
                        .setResourceType(type.id())
                        .setResourceName(name)
                        .setName(key)
                        .setValue(value.asText())));
  }

  private void broker(JsonNode broker) {
    int id = broker.get("id").intValue();
    configs(ConfigResource.Type.BROKER, String.valueOf(id), broker.get("configs"));
    records.add(
        registration(id, Json.number(broker, "epoch", 0))
            .setRack(Json.textOrNull(broker, "rack"))
            .setFenced(Json.flag(broker, "fenced"))
            .setInControlledShutdown(Json.flag(broker, "shutting_down"))
            .setLogDirs(Json.ids(broker.get("log_dirs"))));
  }

  static RegisterBrokerRecord registration(int id, long epoch) {
    RegisterBrokerRecord record =
        new RegisterBrokerRecord()
            .setBrokerId(id)
            .setBrokerEpoch(epoch)
            .setIncarnationId(new Uuid(id, epoch));
    record
        .endPoints()
        .add(new RegisterBrokerRecord.BrokerEndpoint().setName(LISTENER).setHost("h").setPort(1));
    record
        .features()
        .add(
            new RegisterBrokerRecord.BrokerFeature()
                .setName(MetadataVersion.FEATURE_NAME)
                .setMinSupportedVersion((short) 1)
                .setMaxSupportedVersion(Short.MAX_VALUE));
    return record;
  }

  private void topic(JsonNode topic) {
    String name = topic.get("name").textValue();
    Uuid id =
        topic.hasNonNull("id")
            ? Uuid.fromString(topic.get("id").textValue())
            : new Uuid(name.hashCode(), name.length());
    configs(ConfigResource.Type.TOPIC, name, topic.get("configs"));
    records.add(new TopicRecord().setName(name).setTopicId(id));
    for (JsonNode partition : topic.get("partitions")) {
      JsonNode state = partition.path("state"); // none: never led
      records.add(
          new PartitionRecord()
              .setTopicId(id)
              .setPartitionId(partition.get("partition").intValue())
              .setReplicas(Json.numbers(partition.get("replicas")))
              .setAddingReplicas(Json.numbers(partition.get("adding")))
              .setRemovingReplicas(Json.numbers(partition.get("removing")))
              .setDirectories(Json.ids(partition.get("directories")))
              .setIsr(Json.numbers(state.get("isr")))
              .setLeader((int) Json.number(state, "leader", NO_LEADER))
              .setLeaderEpoch((int) Json.number(state, "leader_epoch", 0))
              .setPartitionEpoch((int) Json.number(state, "partition_epoch", 0))
              .setLeaderRecoveryState((byte) Json.number(state, "recovery", 0))
              .setEligibleLeaderReplicas(Json.numbers(state.get("elr")))
              .setLastKnownElr(Json.numbers(state.get("last_known_elr"))));
    }
  }
}
