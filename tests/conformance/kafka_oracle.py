"""Builds the oracle, Apache Kafka's own controller in a JVM, and asks it cases one by one."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final, Self

Document = dict[str, Any]

_MAIN: Final = "understudy.oracle.Oracle"
_MAVEN_MISSING: Final = (
    "Apache Maven is needed to build the oracle: install it (Debian: apt install maven)"
)


class OracleError(Exception):
    """The oracle cannot be built, or did not answer."""


def build(home: Path) -> None:
    """Compile all releases of a project where the sources are newer than what stands."""
    sources = [*home.glob("**/src/**/*.java"), *home.glob("pom.xml"), *home.glob("*/pom.xml")]
    newest = max(source.stat().st_mtime for source in sources)
    jars = list(home.glob("*/target/oracle-*.jar"))
    modules = list(home.glob("*/pom.xml"))
    if len(jars) == len(modules) and all(jar.stat().st_mtime > newest for jar in jars):
        return
    maven = shutil.which("mvn")
    if maven is None:
        raise OracleError(_MAVEN_MISSING)
    command = [maven, "-q", "-B", "-f", str(home / "pom.xml"), "clean", "package"]
    # What Maven says is no part of what the caller prints.
    if subprocess.run(command, stdout=sys.stderr.fileno(), check=False).returncode:
        raise OracleError("the oracle does not build; Maven says why above")


def command(home: Path, release: str, *arguments: str) -> list[str]:
    """How to run one release of a project."""
    java_home = os.environ.get("JAVA_HOME")
    java = str(Path(java_home) / "bin" / "java") if java_home else "java"
    target = home / f"kafka-{release}" / "target"
    return [java, "-cp", f"{target / 'classes'}:{target / 'jars'}/*", _MAIN, *arguments]


class Oracle:
    """A running oracle; a case goes in, Kafka's answer comes out."""

    def __init__(self, home: Path, release: str) -> None:
        self.release = release
        self._process = subprocess.Popen(
            command(home, release), stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._process.terminate()
        self._process.wait()

    def ask(self, case: Document) -> Document:
        (answer,) = self.ask_all([case])
        return answer

    def ask_all(self, cases: Collection[Document]) -> Iterator[Document]:
        return map(json.loads, self.lines(cases))

    def lines(self, cases: Collection[Document]) -> Iterator[str]:
        """The answers in order as they are given, while the questions are still being written."""
        writer = threading.Thread(target=self._write, args=(cases,), daemon=True)
        writer.start()
        for number in range(1, len(cases) + 1):
            line = _out(self._process.stdout).readline()
            if not line:
                raise OracleError(f"Kafka {self.release} ended at case {number} of {len(cases)}")
            yield line
        writer.join()

    def _write(self, cases: Iterable[Document]) -> None:
        questions = _out(self._process.stdin)
        for case in cases:
            questions.write(json.dumps(case) + "\n")
        questions.flush()


def _out(pipe: IO[str] | None) -> IO[str]:
    assert pipe is not None
    return pipe
