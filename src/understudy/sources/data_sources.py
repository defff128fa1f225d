"""The forms as data sources of Spark: ``spark.read.format("kafka-zk-snapshot").load(path)``.

Thin wrappers around the readers that ``understudy load`` uses: one task for a file, or for a
directory that counts as a whole. The files are opened by pyarrow, which knows local paths and the
object stores it was built for; ``understudy load`` reads whatever path Spark can.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyspark.sql import SparkSession
from pyspark.sql import types as T
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from understudy import schemas
from understudy.errors import BadInputError, UsageError
from understudy.sources import document, forms, kraft_directory, kraft_files, text_forms
from understudy.sources.content import Parsed
from understudy.sources.forms import Wanted
from understudy.sources.local_paths import NO_SUCH_FILE, plain
from understudy.sources.zookeeper import forms as zookeeper
from understudy.sources.zookeeper import history, txnlog

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow import fs

NAMES: Final = {
    "json": "kafka-snapshot-json",
    "zookeeper": "kafka-zookeeper",
    "zk-snapshot": "kafka-zk-snapshot",
    "zk-dump": "kafka-zk-dump",
    "kraft": "kafka-metadata-log",
    "dump-log": "kafka-dump-log",
    "describe": "kafka-topics-describe",
    "kcat": "kafka-kcat",
    "reassignment": "kafka-reassignment",
    "state-change-log": "kafka-state-change-log",
}
"""The name of each form's data source."""

TABLES: Final = {**schemas.SNAPSHOT_TABLES, "quarantine": schemas.QUARANTINE}
FAIL: Final = "FAILFAST"
DROP: Final = "DROPMALFORMED"
_OPTIONS: Final = {
    "cluster": "cluster",
    "release": "release",
    "metadataversion": "metadata_version",
    "at": "at",
    "everychange": "every_change",
    "maxuncompressed": "max_uncompressed",
}
_OTHERS: Final = ("path", "table", "mode")


def register(spark: SparkSession) -> None:
    """Make the data sources known to *spark*'s session; doing it again changes nothing."""
    for form in forms.FORMS:
        spark.dataSource.register(type(f"{form} source", (FormSource,), {"form": form}))


@dataclass
class Files(InputPartition):
    """What one task reads: a file, or the files of a directory in their order."""

    source: str
    paths: tuple[str, ...]
    settled_by: int | None = None
    problem: str | None = None


class FormSource(DataSource):
    """One form; the option ``table`` chooses what is read of it."""

    form: str

    @classmethod
    def name(cls) -> str:
        return NAMES[cls.form]

    def schema(self) -> T.StructType:
        return TABLES[_table(self.options)]

    def reader(self, schema: T.StructType) -> DataSourceReader:  # noqa: ARG002 - as Spark calls it
        return FormReader(self.form, dict(self.options))


class FormReader(DataSourceReader):
    """Finds the files of a form on the driver, and reads them on the executors."""

    def __init__(self, form: str, options: Mapping[str, str]) -> None:
        self._form = form
        self._path = options.get("path", "")
        self._table = _table(options)
        self._drops = _mode(options) == DROP
        self._wanted = _wanted(form, options)

    def partitions(self) -> list[Files]:
        filesystem, root = _filesystem(self._path)
        listed = [path for path in _listed(filesystem, root) if not _is_hidden(path, root)]
        above = kraft_directory.names_above(root)
        if above is not None and filesystem.get_file_info(above).is_file:
            listed.append(above)
        found = list(self._files(listed, filesystem))
        if not found:
            raise BadInputError(f"{self._path}: there is nothing of form {self._form}")
        return found

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        from understudy.sources import rows  # noqa: PLC0415 - the driver needs no pyarrow for this

        if not isinstance(partition, Files):
            raise TypeError("a partition of this source is one of its Files")
        for source, parsed in self._parsed(partition):
            if parsed.problems and self._table != "quarantine" and not self._drops:
                raise BadInputError(f"{source}, {parsed.position}", parsed.problems)
            yield from rows.table_of(self._table, source, parsed)

    def _files(self, listed: list[str], filesystem: fs.FileSystem) -> Iterator[Files]:
        if self._form == zookeeper.DATA_DIRECTORY:
            yield from _zookeeper_files(listed, self._wanted.of_zookeeper(), filesystem)
        elif self._form == kraft_directory.FORM:
            needed = kraft_files.places(listed, self._wanted.of_kafka())
            for directory in dict.fromkeys(directory for _, directory, _ in needed):
                yield Files(directory, tuple(path for path, of, _ in needed if of == directory))
        elif self._form in text_forms.FORMS:
            directories: dict[str, list[str]] = {}
            for path in listed:
                directories.setdefault(path.rpartition("/")[0], []).append(path)
            for directory, paths in directories.items():
                yield Files(directory, tuple(paths))
        else:
            yield from (Files(path, (path,)) for path in listed if self._stands_alone(path))

    def _stands_alone(self, path: str) -> bool:
        name = path.rpartition("/")[2]
        beside = txnlog.is_log(name) or name in zookeeper.BESIDE_SNAPSHOTS
        return not (beside and self._form == zookeeper.SNAPSHOT)

    def _parsed(self, files: Files) -> Iterator[tuple[str, Parsed]]:
        """Each snapshot with the file or directory it is from."""
        filesystem, _ = _filesystem(self._path)
        if files.problem is not None:
            refused = Parsed("directory", self._wanted.cluster, None, (files.problem,), None)
            yield files.source, refused
            return
        named = ((path.rpartition("/")[2], _content(filesystem, path)) for path in files.paths)
        wanted = self._wanted
        if self._form in text_forms.FORMS:
            texts = [(path, _content(filesystem, path)) for path in files.paths]
            texts.sort(key=lambda text: (text_forms.rank(text[1]), text[0]))
            yield from text_forms.snapshots(texts, wanted.of_kafka(), self._form)
            return
        if self._form == zookeeper.DATA_DIRECTORY:
            found = history.read(named, wanted.of_zookeeper(), files.settled_by)
        elif self._form == kraft_directory.FORM:
            found = kraft_directory.snapshots(named, wanted.of_kafka())
        else:
            name, data = next(named)
            found = (
                document.parse(
                    data,
                    max_uncompressed_bytes=wanted.max_uncompressed_bytes
                    or document.MAX_UNCOMPRESSED_BYTES,
                )
                if self._form == forms.JSON
                else zookeeper.parse(data, name, self._form, wanted.of_zookeeper())
            )
        yield from ((files.source, parsed) for parsed in found)


# --- Options -----------------------------------------------------------------------------------


def _table(options: Mapping[str, str]) -> str:
    name = options.get("table", "partitions")
    if name not in TABLES:
        raise UsageError(f"table {name!r} is not one of {', '.join(TABLES)}")
    return name


def _mode(options: Mapping[str, str]) -> str:
    mode = options.get("mode", FAIL).upper()
    if mode not in (FAIL, DROP):
        raise UsageError(f"mode {mode!r} is not one of {FAIL}, {DROP}")
    return mode


def _wanted(form: str, options: Mapping[str, str]) -> Wanted:
    said = {name.lower(): value for name, value in options.items()}
    unknown = sorted(set(said) - set(_OPTIONS) - set(_OTHERS))
    if unknown:
        known = ", ".join((*_OTHERS, *_OPTIONS))
        raise UsageError(f"option {', '.join(unknown)} is not one of {known}")
    texts = {field: said[name] for name, field in _OPTIONS.items() if name in said}
    every = texts.pop("every_change", "false").lower() == "true"
    largest = texts.pop("max_uncompressed", None)
    wanted = Wanted(
        form=form,
        every_change=every,
        max_uncompressed_bytes=None if largest is None else forms.size(largest),
        **texts,
    )
    wanted.check()
    return wanted


# --- Files -------------------------------------------------------------------------------------


def _filesystem(path: str) -> tuple[fs.FileSystem, str]:
    """What opens the files below *path*, and how it calls that path."""
    from pyarrow import fs  # noqa: PLC0415 - importing the package must not load it

    if not path:
        raise UsageError("no path to read from was given: load(path)")
    here = plain(path)
    if "://" not in here:
        return fs.LocalFileSystem(), os.path.abspath(here)  # noqa: PTH100 - no glob, no symlink
    filesystem, root = fs.FileSystem.from_uri(here)
    return filesystem, root


def _listed(filesystem: fs.FileSystem, root: str) -> list[str]:
    from pyarrow import fs  # noqa: PLC0415

    found = filesystem.get_file_info(root)
    if found.type == fs.FileType.NotFound:
        raise BadInputError(f"{root}: {NO_SUCH_FILE}")
    if found.type == fs.FileType.File:
        return [root]
    below = filesystem.get_file_info(fs.FileSelector(root, recursive=True))
    return sorted(each.path for each in below if each.type == fs.FileType.File)


def _is_hidden(path: str, root: str) -> bool:
    """As ``understudy load`` has it: marks like _SUCCESS, and what begins with a dot."""
    segments = path.removeprefix(root).split("/")
    return segments[-1].startswith("_") or any(each.startswith(".") for each in segments)


def _content(filesystem: fs.FileSystem, path: str) -> bytes:
    # Not decompressed here: the readers know by the bytes, and bound what comes out.
    with filesystem.open_input_stream(path, compression=None) as stream:
        return bytes(stream.read())


def _zookeeper_files(
    listed: list[str], wanted: history.Asked, filesystem: fs.FileSystem
) -> Iterator[Files]:
    for directory, names in zookeeper.directories(listed).items():
        starts = {
            name: _start_of_log(filesystem, path)
            for name, path in names.items()
            if wanted.time is not None and txnlog.is_log(name)
        }
        plan = history.plan(names, wanted, starts)
        paths = tuple(names[name] for name in plan.names)
        yield Files(directory, paths, plan.settled_by, plan.problem)


def _start_of_log(filesystem: fs.FileSystem, path: str) -> int:
    """The time of a log's first transaction."""
    with filesystem.open_input_stream(path, compression=None) as stream:
        head = stream.read(txnlog.FIRST_TIME_AT + 8)
    return int.from_bytes(head[txnlog.FIRST_TIME_AT :], "big")
