package understudy.oracle;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.BiConsumer;
import kafka.api.LeaderAndIsr;
import kafka.cluster.Broker;
import kafka.controller.AlterIsrReceived;
import kafka.controller.ControllerEvent;
import kafka.controller.KafkaController;
import kafka.controller.LeaderIsrAndControllerEpoch;
import kafka.server.BrokerFeatures;
import kafka.server.FinalizedFeatureCache;
import kafka.server.KafkaConfig;
import kafka.zk.BrokerInfo;
import kafka.zk.FeatureZNode;
import kafka.zk.FeatureZNodeStatus;
import kafka.zk.KafkaZkClient;
import kafka.zookeeper.ZooKeeperClient;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.feature.Features;
import org.apache.kafka.common.message.LeaderAndIsrRequestData.LeaderAndIsrPartitionState;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.utils.Time;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.BoxedUnit;

/** What Kafka 2.8 calls by other names than 3.9, or does with other arguments. */
final class Release {

  static final String PROFILE = "zk";
  static final String JAR = "kafka_2.13:2.8.2";
  static final String NEWEST_PROTOCOL = "2.8";
  static final boolean KNOWS_RECOVERY = false;

  private static final int BROKER_ZNODE_VERSION = 4;

  private Release() {}

  static KafkaZkClient zkClient(ZooKeeperClient client, Time time) {
    return new KafkaZkClient(client, false, time);
  }

  static KafkaController controller(KafkaConfig config, KafkaZkClient client, Metrics metrics) {
    Broker self =
        new Broker(
            config.brokerId(),
            "broker",
            9092,
            ListenerName.forSecurityProtocol(SecurityProtocol.PLAINTEXT),
            SecurityProtocol.PLAINTEXT);
    BrokerFeatures features = BrokerFeatures.createDefault();
    return new KafkaController(
        config,
        client,
        Time.SYSTEM,
        metrics,
        new BrokerInfo(self, BROKER_ZNODE_VERSION, -1),
        0,
        null,
        features,
        new FinalizedFeatureCache(features),
        Option.empty());
  }

  static void stopTimers(KafkaController controller) {
    controller.kafkaScheduler().shutdown();
  }

  /** What the controller would write, so that it does not and need not wait for itself. */
  static ObjectNode featureZNode(String protocol) {
    FeatureZNode node =
        new FeatureZNode(FeatureZNodeStatus.Enabled$.MODULE$, Features.emptyFinalizedFeatures());
    return (ObjectNode) Json.parse(FeatureZNode.encode(node));
  }

  static Record record(LeaderIsrAndControllerEpoch cached) {
    List<Integer> isr = new ArrayList<>();
    CollectionConverters.asJava(cached.leaderAndIsr().isr()).forEach(id -> isr.add((Integer) id));
    return new Record(
        cached.leaderAndIsr().leader(),
        cached.leaderAndIsr().leaderEpoch(),
        isr,
        cached.leaderAndIsr().zkVersion(),
        cached.controllerEpoch(),
        0);
  }

  static int partitionEpoch(LeaderAndIsrPartitionState state) {
    return state.zkVersion();
  }

  static Optional<Byte> recovery(LeaderAndIsrPartitionState state, short version) {
    return Optional.empty();
  }

  static boolean isAlterPartitionEnabled(KafkaConfig config) {
    return config.interBrokerProtocolVersion().isAlterIsrSupported();
  }

  /** The leader's request; {@code refused} hears of errors. */
  static ControllerEvent alterPartition(
      Controller controller,
      int leader,
      Map<TopicPartition, List<Integer>> isrs,
      BiConsumer<TopicPartition, String> refused) {
    Map<TopicPartition, LeaderAndIsr> reports = new HashMap<>();
    isrs.forEach(
        (partition, isr) -> {
          Record cached = controller.cached(partition).orElseThrow();
          reports.put(
              partition,
              new LeaderAndIsr(
                  leader,
                  cached.leaderEpoch(),
                  CollectionConverters.asScala(new ArrayList<Object>(isr)).toList(),
                  cached.partitionEpoch()));
        });
    return new AlterIsrReceived(
        leader,
        (Long) controller.context.liveBrokerIdAndEpochs().apply(leader),
        CollectionConverters.asScala(reports),
        answer -> {
          if (answer.isRight()) {
            refused.accept(null, answer.toOption().get().name());
          } else {
            CollectionConverters.asJava(answer.left().toOption().get())
                .forEach(
                    (partition, result) -> {
                      if (result.isLeft()) {
                        refused.accept(partition, result.left().toOption().get().name());
                      }
                    });
          }
          return BoxedUnit.UNIT;
        });
  }
}
