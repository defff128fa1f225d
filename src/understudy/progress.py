"""Says how long work is coming along: a line that rewrites itself on a terminal, else one per step.

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


class Progress:
    """The state of the work, and the line that shows it."""

    def __init__(self, out: TextIO, *, live: bool, verbose: bool) -> None:
        self._out = out
        self._live = live
        self._verbose = verbose
        self._started = time.monotonic()
        self._doing = "starting Spark"
        self._tables = (0, 0)
        self._tasks = (0, 0)
        self._over = Event()
        self._lock = Lock()
        self._drawer = Thread(target=self._draw_until_over, daemon=True)
        if live:
            self._drawer.start()

    def doing(self, what: str, *, tables: int = 0) -> None:
        """Name the step that begins now; *tables* is how many it will finish."""
        self._doing, self._tables = what, (0, tables)
        if self._verbose and not self._live:
            self._line(what)

    def table(self, name: str, rows: int) -> None:
        """One table is finished."""
        with self._lock:
            done, of = self._tables
            self._tables = (done + 1, of)
        if self._verbose and not self._live:
            self._line(f"wrote {name}: {rows:,} rows")

    def tasks(self, stages: Iterable[tuple[int, int]]) -> None:
        """The tasks finished and planned in each stage that runs now."""
        seen = list(stages)
        self._tasks = (sum(done for done, _ in seen), sum(of for _, of in seen))

    def close(self) -> None:
        self._over.set()
        if self._live and self._drawer.is_alive():
            self._drawer.join()
            self._out.write("\r\x1b[K")
            self._out.flush()

    def text(self) -> str:
        (done, of), (finished, planned) = self._tables, self._tasks
        parts = [self._doing]
        if of:
            filled = _BAR * done // of
            parts = [f"[{'#' * filled}{'.' * (_BAR - filled)}] {self._doing} {done}/{of}"]
        if planned:
            parts.append(f"{finished:,}/{planned:,} tasks")
        parts.append(f"{time.monotonic() - self._started:.0f} s")
        return ", ".join(parts)[:_WIDTH]

    def _line(self, text: str) -> None:
        self._out.write(text + "\n")
        self._out.flush()

    def _draw_until_over(self) -> None:
        while not self._over.wait(_REDRAW_SECONDS):
            self._out.write(f"\r\x1b[K{self.text()}")
            self._out.flush()


@contextmanager
def showing(*, verbose: bool = False, quiet: bool = False) -> Iterator[Progress]:
    """Progress on standard error: live on a terminal, line by line elsewhere if *verbose*."""
    live = sys.stderr.isatty() and not quiet
    # A way of our own to the terminal: standard error is not ours while the JVM starts.
    with os.fdopen(os.dup(2), "w", encoding="utf-8") if live else nullcontext(sys.stderr) as out:
        progress = Progress(out, live=live, verbose=verbose)
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
