"""Rows of tables as whole Arrow columns, and several tables made by one pass over the same rows.

Where nothing is decided row by row, a column is repeated, picked from or named once for all rows.
That takes a tenth of what it takes Spark to make each row by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache, lru_cache, partial
from queue import Empty, Queue
from threading import Thread
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pyspark.sql import DataFrame

from understudy.frames import arrow_schema_of
from understudy.schemas import TABLES

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

_BATCH_ROWS: Final = 10_000  # of batches that go back to Spark
_BATCHES_AHEAD: Final = 8  # told and not yet written

Told = Iterator[tuple[str, "pa.RecordBatch"]]
"""Rows of tables, each batch with the name of its table."""
HandOver = Callable[[str, "pa.RecordBatch"], None]
"""Takes rows of a table, by its name."""
Teller = Callable[[Iterator["pa.RecordBatch"], Collection[str]], Told]
"""Makes the rows of the tables that are wanted."""


class Pass(NamedTuple):
    """One pass over *rows* that makes those of several tables, as far as they are wanted.

    The rows of some tables are few, and not quite those that are written: what is told of them
    comes back, and Spark makes the tables of it.
    """

    rows: DataFrame
    names: frozenset[str]
    tell: Teller
    finished: Mapping[str, Callable[[DataFrame], DataFrame]] = MappingProxyType({})

    def table(self, name: str) -> DataFrame:
        """The rows of one of the tables, for Spark to go on with."""
        told = self.rows.mapInArrow(partial(_only, self.tell, name), TABLES[name])
        return self.finished.get(name, _as_it_is)(told)


def _as_it_is(told: DataFrame) -> DataFrame:
    return told


def _only(tell: Teller, name: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for _, batch in tell(batches, {name}):
        every = decoded(batch)
        for start in range(0, every.num_rows, _BATCH_ROWS):
            yield every.slice(start, _BATCH_ROWS)


def beside(tell: Callable[[HandOver], None]) -> Told:
    """What *tell* hands over, told in a thread of its own while that before is being written."""
    waiting: Queue[tuple[str, pa.RecordBatch] | None] = Queue(_BATCHES_AHEAD)
    is_wanted = True
    failures: list[BaseException] = []

    def hand_over(name: str, batch: pa.RecordBatch) -> None:
        if not is_wanted:
            raise _NobodyListensError
        waiting.put((name, batch))

    def run() -> None:
        try:
            tell(hand_over)
        except BaseException as failure:  # noqa: BLE001 - raised where somebody waits
            failures.append(failure)
        waiting.put(None)

    teller = Thread(target=run, name="teller", daemon=True)
    teller.start()
    try:
        yield from iter(waiting.get, None)
        teller.join()
    finally:
        is_wanted = False
        while teller.is_alive():
            with suppress(Empty):
                waiting.get(timeout=0.1)
    if failures:
        raise failures[0]


class _NobodyListensError(Exception):
    """Whoever took the rows has given up."""


@cache
def arrow_schema(name: str) -> pa.Schema:
    """The schema of one of the tables."""
    return arrow_schema_of(TABLES[name])


def rows_of(name: str, count: int, columns: Mapping[str, Any]) -> pa.RecordBatch:
    """So many rows of a table: columns by name, a plain value for all rows, or null."""
    import pyarrow as pa  # noqa: PLC0415 - importing the package must not load it

    def column(field: pa.Field) -> pa.Array:
        given = columns.get(field.name)
        return given if isinstance(given, pa.Array) else repeated(given, field.type, count)

    schema = arrow_schema(name)
    return pa.RecordBatch.from_arrays([column(field) for field in schema], schema.names)


def repeated(value: Any, kind: pa.DataType, count: int) -> pa.Array:  # noqa: ANN401 - any value
    """The same value so many times, or null; words are said once."""
    import pyarrow as pa  # noqa: PLC0415 - importing the package must not load it

    if not pa.types.is_string(kind):
        return _many(value, kind, _power_of_two(count)).slice(0, count)
    place = _many(None if value is None else 0, pa.int32(), _power_of_two(count)).slice(0, count)
    said = [] if value is None else [value]
    return pa.DictionaryArray.from_arrays(place, pa.array(said, kind))


@lru_cache(maxsize=64)
def _many(value: Any, kind: pa.DataType, count: int) -> pa.Array:  # noqa: ANN401 - any value
    """Made once for all that are as long or shorter: the same few are wanted all the time."""
    import pyarrow as pa  # noqa: PLC0415

    return pa.nulls(count, kind) if value is None else pa.repeat(pa.scalar(value, kind), count)


def _power_of_two(count: int) -> int:
    return int(1 << max(count - 1, 0).bit_length())


def codes(column: pa.ChunkedArray) -> NDArray[np.int64]:
    """Numbers that are the same where the values are, lists included; null is -1."""
    import pyarrow as pa  # noqa: PLC0415 - importing the package must not load it
    import pyarrow.compute as pc  # noqa: PLC0415

    values = column.combine_chunks()
    if pa.types.is_list(values.type):
        values = _as_bytes(values)
    places = pc.dictionary_encode(values).indices
    return pc.fill_null(places.cast(pa.int64()), -1).to_numpy()  # type: ignore[no-any-return]


def _as_bytes(lists: pa.ListArray) -> pa.Array:
    """Equal bytes for equal lists: the numbers of what is in them, one after the other."""
    import numpy as np  # noqa: PLC0415
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.compute as pc  # noqa: PLC0415

    items = codes(pa.chunked_array([lists.flatten()])).astype(np.int32)
    sizes = pc.fill_null(pc.list_value_length(lists), 0).to_numpy()
    ends = np.append([0], np.cumsum(sizes)) * items.itemsize
    buffers = [None, pa.py_buffer(ends.astype(np.int64)), pa.py_buffer(items)]
    every = pa.Array.from_buffers(pa.large_binary(), len(lists), buffers)
    return pc.if_else(lists.is_valid(), every, None)


def differs(columns: Iterable[NDArray[Any]]) -> NDArray[np.bool_]:
    """Of each row whether it is another than the one before it; the first is."""
    import numpy as np  # noqa: PLC0415

    every = list(columns)
    found = np.zeros(len(every[0]), dtype=bool)
    found[:1] = True
    for column in every:
        found[1:] |= column[1:] != column[:-1]
    return found


def decoded(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The same rows with every word spelled out."""
    import pyarrow as pa  # noqa: PLC0415

    columns = [
        column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
        for column in batch.columns
    ]
    return pa.RecordBatch.from_arrays(columns, batch.schema.names)


def packed(batch: pa.RecordBatch) -> bytes:
    """A batch as one value of a row, which Spark hands on as it is.

    It is compressed here, where that is quick: Spark copies it several times on its way.
    """
    import pyarrow as pa  # noqa: PLC0415

    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
    with pa.ipc.new_stream(sink, batch.schema, options=options) as stream:
        stream.write_batch(batch)
    found: bytes = sink.getvalue().to_pybytes()
    return found


def unpacked(value: bytes | pa.Buffer) -> pa.Table:
    import pyarrow as pa  # noqa: PLC0415

    return pa.ipc.open_stream(value).read_all()


def gathered(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """The same rows in batches of at least so many, but for the last one."""
    import pyarrow as pa  # noqa: PLC0415

    held: list[pa.RecordBatch] = []
    waiting = 0
    for batch in batches:
        held.append(batch)
        waiting += batch.num_rows
        if waiting >= rows:
            yield pa.concat_batches(held)
            held, waiting = [], 0
    if waiting:
        yield pa.concat_batches(held)
