package understudy.oracle;

import kafka.api.LeaderAndIsr;
import kafka.controller.ControllerBrokerRequestBatch;
import kafka.controller.ControllerChannelManager;
import kafka.controller.ControllerEventManager;
import kafka.controller.NonExistentPartition$;
import kafka.controller.NonExistentReplica$;
import kafka.controller.PartitionAndReplica;
import kafka.controller.PartitionLeaderElectionStrategy;
import kafka.controller.PartitionState;
import kafka.controller.ReplicaState;
import kafka.controller.StateChangeLogger;
import kafka.controller.ZkPartitionStateMachine;
import kafka.controller.ZkReplicaStateMachine;
import kafka.server.KafkaConfig;
import kafka.zk.KafkaZkClient;
import org.apache.kafka.common.TopicPartition;
import scala.Option;
import scala.collection.Map;
import scala.collection.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.util.Either;

/** Kafka's state machines and request batch, telling the journal what they are asked to do. */
final class RecordingMachines {

  private RecordingMachines() {}

  /** Every batch is a step, whoever makes it and whether it sends anything or not. */
  static final class Batch extends ControllerBrokerRequestBatch {
    private final Journal journal;

    Batch(
        KafkaConfig config,
        ControllerChannelManager channels,
        ControllerEventManager events,
        RecordingContext context,
        StateChangeLogger logger,
        Journal journal) {
      super(config, channels, events, context, logger);
      this.journal = journal;
    }

    @Override
    public void newBatch() {
      journal.beginStep();
      super.newBatch();
    }
  }

  static final class Replicas extends ZkReplicaStateMachine {
    private final RecordingContext context;
    private final Journal journal;
    private double seconds;

    Replicas(
        KafkaConfig config,
        StateChangeLogger logger,
        RecordingContext context,
        KafkaZkClient client,
        Batch batch,
        Journal journal) {
      super(config, logger, context, client, batch);
      this.context = context;
      this.journal = journal;
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
    public void handleStateChanges(Seq<PartitionAndReplica> replicas, ReplicaState target) {
      Attempts attempts = new Attempts(context::takeSet, journal, "replica", target);
      if (journal.isOn()) {
        for (PartitionAndReplica replica : CollectionConverters.asJava(replicas)) {
          Option<ReplicaState> state = context.replicaStates().get(replica);
          ReplicaState from = state.isEmpty() ? NonExistentReplica$.MODULE$ : state.get();
          boolean valid = target.validPreviousStates().contains(from);
          attempts.add(replica, replica.topicPartition(), replica.replica(), from, valid);
        }
      }
      attempts.around(
          () -> {
            super.handleStateChanges(replicas, target);
            return null;
          });
    }
  }

  static final class Partitions extends ZkPartitionStateMachine {
    private final RecordingContext context;
    private final Journal journal;
    private double seconds;

    Partitions(
        KafkaConfig config,
        StateChangeLogger logger,
        RecordingContext context,
        KafkaZkClient client,
        Batch batch,
        Journal journal) {
      super(config, logger, context, client, batch);
      this.context = context;
      this.journal = journal;
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
    public Map<TopicPartition, Either<Throwable, LeaderAndIsr>> handleStateChanges(
        Seq<TopicPartition> partitions,
        PartitionState target,
        Option<PartitionLeaderElectionStrategy> strategy) {
      Attempts attempts = new Attempts(context::takeSet, journal, "partition", target);
      if (journal.isOn()) {
        for (TopicPartition partition : CollectionConverters.asJava(partitions)) {
          Option<PartitionState> state = context.partitionStates().get(partition);
          PartitionState from = state.isEmpty() ? NonExistentPartition$.MODULE$ : state.get();
          boolean valid = target.validPreviousStates().contains(from);
          attempts.add(partition, partition, null, from, valid);
        }
      }
      return attempts.around(() -> super.handleStateChanges(partitions, target, strategy));
    }
  }
}
