package understudy.oracle;

import java.util.ArrayList;
import java.util.List;
import kafka.zookeeper.AsyncRequest;
import kafka.zookeeper.AsyncResponse;
import kafka.zookeeper.CheckOp;
import kafka.zookeeper.CreateOp;
import kafka.zookeeper.CreateRequest;
import kafka.zookeeper.CreateResponse;
import kafka.zookeeper.DeleteOp;
import kafka.zookeeper.DeleteRequest;
import kafka.zookeeper.DeleteResponse;
import kafka.zookeeper.ExistsRequest;
import kafka.zookeeper.ExistsResponse;
import kafka.zookeeper.GetChildrenRequest;
import kafka.zookeeper.GetChildrenResponse;
import kafka.zookeeper.GetDataRequest;
import kafka.zookeeper.GetDataResponse;
import kafka.zookeeper.MultiRequest;
import kafka.zookeeper.MultiResponse;
import kafka.zookeeper.ResponseMetadata;
import kafka.zookeeper.SetDataOp;
import kafka.zookeeper.SetDataRequest;
import kafka.zookeeper.SetDataResponse;
import kafka.zookeeper.StateChangeHandler;
import kafka.zookeeper.ZNodeChangeHandler;
import kafka.zookeeper.ZNodeChildChangeHandler;
import kafka.zookeeper.ZkOp;
import kafka.zookeeper.ZkOpResult;
import org.apache.zookeeper.KeeperException.Code;
import org.apache.zookeeper.OpResult;
import org.apache.zookeeper.data.Stat;
import scala.collection.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Kafka's ZooKeeper client without a ZooKeeper: it answers every request from a tree in memory.
 *
 * <p>Everything above it, KafkaZkClient's encodings, conditional writes and the check of the
 * controller epoch, is Kafka's own. Watches never fire: the scenario says what happens and when.
 */
final class MemoryZooKeeperClient extends ZooKeeperClientBase {

  private static final ResponseMetadata AT_ONCE = new ResponseMetadata(0, 0);

  private ZooKeeperTree tree;
  private Writes writes;

  /** Kafka's constructor would connect, so the object is made without it. */
  static MemoryZooKeeperClient over(ZooKeeperTree tree, Writes writes) {
    MemoryZooKeeperClient client = Reflection.withoutConstructor(MemoryZooKeeperClient.class);
    client.tree = tree;
    client.writes = writes;
    return client;
  }

  @Override
  public <Req extends AsyncRequest> AsyncResponse handleRequest(Req request) {
    return answer(request);
  }

  @Override
  public <Req extends AsyncRequest> Seq<AsyncResponse> handleRequests(Seq<Req> requests) {
    List<AsyncResponse> answers = new ArrayList<>(requests.size());
    requests.foreach(request -> answers.add(answer(request)));
    return CollectionConverters.asScala(answers);
  }

  private AsyncResponse answer(AsyncRequest request) {
    if (request instanceof GetDataRequest get) {
      ZooKeeperTree.Node node = tree.get(get.path());
      return node == null
          ? new GetDataResponse(Code.NONODE, get.path(), get.ctx(), null, null, AT_ONCE)
          : new GetDataResponse(Code.OK, get.path(), get.ctx(), node.data, node.stat(), AT_ONCE);
    }
    if (request instanceof ExistsRequest exists) {
      ZooKeeperTree.Node node = tree.get(exists.path());
      return node == null
          ? new ExistsResponse(Code.NONODE, exists.path(), exists.ctx(), null, AT_ONCE)
          : new ExistsResponse(Code.OK, exists.path(), exists.ctx(), node.stat(), AT_ONCE);
    }
    if (request instanceof GetChildrenRequest get) {
      ZooKeeperTree.Node node = tree.get(get.path());
      Code code = node == null ? Code.NONODE : Code.OK;
      List<String> children = new ArrayList<>(tree.children(get.path()));
      Stat stat = node == null ? null : node.stat();
      return new GetChildrenResponse(
          code, get.path(), get.ctx(), CollectionConverters.asScala(children), stat, AT_ONCE);
    }
    if (request instanceof SetDataRequest set) {
      Code code = tree.canSet(set.path(), set.version());
      Stat stat = code == Code.OK ? set(set.path(), set.data()) : null;
      return new SetDataResponse(code, set.path(), set.ctx(), stat, AT_ONCE);
    }
    if (request instanceof CreateRequest create) {
      Code code = tree.canCreate(create.path());
      if (code == Code.OK) {
        create(create.path(), create.data());
      }
      return new CreateResponse(code, create.path(), create.ctx(), create.path(), AT_ONCE);
    }
    if (request instanceof DeleteRequest delete) {
      Code code = tree.canDelete(delete.path(), delete.version());
      if (code == Code.OK) {
        delete(delete.path());
      }
      return new DeleteResponse(code, delete.path(), delete.ctx(), AT_ONCE);
    }
    if (request instanceof MultiRequest multi) {
      return multi(multi);
    }
    throw new UnsupportedOperationException(request.getClass().getName());
  }

  /** All or nothing; no operation of Kafka's depends on an earlier one of the same request. */
  private MultiResponse multi(MultiRequest request) {
    List<ZkOp> operations = CollectionConverters.asJava(request.zkOps());
    int failed = 0;
    Code code = Code.OK;
    while (failed < operations.size() && (code = possible(operations.get(failed))) == Code.OK) {
      failed++;
    }
    List<ZkOpResult> results = new ArrayList<>(operations.size());
    for (int i = 0; i < operations.size(); i++) {
      ZkOp operation = operations.get(i);
      OpResult result;
      if (code == Code.OK) {
        result = perform(operation);
      } else if (i == failed) {
        result = new OpResult.ErrorResult(code.intValue());
      } else {
        Code other = i < failed ? Code.OK : Code.RUNTIMEINCONSISTENCY;
        result = new OpResult.ErrorResult(other.intValue());
      }
      results.add(new ZkOpResult(operation, result));
    }
    return new MultiResponse(
        code, null, request.ctx(), CollectionConverters.asScala(results), AT_ONCE);
  }

  private Code possible(ZkOp operation) {
    if (operation instanceof CheckOp check) {
      return tree.check(check.path(), check.version());
    }
    if (operation instanceof SetDataOp set) {
      return tree.canSet(set.path(), set.version());
    }
    if (operation instanceof CreateOp create) {
      return tree.canCreate(create.path());
    }
    if (operation instanceof DeleteOp delete) {
      return tree.canDelete(delete.path(), delete.version());
    }
    throw new UnsupportedOperationException(operation.getClass().getName());
  }

  private OpResult perform(ZkOp operation) {
    if (operation instanceof SetDataOp set) {
      return new OpResult.SetDataResult(set(set.path(), set.data()));
    }
    if (operation instanceof CreateOp create) {
      create(create.path(), create.data());
      return new OpResult.CreateResult(create.path());
    }
    if (operation instanceof DeleteOp delete) {
      delete(delete.path());
      return new OpResult.DeleteResult();
    }
    return new OpResult.CheckResult();
  }

  private Stat set(String path, byte[] data) {
    byte[] before = tree.get(path).data;
    tree.overwrite(path, data);
    Stat stat = tree.get(path).stat();
    writes.set(path, before, data, stat.getVersion());
    return stat;
  }

  private void create(String path, byte[] data) {
    tree.put(path, data);
    writes.created(path, data, 0);
  }

  private void delete(String path) {
    tree.removeAll(path);
    writes.deleted(path);
  }

  @Override
  public void registerZNodeChangeHandler(ZNodeChangeHandler handler) {}

  @Override
  public void unregisterZNodeChangeHandler(String path) {}

  @Override
  public void registerZNodeChildChangeHandler(ZNodeChildChangeHandler handler) {}

  @Override
  public void unregisterZNodeChildChangeHandler(String path) {}

  @Override
  public void registerStateChangeHandler(StateChangeHandler handler) {}

  @Override
  public void unregisterStateChangeHandler(String name) {}

  @Override
  public void waitUntilConnected() {}

  @Override
  public long sessionId() {
    return 1;
  }

  @Override
  public void close() {}
}
