"""What failures would do to clients, by scenario, partition and broker.

``answer`` puts the parts together: ``failures`` makes scenarios of what is asked, ``before`` judges
the partitions as they stand, and of what a replay changes in them ``impact`` makes a row per
scenario with its verdict and ``impact_brokers`` the part of each broker. ``pair_failures`` counts
every pair of brokers without a replay.
"""
