"""Waiting for a client that talks to a cluster, no longer than was asked for.

The clients retry for ever what cannot succeed, and say why in their logs alone. So the work is done
in a thread of its own, and their logs are listened to instead of printed.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Final, TypeVar

from understudy.errors import BadInputError

_T = TypeVar("_T")
_LIBRARIES: Final = ("kafka", "kazoo")
# What no retry will put right.
_HOPELESS: Final = (
    "SaslAuthenticationFailedError",
    "UnsupportedSaslMechanismError",
    "IllegalSaslStateError",
    "AuthFailedError",
)
_UNTRUSTED: Final = "CERTIFICATE_VERIFY_FAILED"
# A broker says why a login fails and hangs up at once, and kafka-python may notice the latter only.
_ATTEMPT: Final = "Bootstrap connection to"
_CLOSED: Final = "socket disconnected"
_ATTEMPTS: Final = 4
_NO_REASON: Final = ("KafkaTimeoutError",)


class Listener(logging.Handler):
    """Remembers the last error a client logged; *hopeless* is set when it need not try again."""

    def __init__(self, servers: int) -> None:
        super().__init__(logging.WARNING)
        self.hopeless = Event()
        self.last: BaseException | None = None
        self._closings_left = _ATTEMPTS * servers

    def emit(self, record: logging.LogRecord) -> None:
        given = record.args if isinstance(record.args, tuple) else ()
        raised = record.exc_info[1] if record.exc_info else None
        for each in (*given, raised):
            if isinstance(each, BaseException) and not self.hopeless.is_set():
                self._note(each, is_attempt=str(record.msg).startswith(_ATTEMPT))

    def _note(self, error: BaseException, *, is_attempt: bool) -> None:
        if type(error).__name__ in _NO_REASON:
            return
        self.last = error
        if is_attempt and _CLOSED in str(error):
            self._closings_left -= 1
        if is_hopeless(error) or not self._closings_left:
            self.hopeless.set()


def is_hopeless(error: BaseException) -> bool:
    return type(error).__name__ in _HOPELESS or _UNTRUSTED in str(error)


@contextmanager
def listening(servers: int) -> Iterator[Listener]:
    """The clients' logs go to the listener alone; so many *servers* are tried."""
    listener = Listener(servers)
    loggers = [logging.getLogger(name) for name in _LIBRARIES]
    before = [(logger.propagate, logger.level) for logger in loggers]
    for logger in loggers:
        logger.propagate = False
        logger.setLevel(logging.WARNING)
        logger.addHandler(listener)
    try:
        yield listener
    finally:
        for logger, (propagate, level) in zip(loggers, before, strict=True):
            logger.removeHandler(listener)
            logger.propagate = propagate
            logger.setLevel(level)


def within(seconds: float, of_whom: str, work: Callable[[], _T], listener: Listener) -> _T:
    """What *work* returns, or an error that says why there was no answer in time."""
    results: list[_T] = []
    errors: list[BaseException] = []

    def do() -> None:
        try:
            results.append(work())
        except BaseException as error:  # noqa: BLE001 - it is raised where it is waited for
            errors.append(error)

    thread = Thread(target=do, daemon=True, name=f"capture of {of_whom}")
    thread.start()
    deadline = time.monotonic() + seconds
    while thread.is_alive() and time.monotonic() < deadline and not listener.hopeless.is_set():
        thread.join(0.05)
    if results:
        return results[0]
    if listener.hopeless.is_set() and listener.last is not None:
        raise BadInputError(f"{of_whom}: {explained(listener.last)}")
    if errors:
        raise errors[0]
    why = f" ({explained(listener.last)})" if listener.last else ""
    raise BadInputError(f"{of_whom}: no answer within {seconds:g} seconds{why}")


def explained(error: BaseException) -> str:
    """An error of a client in one line."""
    name = type(error).__name__
    told = " ".join(str(error).split())
    if is_hopeless(error):
        what = "the certificate is not trusted" if _UNTRUSTED in told else "authentication failed"
        return f"{what}: {told or name}"
    if _CLOSED in told:
        return "the connection is closed at once: a wrong login, or another security.protocol"
    return told or name
