"""How often Python looks for garbage, which it does all the time by default."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_OBJECTS_BETWEEN_COLLECTIONS: Final = 1_000_000


@contextmanager
def rarely_collected() -> Iterator[None]:
    """For those that make millions of objects which live for a while, nearly all without cycles.

    To look for cycles among them again and again takes a quarter to half of their time.
    """
    before = gc.get_threshold()
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
