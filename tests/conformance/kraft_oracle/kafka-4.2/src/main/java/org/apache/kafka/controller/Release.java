package org.apache.kafka.controller;

import java.util.Set;
import org.apache.kafka.common.message.CreateTopicsRequestData;
import org.apache.kafka.common.message.CreateTopicsResponseData;
import org.apache.kafka.server.common.MetadataVersion;

/** Kafka 4.2. */
final class Release extends AdapterSince41 {

  static final Adapter INSTANCE = new Release();

  private Release() {
    super("4.2.2", "4.2-IV1");
  }

  @Override
  MetadataVersion metadataVersion(String name) {
    return MetadataVersion.fromVersionString(name, true);
  }

  @Override
  ControllerResult<CreateTopicsResponseData> createTopics(
      ReplicationControlManager replication,
      ControllerRequestContext context,
      CreateTopicsRequestData request,
      Set<String> describable) {
    return replication.createTopics(context, request, describable);
  }
}
