package understudy.oracle;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.I0Itec.zkclient.IZkConnection;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.KeeperException.Code;
import org.apache.zookeeper.Op;
import org.apache.zookeeper.OpResult;
import org.apache.zookeeper.WatchedEvent;
import org.apache.zookeeper.Watcher;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.data.ACL;
import org.apache.zookeeper.data.Stat;

/**
 * ZkClient's connection without a ZooKeeper: it answers every request from a tree in memory.
 *
 * <p>Everything above it, ZkUtils' encodings and conditional writes, is Kafka's own. Watches never
 * fire: the scenario says what happens and when.
 */
final class MemoryZooKeeperConnection implements IZkConnection {

  private static final String ROOT = "/";

  private final ZooKeeperTree tree;
  private final Writes writes;

  MemoryZooKeeperConnection(ZooKeeperTree tree, Writes writes) {
    this.tree = tree;
    this.writes = writes;
  }

  /** ZkClient waits to hear that it is connected, and not in the thread that tells it. */
  @Override
  public void connect(Watcher watcher) {
    WatchedEvent connected =
        new WatchedEvent(
            Watcher.Event.EventType.None, Watcher.Event.KeeperState.SyncConnected, null);
    new Thread(() -> watcher.process(connected)).start();
  }

  @Override
  public void close() {}

  @Override
  public String create(String path, byte[] data, CreateMode mode) throws KeeperException {
    check(tree.canCreate(path), path);
    tree.put(path, data);
    writes.created(path, data, 0);
    return path;
  }

  @Override
  public String create(String path, byte[] data, List<ACL> acls, CreateMode mode)
      throws KeeperException {
    return create(path, data, mode);
  }

  @Override
  public void delete(String path) throws KeeperException {
    delete(path, ZooKeeperTree.ANY_VERSION);
  }

  @Override
  public void delete(String path, int version) throws KeeperException {
    check(tree.canDelete(path, version), path);
    tree.removeAll(path);
    writes.deleted(path);
  }

  @Override
  public boolean exists(String path, boolean watch) {
    return path.equals(ROOT) || tree.get(path) != null;
  }

  @Override
  public List<String> getChildren(String path, boolean watch) throws KeeperException {
    check(tree.check(path, ZooKeeperTree.ANY_VERSION), path);
    return new ArrayList<>(tree.children(path));
  }

  @Override
  public byte[] readData(String path, Stat stat, boolean watch) throws KeeperException {
    check(tree.check(path, ZooKeeperTree.ANY_VERSION), path);
    ZooKeeperTree.Node node = tree.get(path);
    if (stat != null) {
      stat.setVersion(node.version);
      stat.setCzxid(node.czxid);
    }
    return node.data;
  }

  @Override
  public void writeData(String path, byte[] data, int version) throws KeeperException {
    writeDataReturnStat(path, data, version);
  }

  @Override
  public Stat writeDataReturnStat(String path, byte[] data, int version) throws KeeperException {
    check(tree.canSet(path, version), path);
    byte[] before = tree.get(path).data;
    tree.overwrite(path, data);
    Stat stat = tree.get(path).stat();
    writes.set(path, before, data, stat.getVersion());
    return stat;
  }

  private static void check(Code code, String path) throws KeeperException {
    if (code != Code.OK) {
      throw KeeperException.create(code, path);
    }
  }

  @Override
  public ZooKeeper.States getZookeeperState() {
    return ZooKeeper.States.CONNECTED;
  }

  @Override
  public String getServers() {
    return "memory";
  }

  // --- What no controller asks -----------------------------------------------------------------

  @Override
  public long getCreateTime(String path) {
    throw new UnsupportedOperationException();
  }

  @Override
  public List<OpResult> multi(Iterable<Op> operations) {
    throw new UnsupportedOperationException();
  }

  @Override
  public void addAuthInfo(String scheme, byte[] auth) {
    throw new UnsupportedOperationException();
  }

  @Override
  public void setAcl(String path, List<ACL> acls, int version) {
    throw new UnsupportedOperationException();
  }

  @Override
  public Map.Entry<List<ACL>, Stat> getAcl(String path) {
    throw new UnsupportedOperationException();
  }
}
