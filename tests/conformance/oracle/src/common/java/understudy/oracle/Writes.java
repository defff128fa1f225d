package understudy.oracle;

/** Hears of what the controller wrote to ZooKeeper, once it is done. */
interface Writes {
  void created(String path, byte[] data, int version);

  void set(String path, byte[] before, byte[] data, int version);

  void deleted(String path);
}
