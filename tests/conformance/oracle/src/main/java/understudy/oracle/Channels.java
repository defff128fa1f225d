package understudy.oracle;

import kafka.cluster.Broker;
import kafka.server.KafkaConfig;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.requests.AbstractControlRequest;
import org.apache.kafka.common.requests.AbstractResponse;
import scala.Function1;
import scala.runtime.BoxedUnit;

/**
 * The channels to brokers: whatever the controller hands over is noted and goes nowhere.
 *
 * <p>Kafka's own would drop a request to a broker whose channel it has just closed, as it does to
 * those that leave while others arrive; such a request counts, since the controller made it.
 */
final class Channels extends ChannelManagerBase {

  private final Requests requests;
  private final Runnable whenLoaded;

  /** {@code whenLoaded} runs when the controller has loaded its context and starts its channels. */
  Channels(
      KafkaConfig config,
      Metrics metrics,
      RecordingContext context,
      Journal journal,
      Runnable whenLoaded) {
    super(config, metrics, context);
    this.requests = new Requests(journal);
    this.whenLoaded = whenLoaded;
  }

  @Override
  void started() {
    whenLoaded.run();
  }

  @Override
  public void shutdown() {}

  @Override
  public void addBroker(Broker broker) {}

  @Override
  public void removeBroker(int broker) {}

  @Override
  public void sendRequest(
      int broker,
      AbstractControlRequest.Builder<? extends AbstractControlRequest> builder,
      Function1<AbstractResponse, BoxedUnit> callback) {
    requests.note(broker, builder);
  }
}
