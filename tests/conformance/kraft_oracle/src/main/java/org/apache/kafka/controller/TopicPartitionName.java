package org.apache.kafka.controller;

import java.util.Comparator;

/** A partition as documents name it, {@code topic-0}. */
record TopicPartitionName(String topic, int partition) implements Comparable<TopicPartitionName> {

  private static final Comparator<TopicPartitionName> ORDER =
      Comparator.comparing(TopicPartitionName::topic)
          .thenComparing(TopicPartitionName::partition);

  static TopicPartitionName of(String text) {
    int dash = text.lastIndexOf('-');
    return new TopicPartitionName(
        text.substring(0, dash), Integer.parseInt(text.substring(dash + 1)));
  }

  @Override
  public int compareTo(TopicPartitionName other) {
    return ORDER.compare(this, other);
  }
}
