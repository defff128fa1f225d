"""What happened from one snapshot of a cluster to the next, and whether it follows the rules.

``answer`` is the pass over whole histories. ``feed`` lays them out on Spark, by the ``order`` of
the snapshots and the ``steps`` between them; all that follows is plain Python over one
``interval``. ``derivation`` finds its events: ``brokers``, ``partition_facts`` (by way of
``topics``, ``partitions`` and ``reports``) and ``partition_traces`` tell ``facts``, with
``step_facts`` for what those about one partition share; where their usual order does not come to
what is recorded of a partition, ``stories`` looks for one that does, by a ``sketch`` of the
controller. ``divergence`` replays the events and holds the outcome against what is recorded.
"""
