"""Times and durations as people write them on a command line."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

from understudy.errors import UsageError

_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_DURATION: Final = re.compile(r"(\d{1,6})([smhdw])")


def duration(text: str) -> timedelta:
    """``90s``, ``30m``, ``2h``, ``30d`` or ``4w``."""
    found = _DURATION.fullmatch(text)
    if found is None:
        raise UsageError(f"{text!r} is not a duration like 90s, 30m, 2h, 30d or 4w")
    return timedelta(**{_UNITS[found[2]]: int(found[1])})


def moment(text: str, now: datetime) -> datetime:
    """A time like ``2026-01-01T00:00:00Z`` (UTC where it names no zone), or that long ago."""
    if _DURATION.fullmatch(text):
        return now - duration(text)
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(
            f"{text!r} is neither a time like 2026-01-01T00:00:00Z nor a duration like 24h"
        ) from None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)


def micros(instant: datetime | None) -> int | None:
    """Microseconds since 1970, exactly."""
    if instant is None:
        return None
    return (instant - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
