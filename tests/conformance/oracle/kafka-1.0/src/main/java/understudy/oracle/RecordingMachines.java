package understudy.oracle;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import kafka.common.TopicAndPartition;
import kafka.controller.Callbacks;
import kafka.controller.ControllerBrokerRequestBatch;
import kafka.controller.KafkaController;
import kafka.controller.NewPartition$;
import kafka.controller.NonExistentPartition$;
import kafka.controller.NonExistentReplica$;
import kafka.controller.OfflinePartition$;
import kafka.controller.OfflineReplica$;
import kafka.controller.OnlinePartition$;
import kafka.controller.PartitionAndReplica;
import kafka.controller.PartitionLeaderSelector;
import kafka.controller.PartitionState;
import kafka.controller.PartitionStateMachine;
import kafka.controller.ReplicaState;
import kafka.controller.ReplicaStateMachine;
import kafka.controller.StateChangeLogger;
import kafka.controller.TopicDeletionManager;
import scala.Option;
import scala.collection.mutable.Map;

/** Kafka's state machines and request batch, telling the journal what they are asked to do. */
final class RecordingMachines {

  private RecordingMachines() {}

  /** Every batch is a step, whoever makes it and whether it sends anything or not. */
  static final class Batch extends ControllerBrokerRequestBatch {
    private final Journal journal;

    Batch(KafkaController controller, StateChangeLogger logger, Journal journal) {
      super(controller, logger);
      this.journal = journal;
    }

    @Override
    public void newBatch() {
      journal.beginStep();
      super.newBatch();
    }
  }

  static final class Replicas extends ReplicaStateMachine {
    private final RecordingController controller;
    private final Journal journal;
    private final boolean backwards;
    private final Set<Object> set = new HashSet<>();
    private double seconds;

    /** {@code backwards} walks every set of replicas the other way round. */
    Replicas(
        RecordingController controller,
        StateChangeLogger logger,
        Journal journal,
        boolean backwards) {
      super(controller, logger);
      this.controller = controller;
      this.journal = journal;
      this.backwards = backwards;
      Batch batch = new Batch(controller, logger, journal);
      Reflection.set(this, ReplicaStateMachine.class, "brokerRequestBatch", batch);
    }

    @SuppressWarnings("unchecked")
    Map<PartitionAndReplica, ReplicaState> states() {
      return (Map<PartitionAndReplica, ReplicaState>)
          Reflection.get(this, ReplicaStateMachine.class, "replicaState");
    }

    @Override
    public void startup() {
      long start = System.nanoTime();
      super.startup();
      seconds = (System.nanoTime() - start) / 1e9;
    }

    double secondsInStartUp() {
      return seconds;
    }

    @Override
    public void handleStateChanges(
        scala.collection.Set<PartitionAndReplica> replicas,
        ReplicaState target,
        Callbacks callbacks) {
      Attempts attempts = new Attempts(this::takeSet, journal, "replica", target);
      if (journal.isOn()) {
        for (PartitionAndReplica replica : Scala.java(replicas)) {
          Option<ReplicaState> state = states().get(replica);
          ReplicaState from = state.isEmpty() ? NonExistentReplica$.MODULE$ : state.get();
          // Kafka looks for the assignment before it looks at the state.
          boolean assigned =
              controller
                  .controllerContext()
                  .partitionReplicaAssignment()
                  .contains(partitionOf(replica));
          boolean valid = !assigned || target.validPreviousStates().contains(from);
          attempts.add(
              replica, Scala.partition(partitionOf(replica)), replica.replica(), from, valid);
        }
      }
      attempts.around(
          () -> {
            super.handleStateChanges(backwards ? turned(replicas) : replicas, target, callbacks);
            return null;
          });
    }

    /** Kafka logs what goes wrong, and is silent when nobody is left to leave a doomed ISR. */
    @Override
    public void handleStateChange(
        PartitionAndReplica replica, ReplicaState target, Callbacks callbacks) {
      int errors = ErrorLines.count();
      boolean led =
          controller.controllerContext().partitionLeadershipInfo().contains(partitionOf(replica));
      controller.forgetRemoval();
      super.handleStateChange(replica, target, callbacks);
      boolean leaves = target == OfflineReplica$.MODULE$;
      boolean ignored = leaves && !(led && controller.hasRemoved());
      if (ErrorLines.count() == errors && !ignored) {
        set.add(replica);
      }
    }

    private Set<Object> takeSet() {
      Set<Object> taken = new HashSet<>(set);
      set.clear();
      return taken;
    }

    private static TopicAndPartition partitionOf(PartitionAndReplica replica) {
      return new TopicAndPartition(replica.topic(), replica.partition());
    }

    private static scala.collection.Set<PartitionAndReplica> turned(
        scala.collection.Set<PartitionAndReplica> replicas) {
      List<PartitionAndReplica> walked = new ArrayList<>(Scala.java(replicas));
      Collections.reverse(walked);
      return Scala.ordered(walked);
    }
  }

  static final class OfPartitions extends PartitionStateMachine {
    private static final Pattern FAILED =
        Pattern.compile("Initiated state change for partition (\\S+) from .* failed");

    private final KafkaController controller;
    private final Journal journal;
    private final Set<Object> set = new HashSet<>();
    private double seconds;

    OfPartitions(KafkaController controller, StateChangeLogger logger, Journal journal) {
      super(controller, logger);
      this.controller = controller;
      this.journal = journal;
      Batch batch = new Batch(controller, logger, journal);
      Reflection.set(this, PartitionStateMachine.class, "brokerRequestBatch", batch);
    }

    @SuppressWarnings("unchecked")
    Map<TopicAndPartition, PartitionState> states() {
      return (Map<TopicAndPartition, PartitionState>)
          Reflection.get(this, PartitionStateMachine.class, "partitionState");
    }

    @Override
    public void startup() {
      long start = System.nanoTime();
      super.startup();
      seconds = (System.nanoTime() - start) / 1e9;
    }

    double secondsInStartUp() {
      return seconds;
    }

    @Override
    public void handleStateChanges(
        scala.collection.Set<TopicAndPartition> partitions,
        PartitionState target,
        PartitionLeaderSelector selector,
        Callbacks callbacks) {
      recorded(
          Scala.java(partitions),
          target,
          () -> super.handleStateChanges(partitions, target, selector, callbacks));
    }

    /** Kafka goes over its states itself here: new and offline ones of topics that stay. */
    @Override
    public void triggerOnlinePartitionStateChange() {
      Set<TopicAndPartition> tried = new HashSet<>();
      Scala.java(states())
          .forEach(
              (partition, state) -> {
                boolean waits =
                    state == NewPartition$.MODULE$ || state == OfflinePartition$.MODULE$;
                TopicDeletionManager deletions = controller.topicDeletionManager();
                if (waits && !deletions.isTopicQueuedUpForDeletion(partition.topic())) {
                  tried.add(partition);
                }
              });
      recorded(tried, OnlinePartition$.MODULE$, super::triggerOnlinePartitionStateChange);
    }

    private void recorded(Set<TopicAndPartition> partitions, PartitionState target, Runnable call) {
      Attempts attempts = new Attempts(this::takeSet, journal, "partition", target);
      if (journal.isOn()) {
        for (TopicAndPartition partition : partitions) {
          Option<PartitionState> state = states().get(partition);
          PartitionState from = state.isEmpty() ? NonExistentPartition$.MODULE$ : state.get();
          boolean valid = target.validPreviousStates().contains(from);
          attempts.add(partition, Scala.partition(partition), null, from, valid);
        }
      }
      attempts.around(
          () -> {
            int errors = ErrorLines.count();
            call.run();
            set.addAll(partitions);
            ErrorLines.since(errors).forEach(this::noteFailure);
            return null;
          });
    }

    private void noteFailure(ErrorLines.Line line) {
      Matcher failed = FAILED.matcher(line.message());
      if (failed.find()) {
        set.remove(Scala.partition(Partitions.named(failed.group(1))));
      }
    }

    private Set<Object> takeSet() {
      Set<Object> taken = new HashSet<>(set);
      set.clear();
      return taken;
    }
  }
}
