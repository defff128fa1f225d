"""Clusters that run, asked themselves: the brokers, or the ZooKeeper they keep their state in.

Nothing here changes anything in a cluster. The clients (kafka-python, kazoo) are an extra; they are
imported when a capture begins.
"""
