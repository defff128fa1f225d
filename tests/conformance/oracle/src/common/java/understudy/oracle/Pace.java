package understudy.oracle;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;

/**
 * How fast Kafka's own controller fails over, with everything in memory and no request sent.
 *
 * <p>The cluster has the shape of the project's synthetic stores: three replicas on distinct racks
 * of 200 brokers, 5 of them dead, 50 partitions to a topic, a little out of order here and there.
 */
final class Pace {

  private static final int BROKERS = 200;
  private static final int DEAD = 5;
  private static final int REPLICAS = 3;
  private static final int RACKS = 3;
  private static final int PER_TOPIC = 50;
  private static final int WARM_UP = 2_000;
  private static final long SEED = 7;

  private Pace() {}

  /** Seconds of both machines' start-up, and of the whole failover with loading the context. */
  static ObjectNode measure(int partitions) {
    run(Math.min(partitions, WARM_UP));
    return run(partitions);
  }

  private static ObjectNode run(int partitions) {
    Cluster cluster = new Cluster(document(partitions));
    cluster.fillTree();
    cluster.vacateController(cluster.controllerEpoch());
    Controller controller =
        new Controller(cluster.smallestLive(), cluster, new Journal(), new ArrayList<>());
    long start = System.nanoTime();
    controller.failOver().ifPresent(Pace::giveUp);
    double whole = (System.nanoTime() - start) / 1e9;
    double machines = controller.secondsInStartUp();
    controller.leave();
    return Json.object()
        .put("jar", Release.JAR)
        .put("partitions", partitions)
        .put("failover_seconds", whole)
        .put("machines_seconds", machines)
        .put("partitions_per_second", Math.round(partitions / machines));
  }

  private static void giveUp(String error) {
    throw new IllegalStateException(error);
  }

  private static ObjectNode document(int partitions) {
    Random dice = new Random(SEED);
    ObjectNode document = Json.object().put("cluster", "pace").put("snapshot_id", "s1");
    document.putObject("controller").put("id", 1).put("epoch", 40);
    ArrayNode brokers = document.putArray("brokers");
    for (int id = 1; id <= BROKERS; id++) {
      boolean alive = id % (BROKERS / DEAD) != 0;
      brokers.addObject().put("id", id).put("epoch", 1000 + id).put("alive", alive);
    }
    ArrayNode topics = document.putArray("topics");
    for (int first = 0; first < partitions; first += PER_TOPIC) {
      ArrayNode numbered = topics.addObject().put("name", "topic" + first).putArray("partitions");
      for (int number = 0; number < Math.min(PER_TOPIC, partitions - first); number++) {
        List<Integer> replicas = replicas(dice);
        ObjectNode partition = numbered.addObject().put("partition", number);
        partition.set("replicas", Json.array(replicas));
        boolean shrunk = dice.nextInt(100) == 0;
        List<Integer> isr = shrunk ? replicas.subList(0, 1) : replicas;
        int leader = dice.nextInt(100) < 92 ? replicas.get(0) : isr.get(isr.size() - 1);
        ObjectNode state = partition.putObject("state");
        state.put("leader", leader).put("leader_epoch", dice.nextInt(40));
        state.put("partition_epoch", dice.nextInt(80)).put("controller_epoch", 38);
        state.set("isr", Json.array(isr));
      }
    }
    return document;
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
