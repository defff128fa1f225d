"""Kafka's record batches (magic 2), as they stand in a log segment or a checkpoint.

The checksum, the framing and the positions are checked here; what a record says is for others to
decode. A batch cut short at the end of a file is how every log of a running node ends; anything
else that is wrong is refused with its byte. Plain Python: this runs on executors.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

from understudy.errors import BadInputError
from understudy.sources import checksums
from understudy.sources.checksums import Checksum

MAGIC: Final = 2
HEADER_BYTES: Final = 61
MAX_BATCH_BYTES: Final = 64 * 2**20
"""More than any batch of this log has: Kafka's raft client stops at 8 MiB."""

# baseOffset, batchLength, partitionLeaderEpoch, magic, crc, attributes, lastOffsetDelta,
# baseTimestamp, maxTimestamp, producerId, producerEpoch, baseSequence, recordCount
_HEADER: Final = struct.Struct(">qiibIhiqqqhii")
_LENGTH_END: Final = 12  # batchLength counts the bytes after itself
MAGIC_AT: Final = 16
_CRC_FROM: Final = 21
_CODEC: Final = 0x07
_CONTROL: Final = 0x20
_NULL: Final = 1  # the varint -1, in place of a length
_CODECS: Final = {1: "gzip", 2: "snappy", 3: "lz4", 4: "zstd"}
# The magic, 26 bytes later a producerId, producerEpoch and baseSequence of -1 (nobody produces to
# this log), and the count.
_LIKE_A_HEADER: Final = re.compile(rb"\x02.{26}\xff{14}.{4}", re.DOTALL)


class Batch(NamedTuple):
    """The header of one batch and where its records stand."""

    position: int
    end: int
    base_offset: int
    last_offset: int
    epoch: int
    control: bool
    base_time: int
    max_time: int
    size: int


class Raw(NamedTuple):
    """One record, not yet decoded."""

    offset: int
    time: int
    key: bytes | None
    value: bytes | None


class Torn(NamedTuple):
    """Bytes at the end of a file that are no whole batch, and why."""

    position: int
    reason: str


def batches(data: bytes, name: str) -> Iterator[Batch | Torn]:
    """The batches of one file, in order; a last item :class:`Torn` where the end was cut short."""
    position = 0
    checksum = checksums.of(data)
    while position < len(data):
        found = _batch(data, position, name, checksum)
        if isinstance(found, Torn):
            if data.count(0, position) < len(data) - position:
                _check_nothing_follows(data, found, name)
                yield found
            return
        yield found
        position = found.end


def records(data: bytes, batch: Batch, name: str) -> Iterator[Raw]:
    """The records of one batch."""
    try:
        yield from _records(data, batch)
    except (Malformed, IndexError) as error:
        why = str(error) if isinstance(error, Malformed) else "a record ends beyond it"
        raise BadInputError(
            f"{name}, byte {batch.position}: the batch at offset {batch.base_offset} "
            f"is malformed: {why}"
        ) from None


def _records(data: bytes, batch: Batch) -> Iterator[Raw]:
    position = batch.position + HEADER_BYTES
    last = batch.base_offset - 1
    for _ in range(batch.size):
        raw, position = _record(data, position, batch)
        if not last < raw.offset <= batch.last_offset:
            raise Malformed("its offset is out of order")
        last = raw.offset
        yield raw
    if position != batch.end:
        raise Malformed(f"{batch.end - position} bytes follow its last record")


class Malformed(ValueError):  # noqa: N818 - caught where a file and a position can be named
    """What is wrong inside a batch whose checksum holds."""


def _batch(data: bytes, position: int, name: str, checksum: Checksum) -> Batch | Torn:
    left = len(data) - position
    if left < HEADER_BYTES:
        return Torn(position, f"{left} bytes are no whole batch")
    base, length, epoch, magic, crc, attributes, delta, base_time, max_time, _, _, _, count = (
        _HEADER.unpack_from(data, position)
    )
    end = position + _LENGTH_END + length
    if length == 0 and base == 0:
        return Torn(position, "nothing but zeros follows")
    where = f"{name}, byte {position}"
    if magic != MAGIC:
        raise BadInputError(f"{where}: magic {magic} where a record batch has {MAGIC}")
    if length < HEADER_BYTES - _LENGTH_END:
        raise BadInputError(f"{where}: a batch cannot have {length} bytes")
    if end > len(data):
        return Torn(position, f"the batch needs {end - len(data)} bytes more than there are")
    if checksum(position + _CRC_FROM, end) != crc:
        return Torn(position, "the CRC-32C of the batch does not match")
    if attributes & _CODEC:
        codec = _CODECS.get(attributes & _CODEC, "an unknown codec")
        raise BadInputError(
            f"{where}: the batch is compressed ({codec}); Kafka writes its metadata uncompressed"
        )
    if base < 0 or delta < 0 or count < 0 or epoch < 0:
        raise BadInputError(f"{where}: the batch has a negative offset, epoch or count")
    return Batch(
        position,
        end,
        base,
        base + delta,
        epoch,
        bool(attributes & _CONTROL),
        base_time,
        max_time,
        count,
    )


def _check_nothing_follows(data: bytes, torn: Torn, name: str) -> None:
    """Refuse a bad batch with another one after it: that is damage, not the end of the log."""
    where = f"{name}, byte {torn.position}: {torn.reason}"
    if len(data) - torn.position > MAX_BATCH_BYTES:
        raise BadInputError(f"{where}, and more follows than one batch can hold")
    header = _LIKE_A_HEADER.search(data, torn.position + 1 + MAGIC_AT)
    while header:
        start = header.start() - MAGIC_AT
        _, length, *_ = _HEADER.unpack_from(data, start)
        if HEADER_BYTES - _LENGTH_END <= length <= len(data) - start - _LENGTH_END:
            raise BadInputError(
                f"{where}, and other batches follow from byte {start}: the file is damaged"
            )
        header = _LIKE_A_HEADER.search(data, header.start() + 1)


def _record(data: bytes, position: int, batch: Batch) -> tuple[Raw, int]:
    length, position = varint(data, position)
    end = position + length
    if length < 0 or end > batch.end:
        raise Malformed(f"a record of {length} bytes does not fit")
    time_delta, position = varint(data, position + 1)  # one byte of attributes, unused
    offset_delta, position = varint(data, position)
    key = None
    if data[position] == _NULL:  # as of every record but those of the raft protocol
        position += 1
    else:
        key, position = _bytes(data, position, end)
    value, position = _bytes(data, position, end)
    headers, position = varint(data, position)
    if headers or position != end:
        raise Malformed("a record is not as long as it says, or has headers")
    return Raw(batch.base_offset + offset_delta, batch.base_time + time_delta, key, value), end


def _bytes(data: bytes, position: int, end: int) -> tuple[bytes | None, int]:
    length, position = varint(data, position)
    if length < 0:
        return None, position
    if position + length > end:
        raise Malformed("a key or value ends beyond its record")
    return data[position : position + length], position + length


def varint(data: bytes, position: int) -> tuple[int, int]:
    """A zig-zag varint and the position after it."""
    value = data[position]
    if value < 0x80:  # noqa: PLR2004 - as nearly all are
        return (value >> 1) ^ -(value & 1), position + 1
    value, position = unsigned_varint(data, position)
    return (value >> 1) ^ -(value & 1), position


def unsigned_varint(data: bytes, position: int) -> tuple[int, int]:
    """An unsigned varint and the position after it."""
    byte = data[position]
    if byte < 0x80:  # noqa: PLR2004 - the high bit says that more follows
        return byte, position + 1
    value, shift = byte & 0x7F, 7
    while True:
        position += 1
        byte = data[position]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:  # noqa: PLR2004
            return value, position + 1
        shift += 7
        if shift > 63:  # noqa: PLR2004 - a varlong has ten bytes
            raise Malformed("a number has too many bytes")
