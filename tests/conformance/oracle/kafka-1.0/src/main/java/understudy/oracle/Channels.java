package understudy.oracle;

import kafka.cluster.Broker;
import kafka.controller.ControllerChannelManager;
import kafka.controller.ControllerContext;
import kafka.controller.StateChangeLogger;
import kafka.server.KafkaConfig;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.utils.Time;
import scala.Option;

/** Channels to brokers that open none; requests are noted before they would come here. */
final class Channels extends ControllerChannelManager {

  /** Made while the context knows no broker. */
  Channels(
      ControllerContext context, KafkaConfig config, Metrics metrics, StateChangeLogger logger) {
    super(context, config, Time.SYSTEM, metrics, logger, Option.empty());
  }

  @Override
  public void startup() {}

  @Override
  public void shutdown() {}

  @Override
  public void addBroker(Broker broker) {}

  @Override
  public void removeBroker(int broker) {}
}
