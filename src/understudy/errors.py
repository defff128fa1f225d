"""Everything that can go wrong on purpose, each with the exit code a shell sees.

An :class:`UnderstudyError` is a sentence for a person. The command line prints it, without a stack
trace, and exits with ``exit_code``; anything else that escapes is a defect of ours (70).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

EXIT_DONE = 0
EXIT_WARNINGS = 4
EXIT_FAILS = 2
EXIT_CANNOT_DECIDE = 3
EXIT_USAGE = 64
EXIT_BAD_INPUT = 65
EXIT_INTERNAL = 70

_WORST_FIRST = (
    EXIT_INTERNAL,
    EXIT_BAD_INPUT,
    EXIT_FAILS,
    EXIT_CANNOT_DECIDE,
    EXIT_WARNINGS,
    EXIT_DONE,
)


def worst(*codes: int) -> int:
    """The exit code that wins when several are deserved."""
    return min(codes, key=_WORST_FIRST.index)


class UnderstudyError(Exception):
    """Base of every error that is the user's to read."""

    exit_code: ClassVar[int] = EXIT_INTERNAL


class UsageError(UnderstudyError):
    """The command was called with arguments that make no sense together."""

    exit_code = EXIT_USAGE


class SeveralClustersError(UsageError):
    """One snapshot is asked for where there are several clusters."""

    def __init__(self, clusters: Sequence[str], option: str = "--cluster") -> None:
        super().__init__(f"{option} chooses one of {', '.join(clusters)}")
        self.clusters = tuple(clusters)


class EnvironmentTooOldError(UnderstudyError):
    """The Spark, Python or Java at hand cannot run the jobs."""

    exit_code = EXIT_USAGE


class SparkEndedError(UnderstudyError):
    """The JVM went away under a running job."""


class BadInputError(UnderstudyError):
    """Input data that is refused, with everything wrong with it at once."""

    exit_code = EXIT_BAD_INPUT

    def __init__(self, message: str, problems: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.problems = tuple(problems)

    def __str__(self) -> str:
        return "\n  - ".join([super().__str__(), *self.problems])


class SchemaMismatchError(BadInputError):
    """A table does not have the columns its schema asks for."""
