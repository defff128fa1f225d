"""The pure decision core: what a Kafka controller decides, given what it knows.

No input or output, no session, no clock.

- ``profiles`` names whose rules there are. ``zk``, ``zk_legacy`` and ``kraft`` each say how an
  event is a sequence of decisions; the modules beside them take those decisions. Together they are
  the *interpreters*: plain Python that reads like Kafka's controller, exact for any sequence.
- ``interpreted`` runs them over DataFrames, in one pass over the partitions a scenario touches.
- ``native`` is single events of profile ``zk`` (a failover, a broker failure, a controlled
  shutdown) as Spark column expressions, over whole snapshots and many scenarios at once.

Tests hold all of it to Apache Kafka's own classes, and the native form to the interpreter.
"""
