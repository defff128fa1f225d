"""Tables that later runs supersede: of an audit, what holds is what its newest ledger says.

Every audit writes a ledger, the table ``audited``: all snapshots of its clusters that are judged,
and for each the run in which its findings stand, and what led to it. The newest ledger that lists a
cluster holds for it, whole; so two audits at once do no harm, and none is ever half visible.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

if TYPE_CHECKING:
    import pyarrow as pa

LEDGER: Final = "audited"
FINDINGS: Final = "findings"
EXPOSURE: Final = "exposure"
HISTORY: Final = ("events", "changes", "divergences")
TABLES: Final = (LEDGER, FINDINGS, *HISTORY, EXPOSURE)

_KEY: Final = ("cluster", "snapshot_id")


def newest(ledgers: DataFrame) -> DataFrame:
    """Of each cluster the rows of the newest run that lists it."""
    last = ledgers.groupBy("cluster").agg(F.max("run_id").alias("run_id"))
    return ledgers.join(F.broadcast(last), on=["cluster", "run_id"], how="left_semi")


def newest_of(ledgers: pa.Table) -> pa.Table:
    """The same of rows at hand."""
    import pyarrow as pa  # noqa: PLC0415 - importing the package must not load it

    last = ledgers.group_by("cluster").aggregate([("run_id", "max")])
    newest = dict(zip(*(last[name].to_pylist() for name in ("cluster", "run_id_max")), strict=True))
    named = zip(*(ledgers[name].to_pylist() for name in ("cluster", "run_id")), strict=True)
    return ledgers.filter(pa.array([newest[cluster] == run for cluster, run in named], pa.bool_()))


def current(
    table: str, ledgers: DataFrame, read_runs: Callable[[Sequence[str]], DataFrame]
) -> DataFrame:
    """The rows of *table* that hold; *read_runs* reads those of some runs, ``run_id`` last."""
    holding = newest(ledgers)
    if table == LEDGER:
        return holding
    owner, key = ("run_id", ("cluster",)) if table == EXPOSURE else ("findings_run", _KEY)
    owners = holding.select(*key, F.col(owner).alias("run_id")).distinct()
    runs = sorted(row.run_id for row in owners.select("run_id").distinct().collect())
    rows = read_runs(runs)
    held = rows.join(F.broadcast(owners), on=[*key, "run_id"], how="left_semi")
    return held.select(*rows.columns)
