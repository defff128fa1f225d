"""The instant ``--at`` picks out of a history: a transaction, an offset or a time."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from understudy.errors import UsageError

ZXID: Final = "zxid"
OFFSET: Final = "offset"
TIME: Final = "time"

_ZXID: Final = re.compile(r"zxid:(?:0x)?([0-9a-fA-F]{1,16})", re.ASCII)
_OFFSET: Final = re.compile(r"offset:(\d{1,19})", re.ASCII)
_UNIX_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_EXAMPLES: Final = {
    ZXID: "zxid:0x1f",
    OFFSET: "offset:812",
    TIME: "a time such as 2026-01-01T00:00:00Z",
}


class Instant(NamedTuple):
    """One of the kinds above, and its number; a time in milliseconds since 1970."""

    kind: str
    value: int


def instant(at: str, kinds: Sequence[str] = tuple(_EXAMPLES)) -> Instant:
    """What *at* says; one of another kind than *kinds* is a usage error."""
    found = _instant(at)
    if found is None or found.kind not in kinds:
        raise UsageError(f"--at {at}: expected {examples(kinds)}")
    return found


def examples(kinds: Sequence[str]) -> str:
    """How instants of these kinds are written."""
    return " or ".join(_EXAMPLES[kind] for kind in kinds)


def _instant(at: str) -> Instant | None:
    if zxid := _ZXID.fullmatch(at):
        return Instant(ZXID, int(zxid[1], 16))
    if offset := _OFFSET.fullmatch(at):
        return Instant(OFFSET, int(offset[1]))
    try:
        moment = datetime.fromisoformat(at)
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return Instant(TIME, (moment - _UNIX_EPOCH) // timedelta(milliseconds=1))
    except (ValueError, OverflowError):
        return None
