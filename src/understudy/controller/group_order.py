"""The order in which the replica machine takes its broker groups.

Kafka groups a call's replicas by broker with Scala 2.13's ``groupBy`` and walks the resulting
immutable hash map. That order is a pure function of the *set* of broker ids. It decides which ISR
member is retained last, which epochs stop requests carry and who gets which leader-and-isr
generation, so it has to be reproduced.

The map is a hash trie of 32-way nodes over an improved hash, five bits per level from the lowest
up. A node first yields the ids that are alone in their slot, by slot, then its sub-nodes, by slot.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import Column
from pyspark.sql import functions as F

_MASK = 0xFFFFFFFF
_BITS = 5
_LEVELS = 7  # seven digits of five bits hold 32
_DIGIT = 31


def improved_hash(broker: int) -> int:
    """Scala's improved hash of an Int, as an unsigned 32-bit number."""
    h = (broker + ~(broker << 9)) & _MASK
    h ^= h >> 14
    h = (h + (h << 4)) & _MASK
    return h ^ (h >> 10)


def group_order(brokers: Iterable[int]) -> list[int]:
    """*brokers* in the order the hash map yields them."""
    return _node(sorted(set(brokers), key=improved_hash), 0)


def _node(brokers: list[int], shift: int) -> list[int]:
    slots: dict[int, list[int]] = {}
    for broker in brokers:
        slots.setdefault((improved_hash(broker) >> shift) & _DIGIT, []).append(broker)
    in_slot_order = [slots[slot] for slot in sorted(slots)]
    alone = [slot[0] for slot in in_slot_order if len(slot) == 1]
    crowded = [_node(slot, shift + _BITS) for slot in in_slot_order if len(slot) > 1]
    return alone + [broker for node in crowded for broker in node]


def group_order_column(brokers: Column) -> Column:
    """The same order for an array of distinct broker ids, as an expression.

    Ids sorted by their digit path (lowest digit first) put each id beside those it shares the
    longest path with, so the level at which an id is alone follows from its two neighbours.
    Prefixing every digit above that level with "sub-node" (32 + digit) makes plain array order
    the trie's order.
    """
    paths = F.array_sort(F.transform(brokers, lambda b: F.struct(_path(b).alias("path"), b.alias("id"))))
    with_keys = F.transform(
        paths,
        lambda entry, i: F.struct(
            _sort_key(
                entry["path"],
                F.greatest(
                    _shared_digits(entry["path"], F.get(paths, i - 1)["path"]),
                    _shared_digits(entry["path"], F.get(paths, i + 1)["path"]),
                ),
            ).alias("key"),
            entry["id"].alias("id"),
        ),
    )
    return F.transform(F.array_sort(with_keys), lambda entry: entry["id"])


def _improved_hash_column(broker: Column) -> Column:
    mask = F.lit(_MASK)
    b = broker.cast("bigint")
    h1 = (b + F.bitwise_not(F.shiftleft(b, 9))).bitwiseAND(mask)
    h2 = h1.bitwiseXOR(F.shiftrightunsigned(h1, 14))
    h3 = (h2 + F.shiftleft(h2, 4)).bitwiseAND(mask)
    return h3.bitwiseXOR(F.shiftrightunsigned(h3, 10))


def _path(broker: Column) -> Column:
    """The digits of the improved hash as an array of ints, lowest digit first."""
    h = _improved_hash_column(broker)
    return F.array(
        *(
            F.shiftrightunsigned(h, _BITS * level).bitwiseAND(F.lit(_DIGIT).cast("bigint")).cast("int")
            for level in range(_LEVELS)
        )
    )


def _shared_digits(path: Column, other: Column) -> Column:
    """How many leading digits two paths share; 0 when there is no other."""
    first_difference = F.lit(0)
    for level in reversed(range(_LEVELS)):
        first_difference = F.when(
            F.get(path, F.lit(level)) == F.get(other, F.lit(level)), first_difference + 1
        ).otherwise(F.lit(0))
    return F.when(other.isNull(), F.lit(0)).otherwise(first_difference)


def _sort_key(path: Column, depth: Column) -> Column:
    return F.transform(
        F.slice(path, F.lit(1), depth + 1),
        lambda digit, level: F.when(level < depth, digit + _DIGIT + 1).otherwise(digit),
    )
