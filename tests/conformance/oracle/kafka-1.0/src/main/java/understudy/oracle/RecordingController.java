package understudy.oracle;

import kafka.common.TopicAndPartition;
import kafka.controller.KafkaController;
import kafka.controller.LeaderIsrAndControllerEpoch;
import kafka.server.KafkaConfig;
import kafka.utils.ZkUtils;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.AbstractResponse;
import org.apache.kafka.common.utils.Time;
import scala.Function1;
import scala.Option;
import scala.collection.Map;
import scala.collection.Seq;
import scala.runtime.BoxedUnit;

/** Kafka's controller, whose requests are noted instead of sent. */
final class RecordingController extends KafkaController {

  private final Journal journal;
  private final Requests requests;
  private boolean removed;

  RecordingController(KafkaConfig config, ZkUtils zkUtils, Metrics metrics, Journal journal) {
    super(config, zkUtils, Time.SYSTEM, metrics, Option.empty());
    this.journal = journal;
    this.requests = new Requests(journal);
  }

  /** Kafka has no channel to a broker that is not registered, and drops what is for it. */
  @Override
  public void sendRequest(
      int broker,
      ApiKeys kind,
      AbstractRequest.Builder<? extends AbstractRequest> builder,
      Function1<AbstractResponse, BoxedUnit> callback) {
    boolean connected = controllerContext().liveOrShuttingDownBrokerIds().contains(broker);
    requests.note(broker, connected, builder.build(), callback != null);
  }

  void forgetRemoval() {
    removed = false;
  }

  /** Whether a replica was taken out of an ISR, or was not in it, since that was forgotten. */
  boolean hasRemoved() {
    return removed;
  }

  @Override
  public Option<LeaderIsrAndControllerEpoch> removeReplicaFromIsr(
      String topic, int partition, int replica) {
    Option<LeaderIsrAndControllerEpoch> record =
        super.removeReplicaFromIsr(topic, partition, replica);
    removed = record.isDefined();
    return record;
  }

  @Override
  public void updateAssignedReplicasForPartition(
      TopicAndPartition partition, Map<TopicAndPartition, Seq<Object>> ofTopic) {
    journal.lookedUpAssignment(Scala.partition(partition));
    super.updateAssignedReplicasForPartition(partition, ofTopic);
  }
}
