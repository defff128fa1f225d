package org.apache.kafka.controller;

import java.util.List;
import java.util.Map;
import java.util.Random;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.metadata.BrokerRegistrationChangeRecord;
import org.apache.kafka.common.metadata.ConfigRecord;
import org.apache.kafka.common.metadata.FeatureLevelRecord;
import org.apache.kafka.common.metadata.FenceBrokerRecord;
import org.apache.kafka.common.metadata.MetadataRecordType;
import org.apache.kafka.common.metadata.PartitionChangeRecord;
import org.apache.kafka.common.metadata.PartitionRecord;
import org.apache.kafka.common.metadata.RegisterBrokerRecord;
import org.apache.kafka.common.metadata.RemoveTopicRecord;
import org.apache.kafka.common.metadata.TopicRecord;
import org.apache.kafka.common.metadata.UnfenceBrokerRecord;
import org.apache.kafka.common.metadata.UnregisterBrokerRecord;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.metadata.KafkaConfigSchema;
import org.apache.kafka.metadata.VersionRange;
import org.apache.kafka.metadata.placement.StripedReplicaPlacer;
import org.apache.kafka.server.common.MetadataVersion;
import org.apache.kafka.server.config.ConfigSynonym;
import org.apache.kafka.timeline.SnapshotRegistry;

/** The managers of one controller, put together as Kafka does; records alone change them. */
final class Managers {

  static final String CLUSTER_ID = "cluster";
  static final String ELR_FEATURE = "eligible.leader.replicas.version";

  private static final Map<String, VersionRange> SUPPORTED =
      Map.of(
          MetadataVersion.FEATURE_NAME, VersionRange.of((short) 1, Short.MAX_VALUE),
          ELR_FEATURE, VersionRange.of((short) 0, (short) 1));
  private static final String UNCLEAN = "unclean.leader.election.enable";
  private static final String MIN_ISR = "min.insync.replicas";
  private static final long SESSION_NS = 9_000_000_000L;
  private static final int NO_LIMIT = 1_000_000; // of elections in one go of a periodic task

  final ClusterControlManager cluster;
  final ReplicationControlManager replication;
  private final FeatureControlManager features;
  private final ConfigurationControlManager configs;

  Managers(int controllerId, Map<String, Object> staticConfigs, Time time) {
    SnapshotRegistry registry = new SnapshotRegistry(new LogContext());
    features =
        new FeatureControlManager.Builder()
            .setSnapshotRegistry(registry)
            .setQuorumFeatures(new QuorumFeatures(controllerId, SUPPORTED, List.of(controllerId)))
            .build();
    ConfigurationControlManager.Builder configsBuilder =
        new ConfigurationControlManager.Builder()
            .setSnapshotRegistry(registry)
            .setKafkaConfigSchema(schema())
            .setStaticConfig(staticConfigs)
            .setNodeId(controllerId);
    Release.INSTANCE.watchFeatures(configsBuilder, features);
    configs = configsBuilder.build();
    ClusterControlManager.Builder clusterBuilder =
        new ClusterControlManager.Builder()
            .setSnapshotRegistry(registry)
            .setTime(time)
            .setClusterId(CLUSTER_ID)
            .setSessionTimeoutNs(SESSION_NS)
            .setReplicaPlacer(new StripedReplicaPlacer(new Random(1)))
            .setFeatureControlManager(features);
    Release.INSTANCE.tellOfShutdowns(clusterBuilder, this::replication);
    Release.INSTANCE.measure(clusterBuilder, time);
    cluster = clusterBuilder.build();
    replication =
        new ReplicationControlManager.Builder()
            .setSnapshotRegistry(registry)
            .setConfigurationControl(configs)
            .setClusterControl(cluster)
            .setFeatureControl(features)
            .setMaxElectionsPerImbalance(NO_LIMIT)
            .build();
  }

  private ReplicationControlManager replication() {
    return replication;
  }

  private static KafkaConfigSchema schema() {
    ConfigDef settings =
        new ConfigDef()
            .define(UNCLEAN, ConfigDef.Type.BOOLEAN, false, ConfigDef.Importance.HIGH, "")
            .define(MIN_ISR, ConfigDef.Type.INT, 1, ConfigDef.Importance.HIGH, "");
    return new KafkaConfigSchema(
        Map.of(ConfigResource.Type.TOPIC, settings, ConfigResource.Type.BROKER, settings),
        Map.of(
            UNCLEAN, List.of(new ConfigSynonym(UNCLEAN)),
            MIN_ISR, List.of(new ConfigSynonym(MIN_ISR))));
  }

  /** As QuorumController.replay: every record to the manager it belongs to. */
  void replay(ApiMessage record, long offset) {
    MetadataRecordType type = MetadataRecordType.fromId(record.apiKey());
    switch (type) {
      case FEATURE_LEVEL_RECORD -> features.replay((FeatureLevelRecord) record);
      case CONFIG_RECORD -> configs.replay((ConfigRecord) record);
      case REGISTER_BROKER_RECORD -> cluster.replay((RegisterBrokerRecord) record, offset);
      case UNREGISTER_BROKER_RECORD -> cluster.replay((UnregisterBrokerRecord) record);
      case BROKER_REGISTRATION_CHANGE_RECORD ->
          cluster.replay((BrokerRegistrationChangeRecord) record);
      case FENCE_BROKER_RECORD -> cluster.replay((FenceBrokerRecord) record);
      case UNFENCE_BROKER_RECORD -> cluster.replay((UnfenceBrokerRecord) record);
      case TOPIC_RECORD -> replication.replay((TopicRecord) record);
      case PARTITION_RECORD -> replication.replay((PartitionRecord) record);
      case PARTITION_CHANGE_RECORD -> replication.replay((PartitionChangeRecord) record);
      case REMOVE_TOPIC_RECORD -> replication.replay((RemoveTopicRecord) record);
      default -> throw new IllegalStateException("no event writes a record of type " + type);
    }
  }
}
