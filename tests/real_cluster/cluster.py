"""ZooKeeper and Kafka brokers from the published jars: plain processes on the loopback interface.

Whoever opens a :class:`Cluster` as a context leaves nothing running behind, however it ends.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final, Self

HERE: Final = Path(__file__).parent
JARS: Final = HERE.parents[1] / "build" / "real-cluster" / "jars"
RELEASE: Final = "3.9.1"
LOOPBACK: Final = "127.0.0.1"

_SESSION_MS: Final = 8_000  # long enough that a loaded machine does not end one by accident
_STOPPING_SECONDS: Final = 120
_TAIL_LINES: Final = 15
_JAVA_OPTIONS: Final = (
    "-Xmx256m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    "-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd'T'HH:mm:ss.SSS",
    "-Dorg.slf4j.simpleLogger.log.kafka.controller=debug",
    "-Dorg.slf4j.simpleLogger.log.state.change.logger=trace",
    "-Dzookeeper.preAllocSize=64",  # kB: otherwise every transaction log begins with 64 MB
)
_ZOOKEEPER: Final = "org.apache.zookeeper.server.ZooKeeperServerMain"
_KAFKA: Final = "kafka.Kafka"
_FORMAT: Final = "kafka.tools.StorageTool"
_PLAINTEXT: Final = "PLAINTEXT"
_CONTROLLER: Final = "CONTROLLER"

# Nothing but the script is to move leaders or ISRs: no rebalancing, and no follower that a loaded
# machine makes slow falls out of an ISR.
_BROKER_SETTINGS: Final = {
    "auto.leader.rebalance.enable": "false",
    "auto.create.topics.enable": "false",
    "replica.lag.time.max.ms": 300_000,
    "controlled.shutdown.max.retries": 3,
    "controlled.shutdown.retry.backoff.ms": 1_000,
    "log.cleaner.enable": "false",
    "log.index.size.max.bytes": 65_536,
    "num.network.threads": 2,
    "num.io.threads": 2,
}
_OF_ZOOKEEPER: Final = {
    "zookeeper.session.timeout.ms": _SESSION_MS,
    "zookeeper.connection.timeout.ms": 120_000,
}
_OF_KRAFT: Final = {
    "controller.listener.names": _CONTROLLER,
    "broker.session.timeout.ms": _SESSION_MS,
    "offsets.topic.replication.factor": 1,
}


class ClusterError(Exception):
    """The cluster cannot be started, or does not do what it was told."""


def fetch_jars() -> None:
    """Let Maven copy the jars to where the processes look for them, unless they are there."""
    pom = HERE / "pom.xml"
    if JARS.is_dir() and JARS.stat().st_mtime > pom.stat().st_mtime:
        return
    maven = shutil.which("mvn")
    if maven is None:
        raise ClusterError(
            "Apache Maven is needed to fetch Kafka: install it (Debian: apt install maven)"
        )
    command = [maven, "-q", "-B", "-Dstyle.color=never", "-f", str(pom), "package"]
    # What Maven says is no part of what the caller prints.
    if subprocess.run(command, stdout=sys.stderr.fileno(), check=False).returncode:
        raise ClusterError("Kafka's jars cannot be fetched; Maven says why above")
    JARS.touch()


class Cluster:
    """A ZooKeeper, some brokers and an administrator, all below one directory.

    Brokers have further *listeners* (named by their security protocol) and *settings*, if any.
    """

    def __init__(
        self,
        home: Path,
        brokers: Iterable[int],
        *,
        listeners: Iterable[str] = (),
        settings: Mapping[str, Any] | None = None,
        zookeeper_settings: Mapping[str, Any] | None = None,
    ) -> None:
        self.home = home
        self.brokers = tuple(brokers)
        self._listeners = (_PLAINTEXT, *listeners)
        self._settings = dict(settings or {})
        self._zookeeper_settings = dict(zookeeper_settings or {})
        each = [(broker, name) for broker in self.brokers for name in self._listeners]
        ports = _free_ports(len(each) + 1)
        self._shared_port = ports[0]
        self._ports = dict(zip(each, ports[1:], strict=True))
        self._running: dict[int, _Process] = {}
        self._others: list[_Process] = []

    def address(self, broker: int, listener: str = _PLAINTEXT) -> str:
        return f"{LOOPBACK}:{self._ports[broker, listener]}"

    @property
    def zookeeper(self) -> str:
        return f"{LOOPBACK}:{self._shared_port}"

    @property
    def zookeeper_data(self) -> Path:
        """Where ZooKeeper keeps snapshots and transaction logs."""
        return self.home / "zookeeper" / "version-2"

    def __enter__(self) -> Self:
        with ExitStack() as on_failure:
            on_failure.callback(self._stop_all)
            self._start_others()
            self._start_admin()
            for broker in self.brokers:
                self.start(broker)
            on_failure.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stop_all()

    def _stop_all(self) -> None:
        processes = (*self._running.values(), *self._others)
        for process in processes:
            process.kill()
        for process in processes:
            process.wait()
        self._running.clear()
        self._others.clear()

    # --- Brokers -----------------------------------------------------------------------------

    @property
    def running(self) -> list[int]:
        return sorted(self._running)

    def start(self, broker: int) -> None:
        listeners = ",".join(f"{name}://{self.address(broker, name)}" for name in self._listeners)
        own = {
            "broker.id": broker,
            "listeners": listeners,
            "advertised.listeners": listeners,
            "log.dirs": self.home / f"broker-{broker}",
        }
        name = f"broker-{broker}"
        settings = self.home / f"{name}.properties"
        whole = own | _BROKER_SETTINGS | self._of_mode(broker, listeners) | self._settings
        settings.write_text(_properties(whole), encoding="utf-8")
        self._prepare(broker, settings)
        self._running[broker] = _Process(self.home, name, (_KAFKA, str(settings)))

    def _of_mode(self, _broker: int, _listeners: str) -> dict[str, Any]:
        return {"zookeeper.connect": self.zookeeper} | _OF_ZOOKEEPER

    def _prepare(self, broker: int, settings: Path) -> None:
        """What has to be done before a broker can start."""

    def kill(self, broker: int) -> None:
        process = self._running[broker]
        process.kill()
        process.wait()
        del self._running[broker]

    def shut_down(self, broker: int) -> None:
        """Ask for a controlled shutdown and wait for its end."""
        process = self._running[broker]
        process.terminate()
        del self._running[broker]

    def check(self) -> None:
        """Raise if a process has ended by itself."""
        for process in (*self._running.values(), *self._others):
            process.check()

    # --- The others --------------------------------------------------------------------------

    def _start_others(self) -> None:
        settings = self.home / "zookeeper.properties"
        own = {
            "dataDir": self.home / "zookeeper",
            "clientPort": self._shared_port,
            "clientPortAddress": LOOPBACK,
            "admin.enableServer": "false",
            "tickTime": 2_000,
            "maxClientCnxns": 0,
        }
        settings.write_text(_properties(own | self._zookeeper_settings), encoding="utf-8")
        self._others.append(_Process(self.home, "zookeeper", (_ZOOKEEPER, str(settings))))

    def _start_admin(self) -> None:
        self._admin = _Process(self.home, "admin", (str(HERE / "Admin.java"),), piped=True)
        self._others.append(self._admin)

    def ask(self, kind: str, **fields: Any) -> None:  # noqa: ANN401 - whatever JSON can say
        """Have an administrator send a request and wait for the answer."""
        brokers = ",".join(self.address(broker) for broker in self.running)
        answer = self._admin.ask({"kind": kind, "brokers": brokers, **fields})
        if answer["error"] is not None:
            raise ClusterError(f"Kafka refused {kind} {json.dumps(fields)}: {answer['error']}")


class KraftCluster(Cluster):
    """Brokers without ZooKeeper; the first of them is the controller as well."""

    cluster_id: Final = "MkU3OEVBNTcwNTJENDM2Qk"

    def metadata_log(self, broker: int) -> Path:
        return self.home / f"broker-{broker}" / "__cluster_metadata-0"

    def _start_others(self) -> None:
        pass

    def _of_mode(self, broker: int, listeners: str) -> dict[str, Any]:
        controller = self.brokers[0]
        address = f"{LOOPBACK}:{self._shared_port}"
        protocols = [f"{name}:{name}" for name in self._listeners]
        own: dict[str, Any] = {
            "node.id": broker,
            "process.roles": "broker",
            "controller.quorum.voters": f"{controller}@{address}",
            "listener.security.protocol.map": f"{_CONTROLLER}:{_PLAINTEXT},{','.join(protocols)}",
        }
        if broker == controller:
            own |= {
                "process.roles": "broker,controller",
                "listeners": f"{listeners},{_CONTROLLER}://{address}",
            }
        return own | _OF_KRAFT

    def _prepare(self, broker: int, settings: Path) -> None:
        if not (self.home / f"broker-{broker}").exists():
            said = ("format", "-t", self.cluster_id, "-c", str(settings))
            _Process(self.home, f"format-{broker}", (_FORMAT, *said)).end()


class _Process:
    """One JVM, its standard error (and, if nobody talks to it, its output) in a file."""

    def __init__(
        self, home: Path, name: str, arguments: Iterable[str], *, piped: bool = False
    ) -> None:
        self._name = name
        self._log = home / f"{name}.log"
        java_home = os.environ.get("JAVA_HOME")
        java = str(Path(java_home) / "bin" / "java") if java_home else "java"
        command = [java, *_JAVA_OPTIONS, "-cp", f"{JARS}/*", *arguments]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                cwd=home,
                stdin=subprocess.PIPE if piped else subprocess.DEVNULL,
                stdout=subprocess.PIPE if piped else log,
                stderr=log,
                encoding="utf-8",
                start_new_session=True,  # Ctrl-C is for the script, which then stops them all
            )

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        questions, answers = _open(self._process.stdin), _open(self._process.stdout)
        questions.write(json.dumps(request) + "\n")
        questions.flush()
        line = answers.readline()
        if not line:
            raise ClusterError(
                f"{self._name} ended without an answer; its log ends:\n{self._tail()}"
            )
        answer: dict[str, Any] = json.loads(line)
        return answer

    def check(self) -> None:
        if self._process.poll() is not None:
            raise ClusterError(f"{self._name} has ended by itself; its log ends:\n{self._tail()}")

    def kill(self) -> None:
        self._process.kill()

    def wait(self) -> None:
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

    def end(self) -> None:
        """Wait until it is done with what it does."""
        if self._process.wait(_STOPPING_SECONDS):
            raise ClusterError(f"{self._name} failed; its log ends:\n{self._tail()}")

    def terminate(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(_STOPPING_SECONDS)
        except subprocess.TimeoutExpired as error:
            raise ClusterError(f"{self._name} does not end:\n{self._tail()}") from error

    def _tail(self) -> str:
        lines = self._log.read_text(encoding="utf-8", errors="replace").splitlines()
        return "\n".join(lines[-_TAIL_LINES:])


def _open(pipe: IO[str] | None) -> IO[str]:
    assert pipe is not None
    return pipe


def _properties(settings: dict[str, Any]) -> str:
    return "".join(f"{key}={value}\n" for key, value in settings.items())


def _free_ports(count: int) -> list[int]:
    with ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind((LOOPBACK, 0))
        return [int(each.getsockname()[1]) for each in sockets]
