"""Profile ``zk-legacy``: the ZooKeeper controller of Kafka 0.9 to 1.0, one partition at a time.

The modules have the names of those in ``zk``, so that two of them can be read side by side;
``selectors`` elects leaders, and ``order`` is the order Scala 2.12 gives to sets.
"""
