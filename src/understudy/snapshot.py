"""The canonical tables of a set of snapshots as one object."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from understudy import schemas
from understudy.names import SNAPSHOT_KEY


@dataclass(frozen=True)
class Snapshots:
    """What is known of some clusters at some instants, and what was refused on the way."""

    snapshots: DataFrame
    brokers: DataFrame
    topics: DataFrame
    partitions: DataFrame
    configs: DataFrame
    provenance: DataFrame
    quarantine: DataFrame
    input_digest: str
    """Of what was read: the bytes of documents, the visible runs of stores."""
    held: tuple[DataFrame, ...] = ()
    """Frames that stay in memory until :meth:`close`."""

    def tables(self) -> dict[str, DataFrame]:
        """The tables of a snapshot store by name; the quarantine is none of them."""
        return {name: getattr(self, name) for name in schemas.SNAPSHOT_TABLES}

    def only(self, snapshots: DataFrame) -> Snapshots:
        """The same, restricted to the keys of *snapshots*; the quarantine stays as it is."""
        keys = F.broadcast(snapshots.select(*SNAPSHOT_KEY))

        def chosen(table: DataFrame) -> DataFrame:
            return table.join(keys, list(SNAPSHOT_KEY), "left_semi").select(*table.columns)

        return replace(
            self,
            snapshots=chosen(self.snapshots),
            brokers=chosen(self.brokers),
            topics=chosen(self.topics),
            partitions=chosen(self.partitions),
            configs=chosen(self.configs),
            provenance=chosen(self.provenance),
        )

    def close(self) -> None:
        """Let go of what is held in memory; the tables are read again if still used."""
        for frame in self.held:
            frame.unpersist()
