"""What Kafka refuses, as an exception that carries Kafka's name for it."""

from __future__ import annotations


class RefusedError(Exception):
    """A request, or a part of one, that Kafka refuses; *error* is Kafka's name for it."""

    def __init__(self, error: str) -> None:
        super().__init__(error)
        self.error = error
