package understudy.oracle;

import java.util.Collections;
import java.util.HashMap;
import java.util.Map;
import java.util.SortedSet;
import java.util.TreeSet;
import org.apache.zookeeper.KeeperException.Code;
import org.apache.zookeeper.data.Stat;

/** The znodes of one cluster in memory: data, version and creation id. */
final class ZooKeeperTree {

  static final int ANY_VERSION = -1;

  static final class Node {
    final long czxid;
    byte[] data;
    int version;
    final SortedSet<String> children = new TreeSet<>();

    private Node(byte[] data, int version, long czxid) {
      this.data = data;
      this.version = version;
      this.czxid = czxid;
    }

    Stat stat() {
      Stat stat = new Stat();
      stat.setVersion(version);
      stat.setCtime(1); // a stat of zeros is how Kafka says that there is no znode
      stat.setCzxid(czxid);
      stat.setNumChildren(children.size());
      return stat;
    }
  }

  private final Map<String, Node> nodes = new HashMap<>();

  ZooKeeperTree() {
    nodes.put("", new Node(null, 0, 0));
  }

  Node get(String path) {
    return nodes.get(path);
  }

  SortedSet<String> children(String path) {
    Node node = nodes.get(path);
    return node == null ? Collections.emptySortedSet() : node.children;
  }

  /** Puts a znode as somebody other than the controller left it, with its parents. */
  void put(String path, byte[] data, int version, long czxid) {
    makeParents(path);
    Node node = new Node(data, version, czxid);
    Node old = nodes.put(path, node);
    if (old != null) {
      node.children.addAll(old.children);
    }
    nodes.get(parent(path)).children.add(name(path));
  }

  void put(String path, byte[] data) {
    put(path, data, 0, 0);
  }

  /** Sets data as somebody other than the controller does: the version rises. */
  void overwrite(String path, byte[] data) {
    Node node = nodes.get(path);
    node.data = data;
    node.version++;
  }

  void removeAll(String path) {
    Node node = nodes.get(path);
    if (node == null) {
      return;
    }
    for (String child : node.children.toArray(new String[0])) {
      removeAll(path + "/" + child);
    }
    nodes.remove(path);
    nodes.get(parent(path)).children.remove(name(path));
  }

  Code canCreate(String path) {
    if (nodes.containsKey(path)) {
      return Code.NODEEXISTS;
    }
    return nodes.containsKey(parent(path)) ? Code.OK : Code.NONODE;
  }

  Code canSet(String path, int version) {
    return check(path, version);
  }

  Code canDelete(String path, int version) {
    Code code = check(path, version);
    return code == Code.OK && !nodes.get(path).children.isEmpty() ? Code.NOTEMPTY : code;
  }

  Code check(String path, int version) {
    Node node = nodes.get(path);
    if (node == null) {
      return Code.NONODE;
    }
    return version == ANY_VERSION || version == node.version ? Code.OK : Code.BADVERSION;
  }

  private void makeParents(String path) {
    String parent = parent(path);
    if (!nodes.containsKey(parent)) {
      put(parent, null, 0, 0);
    }
  }

  private static String parent(String path) {
    return path.substring(0, path.lastIndexOf('/'));
  }

  private static String name(String path) {
    return path.substring(path.lastIndexOf('/') + 1);
  }
}
