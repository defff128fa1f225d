package org.apache.kafka.controller;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.metadata.ConfigRecord;
import org.apache.kafka.common.metadata.FeatureLevelRecord;
import org.apache.kafka.common.metadata.PartitionRecord;
import org.apache.kafka.common.metadata.TopicRecord;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.common.MetadataVersion;

/**
 * How fast Kafka's own managers fence brokers, with everything in memory and no log written.
 *
 * <p>The snapshot is a folder of tab-separated lines: {@code brokers} (id, epoch, fenced, shutting
 * down), {@code configs} (topic, key, value) and {@code partitions} (topic, partition, replicas,
 * ISR, leader, both epochs).
 */
final class Pace {

  private static final int NO_BROKER = -1; // as the controller itself: nobody's settings count

  private Pace() {}

  /** Seconds to load, to decide on every fence by itself, and to carry one of them out. */
  static ObjectNode measure(Path snapshot, int fenced) {
    List<ApiMessage> records = records(snapshot);
    long start = System.nanoTime();
    Cluster cluster = new Cluster(NO_BROKER, Map.of(), records);
    double load = secondsSince(start);
    decideOnEach(cluster); // the compiler's turn
    start = System.nanoTime();
    long decided = decideOnEach(cluster);
    double every = secondsSince(start);
    start = System.nanoTime();
    List<ApiMessageAndVersion> written = decideOn(cluster, fenced);
    double one = secondsSince(start);
    written.forEach(record -> cluster.append(record.message()));
    return Json.object()
        .put("jar", Release.INSTANCE.jar())
        .put("load_seconds", load)
        .put("every_records", decided)
        .put("every_seconds", every)
        .put("one_records", written.size())
        .put("one_seconds", one)
        .put("one_applied_seconds", secondsSince(start));
  }

  /** Each broker that is not fenced by itself, from the same state; the number of records. */
  private static long decideOnEach(Cluster cluster) {
    return cluster.brokers().stream()
        .filter(broker -> !broker.fenced())
        .mapToLong(broker -> decideOn(cluster, broker.id()).size())
        .sum();
  }

  private static List<ApiMessageAndVersion> decideOn(Cluster cluster, int broker) {
    List<ApiMessageAndVersion> written = new ArrayList<>();
    cluster.replication().handleBrokerFenced(broker, written);
    return written;
  }

  private static double secondsSince(long start) {
    return (System.nanoTime() - start) / 1e9;
  }

  // --- The snapshot ------------------------------------------------------------------------------

  private static List<ApiMessage> records(Path snapshot) {
    MetadataVersion version =
        Release.INSTANCE.metadataVersion(Release.INSTANCE.newestMetadataVersion());
    List<ApiMessage> records = new ArrayList<>();
    records.add(
        new FeatureLevelRecord()
            .setName(MetadataVersion.FEATURE_NAME)
            .setFeatureLevel(version.featureLevel()));
    eachLine(
        snapshot.resolve("brokers"),
        field ->
            records.add(
                SnapshotRecords.registration(number(field[0]), Long.parseLong(field[1]))
                    .setFenced(Boolean.parseBoolean(field[2]))
                    .setInControlledShutdown(Boolean.parseBoolean(field[3]))));
    eachLine(
        snapshot.resolve("configs"),
        field ->
            records.add(
                new ConfigRecord()
                    .setResourceType(ConfigResource.Type.TOPIC.id())
                    .setResourceName(field[0])
                    .setName(field[1])
                    .setValue(field[2])));
    Map<String, Uuid> topics = new HashMap<>();
    eachLine(
        snapshot.resolve("partitions"),
        field -> {
          Uuid topic = topics.get(field[0]);
          if (topic == null) {
            topic = new Uuid(1, topics.size() + 1);
            topics.put(field[0], topic);
            records.add(new TopicRecord().setName(field[0]).setTopicId(topic));
          }
          records.add(
              new PartitionRecord()
                  .setTopicId(topic)
                  .setPartitionId(number(field[1]))
                  .setReplicas(numbers(field[2]))
                  .setIsr(numbers(field[3]))
                  .setLeader(number(field[4]))
                  .setLeaderEpoch(number(field[5]))
                  .setPartitionEpoch(number(field[6])));
        });
    return records;
  }

  private static void eachLine(Path folder, Consumer<String[]> action) {
    try (Stream<Path> files = Files.list(folder)) {
      for (Path file : files.filter(Pace::isPart).sorted().toList()) {
        try (Stream<String> lines = Files.lines(file)) {
          lines.map(line -> line.split("\t", -1)).forEach(action);
        }
      }
    } catch (IOException failure) {
      throw new UncheckedIOException(failure);
    }
  }

  private static boolean isPart(Path file) {
    return file.getFileName().toString().startsWith("part-");
  }

  private static int number(String text) {
    return Integer.parseInt(text);
  }

  private static List<Integer> numbers(String text) {
    return text.isEmpty() ? List.of() : Stream.of(text.split(",")).map(Pace::number).toList();
  }
}
