"""Profile ``zk``: the controller that kept its state in ZooKeeper (Kafka 2.4 to 3.9).

``events`` says how an event is a sequence of calls; ``partition_machine`` and ``replica_machine``
take them, writing through ``context`` and collecting requests in ``request_batch``; ``interpreter``
runs a scenario over a snapshot.
"""
