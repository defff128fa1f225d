"""The texts of one directory: each recognised by what it says, and put together into snapshots.

Texts in one directory are taken to be of one instant: those that name partitions each make a
snapshot, and all the others add to every one of them. Plain Python: this runs on executors.
"""

from __future__ import annotations

import codecs
import hashlib
import zlib
from collections.abc import Iterable, Iterator
from typing import Final

from understudy.errors import BadInputError
from understudy.sources import (
    cluster_text,
    configs_text,
    describe_text,
    dump_log_text,
    kcat,
    log_dirs_json,
    reassignment_json,
    state_change_log,
)
from understudy.sources.content import Parsed
from understudy.sources.kraft_directory import Asked
from understudy.sources.text_snapshot import Beside, ClusterText, snapshot

BESIDE: Final = "beside"
"""What :func:`recognise` calls a text that only adds to another one."""
FORMS: Final = (
    dump_log_text.FORM,
    describe_text.FORM,
    kcat.FORM,
    reassignment_json.FORM,
    state_change_log.FORM,
)
HEAD_BYTES: Final = 16_384
MAX_TEXT_BYTES: Final = 2**30
_GZIP_MAGIC: Final = b"\x1f\x8b"


def recognise(head: bytes) -> str | None:
    """The form of a text by its first bytes, plain or gzip; null for none of these."""
    try:
        text = _plain_head(head).decode("utf-8", "ignore").removeprefix("\ufeff")
    except zlib.error:
        return None
    if "\0" in text:
        return None
    return next((form for form, found in _RECOGNISE if found(text)), None)


def _plain_head(head: bytes) -> bytes:
    if head.startswith(_GZIP_MAGIC):
        return zlib.decompressobj(wbits=31).decompress(head[:HEAD_BYTES], HEAD_BYTES)
    return head[:HEAD_BYTES]


def _is_beside(head: str) -> bool:
    return (
        configs_text.recognise(head)
        or log_dirs_json.recognise(head)
        or reassignment_json.recognise_list(head)
        or cluster_text.reader(head) is not None
    )


_RECOGNISE: Final = (
    (dump_log_text.FORM, dump_log_text.recognise),
    (state_change_log.FORM, state_change_log.recognise),
    (kcat.FORM, kcat.recognise),
    (describe_text.FORM, describe_text.recognise),
    (reassignment_json.FORM, reassignment_json.recognise),
    (BESIDE, _is_beside),
)


def plain_text(data: bytes, limit: int = MAX_TEXT_BYTES) -> str:
    """The text of a file, plain or gzip; refused if it is more than *limit* bytes long."""
    if data.startswith(_GZIP_MAGIC):
        data = _gunzip(data, limit)
    try:
        return data.removeprefix(codecs.BOM_UTF8).decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadInputError(f"byte {error.start + 1}: the text is not UTF-8") from None


def _gunzip(data: bytes, limit: int) -> bytes:
    found = b""
    try:
        while data:
            member = zlib.decompressobj(wbits=31)
            found += member.decompress(data, limit + 1 - len(found))
            if len(found) > limit:
                raise BadInputError(f"the file is larger than {limit:,} bytes when uncompressed")
            if not member.eof:
                raise BadInputError("the gzip data is truncated")
            data = member.unused_data
    except zlib.error as error:
        raise BadInputError(f"the gzip data is corrupt: {error}") from None
    return found


def snapshots(
    files: Iterable[tuple[str, bytes | None]],
    wanted: Asked,
    form: str | None = None,
) -> Iterator[tuple[str, Parsed]]:
    """The snapshots in the texts of one directory, with the file of each.

    Those that add to others come first (see :func:`rank`). With *form* only texts of that form
    make snapshots.
    """
    beside = Beside()
    made = 0
    last = ""
    for name, data in files:
        last = name
        kind = None if data is None else recognise(data)
        if data is not None and kind is not None and kind not in (BESIDE, form or kind):
            continue
        try:
            if data is None or kind is None:
                raise BadInputError(_unknown(data, form))  # noqa: TRY301
            text = plain_text(data, wanted.max_uncompressed_bytes or MAX_TEXT_BYTES)
            if kind == BESIDE:
                beside.add(_beside(text))
                beside.digests.append(hashlib.sha256(data).hexdigest())
                continue
            made += 1
            for parsed in _snapshots(kind, text, data, beside, wanted):
                yield name, parsed
        except BadInputError as error:
            made += 1
            yield name, _refused(error, wanted)
    if not made and last:
        what = f"no text of the form {form}" if form else "no text that names partitions"
        yield last, Parsed("line 1", wanted.cluster, None, (f"{what} is in this directory",), None)


def rank(head: bytes) -> int:
    """0 for a text that adds to others, so that it is read before them."""
    return 0 if recognise(head) == BESIDE else 1


def _unknown(data: bytes | None, form: str | None) -> str:
    if data is None:
        return "the file is too large; compress it or split it"
    if not data:
        return "the file is empty"
    return f"this is no text of the form {form}" if form else "this is no text of a form known"


def _refused(error: BadInputError, wanted: Asked) -> Parsed:
    problems = error.problems or (str(error),)
    return Parsed("line 1", wanted.cluster, None, problems, None)


def _beside(text: str) -> Beside:
    head = text[:HEAD_BYTES]
    if configs_text.recognise(head):
        return configs_text.read(text.splitlines())
    if log_dirs_json.recognise(head):
        return log_dirs_json.read(text)
    if reassignment_json.recognise_list(head):
        return reassignment_json.read_list(text.splitlines())
    read = cluster_text.reader(head)
    return read(text.splitlines()) if read else Beside()


def _snapshots(
    form: str, text: str, data: bytes, beside: Beside, wanted: Asked
) -> Iterator[Parsed]:
    digest = hashlib.sha256(data).hexdigest()
    if form == dump_log_text.FORM:
        yield from dump_log_text.snapshots(text.splitlines(), wanted)
    elif wanted.offset is not None or wanted.time is not None:
        raise BadInputError(f"--at: a text of the form {form} has one instant, and does not say it")
    elif form == state_change_log.FORM:
        yield _of_state_changes(text, digest, wanted)
    else:
        yield snapshot(
            _said(form, text),
            beside,
            wanted.cluster,
            digest,
            release=wanted.release,
            metadata_version=wanted.metadata_version,
        )


def _said(form: str, text: str) -> ClusterText:
    if form == describe_text.FORM:
        return describe_text.read(text.splitlines())
    return kcat.read(text) if form == kcat.FORM else reassignment_json.read(text)


def _of_state_changes(text: str, digest: str, wanted: Asked) -> Parsed:
    if wanted.cluster is None:
        raise BadInputError("this form does not name its cluster: say --cluster NAME")
    key = (wanted.cluster, f"{state_change_log.FORM}-{digest[:12]}")
    lines = text.splitlines()
    position = f"line {len(lines)}; only what the log mentions, the last record of each partition"
    content = state_change_log.content(
        lines, key, release=wanted.release, metadata_version=wanted.metadata_version
    )
    return Parsed(position, *key, (), content)
