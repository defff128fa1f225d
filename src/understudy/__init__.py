"""Understudy replays the Apache Kafka controller over snapshots of a cluster, on Spark."""

from __future__ import annotations

__version__ = "0.1.0"
