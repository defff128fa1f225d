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

from understudy.sql import Rows

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


def with_group_order(rows: Rows, brokers: str) -> Rows:
    """Put the ids of the array column *brokers*, all distinct, into the same order.

    An id's path is its hash with the digits turned round, lowest first, so that sorting by path
    puts each id beside those it shares most digits with. The level at which an id is alone follows
    from its two neighbours. A digit above that level leads into a sub-node and sorts behind all
    digits that do not; with that marked, plain array order is the trie's order.
    """
    return (
        rows.select("*", f"{_hashed(brokers)} AS _hashed")
        .select("*", f"array_sort(transform(_hashed, e -> {_path('e')})) AS _paths")
        .select("*", f"transform(_paths, (e, i) -> {_depth('e', 'i')}) AS _depths")
        .select("*", f"array_sort(transform(_depths, e -> {_key('e')})) AS _keys")
        .drop(brokers, "_hashed", "_paths", "_depths")
        .select("* EXCEPT (_keys)", f"transform(_keys, e -> e.id) AS {brokers}")
    )


def _hashed(brokers: str) -> str:
    """:func:`improved_hash` of each id, line by line."""
    lines = (
        f"(e.h + ~shiftleft(e.h, 9)) & {_MASK}L",
        "e.h ^ shiftrightunsigned(e.h, 14)",
        f"(e.h + shiftleft(e.h, 4)) & {_MASK}L",
        "e.h ^ shiftrightunsigned(e.h, 10)",
    )
    hashed = f"transform({brokers}, id -> named_struct('id', id, 'h', CAST(id AS BIGINT)))"
    for line in lines:
        hashed = f"transform({hashed}, e -> named_struct('id', e.id, 'h', {line}))"
    return hashed


def _digit(number: str, place: int) -> str:
    return f"shiftrightunsigned({number}, {_BITS * place}) & {_DIGIT}L"


def _path(entry: str) -> str:
    digits = (
        f"shiftleft({_digit(f'{entry}.h', level)}, {_BITS * (_LEVELS - 1 - level)})"
        for level in range(_LEVELS)
    )
    return f"named_struct('path', {' | '.join(digits)}, 'id', {entry}.id)"


def _depth(entry: str, index: str) -> str:
    def shared(neighbour: str) -> str:
        difference = f"({entry}.path ^ get(_paths, {neighbour}).path)"
        levels = (
            f"CAST({difference} < {1 << _BITS * (_LEVELS - level)}L AS INT)"
            for level in range(1, _LEVELS)
        )
        return f"coalesce({' + '.join(levels)}, 0)"

    depth = f"greatest({shared(f'{index} - 1')}, {shared(f'{index} + 1')})"
    return f"named_struct('path', {entry}.path, 'depth', {depth}, 'id', {entry}.id)"


def _key(entry: str) -> str:
    digits = (_digit(f"{entry}.path", _LEVELS - 1 - level) for level in range(_LEVELS))
    marked = f"IF(level < {entry}.depth, digit + {_DIGIT + 1}, digit)"
    return (
        f"named_struct('key', transform(slice(array({', '.join(digits)}), 1, {entry}.depth + 1), "
        f"(digit, level) -> {marked}), 'id', {entry}.id)"
    )
