package understudy.oracle;

import kafka.cluster.Broker;
import kafka.controller.ControllerChannelManager;
import kafka.controller.ControllerContext;
import kafka.controller.StateChangeLogger;
import kafka.server.KafkaConfig;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.utils.Time;
import scala.Option;
import scala.collection.Set;

/** Kafka 3.9's channel manager, which is told its first brokers when it starts. */
abstract class ChannelManagerBase extends ControllerChannelManager {

  ChannelManagerBase(KafkaConfig config, Metrics metrics, ControllerContext context) {
    super(
        context::epoch,
        config,
        Time.SYSTEM,
        metrics,
        new StateChangeLogger(config.brokerId(), true, Option.empty()),
        Option.empty());
  }

  abstract void started();

  @Override
  public final void startup(Set<Broker> brokers) {
    started();
  }
}
