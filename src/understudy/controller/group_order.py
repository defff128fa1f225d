"""The order in which the replica machine takes its broker groups.

Kafka groups a call's replicas by broker with Scala 2.13's ``groupBy`` and walks the resulting
immutable hash map. That order is a pure function of the *set* of broker ids. It decides which ISR
member is retained last, which epochs stop requests carry and who gets which leader-and-isr
generation, so it has to be reproduced.

The map is a hash trie of 32-way nodes over an improved hash, five bits per level from the lowest
up. A node first yields the ids that are alone in their slot, by slot, then its sub-nodes, by slot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pyspark.sql import Column, DataFrame
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


def with_group_order(df: DataFrame, brokers: str) -> DataFrame:
    """Put the ids of the array column *brokers*, all distinct, into the same order.

    An id's path is its hash with the digits turned round, lowest first, so that sorting by path
    puts each id beside those it shares most digits with. The level at which an id is alone follows
    from its two neighbours. A digit above that level leads into a sub-node and sorts behind all
    digits that do not; with that marked, plain array order is the trie's order.
    """
    hashed = brokers
    for column in _improved_hash_steps():
        df = df.withColumn("_hashed", F.transform(hashed, column))
        hashed = "_hashed"
    return (
        df.withColumn("_paths", F.array_sort(F.transform("_hashed", _with_path)))
        .withColumn("_depths", F.transform("_paths", _with_depth))
        .withColumn("_keys", F.array_sort(F.transform("_depths", _with_key)))
        .withColumn(brokers, F.transform("_keys", lambda entry: entry["id"]))
        .drop("_hashed", "_paths", "_depths", "_keys")
    )


def _improved_hash_steps() -> list[Callable[[Column], Column]]:
    """:func:`improved_hash`, a line at a time; each step names its input only a few times."""
    mask = F.lit(_MASK)

    def entry(broker: Column, h: Column) -> Column:
        return F.struct(broker.alias("id"), h.alias("h"))

    def start(b: Column) -> Column:
        long = b.cast("bigint")
        return entry(b, (long + F.bitwise_not(F.shiftleft(long, 9))).bitwiseAND(mask))

    return [
        start,
        lambda e: entry(e["id"], e["h"].bitwiseXOR(F.shiftrightunsigned(e["h"], 14))),
        lambda e: entry(e["id"], (e["h"] + F.shiftleft(e["h"], 4)).bitwiseAND(mask)),
        lambda e: entry(e["id"], e["h"].bitwiseXOR(F.shiftrightunsigned(e["h"], 10))),
    ]


def _digit(number: Column, place: int) -> Column:
    return F.shiftrightunsigned(number, _BITS * place).bitwiseAND(F.lit(_DIGIT).cast("bigint"))


def _with_path(entry: Column) -> Column:
    path = F.lit(0).cast("bigint")
    for level in range(_LEVELS):
        path = path.bitwiseOR(F.shiftleft(_digit(entry["h"], level), _BITS * (_LEVELS - 1 - level)))
    return F.struct(path.alias("path"), entry["id"].alias("id"))


def _with_depth(entry: Column, index: Column) -> Column:
    def shared(neighbour: Column) -> Column:
        difference = entry["path"].bitwiseXOR(F.get("_paths", neighbour)["path"])
        digits = F.lit(0)
        for level in range(1, _LEVELS):
            digits += (difference < (1 << _BITS * (_LEVELS - level))).cast("int")
        return F.coalesce(digits, F.lit(0))

    return F.struct(
        entry["path"].alias("path"),
        F.greatest(shared(index - 1), shared(index + 1)).alias("depth"),
        entry["id"].alias("id"),
    )


def _with_key(entry: Column) -> Column:
    digits = F.array(*(_digit(entry["path"], _LEVELS - 1 - level) for level in range(_LEVELS)))
    key = F.transform(
        F.slice(digits, F.lit(1), entry["depth"] + 1),
        lambda digit, level: F.when(level < entry["depth"], digit + _DIGIT + 1).otherwise(digit),
    )
    return F.struct(key.alias("key"), entry["id"].alias("id"))
