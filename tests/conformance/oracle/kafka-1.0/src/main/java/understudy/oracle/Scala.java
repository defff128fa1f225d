package understudy.oracle;

import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import kafka.common.TopicAndPartition;
import org.apache.kafka.common.TopicPartition;
import scala.collection.JavaConverters;
import scala.collection.Seq;
import scala.collection.immutable.ListSet;

/** Scala 2.12's collections and Kafka 1.0's partitions, in and out. */
final class Scala {

  private Scala() {}

  static <T> Seq<T> seq(Collection<T> items) {
    return JavaConverters.asScalaBufferConverter((List<T>) new ArrayList<>(items))
        .asScala()
        .toList();
  }

  static Seq<Object> ids(Collection<Integer> brokers) {
    return seq(new ArrayList<>(brokers));
  }

  static <T> scala.collection.immutable.Set<T> set(Collection<T> items) {
    return seq(items).toSet();
  }

  /** A set that is walked in this order. */
  static <T> scala.collection.Set<T> ordered(Collection<T> items) {
    return JavaConverters.asScalaSetConverter((Set<T>) new LinkedHashSet<>(items)).asScala();
  }

  /** The same, and what Scala derives from it is walked in this order too. */
  static <T> scala.collection.Set<T> listed(Collection<T> items) {
    ListSet<T> listed = new ListSet<>();
    for (T item : items) {
      listed = listed.$plus(item);
    }
    return listed;
  }

  static <T> List<T> list(Seq<T> items) {
    return JavaConverters.seqAsJavaListConverter(items).asJava();
  }

  static List<Integer> numbers(Seq<Object> ids) {
    List<Integer> numbers = new ArrayList<>();
    list(ids).forEach(id -> numbers.add((Integer) id));
    return numbers;
  }

  static <T> Set<T> java(scala.collection.Set<T> items) {
    return JavaConverters.setAsJavaSetConverter(items).asJava();
  }

  static <K, V> Map<K, V> java(scala.collection.Map<K, V> items) {
    return JavaConverters.mapAsJavaMapConverter(items).asJava();
  }

  static TopicPartition partition(TopicAndPartition partition) {
    return partition.asTopicPartition();
  }

  static TopicAndPartition partition(TopicPartition partition) {
    return new TopicAndPartition(partition);
  }
}
