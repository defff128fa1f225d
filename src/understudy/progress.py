"""Says how work is coming along: by a line that rewrites itself on a terminal, else by a few lines.

Off a terminal a step that takes long is told of, and again each time it has taken twice as long.

Everything goes to standard error, so that what a command answers stays alone on standard output.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Final, TextIO

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_BAR: Final = 24
_WIDTH: Final = 98
_REDRAW_SECONDS: Final = 0.25
_LONG_SECONDS: Final = 10.0


class Progress:
    """The state of the work, and the line that shows it."""

    def __init__(
        self,
        out: TextIO,
        *,
        live: bool,
        verbose: bool,
        quiet: bool = False,
        long_seconds: float = _LONG_SECONDS,
    ) -> None:
        self._out = out
        self._live = live
        self._verbose = verbose
        self._quiet = quiet and not verbose
        self._long_seconds = long_seconds
        self._started = time.monotonic()
        self._doing = "starting Spark"
        self._since = self._started
        self._tables = (0, 0)
        self._tasks = (0, 0)
        self._over = Event()
        self._lock = Lock()
        tell = self._draw_until_over if live else self._tell_until_over
        self._teller = Thread(target=tell, daemon=True)
        if live or not (verbose or quiet):
            self._teller.start()

    def doing(self, what: str, *, tables: int = 0) -> None:
        """Name the step that begins now; *tables* is how many it will finish."""
        self._doing, self._tables, self._since = what, (0, tables), time.monotonic()
        if self._verbose and not self._live:
            self._line(what)

    def note(self, text: str) -> None:
        """Something to know before the work is done."""
        if self._live:
            self._line(f"\r\x1b[Kunderstudy: {text}")
        elif not self._quiet:
            self._line(f"understudy: {text}")

    def table(self, name: str) -> None:
        """One table is finished."""
        with self._lock:
            done, of = self._tables
            self._tables = (done + 1, of)
        if self._verbose and not self._live:
            self._line(f"wrote {name}")

    def tasks(self, stages: Iterable[tuple[int, int]]) -> None:
        """The tasks finished and planned in each stage that runs now."""
        seen = list(stages)
        self._tasks = (sum(done for done, _ in seen), sum(of for _, of in seen))

    def close(self) -> None:
        self._over.set()
        if self._teller.is_alive():
            self._teller.join()
        if self._live:
            self._out.write("\r\x1b[K")
            self._out.flush()

    def text(self) -> str:
        done, of = self._tables
        filled = _BAR * done // of if of else 0
        bar = f"[{'#' * filled}{'.' * (_BAR - filled)}] " if of else ""
        return f"{bar}{self._plain_text()}"[:_WIDTH]

    def _plain_text(self) -> str:
        (done, of), (finished, planned) = self._tables, self._tasks
        parts = [f"{self._doing} {done}/{of}" if of else self._doing]
        if planned:
            parts.append(f"{finished:,}/{planned:,} tasks")
        parts.append(f"{time.monotonic() - self._started:.0f} s")
        return ", ".join(parts)

    def _line(self, text: str) -> None:
        self._out.write(text + "\n")
        self._out.flush()

    def _draw_until_over(self) -> None:
        while not self._over.wait(_REDRAW_SECONDS):
            self._out.write(f"\r\x1b[K{self.text()}")
            self._out.flush()

    def _tell_until_over(self) -> None:
        told_of, due = self._since, self._since + self._long_seconds
        while not self._over.wait(min(1.0, self._long_seconds)):
            since, now = self._since, time.monotonic()
            if since != told_of:
                told_of, due = since, since + self._long_seconds
            if now >= due:
                self._line(f"understudy: {self._plain_text()}")
                due = since + 2 * (now - since)


@contextmanager
def showing(*, verbose: bool = False, quiet: bool = False) -> Iterator[Progress]:
    """Progress on standard error: live on a terminal, elsewhere in lines.

    Elsewhere it is each step if *verbose*, else those that take long unless *quiet*.
    """
    live = sys.stderr.isatty()
    # A way of our own to the terminal: standard error is not ours while the JVM starts.
    with os.fdopen(os.dup(2), "w", encoding="utf-8") if live else nullcontext(sys.stderr) as out:
        progress = Progress(out, live=live, verbose=verbose, quiet=quiet)
        try:
            yield progress
        finally:
            progress.close()


@contextmanager
def watching(spark: SparkSession, progress: Progress) -> Iterator[None]:
    """Feed *progress* with the tasks *spark* works on."""
    from understudy.session import is_connect, running_stages  # noqa: PLC0415  # loads pyspark

    if is_connect(spark):

        def heard(stages: Iterable[object] | None, *_: object, **__: object) -> None:
            progress.tasks(
                (getattr(stage, "num_completed_tasks", 0), getattr(stage, "num_tasks", 0))
                for stage in stages or ()
            )

        spark.registerProgressHandler(heard)  # type: ignore[arg-type]  # any callable will do
        try:
            yield
        finally:
            spark.removeProgressHandler(heard)  # type: ignore[arg-type]
        return

    over = Event()

    def poll() -> None:
        while not over.wait(_REDRAW_SECONDS):
            with suppress(Exception):  # whoever works with a Spark that has ended reports it
                progress.tasks(running_stages(spark))

    watcher = Thread(target=poll, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()
