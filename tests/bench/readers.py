"""Reads large files of ZooKeeper and Kafka, and very many small ones.

    PYTHONPATH=tests python -m bench.readers make --home out/bench
    PYTHONPATH=tests python -m bench.readers read zk-snapshot FILE
    PYTHONPATH=tests python -m bench.readers many DIRECTORY

``read`` is one process from its start to Arrow batches, as an executor's task does it; ``bench.py``
holds it against Kafka's and ZooKeeper's own tools, from their start to the end of what they print.
"""

from __future__ import annotations

import argparse
import base64
import json
import struct
import sys
import time
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any, Final

import kraft_log_writer as kraft
import zookeeper_writer as zookeeper
from real_cluster.cluster import JARS, fetch_jars

PARTITIONS: Final = 200_000
OF_A_TOPIC: Final = 20
BROKERS: Final = 200
REPLICATION: Final = 3
MANY: Final = (1_000, 10_000)
SMALL_PARTITIONS: Final = 40
SMALL_BROKERS: Final = 12
SEED: Final = 7

SNAPSHOT: Final = "snapshot.64"
LOG: Final = "__cluster_metadata-0/00000000000000000000.log"


# --- Making them -------------------------------------------------------------------------------


def make(home: Path) -> dict[str, Any]:
    """The files, unless they are there: they are the same every time. Returns where they are."""
    snapshot, log = home / SNAPSHOT, home / LOG
    if not snapshot.exists():
        _write(snapshot, _snapshot(_document(PARTITIONS, BROKERS)))
    if not log.exists():
        _write(log, _log())
    many = {count: home / f"{count}-small-snapshots" for count in MANY}
    for count, directory in many.items():
        names = [f"snapshot.{0x100 + number:x}" for number in range(count)]
        if not (directory / names[-1]).exists():
            small = _snapshot(_document(SMALL_PARTITIONS, SMALL_BROKERS))
            for name in names:
                _write(directory / name, small)
    fetch_jars()
    return {
        "partitions": PARTITIONS,
        "snapshot": str(snapshot),
        "log": str(log),
        "many": {count: str(directory) for count, directory in many.items()},
        "jars": str(JARS),
    }


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".new")
    unfinished.write_bytes(content)
    unfinished.rename(path)


def _document(partitions: int, brokers: int) -> dict[str, Any]:
    random = Random(SEED)
    return {
        "cluster": "bench",
        "controller": {"id": 1, "epoch": 7},
        "brokers": [
            {"id": each, "epoch": 1, "rack": "abc"[each % 3]} for each in range(1, brokers + 1)
        ],
        "topics": [
            {
                "name": f"topic-{number:05d}",
                "id": _id(random),
                "partitions": [_partition(random, each, brokers) for each in range(OF_A_TOPIC)],
            }
            for number in range(partitions // OF_A_TOPIC)
        ],
    }


def _partition(random: Random, number: int, brokers: int) -> dict[str, Any]:
    replicas = random.sample(range(1, brokers + 1), REPLICATION)
    state = {
        "leader": replicas[0],
        "leader_epoch": random.randrange(50),
        "isr": replicas,
        "partition_epoch": random.randrange(99),
        "controller_epoch": 7,
    }
    return {"partition": number, "replicas": replicas, "state": state}


def _id(random: Random) -> str:
    return base64.urlsafe_b64encode(random.randbytes(16)).decode("ascii")[:22]


def _snapshot(document: dict[str, Any]) -> bytes:
    """As :func:`zookeeper_writer.snapshot`, joined once at the end."""
    znodes = zookeeper.with_parents(zookeeper.kafka_znodes(document))
    whole = b"".join(
        [
            struct.pack(">4siq", b"ZKSN", 2, -1),
            struct.pack(">iqi", 1, zookeeper.SESSION, 4000),
            struct.pack(">iq", 1, 1) + zookeeper.ROOT_ACL,
            *(
                zookeeper.string(path)
                + zookeeper.buffer(znode.data)
                + struct.pack(">q", 1)
                + znode.stat()
                for path, znode in znodes.items()
            ),
            zookeeper.string("/"),
        ]
    )
    return whole + struct.pack(">q", zlib.adler32(whole)) + zookeeper.string("/")


def _log() -> bytes:
    base = 0
    written = []
    for records in _batches():
        written.append(kraft.batch(base, records))
        base += len(records)
    return b"".join(written)


def _batches() -> Iterator[list[tuple[bytes | None, bytes | None]]]:
    random = Random(SEED)
    yield [kraft.control("LEADER_CHANGE", leaderId=1)]
    yield [kraft.record("FEATURE_LEVEL_RECORD", 0, name="metadata.version", featureLevel=21)]
    directories = {broker: _id(random) for broker in range(1, BROKERS + 1)}
    for broker, directory in directories.items():
        yield [
            kraft.record(
                "REGISTER_BROKER_RECORD",
                3,
                brokerId=broker,
                isMigratingZkBroker=False,
                incarnationId=_id(random),
                brokerEpoch=broker,
                endPoints=[],
                features=[],
                rack="abc"[broker % 3],
                fenced=False,
                inControlledShutdown=False,
                logDirs=[directory],
            )
        ]
    for number in range(PARTITIONS // OF_A_TOPIC):
        topic = _id(random)
        yield [
            kraft.record("TOPIC_RECORD", 0, name=f"topic-{number:05d}", topicId=topic),
            *(_partition_record(random, each, topic, directories) for each in range(OF_A_TOPIC)),
        ]


def _partition_record(
    random: Random, number: int, topic: str, directories: dict[int, str]
) -> tuple[bytes | None, bytes | None]:
    replicas = random.sample(range(1, BROKERS + 1), REPLICATION)
    return kraft.record(
        "PARTITION_RECORD",
        1,
        partitionId=number,
        topicId=topic,
        replicas=replicas,
        isr=replicas,
        removingReplicas=[],
        addingReplicas=[],
        leader=replicas[0],
        leaderEpoch=0,
        partitionEpoch=0,
        directories=[directories[each] for each in replicas],
    )


# --- Reading them ------------------------------------------------------------------------------


def read(form: str, path: Path) -> int:
    """The partitions one file gives, read as a task does it."""
    from understudy.sources import kraft_directory, rows  # noqa: PLC0415 - what is measured
    from understudy.sources.zookeeper import forms, history  # noqa: PLC0415

    data = path.read_bytes()
    if form == kraft_directory.FORM:
        asked = kraft_directory.asked(cluster="bench")
        found = kraft_directory.snapshots([(path.name, data)], asked)
    else:
        found = forms.parse(data, path.name, form, history.asked(cluster="bench"))
    batches = rows.batches([(str(path), "", found)])
    return sum(len(batch.column("partitions").flatten()) for batch in batches)


def read_many(directory: Path) -> dict[str, Any]:
    """Seconds to load every snapshot of a directory, and what the workers needed."""
    from understudy import sources  # noqa: PLC0415
    from understudy.session import session  # noqa: PLC0415
    from understudy.sources.forms import Wanted  # noqa: PLC0415

    wanted = Wanted(form="zk-snapshot", cluster="bench")
    with session("understudy bench") as spark:

        def load(path: Path) -> int:
            found = sources.load(spark, [str(path)], wanted)
            try:
                return found.snapshots.count()
            finally:
                found.close()

        load(next(directory.iterdir()))  # what compiles and starts is the same for any number
        start = time.perf_counter()
        snapshots = load(directory)
        seconds = time.perf_counter() - start
        return {"snapshots": snapshots, "seconds": seconds, "worker_mib": _worker_mib()}


def _worker_mib() -> float:
    """The most memory that any Python worker of this process ever held."""
    found = []
    for process in Path("/proc").iterdir():
        try:
            command = (process / "cmdline").read_bytes()
            if b"pyspark" in command and sys.prefix.encode() in command and b"daemon" in command:
                status = (process / "status").read_text(encoding="utf-8")
                line = next(row for row in status.splitlines() if row.startswith("VmHWM"))
                found.append(int(line.split()[1]) / 1024)
        except (OSError, StopIteration):
            continue  # it has ended meanwhile, or is no process
    return max(found, default=0.0)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    what = parser.add_subparsers(dest="what", required=True)
    what.add_parser("make").add_argument("--home", type=Path, required=True)
    one = what.add_parser("read")
    one.add_argument("form")
    one.add_argument("path", type=Path)
    what.add_parser("many").add_argument("directory", type=Path)
    arguments = parser.parse_args(argv)
    if arguments.what == "make":
        json.dump(make(arguments.home), sys.stdout)
    elif arguments.what == "read":
        if read(arguments.form, arguments.path) != PARTITIONS:
            return 1
    else:
        json.dump(read_many(arguments.directory), sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
