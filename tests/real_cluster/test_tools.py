"""What the tests write by themselves, read by ZooKeeper's and Kafka's own tools.

What the tools print is read back: it has to say what the files say.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from random import Random
from typing import Any

import pytest

import kraft_log_writer as kraft
import zookeeper_writer as zookeeper
from clusters import random_cluster
from real_cluster.cluster import JARS, fetch_jars
from understudy.sources import kraft_directory, text_forms
from understudy.sources.content import Content
from understudy.sources.zookeeper import forms, history

pytestmark = pytest.mark.slow

TOPIC_ID = "AAAAAAAAAAAAAAAAAAAACg"
DIRECTORIES = ["AAAAAAAAAAAAAAAAAAAAyA", "AAAAAAAAAAAAAAAAAAAAyQ", "AAAAAAAAAAAAAAAAAAAAyg"]
LOST_ONE = "AAAAAAAAAAAAAAAAAAAAyw"


def printed(*command: str) -> bytes:
    fetch_jars()
    done = subprocess.run(
        ["java", "-cp", f"{JARS}/*", *command], capture_output=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


# --- ZooKeeper ---------------------------------------------------------------------------------


def cluster_in_trouble() -> dict[str, Any]:
    """A reassignment in flight, a topic being deleted, racks, and partitions without a leader."""
    state = {"leader_epoch": 3, "partition_epoch": 9, "controller_epoch": 4}
    found = random_cluster(Random(5))
    found["brokers"] = [
        {"id": 1, "epoch": 77, "rack": "a"},
        {"id": 2, "epoch": 78, "rack": "b"},
        {"id": 4, "epoch": 79},
    ]
    found["topics"] += [
        {
            "name": "moving.topic_x",
            "partitions": [
                {
                    "partition": 0,
                    "replicas": [4, 2, 1],
                    "adding": [4],
                    "removing": [1],
                    "state": {"leader": 2, "isr": [2, 1], **state},
                },
                {"partition": 1, "replicas": [3], "state": {"leader": -1, "isr": [3], **state}},
                {"partition": 2, "replicas": [1]},
            ],
        },
        {"name": "going", "queued_for_deletion": True, "partitions": []},
    ]
    return found


@pytest.mark.parametrize("pack", ["plain", "gz", "snappy"])
def test_zookeeper_reads_the_snapshots_of_the_writer(tmp_path: Path, pack: str) -> None:
    znodes = zookeeper.kafka_znodes(cluster_in_trouble())
    plain = zookeeper.snapshot(znodes, digest=(0x64, zookeeper.digest_of(znodes)))
    name, data = {
        "plain": ("snapshot.64", plain),
        "gz": ("snapshot.64.gz", zookeeper.gz(plain)),
        "snappy": ("snapshot.64.snappy", zookeeper.snappy(plain)),
    }[pack]
    (tmp_path / name).write_bytes(data)
    text = printed("org.apache.zookeeper.server.SnapshotFormatter", "-d", str(tmp_path / name))
    asked = history.asked(cluster="c", release="3.9")
    (ours,) = forms.parse(data, name, forms.SNAPSHOT, asked)
    (theirs,) = forms.parse(text, "text", forms.DUMP, asked)
    assert ours.content is not None
    assert theirs.content is not None
    assert any(
        row[:5] == ("moving.topic_x", 0, [4, 2, 1], [4], [1]) for row in ours.content.partitions
    )
    for table in ("brokers", "topics", "partitions", "configs"):
        assert getattr(theirs.content, table) == getattr(ours.content, table)


# --- KRaft -------------------------------------------------------------------------------------


def broker(number: int) -> tuple[bytes | None, bytes | None]:
    end_point = {"name": "PLAINTEXT", "host": "h", "port": 9092, "securityProtocol": 0}
    feature = {"name": "metadata.version", "minSupportedVersion": 7, "maxSupportedVersion": 21}
    return kraft.record(
        "REGISTER_BROKER_RECORD",
        3,
        brokerId=number,
        isMigratingZkBroker=False,
        incarnationId=TOPIC_ID,
        brokerEpoch=10 + number,
        endPoints=[end_point],
        features=[feature],
        rack="a" if number > 1 else None,
        fenced=False,
        inControlledShutdown=False,
        logDirs=[DIRECTORIES[number - 1], LOST_ONE],
    )


def partition(number: int, **more: kraft.Value) -> tuple[bytes | None, bytes | None]:
    data: dict[str, kraft.Value] = {
        "partitionId": number,
        "topicId": TOPIC_ID,
        "replicas": [1, 2, 3],
        "isr": [2, 1],
        "removingReplicas": [],
        "addingReplicas": [],
        "leader": 1,
        "leaderEpoch": 3,
        "partitionEpoch": 7,
        "directories": DIRECTORIES,
    }
    return kraft.record("PARTITION_RECORD", 2, **{**data, **more})


def written_log() -> bytes:
    """A reassignment, a failed directory, an ELR of several, a transaction that is taken back."""
    change: dict[str, kraft.Value] = {"topicId": TOPIC_ID, "partitionId": 0}
    return kraft.log(
        [kraft.control("LEADER_CHANGE", leaderId=9)],
        [kraft.record("FEATURE_LEVEL_RECORD", name="metadata.version", featureLevel=21)],
        [broker(1), broker(2), broker(3)],
        [
            kraft.record("TOPIC_RECORD", name="orders", topicId=TOPIC_ID),
            partition(0, addingReplicas=[3], removingReplicas=[1]),
            partition(1, directories=[DIRECTORIES[0], LOST_ONE, DIRECTORIES[2]]),
            partition(2, isr=[3], leader=3, eligibleLeaderReplicas=[2, 1], lastKnownElr=[1]),
        ],
        [
            kraft.record("BEGIN_TRANSACTION_RECORD", name="x"),
            kraft.record("TOPIC_RECORD", name="never", topicId=DIRECTORIES[0]),
        ],
        [kraft.record("ABORT_TRANSACTION_RECORD", reason="y")],
        [kraft.record("PARTITION_CHANGE_RECORD", 2, isr=[2], leader=2, **change)],
        [
            kraft.record(
                "BROKER_REGISTRATION_CHANGE_RECORD",
                2,
                brokerId=2,
                brokerEpoch=12,
                logDirs=[DIRECTORIES[1]],
            )
        ],
    )


def only(found: list[Any]) -> Content:
    (parsed,) = found
    assert parsed.problems == ()
    content: Content = parsed.content
    return content


def test_kafka_reads_the_logs_of_the_writer(tmp_path: Path) -> None:
    name = "00000000000000000000.log"
    (tmp_path / name).write_bytes(written_log())
    asked = kraft_directory.asked(cluster="c")
    ours = only(list(kraft_directory.snapshots([(name, written_log())], asked)))
    dump = ("kafka.tools.DumpLogSegments", "--cluster-metadata-decoder", "--files")
    text = printed(*dump, str(tmp_path / name))
    theirs = only([found for _, found in text_forms.snapshots([("dump", text)], asked)])
    assert [row[5] for row in ours.partitions] == [[], [2], []]  # a directory failed
    assert ours.partitions[2][13:15] == ([2, 1], [1])
    assert [row[0] for row in ours.topics] == ["orders"]
    for table in ("brokers", "topics", "partitions", "configs"):
        assert getattr(theirs, table) == getattr(ours, table)
    assert theirs.snapshot[:2] == ours.snapshot[:2]
