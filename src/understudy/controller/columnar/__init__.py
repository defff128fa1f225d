"""The ZooKeeper-era controller over whole columns: one scenario decided for all its partitions.

The same calls in the same order as the interpreter (``zk``), each of them for all partitions at
once, as operations on ``arrays``. ``cluster`` is a snapshot as arrays and ``state`` what a
controller holds of it; the two machines change that, ``controller`` calls them event by event,
``batches`` is what they send. ``scenario`` says which scenarios are taken, ``rows`` and
``outcomes`` put them into tables, and ``feed`` hands the partitions of a DataFrame over. For
partitions by the thousand that takes a hundredth of the time.

Deletions and reassignments are left to the interpreter.
"""
