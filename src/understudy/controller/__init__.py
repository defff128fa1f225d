"""The pure decision core: what a Kafka controller decides, given what it knows.

No input or output, no session, no clock.

- ``zk``, ``zk_legacy`` and ``kraft`` hold a controller each, ``profiles`` names them. Start reading
  at their ``events``: an event is one short function, a sequence of decisions that the modules
  beside it take. They are the *interpreters*: plain Python that reads like Kafka's controller,
  exact for any sequence of events.
- ``interpreted`` runs them over DataFrames, in one pass over the partitions a scenario touches.
- ``native`` is single events (of profile ``zk`` a failover, a broker failure, a controlled
  shutdown; of ``kraft`` a broker fenced) as Spark column expressions, over whole snapshots and many
  scenarios at once.
- What several of them share stands here: words and states, records, releases, elections.

Tests hold all of it to Apache Kafka's own classes, and the native form to the interpreter.
"""
