"""Clusters that run, captured through their brokers and through ZooKeeper.

What is true is read from the files of the same clusters: ZooKeeper's data directory, and the
metadata log.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from kazoo.client import KazooClient
from kazoo.security import make_digest_acl

from real_cluster.cluster import LOOPBACK, Cluster, KraftCluster, fetch_jars
from understudy.errors import BadInputError
from understudy.sources import kraft_directory
from understudy.sources.content import (
    BROKER_COLUMNS,
    PARTITION_COLUMNS,
    SNAPSHOT_COLUMNS,
    TOPIC_COLUMNS,
    Content,
)
from understudy.sources.live import capturing
from understudy.sources.zookeeper import history

pytestmark = pytest.mark.slow

SECRET = "not-for-the-eyes-of-others"  # noqa: S105 - of clusters that live for a minute
PATIENCE_SECONDS = 90
TOPICS: list[dict[str, Any]] = [
    {"topic": "orders", "assignment": [[1, 2], [2, 1]], "configs": {"min.insync.replicas": "2"}},
    {"topic": "lonely.topic_1", "assignment": [[2], [1]], "configs": {}},
]
LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SASL_LISTENERS = ("SASL_PLAINTEXT", "SASL_SSL")

Row = dict[str, Any]


def certificates(home: Path) -> dict[str, Path]:
    """An authority, and for the loopback interface a key with its certificate, in PEM."""
    authority, key, request, signed, names = (
        home / name for name in ("ca.pem", "key.pem", "request.pem", "signed.pem", "names")
    )
    names.write_text(f"subjectAltName=IP:{LOOPBACK}\n", encoding="ascii")
    new = ("openssl", "req", "-newkey", "rsa:2048", "-nodes", "-keyout")
    for command in (
        (*new, home / "ca-key.pem", "-x509", "-subj", "/CN=authority", "-out", authority),
        (*new, key, "-subj", "/CN=broker", "-out", request),
        (
            *("openssl", "x509", "-req", "-in", request, "-CA", authority),
            *("-CAkey", home / "ca-key.pem", "-CAcreateserial", "-days", "3"),
            *("-extfile", names, "-out", signed),
        ),
    ):
        subprocess.run(command, check=True, capture_output=True)
    store = home / "store.pem"
    store.write_bytes(key.read_bytes() + signed.read_bytes())
    return {"authority": authority, "store": store}


def broker_settings(pem: dict[str, Path]) -> Row:
    login = f'{LOGIN} username="broker" password="{SECRET}" user_alice="{SECRET}";'
    return {
        "sasl.enabled.mechanisms": "PLAIN",
        **{
            f"listener.name.{each.lower()}.plain.sasl.jaas.config": login for each in SASL_LISTENERS
        },
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": pem["store"],
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": pem["authority"],
        "unclean.leader.election.enable": "true",
    }


def client_settings(home: Path, password: str, **others: object) -> str:
    said = {
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": f'{LOGIN} username="alice" password="{password}";',
        **others,
    }
    path = home / "client.properties"
    path.write_text("".join(f"{key}={value}\n" for key, value in said.items()), encoding="utf-8")
    return str(path)


def captured(seconds: float = 60, **said: str | None) -> Content:
    found = capturing.capture(
        **{"bootstrap": None, "zookeeper": None, "command_config": None, **said},
        naming=("here", None, None),
        form="capture",
        now=datetime.now(UTC),
        seconds=seconds,
    )
    assert found.content is not None
    return found.content


def until(found: Callable[[], Content | None]) -> Content:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (content := found()) is None:
        assert time.monotonic() < deadline
        time.sleep(0.5)
    return content


def table(content: Content, name: str, *without: str) -> list[Row]:
    columns = {
        "brokers": BROKER_COLUMNS,
        "topics": TOPIC_COLUMNS,
        "partitions": PARTITION_COLUMNS,
    }[name]
    return [
        {key: value for key, value in zip(columns, row, strict=True) if key not in without}
        for row in getattr(content, name)
    ]


def about(content: Content) -> Row:
    return dict(zip(SNAPSHOT_COLUMNS, content.snapshot, strict=True))


def in_store(home: Path) -> bytes:
    return b"".join(path.read_bytes() for path in home.rglob("*") if path.is_file())


def degraded(cluster: Cluster) -> None:
    """Topics with one replica and with two, and a broker that dies."""
    cluster.ask("create_topics", topics=TOPICS)
    cluster.kill(2)


# --- ZooKeeper ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pem(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return certificates(tmp_path_factory.mktemp("pem"))


@pytest.fixture(scope="module")
def secure_port() -> int:
    with closing(socket.socket()) as once:
        once.bind((LOOPBACK, 0))
        return int(once.getsockname()[1])


def zookeeper_settings(pem: dict[str, Path], port: int) -> Row:
    return {
        "serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
        "secureClientPort": port,
        "secureClientPortAddress": LOOPBACK,
        "ssl.keyStore.type": "PEM",
        "ssl.keyStore.location": pem["store"],
        "ssl.trustStore.type": "PEM",
        "ssl.trustStore.location": pem["authority"],
        "ssl.clientAuth": "none",
    }


@pytest.fixture(scope="module")
def zookeepers(
    tmp_path_factory: pytest.TempPathFactory, pem: dict[str, Path], secure_port: int
) -> Iterator[tuple[Cluster, Content]]:
    fetch_jars()
    home = tmp_path_factory.mktemp("zookeepers")
    with Cluster(
        home,
        [1, 2],
        listeners=SASL_LISTENERS,
        settings=broker_settings(pem),
        zookeeper_settings=zookeeper_settings(pem, secure_port),
    ) as cluster:
        degraded(cluster)
        truth = until(lambda: settled(zookeeper_truth(cluster)))
        yield cluster, truth


def zookeeper_truth(cluster: Cluster) -> Content | None:
    names = {path.name: str(path) for path in cluster.zookeeper_data.iterdir()}
    asked = history.asked(cluster="here", release="3.9")
    plan = history.plan(names, asked, {})
    files = ((name, Path(names[name]).read_bytes()) for name in plan.names)
    found = list(history.read(files, asked, plan.settled_by))[-1]
    return found.content


def settled(content: Content | None) -> Content | None:
    """The state in which the surviving broker leads what it can."""
    if content is None:
        return None
    leaders = {
        (row["topic"], row["partition"]): row["leader"] for row in table(content, "partitions")
    }
    alive = [row["broker_id"] for row in table(content, "brokers") if row["alive"]]
    done = alive == [1] and leaders == {
        ("orders", 0): 1,
        ("orders", 1): 1,
        ("lonely.topic_1", 0): -1,
        ("lonely.topic_1", 1): 1,
    }
    return content if done else None


def test_a_capture_of_zookeeper_is_its_data_directory(
    zookeepers: tuple[Cluster, Content],
) -> None:
    cluster, truth = zookeepers
    found = captured(zookeeper=cluster.zookeeper)
    assert about(found)["complete"] is True
    assert about(found)["controller_id"] == about(truth)["controller_id"]
    assert about(found)["controller_epoch"] == about(truth)["controller_epoch"]
    for name in ("brokers", "topics", "partitions"):
        assert table(found, name) == table(truth, name)
    assert found.configs == truth.configs


def test_a_capture_of_brokers_knows_what_zookeeper_knows_but_for_its_counters(
    zookeepers: tuple[Cluster, Content],
) -> None:
    cluster, truth = zookeepers
    found = captured(bootstrap=cluster.address(1))
    said = about(found)
    assert (said["mode"], said["release"], said["metadata_version"]) == ("zk", "3.9", "3.9-IV0")
    assert said["controller_id"] == about(truth)["controller_id"]
    assert said["complete"] is True
    unknown = ("partition_epoch", "controller_epoch", "recovery", "offline_dirs")
    assert table(found, "partitions", *unknown) == table(truth, "partitions", *unknown)
    assert [row["offline_dirs"] for row in table(found, "partitions")] == [[]] * 4
    assert table(found, "topics", "queued_for_deletion") == table(
        truth, "topics", "queued_for_deletion"
    )
    assert [row["broker_id"] for row in table(found, "brokers")] == [1]
    assert ("static", None, "unclean.leader.election.enable", "true") in found.configs
    assert ("topic", "orders", "min.insync.replicas", "2") in found.configs


@pytest.mark.parametrize("protocol", SASL_LISTENERS)
def test_a_login_works_and_leaves_no_trace(
    zookeepers: tuple[Cluster, Content],
    pem: dict[str, Path],
    tmp_path: Path,
    protocol: str,
) -> None:
    cluster, truth = zookeepers
    trust = {"ssl.truststore.type": "PEM", "ssl.truststore.location": pem["authority"]}
    config = client_settings(
        tmp_path, SECRET, **{"security.protocol": protocol}, **(trust if "SSL" in protocol else {})
    )
    command = [sys.executable, "-m", "understudy", "capture", "--json", "--verbose"]
    command += ["--bootstrap", cluster.address(1, protocol), "--command-config", config]
    done = subprocess.run(
        [*command, "--cluster", "here", "--into", str(tmp_path / "store")],
        capture_output=True,
        check=False,
        env={**os.environ, "UNDERSTUDY_DEBUG": "1"},
    )
    assert done.returncode == 0, done.stderr.decode()
    assert len(table(truth, "partitions")) == 4
    assert b'"partitions": 4' in done.stdout
    for told in (done.stdout, done.stderr, in_store(tmp_path / "store")):
        assert SECRET.encode() not in told


def test_a_wrong_password_is_said_at_once_and_not_repeated(
    zookeepers: tuple[Cluster, Content], tmp_path: Path
) -> None:
    cluster, _ = zookeepers
    config = client_settings(tmp_path, "wrong-word", **{"security.protocol": "SASL_PLAINTEXT"})
    begun = time.monotonic()
    told = refusal("--bootstrap", cluster.address(1, "SASL_PLAINTEXT"), config)
    assert re.search("authentication failed|closed at once: a wrong login", told)
    assert "wrong-word" not in told
    assert time.monotonic() - begun < 50


def test_a_certificate_nobody_vouches_for_is_refused(
    zookeepers: tuple[Cluster, Content], tmp_path: Path
) -> None:
    cluster, _ = zookeepers
    config = client_settings(tmp_path, SECRET, **{"security.protocol": "SASL_SSL"})
    told = refusal("--bootstrap", cluster.address(1, "SASL_SSL"), config)
    assert "the certificate is not trusted" in told
    assert SECRET not in told


def refusal(option: str, address: str, config: str) -> str:
    """What the command says: in a process of its own, as a client leaves sockets behind."""
    command = [sys.executable, "-m", "understudy", "capture", option, address]
    done = subprocess.run(
        [*command, "--command-config", config, "--into", "nowhere"],
        capture_output=True,
        check=False,
        text=True,
        timeout=PATIENCE_SECONDS,
    )
    assert done.returncode == 65
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    return done.stderr


def test_znodes_for_some_eyes_only_need_their_digest(
    zookeepers: tuple[Cluster, Content], tmp_path: Path
) -> None:
    cluster, truth = zookeepers
    client = KazooClient(cluster.zookeeper)
    client.start()
    open_to_all, _ = client.get_acls("/controller_epoch")
    client.set_acls("/controller_epoch", [make_digest_acl("kafka", SECRET, all=True)])
    config = tmp_path / "zookeeper.properties"
    config.write_text(f"zookeeper.digest=kafka:{SECRET}\n", encoding="utf-8")
    try:
        with pytest.raises(BadInputError, match="NoAuthError"):
            captured(zookeeper=cluster.zookeeper)
        found = captured(zookeeper=cluster.zookeeper, command_config=str(config))
    finally:
        client.add_auth("digest", f"kafka:{SECRET}")
        client.set_acls("/controller_epoch", open_to_all)
        client.stop()
        client.close()
    assert table(found, "partitions") == table(truth, "partitions")


@contextmanager
def changing(cluster: Cluster, path: str) -> Iterator[None]:
    """Meanwhile a znode is written over and over, with what is in it."""
    client = KazooClient(cluster.zookeeper)
    client.start()
    client.ensure_path(path)
    data, _ = client.get(path)
    ended = Event()

    def write() -> None:
        while not ended.is_set():
            client.set(path, data)

    writer = Thread(target=write)
    writer.start()
    try:
        yield
    finally:
        ended.set()
        writer.join()
        client.stop()
        client.close()


def test_changes_elsewhere_do_not_blur_an_instant(zookeepers: tuple[Cluster, Content]) -> None:
    cluster, truth = zookeepers
    with changing(cluster, "/elsewhere"):
        found = captured(zookeeper=cluster.zookeeper)
    assert about(found)["complete"] is True
    assert table(found, "partitions") == table(truth, "partitions")


def test_a_cluster_that_never_rests_is_said_to_have_changed(
    zookeepers: tuple[Cluster, Content],
) -> None:
    cluster, truth = zookeepers
    with changing(cluster, "/brokers/topics/orders"):
        found = captured(zookeeper=cluster.zookeeper)
    assert about(found)["complete"] is False
    assert table(found, "partitions") == table(truth, "partitions")


def test_zookeeper_is_asked_through_tls(
    zookeepers: tuple[Cluster, Content],
    pem: dict[str, Path],
    secure_port: int,
    tmp_path: Path,
) -> None:
    _, truth = zookeepers
    address = f"{LOOPBACK}:{secure_port}"
    config = tmp_path / "zookeeper.properties"
    config.write_text("zookeeper.ssl.client.enable=true\n", encoding="utf-8")
    assert "the certificate is not trusted" in refusal("--zookeeper", address, str(config))
    with config.open("a", encoding="utf-8") as more:
        more.write(f"zookeeper.ssl.truststore.location={pem['authority']}\n")
        more.write("zookeeper.ssl.truststore.type=PEM\n")
    found = captured(zookeeper=address, command_config=str(config))
    assert table(found, "partitions") == table(truth, "partitions")


# --- KRaft -------------------------------------------------------------------------------------


def kraft_truth(cluster: KraftCluster) -> Content | None:
    log = cluster.metadata_log(1)
    asked = kraft_directory.asked(cluster="here")
    if not log.is_dir():
        return None
    names = kraft_directory.plan((path.name for path in log.iterdir()), asked)
    files = ((name, (log / name).read_bytes()) for name in names)
    found = list(kraft_directory.snapshots(files, asked))
    return found[-1].content if found else None


def registered(content: Content | None) -> Content | None:
    alive = [row["alive"] for row in table(content, "brokers")] if content else []
    return content if alive == [True, True] else None


def test_a_capture_of_kraft_is_its_metadata_log_but_for_epochs(
    tmp_path: Path, pem: dict[str, Path]
) -> None:
    fetch_jars()
    with KraftCluster(
        tmp_path, [1, 2], listeners=SASL_LISTENERS, settings=broker_settings(pem)
    ) as cluster:
        until(lambda: registered(kraft_truth(cluster)))
        degraded(cluster)
        until(lambda: settled(kraft_truth(cluster)))
        cluster.ask("reassign", partitions={"lonely.topic_1-1": [2]})
        truth = kraft_truth(cluster)
        found = captured(bootstrap=cluster.address(1))
    assert truth is not None
    said, true = about(found), about(truth)
    for key in ("mode", "release", "metadata_version", "elr_enabled", "complete"):
        assert said[key] == true[key]
    for key in ("controller_id", "controller_epoch"):
        assert said[key] == true[key]
    unknown = ("partition_epoch", "recovery", "directories")
    assert table(found, "partitions", *unknown) == table(truth, "partitions", *unknown)
    assert any(row["adding"] == [2] for row in table(found, "partitions"))
    assert table(found, "topics") == table(truth, "topics")
    unsaid = ("shutting_down", "broker_epoch", "endpoints", "log_dirs")
    # Until 4.0 brokers that are fenced are not told.
    registered_and_alive = [row for row in table(truth, "brokers", *unsaid) if row["alive"]]
    assert table(found, "brokers", *unsaid) == registered_and_alive
    assert [row for row in found.configs if row[0] != "static"] == truth.configs
