"""Single events over whole snapshots and many scenarios at once, as Spark column expressions.

What a cluster knows as a whole (``clusters``, ``running``) becomes one small row of facts per
scenario; the touched partitions are decided once (``failover``, ``failure``, ``startup``,
``shutdown``, by the steps of ``decided`` and ``electing``); every output table is a projection of
that (``tables``, ``bodies`` and ``requests``). What a failover leaves as it is passes by as whole
columns (``sent_again``). ``engine`` puts them together. KRaft has one module of its own, ``fence``.
"""
