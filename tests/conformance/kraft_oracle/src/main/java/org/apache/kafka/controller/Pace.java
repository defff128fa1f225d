package org.apache.kafka.controller;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.metadata.FeatureLevelRecord;
import org.apache.kafka.common.metadata.PartitionRecord;
import org.apache.kafka.common.metadata.TopicRecord;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.common.MetadataVersion;

/**
 * How fast Kafka's own managers fence one broker, with everything in memory and no log written.
 *
 * <p>The cluster has the shape of the project's synthetic stores: three replicas on distinct racks
 * of 200 brokers, 50 partitions to a topic.
 */
final class Pace {

  private static final int BROKERS = 200;
  private static final int REPLICAS = 3;
  private static final int RACKS = 3;
  private static final int PER_TOPIC = 50;
  private static final int WARM_UPS = 20;
  private static final int WARM_UP_PARTITIONS = 20_000;
  private static final int FENCED = 1;
  private static final long SEED = 7;

  private Pace() {}

  /** Seconds to decide on the records of one fenced broker, and to apply them. */
  static ObjectNode measure(int partitions) {
    for (int time = 0; time < WARM_UPS; time++) {
      run(Math.min(partitions, WARM_UP_PARTITIONS));
    }
    return run(partitions);
  }

  private static ObjectNode run(int partitions) {
    Cluster cluster = new Cluster(BROKERS + 1, Map.of(), records(partitions));
    List<ApiMessageAndVersion> written = new ArrayList<>();
    long start = System.nanoTime();
    cluster.replication().handleBrokerFenced(FENCED, written);
    double deciding = (System.nanoTime() - start) / 1e9;
    written.forEach(record -> cluster.append(record.message()));
    double whole = (System.nanoTime() - start) / 1e9;
    return Json.object()
        .put("jar", Release.INSTANCE.jar())
        .put("partitions", partitions)
        .put("records", written.size())
        .put("decide_seconds", deciding)
        .put("decide_and_apply_seconds", whole)
        .put("records_per_second", Math.round(written.size() / whole));
  }

  private static List<ApiMessage> records(int partitions) {
    Random dice = new Random(SEED);
    MetadataVersion version =
        Release.INSTANCE.metadataVersion(Release.INSTANCE.newestMetadataVersion());
    List<ApiMessage> records = new ArrayList<>();
    records.add(
        new FeatureLevelRecord()
            .setName(MetadataVersion.FEATURE_NAME)
            .setFeatureLevel(version.featureLevel()));
    for (int id = 1; id <= BROKERS; id++) {
      records.add(SnapshotRecords.registration(id, 1_000 + id).setFenced(false));
    }
    for (int first = 0; first < partitions; first += PER_TOPIC) {
      Uuid topic = new Uuid(SEED, first + 1);
      records.add(new TopicRecord().setName("topic" + first).setTopicId(topic));
      for (int number = 0; number < Math.min(PER_TOPIC, partitions - first); number++) {
        List<Integer> replicas = replicas(dice);
        records.add(
            new PartitionRecord()
                .setTopicId(topic)
                .setPartitionId(number)
                .setReplicas(replicas)
                .setIsr(replicas)
                .setLeader(replicas.get(0))
                .setLeaderEpoch(dice.nextInt(40))
                .setPartitionEpoch(dice.nextInt(80)));
      }
    }
    return records;
  }

  private static List<Integer> replicas(Random dice) {
    int first = dice.nextInt(BROKERS);
    List<Integer> replicas = new ArrayList<>(List.of(first + 1));
    for (int follower = 1; follower < REPLICAS; follower++) {
      int offset = follower + RACKS * dice.nextInt((BROKERS - 1 - follower) / RACKS + 1);
      replicas.add((first + offset) % BROKERS + 1);
    }
    return replicas;
  }
}
