"""How fast brokers are fenced in KRaft: replays of one and of all, beside Kafka's own managers.

    PYTHONPATH=tests python -m bench.kraft_pace --home out/bench --partitions 1000000 --rounds 3

Both take the same snapshot, a synthetic store read as a KRaft cluster. A replay reads it, decides
and publishes every table; Kafka's ``ReplicationControlManager`` decides in memory, its snapshot
loaded before, and writes nothing. Prints one JSON object; needs Apache Maven.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession

from bench import measure
from conformance import kafka_oracle
from conformance.kraft_family import FAMILY

RELEASE: Final = "4.3"
WARM_UPS: Final = 2


def main(argv: Sequence[str] | None = None) -> int:
    arguments = _parser().parse_args(argv)
    kafka_oracle.build(FAMILY.oracle)
    store = measure.store_path(arguments.home, arguments.partitions)
    scratch = arguments.home / "scratch-kraft"
    shutil.rmtree(scratch, ignore_errors=True)
    try:
        with measure._session() as spark:  # noqa: SLF001 - the session of every measurement
            brokers = _hand_over(spark, str(store), scratch / "snapshot")
            one, every = brokers[:1], brokers
            ours = {
                name: _best(spark, str(store), scratch, fenced, arguments.rounds)
                for name, fenced in (("one", one), ("every", every))
            }
        told = {"ours": ours, "kafka": _kafka(scratch / "snapshot", one[0]), "fences": len(every)}
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    sys.stdout.write(json.dumps(told) + "\n")
    return 0


def _kafka(snapshot: Path, broker: int) -> dict[str, Any]:
    command = kafka_oracle.command(FAMILY.oracle, RELEASE, "--pace", str(snapshot), str(broker))
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


# --- The snapshot, for Kafka ---------------------------------------------------------------------


def _hand_over(spark: SparkSession, store: str, target: Path) -> list[int]:
    """Write the snapshot as the oracle reads it; the brokers that can be fenced."""
    from understudy import sources  # noqa: PLC0415 - loaded by those who need it

    snapshots = sources.read(spark, [store])
    try:
        known = snapshots.with_defaults()
        _write(
            known.brokers.orderBy("broker_id"),
            target / "brokers",
            *("broker_id", "broker_epoch", "fenced", "shutting_down"),
        )
        # One that never had a leader has a record in KRaft, too.
        _write(
            known.partitions,
            target / "partitions",
            *("topic", "partition", "array_join(replicas, ',')"),
            "coalesce(array_join(isr, ','), '')",
            "coalesce(leader, -1)",
            *("coalesce(leader_epoch, 0)", "coalesce(partition_epoch, 0)"),
        )
        _write(
            known.configs.where("scope = 'topic'"), target / "configs", *("name", "key", "value")
        )
        rows = known.brokers.where("NOT fenced").select("broker_id").collect()
    finally:
        snapshots.close()
    return sorted(row.broker_id for row in rows)


def _write(table: DataFrame, target: Path, *columns: str) -> None:
    line = f"concat_ws('\\t', {', '.join(columns)}) AS value"
    table.selectExpr(line).write.text(str(target))


# --- Replays -------------------------------------------------------------------------------------


def _best(
    spark: SparkSession, store: str, scratch: Path, brokers: Sequence[int], rounds: int
) -> dict[str, float]:
    """The best of some rounds, each broker fenced in a scenario of its own."""
    seconds = []
    records = 0
    for turn in range(WARM_UPS + rounds):
        out = scratch / "replayed"
        start = time.perf_counter()
        records = _fenced(spark, store, str(out), brokers)
        taken = time.perf_counter() - start
        shutil.rmtree(out)
        measure._say(f"{len(brokers)} fences, turn {turn}: {taken:.2f} s")  # noqa: SLF001
        if turn >= WARM_UPS:
            seconds.append(taken)
    return {"seconds": min(seconds), "records": records}


def _fenced(spark: SparkSession, store: str, out: str, brokers: Sequence[int]) -> int:
    """Replay, publish every table; how many records the controller would write."""
    from understudy import publish, sources  # noqa: PLC0415
    from understudy import replay as replaying  # noqa: PLC0415
    from understudy.scenarios import Scenario  # noqa: PLC0415

    asked = [
        Scenario(f"fence:{b}", None, None, (json.dumps({"brokers": [b], "type": "fence"}),))
        for b in brokers
    ]
    snapshots = sources.read(spark, [store])
    try:
        replay = replaying.replay(
            snapshots, asked, profile="kraft", release=RELEASE, changed_only=True
        )
        try:
            run = publish.Run.start(
                "replay", input_digest=snapshots.input_digest, config_digest=publish.digest({})
            )
            counts = publish.publish(spark, out, run, replay.tables, verdict="none")
        finally:
            replay.close()
    finally:
        snapshots.close()
    return counts["metadata_writes"]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--partitions", type=int, required=True)
    parser.add_argument("--rounds", type=int, default=3)
    return parser


if __name__ == "__main__":
    sys.exit(main())
