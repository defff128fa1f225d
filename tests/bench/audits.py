"""What an audit of a history costs: per snapshot, and for one more snapshot, in one session.

    python -m bench.audits --home out/bench --partitions 2000 --snapshots 10,100 --result FILE

Told as JSON: seconds of an audit of so many snapshots from nothing, and of the next one after it.
"""

from __future__ import annotations

import argparse
import importlib
import json
import shutil
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from pyspark.sql import SparkSession

from understudy import auditing
from understudy.session import session

ROOT: Final = Path(__file__).parents[2]
BROKERS: Final = 100
REPLICATION: Final = 3
CHANGE: Final = 0.001
SEED: Final = 7
PER_LOAD: Final = 10  # snapshots
WARM_UPS: Final = (3, 3, 3)  # snapshots


def main(argv: Sequence[str] | None = None) -> int:
    arguments = _parser().parse_args(argv)
    most = max(arguments.snapshots) + 1
    store = arguments.home / f"history-{arguments.partitions}-{BROKERS}-brokers-{most}-snapshots"
    with session("understudy bench") as spark:
        if not (store / "made").exists():
            _make(spark, store, arguments.partitions, most)
        told = _measured(spark, store, arguments.home / "scratch-audits", arguments.snapshots)
    arguments.result.write_text(json.dumps(told), encoding="utf-8")
    return 0


def _make(spark: SparkSession, store: Path, partitions: int, snapshots: int) -> None:
    shutil.rmtree(store, ignore_errors=True)
    sys.path.insert(0, str(ROOT / "data"))
    importlib.import_module("history").write_history(
        spark,
        str(store),
        partitions=partitions,
        brokers=BROKERS,
        rf=REPLICATION,
        seed=SEED,
        snapshots=snapshots,
        change=CHANGE,
        per_load=PER_LOAD,
    )
    (store / "made").touch()


def _measured(
    spark: SparkSession, store: Path, scratch: Path, sizes: Sequence[int]
) -> list[dict[str, Any]]:
    given = auditing.look(spark, [str(store)])
    taken_at = sorted(seen.taken_at or 0 for seen in given.stored)

    def audit(out: Path, snapshots: int) -> tuple[float, auditing.Done]:
        until = taken_at[snapshots - 1] + 1
        asked = auditing.Asked(until=until)
        start = time.perf_counter()
        done = auditing.run(spark, given, str(out), asked, now=datetime.now(UTC))
        return time.perf_counter() - start, done

    told = []
    try:
        for snapshots in (*WARM_UPS, *sizes):
            shutil.rmtree(scratch, ignore_errors=True)
            whole, done = audit(scratch / "out", snapshots)
            more, next_one = audit(scratch / "out", snapshots + 1)
            if (done.judged, next_one.judged) != (snapshots, 1):
                raise AssertionError(f"judged {done.judged}, then {next_one.judged}")
            findings = done.row_counts["findings"]
            _say(
                f"{snapshots} snapshots: {whole:.2f} s, one more {more:.2f} s, {findings} findings"
            )
            told.append({"snapshots": snapshots, "whole": whole, "more": more, **done.row_counts})
    finally:
        given.close()
        shutil.rmtree(scratch, ignore_errors=True)
    return told[len(WARM_UPS) :]


def _say(text: str) -> None:
    sys.stderr.write(f"bench: {text}\n")
    sys.stderr.flush()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--partitions", type=int, required=True)
    parser.add_argument(
        "--snapshots", type=lambda text: [int(n) for n in text.split(",")], required=True
    )
    parser.add_argument("--result", type=Path, required=True)
    return parser


if __name__ == "__main__":
    sys.exit(main())
