"""Facts: the smallest things that differ between two snapshots, each a part of one event.

A fact knows the event it belongs to (``place``, ``rank``, ``event_type``, and the JSON text around
its items, ``head`` and ``tail``), its own item in it, and the sentence that says why. Facts of one
event become one row by :func:`gathered`.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from understudy.controller.native.sql import null, struct, text
from understudy.questions.history_steps import STEP_KEY, added

NO_NAMES: Final = "CAST(array() AS ARRAY<STRING>)"
_SENTENCES_SHOWN: Final = 5
_CREATIONS: Final = "('topic_change', 'partition_change')"


class Place(IntEnum):
    """Where an event stands among those of its interval.

    As a controller would have met them: who is gone before who came, a reassignment before the
    ISRs it waits for, and those before the preferred leaders that need them.
    """

    FAILOVER = 0
    SHUTDOWN_BEFORE_FAILURE = 5
    ISR_BEFORE_FAILURE = 6
    FAILURE = 10
    LOG_DIR = 20
    SHUTDOWN = 30
    UNCLEAN_ENABLED = 40
    CREATION = 50
    STARTUP = 60
    UNREGISTRATION = 65
    UNCLEAN_ELECTION = 70
    DELETION = 75
    DELETION_ANSWER = 76
    LATE_CREATION = 80
    CANCELLATION = 85
    REASSIGNMENT = 86
    DIR_ASSIGNMENT = 88
    ISR = 90
    PREFERRED_ELECTION = 95


BEFORE_FAILOVER: Final = -100
"""Added to the place of what the controller before the failover had still done."""


def fact(
    event_type: str,
    place: Place | str,
    *,
    head: str,
    tail: str = "''",
    item: str = null("STRING"),
    said: str,
    rank: str = "0",
    weight: str = "0",
    topic: str = null("STRING"),
    nth: str = "0",
) -> str:
    """A fact as a struct; *head*, *item* and *tail* are expressions that make JSON text.

    Items stand by the sum of their *weight*, then by *topic* and *nth*. A fact whose *said* is null
    adds its weight to a fact that is stated elsewhere, and nothing else.
    """
    return struct(
        place=f"CAST({int(place) if isinstance(place, Place) else place} AS INT)",
        rank=f"CAST({rank} AS BIGINT)",
        event_type=text(event_type),
        head=head,
        tail=tail,
        weight=f"CAST({weight} AS BIGINT)",
        topic=topic,
        nth=nth,
        item=item,
        said=said,
    )


def when(condition: str, *facts: str) -> str:
    """These facts where *condition* is true, else null."""
    return f"IF({condition}, array({', '.join(facts)}), NULL)"


def stated(df: DataFrame, *facts: str) -> DataFrame:
    """One row for each fact in these arrays of facts, some of which may be null."""
    return df.selectExpr(*STEP_KEY, f"inline(flatten(array_compact(array({', '.join(facts)}))))")


def ids(expression: str) -> str:
    """A list of broker ids as JSON text."""
    return f"concat('[', array_join({expression}, ', '), ']')"


def names(expression: str) -> str:
    """A list of names, which need no escaping, as JSON text."""
    return f"""concat('["', array_join({expression}, '", "'), '"]')"""


def listing(event_type: str, field: str, opening: str = "[", closing: str = "]") -> dict[str, str]:
    """The text around the items of an event with one field that lists them."""
    return {
        "head": text(f'{{"{field}": {opening}'),
        "tail": text(f'{closing}, "type": "{event_type}"}}'),
    }


def of_broker(event_type: str, broker: str) -> dict[str, str]:
    """The text around the partitions of an event about one broker."""
    return {
        "head": f"""concat('{{"broker": ', {broker}, ', "partitions": [')""",
        "tail": text(f'], "type": "{event_type}"}}'),
    }


def gathered(facts: DataFrame) -> DataFrame:
    """Facts of one event as one row; a fact stated twice counts where it came first."""
    is_creation = f"event_type IN {_CREATIONS}"
    same = f"{', '.join(STEP_KEY)}, event_type, rank, head, IF({is_creation}, '', item)"
    first = added(
        facts,
        first=f"min(place) OVER (PARTITION BY {same})",
        weights=f"sum(weight) OVER (PARTITION BY {same})",
    )
    parts = (
        first.where(f"said IS NOT NULL AND (place = first OR {is_creation})")
        .groupBy(*STEP_KEY, "first", "rank", "event_type", "head", "tail")
        .agg(F.array_sort(F.collect_set(F.struct("weights", "topic", "nth", "item", "said"))))
        .toDF(*STEP_KEY, "place", "rank", "event_type", "head", "tail", "parts")
    )
    others = f"size(parts) - {_SENTENCES_SHOWN}"
    order = "place, rank, parts[0].topic, parts[0].nth, head"
    return parts.selectExpr(
        *STEP_KEY,
        f"row_number() OVER (PARTITION BY {', '.join(STEP_KEY)} ORDER BY {order}) AS seq",
        "event_type",
        "concat(head, array_join(parts.item, ', '), tail) AS event",
        f"concat(array_join(slice(parts.said, 1, {_SENTENCES_SHOWN}), '; '),"
        f" IF({others} > 0, concat('; and ', {others}, ' more'), '')) AS evidence",
    )
