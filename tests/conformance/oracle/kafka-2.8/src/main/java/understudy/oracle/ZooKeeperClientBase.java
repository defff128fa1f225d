package understudy.oracle;

import kafka.zookeeper.ZooKeeperClient;
import org.apache.kafka.common.utils.Time;

/** Kafka 2.8's client with a constructor that satisfies the compiler; it is never run. */
abstract class ZooKeeperClientBase extends ZooKeeperClient {

  ZooKeeperClientBase() {
    super("", 0, 0, 1, Time.SYSTEM, "", "");
  }
}
