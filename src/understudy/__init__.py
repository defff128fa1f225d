"""Understudy replays the Apache Kafka controller over snapshots of a cluster, on Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from understudy.extensions import register as register
    from understudy.publish import read as read
    from understudy.publish import register_views as register_views

__version__ = "0.1.0"

__all__ = ["__version__", "read", "register", "register_views"]


def __getattr__(name: str) -> object:
    """Load what needs Spark when it is first asked for: importing the package must stay free."""
    if name == "register":
        from understudy import extensions  # noqa: PLC0415

        return extensions.register
    if name in ("read", "register_views"):
        from understudy import publish  # noqa: PLC0415

        return getattr(publish, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
