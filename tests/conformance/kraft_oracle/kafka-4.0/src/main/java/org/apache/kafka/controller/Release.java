package org.apache.kafka.controller;

import java.util.Set;
import org.apache.kafka.common.message.AlterPartitionReassignmentsRequestData;
import org.apache.kafka.common.message.CreateTopicsRequestData;
import org.apache.kafka.common.message.CreateTopicsResponseData;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.common.MetadataVersion;

/** Kafka 4.0. */
final class Release extends AdapterSince40 {

  static final Adapter INSTANCE = new Release();

  private Release() {
    super("4.0.2", "4.0-IV3");
  }

  @Override
  MetadataVersion metadataVersion(String name) {
    return MetadataVersion.fromVersionString(name);
  }

  @Override
  void measure(ClusterControlManager.Builder cluster, Time time) {}

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
