package understudy.oracle;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.Comparator;
import kafka.common.TopicAndPartition;
import kafka.controller.ReassignedPartitionsContext;
import scala.Function1;
import scala.Tuple2;
import scala.collection.mutable.Map;
import scala.collection.mutable.TreeMap;
import scala.math.Ordering;

/**
 * The partitions being reassigned, walked by topic, then partition.
 *
 * <p>Kafka walks them in hash order; what is replayed takes them in this one.
 */
final class ReassignmentsInOrder {

  static final Comparator<TopicAndPartition> BY_NAME =
      Comparator.comparing(Scala::partition, Partitions.BY_NAME);

  private final TreeMap<TopicAndPartition, ReassignedPartitionsContext> reassignments =
      new TreeMap<>(Ordering.comparatorToOrdering(BY_NAME));

  /** A proxy, since Java cannot extend the collections of Scala 2.12. */
  @SuppressWarnings("unchecked")
  Map<TopicAndPartition, ReassignedPartitionsContext> asMap() {
    return (Map<TopicAndPartition, ReassignedPartitionsContext>)
        Proxy.newProxyInstance(
            Map.class.getClassLoader(),
            new Class<?>[] {Map.class},
            (proxy, method, arguments) ->
                method.getName().equals("foreach") ? walk(arguments[0]) : call(method, arguments));
  }

  /** Over a copy, because Kafka removes elements while it walks. */
  @SuppressWarnings("unchecked")
  private Object walk(Object act) {
    reassignments
        .toList()
        .foreach((Function1<Tuple2<TopicAndPartition, ReassignedPartitionsContext>, ?>) act);
    return null;
  }

  private Object call(Method method, Object[] arguments) throws Throwable {
    try {
      return method.invoke(reassignments, arguments);
    } catch (InvocationTargetException e) {
      throw e.getCause();
    }
  }
}
