package understudy.oracle;

import kafka.zookeeper.ZooKeeperClient;
import org.apache.kafka.common.utils.Time;
import org.apache.zookeeper.client.ZKClientConfig;

/** Kafka 3.9's client with a constructor that satisfies the compiler; it is never run. */
abstract class ZooKeeperClientBase extends ZooKeeperClient {

  ZooKeeperClientBase() {
    super("", 0, 0, 1, Time.SYSTEM, "", "", new ZKClientConfig(), "");
  }
}
