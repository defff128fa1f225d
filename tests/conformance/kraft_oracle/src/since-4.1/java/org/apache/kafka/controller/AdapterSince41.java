package org.apache.kafka.controller;

import java.util.Optional;
import org.apache.kafka.common.message.AlterPartitionReassignmentsRequestData;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.controller.metrics.QuorumControllerMetrics;

/** What 4.1 and all later releases do alike. */
abstract class AdapterSince41 extends AdapterSince40 {

  private static final int SESSION_MS = 9_000;

  AdapterSince41(String version, String newestMetadataVersion) {
    super(version, newestMetadataVersion);
  }

  @Override
  final void measure(ClusterControlManager.Builder cluster, Time time) {
    cluster.setMetrics(new QuorumControllerMetrics(Optional.empty(), time, SESSION_MS));
  }

  @Override
  final void allowReplicationFactorChange(
      AlterPartitionReassignmentsRequestData request, boolean allow) {
    request.setAllowReplicationFactorChange(allow);
  }
}
