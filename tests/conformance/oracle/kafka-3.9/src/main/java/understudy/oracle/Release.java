package understudy.oracle;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.BiConsumer;
import kafka.cluster.Broker;
import kafka.controller.AlterPartitionReceived;
import kafka.controller.ControllerEvent;
import kafka.controller.KafkaController;
import kafka.controller.LeaderIsrAndControllerEpoch;
import kafka.server.BrokerFeatures;
import kafka.server.KafkaConfig;
import kafka.server.metadata.ZkFinalizedFeatureCache;
import kafka.zk.BrokerInfo;
import kafka.zk.FeatureZNode;
import kafka.zk.FeatureZNodeStatus;
import kafka.zk.KafkaZkClient;
import kafka.zookeeper.ZooKeeperClient;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.AlterPartitionRequestData;
import org.apache.kafka.common.message.AlterPartitionRequestData.BrokerState;
import org.apache.kafka.common.message.AlterPartitionRequestData.PartitionData;
import org.apache.kafka.common.message.AlterPartitionRequestData.TopicData;
import org.apache.kafka.common.message.AlterPartitionResponseData;
import org.apache.kafka.common.message.LeaderAndIsrRequestData.LeaderAndIsrPartitionState;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.common.FinalizedFeatures;
import org.apache.kafka.server.common.MetadataVersion;
import scala.Option;
import scala.collection.immutable.Map$;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.BoxedUnit;

/** What Kafka 3.9 calls by other names than 2.8, or does with other arguments. */
final class Release {

  static final String PROFILE = "zk";
  static final String JAR = "kafka_2.13:3.9.1";
  static final String NEWEST_PROTOCOL = "3.9";
  static final boolean KNOWS_RECOVERY = true;

  private static final int BROKER_ZNODE_VERSION = 4;
  private static final short FIRST_WITH_RECOVERY = 6;
  private static final short ALTER_BY_NAME = 1;
  private static final short ALTER_BY_ID = 3;

  private Release() {}

  static KafkaZkClient zkClient(ZooKeeperClient client, Time time) {
    return new KafkaZkClient(client, false, time, false);
  }

  static KafkaController controller(KafkaConfig config, KafkaZkClient client, Metrics metrics) {
    Broker self =
        new Broker(
            config.brokerId(),
            "broker",
            9092,
            ListenerName.forSecurityProtocol(SecurityProtocol.PLAINTEXT),
            SecurityProtocol.PLAINTEXT);
    ZkFinalizedFeatureCache features =
        new ZkFinalizedFeatureCache() {
          @Override
          public void waitUntilFeatureEpochOrThrow(long epoch, long timeoutMs) {}

          @Override
          public Option<FinalizedFeatures> getFeatureOption() {
            return Option.empty();
          }
        };
    return new KafkaController(
        config,
        client,
        Time.SYSTEM,
        metrics,
        new BrokerInfo(self, BROKER_ZNODE_VERSION, -1),
        0,
        null,
        BrokerFeatures.createEmpty(),
        features,
        Option.empty());
  }

  static void stopTimers(KafkaController controller) {
    try {
      controller.kafkaScheduler().shutdown();
    } catch (InterruptedException e) {
      throw new IllegalStateException(e);
    }
  }

  /** What the controller would write, so that it does not and need not wait for itself. */
  static ObjectNode featureZNode(String protocol) {
    FeatureZNode node =
        FeatureZNode.apply(
            MetadataVersion.fromVersionString(protocol),
            FeatureZNodeStatus.Enabled$.MODULE$,
            Map$.MODULE$.empty());
    return (ObjectNode) Json.parse(FeatureZNode.encode(node));
  }

  static Record record(LeaderIsrAndControllerEpoch cached) {
    List<Integer> isr = new ArrayList<>();
    CollectionConverters.asJava(cached.leaderAndIsr().isr()).forEach(id -> isr.add((Integer) id));
    return new Record(
        cached.leaderAndIsr().leader(),
        cached.leaderAndIsr().leaderEpoch(),
        isr,
        cached.leaderAndIsr().partitionEpoch(),
        cached.controllerEpoch(),
        cached.leaderAndIsr().leaderRecoveryState().value());
  }

  static int partitionEpoch(LeaderAndIsrPartitionState state) {
    return state.partitionEpoch();
  }

  static Optional<Byte> recovery(LeaderAndIsrPartitionState state, short version) {
    return version < FIRST_WITH_RECOVERY
        ? Optional.empty()
        : Optional.of(state.leaderRecoveryState());
  }

  static boolean isAlterPartitionEnabled(KafkaConfig config) {
    return config.interBrokerProtocolVersion().isAlterPartitionSupported();
  }

  /** The leader's request, by topic id where all have one; {@code refused} hears of errors. */
  static ControllerEvent alterPartition(
      Controller controller,
      int leader,
      Map<TopicPartition, List<Integer>> isrs,
      BiConsumer<TopicPartition, String> refused) {
    boolean byId =
        controller.config.usesTopicId()
            && isrs.keySet().stream()
                .allMatch(partition -> topicId(controller, partition.topic()).isDefined());
    AlterPartitionRequestData request =
        new AlterPartitionRequestData()
            .setBrokerId(leader)
            .setBrokerEpoch((Long) controller.context.liveBrokerIdAndEpochs().apply(leader));
    isrs.forEach(
        (partition, isr) ->
            topic(controller, request, partition.topic(), byId)
                .partitions()
                .add(report(controller, partition, isr, byId)));
    return new AlterPartitionReceived(
        request,
        byId ? ALTER_BY_ID : ALTER_BY_NAME,
        answer -> {
          hear(controller, answer, byId, refused);
          return BoxedUnit.UNIT;
        });
  }

  private static Option<Uuid> topicId(Controller controller, String topic) {
    return controller.context.topicIds().get(topic);
  }

  private static TopicData topic(
      Controller controller, AlterPartitionRequestData request, String name, boolean byId) {
    Uuid id = byId ? topicId(controller, name).get() : Uuid.ZERO_UUID;
    for (TopicData topic : request.topics()) {
      if (byId ? topic.topicId().equals(id) : topic.topicName().equals(name)) {
        return topic;
      }
    }
    TopicData topic = byId ? new TopicData().setTopicId(id) : new TopicData().setTopicName(name);
    request.topics().add(topic);
    return topic;
  }

  private static PartitionData report(
      Controller controller, TopicPartition partition, List<Integer> isr, boolean byId) {
    Record cached = controller.cached(partition).orElseThrow();
    PartitionData data =
        new PartitionData()
            .setPartitionIndex(partition.partition())
            .setLeaderEpoch(cached.leaderEpoch())
            .setPartitionEpoch(cached.partitionEpoch());
    if (byId) {
      return data.setNewIsrWithEpochs(
          isr.stream().map(id -> new BrokerState().setBrokerId(id)).toList());
    }
    return data.setNewIsr(isr);
  }

  private static void hear(
      Controller controller,
      AlterPartitionResponseData answer,
      boolean byId,
      BiConsumer<TopicPartition, String> refused) {
    if (answer.errorCode() != Errors.NONE.code()) {
      refused.accept(null, Errors.forCode(answer.errorCode()).name());
    }
    for (AlterPartitionResponseData.TopicData topic : answer.topics()) {
      String name =
          byId ? controller.context.topicName(topic.topicId()).get() : topic.topicName();
      for (AlterPartitionResponseData.PartitionData partition : topic.partitions()) {
        if (partition.errorCode() != Errors.NONE.code()) {
          refused.accept(
              new TopicPartition(name, partition.partitionIndex()),
              Errors.forCode(partition.errorCode()).name());
        }
      }
    }
  }
}
