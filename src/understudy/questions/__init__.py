"""What can be asked of snapshots and replays: frames in, frame out.

A question is a package, or a module where one is enough: ``diff``, ``explain``, ``ok_to_stop`` and
``recovery``. The other modules are what several questions share: ``availability`` says what a
partition still does for its clients, ``units`` and ``known_clusters`` who fails together,
and ``broker_sets`` solves small problems over sets of brokers.
"""
