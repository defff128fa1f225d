"""Rows and column expressions as SQL text: put together for nothing, analysed once.

Spark analyses the whole plan again at each step that is added to a frame, and each node of a Column
costs a call into the JVM. A replay has hundreds of steps with tens of thousands of nodes. Nothing
from input ever becomes part of the text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Concatenate, Final, NamedTuple, ParamSpec

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from understudy.frames import AS_MANY_AS_THERE_ARE, IS_AN_ITEM, ITEMS_UNFOLDED, kept
from understudy.names import PARTITION_KEY

P = ParamSpec("P")
_NUMBERS: Final = count()


class Rows(NamedTuple):
    """A query and the frames it names; the steps are those of a frame, in the same words."""

    query: str  # of names and expressions of ours; nothing from input ever becomes part of it
    frames: Mapping[str, DataFrame]
    own: DataFrame | None = None  # of rows that are the whole of one frame

    @classmethod
    def of(cls, frame: DataFrame) -> Rows:
        name = f"frame_{id(frame)}"
        return cls(f"SELECT * FROM {{{name}}}", {name: frame}, frame)

    def frame(self) -> DataFrame:
        # A query takes frames by way of views. With a view Spark drops what it has cached of the
        # very same plan, and plans anew whatever it is to keep of plans that contain it, without
        # what it keeps of others: which can be more than a heap has room for. So no two views are
        # of the same plan.
        number = next(_NUMBERS)
        seen = {name: frame.where(f"{number} = {number}") for name, frame in self.frames.items()}
        spark = next(iter(self.frames.values())).sparkSession
        return spark.sql(self.query, None, **seen)

    def apart(self) -> Rows:
        """The same over a frame of its own, which can be kept."""
        return Rows.of(self.frame())

    def keep(self, scenarios: int) -> DataFrame:
        """Keep the frame these rows are ``apart`` on, and return it to be let go."""
        if self.own is None:
            raise ValueError("rows without a frame of their own cannot be kept")
        return kept(self.own, scenarios=scenarios)

    def select(self, *columns: str, hint: str = "") -> Rows:
        return self._then(f"SELECT {hint}{', '.join(columns)} FROM ({self.query})")

    def where(self, condition: str) -> Rows:
        return self._then(f"SELECT * FROM ({self.query}) WHERE {condition}")

    def drop(self, *columns: str) -> Rows:
        return self.select(f"* EXCEPT ({', '.join(columns)})")

    def spread(self, *by: str) -> Rows:
        """The same rows over as many tasks as there is room for, however few files they are in."""
        return self.select("*", hint=f"/*+ REPARTITION({', '.join(by)}) */ ")

    def compiled_apart(self) -> Rows:
        """As ``frames.compiled_apart``."""
        return self.select("*", hint=f"/*+ COALESCE({AS_MANY_AS_THERE_ARE}) */ ")

    def unfolded(self, items: str, *kept: str) -> Rows:
        """As ``frames.unfolded``."""
        return self.select(*kept, f"{items} AS items").select(*ITEMS_UNFOLDED).where(IS_AN_ITEM)

    def union(self, other: Rows) -> Rows:
        return self._then(f"({self.query}) UNION ALL ({other.query})", other)

    def join(
        self, other: Rows, on: Sequence[str], how: str = "INNER", *, broadcast: bool = False
    ) -> Rows:
        hint = "/*+ BROADCAST(other) */ " if broadcast else ""
        joined = f"({self.query}) {how} JOIN ({other.query}) AS other USING ({', '.join(on)})"
        return self._then(f"SELECT {hint}* FROM {joined}", other)

    def grouped(self, by: Sequence[str], *aggregates: str) -> Rows:
        columns = ", ".join([*by, *aggregates])
        return self._then(f"SELECT {columns} FROM ({self.query}) GROUP BY {', '.join(by)}")

    def transform(
        self, step: Callable[Concatenate[Rows, P], Rows], *args: P.args, **kwargs: P.kwargs
    ) -> Rows:
        return step(self, *args, **kwargs)

    def _then(self, query: str, *others: Rows) -> Rows:
        frames = dict(self.frames)
        for other in others:
            frames.update(other.frames)
        return Rows(query, frames)


NO_IDS: Final = "CAST(array() AS ARRAY<INT>)"


def text(value: str) -> str:
    """A string literal."""
    return "'" + value.replace("'", "''") + "'"


def null(kind: str) -> str:
    return f"CAST(NULL AS {kind})"


def struct(**fields: str) -> str:
    inside = ", ".join(f"'{name}', {value}" for name, value in fields.items())
    return f"named_struct({inside})"


def nothing(beside: Rows, schema: T.StructType) -> Rows:
    """No row, of *schema*, in the session of *beside*."""
    return beside.where("false").select(
        *(f"{null(field.dataType.simpleString())} AS {field.name}" for field in schema)
    )


def select(rows: Rows, schema: T.StructType, **values: str) -> Rows:
    """Project onto *schema*: columns by name from *values*, then the keys, else null."""
    given = {**{name: name for name in PARTITION_KEY}, **values}
    return rows.select(
        *(
            f"CAST({given.get(field.name, 'NULL')} AS {field.dataType.simpleString()})"
            f" AS {field.name}"
            for field in schema
        )
    )
