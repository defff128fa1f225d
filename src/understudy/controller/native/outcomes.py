"""What became of a touched partition, in one word and one sentence."""

from __future__ import annotations

from typing import Final

from understudy.controller.states import OFFLINE_PARTITION
from understudy.controller.words import (
    ELECTED,
    ELECTED_UNCLEAN,
    INITIALIZED,
    ISR_SHRUNK,
    NEVER_LED,
    NO_REPLICA_ONLINE,
    OFFLINE,
    QUEUED,
    RECORD_REFRESHED,
    SENT_AGAIN,
    SHRUNK,
    UNCHANGED,
)
from understudy.sql import text

_IS_OFFLINE: Final = f"state_after = {text(OFFLINE_PARTITION)}"

# Condition, word, sentence; no sentence of its own: what the election says. The first that fits.
_OUTCOMES: Final = (
    ("new IS NULL AND queued", NEVER_LED, QUEUED),
    ("new IS NULL", NEVER_LED, NO_REPLICA_ONLINE),
    (f"{_IS_OFFLINE} AND queued", OFFLINE, QUEUED),
    (_IS_OFFLINE, OFFLINE, None),
    ("initialized", INITIALIZED, None),
    ("elected_cleanly", ELECTED, None),
    ("elected_cleanly IS NOT NULL", ELECTED_UNCLEAN, None),
    ("new.isr != old.isr", ISR_SHRUNK, SHRUNK),
    ("new != old", RECORD_REFRESHED, SENT_AGAIN),
)

_WORDS: Final = " ".join(f"WHEN {condition} THEN {text(word)}" for condition, word, _ in _OUTCOMES)
OUTCOME: Final = f"CASE {_WORDS} ELSE {text(UNCHANGED)} END"


def reason(why: str) -> str:
    """The sentence, where *why* is what the election says; both are SQL text."""
    sentences = " ".join(
        f"WHEN {condition} THEN {why if sentence is None else text(sentence)}"
        for condition, _, sentence in _OUTCOMES
    )
    return f"CASE {sentences} END"
