"""The ZooKeeper-era controller over whole columns: one scenario decided for all its partitions.

The same calls in the same order as the interpreter (``zk``), each of them for all partitions at
once, as operations on arrays: ``cluster`` is a snapshot as arrays, ``controller`` what the machines
do with it, ``batches`` what is sent, ``rows`` how it is told. For partitions by the thousand that
takes a hundredth of the time.

Deletions and reassignments are left to the interpreter: who asks has to look first (``covers``).
"""
