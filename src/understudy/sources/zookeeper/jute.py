"""Jute, the encoding of ZooKeeper's files: big-endian numbers, lengths before what they measure."""

from __future__ import annotations

import struct
from typing import Final

from understudy.errors import BadInputError

INT: Final = struct.Struct(">i")
LONG: Final = struct.Struct(">q")


def refuse(at: int, sentence: str) -> BadInputError:
    """The error for bytes that cannot be what they should be."""
    return BadInputError(f"byte {at:,}: {sentence}")


class Cursor:
    """Reads values one after the other and never beyond the end."""

    __slots__ = ("at", "base", "data")

    def __init__(self, data: bytes, at: int = 0, base: int = 0) -> None:
        self.data = data
        self.at = at
        self.base = base
        """Where *data* begins in its file, so that errors name the file's position."""

    @property
    def left(self) -> int:
        return len(self.data) - self.at

    def refuse(self, sentence: str) -> BadInputError:
        return refuse(self.base + self.at, sentence)

    def take(self, size: int) -> bytes:
        if size > self.left:
            raise self.refuse(f"{size:,} bytes should follow and only {self.left:,} do")
        found = self.data[self.at : self.at + size]
        self.at += size
        return found

    def unpack(self, form: struct.Struct) -> tuple[int, ...]:
        return form.unpack(self.take(form.size))

    def integer(self) -> int:
        return self.unpack(INT)[0]

    def long(self) -> int:
        return self.unpack(LONG)[0]

    def boolean(self) -> bool:
        return self.take(1) != b"\0"

    def buffer(self) -> bytes | None:
        """Bytes, or a string not yet decoded; a length of -1 is null."""
        size = self.integer()
        if size < -1:
            self.at -= INT.size
            raise self.refuse(f"{size:,} is no length")
        return None if size == -1 else self.take(size)

    def count(self) -> int:
        """How many items a vector has; null is none."""
        found = self.integer()
        if found > self.left:
            raise self.refuse(f"{found:,} items cannot follow in {self.left:,} bytes")
        return max(found, 0)

    def acl(self) -> None:
        """Pass over a list of access rights."""
        for _ in range(self.count()):
            self.integer()
            self.buffer()
            self.buffer()
