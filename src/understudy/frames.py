"""Small frames from plain values, when frames are put together, and how they are compiled."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial, reduce
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from pyspark import StorageLevel, inheritable_thread_target
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

if TYPE_CHECKING:
    import pyarrow as pa

    from understudy.columns import Pass

AS_MANY_AS_THERE_ARE: Final = 1_000_000  # partitions; fewer stay as they are
FEW_SCENARIOS: Final = 10  # what these touch is less than what they are about
FEW_ROWS: Final = 20_000  # as good as nothing to whoever holds them
SOME_OF_EACH: Final = 10  # rows that are made of one, where it is about as many


class Tables(Mapping[str, DataFrame]):
    """Tables by name, each put together when it is first asked for.

    That takes Spark a while for a large plan: who wants few tables waits for no others, and who
    writes several at the same time has them put together at the same time. Rows of several tables
    may come from *passes*, each of which makes them all at once for those who write them; and those
    that are *at_hand* need not be asked for at all.
    """

    def __init__(
        self,
        makers: Mapping[str, Callable[[], DataFrame | None]],
        passes: Iterable[Pass] = (),
        at_hand: Mapping[str, pa.Table] = MappingProxyType({}),
    ) -> None:
        self._makers = {name: cache(maker) for name, maker in makers.items()}
        narrowed = (each._replace(names=each.names & self._makers.keys()) for each in passes)
        self.passes = tuple(each for each in narrowed if each.names)
        self.at_hand = {name: rows for name, rows in at_hand.items() if name in self._makers}

    def __getitem__(self, name: str) -> DataFrame:
        passed = [each.table(name) for each in self.passes if name in each.names]
        others = self.beside_passes(name)
        return reduce(DataFrame.unionAll, passed if others is None else [others, *passed])

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)

    def beside_passes(self, name: str) -> DataFrame | None:
        """The rows of a table that no pass makes; none if it cannot have any."""
        return self._makers[name]()

    def only(self, names: Iterable[str]) -> Tables:
        return Tables({name: self._makers[name] for name in names}, self.passes, self.at_hand)

    def beside(self, others: Mapping[str, DataFrame]) -> Tables:
        """These tables and *others*, which take the place of those of the same name."""
        given = others if isinstance(others, Tables) else Tables(_makers(others))
        kept = self.only(name for name in self if name not in given)
        makers = {
            name: partial(tables.beside_passes, name) for tables in (kept, given) for name in tables
        }
        return Tables(makers, (*kept.passes, *given.passes), {**kept.at_hand, **given.at_hand})

    def each(self, change: Callable[[str, DataFrame], DataFrame]) -> Tables:
        """Every table changed, once it is asked for."""

        def changed(name: str) -> Callable[[], DataFrame]:
            return lambda: change(name, self[name])

        return Tables({name: changed(name) for name in self})

    def followed_by(self, later: Tables) -> Tables:
        """Every table with the rows of the *later* one."""

        def both(name: str) -> Callable[[], DataFrame | None]:
            return lambda: _both(self.beside_passes(name), later.beside_passes(name))

        return Tables({name: both(name) for name in self}, (*self.passes, *later.passes))


def _both(some: DataFrame | None, more: DataFrame | None) -> DataFrame | None:
    if some is None or more is None:
        return more if some is None else some
    return some.unionAll(more)


def _makers(tables: Mapping[str, DataFrame]) -> dict[str, Callable[[], DataFrame]]:
    def maker(name: str) -> Callable[[], DataFrame]:
        return lambda: tables[name]

    return {name: maker(name) for name in tables}


def small_frame(
    spark: SparkSession, rows: Iterable[Sequence[Any]], schema: T.StructType
) -> DataFrame:
    """*rows* as a frame that knows it is small.

    They travel as an Arrow table, which the JVM takes as it is; a list of rows would start Python
    workers to be unpickled.
    """
    return spark.createDataFrame(arrow_rows(rows, schema), schema)


def at_hand(
    spark: SparkSession, rows: Mapping[str, pa.Table], schemas: Mapping[str, T.StructType]
) -> Tables:
    """Tables whose rows are in this process already."""

    def frame(name: str) -> DataFrame:
        return spark.createDataFrame(rows[name], schemas[name])

    return Tables({name: partial(frame, name) for name in rows}, at_hand=rows)


def arrow_rows(rows: Iterable[Sequence[Any]], schema: T.StructType) -> pa.Table:
    """*rows* as an Arrow table of this process."""
    import pyarrow as pa  # noqa: PLC0415 - importing the package must not load it

    named = [dict(zip(schema.names, row, strict=True)) for row in rows]
    return pa.Table.from_pylist(named, schema=arrow_schema_of(schema))


def arrow_conform(table: pa.Table, schema: T.StructType) -> pa.Table:
    """*table* with the columns of *schema*, in its order and types."""
    return table.select(schema.names).cast(arrow_schema_of(schema))


def arrow_schema_of(schema: T.StructType) -> pa.Schema:
    """The same columns for Arrow."""
    from pyspark.sql.pandas.types import to_arrow_schema  # noqa: PLC0415 - as above

    return to_arrow_schema(schema, timezone="UTC")


def settled(frame: DataFrame, found: pa.Table | None = None) -> DataFrame:
    """The same few rows, computed: a plan that no other has to carry along.

    Spark looks at the whole plan below a frame with every step that is added to it, also at what
    is kept in memory. *found* are the rows, where they were asked for already.
    """
    rows = frame.toArrow() if found is None else found
    return frame.sparkSession.createDataFrame(rows, frame.schema)


def collected(spark: SparkSession, frames: Mapping[str, DataFrame]) -> dict[str, pa.Table]:
    """The rows of each of these; they are few, and asking for them one by one would be waiting."""

    @inheritable_thread_target(spark)
    def rows(name: str) -> pa.Table:
        return frames[name].toArrow()

    with ThreadPoolExecutor(len(frames)) as threads:
        return dict(zip(frames, threads.map(rows, frames), strict=True))


def kept(frame: DataFrame, *, scenarios: int = 1, rows: int | None = None) -> DataFrame:
    """Keep *frame*, which has rows of so many scenarios, for all that is made from it.

    *rows* is how many it can have, where that is known: a few are computed at once. Otherwise those
    of a few scenarios are kept in memory. Of many they can be more than that has room for: then
    Spark puts blocks of it on disk, but tries to take each back whenever it is read, for which it
    drops others.
    """
    if rows is not None and rows <= FEW_ROWS:
        return settled(frame)
    in_memory = scenarios <= FEW_SCENARIOS
    return frame.persist(
        StorageLevel.MEMORY_AND_DISK_DESER if in_memory else StorageLevel.DISK_ONLY
    )


def compiled_apart(frame: DataFrame) -> DataFrame:
    """The same rows; what follows is not compiled into one method with what came before.

    Spark makes one method of all steps up to the next shuffle. Beyond a size it is not compiled at
    all (``spark.sql.codegen.hugeMethodLimit``), and every step copies every row.
    """
    return frame.coalesce(AS_MANY_AS_THERE_ARE)


def unfolded(frame: DataFrame, items: str, *kept: str) -> DataFrame:
    """A row for each ``item`` of the array *items*, with its ``place``, beside the columns *kept*.

    The array and what is kept are worked out by a step of their own, which is compiled in any case:
    what stands beside a generator is worked out for every row it makes. And nothing is inferred
    from the array, as Spark does of a plain ``explode``, only to work all of it out twice.
    """
    return (
        frame.selectExpr(*kept, f"{items} AS items").selectExpr(*ITEMS_UNFOLDED).where(IS_AN_ITEM)
    )


ITEMS_UNFOLDED: Final = ("* EXCEPT (items)", "posexplode_outer(items) AS (place, item)")
IS_AN_ITEM: Final = "place IS NOT NULL"
