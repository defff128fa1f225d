"""The pure decision core: what a Kafka controller decides, given what it knows.

No input or output, no session, no clock. Two forms of the same rules live side by side:

- the *interpreter* (``context``, ``replica_machine``, ``partition_machine``, ``request_batch``,
  ``elections``, ``zk``) is plain Python that reads like Kafka's own controller and is exact for any
  sequence of events;
- the *native* form (``elections_sql``, ``native_failover``) is the same decisions as Spark column
  expressions over whole snapshots at once.

Tests hold the two equal on every table, and both equal to Apache Kafka's own classes.
"""
