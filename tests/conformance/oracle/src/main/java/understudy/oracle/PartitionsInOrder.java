package understudy.oracle;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.TreeSet;
import org.apache.kafka.common.TopicPartition;

/**
 * A set of partitions that is walked by topic, then partition.
 *
 * <p>Kafka walks its reassigning partitions in hash order; what is replayed takes them in this one.
 */
final class PartitionsInOrder extends TreeSet<TopicPartition> {

  private boolean hidden;

  PartitionsInOrder() {
    super(Partitions.BY_NAME);
  }

  /** While hidden, no partition is found here by name, so that nothing happens for any of them. */
  void hide(boolean hide) {
    hidden = hide;
  }

  @Override
  public boolean contains(Object partition) {
    return !hidden && super.contains(partition);
  }

  /** Over a copy, because Kafka removes elements while it walks. */
  @Override
  public Iterator<TopicPartition> iterator() {
    List<TopicPartition> copy = new ArrayList<>(size());
    super.iterator().forEachRemaining(copy::add);
    return copy.iterator();
  }
}
