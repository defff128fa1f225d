package understudy.oracle;

import kafka.controller.ControllerChannelManager;
import kafka.controller.ControllerContext;
import kafka.controller.StateChangeLogger;
import kafka.server.KafkaConfig;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.utils.Time;
import scala.Option;

/** Kafka 2.8's channel manager, which finds its first brokers in the context. */
abstract class ChannelManagerBase extends ControllerChannelManager {

  ChannelManagerBase(KafkaConfig config, Metrics metrics, ControllerContext context) {
    super(
        context,
        config,
        Time.SYSTEM,
        metrics,
        new StateChangeLogger(config.brokerId(), true, Option.empty()),
        Option.empty());
  }

  abstract void started();

  @Override
  public final void startup() {
    started();
  }
}
