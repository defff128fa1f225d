"""CRC-32C, which Kafka's record batches carry, of any part of the bytes of a file.

A compiled one is used where it is installed. Without it, a loop over the bytes would take longer
than to decode what they say. But the checksum is linear: with the register after the first ``n``
bytes known, for all ``n``, that of any part follows. And the registers of many equal pieces, each
begun with zero, are one calculation with arrays.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Callable
from functools import cache
from typing import Final

Checksum = Callable[[int, int], int]
"""The CRC-32C of the bytes from one place up to another."""

_POLYNOMIAL: Final = 0x82F63B78  # Castagnoli, reflected
_ALL_ONES: Final = 0xFFFFFFFF
_HALF: Final = 0xFFFF
_BYTE: Final = 0xFF
_PIECE: Final = 128  # bytes
_AT_ONCE: Final = 1 << 22  # bytes whose pieces are calculated together
_WORTH_IT: Final = 1 << 16  # bytes; fewer are gone through before arrays are loaded


def of(data: bytes) -> Checksum:
    """The checksums of parts of *data*."""
    compiled = _compiled()
    if compiled is not None:
        return lambda start, end: compiled(data[start:end])
    if len(data) < _WORTH_IT:
        return lambda start, end: crc32c(data[start:end])
    return _Prefixes(data).between


def crc32c(data: bytes) -> int:
    """CRC-32C in plain Python."""
    return _after(_ALL_ONES, data) ^ _ALL_ONES


@cache
def _compiled() -> Callable[[bytes], int] | None:
    try:
        import google_crc32c  # type: ignore[import-not-found,unused-ignore]  # noqa: PLC0415
    except ImportError:
        return None
    if google_crc32c.implementation == "python":
        return None
    found: Callable[[bytes], int] = google_crc32c.value
    return found


# --- The register ------------------------------------------------------------------------------


def _after(register: int, data: bytes) -> int:
    """The register after these bytes, four of them at a time."""
    byte, late, early = _tables()
    whole = len(data) & ~3
    for word in struct.unpack_from(f"<{whole // 4}I", data):
        register ^= word
        register = early[register & _HALF] ^ late[register >> 16]
    for value in data[whole:]:
        register = byte[(register ^ value) & _BYTE] ^ (register >> 8)
    return register


@cache
def _tables() -> tuple[list[int], array[int], array[int]]:
    """By one byte; by two bytes; by two bytes with two zero bytes after them.

    Arrays and not lists of integers: they stay in the processor's cache, which is what counts.
    """
    byte = []
    for value in range(256):
        register = value
        for _ in range(8):
            register = (register >> 1) ^ (_POLYNOMIAL if register & 1 else 0)
        byte.append(register)

    def two_more(register: int) -> int:
        register = byte[register & _BYTE] ^ (register >> 8)
        return byte[register & _BYTE] ^ (register >> 8)

    late = array("I", map(two_more, range(1 << 16)))
    return byte, late, array("I", map(two_more, late))


_Linear = tuple[list[int], list[int], list[int], list[int]]
"""A linear function of the register: its values for each byte of it alone."""


def _linear(of_bits: list[int]) -> _Linear:
    def table(bits: list[int]) -> list[int]:
        values = [0]
        for bit in bits:
            values += [value ^ bit for value in values]
        return values

    return table(of_bits[:8]), table(of_bits[8:16]), table(of_bits[16:24]), table(of_bits[24:])


def _applied(function: _Linear, register: int) -> int:
    first, second, third, fourth = function
    return (
        first[register & _BYTE]
        ^ second[register >> 8 & _BYTE]
        ^ third[register >> 16 & _BYTE]
        ^ fourth[register >> 24]
    )


@cache
def _zeros(power: int) -> _Linear:
    """What two to the *power* zero bytes do to the register."""
    if power == 0:
        return _linear([_after(1 << bit, b"\0") for bit in range(32)])
    half = _zeros(power - 1)
    return _linear([_applied(half, _applied(half, 1 << bit)) for bit in range(32)])


# --- The registers of a whole file ---------------------------------------------------------------


class _Prefixes:
    """The register at the begin of each piece, if it was zero at the begin of the file."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        one_more = _zeros(_PIECE.bit_length() - 1)
        register, self._registers = 0, [0]
        for start in range(0, len(data) - _PIECE + 1, _AT_ONCE):
            for alone in _registers_of_pieces(data[start : start + _AT_ONCE]):
                register = _applied(one_more, register) ^ alone
                self._registers.append(register)

    def between(self, start: int, end: int) -> int:
        # Two registers that differ do so by a linear function of how they differed before.
        differs = _ALL_ONES ^ self._at(start)
        for power in range((end - start).bit_length()):
            if (end - start) >> power & 1:
                differs = _applied(_zeros(power), differs)
        return differs ^ self._at(end) ^ _ALL_ONES

    def _at(self, place: int) -> int:
        piece = place // _PIECE
        return _after(self._registers[piece], self._data[piece * _PIECE : place])


def _registers_of_pieces(data: bytes) -> list[int]:
    """The register after each whole piece alone, begun with zero."""
    import numpy as np  # noqa: PLC0415 - most files are too small for it

    _, late, early = (np.array(table, dtype=np.uint32) for table in _tables())
    pieces = len(data) // _PIECE
    words = np.frombuffer(data, dtype="<u4", count=pieces * _PIECE // 4)
    registers = np.zeros(pieces, dtype=np.uint32)
    for word in np.ascontiguousarray(words.reshape(pieces, -1).T):
        registers ^= word
        registers = early[registers & _HALF] ^ late[registers >> 16]
    found: list[int] = registers.tolist()
    return found
