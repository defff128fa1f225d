"""The Spark session: found or started, checked, and set up the way correctness needs.

Master, memory and cores come from spark-submit or its configuration, never from here. This is the
one module that may look below the DataFrame API, and only where Spark Connect has another way.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread
from typing import Any, Final

from pyspark.errors import PySparkException, PySparkRuntimeError
from pyspark.sql import SparkSession

from understudy.errors import EnvironmentTooOldError, SparkEndedError

OLDEST_PYTHON: Final = (3, 11)
OLDEST_JAVA: Final = 17
OLDEST_SPARK: Final = (4, 3)

SETTINGS: Final = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    # Spark's default, INT96, is unreadable to others and has no statistics.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # HotSpot interprets methods of more than 8000 bytes of bytecode for ever; Spark's own limit is
    # 65535, so a long stage would compile and then crawl.
    "spark.sql.codegen.hugeMethodLimit": "8000",
    # Spark gives up on a broadcast after 300 s. On a busy machine the few rows of one can wait
    # longer than that behind the tables that are written at the same time.
    "spark.sql.broadcastTimeout": "-1",
    # Settings are compared without regard to case, in ASCII; the first word that ICU puts into
    # lower case loads its tables, which takes seconds.
    "spark.sql.icu.caseMappings.enabled": "false",
    # Sides of a union that are one task each would all be done by one.
    "spark.sql.unionOutputPartitioning": "false",
    # Lets a small frame that is kept in memory have few partitions; it would have 200.
    "spark.sql.optimizer.canChangeCachedPlanOutputPartitioning": "true",
    # While a batch is filled for Python, Spark adds up its bytes after every row, which takes
    # longer than all else; fewer rows bound it as well.
    "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),
    "spark.sql.execution.arrow.maxRecordsPerBatch": "2000",
    # Of ten thousand small files Spark would make hundreds of tasks, each of which starts Python:
    # it takes the opening of a file for as much work as 4 MiB.
    "spark.sql.files.openCostInBytes": str(128 * 2**10),
    # Batches that were put on disk are held a hundred at a time while they are read back; with
    # Spark's 10000 rows in each that is more than a heap of one gigabyte.
    "spark.sql.inMemoryColumnarStorage.batchSize": "500",
}

_LOCAL_CONF: Final = Path(__file__).parent / "local_conf"
_ENDING_SECONDS: Final = 10.0
_JVM_ENDED: Final = (
    "Spark's JVM ended before its work was done. If it ran out of memory, give it more:"
    " PYSPARK_SUBMIT_ARGS='--driver-memory 4g pyspark-shell'"
)
_IN_HERE: Final = re.compile(r"local(\[.*\])?")
_JVM_CHATTER: Final = b"WARNING: Using incubator modules"
# Without its optimising compiler, which takes half of a short run to get going. Java then has less
# room for compiled code by default, which is not enough for Spark.
_FOR_A_SHORT_RUN: Final = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"


@contextmanager
def session(app_name: str, *, is_short: bool = False) -> Iterator[SparkSession]:
    """A session set up for the jobs; stopped afterwards unless somebody else had started it.

    One that is started here for a run that *is_short* answers sooner, but would make a long one
    longer.
    """
    _check_python()
    running = SparkSession.getActiveSession()
    spark = running or _start(app_name, is_short=is_short)
    try:
        yield configure(spark)
    except Exception as error:
        if _jvm_has_ended(spark, error):
            raise SparkEndedError(_JVM_ENDED) from error
        raise
    finally:
        if running is None:
            _stop(spark)


def configure(spark: SparkSession) -> SparkSession:
    """Check *spark*'s version and apply the settings the jobs rely on."""
    _check_spark(spark.version)
    for name, value in SETTINGS.items():
        spark.conf.set(name, value)
    return spark


def is_connect(spark: SparkSession) -> bool:
    return type(spark).__module__.startswith("pyspark.sql.connect")


# --- Starting ----------------------------------------------------------------------------------


def _start(app_name: str, *, is_short: bool) -> SparkSession:
    builder = SparkSession.builder.appName(app_name)
    if _is_launched_by_spark():
        return builder.getOrCreate()
    if is_short and _is_plain_environment():
        # Stands before the options of the settings file and of whoever gives some.
        builder = builder.config("spark.driver.defaultJavaOptions", _FOR_A_SHORT_RUN)
    _default_environment()
    _silence_py4j()
    try:
        with _jvm_chatter_filtered():
            return builder.getOrCreate()
    except PySparkRuntimeError as error:
        if error.getCondition() == "JAVA_GATEWAY_EXITED":
            _check_java()
        raise


def _is_launched_by_spark() -> bool:
    """Whether spark-submit started this process, and with it the JVM."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def is_this_machines() -> bool:
    """Whether a session would be started in here, and a path without a scheme be a file of here.

    Of any other Spark only itself knows what its paths mean.
    """
    hadoop = any(name in os.environ for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR"))
    other_files = hadoop or "fs.default" in os.environ.get("PYSPARK_SUBMIT_ARGS", "")
    started = _is_launched_by_spark() or SparkSession.getActiveSession() is not None
    return not started and not other_files and _is_plain_environment()


def writes_to(spark: SparkSession, path: str) -> bool:
    """Whether what *spark* writes to *path* are files of this machine.

    On a cluster they are, or Spark could not put together what its executors wrote.
    """
    if is_connect(spark):
        return False
    scheme, named, _ = path.partition(":")
    if named and "/" not in scheme:
        return scheme == "file"
    context = spark.sparkContext
    if not Path(path).is_absolute():
        jvm: Any = context._jvm  # noqa: SLF001
        # Spark stays where it was started.
        if Path(jvm.java.lang.System.getProperty("user.dir")) != Path.cwd():
            return False
    hadoop = context._jsc.hadoopConfiguration()  # noqa: SLF001
    return str(hadoop.get("fs.defaultFS")).startswith("file:")


def _is_plain_environment() -> bool:
    """Whether nothing in the environment names another Spark than one in here."""
    named = ("SPARK_CONF_DIR", "SPARK_HOME", "MASTER", "SPARK_REMOTE")
    submitted = os.environ.get("PYSPARK_SUBMIT_ARGS", "")
    elsewhere = re.search(r"--master|--remote|--properties-file|spark\.master", submitted)
    return not elsewhere and not any(name in os.environ for name in named)


def _default_environment() -> None:
    """What a plain ``understudy`` on somebody's machine needs; whatever is set already wins."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if _is_plain_environment() and _LOCAL_CONF.is_dir():
        os.environ["SPARK_CONF_DIR"] = str(_LOCAL_CONF)
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")


def _silence_py4j() -> None:
    """It logs the trace of every call that fails, also as the root; who calls reports failures."""
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(_is_of_others)


def _is_of_others(record: logging.LogRecord) -> bool:
    return Path(record.pathname).parent.name != "py4j"


@contextmanager
def _jvm_chatter_filtered() -> Iterator[None]:
    """Pass on what a JVM started here says, but for one line it says every time.

    The JVM keeps the stderr it is born with: a pipe, whose other end a thread copies to ours.
    """
    ours = os.dup(2)
    receiving, sending = os.pipe()
    os.dup2(sending, 2)
    os.close(sending)
    Thread(target=_copy_lines, args=(receiving, ours), daemon=True).start()
    try:
        yield
    finally:
        os.dup2(ours, 2)


def _copy_lines(receiving: int, to: int) -> None:
    with open(receiving, "rb") as lines, suppress(OSError):  # not a path
        for line in lines:
            if not line.startswith(_JVM_CHATTER):
                os.write(to, line)


# --- Ending ------------------------------------------------------------------------------------


def _stop(spark: SparkSession) -> None:
    try:
        spark.stop()
    except Exception as error:
        if not _jvm_has_ended(spark, error):
            raise


def _jvm_has_ended(spark: SparkSession, error: Exception) -> bool:
    """Whether *error* comes of the JVM that was started for this session being gone."""
    of_the_link = isinstance(error, ConnectionError) or type(error).__module__.startswith("py4j.")
    if is_connect(spark) or not of_the_link:
        return False
    process: subprocess.Popen[bytes] | None = spark.sparkContext._gateway.proc  # type: ignore[union-attr]  # noqa: SLF001
    if process is None:  # somebody else's
        return False
    with suppress(subprocess.TimeoutExpired):
        process.wait(_ENDING_SECONDS)
    return process.returncode is not None


# --- Checking ----------------------------------------------------------------------------------


def _check_python() -> None:
    if sys.version_info < OLDEST_PYTHON:
        raise EnvironmentTooOldError(
            f"Python {_dotted(OLDEST_PYTHON)} or newer is needed; this is Python "
            f"{_dotted(sys.version_info[:2])} at {sys.executable}."
        )


def _check_spark(version: str) -> None:
    numbers = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
    if numbers < OLDEST_SPARK:
        raise EnvironmentTooOldError(
            f"Spark {_dotted(OLDEST_SPARK)} or newer is needed; this is Spark {version}."
        )


def _check_java() -> None:
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java")
    if java is None or not Path(java).exists():
        where = f"JAVA_HOME is {home}, which has no bin/java" if home else "there is none"
        raise EnvironmentTooOldError(f"Java {OLDEST_JAVA} or newer is needed; {where}.")
    found = java_version(
        subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr  # noqa: S603
    )
    if found is not None and found < OLDEST_JAVA:
        raise EnvironmentTooOldError(
            f"Java {OLDEST_JAVA} or newer is needed; {java} is Java {found}."
        )


def java_version(banner: str) -> int | None:
    """The feature release in the output of ``java -version``; 8 called itself 1.8."""
    found = re.search(r'version "(?:1\.)?(\d+)', banner)
    return int(found[1]) if found else None


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


# --- Where it runs -----------------------------------------------------------------------------


def runs_in_here(spark: SparkSession) -> bool:
    """Whether *spark* does all its work in one JVM on this machine, with its files."""
    return not is_connect(spark) and bool(_IN_HERE.fullmatch(spark.sparkContext.master or ""))


# --- Cancelling --------------------------------------------------------------------------------


def tag_jobs(spark: SparkSession, tag: str) -> None:
    """Mark every job this thread starts from now on."""
    if is_connect(spark):
        spark.addTag(tag)
    else:
        # A classic session's own tags are cancelled only from the thread that set them.
        spark.sparkContext.addJobTag(tag)


def untag_jobs(spark: SparkSession, tag: str) -> None:
    if is_connect(spark):
        spark.removeTag(tag)
    else:
        spark.sparkContext.removeJobTag(tag)


def cancel_jobs(spark: SparkSession, tag: str) -> None:
    """Cancel the jobs marked with *tag* that run now."""
    with suppress(PySparkException):
        if is_connect(spark):
            spark.interruptTag(tag)
        else:
            spark.sparkContext.cancelJobsWithTag(tag)


# --- Watching ----------------------------------------------------------------------------------


def running_stages(spark: SparkSession) -> list[tuple[int, int]]:
    """Tasks finished and planned in each stage a classic session works on now."""
    tracker = spark.sparkContext.statusTracker()
    stages = (tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds())
    return [(stage.numCompletedTasks, stage.numTasks) for stage in stages if stage is not None]
