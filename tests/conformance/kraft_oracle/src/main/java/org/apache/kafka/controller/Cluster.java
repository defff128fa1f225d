package org.apache.kafka.controller;

import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.SortedMap;
import java.util.SortedSet;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.BiConsumer;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.metadata.PartitionRecord;
import org.apache.kafka.common.metadata.RegisterBrokerRecord;
import org.apache.kafka.common.metadata.RemoveTopicRecord;
import org.apache.kafka.common.metadata.TopicRecord;
import org.apache.kafka.common.metadata.UnregisterBrokerRecord;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.metadata.BrokerRegistration;
import org.apache.kafka.metadata.PartitionRegistration;

/** The metadata log, the controller that is active over it, and what brokers know of themselves. */
final class Cluster {

  /** What a broker says when it registers again, unless an event says otherwise. */
  record Registered(long epoch, String rack, List<Uuid> directories) {}

  private record Topic(Uuid id, SortedSet<Integer> partitions) {}

  private static final long BETWEEN_EVENTS_MS = 100_000;
  private static final long CAUGHT_UP = 1_000_000; // offsets ahead: brokers have read everything

  private final Clock clock = new Clock();
  private final Map<String, Object> staticConfigs;
  private final List<ApiMessage> log = new ArrayList<>();
  private final SortedMap<String, Topic> topics = new TreeMap<>();
  private final Map<Uuid, String> names = new HashMap<>();
  private final Map<Integer, Registered> registered = new HashMap<>();
  private long newestBrokerEpoch = 0;
  private int controllerId;
  private Managers managers;

  Cluster(int controllerId, Map<String, Object> staticConfigs, List<ApiMessage> records) {
    this.staticConfigs = staticConfigs;
    this.log.addAll(records);
    takeOver(controllerId);
    records.forEach(this::note);
  }

  /** A new controller reads the log from its beginning and becomes active. */
  void takeOver(int id) {
    controllerId = id;
    managers = new Managers(id, staticConfigs, clock);
    for (int offset = 0; offset < log.size(); offset++) {
      managers.replay(log.get(offset), offset);
    }
    managers.cluster.activate();
  }

  void append(ApiMessage record) {
    log.add(record);
    managers.replay(record, offset());
    note(record);
  }

  /** Time passes; every broker that is not fenced is heard from and has read the whole log. */
  void hearFromBrokers() {
    clock.sleep(BETWEEN_EVENTS_MS);
    for (BrokerRegistration broker : brokers()) {
      if (!broker.fenced()) {
        Release.INSTANCE.trackHeartbeat(managers.cluster, broker);
        managers.cluster.heartbeatManager().touch(broker.id(), false, offsetOfBrokers());
      }
    }
  }

  private void note(ApiMessage record) {
    if (record instanceof TopicRecord topic) {
      topics.put(topic.name(), new Topic(topic.topicId(), new TreeSet<>()));
      names.put(topic.topicId(), topic.name());
    } else if (record instanceof RemoveTopicRecord topic) {
      topics.remove(names.get(topic.topicId()));
    } else if (record instanceof PartitionRecord partition) {
      topics.get(names.get(partition.topicId())).partitions.add(partition.partitionId());
    } else if (record instanceof RegisterBrokerRecord broker) {
      newestBrokerEpoch = Math.max(newestBrokerEpoch, broker.brokerEpoch());
      registered.put(
          broker.brokerId(),
          new Registered(broker.brokerEpoch(), broker.rack(), broker.logDirs()));
    } else if (record instanceof UnregisterBrokerRecord broker) {
      registered.remove(broker.brokerId());
    }
  }

  int controllerId() {
    return controllerId;
  }

  ReplicationControlManager replication() {
    return managers.replication;
  }

  ClusterControlManager control() {
    return managers.cluster;
  }

  long offset() {
    return log.size() - 1;
  }

  long offsetOfBrokers() {
    return offset() + CAUGHT_UP;
  }

  long nextBrokerEpoch() {
    return newestBrokerEpoch + 1;
  }

  Collection<BrokerRegistration> brokers() {
    return new TreeMap<>(managers.cluster.brokerRegistrations()).values();
  }

  /** Null when the broker is not registered. */
  BrokerRegistration broker(int id) {
    return managers.cluster.brokerRegistrations().get(id);
  }

  /** As the log has it, with the directories that are still online; null when not registered. */
  Registered registered(int id) {
    Registered known = registered.get(id);
    BrokerRegistration now = broker(id);
    return known == null || now == null
        ? null
        : new Registered(known.epoch, known.rack, now.directories());
  }

  /** Null when there is no such topic. */
  Uuid topicId(String name) {
    Topic topic = topics.get(name);
    return topic == null ? null : topic.id;
  }

  /** Of topics that are gone, too. */
  String topicName(Uuid id) {
    return names.get(id);
  }

  int partitionCount(String topic) {
    return topics.containsKey(topic) ? topics.get(topic).partitions.size() : 0;
  }

  /** Null when there is no such partition. */
  PartitionRegistration partition(TopicPartitionName name) {
    Uuid id = topicId(name.topic());
    return id == null ? null : replication().getPartition(id, name.partition());
  }

  /** Every partition there is, by topic and number. */
  void eachPartition(BiConsumer<TopicPartitionName, PartitionRegistration> action) {
    topics.forEach(
        (name, topic) -> {
          for (int number : topic.partitions) {
            TopicPartitionName partition = new TopicPartitionName(name, number);
            action.accept(partition, partition(partition));
          }
        });
  }
}
