"""Profile ``kraft``: the quorum controller (Kafka 3.3 to 4.3).

``events`` names the function of each event, in ``broker_events``, ``leader_events`` and
``topic_events``. What they want of a partition is an ``operation``; ``change`` decides what becomes
of it, with ``elections`` and ``reassignment``. Committed ``records`` change the ``cluster``.
"""
