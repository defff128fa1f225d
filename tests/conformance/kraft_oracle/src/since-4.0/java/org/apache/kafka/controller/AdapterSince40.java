package org.apache.kafka.controller;

import java.util.function.Supplier;
import org.apache.kafka.common.message.BrokerRegistrationRequestData;
import org.apache.kafka.metadata.BrokerRegistration;
import org.apache.kafka.metadata.BrokerRegistrationReply;
import org.apache.kafka.metadata.FinalizedControllerFeatures;

/** What 4.0 and all later releases do alike. */
abstract class AdapterSince40 extends Adapter {

  private static final boolean TELLS_CLEAN_SHUTDOWNS = true; // registrations of version 3 and later

  AdapterSince40(String version, String newestMetadataVersion) {
    super(version, newestMetadataVersion);
  }

  @Override
  final void watchFeatures(
      ConfigurationControlManager.Builder configs, FeatureControlManager features) {
    configs.setFeatureControl(features);
  }

  @Override
  final void tellOfShutdowns(
      ClusterControlManager.Builder cluster, Supplier<ReplicationControlManager> told) {
    cluster.setBrokerShutdownHandler(
        (broker, clean, records) -> told.get().handleBrokerShutdown(broker, clean, records));
  }

  @Override
  final ControllerResult<BrokerRegistrationReply> registerBroker(
      ClusterControlManager cluster,
      BrokerRegistrationRequestData request,
      long epoch,
      FinalizedControllerFeatures features) {
    return cluster.registerBroker(request, epoch, features, TELLS_CLEAN_SHUTDOWNS);
  }

  @Override
  final void trackHeartbeat(ClusterControlManager cluster, BrokerRegistration broker) {
    cluster.trackBrokerHeartbeat(broker.id(), broker.epoch());
  }
}
