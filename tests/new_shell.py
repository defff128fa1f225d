"""What a command finds in the environment of a shell of its own."""

from __future__ import annotations

import os

# Of every query a test asks a JVM sees few rows: to optimise its code costs more than it saves. And
# without that the JVM would reserve too little room for compiled code, and sweep it all the time;
# as it would collect all garbage whenever generated classes fill a little more of their space. The
# collector is that of the product's settings, since a JVM refuses to be told of two.
SHORT_LIVED_JVM = (
    "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -XX:MetaspaceSize=1g"
    " -XX:+UseParallelGC -XX:ParallelGCThreads=1"
)


def environment(**more: str) -> dict[str, str]:
    """Nothing that tells where Spark, its Python or we are, but for what keeps a test short."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name != "PYTHONPATH" and not name.startswith(("SPARK_", "PYSPARK_"))
    }
    loopback = {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_SUBMIT_OPTS": SHORT_LIVED_JVM}
    return {**inherited, **loopback, **more}
