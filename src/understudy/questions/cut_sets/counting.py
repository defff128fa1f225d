"""How many partitions and topics each set is of, counted in columns.

There are about as many sets as partitions, and nearly as many of them as of topics with their sets:
a group-by in Spark would hash millions of rows four times over. Here each task lays its sets out in
a few columns and deals them, packed, into shares; whoever gets a share counts it as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from understudy.columns import gathered, packed, unpacked
from understudy.names import SNAPSHOT_KEY
from understudy.schemas import BOOLEAN, DOUBLE, IDS, LONG, STRING

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

DIGITS: Final = 3
"""Members of a set that is one number, each a digit: one more than its id, and 0 is nobody."""
DIGIT: Final = 21  # bits
_FIRST, _SECOND, _THIRD = (((1 << DIGIT) - 1) << (DIGIT * n) for n in (2, 1, 0))
_PARTITIONS_AT_ONCE: Final = 500_000
# Each share is counted in the memory of one task.
_BITS: Final = 5
_SHARES: Final = 1 << _BITS
_GOLDEN: Final = 0x9E3779B97F4A7C15  # 2**64 over the golden ratio: its multiples spread evenly
_DEALT: Final = T.StructType([T.StructField("share", LONG), T.StructField("sets", T.BinaryType())])
_COUNTED: Final = T.StructType(
    [
        *(T.StructField(name, STRING) for name in SNAPSHOT_KEY),
        T.StructField("is_offline", BOOLEAN),
        T.StructField("packed", LONG),
        T.StructField("wide", IDS),
        *(T.StructField(name, LONG) for name in ("partitions", "topics")),
        T.StructField("weight", DOUBLE),
    ]
)


def counted(numbered: DataFrame, largest: int | None = None) -> DataFrame:
    """One row per snapshot, risk and set, with ``partitions``, ``topics`` and ``weight``.

    *numbered* has a row per partition: the key, ``topic`` as a number and ``weight``. Of most
    partitions ``whole`` are all replicas as a number, and ``taken`` is how many of them block
    ``acks=all``, or 0; their sets of up to *largest* members follow from that. Of the others it is
    null, and there are ``sets`` as numbers, of which the first ``offline_count`` are for the risk
    to be offline, and ``wide_sets``: null, or beside each set its members, which a number below 0
    does not tell.
    """
    at_most = DIGITS if largest is None else largest
    dealt = numbered.mapInArrow(partial(_deal, at_most), _DEALT)
    return dealt.repartition("share").mapInArrow(_count, _COUNTED)


# --- On executors --------------------------------------------------------------------------------


def _deal(largest: int, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The sets of these partitions, packed, for each share."""
    import pyarrow as pa  # noqa: PLC0415 - executors only

    for partitions in gathered(batches, _PARTITIONS_AT_ONCE):
        sets, ends = _laid_out(partitions, largest)
        numbers = [n for n in range(_SHARES) if ends[n] < ends[n + 1]]
        dealt = [packed(sets.slice(ends[n], ends[n + 1] - ends[n])) for n in numbers]
        yield pa.RecordBatch.from_arrays(
            [pa.array(numbers, pa.int64()), pa.array(dealt, pa.binary())], _DEALT.names
        )


def _laid_out(partitions: pa.RecordBatch, largest: int) -> tuple[pa.RecordBatch, np.ndarray]:
    """A row per partition and set, share after share, and where each share begins."""
    import numpy as np  # noqa: PLC0415 - executors only
    import pyarrow as pa  # noqa: PLC0415 - executors only

    every = [*_of_whole(partitions, largest), _of_others(partitions)]
    of_partition = np.concatenate([sets.of_partition for sets in every])
    numbers = np.concatenate([sets.numbers for sets in every])
    is_offline = np.concatenate([sets.is_offline for sets in every])
    mixed = numbers.astype(np.uint64) * np.uint64(_GOLDEN)
    share = (mixed >> np.uint64(64 - _BITS)).astype(np.int8)  # which is sorted in one go
    order = np.argsort(share, kind="stable")
    columns = {
        **{name: partitions[name].dictionary_encode() for name in SNAPSHOT_KEY},
        **{name: partitions[name] for name in ("topic", "weight")},
    }
    taken = pa.array(of_partition[order])
    rows = {name: column.take(taken) for name, column in columns.items()}
    rows["is_offline"] = pa.array(is_offline[order])
    rows["packed"] = pa.array(numbers[order])
    is_wide = numbers < 0
    if is_wide.any():
        # Those of others come last, and of these each that is listed has its members beside it.
        lists = partitions["wide_sets"]
        listed = lists.is_valid().to_numpy(zero_copy_only=False)[of_partition]
        beside = np.cumsum(listed) - 1
        rows["wide"] = lists.flatten().take(pa.array(beside[order], mask=~is_wide[order]))
    return pa.record_batch(rows), np.searchsorted(share[order], np.arange(_SHARES + 1))


class _Sets(NamedTuple):
    """Sets as numbers, with the places of their partitions."""

    of_partition: np.ndarray
    numbers: np.ndarray
    is_offline: np.ndarray


def _of_whole(partitions: pa.RecordBatch, largest: int) -> Iterator[_Sets]:
    """The sets of whole partitions with replicas x, y and z, or the first of them."""
    import numpy as np  # noqa: PLC0415 - executors only

    at = np.flatnonzero(partitions["whole"].is_valid().to_numpy(zero_copy_only=False))
    whole = partitions["whole"].drop_null().to_numpy()
    size = 1 + ((whole & _SECOND) != 0) + ((whole & _THIRD) != 0)
    taken = np.minimum(partitions["taken"].to_numpy()[at], size)

    def sets(which: np.ndarray, numbers: np.ndarray, *, is_offline: bool = False) -> _Sets:
        return _Sets(at[which], numbers[which], np.full(np.count_nonzero(which), is_offline))

    is_wanted = size <= largest
    yield sets(is_wanted, whole, is_offline=True)
    yield sets(is_wanted & (taken == size), whole)
    if largest > 1:
        by_two = (taken == 2) & (size > 2)  # noqa: PLR2004 - of three
        yield sets(by_two, whole & (_FIRST | _SECOND))
        yield sets(by_two, whole & _FIRST | (whole & _THIRD) << DIGIT)
        yield sets(by_two, (whole & (_SECOND | _THIRD)) << DIGIT)
    if largest > 0:
        by_one = (taken == 1) & (size > 1)
        yield sets(by_one, whole & _FIRST)
        yield sets(by_one, (whole & _SECOND) << DIGIT)
        yield sets(by_one & (size > 2), (whole & _THIRD) << 2 * DIGIT)  # noqa: PLR2004 - as above


def _of_others(partitions: pa.RecordBatch) -> _Sets:
    import numpy as np  # noqa: PLC0415 - executors only

    numbers = partitions["sets"].flatten().to_numpy()
    sizes = np.diff(partitions["sets"].offsets.to_numpy())
    of_partition = np.repeat(np.arange(len(sizes)), sizes)
    place = np.arange(len(numbers)) - (np.cumsum(sizes) - sizes)[of_partition]
    return _Sets(
        of_partition, numbers, place < partitions["offline_count"].to_numpy()[of_partition]
    )


def _count(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The shares of this task, each counted as a whole."""
    shares: dict[int, list[pa.Table]] = {}
    for batch in batches:
        for share, sets in zip(batch["share"].to_pylist(), batch["sets"], strict=True):
            shares.setdefault(share, []).append(unpacked(sets.as_buffer()))
    while shares:
        yield from _sums(shares.popitem()[1]).to_batches()


def _sums(parts: Iterable[pa.Table]) -> pa.Table:
    import pyarrow as pa  # noqa: PLC0415 - executors only
    import pyarrow.compute as pc  # noqa: PLC0415 - executors only
    from pyspark.sql.pandas.types import to_arrow_schema  # noqa: PLC0415

    sets = pa.concat_tables(parts, promote_options="default").unify_dictionaries().combine_chunks()
    # Groups are told apart by numbers; most tasks have seen one snapshot, which tells none apart.
    keys = {name: sets[name].chunk(0) for name in SNAPSHOT_KEY}
    columns = {name: sets[name] for name in ("is_offline", "packed", "topic", "weight")}
    columns |= {name: key.indices for name, key in keys.items() if len(key.dictionary) > 1}
    by = [name for name in columns if name not in {"topic", "weight"}]
    found = (
        pa.table(columns)
        .group_by([*by, "topic"], use_threads=False)
        .aggregate([("weight", "count"), ("weight", "sum")])
        .group_by(by, use_threads=False)
        .aggregate([("weight_count", "sum"), ("topic", "count"), ("weight_sum", "sum")])
    )
    wide = pa.nulls(found.num_rows, pa.list_(pa.int32()))
    if "wide" in sets.column_names:
        those = sets.filter(pc.is_valid(sets["wide"]))
        wide = those["wide"].take(pc.index_in(found["packed"], those["packed"]))
    first = pa.repeat(pa.scalar(0), found.num_rows)
    names = [
        key.dictionary.take(found[name] if name in by else first) for name, key in keys.items()
    ]
    sums = (found[name] for name in ("weight_count_sum", "topic_count", "weight_sum_sum"))
    told = [*names, found["is_offline"], found["packed"], wide, *sums]
    return pa.table(told, _COUNTED.names).cast(to_arrow_schema(_COUNTED, timezone="UTC"))
