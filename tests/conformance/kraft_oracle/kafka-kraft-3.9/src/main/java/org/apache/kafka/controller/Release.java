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

/** Kafka 3.9. */
final class Release extends Adapter {

  static final Adapter INSTANCE = new Release();

  private Release() {
    super("3.9.2", "3.9-IV0");
  }

  @Override
  MetadataVersion metadataVersion(String name) {
    return MetadataVersion.fromVersionString(name);
  }

  @Override
  void watchFeatures(
      ConfigurationControlManager.Builder configs, FeatureControlManager features) {}

  @Override
  void tellOfShutdowns(
      ClusterControlManager.Builder cluster, Supplier<ReplicationControlManager> told) {
    cluster.setBrokerUncleanShutdownHandler(
        (broker, records) -> told.get().handleBrokerUncleanShutdown(broker, records));
  }

  @Override
  void measure(ClusterControlManager.Builder cluster, Time time) {}

  @Override
  ControllerResult<BrokerRegistrationReply> registerBroker(
      ClusterControlManager cluster,
      BrokerRegistrationRequestData request,
      long epoch,
      FinalizedControllerFeatures features) {
    return cluster.registerBroker(request, epoch, features);
  }

  @Override
  void trackHeartbeat(ClusterControlManager cluster, BrokerRegistration broker) {}

  @Override
  ControllerResult<CreateTopicsResponseData> createTopics(
      ReplicationControlManager replication,
      ControllerRequestContext context,
      CreateTopicsRequestData request,
      Set<String> describable) {
    return replication.createTopics(context, request, describable);
  }

  @Override
  void allowReplicationFactorChange(
      AlterPartitionReassignmentsRequestData request, boolean allow) {}
}
