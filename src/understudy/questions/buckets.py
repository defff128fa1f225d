"""Something about each broker of a cluster, found by its id next to millions of partitions.

The brokers lie in buckets by their id, as in a hash table: finding one of a thousand takes a look
at one or two of them. Ids are any numbers, so that a list cannot have a place for each.
"""

from __future__ import annotations

from typing import Final

_BUCKETS: Final = 1024


def in_buckets(brokers: str, broker_id: str) -> str:
    """The array *brokers* as buckets; *broker_id* is the id of its element ``b``."""
    in_bucket = f"filter({brokers}, b -> pmod({broker_id}, {_BUCKETS}) = n)"
    return f"transform(sequence(0, {_BUCKETS - 1}), n -> {in_bucket})"


def bucket(buckets: str, broker: str) -> str:
    """The elements among which *broker* is, if anywhere."""
    return f"get({buckets}, pmod({broker}, {_BUCKETS}))"
