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
from collections.abc import Iterable
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

# Nothing but the script is to move leaders or ISRs: no rebalancing, and no follower that a loaded
# machine makes slow falls out of an ISR.
_BROKER_SETTINGS: Final = {
    "zookeeper.session.timeout.ms": _SESSION_MS,
    "zookeeper.connection.timeout.ms": 120_000,
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
    if subprocess.run(command, check=False).returncode:
        raise ClusterError("Kafka's jars cannot be fetched; Maven says why above")
    JARS.touch()


class Cluster:
    """A ZooKeeper, some brokers and an administrator, all below one directory."""

    def __init__(self, home: Path, brokers: Iterable[int]) -> None:
        self.home = home
        self.brokers = tuple(brokers)
        ports = _free_ports(len(self.brokers) + 1)
        self._zookeeper_port = ports[0]
        self._ports = dict(zip(self.brokers, ports[1:], strict=True))
        self._running: dict[int, _Process] = {}
        self._others: list[_Process] = []

    @property
    def zookeeper_data(self) -> Path:
        """Where ZooKeeper keeps snapshots and transaction logs."""
        return self.home / "zookeeper" / "version-2"

    def __enter__(self) -> Self:
        with ExitStack() as on_failure:
            on_failure.callback(self._stop_all)
            self._start_zookeeper()
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
        settings = self.home / f"broker-{broker}.properties"
        listener = f"PLAINTEXT://{LOOPBACK}:{self._ports[broker]}"
        own = {
            "broker.id": broker,
            "listeners": listener,
            "advertised.listeners": listener,
            "log.dirs": self.home / f"broker-{broker}",
            "zookeeper.connect": f"{LOOPBACK}:{self._zookeeper_port}",
        }
        settings.write_text(_properties(own | _BROKER_SETTINGS), encoding="utf-8")
        name = f"broker-{broker}"
        self._running[broker] = _Process(self.home, name, (_KAFKA, str(settings)))

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

    def _start_zookeeper(self) -> None:
        settings = self.home / "zookeeper.properties"
        own = {
            "dataDir": self.home / "zookeeper",
            "clientPort": self._zookeeper_port,
            "clientPortAddress": LOOPBACK,
            "admin.enableServer": "false",
            "tickTime": 2_000,
            "maxClientCnxns": 0,
        }
        settings.write_text(_properties(own), encoding="utf-8")
        self._others.append(_Process(self.home, "zookeeper", (_ZOOKEEPER, str(settings))))

    def _start_admin(self) -> None:
        self._admin = _Process(self.home, "admin", (str(HERE / "Admin.java"),), piped=True)
        self._others.append(self._admin)

    def ask(self, kind: str, **fields: Any) -> None:  # noqa: ANN401 - whatever JSON can say
        """Have an administrator send a request and wait for the answer."""
        brokers = ",".join(f"{LOOPBACK}:{self._ports[broker]}" for broker in self.running)
        answer = self._admin.ask({"kind": kind, "brokers": brokers, **fields})
        if answer["error"] is not None:
            raise ClusterError(f"Kafka refused {kind} {json.dumps(fields)}: {answer['error']}")


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
