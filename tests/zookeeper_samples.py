"""The recorded ZooKeeper files of tests/data/zookeeper, and how tests read and compare them."""

from __future__ import annotations

import gzip
import json
import tarfile
from pathlib import Path
from typing import Any

from understudy.sources import document
from understudy.sources.content import Content, Parsed
from understudy.sources.zookeeper import history, txnlog
from understudy.sources.zookeeper.history import Asked
from understudy.sources.zookeeper.kafka import Naming

DATA = Path(__file__).parent / "data" / "zookeeper"
RUNS = {"zk-1.0": "1.0", "zk-2.8": "2.8", "zk-3.9": "3.9"}

Files = dict[str, bytes]


def unpacked(archive: Path) -> Files:
    with tarfile.open(archive) as packed:
        return {
            member.name: packed.extractfile(member).read()  # type: ignore[union-attr]
            for member in packed
            if member.isfile()
        }


def directory_of(run: str) -> Files:
    files = unpacked(DATA / run / "zookeeper-data.tar.gz")
    return {name.rpartition("/")[2]: data for name, data in files.items()}


def naming(release: str) -> Naming:
    return Naming(cluster="it", release=release)


def load(files: Files, wanted: Asked) -> list[Parsed]:
    """What the product reads of a data directory, without Spark."""
    starts = {
        name: int.from_bytes(data[txnlog.FIRST_TIME_AT :][:8], "big")
        for name, data in files.items()
        if txnlog.first_zxid_of(name) is not None
    }
    plan = history.plan(files, wanted, starts)
    assert plan.problem is None
    named = ((name, files[name]) for name in plan.names)
    return list(history.read(named, wanted, plan.settled_by))


def only(parsed: list[Parsed]) -> Content:
    (found,) = parsed
    assert found.problems == ()
    assert found.content is not None
    return found.content


def said(truth: dict[str, Any] | Content) -> dict[str, Any]:
    """What a snapshot says, but for what ZooKeeper cannot know and a document does not say.

    Those are offline log directories, brokers in controlled shutdown, endpoints, and the settings
    of brokers that are not there.
    """
    if isinstance(truth, dict):
        (parsed,) = document.parse(json.dumps(truth).encode())
        assert parsed.content is not None
        truth = parsed.content
    live = {str(broker[0]) for broker in truth.brokers}
    return {
        "snapshot": [truth.snapshot[place] for place in (1, 3, 4, 5, 6, 7)],
        "brokers": [(*row[:2], *row[3:6], row[7]) for row in truth.brokers],
        "topics": truth.topics,
        "partitions": [(*row[:5], *row[6:]) for row in truth.partitions],
        "configs": [row for row in truth.configs if row[0] != "broker" or row[1] in live],
    }


def recorded(run: str) -> list[tuple[int, int, dict[str, Any]]]:
    """The zxid, the time and the document of every recorded instant."""
    with gzip.open(DATA / run / "snapshots.jsonl.gz") as lines:
        documents = {doc["snapshot_id"]: doc for doc in map(json.loads, lines)}
    table = (DATA / run / "snapshots-zxid.tsv").read_text().splitlines()[1:]
    rows = [line.split("\t") for line in table]
    return [(int(zxid, 16), int(time), documents[name]) for name, zxid, time in rows]
