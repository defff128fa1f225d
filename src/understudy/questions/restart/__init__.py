"""In which rounds the brokers of a cluster can be restarted, and what would make it fewer.

``answer`` puts the parts together: ``demands`` reduces the partitions to sets of brokers on Spark,
``plan`` finds the rounds on the driver, ``moves`` the replica moves after which fewer are enough,
and ``replay`` plays the rounds through the controller.
"""
