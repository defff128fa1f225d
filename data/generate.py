r"""Makes the data the project ships and measures itself with; same arguments, same result.

    python data/generate.py sample --seed 7 --into data/sample
    python data/generate.py store --partitions 1000000 --brokers 200 --dead 5 --rf 3 --seed 7 \
        --into out/store
    python data/generate.py history --partitions 100000 --brokers 100 --snapshots 10 \
        --change 0.001 --into out/history

``sample`` needs nothing but Python's own library; the others need Spark and the package.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path


def main(argv: Sequence[str] | None = None) -> int:
    arguments = _parser().parse_args(argv)
    if arguments.kind == "sample":
        import shop_eu  # noqa: PLC0415 - each kind loads only what it needs

        shop_eu.write_sample(arguments.seed, arguments.into)
        return 0
    return _history(arguments) if arguments.kind == "history" else _store(arguments)


def _history(arguments: argparse.Namespace) -> int:
    import history  # noqa: PLC0415 - each kind loads only what it needs

    from understudy.errors import UnderstudyError  # noqa: PLC0415
    from understudy.session import session  # noqa: PLC0415

    names = ("partitions", "brokers", "rf", "seed", "snapshots", "change", "per_load", "first")
    sizes = {name: getattr(arguments, name) for name in names}
    try:
        with session("understudy synthetic history") as spark:
            loads = history.write_history(spark, str(arguments.into), **sizes)
    except UnderstudyError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    sys.stdout.write(f"{arguments.snapshots} snapshots in {loads} loads\n")
    return 0


def _store(arguments: argparse.Namespace) -> int:
    import synthetic  # noqa: PLC0415 - each kind loads only what it needs

    from understudy.errors import UnderstudyError  # noqa: PLC0415
    from understudy.session import session  # noqa: PLC0415

    sizes = {
        name: getattr(arguments, name)
        for name in (
            "partitions",
            "brokers",
            "dead",
            "rf",
            "seed",
            "snapshots",
            "topics",
            "deleting",
        )
    }
    try:
        with session("understudy synthetic store") as spark:
            counts = synthetic.write_store(spark, str(arguments.into), **sizes)
    except UnderstudyError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    sys.stdout.write("".join(f"{name}: {rows} rows\n" for name, rows in counts.items()))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    kinds = parser.add_subparsers(dest="kind", required=True)
    sample = kinds.add_parser("sample", help="the shipped sample, as JSON documents")
    store = kinds.add_parser("store", help="a snapshot store of any size")
    store.add_argument("--partitions", type=int, required=True)
    store.add_argument("--brokers", type=int, required=True)
    store.add_argument("--dead", type=int, default=0, help="brokers that are not alive")
    store.add_argument("--rf", type=int, default=3, help="replicas of each partition")
    store.add_argument("--snapshots", type=int, default=1)
    store.add_argument("--topics", type=int, help="default: one for every fifty partitions")
    store.add_argument("--deleting", type=int, default=0, help="topics queued for deletion")
    history = kinds.add_parser("history", help="a store of many snapshots that differ little")
    history.add_argument("--partitions", type=int, required=True)
    history.add_argument("--brokers", type=int, required=True)
    history.add_argument("--rf", type=int, default=3, help="replicas of each partition")
    history.add_argument("--snapshots", type=int, required=True)
    history.add_argument("--first", type=int, default=1, help="number of the first of them")
    history.add_argument("--change", type=float, default=0.001, help="share that changes in each")
    history.add_argument("--per-load", type=int, default=1, help="snapshots in one load")
    for kind in (sample, store, history):
        kind.add_argument("--seed", type=int, default=7)
        kind.add_argument("--into", type=Path, required=True)
    return parser


if __name__ == "__main__":
    sys.exit(main())
