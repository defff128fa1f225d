package understudy.oracle;

import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.function.Supplier;
import org.apache.kafka.common.TopicPartition;

/** The elements of one call to a state machine, and whether each had its state set by it. */
final class Attempts {

  private record Attempt(
      Object key, TopicPartition partition, Integer replica, Object from, boolean valid) {}

  private final Supplier<Set<Object>> takeSet;
  private final Journal journal;
  private final String machine;
  private final Object target;
  private final List<Attempt> attempts = new ArrayList<>();

  /** {@code takeSet} gives the keys whose state was set since it was last called. */
  Attempts(Supplier<Set<Object>> takeSet, Journal journal, String machine, Object target) {
    this.takeSet = takeSet;
    this.journal = journal;
    this.machine = machine;
    this.target = target;
  }

  void add(Object key, TopicPartition partition, Integer replica, Object from, boolean valid) {
    attempts.add(new Attempt(key, partition, replica, from, valid));
  }

  <T> T around(Supplier<T> call) {
    takeSet.get();
    try {
      return call.get();
    } finally {
      Set<Object> set = takeSet.get();
      for (Attempt attempt : attempts) {
        String result = !attempt.valid ? "invalid" : set.contains(attempt.key) ? "ok" : "failed";
        journal.transition(
            machine, attempt.partition, attempt.replica, attempt.from, target, result);
      }
    }
  }
}
