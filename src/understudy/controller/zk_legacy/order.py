"""The order in which the legacy controller walks sets of brokers and of replicas.

Kafka 0.9 to 1.0 hands immutable Scala sets to its machines. Up to four elements such a set keeps
the order of insertion; a larger one is a hash trie over an improved hash, walked by digits of five
bits from the lowest up (Scala 2.10 to 2.12; later Scalas walk it differently). The order decides
what a reassignment writes as the united assignment, who is started first, and who is the last to
leave an ISR. What is picked from a machine's states comes in the order of a mutable map instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeVar

from understudy.controller.group_order import improved_hash
from understudy.controller.records import Ids, Replica

SMALL_SET: Final = 4  # Scala's Set1 to Set4 keep the order of insertion

_MASK: Final = 0xFFFFFFFF
_DIGIT_BITS: Final = 5
_DIGITS: Final = 7  # seven digits of five bits hold 32
_BYTE_SWAP: Final = 0x9E3775CD
_CASE_CLASS_SEED: Final = 0xCAFEBABE

_Item = TypeVar("_Item")


def broker_set(brokers: Iterable[int]) -> Ids:
    """The distinct *brokers* in the order a set of them is walked."""
    distinct = tuple(dict.fromkeys(brokers))
    return distinct if len(distinct) <= SMALL_SET else tuple(_by_hash(distinct, int))


def replica_set(replicas: Iterable[Replica], *, hashed: bool = False) -> list[Replica]:
    """The distinct *replicas* in the order a set of them is walked.

    What is made from a hash trie by mapping or filtering stays one, however small: *hashed*.
    """
    distinct = list(dict.fromkeys(replicas))
    if not hashed and len(distinct) <= SMALL_SET:
        return distinct
    return _by_hash(distinct, _replica_hash)


def picked_states(replicas: Iterable[Replica], out_of: int) -> list[Replica]:
    """Replicas picked from a map of *out_of* states, in the order the new map of them is walked.

    Buckets are walked downwards, and in each the entry that was put last comes first. Entries that
    share a bucket in both maps depend on the history of the first; here they are taken by name.
    """
    picked = sorted(replicas)
    buckets, buckets_before = _buckets(len(picked)), _buckets(out_of)

    def place(replica: Replica) -> tuple[int, int]:
        code = _replica_hash(replica)
        return -_bucket(code, buckets), _bucket(code, buckets_before)

    return sorted(picked, key=place)


def _buckets(entries: int) -> int:
    """A map doubles its buckets when it is more than three quarters full."""
    buckets = 16
    while 4 * entries > 3 * buckets:
        buckets *= 2
    return buckets


def _bucket(code: int, buckets: int) -> int:
    """The highest bits of a hash whose bytes are swapped, as many as there are buckets."""
    swapped = (code * _BYTE_SWAP) & _MASK
    swapped = int.from_bytes(swapped.to_bytes(4, "little"), "big")
    bits = buckets.bit_length() - 1
    rotated = _rotated_left((swapped * _BYTE_SWAP) & _MASK, 32 - bits)
    return rotated >> (32 - bits)


def _by_hash(items: Sequence[_Item], hash_of: Callable[[_Item], int]) -> list[_Item]:
    return sorted(items, key=lambda item: _digits(improved_hash(hash_of(item))))


def _digits(number: int) -> tuple[int, ...]:
    return tuple(
        (number >> (_DIGIT_BITS * place)) & ((1 << _DIGIT_BITS) - 1) for place in range(_DIGITS)
    )


def _replica_hash(replica: Replica) -> int:
    """The hashCode of Kafka's case class of the three, which is a MurmurHash3."""
    (topic, partition), broker = replica
    mixed = _CASE_CLASS_SEED
    for member in (_string_hash(topic), partition, broker):
        mixed = _mix(mixed, member)
    return _avalanche(mixed ^ 3)


def _string_hash(text: str) -> int:
    value = 0
    for character in text:
        value = (31 * value + ord(character)) & _MASK
    return value


def _mix(value: int, data: int) -> int:
    data = (data * 0xCC9E2D51) & _MASK
    data = (_rotated_left(data, 15) * 0x1B873593) & _MASK
    return (_rotated_left(value ^ data, 13) * 5 + 0xE6546B64) & _MASK


def _rotated_left(value: int, bits: int) -> int:
    return ((value << bits) | (value >> (32 - bits))) & _MASK


def _avalanche(value: int) -> int:
    value ^= value >> 16
    value = (value * 0x85EBCA6B) & _MASK
    value ^= value >> 13
    value = (value * 0xC2B2AE35) & _MASK
    return value ^ (value >> 16)
