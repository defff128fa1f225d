"""Arrays of what is known of many partitions at once, and columns made of them.

Brokers are places in a list of ids. Lists of them are rows of one width, filled up with ``NOBODY``;
rows are short, so going along them column by column takes numpy a tenth of the time. For the same
reason rows are taken (``take``, ``compress``), not indexed: that takes a quarter of the time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Ints = NDArray[np.signedinteger[Any]]
Flags = NDArray[np.bool_]

NOBODY: Final = -1  # in place of a broker
UNSET: Final = -1  # in place of a flag

PARTITIONS_AT_ONCE: Final = 250_000
"""Rows are made of so many partitions: what is held meanwhile is many times as large as these."""


def in_slices(at: Ints) -> Iterator[Ints]:
    for start in range(0, len(at), PARTITIONS_AT_ONCE):
        yield at[start : start + PARTITIONS_AT_ONCE]


def numbers(
    values: Ints | Flags, *, known: Flags | None = None, kind: pa.DataType | None = None
) -> pa.Array:
    """Numbers, null where they are not *known*."""
    values = values if kind is not None else values.astype(np.int32, copy=False)
    return pa.array(values, kind, mask=None if known is None else ~known)


def words(codes: Ints, every: Sequence[str]) -> pa.Array:
    """Words by their place among *every* one; null where it is negative."""
    places = pa.array(codes.astype(np.int32, copy=False), mask=codes < 0)
    return pa.DictionaryArray.from_arrays(places, pa.array(every, pa.string()))


def lists(places: Ints, ids: Ints, *, known: Flags | None = None) -> pa.ListArray:
    """Lists of broker ids, null where they are not *known*."""
    is_there = places != NOBODY
    if is_there.all():
        offsets = np.arange(len(places) + 1, dtype=np.int32) * places.shape[1]
        items = places.ravel()
    else:
        offsets = np.zeros(len(places) + 1, dtype=np.int32)
        np.cumsum(count_of(is_there), out=offsets[1:])
        items = places.ravel().compress(is_there.ravel())
    return pa.ListArray.from_arrays(
        pa.array(offsets),
        pa.array(ids.take(items).astype(np.int32, copy=False)),
        mask=None if known is None else pa.array(~known),
    )


def distinct(values: Ints) -> Ints:
    """Each of the *values* once, ascending; numpy's unique() takes six times as long."""
    found = np.sort(values)
    is_new = np.ones(len(found), dtype=bool)
    is_new[1:] = found[1:] != found[:-1]
    return found[is_new]


def any_of(flags: Flags) -> Flags:
    """Whether any of each row is set."""
    found = np.zeros(len(flags), dtype=bool)
    for column in flags.T:
        found |= column
    return found


def count_of(flags: Flags) -> Ints:
    """How many of each row are set."""
    found = np.zeros(len(flags), dtype=np.int32)
    for column in flags.T:
        found += column
    return found


def ids_of(places: Ints, ids: Ints) -> Ints:
    """Broker ids, and -1 for nobody."""
    if not len(ids):
        return places
    return np.where(places == NOBODY, NOBODY, ids.take(places))


_LAST: Final = np.iinfo(np.int32).max


def ascending(places: Ints) -> Ints:
    """Each list in ascending order, nobody last."""
    found = np.sort(np.where(places == NOBODY, _LAST, places), axis=1)
    return np.where(found == _LAST, NOBODY, found)


def only(places: Ints, wanted: Flags) -> Ints:
    """Each list without those that are not *wanted*, in the same order."""
    found = np.where(wanted, places, NOBODY)
    width = places.shape[1]
    for end in range(width - 1, 0, -1):
        for column in range(end):
            is_free = found[:, column] == NOBODY
            following = found[:, column + 1]
            found[:, column] = np.where(is_free, following, found[:, column])
            following[is_free] = NOBODY
    return found


def chosen(flags: Flags, code: int, otherwise: int) -> Ints:
    """A small number for each flag."""
    return np.where(flags, np.int8(code), np.int8(otherwise))


V = TypeVar("V", Flags, Ints)


def values_of(values: V, places: Ints) -> V:
    """The values at these places; where there is nobody, any."""
    return values.take(places) if len(values) else np.zeros(places.shape, dtype=values.dtype)


def first_of(places: Ints, wanted: Flags) -> Ints:
    """The first that is *wanted* of each list, or nobody."""
    found = np.take_along_axis(places, wanted.argmax(axis=1)[:, None], axis=1)[:, 0]
    return np.where(any_of(wanted), found, NOBODY)


def contained_in(places: Ints, others: Ints) -> Flags:
    """Of each of the lists, which are in the other one."""
    found = np.zeros(places.shape, dtype=bool)
    for column in others.T:
        found |= places == column[:, None]
    found &= places != NOBODY
    return found
