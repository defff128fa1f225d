package org.apache.kafka.controller;

import java.util.Set;
import java.util.function.Supplier;
import org.apache.kafka.common.message.AlterPartitionReassignmentsRequestData;
import org.apache.kafka.common.message.BrokerRegistrationRequestData;
import org.apache.kafka.common.message.CreateTopicsRequestData;
import org.apache.kafka.common.message.CreateTopicsResponseData;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.metadata.BrokerRegistration;
import org.apache.kafka.metadata.BrokerRegistrationReply;
import org.apache.kafka.metadata.FinalizedControllerFeatures;
import org.apache.kafka.server.common.MetadataVersion;

/** What releases call by other names, or do with other arguments. */
abstract class Adapter {

  private final String version;
  private final String newestMetadataVersion;

  Adapter(String version, String newestMetadataVersion) {
    this.version = version;
    this.newestMetadataVersion = newestMetadataVersion;
  }

  final String jar() {
    return "kafka-metadata:" + version;
  }

  /** Of production: what a new cluster of this release starts with. */
  final String newestMetadataVersion() {
    return newestMetadataVersion;
  }

  abstract MetadataVersion metadataVersion(String name);

  /** Makes the configurations look at the features, where they do. */
  abstract void watchFeatures(
      ConfigurationControlManager.Builder configs, FeatureControlManager features);

  /** A registration tells the replication manager who may have lost what it had. */
  abstract void tellOfShutdowns(
      ClusterControlManager.Builder cluster, Supplier<ReplicationControlManager> told);

  abstract void measure(ClusterControlManager.Builder cluster, Time time);

  abstract ControllerResult<BrokerRegistrationReply> registerBroker(
      ClusterControlManager cluster,
      BrokerRegistrationRequestData request,
      long epoch,
      FinalizedControllerFeatures features);

  /** Notes that a broker was heard from, beside what the heartbeat manager notes. */
  abstract void trackHeartbeat(ClusterControlManager cluster, BrokerRegistration broker);

  abstract ControllerResult<CreateTopicsResponseData> createTopics(
      ReplicationControlManager replication,
      ControllerRequestContext context,
      CreateTopicsRequestData request,
      Set<String> describable);

  /** KIP-860; a release that does not know it takes any number of replicas. */
  abstract void allowReplicationFactorChange(
      AlterPartitionReassignmentsRequestData request, boolean allow);
}
