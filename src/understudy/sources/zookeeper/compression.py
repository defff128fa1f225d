"""Snapshots compressed by ZooKeeper: gzip, and Snappy in the stream form of snappy-java.

Told apart by content. What comes out is bounded, because a small file can unpack to anything.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Final

from understudy.errors import BadInputError
from understudy.sources.zookeeper.jute import INT, Cursor, refuse

GZIP_MAGIC: Final = b"\x1f\x8b"
SNAPPY_MAGIC: Final = b"\x82SNAPPY\x00"

_GZIP_WINDOW: Final = 31  # zlib's sign for: expect a gzip header and check its trailer
_STEP: Final = 1 << 22
_SNAPPY_VERSION: Final = 1
_LONGEST_VARINT: Final = 5


def uncompressed(data: bytes, limit: int) -> bytes:
    """*data* itself, or what it unpacks to."""
    if data.startswith(GZIP_MAGIC):
        return _bounded(_gunzip(data), limit)
    if data.startswith(SNAPPY_MAGIC):
        return _bounded(_unsnappy(data, limit), limit)
    return data


def uncompressed_head(head: bytes, size: int) -> bytes:
    """The first bytes of what *head* begins; empty when that cannot be told."""
    if not head.startswith(GZIP_MAGIC):
        return head[:size]
    try:
        return zlib.decompressobj(_GZIP_WINDOW).decompress(head, size)
    except zlib.error:
        return b""


def _bounded(chunks: Iterator[bytes], limit: int) -> bytes:
    found: list[bytes] = []
    size = 0
    for chunk in chunks:
        size += len(chunk)
        if size > limit:
            raise _too_large(limit)
        found.append(chunk)
    return b"".join(found)


def _too_large(limit: int) -> BadInputError:
    return BadInputError(f"the file is larger than {limit:,} bytes when uncompressed")


def _gunzip(data: bytes) -> Iterator[bytes]:
    stream = zlib.decompressobj(_GZIP_WINDOW)
    packed = data
    try:
        while not stream.eof:
            chunk = stream.decompress(packed, _STEP)
            packed = stream.unconsumed_tail
            if not chunk and not packed and not stream.eof:
                raise BadInputError("the gzip data is truncated")
            yield chunk
    except zlib.error as error:
        raise BadInputError(f"the gzip data is corrupt: {error}") from error
    if stream.unused_data:
        at = len(data) - len(stream.unused_data)
        raise refuse(at, "there is more after the end of the gzip data")


def _unsnappy(data: bytes, limit: int) -> Iterator[bytes]:
    """The blocks of a stream: two versions after the magic, then each block with its length."""
    import pyarrow as pa  # noqa: PLC0415 - only this rare kind of file needs it

    codec = pa.Codec("snappy")
    cursor = Cursor(data, len(SNAPPY_MAGIC))
    versions = cursor.integer(), cursor.integer()
    if versions[1] > _SNAPPY_VERSION or min(versions) < _SNAPPY_VERSION:
        at = len(SNAPPY_MAGIC)
        raise refuse(at, f"version {versions[0]}/{versions[1]} of Snappy's stream is not known")
    while cursor.left:
        at = cursor.at
        packed = cursor.buffer() or b""
        size = _uncompressed_size(packed, at + INT.size)
        if size > limit:
            raise _too_large(limit)
        try:
            yield codec.decompress(packed, decompressed_size=size, asbytes=True)
        except (OSError, ValueError) as error:
            raise refuse(at, "the Snappy data is corrupt") from error


def _uncompressed_size(packed: bytes, at: int) -> int:
    """The number a block begins with: seven bits to a byte, the lowest first."""
    size = 0
    for place, byte in enumerate(packed[:_LONGEST_VARINT]):
        size |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:  # noqa: PLR2004 - the bit that says there is more
            return size
    raise refuse(at, "the Snappy data is corrupt")
