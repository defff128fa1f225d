"""ZooKeeper's own files and dumps of its tree, read into canonical snapshots.

Bytes in, plain rows out: nothing here knows of Spark, paths or the clock.

- ``jute``, ``compression``: how ZooKeeper writes values, and packs files;
- ``snapshots``, ``txnlog``, ``dumps``: one module per kind of file;
- ``tree``: the znodes, and what a transaction does to them;
- ``kafka``: what Kafka's znodes say;
- ``history``: a data directory, which is snapshots and logs together;
- ``forms``: which kind of file this is, and what is in it.
"""
