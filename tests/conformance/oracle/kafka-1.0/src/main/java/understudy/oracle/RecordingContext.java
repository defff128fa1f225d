package understudy.oracle;

import java.util.ArrayList;
import java.util.List;
import kafka.cluster.Broker;
import kafka.common.TopicAndPartition;
import kafka.controller.ControllerChannelManager;
import kafka.controller.ControllerContext;
import kafka.controller.ReassignedPartitionsContext;
import kafka.utils.ZkUtils;
import scala.collection.Set;
import scala.collection.immutable.Set$;

/** Kafka's controller context, with channels of ours and what a scenario says is known. */
final class RecordingContext extends ControllerContext {

  private final scala.collection.mutable.Map<TopicAndPartition, ReassignedPartitionsContext>
      reassigning = new ReassignmentsInOrder().asMap();
  private final Runnable whenLoaded;
  private ControllerChannelManager channels;
  private boolean loading;

  /** {@code whenLoaded} runs when the controller has loaded its context and starts its channels. */
  RecordingContext(ZkUtils zkUtils, Runnable whenLoaded) {
    super(zkUtils);
    this.whenLoaded = whenLoaded;
  }

  void useChannels(ControllerChannelManager ours) {
    channels = ours;
  }

  @Override
  public scala.collection.mutable.Map<TopicAndPartition, ReassignedPartitionsContext>
      partitionsBeingReassigned() {
    return reassigning;
  }

  /** By topic, then partition, where Kafka's order is that of a hash: a shutdown goes through it. */
  @Override
  public Set<TopicAndPartition> partitionsOnBroker(int broker) {
    List<TopicAndPartition> hosted =
        new ArrayList<>(Scala.java(super.partitionsOnBroker(broker)));
    hosted.sort(ReassignmentsInOrder.BY_NAME);
    return Scala.listed(hosted);
  }

  /** The last thing that Kafka sets before it makes its channels. */
  @Override
  public void shuttingDownBrokerIds_$eq(scala.collection.mutable.Set<Object> brokers) {
    super.shuttingDownBrokerIds_$eq(brokers);
    loading = true;
  }

  /** Nobody while Kafka makes its channels, so that it opens none. */
  @Override
  public Set<Broker> liveBrokers() {
    return loading ? Set$.MODULE$.<Broker>empty() : super.liveBrokers();
  }

  @Override
  public void controllerChannelManager_$eq(ControllerChannelManager theirs) {
    super.controllerChannelManager_$eq(channels);
    loading = false;
    whenLoaded.run();
  }
}
