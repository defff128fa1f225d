"""Shows that the comparison can fail: rules of the core are broken one by one, and each is caught.

A mutation replaces a function or a constant of the interpreter in this process. If no case of a
few hundred tells the broken rule from Kafka's, either the cases or the comparison look away.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple
from unittest.mock import patch


class Mutation(NamedTuple):
    """A rule, and what takes the place of what follows it: owner, name, replacement."""

    rule: str
    replaced: Sequence[tuple[Any, str, Any]]

    @contextmanager
    def applied(self) -> Iterator[None]:
        with ExitStack() as undo:
            for owner, name, replacement in self.replaced:
                if isinstance(owner, dict):
                    undo.enter_context(patch.dict(owner, {name: replacement}))
                else:
                    undo.enter_context(patch.object(owner, name, replacement))
            yield


def survivors(mutations: Sequence[Mutation], checks: Sequence[Callable[[], bool]]) -> int:
    """Break each rule in turn and say which of *checks* (true: it differs) is the first to see it.

    The number of rules that nobody missed; with nothing broken no check may see anything.
    """
    if (first := _caught_by(checks)) is not None:
        sys.stdout.write(f"case {first} of {len(checks)} differs with nothing broken\n")
        return len(mutations)
    sys.stdout.write(f"{'broken rule':64} {'caught by case of ' + str(len(checks)):>24}\n")
    survived = 0
    for mutation in mutations:
        with mutation.applied():
            caught = _caught_by(checks)
        survived += caught is None
        sys.stdout.write(f"{mutation.rule:64} {caught or 'SURVIVED':>24}\n")
        sys.stdout.flush()
    sys.stdout.write(f"{len(mutations) - survived} of {len(mutations)} caught\n")
    return survived


def _caught_by(checks: Sequence[Callable[[], bool]]) -> int | None:
    """The number of the first case that differs."""
    return next((number for number, check in enumerate(checks, 1) if _differs(check)), None)


def _differs(check: Callable[[], bool]) -> bool:
    try:
        return check()
    except Exception:  # noqa: BLE001 - a core that breaks down over a case is caught by it
        return True
