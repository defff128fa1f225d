package understudy.oracle;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;

/**
 * How fast Kafka's own controller fails over, with everything in memory and no request sent.
 *
 * <p>The snapshot is a file of JSON lines: the document without its topics, then a topic to a line.
 */
final class Pace {

  private static final int WARM_UP = 2_000; // partitions
  private static final String OFFLINE = "OfflinePartition";

  private Pace() {}

  /** Seconds of both machines' start-up, and of the whole failover with loading the context. */
  static ObjectNode measure(Path snapshot) throws IOException {
    run(snapshot, WARM_UP);
    return run(snapshot, Integer.MAX_VALUE);
  }

  private static ObjectNode run(Path snapshot, int atMost) throws IOException {
    Cluster cluster;
    int partitions = 0;
    try (BufferedReader lines = Files.newBufferedReader(snapshot)) {
      cluster = new Cluster(Json.parse(lines.readLine()));
      cluster.fillTree();
      String topic = lines.readLine();
      while (topic != null && partitions < atMost) {
        partitions += cluster.fillTopic(Json.parse(topic));
        topic = lines.readLine();
      }
    }
    cluster.vacateController(cluster.controllerEpoch());
    Controller controller =
        new Controller(cluster.smallestLive(), cluster, new Journal(), new ArrayList<>());
    long start = System.nanoTime();
    controller.failOver().ifPresent(Pace::giveUp);
    double whole = (System.nanoTime() - start) / 1e9;
    long offline =
        controller.states().partitions().values().stream().filter(OFFLINE::equals).count();
    double machines = controller.secondsInStartUp();
    controller.leave();
    return Json.object()
        .put("jar", Release.JAR)
        .put("partitions", partitions)
        .put("offline", offline)
        .put("failover_seconds", whole)
        .put("machines_seconds", machines)
        .put("partitions_per_second", Math.round(partitions / machines));
  }

  private static void giveUp(String error) {
    throw new IllegalStateException(error);
  }
}
