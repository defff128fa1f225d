package understudy.oracle;

/** What the shared classes ask about Kafka 1.0. */
final class Release {

  static final String PROFILE = "zk-legacy";
  static final String JAR = "kafka_2.12:1.0.2";
  static final String NEWEST_PROTOCOL = "1.0";
  static final boolean KNOWS_RECOVERY = false;

  private Release() {}
}
