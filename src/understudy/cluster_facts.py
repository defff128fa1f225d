"""What a controller has to know of a whole cluster beside its partitions, from rows at hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from understudy.controller.profiles import DECISIVE_SETTINGS

if TYPE_CHECKING:
    import pyarrow as pa


def deciding(brokers: pa.Table, topics: pa.Table, configs: pa.Table) -> dict[str, pa.Table]:
    """All brokers, the topics queued for deletion and the settings that decide anything.

    Of brokers what is unknown takes the default that ``Snapshots.with_defaults`` gives it.
    """
    import pyarrow as pa  # noqa: PLC0415 - importing the package must not load it
    import pyarrow.compute as pc  # noqa: PLC0415

    fenced = pc.coalesce(brokers["fenced"], pc.invert(brokers["alive"]))
    known = {"shutting_down": pc.fill_null(brokers["shutting_down"], False), "fenced": fenced}
    for name, values in known.items():
        brokers = brokers.set_column(brokers.column_names.index(name), name, values)
    return {
        "brokers": brokers,
        "topics": topics.filter(topics["queued_for_deletion"]),
        "configs": configs.filter(pc.is_in(configs["key"], pa.array(DECISIVE_SETTINGS))),
    }


def known(
    snapshot: Mapping[str, Any],
    brokers: Sequence[Mapping[str, Any]],
    queued: Sequence[Mapping[str, Any]],
    settings: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    """As the columnar form takes it, from rows of the canonical tables."""
    return {
        "snapshot": snapshot,
        "brokers": brokers,
        "queued_topics": [row["topic"] for row in queued],
        "configs": settings,
    }
