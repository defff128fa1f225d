"""Which minimal sets of brokers, or of racks and the like, cost partitions when they are lost.

``cuts`` says partition by partition what has to fail for it to be lost, ``sets`` gathers that into
the minimal sets, and ``odds`` says how likely the losses are when brokers fail by themselves.
"""
