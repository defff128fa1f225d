"""Times Apache Kafka's own controller over the very snapshot that a store of the bench holds.

    PYTHONPATH=tests python -m bench.pace --home out/bench --partitions 100000

Prints what Kafka 3.9's failover took, as JSON; needs Apache Maven, as ``make conformance`` does.
"""

from __future__ import annotations

import argparse
import itertools
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq

from bench.measure import store_path
from conformance import kafka_oracle, zk_family

Row = dict[str, Any]

RELEASE: Final = "3.9"
_STATE: Final = (
    "leader", "leader_epoch", "isr", "partition_epoch", "controller_epoch", "recovery",
)  # fmt: skip


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--partitions", type=int, required=True)
    arguments = parser.parse_args(argv)
    store = store_path(arguments.home, arguments.partitions)
    lines = store.with_name(f"{store.name}.jsonl")
    if not lines.exists():
        export(store, lines)
    oracle = zk_family.FAMILY.oracle
    try:
        kafka_oracle.build(oracle)
    except kafka_oracle.OracleError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    command = kafka_oracle.command(oracle, RELEASE, "--pace", str(lines))
    return subprocess.run(command, check=False).returncode


def export(store: Path, lines: Path) -> None:
    """Write a store of one snapshot as JSON lines: the document, then its topics."""
    unfinished = lines.with_suffix(".new")
    with unfinished.open("w", encoding="utf-8") as out:
        out.writelines(json.dumps(document) + "\n" for document in _documents(store))
    unfinished.rename(lines)


def _documents(store: Path) -> Iterator[Row]:
    (snapshot,) = _rows(store, "snapshots")
    settings: dict[tuple[str, str | None], dict[str, str]] = {}
    for row in _rows(store, "configs"):
        settings.setdefault((row["scope"], row["name"]), {})[row["key"]] = row["value"]
    yield {
        "cluster": snapshot["cluster"],
        "snapshot_id": snapshot["snapshot_id"],
        "metadata_version": snapshot["metadata_version"],
        "controller": {"id": snapshot["controller_id"], "epoch": snapshot["controller_epoch"]},
        "configs": settings.get(("cluster", None), {}),
        "brokers": [
            {
                "id": row["broker_id"],
                "epoch": row["broker_epoch"],
                "rack": row["rack"],
                "alive": row["alive"],
                "shutting_down": row["shutting_down"],
            }
            for row in _rows(store, "brokers")
        ],
    }
    topics = {row["topic"]: row for row in _rows(store, "topics")}
    # The store has the partitions of a topic side by side.
    for name, partitions in itertools.groupby(_rows(store, "partitions"), lambda r: r["topic"]):
        yield {
            "name": name,
            "id": topics[name]["topic_id"],
            "queued_for_deletion": topics[name]["queued_for_deletion"],
            "configs": settings.get(("topic", name), {}),
            "partitions": [_partition(row) for row in partitions],
        }


def _partition(row: Row) -> Row:
    return {
        "partition": row["partition"],
        "replicas": row["replicas"],
        "offline_dirs": row["offline_dirs"],
        "state": {name: row[name] for name in _STATE} if row["has_state"] else None,
    }


def _rows(store: Path, table: str) -> Iterator[Row]:
    for file in sorted(store.glob(f"{table}/run=*/*.parquet")):
        for batch in pq.ParquetFile(file).iter_batches():
            yield from batch.to_pylist()


if __name__ == "__main__":
    sys.exit(main())
