"""Something about each broker of a cluster, found by its id next to millions of partitions.

The brokers lie in buckets by their id, as in a hash table: finding one of a thousand takes a look
at one or two of them. Ids are any numbers, so that a list cannot have a place for each.
"""

from __future__ import annotations

from typing import Final

_SIDE: Final = 32
_BUCKETS: Final = _SIDE * _SIDE


def in_buckets(brokers: str, broker_id: str) -> str:
    """The array *brokers* as buckets; *broker_id* is the id of its element ``b``.

    Sorted in two rounds, coarsely first: looking through all brokers for every single bucket would
    take longer than much of what is asked of them.
    """
    number = f"pmod({broker_id}, {_BUCKETS})"
    each = f"sequence(0, {_SIDE - 1})"
    coarse = f"transform({each}, m -> filter({brokers}, b -> {number} DIV {_SIDE} = m))"
    fine = f"transform({each}, n -> filter(near, b -> {number} = m * {_SIDE} + n))"
    return f"flatten(transform({coarse}, (near, m) -> {fine}))"


def bucket(buckets: str, broker: str) -> str:
    """The elements among which *broker* is, if anywhere."""
    return f"get({buckets}, pmod({broker}, {_BUCKETS}))"


def firsts(buckets: str) -> str:
    """The first of each bucket: all there are, unless two fell into one bucket."""
    return f"transform({buckets}, b -> get(b, 0))"


def found(buckets: str, broker: str) -> str:
    """The element of *broker*, whose ``id`` it is; null where there is none."""
    return f"get(filter({bucket(buckets, broker)}, entry -> entry.id = {broker}), 0)"


def is_among(buckets: str, firsts: str, broker: str) -> str:
    """Whether *broker* is an id in *buckets*; a flat list of numbers is looked into first."""
    is_first = f"coalesce({bucket(firsts, broker)} = {broker}, false)"
    return f"({is_first} OR coalesce(array_contains({bucket(buckets, broker)}, {broker}), false))"
